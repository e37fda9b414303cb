//! Connection matrices of htsim (`.cm`): lines of words; `#` begins a comment.
//!
//! `Nodes N`, `Connections C`, `Triggers T` and `Failures F` declare what follows. `a->b` with keys behind it is a
//! connection that starts at a time in picoseconds or when a trigger fires. It may activate triggers when it ends.
//! `trigger id T oneshot|multishot|barrier [count K]` is a trigger.
//!
//! A rank is a node, and a connection is a [`Work::Put`] of its source. A connection activates both its triggers, that
//! of the sender and that of the receiver, with the last acknowledgement. `id`, `prio`, `msg` and `addon` mean nothing
//! here.

use super::{MAX_RANKS, Pairs, bare_time, listed, number_of_ranks, rank_below};
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use crate::input::tokens::{Token, Tokens};
use crate::workload::task::{Job, Rank, SignalId, Task, Work};
use std::collections::HashMap;
use wormhole_kernel::Span;

/// What a connection may have behind its pair of nodes.
const KEYS: [&str; 9] =
    ["id", "start", "trigger", "size", "send_done_trigger", "recv_done_trigger", "prio", "msg", "addon"];

/// Reads a connection matrix; what is wrong goes to `found`. `None` if anything is.
pub fn parse(text: &str, found: &mut Diagnostics) -> Option<Job> {
    let mut matrix = Matrix::default();
    let mut tokens = Tokens::new(text);
    while let Some(mut line) = tokens.next_line() {
        let comment = line.iter().position(|t| t.text.starts_with('#'));
        line.truncate(comment.unwrap_or(line.len()));
        if !line.is_empty() {
            matrix.line(&line, found);
        }
    }
    matrix.check_counts(found);
    let connections = matrix.resolve(found);
    report_what_never_starts(&matrix, &connections, found);
    let nodes = matrix.nodes.filter(|_| !found.has_errors())?;
    let description = format!(
        "htsim connection matrix: {}, {}, {}",
        counted(nodes as usize, "node"),
        counted(connections.len(), "connection"),
        counted(matrix.triggers.len(), "trigger")
    );
    let mut programs = vec![Vec::new(); nodes as usize];
    connections.iter().for_each(|c| c.add_to(&mut programs[c.src as usize]));
    Some(Job { description, groups: Vec::new(), programs: listed(programs) })
}

/// What a file says.
#[derive(Default)]
struct Matrix<'t> {
    nodes: Option<u32>,
    /// `Connections`, `Triggers`, `Failures` and how many of them are declared.
    declared: HashMap<&'t str, (usize, Token<'t>)>,
    rows: Vec<Row<'t>>,
    triggers: Vec<Trigger>,
    /// Index into `triggers` by id.
    by_id: HashMap<u64, usize>,
    failures: usize,
}

/// A connection as written.
struct Row<'t> {
    pair: Token<'t>,
    bytes: Option<u64>,
    start: Option<Span>,
    trigger: Option<Token<'t>>,
    activates: Vec<Token<'t>>,
}

struct Trigger {
    id: u64,
    kind: TriggerKind,
}

#[derive(Clone, Copy)]
enum TriggerKind {
    /// Starts all that name it, once.
    Oneshot,
    /// Starts the next one of those that name it each time.
    Multishot,
    /// Starts all that name it, when it has been activated so many times.
    Barrier(u32),
}

impl<'t> Matrix<'t> {
    fn line(&mut self, line: &[Token<'t>], found: &mut Diagnostics) {
        let first = line[0];
        match first.text {
            "Nodes" | "Connections" | "Triggers" | "Failures" => self.declaration(line, found),
            "trigger" => self.trigger(line, found),
            "failure" => self.failure(first, found),
            text if text.contains("->") => self.connection(line, found),
            _ => found.error(
                first.line,
                first.text,
                "expected Nodes, Connections, Triggers, Failures, trigger, failure or a connection `a->b`",
            ),
        }
    }

    fn declaration(&mut self, line: &[Token<'t>], found: &mut Diagnostics) {
        let &[name, number] = line else {
            return found.error(line[0].line, line[0].text, "expected one number behind it");
        };
        if name.text == "Nodes" {
            self.nodes = number_of_ranks(&number, found);
        } else if let Some(count) = number.number(name.text, found) {
            self.declared.insert(name.text, (count, number));
        }
    }

    fn failure(&mut self, first: Token<'_>, found: &mut Diagnostics) {
        if self.failures == 0 {
            found.warning(first.line, first.text, "failures are not read: give them with --link-events");
        }
        self.failures += 1;
    }

    fn trigger(&mut self, line: &[Token<'t>], found: &mut Diagnostics) {
        let [_, Token { text: "id", .. }, id, kind, rest @ ..] = line else {
            let message = "expected `trigger id T oneshot|multishot|barrier [count K]`";
            return found.error(line[0].line, line[0].text, message);
        };
        let count = Pairs::read(rest, &["count"], found).number::<u32>("count", found);
        let number = id.number("a trigger's id", found);
        let kind = match (kind.text, count) {
            ("oneshot", _) => Some(TriggerKind::Oneshot),
            ("multishot", _) => Some(TriggerKind::Multishot),
            ("barrier", Some(count)) if count > 0 => Some(TriggerKind::Barrier(count)),
            ("barrier", _) => {
                found.error(kind.line, kind.text, "a barrier needs a count above 0");
                None
            }
            _ => {
                found.error(kind.line, kind.text, "a trigger is oneshot, multishot or barrier");
                None
            }
        };
        if let Some(number) = number {
            if self.by_id.insert(number, self.triggers.len()).is_some() {
                found.error(id.line, id.text, "this trigger is there twice");
            }
            // One that is wrong is kept, so that it is not reported as missing, too.
            self.triggers.push(Trigger { id: number, kind: kind.unwrap_or(TriggerKind::Oneshot) });
        }
    }

    fn connection(&mut self, line: &[Token<'t>], found: &mut Diagnostics) {
        let pair = line[0];
        let keys = Pairs::read(&line[1..], &KEYS, found);
        if keys.number::<u64>("id", found) == Some(0) {
            found.error(pair.line, "0", "an id must not be 0");
        }
        let bytes = keys.number::<u64>("size", found);
        if bytes == Some(0) {
            found.error(pair.line, "0", "the connection has no bytes");
        }
        if keys.get("size").is_none() {
            found.error(pair.line, pair.text, "the connection has no size");
        }
        let (start, trigger) = (keys.get("start"), keys.get("trigger"));
        if start.is_some() == trigger.is_some() {
            found.error(pair.line, pair.text, "a connection has either a start or a trigger");
        }
        self.rows.push(Row {
            pair,
            bytes,
            start: start.and_then(|t| bare_time(&t, "ps", found)),
            trigger,
            activates: ["send_done_trigger", "recv_done_trigger"].iter().filter_map(|key| keys.get(key)).collect(),
        });
    }

    fn check_counts(&self, found: &mut Diagnostics) {
        if self.nodes.is_none() && !found.has_errors() {
            found.error(0, "", format!("expected a line `Nodes N` with 1 to {MAX_RANKS} nodes"));
        }
        for (name, noun, count) in [
            ("Connections", "connection", self.rows.len()),
            ("Triggers", "trigger", self.triggers.len()),
            ("Failures", "failure", self.failures),
        ] {
            match self.declared.get(name) {
                Some((declared, at)) if *declared != count => {
                    found.error(at.line, at.text, format!("{} declared, {count} found", counted(*declared, noun)));
                }
                None if count > 0 || name == "Connections" => {
                    let message = format!("{}, but no line `{name} {count}` declares them", counted(count, noun));
                    found.error(0, "", message);
                }
                _ => {}
            }
        }
    }

    /// The connections with their triggers; those only of which everything is known.
    fn resolve(&self, found: &mut Diagnostics) -> Vec<Connection<'t>> {
        let mut named = vec![0; self.triggers.len()];
        self.rows.iter().filter_map(|row| self.connect(row, &mut named, found)).collect()
    }

    /// `named` counts the connections so far that each trigger starts.
    fn connect(&self, row: &Row<'t>, named: &mut [u32], found: &mut Diagnostics) -> Option<Connection<'t>> {
        let pair = self.ends(row.pair, found);
        let awaits = row.trigger.map(|token| {
            let signal = self.signal(token, found)?;
            named[signal] += 1;
            let count = match self.triggers[signal].kind {
                TriggerKind::Oneshot => 1,
                TriggerKind::Multishot => named[signal],
                TriggerKind::Barrier(count) => count,
            };
            Some((signal as SignalId, count))
        });
        let raises: Vec<_> = row.activates.iter().map(|t| Some(self.signal(*t, found)? as SignalId)).collect();
        let (src, dst) = pair?;
        Some(Connection {
            at: row.trigger.unwrap_or(row.pair),
            src,
            dst,
            bytes: row.bytes?,
            start: row.start.unwrap_or(Span::ZERO),
            awaits: awaits.map_or(Some(None), |known| known.map(Some))?,
            raises: raises.into_iter().collect::<Option<_>>()?,
        })
    }

    fn ends(&self, pair: Token<'t>, found: &mut Diagnostics) -> Option<(Rank, Rank)> {
        let nodes = self.nodes?;
        let (src, dst) = pair.text.split_once("->")?;
        let mut node = |text| rank_below(nodes, "node", &Token { text, line: pair.line }, found);
        let (src, dst) = (node(src), node(dst));
        let ends = (src?, dst?);
        if ends.0 == ends.1 {
            found.error(pair.line, pair.text, "source equals destination");
        }
        Some(ends)
    }

    /// Index of a trigger.
    fn signal(&self, token: Token<'_>, found: &mut Diagnostics) -> Option<usize> {
        let id = token.number::<u64>("a trigger's id", found)?;
        let signal = self.by_id.get(&id).copied();
        if signal.is_none() {
            found.error(token.line, token.text, "no such trigger");
        }
        signal
    }
}

/// A connection whose nodes and triggers are known.
struct Connection<'t> {
    /// Where it is named in messages: its trigger, if it has one.
    at: Token<'t>,
    src: Rank,
    dst: Rank,
    bytes: u64,
    start: Span,
    awaits: Option<(SignalId, u32)>,
    raises: Vec<SignalId>,
}

impl Connection<'_> {
    fn add_to(&self, program: &mut Vec<Task>) {
        let mut after = Vec::new();
        if self.start > Span::ZERO {
            after.push(program.len() as u32);
            program.push(Task::new(Work::Delay(self.start), Vec::new()));
        }
        let put = Task::new(Work::Put { to: self.dst, bytes: self.bytes }, after);
        program.push(Task { awaits: self.awaits, raises: self.raises.clone(), ..put });
    }
}

/// Connections whose trigger is not activated often enough by those that do start.
fn report_what_never_starts(matrix: &Matrix<'_>, connections: &[Connection<'_>], found: &mut Diagnostics) {
    // Where something else is wrong, triggers that nobody activates are no news.
    if found.has_errors() {
        return;
    }
    let mut all = vec![0u32; matrix.triggers.len()];
    connections.iter().flat_map(|c| &c.raises).for_each(|s| all[*s as usize] += 1);
    for (signal, count, connection) in never_started(connections, all.len()) {
        let (id, activated) = (matrix.triggers[signal as usize].id, all[signal as usize]);
        let message = if activated < count {
            let times = |n: u32| counted(n as usize, "time");
            format!("never starts: trigger {id} is activated {}, {} needed", times(activated), times(count))
        } else {
            format!("never starts: what activates trigger {id} waits for this connection")
        };
        found.error(connection.at.line, connection.at.text, message);
    }
}

/// What is left after all that can start has ended, each with the activations it waits for.
fn never_started<'c, 't>(
    connections: &'c [Connection<'t>],
    signals: usize,
) -> impl Iterator<Item = (SignalId, u32, &'c Connection<'t>)> {
    let mut waiting: HashMap<(SignalId, u32), Vec<&Connection<'_>>> = HashMap::new();
    let mut started = Vec::new();
    for connection in connections {
        match connection.awaits {
            Some(awaits) => waiting.entry(awaits).or_default().push(connection),
            None => started.push(connection),
        }
    }
    let mut raised = vec![0; signals];
    while let Some(connection) = started.pop() {
        for &signal in &connection.raises {
            raised[signal as usize] += 1;
            started.extend(waiting.remove(&(signal, raised[signal as usize])).unwrap_or_default());
        }
    }
    let waits = |c: &'c Connection<'t>| c.awaits.map(|(signal, count)| (signal, count, c));
    connections.iter().filter_map(waits).filter(move |(signal, count, _)| raised[*signal as usize] < *count)
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use super::*;
    use crate::input::mistreat;

    /// A ring of two steps, and a barrier behind it.
    const RING: &str = "# two steps\nNodes 16\nConnections 7\nTriggers 4\n\
        0->1 id 1 start 0 size 1048576 send_done_trigger 1\n\
        1->2 id 2 start 2500 size 1048576 send_done_trigger 2\n\
        2->0 id 3 start 0.0 size 1048576 recv_done_trigger 3\n\
        1->2 id 4 trigger 1 size 1048576 send_done_trigger 4\n\
        2->0 id 5 trigger 2 size 1048576 send_done_trigger 4\n\
        0->1 trigger 3 send_done_trigger 4 size 1048576 id 6 prio 2\n\
        3->0 id 7 trigger 4 size 5000000000\n\
        trigger id 1 oneshot\ntrigger id 2 oneshot\ntrigger id 3 oneshot\ntrigger id 4 barrier count 3\n";

    fn faults(text: &str) -> Vec<String> {
        let mut found = Diagnostics::of("f");
        assert!(parse(text, &mut found).is_none(), "{text}");
        lines(&found)
    }

    #[test]
    fn connections_are_puts() {
        let mut found = Diagnostics::of("f");
        let job = parse(RING, &mut found).unwrap();
        assert!(found.all().is_empty(), "{found:?}");
        assert_eq!(job.description, "htsim connection matrix: 16 nodes, 7 connections, 4 triggers");
        assert_eq!(job.ranks(), 16);
        let tasks = run(job);
        let put = |to, bytes, awaits, raises: &[u32]| {
            let put = Task::new(Work::Put { to, bytes }, Vec::new());
            Task { awaits, raises: raises.to_vec(), ..put }
        };
        let step = 1_048_576;
        assert_eq!(tasks[0], [put(1, step, None, &[0]), put(1, step, Some((2, 1)), &[3])]);
        let delayed = Task { after: vec![0], ..put(2, step, None, &[1]) };
        let delay = Task::new(Work::Delay(Span(2_500)), Vec::new());
        assert_eq!(tasks[1], [delay, delayed, put(2, step, Some((0, 1)), &[3])]);
        assert_eq!(tasks[3], [put(0, 5_000_000_000, Some((3, 3)), &[])], "64 bits");
        assert!(tasks[4].is_empty());
    }

    #[test]
    fn a_multishot_starts_one_after_the_other() {
        let text = "Nodes 3\nConnections 4\nTriggers 1\n0->1 start 0 size 1 send_done_trigger 9\n\
            1->2 trigger 9 size 1 send_done_trigger 9\n1->0 trigger 9 size 1 recv_done_trigger 9\n\
            2->0 trigger 9 size 1\ntrigger id 9 multishot\n";
        let tasks = run(parse(text, &mut Diagnostics::of("f")).unwrap());
        let awaits: Vec<_> = tasks.iter().flatten().map(|t| t.awaits).collect();
        assert_eq!(awaits, [None, Some((0, 1)), Some((0, 2)), Some((0, 3))]);
    }

    #[test]
    fn every_fault_is_named() {
        let text = "Nodes 4\nConnections 9\nTriggers 1\nHello\n0->0 start 0 size 1\n0->4 start 0 size 1\n\
            0->1 start 0 size 0\n0->1 size 1\n0->1 start 0 trigger 1 size 1\n0->1 start 0\n\
            0->1 start x size 1 speed 3\n\
            0->1 trigger 7 size 1 size\ntrigger id 1 oneshot\ntrigger id 1 barrier\ntrigger 1\n";
        let either = "a connection has either a start or a trigger (found `0->1`)";
        let want = [
            "f:4: error: expected Nodes, Connections, Triggers, Failures, trigger, failure or a connection `a->b` \
             (found `Hello`)",
            "f:7: error: the connection has no bytes (found `0`)",
            &format!("f:8: error: {either}"),
            &format!("f:9: error: {either}"),
            "f:10: error: the connection has no size (found `0->1`)",
            "f:11: error: expected one of the keys id, start, trigger, size, send_done_trigger, recv_done_trigger, \
             prio, msg, addon (found `speed`)",
            "f:11: error: expected a number of ps, without the unit (found `x`)",
            "f:12: error: the key is there twice (found `size`)",
            "f:14: error: a barrier needs a count above 0 (found `barrier`)",
            "f:14: error: this trigger is there twice (found `1`)",
            "f:15: error: expected `trigger id T oneshot|multishot|barrier [count K]` (found `trigger`)",
            "f:2: error: 9 connections declared, 8 found (found `9`)",
            "f:3: error: 1 trigger declared, 2 found (found `1`)",
            "f:5: error: source equals destination (found `0->0`)",
            "f:6: error: no such node: there are 0 to 3 (found `4`)",
            "f:12: error: no such trigger (found `7`)",
        ];
        assert_eq!(faults(text), want);
        let undeclared = "f: error: 0 connections, but no line `Connections 0` declares them";
        assert_eq!(faults(""), ["f: error: expected a line `Nodes N` with 1 to 1048576 nodes", undeclared]);
        let too_many = "f:1: error: expected 1 to 1048576 ranks (found `4000000000`)";
        assert_eq!(faults("Nodes 4000000000\nConnections 0\n"), [too_many]);
        let undeclared = "f: error: 1 connection, but no line `Connections 1` declares them";
        assert_eq!(faults("Nodes 2\n0->1 start 0 size 1\n"), [undeclared]);
    }

    #[test]
    fn what_can_never_start_is_an_error() {
        let text = |last: &str| {
            format!(
                "Nodes 3\nConnections 3\nTriggers 2\n0->1 start 0 size 1 send_done_trigger 1\n\
                 1->2 trigger 2 size 1 send_done_trigger 2\n2->0 trigger 1 size 1\n{last}\ntrigger id 2 oneshot\n"
            )
        };
        let ring = "f:5: error: never starts: what activates trigger 2 waits for this connection (found `2`)";
        assert_eq!(faults(&text("trigger id 1 oneshot")), [ring]);
        let short = "f:6: error: never starts: trigger 1 is activated 1 time, 2 times needed (found `1`)";
        assert_eq!(faults(&text("trigger id 1 barrier count 2")), [ring, short]);
    }

    #[test]
    fn failures_are_given_otherwise() {
        let mut found = Diagnostics::of("f");
        let text =
            "Nodes 2\nConnections 1\nFailures 1\n0->1 start 0 size 1\nfailure switch_type TOR switch_id 0 link_id 1";
        assert!(parse(text, &mut found).is_some());
        let want = "f:5: warning: failures are not read: give them with --link-events (found `failure`)";
        assert_eq!(lines(&found), [want]);
    }

    #[test]
    fn no_text_is_too_broken() {
        mistreat(RING, |text| {
            parse(text, &mut Diagnostics::of("f"));
        });
    }
}

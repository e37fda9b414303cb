//! Schedules in the text form of GOAL, as LogGOPSim and ATLAHS compile it: `num_ranks N`, then a block `rank R { … }`
//! for each rank that does anything, with a statement a line.
//!
//! `[label:] calc NS [cpu C]`, `[label:] send BYTESb to RANK [tag T] [cpu C] [nic I]`, `[label:] recv BYTESb from
//! RANK|-1 [tag T|-1] [cpu C] [nic I]`, `a requires b` (a starts when b has ended), `a irequires b` (when b has
//! started). Comments are `//` and `/* */`. What the reference compiler rejects for its layout is read as well.
//!
//! A `calc` occupies the processor `cpu` (default 0). Sending and receiving occupy none, and NICs are those of the
//! fabric, so `cpu` and `nic` of a message mean nothing here. A message without a tag has tag 0. One of 0 bytes is sent
//! as one of 1 byte.

use super::{Pairs, bare_time, listed, number_of_ranks, rank_below};
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use crate::input::tokens::{Token, Tokens};
use crate::workload::graph::arrange;
use crate::workload::task::{Job, Rank, Task, TaskId, Work};
use std::collections::HashMap;
use std::mem;

/// Reads a schedule; what is wrong goes to `found`. `None` if anything is.
pub fn parse(text: &str, found: &mut Diagnostics) -> Option<Job> {
    let text = simplified(text, found);
    let mut tokens = Tokens::new(&text);
    let mut schedule = Schedule::declared(&mut tokens, found)?;
    let mut last_line = 0;
    while let Some(line) = tokens.next_line() {
        last_line = line[0].line;
        let mut rest = &line[..];
        while !rest.is_empty() {
            rest = schedule.read(rest, found);
        }
    }
    if schedule.block.is_some() {
        found.error(last_line, "", "the file ends within a block: `}` is missing");
    }
    if let Some(empty) = schedule.first_empty {
        let message = "a message of 0 bytes is sent as one of 1 byte; this is the first";
        found.warning(empty.line, empty.text, message);
    }
    if found.has_errors() {
        return None;
    }
    let tasks = schedule.programs.iter().flatten().map(Vec::len).sum();
    let ranks = counted(schedule.programs.len(), "rank");
    let description = format!("GOAL schedule: {ranks}, {}", counted(tasks, "operation"));
    let programs = listed(schedule.programs.into_iter().map(Option::unwrap_or_default));
    Some(Job { description, groups: Vec::new(), programs })
}

/// The text without comments, and with blanks around braces and colons. Lines stay where they are.
fn simplified(text: &str, found: &mut Diagnostics) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('/') {
        push_spaced(&rest[..at], &mut out);
        let comment = &rest[at..];
        let length = comment_length(comment);
        if length.is_none() {
            let line = 1 + out.matches('\n').count();
            found.error(line, "/*", "the comment does not end");
        }
        let length = length.unwrap_or(comment.len());
        let (comment, after) = comment.split_at(length);
        match comment {
            "/" => out.push('/'),
            _ => out.extend(comment.chars().map(|c| if matches!(c, '\n' | '\r') { c } else { ' ' })),
        }
        rest = after;
    }
    push_spaced(rest, &mut out);
    out
}

/// Bytes of the comment at the beginning of a text; 1 if a slash begins it that is no comment, `None` if it does not
/// end.
fn comment_length(text: &str) -> Option<usize> {
    if text.starts_with("//") {
        Some(text.find(['\n', '\r']).unwrap_or(text.len()))
    } else if let Some(inner) = text.strip_prefix("/*") {
        inner.find("*/").map(|end| end + 4)
    } else {
        Some(1)
    }
}

fn push_spaced(text: &str, out: &mut String) {
    for c in text.chars() {
        if matches!(c, '{' | '}' | ':') {
            out.extend([' ', c, ' ']);
        } else {
            out.push(c);
        }
    }
}

/// What was read so far.
struct Schedule<'t> {
    /// By rank; `None`: no block of it was met.
    programs: Vec<Option<Vec<Task>>>,
    block: Option<Block<'t>>,
    /// The size of the first message without bytes.
    first_empty: Option<Token<'t>>,
}

/// The block of a rank.
struct Block<'t> {
    /// `None` if it is not a rank of the job, or one that had a block: only faults are read from it.
    rank: Option<Rank>,
    /// Whether `{` was met.
    is_open: bool,
    operations: Vec<Task>,
    /// Where each operation stands.
    places: Vec<Token<'t>>,
    labels: HashMap<&'t str, TaskId>,
    rules: Vec<Rule<'t>>,
}

/// `first requires second`.
struct Rule<'t> {
    first: Token<'t>,
    second: Token<'t>,
    waits_for_end: bool,
}

impl<'t> Schedule<'t> {
    /// Reads the declaration that a file begins with.
    fn declared(tokens: &mut Tokens<'t>, found: &mut Diagnostics) -> Option<Schedule<'t>> {
        let first = tokens.next();
        if first.is_none_or(|t| t.text != "num_ranks") {
            let (line, text) = first.map_or((0, ""), |t| (t.line, t.text));
            found.error(line, text, "the file must begin with `num_ranks N`");
            return None;
        }
        let Some(number) = tokens.next() else {
            found.error(0, "", "the number of ranks is missing");
            return None;
        };
        let ranks = number_of_ranks(&number, found)?;
        Some(Schedule { programs: vec![None; ranks as usize], block: None, first_empty: None })
    }

    fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }

    /// Reads a part of a line; returns what is behind it.
    fn read<'l>(&mut self, line: &'l [Token<'t>], found: &mut Diagnostics) -> &'l [Token<'t>] {
        let Some(block) = &mut self.block else { return self.open(line, found) };
        match line[0].text {
            "{" if !block.is_open => {
                block.is_open = true;
                &line[1..]
            }
            "}" => {
                self.close(found);
                &line[1..]
            }
            _ => {
                if !mem::replace(&mut block.is_open, true) {
                    found.error(line[0].line, line[0].text, "expected `{`");
                }
                let end = line.iter().position(|t| t.text == "}").unwrap_or(line.len());
                self.statement(&line[..end], found);
                &line[end..]
            }
        }
    }

    fn open<'l>(&mut self, line: &'l [Token<'t>], found: &mut Diagnostics) -> &'l [Token<'t>] {
        let [Token { text: "rank", .. }, number, rest @ ..] = line else {
            found.error(line[0].line, line[0].text, "expected a block `rank R {`");
            return &[];
        };
        let rank = rank_below(self.ranks(), "rank", number, found);
        let is_second = rank.is_some_and(|r| self.programs[r as usize].is_some());
        if is_second {
            found.error(number.line, number.text, "this rank has a block already");
        }
        self.block = Some(Block::new(rank.filter(|_| !is_second)));
        rest
    }

    fn close(&mut self, found: &mut Diagnostics) {
        let Some(block) = self.block.take() else { return };
        let rank = block.rank;
        let tasks = block.finish(found);
        if let Some(rank) = rank {
            self.programs[rank as usize] = Some(tasks);
        }
    }

    fn statement(&mut self, tokens: &[Token<'t>], found: &mut Diagnostics) {
        let (ranks, Some(block)) = (self.programs.len() as u32, &mut self.block) else { return };
        let (label, rest) = match tokens {
            [first, verb, second] if ["requires", "irequires"].contains(&verb.text) => {
                let waits_for_end = verb.text == "requires";
                block.rules.push(Rule { first: *first, second: *second, waits_for_end });
                return;
            }
            [label, Token { text: ":", .. }, rest @ ..] => (Some(*label), rest),
            _ => (None, tokens),
        };
        if let Some(label) = label
            && block.labels.insert(label.text, block.operations.len() as TaskId).is_some()
        {
            found.error(label.line, label.text, "this label is there twice");
        }
        let work = operation(rest, ranks, block.rank, &mut self.first_empty, found);
        // One that is wrong is kept, so that its label is not reported as missing, too.
        block.operations.push(Task::new(work.unwrap_or(Work::Nothing), Vec::new()));
        block.places.push(label.unwrap_or(tokens[0]));
    }
}

impl<'t> Block<'t> {
    fn new(rank: Option<Rank>) -> Block<'t> {
        let (operations, places, labels, rules) = Default::default();
        Block { rank, is_open: false, operations, places, labels, rules }
    }

    /// The operations in an order in which they can be done.
    fn finish(mut self, found: &mut Diagnostics) -> Vec<Task> {
        for rule in mem::take(&mut self.rules) {
            let (first, second) = (self.labelled(rule.first, found), self.labelled(rule.second, found));
            let (Some(first), Some(second)) = (first, second) else { continue };
            let task = &mut self.operations[first as usize];
            if rule.waits_for_end { &mut task.after } else { &mut task.with }.push(second);
        }
        arrange(self.operations).unwrap_or_else(|cycle| {
            let names = cycle.iter().map(|id| self.places[*id as usize]);
            let names: Vec<String> = names.map(|t| format!("{} (line {})", t.text, t.line)).collect();
            let first = self.places[cycle[0] as usize];
            let rank = self.rank.map_or(String::new(), |r| format!("rank {r}: "));
            let message = format!("{rank}{}", super::waiting_for_one_another(&names));
            found.error(first.line, first.text, message);
            Vec::new()
        })
    }

    fn labelled(&self, label: Token<'t>, found: &mut Diagnostics) -> Option<TaskId> {
        let id = self.labels.get(label.text).copied();
        if id.is_none() {
            found.error(label.line, label.text, "no such label in this block");
        }
        id
    }
}

/// An operation of a rank, which is one of so many. The first message without bytes goes to `first_empty`.
fn operation<'t>(
    tokens: &[Token<'t>],
    ranks: u32,
    own: Option<Rank>,
    first_empty: &mut Option<Token<'t>>,
    found: &mut Diagnostics,
) -> Option<Work> {
    match tokens {
        [Token { text: "calc", .. }, time, options @ ..] => {
            let options = Pairs::read(options, &["cpu"], found);
            let processor = options.get("cpu").map_or(Some(0), |t| t.number("cpu", found));
            Some(Work::Compute { time: bare_time(time, "ns", found)?, processor: processor? })
        }
        [Token { text: "send", .. }, size, Token { text: "to", .. }, to, options @ ..] => {
            let (bytes, to, tag) = (bytes(size, found), peer(to, ranks, own, found), tag(options, found));
            if bytes == Some(0) {
                first_empty.get_or_insert(*size);
            }
            Some(Work::Send { to: to?, bytes: bytes?.max(1), tag: tag?.number("a tag to send with", found)? })
        }
        [Token { text: "recv", .. }, size, Token { text: "from", .. }, from, options @ ..] => {
            bytes(size, found);
            let from = any_or(from, |token| peer(token, ranks, own, found));
            let tag = tag(options, found).and_then(|t| any_or(&t, |token| token.number("a tag", found)));
            Some(Work::Recv { from: from?, tag: tag? })
        }
        _ => {
            let token = tokens.first()?;
            let message = "expected `calc NS`, `send BYTESb to RANK`, `recv BYTESb from RANK`, `a requires b` or \
                `a irequires b`";
            found.error(token.line, token.text, message);
            None
        }
    }
}

/// `None` of the inner kind for `-1`: any.
fn any_or<T>(token: &Token<'_>, mut read: impl FnMut(&Token<'_>) -> Option<T>) -> Option<Option<T>> {
    if token.text == "-1" { Some(None) } else { read(token).map(Some) }
}

fn bytes(token: &Token<'_>, found: &mut Diagnostics) -> Option<u64> {
    let number = |text: &str| text.strip_suffix('b').unwrap_or(text).parse().ok();
    token.parse(|text| number(text).ok_or_else(|| "a size is a whole number and `b`".into()), found)
}

fn peer(token: &Token<'_>, ranks: u32, own: Option<Rank>, found: &mut Diagnostics) -> Option<Rank> {
    let peer = rank_below(ranks, "rank", token, found)?;
    if Some(peer) == own {
        found.error(token.line, token.text, "a rank has no messages with itself");
    }
    Some(peer)
}

/// The tag of a message, and a check of the other options.
fn tag<'t>(options: &[Token<'t>], found: &mut Diagnostics) -> Option<Token<'t>> {
    let options = Pairs::read(options, &["tag", "cpu", "nic"], found);
    for key in ["cpu", "nic"] {
        options.number::<u32>(key, found);
    }
    options.get("tag").or(Some(Token { text: "0", line: 0 }))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use super::*;
    use crate::input::mistreat;
    use wormhole_kernel::Span;

    const EXAMPLE: &str = "/* three\n ranks */ num_ranks 4\nrank 0 {\n// labels\n\tc1 irequires r0 // behind\n\
        s0 requires c0\nc0: calc 1500\ns0: send 1048576b to 1 tag 0 cpu 0 nic 0\n r0: recv 5000000000b from 2\n\
        s1: send 1048576b to 1 tag 1\ns1 requires r0\nc1: calc 200 cpu 1\n}\n\
        rank 1 {\nr0: recv 1048576b from 0 tag 0\nr1 :recv 8b from -1 tag -1\n}\nrank 2\n{ send 0b to 0 }\n";

    fn faults(text: &str) -> Vec<String> {
        let mut found = Diagnostics::of("f");
        assert!(parse(text, &mut found).is_none(), "{text}");
        lines(&found)
    }

    #[test]
    fn blocks_are_programs() {
        let mut found = Diagnostics::of("f");
        let job = parse(EXAMPLE, &mut found).unwrap();
        let empty = "f:19: warning: a message of 0 bytes is sent as one of 1 byte; this is the first (found `0b`)";
        assert_eq!(lines(&found), [empty]);
        assert_eq!(job.description, "GOAL schedule: 4 ranks, 8 operations");
        let tasks = run(job);
        let send = |to, bytes, tag, after: &[u32]| Task::new(Work::Send { to, bytes, tag }, after.to_vec());
        let recv = |from, tag| Task::new(Work::Recv { from, tag }, Vec::new());
        let calc = |ns, processor| Task::new(Work::Compute { time: Span::from_ns(ns), processor }, Vec::new());
        let zero = [
            calc(1_500, 0),
            send(1, 1_048_576, 0, &[0]),
            recv(Some(2), Some(0)),
            send(1, 1_048_576, 1, &[2]),
            Task { with: vec![2], ..calc(200, 1) },
        ];
        assert_eq!(tasks[0], zero);
        assert_eq!(tasks[1], [recv(Some(0), Some(0)), recv(None, None)]);
        assert_eq!(tasks[2], [send(0, 1, 0, &[])]);
        assert!(tasks[3].is_empty(), "a rank without a block");
    }

    #[test]
    fn forward_references_are_put_in_order() {
        let text = "num_ranks 1\nrank 0 {\na: calc 1\nb: calc 2\na requires b\n}\n";
        let tasks = run(parse(text, &mut Diagnostics::of("f")).unwrap());
        assert_eq!(tasks[0][0].work, Work::Compute { time: Span::from_ns(2), processor: 0 });
        assert_eq!(tasks[0][1].after, [0]);
    }

    #[test]
    fn every_fault_is_named() {
        let text = "num_ranks 2\nrank 0 {\na: calc 5us\na: calc 1 nic 0\na requires b\nb jumps\nsend 1kb to 2\n\
            send 1b to 0\nrecv 1b from x tag 1.5\nsend 1b to 1 tag -1\n}\nrank 0 {\n}\nrank 2 {\n}\nhello\n\
            rank 1\ncalc 1\n";
        let statement = "expected `calc NS`, `send BYTESb to RANK`, `recv BYTESb from RANK`, `a requires b` or \
            `a irequires b`";
        let want = [
            "f:3: error: expected a number of ns, without the unit (found `5us`)",
            "f:4: error: this label is there twice (found `a`)",
            "f:4: error: expected one of the keys cpu (found `nic`)",
            &format!("f:6: error: {statement} (found `b`)"),
            "f:7: error: a size is a whole number and `b` (found `1kb`)",
            "f:7: error: no such rank: there are 0 to 1 (found `2`)",
            "f:8: error: a rank has no messages with itself (found `0`)",
            "f:9: error: no such rank: there are 0 to 1 (found `x`)",
            "f:9: error: a tag must be a whole number (found `1.5`)",
            "f:10: error: a tag to send with must be a whole number (found `-1`)",
            "f:5: error: no such label in this block (found `b`)",
            "f:12: error: this rank has a block already (found `0`)",
            "f:14: error: no such rank: there are 0 to 1 (found `2`)",
            "f:16: error: expected a block `rank R {` (found `hello`)",
            "f:18: error: expected `{` (found `calc`)",
            "f:18: error: the file ends within a block: `}` is missing",
        ];
        assert_eq!(faults(text), want);
        assert_eq!(faults(""), ["f: error: the file must begin with `num_ranks N`"]);
        assert_eq!(faults("num_ranks"), ["f: error: the number of ranks is missing"]);
        assert!(faults("num_ranks 9999999999")[0].starts_with("f:1: error: expected 1 to 1048576 ranks"));
        assert_eq!(faults("num_ranks 1\n/* no end"), ["f:2: error: the comment does not end (found `/*`)"]);
    }

    #[test]
    fn cycles_name_their_labels() {
        let text =
            "num_ranks 8\nrank 7 {\na: calc 1\nb: calc 1\nc: calc 1\na requires b\nb irequires c\nc requires a\n}\n";
        let want = "f:3: error: rank 7: these wait for one another: a (line 3), b (line 4), c (line 5) (found `a`)";
        assert_eq!(faults(text), [want]);
    }

    #[test]
    fn no_text_is_too_broken() {
        mistreat(EXAMPLE, |text| {
            parse(text, &mut Diagnostics::of("f"));
        });
    }
}

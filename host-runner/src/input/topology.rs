//! Topologies in the text dialect of the HPCC simulator and its relatives.
//!
//! A stream of tokens. The number of fields on the first line tells the dialect: three (HPCC: `nodes switches links`),
//! four (PowerTCP: `nodes switches tors links`) or six (SimAI: `nodes gpus_per_server nvswitches switches links
//! GPU_TYPE`). Then the ids of the switches (SimAI: NVSwitches first), then a row per link: `a b rate delay loss`.
//! Line ends matter only for finding faults. What follows the counted rows is not read.

use super::counted;
use super::diagnostics::Diagnostics;
use super::rows::{Table, read_rows, warn_of_more_rows};
use super::tokens::{Token, Tokens};
use super::units;
use std::io::{self, Write};
use wormhole_kernel::{BitRate, LinkSpec, NodeId, NodeKind, Span};
use wormhole_models::loss::loss_fraction;

/// More nodes than this are taken for a mistake; the addresses of `fct.txt` have room for no more.
const MAX_NODES: usize = 1 << 24;

/// Which header the file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Three fields.
    Hpcc,
    /// Four fields.
    PowerTcp,
    /// Six fields.
    SimAi,
}

impl Dialect {
    const ALL: [Dialect; 3] = [Dialect::Hpcc, Dialect::PowerTcp, Dialect::SimAi];

    fn name(self) -> &'static str {
        match self {
            Dialect::Hpcc => "HPCC",
            Dialect::PowerTcp => "PowerTCP",
            Dialect::SimAi => "SimAI",
        }
    }

    /// The header.
    fn fields(self) -> &'static [&'static str] {
        match self {
            Dialect::Hpcc => &["nodes", "switches", "links"],
            Dialect::PowerTcp => &["nodes", "switches", "tors", "links"],
            Dialect::SimAi => &["nodes", "gpus_per_server", "nvswitches", "switches", "links", "GPU_TYPE"],
        }
    }
}

/// A fabric as described.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    /// Which header the file has.
    pub dialect: Dialect,
    /// What each node is.
    pub nodes: Vec<NodeKind>,
    /// The links, in order.
    pub links: Vec<LinkSpec>,
    /// SimAI: GPUs of a server.
    pub gpus_per_server: Option<u32>,
    /// SimAI: `H100` and the like, as the file has it.
    pub gpu_type: Option<String>,
}

impl Topology {
    /// Reads a topology; what is wrong with it goes to `found`. `None` if there is nothing to go on with.
    pub fn parse(text: &str, found: &mut Diagnostics) -> Option<Topology> {
        let mut tokens = Tokens::new(text);
        let header = Header::read(&mut tokens, found)?;
        let nodes = node_kinds(&header, &mut tokens, found);
        let table =
            Table { noun: "link", fields: "a b rate delay loss", declared: header.links, header: header.links_at };
        let links = read_rows(&table, &mut tokens, found, |_, row, found| link(row, nodes.len(), found));
        warn_of_more_rows(&table, tokens, found, looks_like_link);
        let Header { dialect, gpus_per_server, gpu_type, .. } = header;
        Some(Topology { dialect, nodes, links, gpus_per_server, gpu_type })
    }

    /// One line for people: what was read.
    pub fn describe(&self) -> String {
        let simai = self.dialect == Dialect::SimAi;
        let mut parts = vec![counted(self.count(NodeKind::Host), if simai { "GPU" } else { "host" })];
        if simai {
            parts.push(counted(self.count(NodeKind::NvSwitch), "NVSwitch"));
        }
        parts.push(counted(self.count(NodeKind::Switch), "switch"));
        parts.push(counted(self.links.len(), "link"));
        format!("{} topology: {}", self.dialect.name(), parts.join(", "))
    }

    /// The hosts, by id.
    pub fn hosts(&self) -> Vec<NodeId> {
        (0..).map(NodeId).zip(&self.nodes).filter(|(_, kind)| **kind == NodeKind::Host).map(|(id, _)| id).collect()
    }

    fn count(&self, kind: NodeKind) -> usize {
        self.nodes.iter().filter(|k| **k == kind).count()
    }
}

/// Writes a topology: in the dialect of SimAI if it is one of these, else in that of HPCC, where an NVSwitch is a
/// switch. Reading it gives the same nodes and links; a loss that no decimal means exactly is written to the nearest.
///
/// # Errors
/// Those of `out`.
pub fn write_topology(topology: &Topology, out: &mut impl Write) -> io::Result<()> {
    let ids = |kind: NodeKind| {
        let of_kind = topology.nodes.iter().enumerate().filter(move |(_, k)| **k == kind);
        of_kind.map(|(id, _)| id.to_string()).collect::<Vec<_>>()
    };
    let (nvswitches, switches) = (ids(NodeKind::NvSwitch), ids(NodeKind::Switch));
    let (nodes, links) = (topology.nodes.len(), topology.links.len());
    if topology.dialect == Dialect::SimAi {
        let per_server = topology.gpus_per_server.unwrap_or(1);
        let gpu = topology.gpu_type.as_deref().unwrap_or("NONE");
        writeln!(out, "{nodes} {per_server} {} {} {links} {gpu}", nvswitches.len(), switches.len())?;
    } else {
        writeln!(out, "{nodes} {} {links}", nvswitches.len() + switches.len())?;
    }
    writeln!(out, "{}", [nvswitches, switches].concat().join(" "))?;
    topology.links.iter().try_for_each(|link| {
        let (rate, delay) = (units::format_rate(link.rate.0), units::format_time(link.delay.0));
        writeln!(out, "{} {} {rate} {delay} {}", link.a.0, link.b.0, probability_of(link.loss))
    })
}

/// The shortest decimal for a fraction of 2^64, among those that mean it exactly if there are any.
fn probability_of(loss: u64) -> f64 {
    let exact = loss as f64 / 2f64.powi(64);
    let rounded = (0..17).filter_map(|digits| format!("{exact:.digits$e}").parse::<f64>().ok());
    rounded.into_iter().find(|p| loss_fraction(*p) == loss).unwrap_or(exact)
}

/// The first line.
struct Header<'t> {
    dialect: Dialect,
    nodes: usize,
    /// 0 in the other dialects.
    nvswitches: usize,
    switches: usize,
    switches_at: Token<'t>,
    links: usize,
    links_at: Token<'t>,
    gpus_per_server: Option<u32>,
    gpu_type: Option<String>,
}

impl<'t> Header<'t> {
    fn read(tokens: &mut Tokens<'t>, found: &mut Diagnostics) -> Option<Header<'t>> {
        let dialect = dialect(tokens, found)?;
        let fields: Vec<Token<'t>> = tokens.take(dialect.fields().len()).collect();
        let at = |name: &str| dialect.fields().iter().position(|n| *n == name).and_then(|i| fields.get(i)).copied();
        let mut count = |name: &str| at(name).map(|t| t.number::<usize>(name, found));
        let (nodes, switches, links) = (count("nodes")?, count("switches")?, count("links")?);
        // A dialect that does not have this field has none of them; the number of `tors` is not used.
        let nvswitches = count("nvswitches").unwrap_or(Some(0));
        let _ = count("tors");
        let gpus_per_server = at("gpus_per_server").and_then(|t| t.parse(positive, found));
        let header = Header {
            dialect,
            nodes: nodes?,
            nvswitches: nvswitches?,
            switches: switches?,
            switches_at: at("switches")?,
            links: links?,
            links_at: at("links")?,
            gpus_per_server,
            gpu_type: at("GPU_TYPE").map(|t| t.text.to_owned()),
        };
        header.is_possible(fields[0], found).then_some(header)
    }

    fn is_possible(&self, first: Token<'t>, found: &mut Diagnostics) -> bool {
        let line = first.line;
        if !(1..=MAX_NODES).contains(&self.nodes) {
            found.error(line, first.text, format!("a topology has 1 to {MAX_NODES} nodes"));
            return false;
        }
        let too_many = self.switches.saturating_add(self.nvswitches) > self.nodes;
        if too_many {
            found.error(line, self.switches_at.text, format!("more switches than the {} nodes there are", self.nodes));
        }
        !too_many
    }
}

fn positive(text: &str) -> Result<u32, String> {
    text.parse().ok().filter(|n| *n > 0).ok_or_else(|| "gpus_per_server must be a whole number above 0".into())
}

fn dialect(tokens: &Tokens<'_>, found: &mut Diagnostics) -> Option<Dialect> {
    let Some(first) = tokens.peek() else {
        found.error(0, "", "the file is empty: it must begin with the numbers of nodes, switches and links");
        return None;
    };
    let on_line = tokens.ahead_on(first.line).count();
    let by_header = || Dialect::ALL.into_iter().find(|d| d.fields().len() == on_line);
    let dialect = by_header().or_else(|| by_length(tokens));
    if dialect.is_none() {
        let known = Dialect::ALL.map(|d| format!("{} ({})", d.fields().len(), d.fields().join(" ")));
        let message = format!("the first line must have {} fields, but has {on_line}", known.join(" or "));
        found.error(first.line, first.text, message);
    }
    dialect
}

/// The dialect that accounts for every token of a file, if its lines do not tell.
fn by_length(tokens: &Tokens<'_>) -> Option<Dialect> {
    let length = tokens.clone().count();
    let with_header = |dialect: &Dialect| dialect.fields().len() <= length;
    Dialect::ALL.into_iter().filter(with_header).find(|dialect| {
        let header = dialect.fields().iter().zip(tokens.clone());
        let expected = header.map(|(name, token)| {
            let count: usize = token.text.parse().unwrap_or(usize::MAX);
            match *name {
                "nvswitches" | "switches" => count.saturating_add(1),
                "links" => count.saturating_mul(5).saturating_add(1),
                _ => 1,
            }
        });
        expected.fold(0, usize::saturating_add) == length
    })
}

/// Reads the ids of switches. All other nodes are hosts.
fn node_kinds(header: &Header<'_>, tokens: &mut Tokens<'_>, found: &mut Diagnostics) -> Vec<NodeKind> {
    let mut kinds = vec![NodeKind::Host; header.nodes];
    let declared = header.nvswitches + header.switches;
    let (mut count, mut line) = (0, header.links_at.line);
    while count < declared {
        let Some(token) = tokens.peek() else { break };
        // Ids may wrap over lines, but not into the links.
        if token.line != line && looks_like_link(&tokens.ahead_on(token.line).take(6).collect::<Vec<_>>()) {
            break;
        }
        tokens.next();
        line = token.line;
        let kind = if count < header.nvswitches { NodeKind::NvSwitch } else { NodeKind::Switch };
        set_kind(&mut kinds, &token, kind, found);
        count += 1;
    }
    let declaration = counted(declared, "switch id") + " declared";
    if count < declared {
        found.error(header.switches_at.line, header.switches_at.text, format!("{declaration}, {count} found"));
    } else {
        skip_more_ids(&declaration, header.links_at.line, line, tokens, found);
    }
    kinds
}

fn set_kind(kinds: &mut [NodeKind], token: &Token<'_>, kind: NodeKind, found: &mut Diagnostics) {
    let Some(id) = node(token, kinds.len(), found) else { return };
    if kinds[id as usize] != NodeKind::Host {
        found.error(token.line, token.text, "this switch is listed twice");
    }
    kinds[id as usize] = kind;
}

/// Numbers only, behind the last id or where there should be none, are ids too many: no link has only digits.
fn skip_more_ids(declaration: &str, header: usize, last: usize, tokens: &mut Tokens<'_>, found: &mut Diagnostics) {
    let Some(first) = tokens.peek() else { return };
    let with_ids = first.line == last || last == header && tokens.ahead_on(first.line).count() < 5;
    if first.line != header && with_ids && tokens.ahead_on(first.line).all(|t| t.is_digits()) {
        let more = tokens.ahead_on(first.line).count();
        let verb = if more == 1 { "follows" } else { "follow" };
        found.error(first.line, first.text, format!("{declaration}, but {more} more {verb}"));
        tokens.skip_line(first.line);
    }
}

/// A node id below `nodes`.
fn node(token: &Token<'_>, nodes: usize, found: &mut Diagnostics) -> Option<u32> {
    let id = token.text.parse::<u32>().ok().filter(|&id| (id as usize) < nodes);
    if id.is_none() {
        found.error(token.line, token.text, format!("no such node: nodes are 0 to {}", nodes - 1));
    }
    id
}

fn link(row: &[Token<'_>; 5], nodes: usize, found: &mut Diagnostics) -> Option<LinkSpec> {
    let [a, b, rate, delay, loss] = row;
    let (na, nb) = (node(a, nodes, found), node(b, nodes, found));
    let is_loop = na.is_some() && na == nb;
    if is_loop {
        found.error(b.line, b.text, "a link needs two different ends");
    }
    let rate = rate.parse(units::rate, found);
    let delay = delay.parse(units::time, found);
    let loss = loss.parse(units::probability, found);
    (!is_loop).then_some(LinkSpec {
        a: NodeId(na?),
        b: NodeId(nb?),
        rate: BitRate(rate?),
        delay: Span(delay?),
        loss: loss_fraction(loss?),
    })
}

/// Whether a line can only be a link: five values of the right kinds, and not all of them could be ids.
fn looks_like_link(line: &[Token<'_>]) -> bool {
    let [a, b, rate, delay, loss] = line else { return false };
    a.is_digits()
        && b.is_digits()
        && !(rate.is_digits() && delay.is_digits())
        && units::rate(rate.text).is_ok()
        && units::time(delay.text).is_ok()
        && units::probability(loss.text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::mistreat;
    use super::*;

    fn parse(text: &str) -> (Option<Topology>, Vec<String>) {
        let mut found = Diagnostics::of("t");
        let topology = Topology::parse(text, &mut found);
        (topology, found.all().iter().map(|d| d.to_string()).collect())
    }

    const SMALL: &str = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 25Gbps 0.001ms 0.5\n";
    const SIMAI: &str = "5 3 1 1 2 H100\n3 4 \n0 3 2880Gbps 0.000025ms 0\n0 4 400Gbps 0.0005ms 0.001";

    #[test]
    fn three_headers_are_told_apart() {
        let (small, found) = parse(SMALL);
        let small = small.unwrap();
        assert!(found.is_empty(), "{found:?}");
        assert_eq!((small.dialect, small.links[1].rate), (Dialect::Hpcc, BitRate::from_gbps(25)));
        assert_eq!((small.links[1].loss, small.gpu_type), (1 << 63, None));
        let (tors, _) = parse("3 1 1 2\n2\n0 2 25000000000.0 1us 0\n1 2 1Gbps 1us 0");
        let tors = tors.unwrap();
        assert_eq!(tors.describe(), "PowerTCP topology: 2 hosts, 1 switch, 2 links");
        assert_eq!(tors.dialect, Dialect::PowerTcp);
        let (simai, found) = parse(SIMAI);
        assert_eq!(found, Vec::<String>::new());
        let simai = simai.unwrap();
        assert_eq!(simai.describe(), "SimAI topology: 3 GPUs, 1 NVSwitch, 1 switch, 2 links");
        assert_eq!((simai.gpus_per_server, simai.nodes[3]), (Some(3), NodeKind::NvSwitch));
        assert_eq!(simai.gpu_type.as_deref(), Some("H100"));
    }

    #[test]
    fn white_space_and_prose_do_not_matter() {
        let text =
            "3 1 2\r\n2 \r\n\r\n0\t2\t100Gbps\t3.33us\t0\n1 2\n100Gbps 3.33us 0\n\nlinks of 3.33us, see the wiki";
        let (topology, found) = parse(text);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(topology.unwrap().links[0].delay, Span(3_330_000));
        for text in [
            "2 0 1\n\n0 1 400Gbps 25ns 0\n",
            "2 0 1\n0 1 1000000000 0 0\n",
            "3 1 2 2 0 2 1Gbps 1us 0 1 2 1Gbps 1us 0",
            "4 2 2\n2\n3\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0 note\nd\u{fffd}lai",
            "\u{feff}3 1 2\r2\r0 2 1Gbps 1us 0\r1 2 1Gbps 1us 0",
        ] {
            assert_eq!(parse(text).1, Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn every_fault_is_named() {
        let (_, found) = parse("3 1 3\n2\n0 9 100Gbps 1us 0\n1 1 100G 1lightyear 2\n");
        let want = [
            "t:3: error: no such node: nodes are 0 to 2 (found `9`)",
            "t:4: error: a link needs two different ends (found `1`)",
            "t:4: error: a rate needs one of the units bps, kbps, Mbps, Gbps, Tbps (or b/s) (found `100G`)",
            "t:4: error: a time needs one of the units s, ms, us, ns, ps (found `1lightyear`)",
            "t:4: error: a probability lies between 0 and 1 (found `2`)",
            "t:1: error: 3 links declared, 2 found (found `3`)",
        ];
        assert_eq!(found, want);
        assert!(parse("3 1 1\n2\n0 2 1Gbps").1[0].contains("this line has 3"));
        assert!(parse("").1[0].contains("empty"));
        let (topology, found) = parse("9 1\n2\n0 2 1Gbps 1us 0\n");
        assert!(topology.is_none() && found[0].contains("but has 2"), "{found:?}");
        // As long as two fields of a header are, which is no reason to take them for one.
        let (topology, found) = parse("7 2H100");
        assert!(topology.is_none() && found[0].contains("but has 2"), "{found:?}");
    }

    #[test]
    fn a_bad_row_does_not_shift_the_next() {
        let (topology, found) = parse("4 1 3\n3\n0 3 1Gbps 1us\n1 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n");
        let message = "a link has 5 fields (a b rate delay loss), but this line has 4";
        assert_eq!(found, [format!("t:3: error: {message} (found `0`)")]);
        assert_eq!(topology.unwrap().links.len(), 2);
        let (topology, found) = parse("4 1 3\n3\n0 3 1Gbps 1us 0 0\n1 3 1Gbps 1us 0\n2 3 1Gbps 1us 0\n");
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(topology.unwrap().links.len(), 3);
    }

    #[test]
    fn links_that_are_not_counted_are_pointed_out() {
        let more = "0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0\n";
        let want = "warning: 1 link declared, but 1 more follows and is not read";
        assert_eq!(parse(&format!("3 1 1\n2\n{more}")).1, [format!("t:4: {want} (found `1`)")]);
        let (_, found) = parse(&format!("3 1 1\n2\n0 2 1Gbps 1us 0\nolder links:\n{more}"));
        assert_eq!(found, ["t:5: warning: 1 link declared, but 2 more follow and are not read (found `0`)"]);
    }

    #[test]
    fn switch_ids_must_match() {
        let found = |start: &str| parse(&format!("{start}\n0 3 1Gbps 1us 0\n1 2 1Gbps 1us 0\n")).1;
        assert_eq!(found("4 2 2\n2"), ["t:1: error: 2 switch ids declared, 1 found (found `2`)"]);
        assert_eq!(found("4 2 2\n"), ["t:1: error: 2 switch ids declared, 0 found (found `2`)"]);
        assert_eq!(found("4 1 2\n2 3"), ["t:2: error: 1 switch id declared, but 1 more follows (found `3`)"]);
        assert_eq!(found("4 0 2\n2 3"), ["t:2: error: 0 switch ids declared, but 2 more follow (found `2`)"]);
        assert_eq!(found("4 2 2\n2 2"), ["t:2: error: this switch is listed twice (found `2`)"]);
        assert_eq!(found("4 2 2\n2 4"), ["t:2: error: no such node: nodes are 0 to 3 (found `4`)"]);
        assert_eq!(found("4 2 2\n2 x").len(), 1);
    }

    #[test]
    fn impossible_headers_are_refused() {
        for text in [
            "4000000000 1 1\n2\n",
            "0 0 0\n",
            "x 1 2\n2\n",
            "3 -1 2\n2\n",
            "3 4 2\n2\n",
            "3 18446744073709551615 18446744073709551615\n2\n",
            "3 1 99999999999999999999\n2\n",
        ] {
            let (topology, found) = parse(text);
            assert!(topology.is_none() && found.len() == 1, "{text}: {found:?}");
        }
        let (_, found) = parse(&SIMAI.replacen("5 3", "5 0", 1));
        assert_eq!(found, ["t:1: error: gpus_per_server must be a whole number above 0 (found `0`)"]);
        let (topology, _) = parse("3 1 18446744073709551615\n2\n0 2 1Gbps 1us 0\n");
        assert!(topology.unwrap().links.capacity() < 100);
    }

    #[test]
    fn what_is_written_is_read_back() {
        let losses = "2 0 5\n\n0 1 1500Mbps 3.3333us 0.001\n0 1 1bps 1ps 1\n0 1 9Tbps 0 1e-6\n0 1 1Gbps 1s 0.3\n\
                      0 1 1Gbps 7ns 1e-17\n";
        for text in [SMALL, SIMAI, losses] {
            let before = parse(text).0.unwrap();
            let mut written = Vec::new();
            write_topology(&before, &mut written).unwrap();
            let (after, found) = parse(std::str::from_utf8(&written).unwrap());
            assert_eq!((after, found), (Some(before), Vec::new()));
        }
        let mut written = Vec::new();
        write_topology(&parse(losses).0.unwrap(), &mut written).unwrap();
        let written = String::from_utf8(written).unwrap();
        assert!(written.starts_with("2 0 5\n\n0 1 1500Mbps 3333300ps 0.001\n"), "{written}");
        assert!(written.contains(" 0.000001\n"), "{written}");
    }

    #[test]
    fn tors_and_nvswitches_are_written_as_switches() {
        let mut topology = parse(SIMAI).0.unwrap();
        topology.dialect = Dialect::PowerTcp;
        let mut written = Vec::new();
        write_topology(&topology, &mut written).unwrap();
        let after = parse(std::str::from_utf8(&written).unwrap()).0.unwrap();
        assert_eq!(after.describe(), "HPCC topology: 3 hosts, 2 switches, 2 links");
    }

    #[test]
    fn no_text_is_too_broken() {
        for text in [SMALL, SIMAI] {
            mistreat(text, |text| {
                let Some(topology) = parse(text).0 else { return };
                let nodes = topology.nodes.len();
                assert!(topology.links.iter().all(|l| l.a != l.b && l.a.index().max(l.b.index()) < nodes));
            });
        }
    }
}

//! Flow lists in the text dialect of the HPCC simulator: a count, then a row per flow,
//! `src dst priority dst_port bytes start_seconds`.

use super::diagnostics::Diagnostics;
use super::rows::{Table, read_rows, warn_of_more_rows};
use super::tokens::{Token, Tokens};
use super::topology::Topology;
use super::units;
use std::collections::HashMap;
use wormhole_kernel::{NodeId, NodeKind, SimTime};
use wormhole_models::timing::ns3_seconds;

/// ns-3's first source port of a pair of hosts (`third.cc`).
const FIRST_SOURCE_PORT: u16 = 10_000;

/// A flow as listed.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct FlowRow {
    /// Sender.
    pub src: NodeId,
    /// Receiver.
    pub dst: NodeId,
    /// Priority (802.1p class).
    pub priority: u8,
    /// UDP source port: not in the file, counted per pair of hosts from 10000 in order of start.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Payload bytes.
    pub bytes: u64,
    /// Start, as the decimal says.
    pub start: SimTime,
    /// Start, as ns-3 understands the decimal: up to a nanosecond earlier.
    pub ns3_start: SimTime,
}

/// Reads a flow list for a topology; what is wrong goes to `found`. Flows come back in order of start.
pub fn parse(text: &str, topology: &Topology, found: &mut Diagnostics) -> Vec<FlowRow> {
    let mut tokens = Tokens::new(text);
    let Some(header) = tokens.next() else {
        found.error(0, "", "the file is empty: it must begin with the number of flows");
        return Vec::new();
    };
    let Some(declared) = header.number::<usize>("the number of flows", found) else { return Vec::new() };
    let table = Table { noun: "flow", fields: "src dst priority dst_port bytes start", declared, header };
    let mut latest = SimTime(0);
    let mut unsorted = None;
    let mut rows = read_rows(&table, &mut tokens, found, |number, row, found| {
        let flow = flow(number, row, topology, found)?;
        if flow.start < latest {
            unsorted = unsorted.or(Some(row[5]));
        }
        latest = latest.max(flow.start);
        Some(flow)
    });
    warn_of_more_rows(&table, tokens, found, looks_like_flow);
    if let Some(first) = unsorted {
        let message = "flows are not in order of start, this is the first that is not; they are sorted";
        found.warning(first.line, first.text, message);
        rows.sort_by_key(|r| r.start);
    }
    number_source_ports(&mut rows);
    rows
}

/// Source ports are not in the file: ns-3 counts them for each pair of hosts as flows start.
fn number_source_ports(rows: &mut [FlowRow]) {
    let mut next_port: HashMap<(NodeId, NodeId), u16> = HashMap::new();
    for row in rows {
        let port = next_port.entry((row.src, row.dst)).or_insert(FIRST_SOURCE_PORT);
        row.src_port = *port;
        *port = port.wrapping_add(1);
    }
}

fn flow(number: usize, fields: &[Token<'_>; 6], topology: &Topology, found: &mut Diagnostics) -> Option<FlowRow> {
    let [src, dst, priority, port, bytes, start] = fields;
    let (a, b) = (host(number, src, topology, found), host(number, dst, topology, found));
    if a.is_some() && a == b {
        found.error(dst.line, dst.text, format!("flow {number}: source equals destination"));
    }
    let class = priority.text.parse::<u8>().ok().filter(|p| *p < 8);
    if class.is_none() {
        found.error(priority.line, priority.text, "a priority is 0 to 7");
    }
    let dst_port = port.number::<u16>("a destination port", found);
    let size = bytes.number::<u64>("bytes", found);
    if size == Some(0) {
        found.error(bytes.line, bytes.text, format!("flow {number} has no bytes"));
    }
    let exact = start.parse(units::time, found);
    let ns3 = start.text.parse::<f64>().ok().and_then(ns3_seconds);
    if exact.is_some() && ns3.is_none() {
        found.error(start.line, start.text, "a start is a plain number of seconds");
    }
    Some(FlowRow {
        src: a?,
        dst: b.filter(|b| Some(*b) != a)?,
        priority: class?,
        src_port: 0,
        dst_port: dst_port?,
        bytes: size.filter(|s| *s > 0)?,
        start: SimTime(exact?),
        ns3_start: SimTime::from_ns(ns3?),
    })
}

fn host(number: usize, token: &Token<'_>, topology: &Topology, found: &mut Diagnostics) -> Option<NodeId> {
    let id = token.text.parse::<u32>().ok();
    let message = match id.map(|id| topology.nodes.get(id as usize)) {
        Some(Some(NodeKind::Host)) => return id.map(NodeId),
        Some(Some(_)) => format!("flow {number}: this node is a switch"),
        _ => format!("flow {number}: no such node: nodes are 0 to {}", topology.nodes.len().saturating_sub(1)),
    };
    found.error(token.line, token.text, message);
    None
}

fn looks_like_flow(line: &[Token<'_>]) -> bool {
    line.len() == 6 && line[..5].iter().all(Token::is_digits) && units::time(line[5].text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::super::mistreat;
    use super::*;

    fn parse_for_two_hosts(text: &str) -> (Vec<FlowRow>, Vec<String>) {
        let topology = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
        let topology = Topology::parse(topology, &mut Diagnostics::of("t")).unwrap();
        let mut found = Diagnostics::of("f");
        let rows = parse(text, &topology, &mut found);
        (rows, found.all().iter().map(|d| d.to_string()).collect())
    }

    #[test]
    fn an_unsorted_file_means_what_the_sorted_one_means() {
        let lines = ["0 1 3 100 10000 0.001", "0 1 3 100 20000 0.002", "1 0 3 100 5368709120 2.0002"];
        let (sorted, found) = parse_for_two_hosts(&format!("3\n{}", lines.join("\n")));
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(sorted.iter().map(|r| r.src_port).collect::<Vec<_>>(), [10_000, 10_001, 10_000]);
        assert_eq!((sorted[2].bytes, sorted[2].start), (5_368_709_120, SimTime(2_000_200_000_000)));
        assert_eq!(sorted[2].ns3_start, SimTime::from_ns(2_000_199_999));
        let (rows, found) = parse_for_two_hosts(&format!("3\n{}\n{}\n{}", lines[1], lines[0], lines[2]));
        assert_eq!(rows, sorted);
        let want = "flows are not in order of start, this is the first that is not; they are sorted";
        assert_eq!(found, [format!("f:3: warning: {want} (found `0.001`)")]);
    }

    #[test]
    fn every_fault_is_named() {
        let (rows, found) = parse_for_two_hosts("6\n0 0 3 100 1 0\n0 5 3 100 1 0\n0 2 9 100 0 0\n0 1 3 1e6 -4 never\n");
        assert!(rows.is_empty());
        let want = [
            "f:2: error: flow 1: source equals destination (found `0`)",
            "f:3: error: flow 2: no such node: nodes are 0 to 2 (found `5`)",
            "f:4: error: flow 3: this node is a switch (found `2`)",
            "f:4: error: a priority is 0 to 7 (found `9`)",
            "f:4: error: flow 3 has no bytes (found `0`)",
            "f:5: error: a destination port must be a whole number (found `1e6`)",
            "f:5: error: bytes must be a whole number (found `-4`)",
            "f:5: error: not a decimal number (found `never`)",
            "f:1: error: 6 flows declared, 4 found (found `6`)",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn a_bad_row_does_not_shift_the_next() {
        let fields = "a flow has 6 fields (src dst priority dst_port bytes start), but this line has";
        let (rows, found) = parse_for_two_hosts("3\n0 1 3 100 1000\n0 1 3 100 2000 0\n1 0 3 100 3000 0\n");
        assert_eq!(rows.iter().map(|r| r.bytes).collect::<Vec<_>>(), [2_000, 3_000]);
        assert_eq!(found, [format!("f:2: error: {fields} 5 (found `0`)")]);
        let (rows, found) = parse_for_two_hosts("2\n0 1 3 100 1000 0 1\n0 1 3 100 2000 0\n");
        assert_eq!(rows.iter().map(|r| r.bytes).collect::<Vec<_>>(), [1_000, 2_000]);
        assert_eq!(found, [format!("f:2: error: {fields} 1 more (found `1`)")]);
    }

    #[test]
    fn counts_are_checked() {
        let more = "1\n0 1 3 100 5 0\nold:\n0 1 3 100 5 0\n";
        let want = "f:4: warning: 1 flow declared, but 1 more follows and is not read (found `0`)";
        assert_eq!(parse_for_two_hosts(more).1, [want]);
        assert!(parse_for_two_hosts("").1[0].contains("empty"));
        assert!(parse_for_two_hosts("18446744073709551615\n0 1 3 100 5 0").1[0].contains("1 found"));
        assert!(parse_for_two_hosts("1\n0 1 3 100 5 0 \nas discussed").1.is_empty());
        assert!(parse_for_two_hosts("0\n").1.is_empty());
    }

    #[test]
    fn no_text_is_too_broken() {
        mistreat("3\n0 1 3 100 10000 0.002\r\n1 0 3 100 5368709120 1e-3\n0\t1 3 100 10000 0.0015\nnotes", |text| {
            let (rows, _) = parse_for_two_hosts(text);
            assert!(rows.is_sorted_by_key(|r| r.start));
        });
    }
}

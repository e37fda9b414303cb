//! Flow lists in the text dialect of the HPCC simulator: a count, then a row per flow,
//! `src dst priority dst_port bytes start_seconds`.

use super::diagnostics::Diagnostics;
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
    /// UDP source port: not in the file, counted per pair of hosts from 10000 in the file's order.
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
    let Some(first) = tokens.next() else {
        found.error(0, "", "the file is empty: it must begin with the number of flows");
        return Vec::new();
    };
    let Some(declared) = first.number::<usize>("the number of flows", found) else { return Vec::new() };
    // A count is only a claim: room is made as rows come.
    let mut rows = Vec::new();
    let mut next_port: HashMap<(NodeId, NodeId), u16> = HashMap::new();
    for index in 0..declared {
        let errors = found.all().len();
        let Some(fields) = tokens.row::<6>("flow", found) else {
            if found.all().len() == errors {
                found.error(tokens.line(), "", format!("{declared} flows declared, {index} found"));
            }
            break;
        };
        if let Some(mut row) = flow(index, &fields, topology, found) {
            let port = next_port.entry((row.src, row.dst)).or_insert(FIRST_SOURCE_PORT);
            row.src_port = *port;
            *port = port.wrapping_add(1);
            rows.push(row);
        }
    }
    warn_of_more_rows(declared, &mut tokens, found);
    if !rows.is_sorted_by_key(|r| r.start) {
        found.warning(0, "", "flows are not in order of start; they are sorted");
        rows.sort_by_key(|r| r.start);
    }
    rows
}

fn flow(index: usize, fields: &[Token<'_>; 6], topology: &Topology, found: &mut Diagnostics) -> Option<FlowRow> {
    let [src, dst, priority, port, bytes, start] = fields;
    let (a, b) = (host(index, src, topology, found), host(index, dst, topology, found));
    if a.is_some() && a == b {
        found.error(dst.line, dst.text, format!("flow {}: source equals destination", index + 1));
    }
    let class = priority.text.parse::<u8>().ok().filter(|p| *p < 8);
    if class.is_none() {
        found.error(priority.line, priority.text, "a priority is 0 to 7");
    }
    let dst_port = port.number::<u16>("a destination port", found);
    let size = bytes.number::<u64>("bytes", found);
    if size == Some(0) {
        found.error(bytes.line, bytes.text, format!("flow {} has no bytes", index + 1));
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

fn host(index: usize, token: &Token<'_>, topology: &Topology, found: &mut Diagnostics) -> Option<NodeId> {
    let id = token.text.parse::<u32>().ok();
    let message = match id.map(|id| topology.nodes.get(id as usize)) {
        Some(Some(NodeKind::Host)) => return id.map(NodeId),
        Some(Some(_)) => format!("flow {}: this node is a switch", index + 1),
        _ => format!("flow {}: no such node: nodes are 0 to {}", index + 1, topology.nodes.len().saturating_sub(1)),
    };
    found.error(token.line, token.text, message);
    None
}

fn warn_of_more_rows(declared: usize, tokens: &mut Tokens<'_>, found: &mut Diagnostics) {
    let fields = tokens.rest_of_line();
    let Some(first) = fields.first() else { return };
    if fields.len() == 6 && fields.iter().all(|t| t.text.parse::<f64>().is_ok()) {
        found.warning(first.line, first.text, format!("more flows follow than the {declared} declared; not read"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse_for_two_hosts(text: &str) -> (Vec<FlowRow>, Vec<String>) {
        let topology = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
        let topology = Topology::parse(topology, &mut Diagnostics::of("t")).unwrap();
        let mut found = Diagnostics::of("f");
        let rows = parse(text, &topology, &mut found);
        (rows, found.all().iter().map(|d| d.to_string()).collect())
    }

    #[test]
    fn rows_are_sorted_and_ports_counted_in_file_order() {
        let text = "3\n0 1 3 100 10000 0.002\n0 1 3 100 10000 0.001\n1 0 3 100 5368709120 2.0002";
        let (rows, found) = parse_for_two_hosts(text);
        assert_eq!(found, ["f: warning: flows are not in order of start; they are sorted"]);
        assert_eq!(rows.iter().map(|r| r.src_port).collect::<Vec<_>>(), [10_001, 10_000, 10_000]);
        assert_eq!((rows[2].bytes, rows[2].start), (5_368_709_120, SimTime(2_000_200_000_000)));
        assert_eq!(rows[2].ns3_start, SimTime::from_ns(2_000_199_999));
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
            "f:5: error: a time needs one of the units s, ms, us, ns, ps (found `never`)",
            "f:5: error: 6 flows declared, 4 found",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn counts_are_checked() {
        assert!(parse_for_two_hosts("").1[0].contains("empty"));
        assert!(parse_for_two_hosts("1\n0 1 3 100 5 0\n0 1 3 100 5 0\n").1[0].contains("warning: more flows"));
        assert!(parse_for_two_hosts("18446744073709551615\n0 1 3 100 5 0").1[0].contains("1 found"));
        assert!(parse_for_two_hosts("1\n0 1 3 100 5 0 \nas discussed").1.is_empty());
    }
}

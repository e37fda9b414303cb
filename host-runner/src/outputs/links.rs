//! `links.csv`: a row per port, that is per direction of a link.

use super::rows::{Cell, Kind, Rows};
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::{NodeId, PortStats};

/// The table.
///
/// Columns: the link's number in the topology; the sending and the receiving node; rate; what the port has sent; the
/// share of the run that was spent sending; most bytes ever waiting at once; frames marked with ECN as they left;
/// PAUSE frames that arrived from the peer; frames lost here; bytes waiting, averaged over the run; time that was
/// skipped, not simulated. What went over the link in that time is counted in the columns before.
pub fn links_table<'o>(scenario: &'o Scenario, outcome: &'o Outcome) -> Rows<'o> {
    const COLUMNS: [(&str, Kind); 13] = [
        ("link", Kind::Count),
        ("from", Kind::Count),
        ("to", Kind::Count),
        ("rate_bps", Kind::Count),
        ("frames", Kind::Count),
        ("bytes", Kind::Count),
        ("utilisation", Kind::Number),
        ("max_queue_bytes", Kind::Count),
        ("ecn_marks", Kind::Count),
        ("pauses", Kind::Count),
        ("drops", Kind::Count),
        ("mean_queue_bytes", Kind::Number),
        ("skipped_ns", Kind::Number),
    ];
    let row = |(info, to, stats): (PortInfo, NodeId, PortStats)| {
        let seconds = outcome.end.0 as f64 / 1e12;
        let possible = info.rate.0 as f64 / 8.0 * seconds;
        let utilisation = if possible > 0.0 { stats.bytes as f64 / possible } else { 0.0 };
        let mean_queue = if outcome.end.0 > 0 { stats.queue_byte_ns as f64 * 1e3 / outcome.end.0 as f64 } else { 0.0 };
        vec![
            info.link.0.into(),
            info.node.0.into(),
            to.0.into(),
            info.rate.0.into(),
            stats.frames.into(),
            stats.bytes.into(),
            Cell::Number(utilisation, 6),
            stats.max_queue.into(),
            stats.marks.into(),
            stats.pauses.into(),
            stats.drops.into(),
            Cell::Number(mean_queue, 3),
            stats.skipped.into(),
        ]
    };
    Rows::new(&COLUMNS, directions(scenario, outcome).map(row))
}

/// Every port with its neighbour and counters, by link, in the direction it is listed first.
fn directions<'o>(
    scenario: &'o Scenario,
    outcome: &'o Outcome,
) -> impl Iterator<Item = (PortInfo, NodeId, PortStats)> + 'o {
    let mut ports: Vec<_> = outcome.ports.iter().map(|p| (p.info, p.neighbour, p.stats)).collect();
    ports.sort_by_key(|(info, ..)| (info.link, info.node != scenario.links[info.link.index()].a));
    ports.into_iter()
}

//! `links.csv`: a row per port, that is per direction of a link.

use super::fct::nanoseconds;
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use std::io::{self, Write};
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::{LinkId, NodeId};

/// Writes the table.
///
/// Columns: the link's number in the topology; the sending and the receiving node; rate; what the port has sent; the
/// share of the run that was spent sending; most bytes ever waiting at once; frames marked with ECN as they left;
/// PAUSE frames that arrived from the peer; frames lost here; bytes waiting, averaged over the run; time that was
/// skipped, not simulated. What went over the link in that time is counted in the columns before.
///
/// # Errors
/// Those of `out`.
pub fn write_links_csv(out: &mut impl Write, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
    let counted = "link,from,to,rate_bps,frames,bytes,utilisation,max_queue_bytes,ecn_marks,pauses,drops";
    writeln!(out, "{counted},mean_queue_bytes,skipped_ns")?;
    for (info, to, stats) in directions(scenario, outcome) {
        let seconds = outcome.end.0 as f64 / 1e12;
        let possible = info.rate.0 as f64 / 8.0 * seconds;
        let utilisation = if possible > 0.0 { stats.bytes as f64 / possible } else { 0.0 };
        let mean_queue = if outcome.end.0 > 0 { stats.queue_byte_ns as f64 * 1e3 / outcome.end.0 as f64 } else { 0.0 };
        let (LinkId(link), NodeId(from), NodeId(to)) = (info.link, info.node, to);
        writeln!(
            out,
            "{link},{from},{to},{},{},{},{utilisation:.6},{},{},{},{},{mean_queue:.3},{}",
            info.rate.0,
            stats.frames,
            stats.bytes,
            stats.max_queue,
            stats.marks,
            stats.pauses,
            stats.drops,
            nanoseconds(stats.skipped),
        )?;
    }
    Ok(())
}

/// Every port with its neighbour and counters, by link, in the direction it is listed first.
fn directions<'o>(
    scenario: &'o Scenario,
    outcome: &'o Outcome,
) -> impl Iterator<Item = (PortInfo, NodeId, wormhole_kernel::PortStats)> + 'o {
    let mut ports: Vec<_> = outcome.ports.iter().map(|p| (p.info, p.neighbour, p.stats)).collect();
    ports.sort_by_key(|(info, ..)| (info.link, info.node != scenario.links[info.link.index()].a));
    ports.into_iter()
}

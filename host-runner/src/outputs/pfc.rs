//! `pfc.txt`: when which port was paused, as ns-3 logs it.

use crate::scenario::Scenario;
use std::io::{self, Write};
use wormhole_kernel::{NodeId, NodeKind, Observer, PortId, SimTime};

/// A PFC frame that has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PfcRow {
    /// When.
    pub time: SimTime,
    /// At which port.
    pub port: PortId,
    /// Pause, or go on.
    pub pause: bool,
}

/// Collects the PFC frames of a run.
#[derive(Clone, Default, Debug)]
pub struct PfcLog {
    /// In order of arrival.
    pub rows: Vec<PfcRow>,
}

impl Observer for PfcLog {
    fn pfc(&mut self, time: SimTime, port: PortId, _priority: u8, pause: bool) {
        self.rows.push(PfcRow { time, port, pause });
    }
}

/// The rows by time, those of one instant by port: so their order does not depend on which kernel has seen them.
pub(crate) fn sorted_pfc(mut rows: Vec<PfcRow>) -> Vec<PfcRow> {
    rows.sort_by_key(|row| (row.time, row.port));
    rows
}

/// Writes the log: time in ns, node, its type (0 host, 1 switch), its port number from 1, and 1 for pause.
///
/// # Errors
/// Those of `out`.
pub fn write_pfc(out: &mut impl Write, scenario: &Scenario, log: &[PfcRow]) -> io::Result<()> {
    let owners = port_owners(scenario);
    for row in log {
        let (NodeId(node), number) = owners[row.port.index()];
        let switch = scenario.nodes[node as usize] != NodeKind::Host;
        writeln!(out, "{} {node} {} {number} {}", row.time.as_ns(), switch as u8, row.pause as u8)?;
    }
    Ok(())
}

/// The node of every port, and the port's number in its node from 1: the kernel numbers ports by node.
fn port_owners(scenario: &Scenario) -> Vec<(NodeId, u32)> {
    let mut degree = vec![0; scenario.nodes.len()];
    for link in &scenario.links {
        degree[link.a.index()] += 1;
        degree[link.b.index()] += 1;
    }
    let nodes = (0..).map(NodeId).zip(degree);
    nodes.flat_map(|(node, ports)| (1..=ports).map(move |number| (node, number))).collect()
}

//! Topologies: what is read, written and read again is the same.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::input::diagnostics::Diagnostics;
use wormhole::input::topology::{Topology, write_topology};
use wormhole_fuzz::host::{check_findings, text};

fn parse(text: &str) -> Option<Topology> {
    let mut found = Diagnostics::of("topology");
    let topology = Topology::parse(text, &mut found).filter(|_| !found.has_errors());
    check_findings(text, &found, topology.is_some());
    topology
}

fuzz_target!(|data: &[u8]| {
    let Some(topology) = parse(&text(data)) else { return };
    let mut written = Vec::new();
    write_topology(&topology, &mut written).expect("memory");
    let again = parse(&text(&written)).expect("what was written is read");
    assert_eq!((&again.nodes, &again.links), (&topology.nodes, &topology.links));
});

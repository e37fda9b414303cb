//! Flow lists: what is read, written and read again is the same. Lists of link changes, too.
#![no_main]

use libfuzzer_sys::fuzz_target;
use std::fmt::Write;
use wormhole::input::diagnostics::Diagnostics;
use wormhole::input::flows::{self, FlowRow};
use wormhole::input::link_events;
use wormhole::input::topology::Topology;
use wormhole_fuzz::host::{TOPOLOGY, check_findings, text};

const PS_PER_S: u64 = 1_000_000_000_000;

fn parse(text: &str, topology: &Topology) -> Option<Vec<FlowRow>> {
    let mut found = Diagnostics::of("flows");
    let rows = Some(flows::parse(text, topology, &mut found)).filter(|_| !found.has_errors());
    check_findings(text, &found, rows.is_some());
    rows
}

fn written(rows: &[FlowRow]) -> String {
    let mut text = format!("{}\n", rows.len());
    for FlowRow { src, dst, priority, dst_port, bytes, start, .. } in rows {
        let (s, ps) = (start.0 / PS_PER_S, start.0 % PS_PER_S);
        writeln!(text, "{} {} {priority} {dst_port} {bytes} {s}.{ps:012}", src.0, dst.0).expect("memory");
    }
    text
}

fuzz_target!(|data: &[u8]| {
    let topology = Topology::parse(TOPOLOGY, &mut Diagnostics::default()).expect("a topology");
    let text = text(data);
    let mut found = Diagnostics::of("link events");
    link_events::parse(&text, &topology.links, &mut found);
    check_findings(&text, &found, !found.has_errors());

    let Some(rows) = parse(&text, &topology) else { return };
    let again = parse(&written(&rows), &topology).expect("what was written is read");
    // ns-3 understands another decimal of the same time otherwise.
    let exact = |rows: &[FlowRow]| -> Vec<FlowRow> {
        rows.iter().map(|row| FlowRow { ns3_start: row.start, ..*row }).collect()
    };
    assert_eq!(exact(&again), exact(&rows));
});

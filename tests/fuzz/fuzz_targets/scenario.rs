//! Scenario files: a fabric and jobs that are accepted can be run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::fuzzing;
use wormhole::input::diagnostics::Diagnostics;
use wormhole_fuzz::host::{check_findings, check_simulation, text};

/// Nodes of a fabric that is run.
const MOST_NODES: usize = 64;

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let mut found = Diagnostics::of("scenario");
    let scenario = fuzzing::scenario(&text, &mut found);
    check_findings(&text, &found, !found.has_errors());
    if let Some(scenario) = scenario.filter(|scenario| scenario.nodes.len() <= MOST_NODES) {
        check_simulation(&scenario);
    }
});

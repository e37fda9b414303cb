//! Configurations: whatever is accepted can be run, and runs alike with exact acceleration and without.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use wormhole::input::config;
use wormhole::input::diagnostics::Diagnostics;
use wormhole::load::{Texts, load_texts};
use wormhole_fuzz::host::{TOPOLOGY, check_findings, check_simulation, options, text};

const FLOWS: &str = "4\n0 7 3 100 40000 0\n1 7 3 100 60000 0\n4 3 3 100 3000 0.000001\n2 7 2 100 1 0.00001\n";

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    let options = options(&mut bytes);
    let text = text(bytes.take_rest());
    let mut found = Diagnostics::of("config");
    config::parse(&text, &mut found);
    check_findings(&text, &found, !found.has_errors());

    let texts = Texts {
        topology: ("topology", TOPOLOGY),
        flows: Some(("flows", FLOWS)),
        config: Some(("config", &text)),
        link_events: None,
    };
    let loaded = load_texts(&texts, &options);
    check_findings(&text, &loaded.found, loaded.scenario.is_some());
    if let Some(scenario) = loaded.scenario {
        check_simulation(&scenario);
    }
});

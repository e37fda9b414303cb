//! Files of sweeps: a plan that is accepted has points, and each of them has its keys.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::fuzzing;
use wormhole::input::diagnostics::Diagnostics;
use wormhole_fuzz::host::{check_findings, text};

fuzz_target!(|data: &[u8]| {
    let text = text(data);
    let mut found = Diagnostics::of("sweep");
    let is_accepted = fuzzing::sweep(&text, &mut found);
    check_findings(&text, &found, is_accepted);
});

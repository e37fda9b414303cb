//! GOAL schedules: a job that is accepted names only what there is, and can be run.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use wormhole::input::diagnostics::Diagnostics;
use wormhole::workload::formats::goal;
use wormhole_fuzz::host::{check_findings, check_job, options, text};

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    let options = options(&mut bytes);
    let text = text(bytes.take_rest());
    let mut found = Diagnostics::of("workload");
    let job = goal::parse(&text, &mut found);
    check_findings(&text, &found, job.is_some());
    if let Some(job) = job {
        check_job(&job, &options);
    }
});

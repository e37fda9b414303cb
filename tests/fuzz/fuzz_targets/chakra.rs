//! Chakra traces: a job that is accepted names only what there is, and can be run.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use wormhole::input::diagnostics::Diagnostics;
use wormhole::workload::formats::chakra;
use wormhole_fuzz::host::{check_job, options, text};

/// Ends the trace of a rank, or the groups.
const END: &[u8] = b"\n--\n";

/// What is between the ends.
fn parts(mut data: &[u8]) -> Vec<&[u8]> {
    let mut parts = Vec::new();
    while let Some(at) = data.windows(END.len()).position(|window| window == END) {
        parts.push(&data[..at]);
        data = &data[at + END.len()..];
    }
    parts.push(data);
    parts
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    let (options, has_groups) = (options(&mut bytes), bytes.arbitrary().unwrap_or(false));
    let parts = parts(bytes.take_rest());
    let (json, traces) = if has_groups { parts.split_at(1) } else { parts.split_at(0) };
    let json = json.first().map(|json| text(json));
    let files: Vec<(&str, &[u8])> = traces.iter().map(|trace| ("trace", *trace)).collect();
    let mut found = Diagnostics::of("job");
    let job = chakra::parse(&files, json.as_deref().map(|json| ("groups", json)), &mut found);
    assert_ne!(job.is_some(), found.has_errors());
    if let Some(job) = job {
        check_job(&job, &options);
    }
});

//! SimAI and AICB workloads: a job that is accepted names only what there is, and can be run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::workload::formats::simai;
use wormhole_fuzz::host::{HOSTS, check_workload};

fuzz_target!(|data: &[u8]| check_workload(data, |text, found| simai::parse(text, Some(HOSTS), found)));

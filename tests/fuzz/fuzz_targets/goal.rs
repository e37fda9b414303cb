//! GOAL schedules: a job that is accepted names only what there is, and can be run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::workload::formats::goal;
use wormhole_fuzz::host::check_workload;

fuzz_target!(|data: &[u8]| check_workload(data, goal::parse));

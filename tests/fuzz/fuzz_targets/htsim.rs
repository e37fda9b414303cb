//! Connection matrices of htsim: a job that is accepted names only what there is, and can be run.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::workload::formats::htsim;
use wormhole_fuzz::host::check_workload;

fuzz_target!(|data: &[u8]| check_workload(data, htsim::parse));

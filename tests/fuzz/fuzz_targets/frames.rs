//! Frames from outside: any bytes are looked at, and a mark changes nothing else.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| wormhole::fuzzing::frame(data));

//! The other side of a SimBricks connection: any introduction, and any bytes in the slots of a ring.
#![no_main]

use libfuzzer_sys::fuzz_target;
use wormhole::fuzzing;

fuzz_target!(|data: &[u8]| {
    fuzzing::simbricks_intro(data);
    fuzzing::simbricks_ring(data);
});

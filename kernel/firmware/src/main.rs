//! The Wormhole kernel on a microcontroller: runs the scenario in both tiers of acceleration.
//!
//! Flow completion times go to stderr as text, the kernel's messages to stdout as defmt frames, and what was learnt to
//! memo files of the host: all by semihosting. No heap; all memory is the static below and the stack.
#![no_std]
#![no_main]

mod board;
mod stack;

use core::ffi::CStr;
use core::fmt::Display;
use core::panic::PanicInfo;
use defmt_semihosting as _;
use semihosting::{eprint, eprintln, fs, process};
use static_cell::ConstStaticCell;
use wormhole_firmware_scenario::{KERNEL_WORDS, LIMITS, Memory, kernel_words, run};
use wormhole_kernel::accel::Tier;

/// Exit codes, besides 0.
const FAILED: i32 = 1;
const PANICKED: i32 = 101;

static MEMORY: ConstStaticCell<Memory> = ConstStaticCell::new(Memory::EMPTY);

/// What is run, and the memo file it writes.
const RUNS: [(Tier, &str, &CStr); 2] =
    [(Tier::Exact, "exact", c"exact.whm"), (Tier::Bounded, "bounded", c"bounded.whm")];

/// Where the board's start-up code leads.
fn main() -> ! {
    stack::paint();
    let memory = MEMORY.take();
    eprintln!("kernel: {} of {KERNEL_WORDS} words", kernel_words());
    for (tier, name, file) in RUNS {
        defmt::info!("tier {=str}", name);
        eprintln!("tier {name}");
        match run(tier, &LIMITS, memory) {
            Ok(report) => {
                eprint!("{report}");
                if fs::write(file, report.memo).is_err() {
                    fail("the memo file cannot be written");
                }
            }
            Err(failure) => fail(failure),
        }
    }
    eprintln!("stack: {} of {} bytes", stack::most_used(), stack::size());
    process::exit(0)
}

fn fail(why: impl Display) -> ! {
    eprintln!("error: {why}");
    process::exit(FAILED)
}

#[panic_handler]
fn panicked(_: &PanicInfo<'_>) -> ! {
    eprintln!("panicked");
    process::exit(PANICKED)
}

//! Hardware beside a simulated fabric: frames pass through a queue in Verilog, run by Verilator, and come back marked.
//!
//! With the library that `build.sh` makes as its argument, the queue is the RTL; without, its model in Rust. Both print
//! the same. `host-runner/docs/attaching-hardware.md` explains how it works.

mod axis;
mod cosim;
mod frame;
mod model;
mod verilated;

use axis::EcnQueue;
use cosim::{CABLE, Send, co_simulate};
use std::error::Error;
use std::path::Path;
use std::process::ExitCode;
use wormhole_kernel::{NodeId, SimTime, Span};

/// Above 128 beats of 64 bytes the queue marks.
const THRESHOLD: u32 = 128;

/// Two hosts send bursts of frames at the same times.
fn bursts() -> Vec<Send> {
    let burst = |i: u64| {
        let send = move |src| Send { at: SimTime::ZERO + Span::from_us(20 * i), src: NodeId(src), bytes: 1_514 };
        [0, 1].into_iter().flat_map(move |src| [send(src); 8])
    };
    (0..10).flat_map(burst).collect()
}

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let causes = std::iter::successors(error.source(), |&cause| cause.source());
            let told = causes.fold(error.to_string(), |told, cause| format!("{told}: {cause}"));
            eprintln!("rtl_peer: {told}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Box<dyn Error>> {
    let library = std::env::args_os().nth(1);
    let mut queue: Box<dyn EcnQueue> = match &library {
        Some(path) => Box::new(verilated::Verilated::load(Path::new(path), THRESHOLD)?),
        None => Box::new(model::Model::new(THRESHOLD)),
    };
    eprintln!("the queue is {}", if library.is_some() { "RTL under Verilator" } else { "its model in Rust" });
    let sends = bursts();
    let outcome = co_simulate(&mut *queue, CABLE, &sends)?;

    println!("{:>6} {:>12} {:>12} mark", "frame", "sent ps", "arrived ps");
    for arrival in &outcome.arrivals {
        let number = frame::number(&arrival.frame);
        let mark = if frame::is_marked(&arrival.frame) { "CE" } else { "" };
        println!("{number:>6} {:>12} {:>12} {mark}", sends[number as usize].at.0, arrival.at.0);
    }
    let marked = outcome.arrivals.iter().filter(|arrival| frame::is_marked(&arrival.frame)).count();
    println!(
        "{} of {} frames arrived, {marked} marked, {} of them by the queue; the flow beside ended at {} ns",
        outcome.arrivals.len(),
        sends.len(),
        outcome.marked_by_queue,
        outcome.flow_end.as_ns()
    );
    Ok(())
}

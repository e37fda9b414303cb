//! How a run ended, in a sentence and an exit code.

use crate::simulate::{Ending, Outcome};
use crate::workload::engine::Wait;
use std::process::ExitCode;
use wormhole_kernel::{CapacityError, NodeId};

/// Exit codes. 2 is clap's, for a command line it does not understand.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ExitStatus {
    /// Every flow finished, or the stop time came.
    Done = 0,
    /// A file could not be read or written.
    Io = 1,
    /// An input file is wrong.
    BadInput = 3,
    /// Flows were given up, or wait for acknowledgements that will never come.
    Stalled = 4,
    /// Frames wait for ever in queues that are paused.
    Deadlock = 5,
    /// A limit is too low.
    OutOfLimits = 6,
    /// A run differs from its reference.
    Differs = 7,
    /// Acceleration has changed results by more than it may, or a memo record is not what its simulation gives.
    ErrorBound = 8,
    /// Memo files were made with different models: they cannot be merged.
    Unlike = 9,
    /// Ranks wait for others that will never come.
    Waiting = 10,
    /// A plugin cannot be used, or has given what it may not.
    Plugin = 11,
    /// Another program that a simulation runs together with has broken the protocol, or is gone.
    Peer = 12,
    /// A frame was later than the hard limit of real time.
    Late = 13,
    /// It was asked to end before its time, and wrote what it had: what shells give for SIGINT.
    Interrupted = 130,
}

impl ExitStatus {
    /// This one, unless the other tells of something.
    pub(crate) fn unless(self, other: ExitStatus) -> ExitStatus {
        if other == ExitStatus::Done { self } else { other }
    }

    /// The exit codes, for `--help`.
    pub const HELP: &str = "Exit codes: 0 done, 1 a file cannot be read or written, 2 bad command line, 3 bad input, \
                            4 flows stalled or given up, 5 PFC deadlock, 6 out of limits, 7 a reference run differs, \
                            8 acceleration or a memo record has changed results by more than it may, \
                            9 memo files of different models, 10 ranks wait for others that never come, \
                            11 a plugin cannot be used or breaks its contract, \
                            12 a peer of a co-simulation has broken the protocol, or is gone, \
                            13 a frame later than the hard limit of real time, \
                            130 interrupted; what was done is written";
}

impl From<ExitStatus> for ExitCode {
    fn from(status: ExitStatus) -> ExitCode {
        ExitCode::from(status as u8)
    }
}

/// So many waiting ranks or flows are shown.
const MOST_WAITS: usize = 20;

/// Tells the first of what waits, and how many more there are.
fn tell_waits(waits: impl ExactSizeIterator<Item = String>) {
    let more = waits.len().saturating_sub(MOST_WAITS);
    waits.take(MOST_WAITS).for_each(|wait| eprintln!("  {wait}"));
    if more > 0 {
        eprintln!("  and {more} more");
    }
}

/// Says on standard error what kept a run from its end; nothing if all is well.
pub fn explain(outcome: &Outcome) -> ExitStatus {
    match &outcome.ending {
        Ending::Done if outcome.totals.flows_given_up > 0 => {
            eprintln!("{} flows were given up after too many time-outs", outcome.totals.flows_given_up);
            ExitStatus::Stalled
        }
        Ending::Done => ExitStatus::Done,
        Ending::StopTime => {
            eprintln!("the stop time came before the last flow's end");
            ExitStatus::Done
        }
        Ending::Stalled(flows) => {
            eprintln!("stalled at {} ns: flows wait for acknowledgements that will never come", outcome.end.as_ns());
            tell_waits(flows.iter().map(|flow| {
                let (NodeId(src), NodeId(dst)) = (flow.src, flow.dst);
                format!("host {src} waits for host {dst}: {} of {} bytes acknowledged", flow.acked, flow.bytes)
            }));
            ExitStatus::Stalled
        }
        Ending::Deadlock(queues) => {
            eprintln!("PFC deadlock, noticed at {} ns; these queues stay paused:", outcome.end.as_ns());
            for queue in queues {
                let port = &outcome.ports[queue.port.index()];
                eprintln!(
                    "  node {} towards node {}, priority {}, {} bytes, paused since {} ns",
                    port.info.node.0,
                    port.neighbour.0,
                    queue.priority,
                    queue.bytes,
                    queue.since.as_ns()
                );
            }
            ExitStatus::Deadlock
        }
        Ending::Waiting(waits) => {
            eprintln!("nothing goes on at {} ns:", outcome.end.as_ns());
            tell_waits(waits.iter().map(|Wait { job, rank, what }| format!("{job}: rank {rank} waits for {what}")));
            ExitStatus::Waiting
        }
        Ending::Mismatch(message) => {
            eprintln!("{message}");
            ExitStatus::BadInput
        }
        Ending::OutOf(fault) => out_of(fault),
        Ending::Interrupted | Ending::Running => {
            let (ended, begun) = (outcome.flows.len(), outcome.flows_begun);
            eprintln!("interrupted at {} ns: {ended} of {begun} flows have ended", outcome.end.as_ns());
            ExitStatus::Interrupted
        }
        Ending::Plugin(fault) => {
            eprintln!("{fault}");
            ExitStatus::Plugin
        }
    }
}

/// Says on standard error which limit is too low.
pub(crate) fn out_of(fault: &CapacityError) -> ExitStatus {
    // The other limits follow from the scenario.
    let option = if fault.what == "packets" { "--max-packets" } else { "--max-flows" };
    eprintln!("{fault}; raise it with {option}");
    ExitStatus::OutOfLimits
}

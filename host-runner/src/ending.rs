//! How a run ended, in a sentence and an exit code.

use crate::simulate::{Ending, FlowRecord, Outcome};
use crate::workload::engine::Wait;
use std::process::ExitCode;
use wormhole_kernel::{CapacityError, FlowEnd, NodeId};

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

/// The first of what waits, and how many more there are.
fn waits(waits: impl ExactSizeIterator<Item = String>) -> impl Iterator<Item = String> {
    let more = waits.len().saturating_sub(MOST_WAITS);
    waits.take(MOST_WAITS).chain((more > 0).then(|| format!("and {more} more"))).map(|line| format!("  {line}"))
}

/// Says on standard error what kept a run from its end; nothing if all is well.
pub fn explain(outcome: &Outcome) -> ExitStatus {
    let (status, lines) = describe(outcome);
    lines.iter().for_each(|line| eprintln!("{line}"));
    status
}

/// What kept a run from its end, a sentence and what it is about; nothing if all is well.
pub(crate) fn describe(outcome: &Outcome) -> (ExitStatus, Vec<String>) {
    let end = outcome.end.as_ns();
    match &outcome.ending {
        Ending::Done if outcome.totals.flows_given_up > 0 => {
            let given_up = outcome.totals.flows_given_up;
            (ExitStatus::Stalled, vec![format!("{given_up} flows were given up after too many time-outs")])
        }
        Ending::Done => (ExitStatus::Done, Vec::new()),
        Ending::StopTime => (ExitStatus::Done, vec!["the stop time came before the last flow's end".into()]),
        Ending::Stalled(flows) => {
            let heading = format!("stalled at {end} ns: flows wait for acknowledgements that will never come");
            let waiting = waits(flows.iter().map(|flow| {
                let (NodeId(src), NodeId(dst)) = (flow.src, flow.dst);
                format!("host {src} waits for host {dst}: {} of {} bytes acknowledged", flow.acked, flow.bytes)
            }));
            (ExitStatus::Stalled, [heading].into_iter().chain(waiting).collect())
        }
        Ending::Deadlock(queues) => {
            let heading = format!("PFC deadlock, noticed at {end} ns; these queues stay paused:");
            let paused = queues.iter().map(|queue| {
                let port = &outcome.ports[queue.port.index()];
                format!(
                    "  node {} towards node {}, priority {}, {} bytes, paused since {} ns",
                    port.info.node.0,
                    port.neighbour.0,
                    queue.priority,
                    queue.bytes,
                    queue.since.as_ns()
                )
            });
            (ExitStatus::Deadlock, [heading].into_iter().chain(paused).collect())
        }
        Ending::Waiting(ranks) => {
            let heading = format!("nothing goes on at {end} ns:");
            // Of a file that cannot be read the tables will tell.
            let given_up: Vec<String> = outcome.flows.iter().flatten().filter_map(|record| given_up(&record)).collect();
            // Who waits for a message that was given up waits for nobody who could do anything about it.
            let status = if given_up.is_empty() { ExitStatus::Waiting } else { ExitStatus::Stalled };
            let waiting =
                waits(ranks.iter().map(|Wait { job, rank, what }| format!("{job}: rank {rank} waits for {what}")));
            (status, [heading].into_iter().chain(waits(given_up.into_iter())).chain(waiting).collect())
        }
        Ending::Mismatch(message) => (ExitStatus::BadInput, vec![message.clone()]),
        Ending::OutOf(fault) => (ExitStatus::OutOfLimits, vec![raise(fault)]),
        Ending::OutOfTime => {
            let heading = "out of time: simulated time ends after 2^64 ps, which is 213 days";
            (ExitStatus::OutOfLimits, vec![format!("{heading}; {}", ended_of(outcome))])
        }
        Ending::Interrupted | Ending::Running => {
            (ExitStatus::Interrupted, vec![format!("interrupted at {end} ns: {}", ended_of(outcome))])
        }
        Ending::Plugin(fault) => (ExitStatus::Plugin, vec![fault.to_string()]),
    }
}

/// That a flow was given up, if it was.
fn given_up(record: &FlowRecord) -> Option<String> {
    let FlowRecord { src, dst, completion, .. } = record;
    let text =
        || format!("host {} has given up {} bytes to host {} after too many time-outs", src.0, completion.bytes, dst.0);
    (completion.end() == FlowEnd::GaveUp).then(text)
}

fn ended_of(outcome: &Outcome) -> String {
    format!("{} of {} flows have ended", outcome.flows.len(), outcome.flows_begun)
}

/// Which limit is too low, and how to raise it.
fn raise(fault: &CapacityError) -> String {
    // The other limits follow from the scenario.
    let option = if fault.what == "packets" { "--max-packets" } else { "--max-flows" };
    format!("{fault}; raise it with {option}")
}

/// Says on standard error which limit is too low.
pub(crate) fn out_of(fault: &CapacityError) -> ExitStatus {
    eprintln!("{}", raise(fault));
    ExitStatus::OutOfLimits
}

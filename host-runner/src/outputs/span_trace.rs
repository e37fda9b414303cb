//! The trace of spans: what ranks do when, and when partitions of the fabric are skipped. It is a JSON object in the
//! Trace Event Format, which Perfetto and Chrome's `about:tracing` open.
//!
//! Process 0 is the fabric, with a thread for each partition; each job is a process, with a thread for each rank. Times
//! are in microseconds since the start of the simulation, exact to the picosecond. Spans of one thread do not overlap.
//! They are written as they end, so a thread's are in order.

use crate::scenario::Scenario;
use crate::workload::activity::{Doing, Stretch};
use crate::workload::engine::RankStretch;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use wormhole_kernel::accel::SkippedBy;
use wormhole_kernel::units::PS_PER_US;
use wormhole_kernel::{Observer, PartitionId, SimTime};

/// Most spans in a file, some hundreds of megabytes; viewers do not open more. Further ones are counted.
const MOST_SPANS: u64 = 4_000_000;

/// Number of the process that stands for the fabric.
const FABRIC: u32 = 0;

/// Writes the trace.
pub struct SpanTrace<W: Write> {
    out: BufWriter<W>,
    /// Partitions that have a name.
    partitions: BTreeSet<u32>,
    spans: u64,
    left_out: u64,
    /// The first error; nothing is written after it.
    failed: io::Result<()>,
}

impl<W: Write> SpanTrace<W> {
    /// A trace of a scenario's jobs and their ranks.
    pub fn new(out: W, scenario: &Scenario) -> SpanTrace<W> {
        let out = BufWriter::new(out);
        let mut trace = SpanTrace { out, partitions: BTreeSet::new(), spans: 0, left_out: 0, failed: Ok(()) };
        trace.write(|out| write!(out, "{{\"displayTimeUnit\":\"ns\",\"traceEvents\":["));
        trace.name("process_name", FABRIC, None, "fabric partitions", true);
        for (process, job) in (FABRIC + 1..).zip(&scenario.jobs) {
            trace.name("process_name", process, None, &job.name, false);
            for (rank, host) in (0..).zip(&job.hosts) {
                let name = format!("rank {rank} on host {}", host.0);
                trace.name("thread_name", process, Some(rank), &name, false);
            }
        }
        trace
    }

    /// A rank has done something. That it did nothing leaves a gap.
    pub fn rank(&mut self, did: &RankStretch) {
        let Stretch { doing, from, to } = did.stretch;
        if doing != Doing::Idle {
            self.span(FABRIC + 1 + did.job, did.rank, doing.name(), from, to);
        }
    }

    /// Writes the end. Gives the number of spans that had no room.
    ///
    /// # Errors
    /// The first error of any write.
    pub fn finish(mut self) -> io::Result<u64> {
        let left_out = self.left_out;
        self.write(|out| writeln!(out, "],\"otherData\":{{\"spans left out\":{left_out}}}}}"));
        self.failed?;
        self.out.flush()?;
        Ok(left_out)
    }

    fn write(&mut self, text: impl FnOnce(&mut BufWriter<W>) -> io::Result<()>) {
        if self.failed.is_ok() {
            self.failed = text(&mut self.out);
        }
    }

    /// Names a process or a thread of it.
    fn name(&mut self, what: &str, process: u32, thread: Option<u32>, name: &str, is_first: bool) {
        let mut event = json!({"ph": "M", "name": what, "pid": process, "args": {"name": name}});
        if let Some(thread) = thread {
            event["tid"] = thread.into();
        }
        self.write(|out| write!(out, "{}{event}", if is_first { "\n" } else { ",\n" }));
    }

    fn span(&mut self, process: u32, thread: u32, name: &str, from: SimTime, to: SimTime) {
        if self.spans == MOST_SPANS {
            self.left_out += 1;
            return;
        }
        self.spans += 1;
        let (start, length) = (microseconds(from.0), microseconds(to.since(from).0));
        self.write(|out| {
            write!(out, ",\n{{\"ph\":\"X\",\"name\":\"{name}\",\"pid\":{process},\"tid\":{thread},")?;
            write!(out, "\"ts\":{start},\"dur\":{length}}}")
        });
    }
}

/// Picoseconds as a decimal number of microseconds.
fn microseconds(ps: u64) -> String {
    format!("{}.{:06}", ps / PS_PER_US, ps % PS_PER_US)
}

impl<W: Write> Observer for SpanTrace<W> {
    fn skipped(&mut self, from: SimTime, to: SimTime, partition: PartitionId, by: SkippedBy) {
        if self.partitions.insert(partition.0) {
            self.name("thread_name", FABRIC, Some(partition.0), &format!("partition {}", partition.0), false);
        }
        let name = match by {
            SkippedBy::Exact => "skipped, exact",
            SkippedBy::Bounded => "skipped, bounded",
            SkippedBy::Memo => "skipped, memo",
        };
        self.span(FABRIC, partition.0, name, from, to);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::reference::NS3;

    #[test]
    fn a_trace_is_json_with_exact_times() {
        let texts = Texts {
            topology: ("topology", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
            flows: Some(("flows", "1\n0 1 3 100 1000 0\n")),
            config: None,
            link_events: None,
        };
        let scenario = load_texts(&texts, &NS3).scenario.expect("a scenario");
        let mut out = Vec::new();
        let mut trace = SpanTrace::new(&mut out, &scenario);
        let stretch = |doing, from, to| Stretch { doing, from: SimTime(from), to: SimTime(to) };
        trace.rank(&RankStretch { job: 0, rank: 3, stretch: stretch(Doing::Exposed, 1_000_002, 2_500_000) });
        trace.rank(&RankStretch { job: 0, rank: 3, stretch: stretch(Doing::Idle, 2_500_000, 2_600_000) });
        trace.skipped(SimTime(5), SimTime(7), PartitionId(2), SkippedBy::Memo);
        assert_eq!(trace.finish().expect("memory"), 0);
        let text = String::from_utf8(out).expect("UTF-8");
        assert!(text.contains(r#""pid":1,"tid":3,"ts":1.000002,"dur":1.499998"#), "{text}");
        let json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        let events = json["traceEvents"].as_array().expect("events");
        assert_eq!(events.iter().filter(|event| event["ph"] == "X").count(), 2);
        assert_eq!(events.last().expect("an event")["name"], "skipped, memo");
    }
}

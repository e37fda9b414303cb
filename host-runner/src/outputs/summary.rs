//! `summary.json`: one object that says what a run was and what came of it.

use crate::cpu::peak_rss_mb;
use crate::scenario::{Scenario, tier_name};
use crate::simulate::Outcome;
use crate::workload::activity::Activity;
use crate::workload::report::JobReport;
use serde::Serialize;
use wormhole_kernel::Span;

/// The keys of `summary.json`. Times end in their unit; `_mb` is 10^6 bytes.
#[derive(Clone, Serialize, Debug)]
pub struct Summary {
    /// `ns3` or `ps`.
    pub profile: &'static str,
    /// Congestion control.
    pub cca: &'static str,
    /// Seed of everything random.
    pub seed: u64,
    /// What might be skipped: `off`, `exact` or `bounded`.
    pub accel: &'static str,
    /// As [`Ending::name`](crate::simulate::Ending::name).
    pub ending: String,
    /// Flows of the list, and those that jobs have begun.
    pub flows: usize,
    /// Flows whose every byte was acknowledged.
    pub flows_finished: u64,
    /// Flows given up after too many time-outs.
    pub flows_given_up: u64,
    /// Frames put on a wire.
    pub packet_hops: u64,
    /// Events executed.
    pub events_executed: u64,
    /// Events that acceleration made unnecessary.
    pub events_skipped: u64,
    /// Executed and skipped events over executed ones; 1 without acceleration.
    pub event_ratio: f64,
    /// Simulated time skipped without error, summed over partitions, in nanoseconds.
    pub time_exact_ns: u64,
    /// Simulated time skipped within an error bound, summed over partitions, in nanoseconds.
    pub time_bounded_ns: u64,
    /// Most partitions there were at once.
    pub partitions_max: u32,
    /// Parked partitions that were woken.
    pub wakes: u64,
    /// Those woken before their time.
    pub skip_backs: u64,
    /// Partitions joined because a switch's buffer or PFC coupled them.
    pub buffer_couplings: u64,
    /// Events put back whose order among partitions in step was a guess.
    pub contested: u64,
    /// Look-ups of partitions that found a record and used it.
    pub memo_hits: u64,
    /// Look-ups that found none.
    pub memo_misses: u64,
    /// Partitions that waited for another one of the same key, begun in the same instant.
    pub memo_followers: u64,
    /// Records found and not used.
    pub memo_refused: u64,
    /// Episodes that could not be kept.
    pub memo_unkept: u64,
    /// Hits that were simulated all the same and compared.
    pub memo_checked: u64,
    /// Records in memory at the end, in bytes.
    pub memo_bytes: u64,
    /// Patterns met.
    pub pattern_instances: u64,
    /// Those that had not been met before in this run.
    pub distinct_patterns: u64,
    /// Simulated time skipped by records, summed over partitions, in nanoseconds.
    pub time_memo_ns: u64,
    /// Simulated time at the end, in nanoseconds.
    pub sim_time_ns: u64,
    /// Elapsed time of reading the inputs and making the fabric and the jobs of them, if it was measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load_s: Option<f64>,
    /// Elapsed time of the set-up.
    pub setup_s: f64,
    /// Kernels that ran side by side, each on a thread.
    pub threads: usize,
    /// Processor time of the run, of all threads, set-up excluded.
    pub cpu_s: f64,
    /// Elapsed time of the run, set-up excluded.
    pub wall_s: f64,
    /// Elapsed time of writing all other results, if there are any.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outputs_s: Option<f64>,
    /// Packet-hops per second of processor time.
    pub packet_hops_per_cpu_s: f64,
    /// Most memory this process has had resident.
    pub peak_rss_mb: f64,
    /// Frames lost.
    pub drops: u64,
    /// Frames marked with ECN.
    pub ecn_marks: u64,
    /// PAUSE frames that arrived.
    pub pauses: u64,
    /// Retransmission time-outs.
    pub timeouts: u64,
    /// Mean FCT of the finished flows, in nanoseconds; 0 if there are none.
    pub mean_fct_ns: f64,
    /// Greatest FCT, in nanoseconds.
    pub max_fct_ns: f64,
    /// The jobs.
    pub jobs: Vec<JobSummary>,
}

/// What came of a job: an entry of `jobs` in `summary.json`. Times of ranks are means over them.
#[derive(Clone, PartialEq, Serialize, Debug)]
pub struct JobSummary {
    /// What it is called.
    pub name: String,
    /// Its ranks.
    pub ranks: usize,
    /// From its start to its end, in nanoseconds.
    pub iteration_ns: f64,
    /// Collectives that have ended.
    pub collectives: usize,
    /// A rank computes, and no message of its is under way, in nanoseconds.
    pub computing_ns: f64,
    /// A rank computes while messages are under way, in nanoseconds.
    pub overlapped_ns: f64,
    /// Messages of a rank are under way, and it does not compute, in nanoseconds.
    pub exposed_ns: f64,
    /// A rank does neither, in nanoseconds.
    pub idle_ns: f64,
}

impl JobSummary {
    /// Sums a job up.
    pub fn new(job: &JobReport) -> JobSummary {
        let ns = |span: Span| span.0 as f64 / 1e3;
        let mean = |time: fn(&Activity) -> Span| {
            job.ranks.iter().fold(0.0, |sum, rank| sum + ns(time(rank))) / job.ranks.len().max(1) as f64
        };
        JobSummary {
            name: job.name.clone(),
            ranks: job.ranks.len(),
            iteration_ns: ns(job.time()),
            collectives: job.collectives.len(),
            computing_ns: mean(|rank| rank.computed),
            overlapped_ns: mean(|rank| rank.overlapped),
            exposed_ns: mean(|rank| rank.exposed),
            idle_ns: mean(|rank| rank.idle),
        }
    }
}

impl Summary {
    /// Sums a run up.
    pub fn new(scenario: &Scenario, outcome: &Outcome) -> Summary {
        let (totals, skipped, memo) = (&outcome.totals, &outcome.skipped, &outcome.memo.counts);
        let cpu_s = outcome.cpu.as_secs_f64();
        Summary {
            profile: scenario.profile.name(),
            cca: scenario.cca_name(),
            seed: scenario.seed,
            accel: tier_name(scenario.acceleration.tier),
            ending: outcome.ending.name(),
            flows: outcome.flows_begun,
            flows_finished: totals.flows_finished - totals.flows_given_up,
            flows_given_up: totals.flows_given_up,
            packet_hops: totals.packet_hops,
            events_executed: totals.events,
            events_skipped: skipped.events,
            event_ratio: outcome.event_ratio(),
            time_exact_ns: skipped.time_exact.as_ns(),
            time_bounded_ns: skipped.time_bounded.as_ns(),
            partitions_max: skipped.partitions_max,
            wakes: skipped.wakes,
            skip_backs: skipped.skip_backs,
            buffer_couplings: skipped.buffer_couplings,
            contested: skipped.contested,
            memo_hits: memo.hits,
            memo_misses: memo.misses,
            memo_followers: memo.followers,
            memo_refused: memo.refused,
            memo_unkept: memo.unkept,
            memo_checked: memo.checked,
            memo_bytes: outcome.memo.bytes,
            pattern_instances: memo.instances,
            distinct_patterns: memo.distinct,
            time_memo_ns: memo.time.as_ns(),
            sim_time_ns: outcome.end.as_ns(),
            threads: outcome.threads,
            load_s: None,
            setup_s: outcome.setup.as_secs_f64(),
            cpu_s,
            wall_s: outcome.wall.as_secs_f64(),
            outputs_s: None,
            packet_hops_per_cpu_s: if cpu_s > 0.0 { totals.packet_hops as f64 / cpu_s } else { 0.0 },
            peak_rss_mb: peak_rss_mb(),
            drops: totals.drops,
            ecn_marks: totals.ecn_marks,
            pauses: totals.pauses,
            timeouts: totals.timeouts,
            mean_fct_ns: outcome.flows.mean_fct_ns(),
            max_fct_ns: outcome.flows.max_fct_ns(),
            jobs: outcome.jobs.iter().map(JobSummary::new).collect(),
        }
    }
}

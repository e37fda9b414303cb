//! What is kept of a point that has been run: `points/NUMBER.json`.

use crate::outputs::Summary;
use crate::scenario::Scenario;
use crate::simulate::{Ending, Outcome, Refusal};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use wormhole_kernel::{SimTime, Span};

/// See the module.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct PointRecord {
    /// The point's number, from 0.
    pub(crate) point: usize,
    /// The swept keys with their values, as they would be typed.
    pub(crate) keys: BTreeMap<String, String>,
    /// As [`Ending::name`], or `refused`: the kernel does not simulate this.
    pub(crate) ending: String,
    /// What there is to say of the ending.
    pub(crate) message: Option<String>,
    /// `None` if it was refused.
    pub(crate) results: Option<Results>,
    /// `None` if it was refused.
    pub(crate) costs: Option<Costs>,
}

/// What does not depend on the machine. Times are in nanoseconds.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Results {
    /// Flows that were to run.
    pub(crate) flows: u64,
    /// Flows whose every byte was acknowledged.
    pub(crate) flows_finished: u64,
    /// When the last thing happened.
    pub(crate) sim_time_ns: u64,
    /// Time of the first job; without jobs, from the first start to the last completion.
    pub(crate) iteration_ns: f64,
    /// Of the flows that have ended, as are the others; 0 if there are none.
    pub(crate) mean_fct_ns: f64,
    /// Median, by nearest rank.
    pub(crate) p50_fct_ns: f64,
    /// 99th percentile, by nearest rank.
    pub(crate) p99_fct_ns: f64,
    /// Greatest.
    pub(crate) max_fct_ns: f64,
    /// Frames lost.
    pub(crate) drops: u64,
    /// Frames marked with ECN.
    pub(crate) ecn_marks: u64,
    /// PAUSE frames that arrived.
    pub(crate) pauses: u64,
    /// Collectives of all jobs that have ended.
    pub(crate) collectives: u64,
    /// Mean of their times; 0 if there are none.
    pub(crate) mean_collective_ns: f64,
    /// Greatest of their times.
    pub(crate) max_collective_ns: f64,
}

/// What it took.
#[derive(Serialize, Deserialize, Debug)]
pub(crate) struct Costs {
    /// Events executed.
    pub(crate) events_executed: u64,
    /// Events that acceleration made unnecessary.
    pub(crate) events_skipped: u64,
    /// Executed and skipped events over executed ones.
    pub(crate) event_ratio: f64,
    /// Look-ups of partitions that found a record and used it.
    pub(crate) memo_hits: u64,
    /// Processor time of the run, set-up excluded, in seconds.
    pub(crate) cpu_s: f64,
    /// Elapsed time of the run, set-up excluded, in seconds.
    pub(crate) wall_s: f64,
}

impl PointRecord {
    /// Of a run.
    pub(crate) fn new(
        point: usize,
        keys: BTreeMap<String, String>,
        scenario: &Scenario,
        run: &Result<Outcome, Vec<Refusal>>,
    ) -> PointRecord {
        match run {
            Ok(outcome) => {
                let summary = Summary::new(scenario, outcome);
                let results = Some(Results::new(&summary, outcome));
                let ending = summary.ending.clone();
                let costs = Some(Costs::new(&summary));
                PointRecord { point, keys, ending, message: message(&outcome.ending), results, costs }
            }
            Err(refused) => {
                let why: Vec<String> = refused.iter().map(|refusal| refusal.error.to_string()).collect();
                let message = Some(why.join("; "));
                PointRecord { point, keys, ending: "refused".into(), message, results: None, costs: None }
            }
        }
    }
}

fn message(ending: &Ending) -> Option<String> {
    match ending {
        Ending::Mismatch(message) | Ending::Plugin(message) => Some(message.clone()),
        Ending::OutOf(fault) => Some(fault.to_string()),
        _ => None,
    }
}

impl Results {
    fn new(summary: &Summary, outcome: &Outcome) -> Results {
        let mut fcts: Vec<Span> = outcome.flows.in_memory().iter().map(|record| record.completion.fct).collect();
        fcts.sort_unstable();
        let times: Vec<Span> =
            outcome.jobs.iter().flat_map(|job| job.collectives.iter().map(|collective| collective.time)).collect();
        Results {
            flows: summary.flows as u64,
            flows_finished: summary.flows_finished,
            sim_time_ns: summary.sim_time_ns,
            iteration_ns: summary.jobs.first().map_or_else(|| nanoseconds(completion(outcome)), |job| job.iteration_ns),
            mean_fct_ns: nanoseconds(mean(&fcts)),
            p50_fct_ns: nanoseconds(percentile(&fcts, 50)),
            p99_fct_ns: nanoseconds(percentile(&fcts, 99)),
            max_fct_ns: nanoseconds(percentile(&fcts, 100)),
            drops: summary.drops,
            ecn_marks: summary.ecn_marks,
            pauses: summary.pauses,
            collectives: times.len() as u64,
            mean_collective_ns: nanoseconds(mean(&times)),
            max_collective_ns: nanoseconds(times.iter().copied().max().unwrap_or(Span::ZERO)),
        }
    }
}

impl Costs {
    fn new(summary: &Summary) -> Costs {
        Costs {
            events_executed: summary.events_executed,
            events_skipped: summary.events_skipped,
            event_ratio: summary.event_ratio,
            memo_hits: summary.memo_hits,
            cpu_s: summary.cpu_s,
            wall_s: summary.wall_s,
        }
    }
}

fn nanoseconds(span: Span) -> f64 {
    span.0 as f64 / 1e3
}

/// From the first start to the last completion.
fn completion(outcome: &Outcome) -> Span {
    let done = || outcome.flows.in_memory().iter().map(|record| &record.completion);
    let first = done().map(|done| done.start).min().unwrap_or(SimTime::ZERO);
    done().map(|done| (done.start + done.fct).since(first)).max().unwrap_or(Span::ZERO)
}

/// To the picosecond below; 0 of none.
fn mean(spans: &[Span]) -> Span {
    let sum: u128 = spans.iter().map(|span| u128::from(span.0)).sum();
    Span((sum / spans.len().max(1) as u128) as u64)
}

/// By nearest rank, of spans in order: the least that at least so many per cent of them do not exceed; 0 of none.
fn percentile(sorted: &[Span], percent: usize) -> Span {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(Span::ZERO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let spans = |count: u64| (1..=count).map(Span).collect::<Vec<_>>();
        assert_eq!([50, 99, 100].map(|percent| percentile(&spans(4), percent)), [Span(2), Span(4), Span(4)]);
        assert_eq!([50, 99, 100].map(|percent| percentile(&spans(200), percent)), [Span(100), Span(198), Span(200)]);
        assert_eq!((percentile(&spans(1), 50), percentile(&[], 99)), (Span(1), Span::ZERO));
        assert_eq!((mean(&spans(4)), mean(&[]), mean(&[Span(u64::MAX); 3])), (Span(2), Span::ZERO, Span(u64::MAX)));
    }
}

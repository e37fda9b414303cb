//! Comparing two runs of one scenario, flow by flow.

use crate::input::counted;
use crate::simulate::Outcome;
use crate::workload::messages::MessageName;
use crate::workload::report::{CollectiveReport, JobReport};
use serde::Serialize;
use wormhole_kernel::{FlowEnd, SimTime, Span};

/// What counts of a flow that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowFacts {
    /// Which flow of the scenario.
    pub name: MessageName,
    /// When it began.
    pub start: SimTime,
    /// From then to its end.
    pub fct: Span,
    /// Mean round trip of its packets.
    pub mean_rtt: Span,
    /// Whether every byte was acknowledged; otherwise it was given up.
    pub done: bool,
}

/// What counts of a run.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RunFacts {
    /// [`Ending::name`](crate::simulate::Ending::name).
    pub ending: String,
    /// The flows that have ended, by name.
    pub flows: Vec<FlowFacts>,
    /// How long each job took.
    pub iterations: Vec<Span>,
    /// How long each collective took: its job, its group, which one of the group. In this order.
    pub collectives: Vec<((usize, String, u32), Span)>,
}

impl RunFacts {
    /// Takes them from an outcome.
    pub fn of(outcome: &Outcome) -> RunFacts {
        let facts = outcome.flows.in_memory().iter().map(|record| {
            let done = &record.completion;
            FlowFacts {
                name: record.name,
                start: done.start,
                fct: done.fct,
                mean_rtt: done.mean_rtt,
                done: done.end() == FlowEnd::Done,
            }
        });
        let mut flows: Vec<FlowFacts> = facts.collect();
        flows.sort_by_key(|flow| flow.name);
        let iterations = outcome.jobs.iter().map(JobReport::time).collect();
        let of_job = |(index, job): (usize, &JobReport)| {
            let fact = |c: &CollectiveReport| ((index, c.group.clone(), c.which), c.time);
            job.collectives.iter().map(fact).collect::<Vec<_>>()
        };
        let mut collectives: Vec<_> = outcome.jobs.iter().enumerate().flat_map(of_job).collect();
        collectives.sort();
        RunFacts { ending: outcome.ending.name(), flows, iterations, collectives }
    }

    fn finished(&self) -> impl Iterator<Item = &FlowFacts> {
        self.flows.iter().filter(|flow| flow.done)
    }
}

/// Errors of a run against the plain one, as fractions, over the flows that finish in both. 0 if there are none.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Errors {
    /// Mean over flows of |FCT - plain FCT| / plain FCT.
    pub fct_error_mean: f64,
    /// Median of the same, by nearest rank: the least value that at least half of the flows do not exceed.
    pub fct_error_p50: f64,
    /// 99th percentile of the same, by nearest rank.
    pub fct_error_p99: f64,
    /// Greatest of the same.
    pub fct_error_max: f64,
    /// As the mean, but the FCTs of each run are sorted first: an exchange of two flows' FCTs is no error here.
    pub sorted_fct_error_mean: f64,
    /// Error of the time from the first flow's start to the last flow's end.
    pub last_completion_error: f64,
    /// Greatest error of a job's time; without jobs that of the last completion.
    pub iteration_error: f64,
    /// Mean over collectives of |time - plain time| / plain time.
    pub collective_error_mean: f64,
    /// Greatest of the same.
    pub collective_error_max: f64,
    /// Root of the mean squared difference of the flows' mean round trips, over the mean of the plain ones.
    pub rtt_nrmse: f64,
}

/// How a run compares with the plain one.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Flows that finish in both.
    pub flows: usize,
    /// Errors over them.
    pub errors: Errors,
    /// Whether the same flows end, in the same way, with equal starts and FCTs.
    pub fct_identical: bool,
    /// What is another about how the runs end, a sentence each.
    pub differences: Vec<String>,
}

/// Compares a run with the plain one.
pub fn compare(plain: &RunFacts, other: &RunFacts) -> Comparison {
    let pairs = pairs(plain, other);
    let same = |p: &FlowFacts, o: &FlowFacts| (p.name, p.start, p.fct, p.done) == (o.name, o.start, o.fct, o.done);
    let all_same = plain.flows.iter().zip(&other.flows).all(|(p, o)| same(p, o));
    Comparison {
        flows: pairs.len(),
        errors: errors(&pairs, plain, other),
        fct_identical: all_same && plain.flows.len() == other.flows.len(),
        differences: differences(plain, other, pairs.len()),
    }
}

/// The flows that finish in both runs: of the plain one, of the other.
fn pairs(plain: &RunFacts, other: &RunFacts) -> Vec<(FlowFacts, FlowFacts)> {
    let pairs = in_both(plain.finished(), other.finished(), |flow| flow.name);
    pairs.into_iter().map(|(plain, other)| (*plain, *other)).collect()
}

/// What is in both of two lists that are in order of a key.
fn in_both<'f, T, K: Ord>(
    plain: impl Iterator<Item = &'f T>,
    other: impl Iterator<Item = &'f T>,
    key: impl Fn(&'f T) -> K,
) -> Vec<(&'f T, &'f T)> {
    let mut others = other.peekable();
    let mut pairs = Vec::new();
    for item in plain {
        while others.next_if(|other| key(other) < key(item)).is_some() {}
        pairs.extend(others.next_if(|other| key(other) == key(item)).map(|other| (item, other)));
    }
    pairs
}

fn differences(plain: &RunFacts, other: &RunFacts, in_both: usize) -> Vec<String> {
    let mut found = Vec::new();
    if plain.ending != other.ending {
        found.push(format!("it ends with `{}` instead of `{}`", other.ending, plain.ending));
    }
    let finished = |run: &RunFacts| run.finished().count();
    let (want, got) = (finished(plain), finished(other));
    if want != got {
        found.push(format!("{} finished instead of {want}", counted(got, "flow")));
    } else if want != in_both {
        found.push(format!("{} finished here that did not without acceleration", counted(want - in_both, "flow")));
    }
    let given_up = |run: &RunFacts| run.flows.len() - finished(run);
    let (want, got) = (given_up(plain), given_up(other));
    if want != got {
        found.push(format!("{} given up instead of {want}", counted(got, "flow")));
    }
    found
}

fn errors(pairs: &[(FlowFacts, FlowFacts)], plain: &RunFacts, other: &RunFacts) -> Errors {
    let mut of_flows: Vec<f64> = pairs.iter().map(|(p, o)| relative(p.fct.0, o.fct.0)).collect();
    of_flows.sort_by(f64::total_cmp);
    let iterations = plain.iterations.iter().zip(&other.iterations).map(|(p, o)| relative(p.0, o.0));
    let of_collectives = collective_errors(plain, other);
    let last_completion_error =
        relative(makespan(pairs.iter().map(|(p, _)| p)), makespan(pairs.iter().map(|(_, o)| o)));
    Errors {
        fct_error_mean: mean(&of_flows),
        fct_error_p50: percentile(&of_flows, 50),
        fct_error_p99: percentile(&of_flows, 99),
        fct_error_max: percentile(&of_flows, 100),
        sorted_fct_error_mean: sorted_error(pairs),
        last_completion_error,
        iteration_error: iterations.reduce(f64::max).unwrap_or(last_completion_error),
        collective_error_mean: mean(&of_collectives),
        collective_error_max: of_collectives.iter().copied().fold(0.0, f64::max),
        rtt_nrmse: rtt_nrmse(pairs),
    }
}

/// Of collectives that end in both runs.
fn collective_errors(plain: &RunFacts, other: &RunFacts) -> Vec<f64> {
    let pairs = in_both(plain.collectives.iter(), other.collectives.iter(), |(name, _)| name);
    pairs.into_iter().map(|((_, plain), (_, other))| relative(plain.0, other.0)).collect()
}

/// |other - plain| / plain.
fn relative(plain: u64, other: u64) -> f64 {
    plain.abs_diff(other) as f64 / plain.max(1) as f64
}

fn mean(values: &[f64]) -> f64 {
    // The sum of nothing is a negative zero.
    values.iter().fold(0.0, |sum, value| sum + value) / values.len().max(1) as f64
}

/// Of sorted values the least that at least so many percent do not exceed; 0 if there are none.
fn percentile(sorted: &[f64], percent: usize) -> f64 {
    let rank = (sorted.len() * percent).div_ceil(100);
    sorted.get(rank.saturating_sub(1)).copied().unwrap_or(0.0)
}

fn sorted_error(pairs: &[(FlowFacts, FlowFacts)]) -> f64 {
    let mut plain: Vec<u64> = pairs.iter().map(|(p, _)| p.fct.0).collect();
    let mut other: Vec<u64> = pairs.iter().map(|(_, o)| o.fct.0).collect();
    plain.sort_unstable();
    other.sort_unstable();
    let errors: Vec<f64> = plain.iter().zip(&other).map(|(p, o)| relative(*p, *o)).collect();
    mean(&errors)
}

/// From the first start to the last end, in picoseconds.
fn makespan<'f>(flows: impl Iterator<Item = &'f FlowFacts> + Clone) -> u64 {
    let first = flows.clone().map(|flow| flow.start.0).min().unwrap_or(0);
    let last = flows.map(|flow| flow.start.0 + flow.fct.0).max().unwrap_or(0);
    last - first
}

fn rtt_nrmse(pairs: &[(FlowFacts, FlowFacts)]) -> f64 {
    let plain: Vec<f64> = pairs.iter().map(|(p, _)| p.mean_rtt.0 as f64).collect();
    let squares: Vec<f64> =
        pairs.iter().map(|(p, o)| p.mean_rtt.0.abs_diff(o.mean_rtt.0) as f64).map(|d| d * d).collect();
    let scale = mean(&plain);
    if scale > 0.0 { mean(&squares).sqrt() / scale } else { 0.0 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow(token: u128, start: u64, fct: u64, mean_rtt: u64) -> FlowFacts {
        FlowFacts {
            name: MessageName(token),
            start: SimTime(start),
            fct: Span(fct),
            mean_rtt: Span(mean_rtt),
            done: true,
        }
    }

    fn run(flows: &[FlowFacts]) -> RunFacts {
        RunFacts { ending: "done".into(), flows: flows.to_vec(), iterations: vec![], collectives: vec![] }
    }

    fn near(a: f64, b: f64) -> bool {
        (a - b).abs() < 1e-12
    }

    #[test]
    fn one_flow() {
        let comparison = compare(&run(&[flow(0, 500, 1_000, 200)]), &run(&[flow(0, 500, 1_010, 190)]));
        let e = comparison.errors;
        // 10 of 1000; from the first start on, the end is as late as the FCT says.
        for error in [e.fct_error_mean, e.fct_error_p50, e.fct_error_p99, e.fct_error_max, e.sorted_fct_error_mean] {
            assert!(near(error, 0.01), "{e:?}");
        }
        assert!(near(e.last_completion_error, 0.01) && near(e.rtt_nrmse, 0.05), "{e:?}");
        assert_eq!((comparison.flows, comparison.fct_identical), (1, false));
        assert!(comparison.differences.is_empty());
    }

    #[test]
    fn equal_runs_have_no_error() {
        let facts = run(&[flow(0, 0, 10, 5), flow(1, 3, 20, 6)]);
        let comparison = compare(&facts, &facts);
        assert_eq!(comparison.errors, Errors::default());
        assert!(comparison.fct_identical && comparison.differences.is_empty());
    }

    #[test]
    fn round_trips_alone_do_not_decide_identity() {
        let comparison = compare(&run(&[flow(0, 0, 10, 5)]), &run(&[flow(0, 0, 10, 6)]));
        assert!(comparison.fct_identical && near(comparison.errors.rtt_nrmse, 0.2));
    }

    #[test]
    fn an_earlier_start_is_not_identical() {
        assert!(!compare(&run(&[flow(0, 1, 10, 5)]), &run(&[flow(0, 0, 10, 5)])).fct_identical);
    }

    /// Two flows have changed places: each errs, the sorted FCTs do not, and the last end is the same.
    #[test]
    fn an_exchange_is_no_error_of_the_sorted_fcts() {
        let plain = run(&[flow(0, 100, 1_000, 10), flow(1, 100, 2_000, 30)]);
        let other = run(&[flow(0, 100, 2_000, 30), flow(1, 100, 1_000, 10)]);
        let e = compare(&plain, &other).errors;
        // 1000 of 1000 and 1000 of 2000.
        assert!(near(e.fct_error_mean, 0.75) && near(e.fct_error_p50, 0.5) && near(e.fct_error_max, 1.0), "{e:?}");
        assert_eq!((e.sorted_fct_error_mean, e.last_completion_error), (0.0, 0.0));
        // Both round trips are off by 20, their mean is 20.
        assert!(near(e.rtt_nrmse, 1.0), "{e:?}");
    }

    #[test]
    fn errors_of_four_flows() {
        let plain = run(&[flow(0, 0, 100, 10), flow(1, 0, 200, 10), flow(2, 50, 400, 10), flow(3, 50, 1_000, 10)]);
        let other = run(&[flow(0, 0, 110, 10), flow(1, 0, 200, 10), flow(2, 50, 408, 10), flow(3, 50, 980, 18)]);
        let e = compare(&plain, &other).errors;
        // 0.1, 0, 0.02, 0.02: a tie in the middle.
        assert!(near(e.fct_error_mean, 0.035) && near(e.fct_error_p50, 0.02), "{e:?}");
        assert!(near(e.fct_error_p99, 0.1) && near(e.fct_error_max, 0.1), "{e:?}");
        assert!(near(e.sorted_fct_error_mean, 0.035), "the order is the same: {e:?}");
        // 1030 instead of 1050, from the start at 0; the root of 64 / 4 is 4, of 10.
        assert!(near(e.last_completion_error, 20.0 / 1_050.0) && near(e.rtt_nrmse, 0.4), "{e:?}");
    }

    #[test]
    fn the_last_end_counts_from_each_runs_first_start() {
        let plain = run(&[flow(0, 1_000, 500, 1), flow(1, 2_000, 500, 1)]);
        let later = run(&[flow(0, 1_001, 500, 1), flow(1, 2_001, 500, 1)]);
        assert_eq!(compare(&plain, &later).errors.last_completion_error, 0.0);
    }

    #[test]
    fn jobs_and_their_collectives_are_compared() {
        let facts = |iterations: [u64; 2], times: [u64; 2]| RunFacts {
            iterations: iterations.map(Span).to_vec(),
            collectives: times.iter().zip(0..).map(|(time, which)| ((0, "dp".into(), which), Span(*time))).collect(),
            ..run(&[])
        };
        let e = compare(&facts([1_000, 500], [100, 200]), &facts([1_001, 510], [110, 200])).errors;
        assert!(near(e.iteration_error, 0.02), "the greatest: {e:?}");
        assert!(near(e.collective_error_mean, 0.05) && near(e.collective_error_max, 0.1), "{e:?}");
        // Only what ends in both is compared.
        let mut short = facts([1_000, 500], [100, 200]);
        short.collectives.remove(0);
        assert_eq!(compare(&facts([1_000, 500], [100, 200]), &short).errors.collective_error_max, 0.0);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let hundred: Vec<f64> = (1..=100).map(f64::from).collect();
        assert_eq!([50, 99, 100].map(|p| percentile(&hundred, p)), [50.0, 99.0, 100.0]);
        let more: Vec<f64> = (1..=101).map(f64::from).collect();
        assert_eq!([50, 99, 100].map(|p| percentile(&more, p)), [51.0, 100.0, 101.0]);
        assert_eq!(percentile(&[3.0, 3.0, 7.0], 50), 3.0);
        assert_eq!(percentile(&[], 50), 0.0);
    }

    #[test]
    fn unequal_endings_are_told_and_the_rest_is_compared() {
        let plain = run(&[flow(0, 0, 100, 1), flow(2, 0, 100, 1), flow(3, 0, 100, 1)]);
        let mut other = run(&[flow(1, 0, 900, 1), flow(2, 0, 150, 1)]);
        other.ending = "stalled".into();
        let comparison = compare(&plain, &other);
        assert_eq!(
            comparison.differences,
            ["it ends with `stalled` instead of `done`", "2 flows finished instead of 3"]
        );
        assert_eq!((comparison.flows, comparison.errors.fct_error_mean), (1, 0.5));
        assert!(!comparison.fct_identical);
    }

    #[test]
    fn other_flows_that_finish_are_told() {
        let comparison = compare(&run(&[flow(0, 0, 100, 1)]), &run(&[flow(1, 0, 100, 1)]));
        assert_eq!(comparison.differences, ["1 flow finished here that did not without acceleration"]);
        assert_eq!((comparison.flows, comparison.errors, comparison.fct_identical), (0, Errors::default(), false));
    }

    #[test]
    fn flows_that_are_given_up_have_no_fct_but_are_told() {
        let gone = FlowFacts { done: false, ..flow(1, 0, 999, 1) };
        let plain = run(&[flow(0, 0, 100, 1), flow(1, 0, 100, 1)]);
        let comparison = compare(&plain, &run(&[flow(0, 0, 100, 1), gone]));
        assert_eq!(comparison.differences, ["1 flow finished instead of 2", "1 flow given up instead of 0"]);
        assert_eq!((comparison.flows, comparison.errors), (1, Errors::default()));
        // Given up in both, at other times: no error of an FCT, yet not identical.
        let sooner = FlowFacts { fct: Span(900), ..gone };
        let comparison = compare(&run(&[gone]), &run(&[sooner]));
        assert!(comparison.differences.is_empty() && !comparison.fct_identical);
    }
}

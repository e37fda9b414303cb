//! `verify.json`, and the same for people.

use super::{Comparison, Ensemble, Errors};
use crate::scenario::{Scenario, tier_name};
use crate::simulate::Outcome;
use serde::Serialize;
use std::fmt;
use std::time::Duration;
use wormhole_kernel::accel::Tier;

/// Figures of one tier against the plain run. Ratios are plain over accelerated: above 1 something is saved.
#[derive(Clone, Serialize, Debug)]
pub struct TierReport {
    /// `off`, `exact` or `bounded`.
    pub tier: &'static str,
    /// Events executed and skipped over events executed.
    pub event_ratio: f64,
    /// Elapsed time of the plain run over that of this one.
    pub wall_ratio: f64,
    /// Processor time of the plain run over that of this one.
    pub cpu_ratio: f64,
    /// The errors.
    #[serde(flatten)]
    pub errors: Errors,
    /// Whether the same flows end, in the same way, with equal starts and FCTs.
    pub fct_identical: bool,
    /// What is another about how the runs end.
    pub differences: Vec<String>,
    /// Flows that finish in both runs: those the errors are about.
    pub flows_compared: usize,
    /// Events executed.
    pub events_executed: u64,
    /// Events not executed.
    pub events_skipped: u64,
    /// Simulated time skipped without error, summed over partitions, in nanoseconds.
    pub time_exact_ns: u64,
    /// Simulated time skipped within an error bound, summed over partitions, in nanoseconds.
    pub time_bounded_ns: u64,
    /// Look-ups of partitions that found a memo record and used it.
    pub memo_hits: u64,
    /// Simulated time skipped by memo records, summed over partitions, in nanoseconds.
    pub time_memo_ns: u64,
}

impl TierReport {
    /// Of a run, the plain run, and how they compare.
    pub fn new(tier: Tier, plain: &Outcome, outcome: &Outcome, comparison: Comparison) -> TierReport {
        let Comparison { flows, errors, fct_identical, differences } = comparison;
        TierReport {
            tier: tier_name(tier),
            event_ratio: outcome.event_ratio(),
            wall_ratio: ratio(plain.wall, outcome.wall),
            cpu_ratio: ratio(plain.cpu, outcome.cpu),
            errors,
            fct_identical,
            differences,
            flows_compared: flows,
            events_executed: outcome.totals.events,
            events_skipped: outcome.skipped.events,
            time_exact_ns: outcome.skipped.time_exact.as_ns(),
            time_bounded_ns: outcome.skipped.time_bounded.as_ns(),
            memo_hits: outcome.memo.counts.hits,
            time_memo_ns: outcome.memo.counts.time.as_ns(),
        }
    }

    /// Whether this tier may not change anything.
    fn must_be_identical(&self) -> bool {
        self.tier != tier_name(Tier::Bounded)
    }

    /// What may not be, a sentence each.
    fn faults(&self) -> Vec<String> {
        let tier = self.tier;
        let mut faults: Vec<String> = self.differences.iter().map(|d| format!("tier {tier}: {d}")).collect();
        if self.must_be_identical() && !self.fct_identical {
            faults.push(format!("tier {tier} changes flow completion times: this is a defect of the simulator"));
        }
        faults
    }
}

/// Seconds over seconds; a clock that shows nothing counts as a nanosecond.
fn ratio(plain: Duration, other: Duration) -> f64 {
    plain.as_secs_f64().max(1e-9) / other.as_secs_f64().max(1e-9)
}

/// All figures of a verification: the keys of `verify.json`. Those of the chosen tier are at the top.
#[derive(Clone, Serialize, Debug)]
pub struct Report {
    /// `ns3` or `ps`.
    pub profile: &'static str,
    /// Congestion control.
    pub cca: &'static str,
    /// Seed of everything random.
    pub seed: u64,
    /// Flows of the scenario.
    pub flows: usize,
    /// How the plain run ended.
    pub ending: String,
    /// Events of the plain run.
    pub events_plain: u64,
    /// Processor time of the plain run, set-up excluded.
    pub cpu_plain_s: f64,
    /// Elapsed time of the plain run, set-up excluded.
    pub wall_plain_s: f64,
    /// What the chosen tier's mean FCT error may be, as a fraction.
    pub max_error: Option<f64>,
    /// The tier that was asked for.
    #[serde(flatten)]
    pub chosen: TierReport,
    /// Every tier that ran; the last is the chosen one.
    pub tiers: Vec<TierReport>,
    /// The plain simulation's own spread.
    pub ensemble: Option<Ensemble>,
}

impl Report {
    /// Of the plain run and of the tiers, the chosen one last.
    ///
    /// # Panics
    /// If there are no tiers.
    pub fn new(
        scenario: &Scenario,
        plain: &Outcome,
        tiers: Vec<TierReport>,
        ensemble: Option<Ensemble>,
        max_error: Option<f64>,
    ) -> Report {
        Report {
            profile: scenario.profile.name(),
            cca: scenario.cca_name(),
            seed: scenario.seed,
            flows: plain.flows_begun,
            ending: plain.ending.name(),
            events_plain: plain.totals.events,
            cpu_plain_s: plain.cpu.as_secs_f64(),
            wall_plain_s: plain.wall.as_secs_f64(),
            max_error,
            chosen: tiers.last().expect("a tier").clone(),
            tiers,
            ensemble,
        }
    }

    /// What may not be, a sentence each: a run that ends otherwise than the plain one, a tier that shall be exact and
    /// is not, a mean FCT error of the chosen tier above `max_error`.
    pub fn faults(&self) -> Vec<String> {
        let mut faults: Vec<String> = self.tiers.iter().flat_map(TierReport::faults).collect();
        let (tier, error) = (self.chosen.tier, self.chosen.errors.fct_error_mean);
        if let Some(bound) = self.max_error.filter(|bound| error > *bound) {
            faults.push(format!("tier {tier}: the mean FCT error is {error}, above --max-error {bound}"));
        }
        faults
    }

    /// A row of the table: of the plain run, of each tier, of the ensemble.
    fn row(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        plain: String,
        tier: impl Fn(&TierReport) -> String,
        ensemble: impl Fn(&Ensemble) -> String,
    ) -> fmt::Result {
        write!(f, "{name:<28} {plain:>14}")?;
        for report in &self.tiers {
            write!(f, " {:>14}", tier(report))?;
        }
        if let Some(spread) = &self.ensemble {
            write!(f, " {:>14}", ensemble(spread))?;
        }
        writeln!(f)
    }

    /// A row about work; the ensemble has none.
    fn work(
        &self,
        f: &mut fmt::Formatter<'_>,
        name: &str,
        plain: String,
        tier: impl Fn(&TierReport) -> String,
    ) -> fmt::Result {
        self.row(f, name, plain, tier, |_| String::new())
    }

    /// A row about an error, in percent.
    fn error(&self, f: &mut fmt::Formatter<'_>, name: &str, error: impl Fn(&Errors) -> f64) -> fmt::Result {
        let percent = |errors: &Errors| format!("{:.4} %", error(errors) * 100.0);
        self.row(f, name, String::new(), |tier| percent(&tier.errors), |ensemble| percent(&ensemble.spread))
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { profile, cca, flows, .. } = self;
        writeln!(f, "{profile}, {cca}; compared: {} of {flows} flows", self.chosen.flows_compared)?;
        self.row(f, "", "plain".into(), |t| t.tier.into(), |e| format!("{} runs +-1 ns", e.runs))?;
        self.work(f, "events executed", self.events_plain.to_string(), |t| t.events_executed.to_string())?;
        self.work(f, "events skipped", String::new(), |t| t.events_skipped.to_string())?;
        self.work(f, "event ratio", String::new(), |t| format!("{:.2}", t.event_ratio))?;
        self.work(f, "memo hits", String::new(), |t| t.memo_hits.to_string())?;
        let seconds = |s: f64| format!("{s:.3} s");
        self.work(f, "processor time, ratio", seconds(self.cpu_plain_s), |t| format!("{:.2}", t.cpu_ratio))?;
        self.work(f, "elapsed time, ratio", seconds(self.wall_plain_s), |t| format!("{:.2}", t.wall_ratio))?;
        let yes = |identical| if identical { "yes" } else { "no" };
        self.work(f, "FCTs identical", String::new(), |t| yes(t.fct_identical).into())?;
        self.error(f, "FCT error, mean", |e| e.fct_error_mean)?;
        self.error(f, "FCT error, median", |e| e.fct_error_p50)?;
        self.error(f, "FCT error, 99th percentile", |e| e.fct_error_p99)?;
        self.error(f, "FCT error, greatest", |e| e.fct_error_max)?;
        self.error(f, "sorted FCTs, mean error", |e| e.sorted_fct_error_mean)?;
        self.error(f, "last completion, error", |e| e.last_completion_error)?;
        self.error(f, "iteration, error", |e| e.iteration_error)?;
        self.error(f, "collectives, mean error", |e| e.collective_error_mean)?;
        self.error(f, "collectives, greatest error", |e| e.collective_error_max)?;
        self.error(f, "round trips, NRMSE", |e| e.rtt_nrmse)
    }
}

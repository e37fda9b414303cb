//! What acceleration saves and what it changes: runs with and without it, compared flow by flow.

mod compare;
mod ensemble;
mod report;

pub use compare::{Comparison, Errors, FlowFacts, RunFacts, compare};
pub use ensemble::{Ensemble, perturbed};
pub use report::{Report, TierReport};

use crate::scenario::Scenario;
use crate::simulate::{Outcome, Refusal};
use wormhole_kernel::accel::{Acceleration, Tier};

/// Makes a run: [`simulate`](crate::simulate::simulate), with whatever shows progress.
pub type Runner<'r> = dyn FnMut(&Scenario) -> Result<Outcome, Vec<Refusal>> + 'r;

/// What a verification has shown.
pub struct Verification {
    /// The run without acceleration.
    pub plain: Outcome,
    /// All figures.
    pub report: Report,
}

/// Runs a scenario without acceleration, then with every tier up to the one it asks for, one after the other; then
/// `ensemble` further runs without acceleration whose flows start up to 1 ns off. `max_error` goes to
/// [`Report::faults`].
///
/// Tier [`Off`](Tier::Off) is compared with itself: a second run.
///
/// # Errors
/// Everything the kernel refuses.
pub fn verify(
    scenario: &Scenario,
    ensemble: u32,
    max_error: Option<f64>,
    run: &mut Runner<'_>,
) -> Result<Verification, Vec<Refusal>> {
    let plain_scenario = at_tier(scenario, Tier::Off);
    let plain = run(&plain_scenario)?;
    let facts = RunFacts::of(&plain);
    let mut tiers = Vec::new();
    for &tier in tiers_up_to(scenario.acceleration.tier) {
        let outcome = run(&at_tier(scenario, tier))?;
        tiers.push(TierReport::new(tier, &plain, &outcome, compare(&facts, &RunFacts::of(&outcome))));
    }
    let mut spread = Ensemble::default();
    for number in 0..ensemble {
        let outcome = run(&perturbed(&plain_scenario, number))?;
        spread.add(&compare(&facts, &RunFacts::of(&outcome)).errors);
    }
    let spread = (ensemble > 0).then_some(spread);
    let report = Report::new(scenario, &plain, tiers, spread, max_error);
    Ok(Verification { plain, report })
}

fn tiers_up_to(tier: Tier) -> &'static [Tier] {
    match tier {
        Tier::Off => &[Tier::Off],
        Tier::Exact => &[Tier::Exact],
        Tier::Bounded => &[Tier::Exact, Tier::Bounded],
    }
}

/// The same scenario with another tier.
pub fn at_tier(scenario: &Scenario, tier: Tier) -> Scenario {
    let acceleration = Acceleration { tier, ..scenario.acceleration };
    Scenario { acceleration, ..scenario.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::reference::NS3;
    use crate::scenario::{Options, Profile};
    use crate::simulate::{Ending, simulate};
    use wormhole_kernel::accel::Detector;
    use wormhole_kernel::{SimTime, Span};

    /// Two flows of 10 kB that contend for a port, one of them 5 us later.
    fn scenario(tier: Tier) -> Scenario {
        let acceleration = Acceleration { tier, detector: Detector::CYCLE };
        let texts = Texts {
            topology: ("topology", "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n"),
            flows: Some(("flows", "2\n0 2 3 100 10000 0.000001\n1 2 3 100 10000 0.000006\n")),
            config: None,
            link_events: None,
        };
        let options = Options { profile: Profile::Ps, acceleration, ..NS3 };
        load_texts(&texts, &options).scenario.expect("a scenario")
    }

    fn plain(scenario: &Scenario) -> Result<Outcome, Vec<Refusal>> {
        simulate(scenario, &mut ())
    }

    #[test]
    fn every_tier_up_to_the_chosen_one_runs_once() {
        for (chosen, want) in [
            (Tier::Off, vec![Tier::Off, Tier::Off]),
            (Tier::Exact, vec![Tier::Off, Tier::Exact]),
            (Tier::Bounded, vec![Tier::Off, Tier::Exact, Tier::Bounded]),
        ] {
            let mut ran = Vec::new();
            let mut run = |scenario: &Scenario| {
                ran.push(scenario.acceleration.tier);
                plain(scenario)
            };
            let report = verify(&scenario(chosen), 0, None, &mut run).expect("runs").report;
            assert_eq!(ran, want);
            assert_eq!((report.chosen.tier, report.tiers.len()), (crate::scenario::tier_name(chosen), want.len() - 1));
            assert!(report.ensemble.is_none());
        }
    }

    #[test]
    fn the_ensemble_runs_without_acceleration() {
        let (mut ran, given) = (Vec::new(), scenario(Tier::Exact));
        let mut run = |scenario: &Scenario| {
            ran.push((scenario.acceleration.tier, scenario.flows.iter().map(|f| f.start).collect::<Vec<_>>()));
            plain(scenario)
        };
        let report = verify(&given, 3, None, &mut run).expect("runs").report;
        let ensemble = report.ensemble.expect("an ensemble");
        assert_eq!((ensemble.runs, ran.len()), (3, 5));
        assert!(ran[2..].iter().all(|(tier, _)| *tier == Tier::Off));
        assert!(ran[2..].iter().any(|(_, starts)| *starts != ran[0].1), "some start is another");
    }

    /// The first flow ends 1 ns late in every run of this tier.
    fn late(tier: Tier) -> impl FnMut(&Scenario) -> Result<Outcome, Vec<Refusal>> {
        move |scenario| {
            let mut outcome = plain(scenario)?;
            if scenario.acceleration.tier == tier {
                outcome.flows.in_memory_mut()[0].completion.fct += Span::from_ns(1);
            }
            Ok(outcome)
        }
    }

    #[test]
    fn an_exact_tier_that_is_not_exact_is_a_fault() {
        let report = verify(&scenario(Tier::Bounded), 0, None, &mut late(Tier::Exact)).expect("runs").report;
        let faults = report.faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("exact"), "{faults:?}");
        assert!(!report.tiers[0].fct_identical && report.chosen.fct_identical);
    }

    #[test]
    fn a_bounded_tier_may_err_within_its_bound() {
        let verified = |bound| verify(&scenario(Tier::Bounded), 0, bound, &mut late(Tier::Bounded)).expect("runs");
        assert!(verified(None).report.faults().is_empty());
        let error = verified(None).report.chosen.errors.fct_error_mean;
        assert!(error > 0.0 && error < 0.001, "1 ns of two flows of some microseconds: {error}");
        assert!(verified(Some(error)).report.faults().is_empty());
        let faults = verified(Some(error / 2.0)).report.faults();
        assert_eq!(faults.len(), 1, "{faults:?}");
        assert!(faults[0].contains("--max-error"), "{faults:?}");
    }

    #[test]
    fn a_run_that_ends_otherwise_is_a_fault() {
        let mut run = |scenario: &Scenario| {
            let mut outcome = plain(scenario)?;
            if scenario.acceleration.tier == Tier::Bounded {
                outcome.ending = Ending::StopTime;
                outcome.end = SimTime::ZERO;
                outcome.flows.in_memory_mut().pop();
            }
            Ok(outcome)
        };
        let report = verify(&scenario(Tier::Bounded), 0, None, &mut run).expect("runs").report;
        let faults = report.faults();
        assert_eq!(faults.len(), 2, "{faults:?}");
        assert!(faults[0].contains("`stop_time`") && faults[1].contains("1 flow finished"), "{faults:?}");
    }
}

//! The plain simulation's own spread: the same flows, started a nanosecond sooner or later.

use super::Errors;
use crate::scenario::Scenario;
use serde::Serialize;
use wormhole_kernel::model::ConfigHash;
use wormhole_kernel::units::PS_PER_NS;

/// How far perturbed plain runs are from the plain run: the greatest of each error.
#[derive(Clone, Copy, PartialEq, Debug, Default, Serialize)]
pub struct Ensemble {
    /// Perturbed runs.
    pub runs: u32,
    /// Greatest errors among them.
    #[serde(flatten)]
    pub spread: Errors,
}

impl Ensemble {
    /// Takes in one more run.
    pub fn add(&mut self, errors: &Errors) {
        let most = &mut self.spread;
        *most = Errors {
            fct_error_mean: most.fct_error_mean.max(errors.fct_error_mean),
            fct_error_p50: most.fct_error_p50.max(errors.fct_error_p50),
            fct_error_p99: most.fct_error_p99.max(errors.fct_error_p99),
            fct_error_max: most.fct_error_max.max(errors.fct_error_max),
            sorted_fct_error_mean: most.sorted_fct_error_mean.max(errors.sorted_fct_error_mean),
            last_completion_error: most.last_completion_error.max(errors.last_completion_error),
            iteration_error: most.iteration_error.max(errors.iteration_error),
            collective_error_mean: most.collective_error_mean.max(errors.collective_error_mean),
            collective_error_max: most.collective_error_max.max(errors.collective_error_max),
            rtt_nrmse: most.rtt_nrmse.max(errors.rtt_nrmse),
        };
        self.runs += 1;
    }
}

/// The scenario with the start of every flow moved by -1, 0 or +1 ns, by chance from its seed and the run's number.
/// No flow starts before time 0. Flows are in order of start again and keep their tokens. Flows of jobs start 0 to 2 ns
/// late instead: what has not happened cannot have consequences.
pub fn perturbed(scenario: &Scenario, run: u32) -> Scenario {
    let mut scenario = scenario.clone();
    let chance = ConfigHash::new().with(scenario.seed).with(run.into());
    for flow in &mut scenario.flows {
        // The high bits of this hash are the good ones.
        let nanoseconds = (chance.with(flow.token).finish() >> 32) % 3;
        flow.start.0 = (flow.start.0 + nanoseconds * PS_PER_NS).saturating_sub(PS_PER_NS);
    }
    scenario.flows.sort_by_key(|flow| flow.start);
    scenario.perturbation = Some(chance.finish());
    scenario
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::reference::NS3;

    /// Flows between two hosts: so many, at 0 and then every nanosecond.
    fn scenario(flows: u64) -> Scenario {
        let row = |n: u64| format!("0 1 3 100 1000 {:.9}\n", n as f64 * 1e-9);
        let flows = format!("{flows}\n{}", (0..flows).map(row).collect::<String>());
        let texts = Texts {
            topology: ("topology", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
            flows: Some(("flows", &flows)),
            config: None,
            link_events: None,
        };
        load_texts(&texts, &NS3).scenario.expect("a scenario")
    }

    #[test]
    fn starts_move_by_a_nanosecond_at_most_each_way_equally_often() {
        let plain = scenario(3_000);
        let moved = perturbed(&plain, 7);
        assert!(moved.flows.is_sorted_by_key(|flow| flow.start));
        let mut counts = [0; 3];
        for flow in moved.flows.iter().filter(|flow| flow.token > 0) {
            let before = plain.flows[flow.token as usize].start.0;
            assert_eq!((flow.start.0 + PS_PER_NS - before) % PS_PER_NS, 0);
            counts[((flow.start.0 + PS_PER_NS - before) / PS_PER_NS) as usize] += 1;
        }
        // A third of 2999 each; the standard deviation is 26.
        assert!(counts.iter().all(|n| (900..1_100).contains(n)), "{counts:?}");
        let mut tokens: Vec<u64> = moved.flows.iter().map(|flow| flow.token).collect();
        tokens.sort_unstable();
        assert!(tokens.into_iter().eq(0..3_000));
    }

    #[test]
    fn a_start_at_zero_never_goes_below() {
        let plain = scenario(1);
        let starts: Vec<u64> = (0..50).map(|run| perturbed(&plain, run).flows[0].start.0).collect();
        let start = plain.flows[0].start.0;
        assert!(starts.iter().all(|s| *s == start || *s == start + PS_PER_NS || s + PS_PER_NS == start), "{starts:?}");
        let mut zero = plain.clone();
        zero.flows[0].start.0 = 0;
        let starts: Vec<u64> = (0..50).map(|run| perturbed(&zero, run).flows[0].start.0).collect();
        assert!(starts.contains(&0) && starts.contains(&PS_PER_NS), "{starts:?}");
        assert!(starts.iter().all(|s| *s <= PS_PER_NS), "{starts:?}");
    }

    #[test]
    fn chance_comes_from_the_seed_and_the_number_of_the_run() {
        let starts = |seed, run| {
            let plain = Scenario { seed, ..scenario(20) };
            perturbed(&plain, run).flows.iter().map(|flow| (flow.token, flow.start)).collect::<Vec<_>>()
        };
        assert_eq!(starts(1, 0), starts(1, 0));
        assert_ne!(starts(1, 0), starts(1, 1));
        assert_ne!(starts(1, 0), starts(2, 0));
    }

    #[test]
    fn the_spread_is_the_greatest_of_each_error() {
        let mut ensemble = Ensemble::default();
        ensemble.add(&Errors { fct_error_mean: 0.1, rtt_nrmse: 0.5, ..Errors::default() });
        ensemble.add(&Errors { fct_error_mean: 0.3, rtt_nrmse: 0.2, fct_error_max: 0.9, ..Errors::default() });
        let spread = Errors { fct_error_mean: 0.3, rtt_nrmse: 0.5, fct_error_max: 0.9, ..Errors::default() };
        assert_eq!(ensemble, Ensemble { runs: 2, spread });
    }
}

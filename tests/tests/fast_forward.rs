//! Fast-forwarding against simulating everything, on swarms of random scenarios (see `wormhole_tests::swarm` for how
//! to run more seeds or a single one).

use wormhole_kernel::accel::{Skipped, Tier};
use wormhole_kernel::kernel::Step;
use wormhole_kernel::{Completion, FlowEnd, SimTime};
use wormhole_tests::drive::{Seen, Tally, compare, drive};
use wormhole_tests::recurring::{self, Action};
use wormhole_tests::swarm::{Profile, Scenario, for_all_seeds};

/// What a caller does to a scenario on the way.
type Plan = fn(&Scenario) -> Vec<(SimTime, Action)>;

/// Compares the exact tier with the plain run on all seeds; without a plan, all flows are known beforehand.
fn compare_all(seeds: u64, make: fn(u64) -> Scenario, plan: Option<Plan>, tally: &mut Tally) {
    for_all_seeds(seeds, make, |scenario| {
        let plan = plan.map(|plan| plan(scenario));
        let fast = drive(scenario, Tier::Exact, plan.as_deref());
        compare(&drive(scenario, Tier::Off, plan.as_deref()), &fast, tally);
    });
}

#[test]
fn exact_equals_plain_on_any_traffic() {
    let mut tally = Tally::default();
    compare_all(100, Scenario::new, None, &mut tally);
    tally.assert_skipped("any traffic", 40);
}

#[test]
fn exact_equals_plain_on_recurring_traffic() {
    let mut tally = Tally::default();
    compare_all(100, recurring::scenario, None, &mut tally);
    tally.assert_skipped("known beforehand", 4);
}

#[test]
fn exact_equals_plain_when_nothing_is_known_beforehand() {
    let mut tally = Tally::default();
    compare_all(100, recurring::scenario, Some(recurring::interrupts), &mut tally);
    tally.assert_skipped("not known beforehand", 4);
    assert!(tally.runs < 40 || 10 * tally.runs_with_skip_backs >= tally.runs, "few are interrupted");
}

/// Partitions are taken out and put back, which is not to be noticed, whether anything is skipped besides or not.
#[test]
fn partitions_survive_being_set_up_anew() {
    let mut tally = Tally::default();
    for make in [recurring::scenario, Scenario::new] {
        compare_all(60, make, Some(recurring::interrupts_and_renewals), &mut tally);
    }
    tally.assert_skipped("set up anew", 8);
    assert!(tally.renewed as u64 > 5 * tally.runs, "few partitions are set up anew: {tally:?}");
}

/// Relative errors of the FCTs, by flow, of a bounded run.
fn errors(plain: &Seen, fast: &Seen) -> Vec<f64> {
    let mut fcts = vec![None; plain.done.len()];
    fast.done.iter().for_each(|done| fcts[done.token as usize] = Some(done));
    let error = |plain: &Completion| {
        let fast = fcts[plain.token as usize].expect("every flow ends");
        assert_eq!((fast.bytes, fast.start, fast.end()), (plain.bytes, plain.start, plain.end()));
        (fast.fct.0 as f64 - plain.fct.0 as f64).abs() / plain.fct.0 as f64
    };
    plain.done.iter().map(error).collect()
}

/// No flow is faster than light.
fn assert_possible(scenario: &Scenario, run: &Seen) {
    // Sprayed packets may find a faster path than the one asked about.
    for done in run.done.iter().filter(|_| scenario.profile != Profile::PsSpray) {
        let ideal = run.ideals[done.token as usize].expect("a path");
        assert!(done.end() != FlowEnd::Done || done.fct >= ideal, "flow {}: {:?} < {ideal:?}", done.token, done.fct);
    }
    let Skipped { time_exact, time_bounded, partitions_max, .. } = run.skipped;
    let most = u128::from(run.end.now.0) * u128::from(partitions_max);
    assert!(u128::from(time_exact.0) + u128::from(time_bounded.0) <= most, "more time skipped than there was");
}

#[test]
fn bounded_runs_end_with_all_bytes() {
    let (mut tally, mut all) = (Tally::default(), vec![]);
    for_all_seeds(100, recurring::scenario, |scenario| {
        let (plain, fast) = (drive(scenario, Tier::Off, None), drive(scenario, Tier::Bounded, None));
        assert_possible(scenario, &fast);
        tally.add(&fast);
        // Whether lost frames or deadlocks keep a flow from its end is chance.
        if plain.done.len() == scenario.flows.len() && !scenario.lossy {
            assert_eq!((fast.end.step, fast.done.len()), (Ok(Step::Idle), plain.done.len()));
            all.extend(errors(&plain, &fast));
        }
    });
    tally.assert_skipped("bounded", 3);
    all.sort_by(f64::total_cmp);
    let mean = all.iter().sum::<f64>() / all.len().max(1) as f64;
    println!("{} flows, FCT errors: mean {mean:.5}, largest {:?}", all.len(), all.last());
}

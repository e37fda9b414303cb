//! Memoisation against simulating everything.

use wormhole_kernel::SimTime;
use wormhole_kernel::accel::Tier;
use wormhole_kernel::memo::{Memoisation, Precision};
use wormhole_memo_fmt::Store;
use wormhole_tests::drive::{Drive, Seen, Tally, compare, drive};
use wormhole_tests::recurring::{self, Action};
use wormhole_tests::swarm::{Scenario, for_all_seeds};

/// Memory for records, in words.
const ROOM: usize = 1 << 18;

/// A run of the exact tier with a store.
fn look_up(scenario: &Scenario, plan: Option<&[(SimTime, Action)]>, store: &mut Store<'_>, check: u32) -> Seen {
    let how = Memoisation { precision: Precision::Exact, check };
    let mut seen = scenario.with_models(Drive { tier: Tier::Exact, plan, memo: Some((store, how)) });
    seen.sort_instants();
    assert_eq!(seen.memoised.mismatches, 0, "record {:016x}", seen.memoised.mismatch);
    seen
}

/// What a caller does to a scenario on the way.
type Plan = fn(&Scenario) -> Vec<(SimTime, Action)>;

/// Runs every scenario twice with one store, and a third time with every hit simulated all the same: nobody can tell
/// them from a plain run.
fn compare_all(seeds: u64, make: fn(u64) -> Scenario, plan: Option<Plan>) -> [Tally; 3] {
    let mut tallies: [Tally; 3] = Default::default();
    for_all_seeds(seeds, make, |scenario| {
        let plan = plan.map(|plan| plan(scenario));
        let mut plain = drive(scenario, Tier::Off, plan.as_deref());
        plain.sort_instants();
        let mut words = vec![0; ROOM];
        let mut store = Store::new(&mut words);
        for (tally, check) in tallies.iter_mut().zip([0, 0, 1_000_000]) {
            compare(&plain, &look_up(scenario, plan.as_deref(), &mut store, check), tally);
        }
    });
    for tally in &tallies {
        println!("{tally:?}");
        assert!(20 * tally.guessed_wrong <= tally.runs.max(20), "too many differ: {tally:?}");
    }
    tallies
}

#[test]
fn hits_equal_simulation_on_any_traffic() {
    let [_, again, checked] = compare_all(60, Scenario::new, None);
    assert!(again.runs < 40 || again.hits >= again.runs && checked.checked >= checked.runs);
}

#[test]
fn hits_equal_simulation_on_recurring_traffic() {
    let [first, again, _] = compare_all(60, recurring::scenario, None);
    assert!(again.runs < 40 || again.hits >= 2 * again.runs && first.followers > 0);
}

#[test]
fn hits_are_broken_off_when_nothing_is_known_beforehand() {
    let [first, again, _] = compare_all(60, recurring::scenario, Some(recurring::interrupts));
    assert!(again.runs < 40 || again.hits >= again.runs && first.followers > 0);
    assert!(again.runs < 40 || 10 * again.runs_with_skip_backs >= again.runs, "few are interrupted");
}

//! Fast-forwarding against simulating everything, on swarms of random scenarios (see `wormhole_tests::swarm` for how
//! to run more seeds or a single one).

use std::fmt::Write;
use wormhole::load::{Texts, load_texts};
use wormhole::scenario::{self, Options};
use wormhole_kernel::accel::{Acceleration, Detector, Skipped, Tier};
use wormhole_kernel::kernel::Step;
use wormhole_kernel::{Completion, FlowEnd, SimTime, Span};
use wormhole_tests::drive::{Seen, Tally, compare, drive};
use wormhole_tests::phases::HPCC;
use wormhole_tests::recurring::{self, Action};
use wormhole_tests::swarm::{Profile, Scenario, for_all_seeds};
use wormhole_tests::{run, usable};

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

/// Marks from 20 kB on: the rate swings.
const DCQCN: &str = "CC_MODE 1\nRP_TIMER 300\nKMIN_MAP 2 4000000000 20 10000000000 20\n\
    KMAX_MAP 2 4000000000 80 10000000000 80\nPMAX_MAP 2 4000000000 0.2 10000000000 0.2\n";

/// Bytes of flows and their starts, in microseconds: from the hosts 1, 2, 3 and so on of a star to the host 0.
type Flows = &'static [(u64, u64)];

const LONE: Flows = &[(3_000_000, 0)];
const PAIR: Flows = &[(18_000_000, 0), (18_000_000, 0)];
const LATE: Flows = &[(18_000_000, 0), (15_000_000, 300), (1_000_000, 20_000)];
const LEAVING: Flows = &[(9_000_000, 0), (400_000, 0), (200_000, 5)];
const LONG_LEAVING: Flows = &[(30_000_000, 0), (400_000, 0), (200_000, 5)];

/// A star of five hosts on links of 10 Gb/s and 1 us, but host 0 on one of `sink` Gb/s.
fn star(config: &str, sink: u64, flows: Flows, acceleration: Acceleration) -> scenario::Scenario {
    let mut topology = format!("6 1 5\n5\n0 5 {sink}Gbps 0.001ms 0\n");
    (1..5).for_each(|host| writeln!(topology, "{host} 5 10Gbps 0.001ms 0").expect("a string takes it"));
    let mut list = format!("{}\n", flows.len());
    for (src, (bytes, start_us)) in (1..).zip(flows) {
        writeln!(list, "{src} 0 3 100 {bytes} 0.{start_us:06}").expect("a string takes it");
    }
    let texts = Texts {
        topology: ("topology.txt", &topology),
        flows: Some(("flow.txt", &list)),
        config: Some(("config.txt", config)),
        link_events: None,
    };
    usable(load_texts(&texts, &Options { profile: scenario::Profile::Ps, acceleration, ..Options::PLAIN }))
}

/// What a detector takes for steady, and what comes of it: nanoseconds skipped, events executed, times that a partition
/// was woken, and the sum of the FCTs in nanoseconds.
fn decisions(detector: Detector, config: &str, sink: u64, flows: Flows) -> [u64; 4] {
    let outcome = run(&star(config, sink, flows, Acceleration { tier: Tier::Bounded, detector })).outcome;
    let fcts = outcome.flows.in_memory().iter().map(|record| record.completion.fct.as_ns()).sum();
    [outcome.skipped.time_bounded.as_ns(), outcome.totals.events, outcome.skipped.wakes, fcts]
}

/// A snapshot: another choice of what is steady shows here, though it need not be worse.
#[test]
fn detectors_decide_as_they_did() {
    let paper = Detector::Paper { theta: 50_000, samples: 200, interval: Span::from_us(1) };
    let cases: &[(Detector, &str, u64, Flows, [u64; 4])] = &[
        (Detector::CYCLE, HPCC, 10, LONE, [1_724_825, 6_672, 1, 2_745_018]),
        (Detector::CYCLE, HPCC, 10, PAIR, [22_097_688, 72_225, 3, 65_300_123]),
        (Detector::CYCLE, HPCC, 4, PAIR, [68_205_937, 32_468, 7, 155_632_942]),
        (Detector::CYCLE, HPCC, 10, LATE, [10_215_854, 153_241, 2, 63_470_271]),
        (Detector::CYCLE, HPCC, 4, LATE, [50_351_879, 67_024, 5, 148_925_870]),
        (Detector::CYCLE, HPCC, 4, LEAVING, [17_399_967, 11_622, 1, 25_114_886]),
        (Detector::CYCLE, DCQCN, 4, LONG_LEAVING, [35_396_322, 138_505, 1, 69_234_246]),
        (paper, HPCC, 10, LONE, [2_311_889, 2_814, 1, 2_744_966]),
        (paper, HPCC, 10, PAIR, [29_887_809, 20_581, 1, 65_240_265]),
        (paper, HPCC, 10, LATE, [5_166_006, 190_231, 2, 61_705_235]),
        (paper, DCQCN, 10, PAIR, [24_919_045, 37_115, 1, 57_177_451]),
        (paper, DCQCN, 4, LONG_LEAVING, [48_172_931, 44_657, 1, 61_050_140]),
    ];
    let found: Vec<_> =
        cases.iter().map(|&(detector, config, sink, flows, _)| decisions(detector, config, sink, flows)).collect();
    assert_eq!(found, cases.iter().map(|&(.., expected)| expected).collect::<Vec<_>>());
}

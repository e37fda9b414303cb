//! Memoisation against simulating everything.

use std::path::{Path, PathBuf};
use wormhole::memo::{Memo, MemoOptions};
use wormhole::scenario::{self, Profile};
use wormhole::simulate::{Ending, Outcome, simulate, simulate_memoised};
use wormhole_kernel::accel::Tier;
use wormhole_kernel::memo::{MemoStore, Memoisation, Memoised, Precision, record_name};
use wormhole_kernel::{BitRate, FlowSpec, LinkSpec, NodeId, NodeKind, SimTime, Span};
use wormhole_memo_fmt::Store;
use wormhole_tests::ccas;
use wormhole_tests::drive::{Drive, Seen, Tally, assert_identical, compare, drive};
use wormhole_tests::phases::{DCQCN, DCTCP, HPCC, Stars, phases, ten_phases};
use wormhole_tests::recurring::{self, Action};
use wormhole_tests::swarm::{self, Scenario, Shape, for_all_seeds};

/// Memory for records, in words.
const ROOM: usize = 1 << 18;

/// What is done on the way: with nothing, all flows are known from the start.
type Steps<'p> = Option<&'p [(SimTime, Action)]>;

/// A run of the exact tier with a store, whatever becomes of its checks.
fn check(scenario: &Scenario, plan: Steps<'_>, store: &mut Store<'_>, check: u32) -> Seen {
    let how = Memoisation { precision: Precision::Exact, check };
    let mut seen = scenario.with_models(Drive { tier: Tier::Exact, plan, memo: Some((store, how)) });
    seen.sort_instants();
    seen
}

/// A run of the exact tier with a store.
fn look_up(scenario: &Scenario, plan: Steps<'_>, store: &mut Store<'_>, share: u32) -> Seen {
    let seen = check(scenario, plan, store, share);
    assert_eq!(seen.memoised.mismatches, 0, "record {:016x}", seen.memoised.mismatch);
    seen
}

/// A run in which everything is simulated.
fn plain_run(scenario: &Scenario, plan: Steps<'_>) -> Seen {
    let mut plain = drive(scenario, Tier::Off, plan);
    plain.sort_instants();
    plain
}

/// What a caller does to a scenario on the way.
type Plan = fn(&Scenario) -> Vec<(SimTime, Action)>;

/// Runs every scenario twice with one store, and a third time with every hit simulated all the same: nobody can tell
/// them from a plain run.
fn compare_all(seeds: u64, make: fn(u64) -> Scenario, plan: Option<Plan>) -> [Tally; 3] {
    let mut tallies: [Tally; 3] = Default::default();
    for_all_seeds(seeds, make, |scenario| {
        let plan = plan.map(|plan| plan(scenario));
        let plain = plain_run(scenario, plan.as_deref());
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

/// A memo file of a test's own; it is removed at the end.
struct File(PathBuf);

impl File {
    fn new(name: &str) -> File {
        File(Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("{name}-{}.whm", std::process::id())))
    }

    /// A run that knows the file's records and adds its own.
    fn run(&self, scenario: &scenario::Scenario) -> Outcome {
        let options = MemoOptions { keys: None, check: 0, limit_words: 1 << 22 };
        let (memo, found) = Memo::open(options, Some(&self.0), scenario.acceleration.tier);
        assert!(found.all().is_empty(), "{found:?}");
        let mut memo = memo.expect("a memo");
        let outcome = done(simulate_memoised(scenario, &mut memo, &mut ()));
        let found = memo.finish().expect("the file is written");
        assert!(found.all().is_empty(), "{found:?}");
        outcome
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // What is left behind lies in cargo's own folder and does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

fn done<E: std::fmt::Debug>(outcome: Result<Outcome, E>) -> Outcome {
    let outcome = outcome.expect("the kernel takes the scenario");
    assert_eq!(outcome.ending, Ending::Done);
    outcome
}

/// A run without memoisation.
fn simulated(scenario: &scenario::Scenario) -> Outcome {
    done(simulate(scenario, &mut ()))
}

/// FCTs in the order of the flows' tokens.
fn fcts(outcome: &Outcome) -> Vec<Span> {
    let mut fcts = vec![Span::ZERO; outcome.flows.len()];
    outcome.flows.in_memory().iter().for_each(|record| fcts[record.completion.token as usize] = record.completion.fct);
    fcts
}

fn assert_same_fcts(plain: &Outcome, fast: &Outcome) {
    let (plain, fast) = (fcts(plain), fcts(fast));
    let differ = plain.iter().zip(&fast).filter(|(a, b)| a != b).count();
    let first = plain.iter().zip(&fast).position(|(a, b)| a != b);
    assert_eq!(
        first,
        None,
        "{differ} of {} flows differ, the first by {:?}",
        plain.len(),
        first.map(|at| (plain[at], fast[at]))
    );
}

fn assert_close(what: &str, plain: f64, fast: f64, share: f64) {
    let error = (fast - plain).abs() / plain;
    println!("{what}: {error:.6} off");
    assert!(error <= share, "{what}: {plain} simulated, {fast} here");
}

/// Errors that the bounded tier with coarse keys may make.
fn assert_close_fcts(plain: &Outcome, fast: &Outcome) {
    let errors = fcts(plain).into_iter().zip(fcts(fast)).map(|(a, b)| a.0.abs_diff(b.0) as f64 / a.0 as f64);
    let mean = errors.sum::<f64>() / plain.flows.len() as f64;
    println!("mean error of FCTs: {mean:.6}");
    assert!(mean <= 0.005, "mean error of FCTs {mean}");
    // Since the first flow starts: profile ns3 begins after 2 s.
    let ends = [plain, fast].map(|run| {
        let last = run.flows.in_memory().iter().map(|r| r.completion.start + r.completion.fct).max().expect("a flow");
        last.since(run.flows.in_memory().iter().map(|r| r.completion.start).min().expect("a flow")).0 as f64
    });
    assert_close("last completion", ends[0], ends[1], 0.002);
}

/// Ten equal phases cost little more than one, and when all is known beforehand next to nothing.
fn ten_cost_one(name: &str, config: &str) {
    let phases = |tier| ten_phases(2_000_000).scenario(config, Profile::Ns3, tier);
    let (plain, exact) = (simulated(&phases(Tier::Off)), simulated(&phases(Tier::Exact)));
    let file = File::new(name);
    let (first, second) = (file.run(&phases(Tier::Exact)), file.run(&phases(Tier::Exact)));
    let events = [&plain, &exact, &first, &second].map(|run| run.totals.events);
    println!("{name}: {events:?}\n{:?}\n{:?}", first.memo, second.memo);
    assert_same_fcts(&plain, &exact);
    assert_same_fcts(&plain, &first);
    assert_same_fcts(&plain, &second);
    for unmemoised in &events[..2] {
        assert!(10 * 100 * events[2] <= 105 * unmemoised, "{events:?}: more than one phase was simulated");
    }
    assert!(100 * events[3] < 2 * events[2], "{events:?}: something was simulated again");

    let Memoised { hits, misses, followers, refused, unkept, distinct, instances, .. } = first.memo.counts;
    assert_eq!((refused, unkept), (0, 0));
    // The ring and the incasts, and what becomes of these when their first flows are done.
    assert!((2..=6).contains(&distinct) && misses == distinct, "{:?}", first.memo);
    // Three of the four incasts follow.
    assert_eq!(followers, 3 * (misses - 1));
    assert_eq!((hits, instances), (9 * (misses + followers), 10 * (misses + followers)));
    let again = second.memo.counts;
    assert_eq!((again.hits, again.misses, again.followers), (instances, 0, 0));
}

#[test]
fn ten_phases_cost_one_with_dcqcn() {
    ten_cost_one("phases-dcqcn", DCQCN);
}

#[test]
fn ten_phases_cost_one_with_dctcp() {
    ten_cost_one("phases-dctcp", DCTCP);
}

/// Bytes of a flow after eight phases of which the counters of all ports are where they were, in units of 512 B.
///
/// 4,000 packets are 4,000 * 1,090 B on the wire, 320 modulo 512, and 4,000 ACKs of 88 B are 256. A port sends once or
/// three times the former, and the latter or nothing besides: 320, 64 or 448 a phase, all odd multiples of 64.
const EIGHT_PHASES: u64 = 4_000_000;

#[test]
fn phases_come_round_with_the_byte_counters_of_hpcc() {
    let phases = |tier| ten_phases(EIGHT_PHASES).scenario(HPCC, Profile::Ns3, tier);
    let plain = simulated(&phases(Tier::Off));
    let first = File::new("phases-hpcc").run(&phases(Tier::Exact));
    println!("{} {} events, {:?}", plain.totals.events, first.totals.events, first.memo);
    assert_same_fcts(&plain, &first);
    let Memoised { hits, misses, followers, instances, refused, unkept, .. } = first.memo.counts;
    assert_eq!((refused, unkept), (0, 0));
    // Two of ten phases are hits.
    assert_eq!((hits, instances), ((misses + followers) / 4, hits + misses + followers));
    assert!(hits > 0 && 10 * first.totals.events < 9 * plain.totals.events);
}

#[test]
fn every_phase_of_hpcc_has_hits_with_coarse_keys() {
    let phases = |count, tier| phases(count, EIGHT_PHASES).scenario(HPCC, Profile::Ns3, tier);
    let mut hits = 0;
    for count in 2..=10 {
        let plain = simulated(&phases(count, Tier::Off));
        let first = File::new("phases-coarse").run(&phases(count, Tier::Bounded));
        println!("{count} phases: {} and {} events, {:?}", plain.totals.events, first.totals.events, first.memo);
        assert_close_fcts(&plain, &first);
        let before = std::mem::replace(&mut hits, first.memo.counts.hits);
        assert!(hits > before, "phase {count} has no hit: {:?}", first.memo);
    }
}

/// Many copies cost hardly more than a few: a copy takes the start and the end of its flows.
fn copies_are_free(name: &str, few: &dyn Fn(Tier) -> scenario::Scenario, many: &dyn Fn(Tier) -> scenario::Scenario) {
    let plain = simulated(&many(Tier::Off));
    for tier in [Tier::Exact, Tier::Bounded] {
        let [few, many] = [few, many].map(|make| File::new(&format!("{name}-{tier:?}")).run(&make(tier)));
        println!("{name}, {tier:?}: {} and {} events, {:?}", few.totals.events, many.totals.events, many.memo);
        match tier {
            Tier::Bounded => assert_close_fcts(&plain, &many),
            _ => assert_same_fcts(&plain, &many),
        }
        assert!(many.totals.events <= 3 * few.totals.events, "{tier:?}: {:?}", many.memo);
    }
}

#[test]
fn pairs_that_do_the_same_cost_as_much_as_one() {
    let pairs = |pairs: u32| {
        let mut stars = Stars::new(pairs, 2);
        stars.flow(0, 1, 1_000_000, 0);
        stars.flow(1, 0, 500_000, 0);
        move |tier| stars.scenario(DCQCN, Profile::Ps, tier)
    };
    copies_are_free("pairs", &pairs(8), &pairs(512));
}

#[test]
fn rails_that_do_the_same_cost_as_much_as_one() {
    let rails = |rails: u32| {
        let mut stars = Stars::new(rails, 16);
        stars.ring(16, 1_000_000, 0);
        move |tier| stars.scenario(DCQCN, Profile::Ps, tier)
    };
    copies_are_free("rails", &rails(1), &rails(64));
}

/// Flows of one congestion control, the rate of HPCC with its windows, on a star of 16 hosts. Nothing is random.
fn star(flows: impl IntoIterator<Item = FlowSpec>) -> Scenario {
    let (hosts, hpcc) = (16, 1);
    let mut nodes = vec![NodeKind::Host; hosts as usize];
    nodes.push(NodeKind::Switch);
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let link = |host| LinkSpec { a: NodeId(host), b: NodeId(hosts), rate, delay, loss: 0 };
    Scenario {
        seed: 1,
        shape: Shape::Star,
        profile: swarm::Profile::Ps,
        nodes,
        links: (0..hosts).map(link).collect(),
        flows: (0..).zip(flows).map(|(token, flow)| FlowSpec { token, cca: hpcc, ..flow }).collect(),
        ccas: ccas().into(),
        buffer: 32 << 20,
        ecn: None,
        lossy: false,
    }
}

fn flow(src: u32, dst: u32, bytes: u64, start_us: u64) -> FlowSpec {
    FlowSpec::new(NodeId(src), NodeId(dst), bytes, SimTime::ZERO + Span::from_us(start_us))
}

/// Six hosts in a ring: outputs have room for seven flows that end in one instant.
fn ring(bytes: u64) -> Vec<FlowSpec> {
    (0..6).map(|src| flow(src, (src + 1) % 6, bytes, 0)).collect()
}

/// What a run finds in a store that has the records of another.
fn after(first: &Scenario, second: &Scenario, plan: Steps<'_>) -> Memoised {
    let mut words = vec![0; ROOM];
    let mut store = Store::new(&mut words);
    let learnt = look_up(first, None, &mut store, 0);
    assert!(learnt.memoised.misses > 0 && learnt.memoised.unkept == 0, "{:?}", learnt.memoised);
    let seen = look_up(second, plan, &mut store, 0);
    assert_identical(&plain_run(second, plan), &seen);
    println!("{:?}", seen.memoised);
    seen.memoised
}

#[test]
fn a_job_alone_is_not_a_job_in_company() {
    let alone = star(ring(1_000_000));
    let with = |other: FlowSpec| star(ring(1_000_000).into_iter().chain([other]));
    // The other job's flow crosses links of the ring from the start, or comes to it.
    for start_us in [0, 20] {
        for (src, dst) in [(0, 1), (0, 4), (8, 3), (3, 8)] {
            let memoised = after(&alone, &with(flow(src, dst, 2_000_000, start_us)), None);
            assert_eq!(memoised.hits, 0, "{src} to {dst} from {start_us} us: {memoised:?}");
        }
    }
    // Elsewhere it does not matter.
    for start_us in [0, 20] {
        let memoised = after(&alone, &with(flow(8, 9, 2_000_000, start_us)), None);
        assert_eq!((memoised.hits, memoised.refused), (1, 0), "{memoised:?}");
    }
}

#[test]
fn a_known_interrupt_refuses_a_hit_and_an_unknown_one_breaks_it_off() {
    let alone = star(ring(1_000_000));
    let joined = star(ring(1_000_000).into_iter().chain([flow(0, 4, 100_000, 30)]));
    let known = after(&alone, &joined, None);
    assert_eq!((known.refused, known.hits), (1, 0), "{known:?}");

    let plan: Vec<_> = joined.flows.iter().enumerate().map(|(i, flow)| (flow.start, Action::Add(i))).collect();
    let unknown = after(&alone, &joined, Some(&plan));
    assert_eq!((unknown.refused, unknown.hits), (0, 1), "{unknown:?}");
}

#[test]
fn a_flow_that_starts_later_elsewhere_refuses_nothing() {
    let alone = star(ring(1_000_000));
    let joined = star(ring(1_000_000).into_iter().chain([flow(8, 9, 100_000, 30)]));
    let plan: Vec<_> = joined.flows.iter().enumerate().map(|(i, flow)| (flow.start, Action::Add(i))).collect();
    for plan in [None, Some(&plan[..])] {
        let memoised = after(&alone, &joined, plan);
        assert_eq!((memoised.refused, memoised.hits), (0, 1), "{memoised:?}");
    }
}

#[test]
fn a_check_finds_any_word_that_is_wrong() {
    let scenario = star(ring(60_000));
    let mut words = vec![0; ROOM];
    let mut store = Store::new(&mut words);
    look_up(&scenario, None, &mut store, 0);
    let records: Vec<_> = store.records().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    let [(key, value)] = &records[..] else { panic!("{} records", records.len()) };
    assert_eq!(look_up(&scenario, None, &mut store, 1_000_000).memoised.checked, 1);
    for at in 0..value.len() {
        let mut wrong = value.clone();
        wrong[at] ^= 1;
        store.insert(key, &wrong);
        let Memoised { checked, mismatches, mismatch, .. } = check(&scenario, None, &mut store, 1_000_000).memoised;
        assert_eq!((checked, mismatches, mismatch), (1, 1, record_name(key)), "word {at} of {}", value.len());
    }
}

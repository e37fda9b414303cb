//! Fast-forwarding against simulating everything, on swarms of random scenarios (see `wormhole_tests::swarm` for how
//! to run more seeds or a single one).

use wormhole::ideal::ideal_fct;
use wormhole_kernel::accel::{Acceleration, Detector, Skipped, Tier};
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::{
    CapacityError, Completion, Error, ExternalFrame, FlowEnd, Kernel, Limits, ModelSet, Models, NodeId, PortStats,
    SimTime, Span,
};
use wormhole_tests::recurring::{self, Action};
use wormhole_tests::swarm::{EVENT_BUDGET, Profile, Scenario, Use, for_all_seeds};

/// How a scenario is run.
struct Drive<'p> {
    tier: Tier,
    /// What is done on the way; `None`: all flows are added at first, then it runs to its end.
    plan: Option<&'p [(SimTime, Action)]>,
}

/// What was seen at a stop on the way.
#[derive(PartialEq, Debug)]
struct Glimpse {
    now: SimTime,
    step: Result<Step, CapacityError>,
    refused: Option<Error>,
    completions: usize,
    frames_out: usize,
    unfinished: usize,
    /// When everything is counted up to now: counters and occupancy.
    counted: Option<Counted>,
}

#[derive(PartialEq, Debug)]
struct Counted {
    totals: Totals,
    ports: Vec<PortStats>,
    live_packets: usize,
    shared_bytes: Vec<u64>,
    /// Per port and priority: ingress, egress.
    queues: Vec<(u64, u64)>,
}

/// Everything a caller sees of a run.
struct Seen {
    done: Vec<Completion>,
    egress: Vec<ExternalFrame>,
    glimpses: Vec<Glimpse>,
    end: Glimpse,
    ideals: Vec<Option<Span>>,
    skipped: Skipped,
    renewed: usize,
}

impl Use for Drive<'_> {
    type Out = Seen;

    fn with<M: Models<Timing: Default>>(self, scenario: &Scenario, models: ModelSet<'_, M>) -> Seen {
        let limits = Limits { inputs: 64, snapshot_words: 1 << 22, ..scenario.limits() };
        let mut memory = vec![0; Kernel::<M>::words(scenario.size(), &limits, &models)];
        let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, ());
        let mut kernel = kernel.expect("a kernel");
        kernel.accelerate(Acceleration { tier: self.tier, detector: Detector::CYCLE }).expect("room");
        let mut run = Run { scenario, kernel, done: vec![], egress: vec![], glimpses: vec![], renewed: 0 };
        let ideals = scenario.flows.iter().map(|flow| ideal_fct(&mut run.kernel, flow).ok()).collect();
        match self.plan {
            Some(plan) => plan.iter().for_each(|&(at, action)| run.act(at, action)),
            None => scenario.flows.iter().for_each(|flow| assert!(run.kernel.add_flow(flow).is_ok())),
        }
        let step = run.run_until(SimTime::MAX);
        run.kernel.wake_all();
        let end = run.glimpse(step, None, true);
        let Run { kernel, done, egress, glimpses, renewed, .. } = run;
        Seen { done, egress, glimpses, end, ideals, skipped: kernel.skipped(), renewed }
    }
}

/// A run under way.
struct Run<'a, M: Models> {
    scenario: &'a Scenario,
    kernel: Kernel<'a, M>,
    done: Vec<Completion>,
    egress: Vec<ExternalFrame>,
    glimpses: Vec<Glimpse>,
    renewed: usize,
}

impl<M: Models> Run<'_, M> {
    fn run_until(&mut self, limit: SimTime) -> Result<Step, CapacityError> {
        loop {
            let step = self.kernel.run_bounded(limit, EVENT_BUDGET);
            self.done.extend(std::iter::from_fn(|| self.kernel.poll_completion()));
            self.egress.extend(std::iter::from_fn(|| self.kernel.poll_egress()));
            match step {
                Ok(Step::OutputFull) => {}
                Ok(Step::Budget) => panic!("no end in sight at {:?}", self.kernel.now()),
                other => return other,
            }
        }
    }

    fn act(&mut self, at: SimTime, action: Action) {
        let step = self.run_until(at);
        let now = at.max(self.kernel.now());
        let kernel = &mut self.kernel;
        let (mut refused, mut counts) = (None, false);
        match action {
            Action::Add(flow) => {
                let flow = wormhole_kernel::FlowSpec { start: now, ..self.scenario.flows[flow] };
                refused = kernel.add_flow(&flow).err();
            }
            Action::Link(link, up) => refused = kernel.set_link(now, link, up).err(),
            Action::Inject(frame) => refused = kernel.inject(now, &frame).err(),
            Action::Renew => self.renewed += kernel.renew(),
            Action::Count => {
                kernel.wake_all();
                counts = true;
            }
            Action::Look => {}
        }
        let glimpse = self.glimpse(step, refused, counts);
        self.glimpses.push(glimpse);
    }

    fn glimpse(&self, step: Result<Step, CapacityError>, refused: Option<Error>, counts: bool) -> Glimpse {
        Glimpse {
            now: self.kernel.now(),
            step,
            refused,
            completions: self.done.len(),
            frames_out: self.egress.len(),
            unfinished: self.kernel.unfinished_flows(),
            counted: counts.then(|| self.counted()),
        }
    }

    fn counted(&self) -> Counted {
        let kernel = &self.kernel;
        let nodes = 0..kernel.fabric().node_count() as u32;
        let queues = kernel.fabric().ports().flat_map(|port| {
            (0..8).map(move |priority| (kernel.ingress_bytes(port, priority), kernel.egress_bytes(port, priority)))
        });
        let stats = |port| PortStats { skipped: Span::ZERO, ..kernel.port_stats(port) };
        Counted {
            totals: Totals { events: 0, ..kernel.totals() },
            ports: kernel.fabric().ports().map(stats).collect(),
            live_packets: kernel.live_packets(),
            shared_bytes: nodes.map(|node| kernel.shared_bytes(NodeId(node))).collect(),
            queues: queues.collect(),
        }
    }
}

fn drive(scenario: &Scenario, tier: Tier, plan: Option<&[(SimTime, Action)]>) -> Seen {
    scenario.with_models(Drive { tier, plan })
}

/// Asserts that two lists are equal; tells only the first difference.
fn assert_same<T: PartialEq + std::fmt::Debug>(what: &str, plain: &[T], fast: &[T]) {
    let differs = plain.iter().zip(fast).position(|(a, b)| a != b);
    if let Some(at) = differs {
        panic!("{what} {at} of {}: plain {:?}, fast {:?}", plain.len(), plain[at], fast[at]);
    }
    assert_eq!(plain.len(), fast.len(), "number of {what}");
}

fn assert_same_counts(what: &str, plain: &Counted, fast: &Counted) {
    assert_same(&format!("{what}: port"), &plain.ports, &fast.ports);
    assert_same(&format!("{what}: queue"), &plain.queues, &fast.queues);
    assert_eq!(plain, fast, "{what}");
}

fn assert_same_glimpse(what: &str, plain: &Glimpse, fast: &Glimpse) {
    if let (Some(plain), Some(fast)) = (&plain.counted, &fast.counted) {
        assert_same_counts(what, plain, fast);
    }
    assert_eq!(plain, fast, "{what}");
}

/// Asserts that a caller cannot tell two runs apart.
fn assert_identical(plain: &Seen, fast: &Seen) {
    assert_same("completion", &plain.done, &fast.done);
    assert_same("frame out", &plain.egress, &fast.egress);
    assert_eq!(plain.glimpses.len(), fast.glimpses.len(), "stops");
    for (at, (plain, fast)) in plain.glimpses.iter().zip(&fast.glimpses).enumerate() {
        assert_same_glimpse(&format!("stop {at} at {:?}", plain.now), plain, fast);
    }
    assert_same_glimpse("end", &plain.end, &fast.end);
    assert_eq!(plain.skipped.events, 0);
}

/// As [`assert_identical`], but where partitions ran in step, and the order of their events may have been guessed, a
/// difference is only counted.
fn compare(plain: &Seen, fast: &Seen, tally: &mut Tally) {
    let differs = fast.skipped.contested > 0 && plain.done != fast.done;
    if differs {
        tally.guessed_wrong += 1;
    } else {
        assert_identical(plain, fast);
    }
    tally.contested += u64::from(fast.skipped.contested > 0);
    tally.add(fast);
}

/// What was skipped in all runs of a swarm.
#[derive(Default, Debug)]
struct Tally {
    runs: u64,
    runs_that_skip: u64,
    runs_with_skip_backs: u64,
    skipped: u64,
    wakes: u64,
    skip_backs: u64,
    couplings: u64,
    renewed: usize,
    /// Runs in which the order of partitions in step was guessed, and those of them that differ.
    contested: u64,
    guessed_wrong: u64,
}

impl Tally {
    fn add(&mut self, run: &Seen) {
        let Skipped { events, wakes, skip_backs, buffer_couplings, .. } = run.skipped;
        self.runs += 1;
        self.runs_that_skip += u64::from(events > 0);
        self.runs_with_skip_backs += u64::from(skip_backs > 0);
        self.skipped += events;
        self.wakes += wakes;
        self.skip_backs += skip_backs;
        self.couplings += buffer_couplings;
        self.renewed += run.renewed;
    }

    /// Asserts that one run in so many has skipped anything: equal results prove nothing else.
    fn assert_skipped(&self, what: &str, one_in: u64) {
        println!("{what}: {self:?}");
        assert!(20 * self.guessed_wrong <= self.contested.max(20), "{what}: too many differ: {self:?}");
        assert!(
            self.runs < 40 || self.runs_that_skip * one_in >= self.runs,
            "{what}: few runs skip anything: {self:?}"
        );
    }
}

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

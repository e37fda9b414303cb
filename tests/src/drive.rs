//! A scenario run in one way, and all that a caller sees of it; two such runs compared.

use crate::recurring::Action;
use crate::swarm::{EVENT_BUDGET, Scenario, Use};
use wormhole::ideal::ideal_fct;
use wormhole_kernel::accel::{Acceleration, Detector, Skipped, Tier};
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::memo::{Memoisation, Memoised};
use wormhole_kernel::{
    CapacityError, Completion, Error, ExternalFrame, Kernel, Limits, ModelSet, Models, NodeId, PortStats, SimTime, Span,
};
use wormhole_memo_fmt::Store;

/// How a scenario is run.
pub struct Drive<'p, 's> {
    /// What may be skipped.
    pub tier: Tier,
    /// What is done on the way; `None`: all flows are added at first, then it runs to its end.
    pub plan: Option<&'p [(SimTime, Action)]>,
    /// Where partitions are looked up, and how; `None`: nowhere.
    pub memo: Option<(&'p mut Store<'s>, Memoisation)>,
}

/// What was seen at a stop on the way.
#[derive(PartialEq, Debug)]
pub struct Glimpse {
    /// The time.
    pub now: SimTime,
    /// Why the run stopped there.
    pub step: Result<Step, CapacityError>,
    refused: Option<Error>,
    completions: usize,
    frames_out: usize,
    unfinished: usize,
    /// When everything is counted up to now: counters and occupancy.
    counted: Option<Counted>,
}

/// Counters and occupancy.
#[derive(PartialEq, Debug)]
pub struct Counted {
    totals: Totals,
    ports: Vec<PortStats>,
    live_packets: usize,
    shared_bytes: Vec<u64>,
    /// Per port and priority: ingress, egress.
    queues: Vec<(u64, u64)>,
}

/// Everything a caller sees of a run.
pub struct Seen {
    /// The flows that ended, in order.
    pub done: Vec<Completion>,
    egress: Vec<ExternalFrame>,
    glimpses: Vec<Glimpse>,
    /// The last stop.
    pub end: Glimpse,
    /// Each flow's ideal FCT, if there is a path.
    pub ideals: Vec<Option<Span>>,
    /// What acceleration did.
    pub skipped: Skipped,
    /// What memoisation did.
    pub memoised: Memoised,
    /// Partitions set up anew.
    pub renewed: usize,
}

impl Seen {
    /// Puts flows that ended in one instant into the order of their numbers: records tell of instants.
    pub fn sort_instants(&mut self) {
        self.done.sort_by_key(|done| (done.start + done.fct, done.flow));
    }
}

impl Use for Drive<'_, '_> {
    type Out = Seen;

    fn with<M: Models<Timing: Default>>(self, scenario: &Scenario, models: ModelSet<'_, M>) -> Seen {
        let limits = Limits { inputs: 64, snapshot_words: 1 << 22, ..scenario.limits() };
        let mut memory = vec![0; Kernel::<M>::words(scenario.size(), &limits, &models)];
        let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, ());
        let mut kernel = kernel.expect("a kernel");
        kernel.accelerate(Acceleration { tier: self.tier, detector: Detector::CYCLE }).expect("room");
        if let Some((store, how)) = self.memo {
            kernel.memoise(store, how).expect("room");
        }
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
        Seen { done, egress, glimpses, end, ideals, skipped: kernel.skipped(), memoised: kernel.memoised(), renewed }
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

/// Runs a scenario without looking anything up.
pub fn drive(scenario: &Scenario, tier: Tier, plan: Option<&[(SimTime, Action)]>) -> Seen {
    scenario.with_models(Drive { tier, plan, memo: None })
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
pub fn assert_identical(plain: &Seen, fast: &Seen) {
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
pub fn compare(plain: &Seen, fast: &Seen, tally: &mut Tally) {
    let same = plain.done == fast.done && plain.egress == fast.egress && plain.glimpses == fast.glimpses;
    if fast.skipped.contested > 0 && !(same && plain.end == fast.end) {
        tally.guessed_wrong += 1;
    } else {
        assert_identical(plain, fast);
    }
    tally.contested += u64::from(fast.skipped.contested > 0);
    tally.add(fast);
}

/// What was skipped in all runs of a swarm.
#[derive(Default, Debug)]
pub struct Tally {
    /// Runs.
    pub runs: u64,
    /// Those in which anything was skipped.
    pub runs_that_skip: u64,
    /// Those in which a partition was woken before its time.
    pub runs_with_skip_backs: u64,
    /// Events skipped.
    pub skipped: u64,
    wakes: u64,
    skip_backs: u64,
    couplings: u64,
    /// Partitions set up anew.
    pub renewed: usize,
    /// What memoisation did.
    pub hits: u64,
    /// Partitions that followed others.
    pub followers: u64,
    /// Hits that were simulated all the same.
    pub checked: u64,
    unkept: u64,
    /// Runs in which the order of partitions in step was guessed, and those of them that differ.
    contested: u64,
    /// Those that differ.
    pub guessed_wrong: u64,
}

impl Tally {
    /// Counts a run in.
    pub fn add(&mut self, run: &Seen) {
        let Skipped { events, wakes, skip_backs, buffer_couplings, .. } = run.skipped;
        self.runs += 1;
        self.runs_that_skip += u64::from(events > 0);
        self.runs_with_skip_backs += u64::from(skip_backs > 0);
        self.skipped += events;
        self.wakes += wakes;
        self.skip_backs += skip_backs;
        self.couplings += buffer_couplings;
        self.renewed += run.renewed;
        self.hits += run.memoised.hits;
        self.followers += run.memoised.followers;
        self.checked += run.memoised.checked;
        self.unkept += run.memoised.unkept;
    }

    /// Asserts that one run in so many has skipped anything: equal results prove nothing else.
    pub fn assert_skipped(&self, what: &str, one_in: u64) {
        println!("{what}: {self:?}");
        assert!(20 * self.guessed_wrong <= self.contested.max(20), "{what}: too many differ: {self:?}");
        assert!(
            self.runs < 40 || self.runs_that_skip * one_in >= self.runs,
            "{what}: few runs skip anything: {self:?}"
        );
    }
}

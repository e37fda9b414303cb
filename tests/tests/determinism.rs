//! The same input gives the same output: whatever the event queue, however the run is cut, whoever looks on.

use std::marker::PhantomData;
use wormhole_kernel::ids::LinkId;
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::packet::Packet;
use wormhole_kernel::queue::{Heap4, Wheel};
use wormhole_kernel::router::Router;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{
    BitRate, Completion, FabricSize, FlowId, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, Models, NodeId, NodeKind,
    Observer, PortId, SimTime, Span, Transport,
};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::AnyCca;
use wormhole_models::ecn::{Coins, Ns3Coins, RedMarker, Thresholds};
use wormhole_models::loss::{BernoulliLoss, loss_fraction};
use wormhole_models::nic::{Ns3RoundRobin, RoundRobin};
use wormhole_models::profile::{Ns3, Ps};
use wormhole_models::router::{Ecmp, EcmpHash, Spray};
use wormhole_models::scheduler::ControlThenRoundRobin;
use wormhole_models::telemetry::Ns3Telemetry;
use wormhole_models::timing::Ns3Timing;
use wormhole_tests::{Rng, ccas};

const SCENARIOS: u64 = 30;
const RED: &[Thresholds] = &[Thresholds { rate: BitRate::from_gbps(100), kmin: 20_000, kmax: 80_000, pmax: 0.2 }];

/// A profile with another event queue.
macro_rules! with_queue {
    ($($name:ident: $profile:ident, $queue:ident;)*) => {$(
        struct $name<R>(PhantomData<R>);

        impl<R: Router> Models for $name<R> {
            type Timing = <$profile<'static, R> as Models>::Timing;
            type Cca = <$profile<'static, R> as Models>::Cca;
            type Telemetry = <$profile<'static, R> as Models>::Telemetry;
            type Buffers = <$profile<'static, R> as Models>::Buffers;
            type Scheduler = <$profile<'static, R> as Models>::Scheduler;
            type Marker = <$profile<'static, R> as Models>::Marker;
            type Loss = <$profile<'static, R> as Models>::Loss;
            type Router = R;
            type Nic = <$profile<'static, R> as Models>::Nic;
            type Queue<'a> = $queue<'a>;
        }
    )*};
}

with_queue! {
    PsHeap: Ps, Heap4;
    PsWheel: Ps, Wheel;
    Ns3Heap: Ns3, Heap4;
    Ns3Wheel: Ns3, Wheel;
}

/// Leaves and spines, hosts at the leaves, and what goes on there.
struct Scenario {
    seed: u64,
    nodes: Vec<NodeKind>,
    links: Vec<LinkSpec>,
    flows: Vec<FlowSpec>,
    /// When links go down and come up.
    changes: Vec<(SimTime, LinkId, bool)>,
    ccas: [AnyCca; 6],
}

impl Scenario {
    fn new(seed: u64) -> Scenario {
        let rng = &mut Rng(seed);
        let (leaves, spines, hosts) = (1 + rng.below(4) as u32, 1 + rng.below(4) as u32, 2 + rng.below(3) as u32);
        let first_leaf = leaves * hosts;
        let mut nodes = vec![NodeKind::Host; first_leaf as usize];
        nodes.resize((first_leaf + leaves + spines) as usize, NodeKind::Switch);
        // All links alike in half of the scenarios: then many things happen at once.
        let alike = rng.below(2) == 0;
        let loss = if rng.below(3) == 0 { loss_fraction(0.002) } else { 0 };
        let mut link = |a: u32, b: u32| {
            let gbps = if alike { 100 } else { [25, 50, 100, 400][rng.below(4) as usize] };
            let delay = Span::from_ns(if alike { 1_000 } else { 200 + rng.below(2_000) });
            LinkSpec { a: NodeId(a), b: NodeId(b), rate: BitRate::from_gbps(gbps), delay, loss }
        };
        let mut links: Vec<LinkSpec> = (0..first_leaf).map(|h| link(h, first_leaf + h / hosts)).collect();
        for leaf in first_leaf..first_leaf + leaves {
            links.extend((0..spines).map(|spine| link(leaf, first_leaf + leaves + spine)));
        }
        let flows = (0..30).map(|token| flow(rng, u64::from(first_leaf), token)).collect();
        let changes = if rng.below(3) == 0 { changes(rng, links.len() as u64) } else { vec![] };
        Scenario { seed, nodes, links, flows, changes, ccas: ccas() }
    }

    fn ps<R: Router, M>(&self, router: R) -> ModelSet<'_, M>
    where
        M: Models<
                Timing = PsTiming,
                Cca = AnyCca,
                Telemetry = wormhole_kernel::cca::ExactTelemetry,
                Buffers = DynamicThreshold,
                Scheduler = ControlThenRoundRobin,
                Marker = RedMarker<'static>,
                Loss = BernoulliLoss,
                Router = R,
                Nic = RoundRobin,
            >,
    {
        ModelSet {
            ccas: &self.ccas,
            timing: PsTiming,
            telemetry: wormhole_kernel::cca::ExactTelemetry,
            buffers: DynamicThreshold { bytes: 1 << 20, wraps: false },
            scheduler: ControlThenRoundRobin,
            marker: RedMarker { thresholds: RED, enabled: true, coins: Coins::PerPort { seed: self.seed } },
            loss: BernoulliLoss::Counter { seed: self.seed },
            router,
            nic: RoundRobin,
            transport: Transport::default(),
        }
    }

    fn ns3<M>(&self) -> ModelSet<'_, M>
    where
        M: Models<
                Timing = Ns3Timing,
                Cca = AnyCca,
                Telemetry = Ns3Telemetry,
                Buffers = DynamicThreshold,
                Scheduler = ControlThenRoundRobin,
                Marker = RedMarker<'static>,
                Loss = BernoulliLoss,
                Router = Ecmp,
                Nic = Ns3RoundRobin,
            >,
    {
        let coins = Coins::Ns3(Ns3Coins::after_setup(self.nodes.len(), 0));
        ModelSet {
            ccas: &self.ccas,
            timing: Ns3Timing,
            telemetry: Ns3Telemetry { multiplier: 1 },
            buffers: DynamicThreshold { bytes: 1 << 20, wraps: true },
            scheduler: ControlThenRoundRobin,
            marker: RedMarker { thresholds: RED, enabled: true, coins },
            loss: BernoulliLoss::Ns3,
            router: Ecmp::new(EcmpHash::Ns3),
            nic: Ns3RoundRobin,
            transport: Transport { ns3_quirks: true, ..Transport::default() },
        }
    }

    fn ecmp(&self) -> Ecmp {
        Ecmp::new(EcmpHash::Salted(self.seed))
    }
}

fn flow(rng: &mut Rng, hosts: u64, token: u64) -> FlowSpec {
    let src = rng.below(hosts);
    let dst = (src + 1 + rng.below(hosts - 1)) % hosts;
    // Few start times: many flows start at once.
    let start = SimTime::from_ns(rng.below(3) * 10_000);
    let bytes = 1 + rng.below(100_000);
    let (cca, src_port) = (rng.below(6) as u8, rng.below(60_000) as u16);
    FlowSpec { cca, src_port, token, ..FlowSpec::new(NodeId(src as u32), NodeId(dst as u32), bytes, start) }
}

/// A few links go down for a while.
fn changes(rng: &mut Rng, links: u64) -> Vec<(SimTime, LinkId, bool)> {
    let mut change = || {
        let link = LinkId(rng.below(links) as u32);
        let (down, up) = (SimTime::from_ns(rng.below(20_000)), SimTime::from_ns(30_000 + rng.below(20_000)));
        [(down, link, false), (up, link, true)]
    };
    (0..3).flat_map(|_| change()).collect()
}

/// A hash of everything that happens, in its order.
#[derive(Default, PartialEq, Debug)]
struct Trace {
    hash: u64,
    calls: u64,
}

impl Trace {
    fn note(&mut self, time: SimTime, words: [u64; 4]) {
        self.calls += 1;
        for word in [time.0].into_iter().chain(words) {
            self.hash = Rng(self.hash ^ word).next();
        }
    }

    fn frame(&mut self, what: u64, time: SimTime, port: PortId, frame: &Packet) {
        let kind = frame.kind() as u64 + 8 * u64::from(frame.is_marked());
        let place = u64::from(port.0) << 32 | u64::from(frame.qp().0);
        self.note(time, [what << 8 | kind, place, frame.seq, u64::from(frame.bytes)]);
    }
}

impl Observer for Trace {
    fn flow_started(&mut self, time: SimTime, flow: FlowId) {
        self.note(time, [1, u64::from(flow.0), 0, 0]);
    }

    fn flow_finished(&mut self, time: SimTime, record: &Completion) {
        self.note(time, [2, u64::from(record.flow.0), record.fct.0, record.bytes]);
    }

    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(3, time, port, frame);
    }

    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(4, time, port, frame);
    }

    fn dropped(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(5, time, port, frame);
    }

    fn pfc(&mut self, time: SimTime, port: PortId, priority: u8, pause: bool) {
        self.note(time, [6, u64::from(port.0), u64::from(priority), u64::from(pause)]);
    }
}

/// How a run is cut into calls.
enum Cut {
    Whole,
    /// Into spans of random length, up to so many picoseconds.
    Spans(Rng, u64),
    /// Into random numbers of events.
    Events(Rng),
}

/// What a run shows to its caller.
#[derive(PartialEq, Debug)]
struct Shown {
    done: Vec<Completion>,
    totals: Totals,
    last: Step,
    now: SimTime,
}

fn run<M: Models, O: Observer>(scenario: &Scenario, models: ModelSet<'_, M>, observer: O, mut cut: Cut) -> (Shown, O) {
    let limits =
        Limits { queued_flows: 30, active_flows: 30, packets: 30_000, outputs: 40, inputs: 8, snapshot_words: 0 };
    let size = FabricSize { nodes: scenario.nodes.len(), links: scenario.links.len() };
    let mut memory = vec![0; Kernel::<M, O>::words(size, &limits, &models)];
    let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, observer);
    let mut kernel = kernel.expect("a kernel");
    scenario.flows.iter().for_each(|flow| assert!(kernel.add_flow(flow).is_ok()));
    for &(at, link, up) in &scenario.changes {
        kernel.set_link(at, link, up).expect("room");
    }
    let mut done = vec![];
    loop {
        let step = match &mut cut {
            Cut::Whole => kernel.run_until(SimTime::MAX),
            Cut::Spans(rng, most) => {
                // Jump over silence, or time-outs take millions of calls.
                let from = kernel.next_event_time().unwrap_or(SimTime::ZERO).max(kernel.now());
                kernel.run_until(from + Span(rng.below(*most)))
            }
            Cut::Events(rng) => kernel.run_bounded(SimTime::MAX, rng.below(50)),
        };
        done.extend(std::iter::from_fn(|| kernel.poll_completion()));
        match step.expect("capacity") {
            Step::Reached | Step::Budget | Step::OutputFull => {}
            last => return (Shown { done, totals: kernel.totals(), last, now: kernel.now() }, kernel.observer),
        }
    }
}

/// Runs `check` on every scenario, and says which one it was that failed.
fn for_all(check: impl Fn(&Scenario)) {
    for seed in 0..SCENARIOS {
        let scenario = Scenario::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&scenario)));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// The traced run that others are compared with.
fn reference(scenario: &Scenario) -> (Shown, Trace) {
    run(scenario, scenario.ps::<_, PsWheel<_>>(scenario.ecmp()), Trace::default(), Cut::Whole)
}

#[test]
fn scenarios_differ_and_are_not_trivial() {
    let hashes: std::collections::HashSet<u64> = (0..SCENARIOS).map(|s| reference(&Scenario::new(s)).1.hash).collect();
    assert_eq!(hashes.len() as u64, SCENARIOS);
    let totals: Vec<Totals> = (0..SCENARIOS).map(|s| reference(&Scenario::new(s)).0.totals).collect();
    let some = |count: fn(&Totals) -> u64| totals.iter().filter(|t| count(t) > 0).count() >= 5;
    assert!(some(|t| t.drops) && some(|t| t.ecn_marks) && some(|t| t.pauses) && some(|t| t.timeouts));
}

#[test]
fn same_run_twice_is_the_same() {
    for_all(|scenario| {
        assert_eq!(reference(scenario), reference(scenario));
        let ns3 = || run(scenario, scenario.ns3::<Ns3Wheel<_>>(), Trace::default(), Cut::Whole);
        assert_eq!(ns3(), ns3());
    });
}

#[test]
fn event_queues_give_one_order() {
    for_all(|scenario| {
        let heap = run(scenario, scenario.ps::<_, PsHeap<_>>(scenario.ecmp()), Trace::default(), Cut::Whole);
        assert_eq!(reference(scenario), heap);
        let wheel = run(scenario, scenario.ns3::<Ns3Wheel<_>>(), Trace::default(), Cut::Whole);
        let heap = run(scenario, scenario.ns3::<Ns3Heap<_>>(), Trace::default(), Cut::Whole);
        assert_eq!(wheel, heap);
        let spray = || Spray::new(scenario.seed);
        let wheel = run(scenario, scenario.ps::<_, PsWheel<_>>(spray()), Trace::default(), Cut::Whole);
        let heap = run(scenario, scenario.ps::<_, PsHeap<_>>(spray()), Trace::default(), Cut::Whole);
        assert_eq!(wheel, heap);
    });
}

#[test]
fn runs_in_slices_are_runs() {
    for_all(|scenario| {
        let whole = reference(scenario);
        let seed = scenario.seed;
        for cut in [Cut::Spans(Rng(seed), 2_000), Cut::Spans(Rng(seed), 3_000_000), Cut::Events(Rng(seed))] {
            let models = scenario.ps::<_, PsWheel<_>>(scenario.ecmp());
            assert_eq!(whole, run(scenario, models, Trace::default(), cut));
        }
    });
}

#[test]
fn looking_on_changes_nothing() {
    for_all(|scenario| {
        let (traced, trace) = reference(scenario);
        let models = || scenario.ps::<_, PsWheel<_>>(scenario.ecmp());
        assert_eq!(traced, run(scenario, models(), (), Cut::Whole).0);
        let mut lent = Trace::default();
        let (shown, pair) = run(scenario, models(), (&mut lent, Trace::default()), Cut::Whole);
        assert_eq!((shown, pair.1), (traced, trace));
    });
}

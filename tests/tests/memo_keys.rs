//! What memo keys depend on, and what not.

use std::collections::BTreeSet;
use std::marker::PhantomData;
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::memo::{Memoisation, Precision};
use wormhole_kernel::model::ModelId;
use wormhole_kernel::nic::Nic;
use wormhole_kernel::queue::Wheel;
use wormhole_kernel::scheduler::EgressScheduler;
use wormhole_kernel::telemetry::{ExactTelemetry, Telemetry};
use wormhole_kernel::timing::{LinkTiming, PsTiming};
use wormhole_kernel::{
    BitRate, Completion, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, Models, NodeId, NodeKind, SimTime, Span,
    Transport,
};
use wormhole_memo_fmt::Store;
use wormhole_models::buffer::{DynamicThreshold, StaticThreshold};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};
use wormhole_models::ecn::{Coins, RedMarker, Thresholds};
use wormhole_models::loss::BernoulliLoss;
use wormhole_models::nic::{Ns3RoundRobin, RoundRobin};
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_models::scheduler::{ControlThenRoundRobin, StrictPriority};
use wormhole_models::telemetry::Ns3Telemetry;
use wormhole_models::timing::Ns3Timing;
use wormhole_tests::Rng;
use wormhole_tests::drive::{Drive, Seen};
use wormhole_tests::swarm::{Build, Profile, RED, Scenario, Shape, Use, for_all_seeds};

type Key = Vec<u64>;

/// A change of something, and its name.
type Change<T> = (&'static str, fn(&mut T));

/// Reads the keys of all partitions at a moment.
struct Keys {
    at: SimTime,
    precision: Precision,
}

impl Keys {
    /// Exact keys, just after flows that start at first have opened.
    const OPEN: Keys = Keys { at: SimTime(1), precision: Precision::Exact };
}

impl Use for Keys {
    type Out = Vec<Key>;

    fn with<M: Models<Timing: Default>>(self, scenario: &Scenario, models: ModelSet<'_, M>) -> Vec<Key> {
        let limits = Limits { snapshot_words: 1 << 20, outputs: 64, ..scenario.limits() };
        let mut memory = vec![0; Kernel::<M>::words(scenario.size(), &limits, &models)];
        let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, ());
        let mut kernel = kernel.expect("a kernel");
        kernel.accelerate(Acceleration { tier: Tier::Exact, detector: Detector::CYCLE }).expect("room");
        scenario.flows.iter().for_each(|flow| assert!(kernel.add_flow(flow).is_ok()));
        kernel.run_until(self.at).expect("room");
        let mut keys = vec![];
        kernel.each_key(self.precision, |key| keys.push(key.to_vec()));
        keys.sort();
        keys
    }
}

/// The only key of a scenario just after its flows have opened.
fn key(scenario: &Scenario) -> Key {
    only(scenario.with_models(Keys::OPEN))
}

fn only(keys: Vec<Key>) -> Key {
    let [key] = &keys[..] else { panic!("{} partitions", keys.len()) };
    key.clone()
}

/// Three of the four hosts of a star send to the other. Nothing is random.
fn incast() -> Scenario {
    let mut nodes = vec![NodeKind::Host; 5];
    nodes.push(NodeKind::Switch);
    Scenario {
        seed: 1,
        shape: Shape::Star,
        profile: Profile::Ps,
        nodes,
        // The last host is none of theirs.
        links: (0..5).map(|host| link(host, 5)).collect(),
        flows: (1..4).map(|src| FlowSpec::new(NodeId(src), NodeId(0), 100_000, SimTime::ZERO)).collect(),
        ccas: vec![AnyCca::Dctcp(Dctcp::new(DctcpConfig::default()))],
        buffer: 32 << 20,
        ecn: Some(RED),
        lossy: false,
    }
}

fn link(a: u32, b: u32) -> LinkSpec {
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    LinkSpec { a: NodeId(a), b: NodeId(b), rate, delay, loss: 0 }
}

/// Asserts that no two of the named keys are equal.
fn assert_distinct(keys: &[(&str, Key)]) {
    for (i, (name, key)) in keys.iter().enumerate() {
        let same = keys[..i].iter().find(|(_, other)| other == key);
        assert!(same.is_none(), "{name} and {} have the same key", same.expect("one").0);
    }
}

/// Asserts that each change alone gives another key, and that no two give the same.
fn assert_each_counts<T: Clone>(base: &T, changes: &[Change<T>], key: impl Fn(&T) -> Key) {
    let changed = changes.iter().map(|(name, change)| {
        let mut it = base.clone();
        change(&mut it);
        (*name, key(&it))
    });
    let keys: Vec<_> = std::iter::once(("nothing", key(base))).chain(changed).collect();
    assert_distinct(&keys);
    assert_eq!(keys[0].1, key(base), "a key is always the same");
}

/// As [`assert_each_counts`], for the parameters of a congestion control.
fn assert_parameters_count<C: Clone>(base: C, changes: &[Change<C>], model: fn(C) -> AnyCca) {
    assert_each_counts(&base, changes, |config| key(&Scenario { ccas: vec![model(config.clone())], ..incast() }));
}

#[test]
fn parameters_of_fixed_windows_count() {
    let changes: [Change<FixedWindowConfig>; 6] = [
        ("bytes", |c| *c = FixedWindowConfig::Bytes(9_000)),
        ("other bytes", |c| *c = FixedWindowConfig::Bytes(9_001)),
        ("per cent", |c| *c = FixedWindowConfig::BdpPercent(100)),
        ("other per cent", |c| *c = FixedWindowConfig::BdpPercent(101)),
        ("unlimited", |c| *c = FixedWindowConfig::Rule(WindowRule::Unlimited)),
        ("at rate", |c| *c = FixedWindowConfig::Rule(WindowRule::BdpAtRate)),
    ];
    let base = FixedWindowConfig::Rule(WindowRule::Bdp);
    assert_parameters_count(base, &changes, |config| AnyCca::FixedWindow(FixedWindow::new(config)));
}

#[test]
fn parameters_of_hpcc_count() {
    let changes: [Change<HpccConfig>; 11] = [
        ("target", |c| c.target = 0.9500000001),
        ("max_stage", |c| c.max_stage += 1),
        ("additive", |c| c.additive.0 += 1),
        ("min_rate", |c| c.min_rate.0 += 1),
        ("fast_react", |c| c.fast_react ^= true),
        ("multi_rate", |c| c.multi_rate ^= true),
        ("sample_feedback", |c| c.sample_feedback ^= true),
        ("window", |c| c.window = WindowRule::Bdp),
        ("time_modulus", |c| c.time_modulus = Span::from_us(1 << 14)),
        ("byte_modulus", |c| c.byte_modulus = 1 << 27),
        ("rate_quantum", |c| c.rate_quantum = 1_000_000),
    ];
    // Every field is named, so that a new one is not forgotten.
    let HpccConfig {
        target: _,
        max_stage: _,
        additive: _,
        min_rate: _,
        fast_react: _,
        multi_rate: _,
        sample_feedback: _,
        window: _,
        time_modulus: _,
        byte_modulus: _,
        rate_quantum: _,
    } = HpccConfig::default();
    assert_parameters_count(HpccConfig::default(), &changes, |config| AnyCca::Hpcc(Hpcc::new(config)));
}

#[test]
fn parameters_of_dcqcn_count() {
    let changes: [Change<DcqcnConfig>; 10] = [
        ("gain", |c| c.gain = 0.0039),
        ("alpha_interval", |c| c.alpha_interval.0 += 1),
        ("decrease_interval", |c| c.decrease_interval.0 += 1),
        ("increase_interval", |c| c.increase_interval.0 += 1),
        ("fast_recovery", |c| c.fast_recovery += 1),
        ("additive", |c| c.additive.0 += 1),
        ("hyper", |c| c.hyper.0 += 1),
        ("min_rate", |c| c.min_rate.0 += 1),
        ("clamp_target", |c| c.clamp_target ^= true),
        ("window", |c| c.window = WindowRule::Bdp),
    ];
    let DcqcnConfig {
        gain: _,
        alpha_interval: _,
        decrease_interval: _,
        increase_interval: _,
        fast_recovery: _,
        additive: _,
        hyper: _,
        min_rate: _,
        clamp_target: _,
        window: _,
    } = DcqcnConfig::default();
    assert_parameters_count(DcqcnConfig::default(), &changes, |config| AnyCca::Dcqcn(Dcqcn::new(config)));
}

#[test]
fn parameters_of_timely_count() {
    let changes: [Change<TimelyConfig>; 9] = [
        ("alpha", |c| c.alpha = 0.874),
        ("beta", |c| c.beta = 0.79),
        ("low", |c| c.low.0 += 1),
        ("high", |c| c.high.0 += 1),
        ("min_rtt", |c| c.min_rtt.0 += 1),
        ("additive", |c| c.additive.0 += 1),
        ("hyper", |c| c.hyper.0 += 1),
        ("min_rate", |c| c.min_rate.0 += 1),
        ("window", |c| c.window = WindowRule::Bdp),
    ];
    let TimelyConfig { alpha: _, beta: _, low: _, high: _, min_rtt: _, additive: _, hyper: _, min_rate: _, window: _ } =
        TimelyConfig::default();
    assert_parameters_count(TimelyConfig::default(), &changes, |config| AnyCca::Timely(Timely::new(config)));
}

#[test]
fn parameters_of_dctcp_count() {
    let changes: [Change<DctcpConfig>; 4] = [
        ("gain", |c| c.gain = 0.0626),
        ("additive", |c| c.additive.0 += 1),
        ("min_rate", |c| c.min_rate.0 += 1),
        ("window", |c| c.window = WindowRule::Bdp),
    ];
    let DctcpConfig { gain: _, additive: _, min_rate: _, window: _ } = DctcpConfig::default();
    assert_parameters_count(DctcpConfig::default(), &changes, |config| AnyCca::Dctcp(Dctcp::new(config)));
}

#[test]
fn parameters_of_swift_count() {
    let changes: [Change<SwiftConfig>; 8] = [
        ("margin", |c| c.margin.0 += 1),
        ("additive", |c| c.additive = 1.1),
        ("beta", |c| c.beta = 0.79),
        ("max_decrease", |c| c.max_decrease = 0.49),
        ("scaling_range", |c| c.scaling_range.0 += 1),
        ("scaling_max", |c| c.scaling_max = 101.0),
        ("scaling_min", |c| c.scaling_min = 0.11),
        ("min_window", |c| c.min_window = 0.0011),
    ];
    let SwiftConfig {
        margin: _,
        additive: _,
        beta: _,
        max_decrease: _,
        scaling_range: _,
        scaling_max: _,
        scaling_min: _,
        min_window: _,
    } = SwiftConfig::default();
    assert_parameters_count(SwiftConfig::default(), &changes, |config| AnyCca::Swift(Swift::new(config)));
}

#[test]
fn congestion_controls_count() {
    let keys: Vec<_> = wormhole_tests::ccas()
        .into_iter()
        .map(|cca| (cca.id().name, key(&Scenario { ccas: vec![cca], ..incast() })))
        .collect();
    assert_eq!(keys.len(), 6);
    assert_distinct(&keys);
}

/// What can be changed of a run besides congestion controls.
#[derive(Clone)]
struct World {
    links: Vec<LinkSpec>,
    flows: Vec<FlowSpec>,
    buffer: u32,
    thresholds: Thresholds,
    enabled: bool,
    seed: u64,
    telemetry: u64,
    transport: Transport,
}

impl World {
    fn new() -> World {
        let Scenario { links, mut flows, buffer, .. } = incast();
        // What is derived from the path is given, so that links change it by themselves.
        for flow in &mut flows {
            (flow.base_rtt, flow.bdp) = (Some(Span::from_us(5)), Some(60_000));
        }
        let (thresholds, transport) = (RED[0], Transport::default());
        World { links, flows, buffer, thresholds, enabled: true, seed: 1, telemetry: 1, transport }
    }

    fn key(&self) -> Key {
        let scenario = Scenario { links: self.links.clone(), flows: self.flows.clone(), ..incast() };
        let thresholds = [self.thresholds];
        let telemetry = Ns3Telemetry { multiplier: self.telemetry };
        let buffers = DynamicThreshold { bytes: self.buffer, wraps: false };
        let mut models = models(&scenario.ccas, PsTiming, telemetry, buffers, TURNS, RoundRobin);
        let coins = Coins::PerPort { seed: self.seed };
        models.marker = RedMarker { thresholds: &thresholds, enabled: self.enabled, coins };
        models.loss = BernoulliLoss::Counter { seed: self.seed };
        models.transport = self.transport;
        only(Keys::OPEN.with(&scenario, models))
    }
}

#[test]
fn links_count() {
    let changes: [Change<World>; 6] = [
        ("rate at the sink", |w| w.links[0].rate.0 += 1_000_000_000),
        ("rate at a source", |w| w.links[1].rate.0 += 1_000_000_000),
        ("rates at all sources", |w| w.links[1..4].iter_mut().for_each(|l| l.rate.0 += 1_000_000_000)),
        ("delay at the sink", |w| w.links[0].delay.0 += 1),
        ("delay at a source", |w| w.links[1].delay.0 += 1),
        ("delays at two sources", |w| w.links[1..3].iter_mut().for_each(|l| l.delay.0 += 1)),
    ];
    assert_each_counts(&World::new(), &changes, World::key);
}

#[test]
fn flows_count() {
    let changes: [Change<World>; 9] = [
        ("size", |w| w.flows[0].bytes += 1),
        ("size of two", |w| w.flows[..2].iter_mut().for_each(|f| f.bytes += 1)),
        ("priority", |w| w.flows[0].priority = 4),
        ("priority of all", |w| w.flows.iter_mut().for_each(|f| f.priority = 4)),
        ("base RTT", |w| w.flows[0].base_rtt = Some(Span(5_000_001))),
        ("BDP", |w| w.flows[0].bdp = Some(60_001)),
        ("another flow", |w| w.flows.push(FlowSpec { token: 3, ..w.flows[0] })),
        ("one less", |w| w.flows.truncate(2)),
        ("a flow the other way", |w| (w.flows[0].src, w.flows[0].dst) = (w.flows[0].dst, w.flows[0].src)),
    ];
    assert_each_counts(&World::new(), &changes, World::key);
}

#[test]
fn buffers_and_marks_count() {
    let changes: [Change<World>; 6] = [
        ("buffer", |w| w.buffer += 1),
        ("kmin", |w| w.thresholds.kmin += 1),
        ("kmax", |w| w.thresholds.kmax += 1),
        ("pmax", |w| w.thresholds.pmax = 0.2000001),
        ("rate", |w| w.thresholds.rate.0 -= 1),
        ("no marks", |w| w.enabled = false),
    ];
    assert_each_counts(&World::new(), &changes, World::key);
}

#[test]
fn telemetry_and_transport_count() {
    let changes: [Change<World>; 11] = [
        ("INT_MULTI", |w| w.telemetry = 4),
        ("MTU", |w| w.transport.mtu += 1),
        ("NACK interval", |w| w.transport.nack_interval.0 += 1),
        ("ACK interval", |w| w.transport.ack_interval += 1),
        ("chunk", |w| w.transport.chunk += 1),
        ("back to the chunk", |w| w.transport.back_to_chunk ^= true),
        ("ACK priority", |w| w.transport.ack_control_priority ^= true),
        ("pacing", |w| w.transport.paced ^= true),
        ("time-out", |w| w.transport.timeout = Some(Span::from_us(4_001))),
        ("retries", |w| w.transport.retries += 1),
        ("quirks", |w| w.transport.ns3_quirks ^= true),
    ];
    let Transport {
        mtu: _,
        nack_interval: _,
        ack_interval: _,
        chunk: _,
        back_to_chunk: _,
        ack_control_priority: _,
        paced: _,
        timeout: _,
        retries: _,
        ns3_quirks: _,
    } = Transport::default();
    assert_each_counts(&World::new(), &changes, World::key);
}

#[test]
fn what_has_no_bearing_does_not_count() {
    let changes: [Change<World>; 5] = [
        ("a seed of which nothing is drawn", |w| w.seed = 2),
        ("a link that nobody uses", |w| w.links[4].delay = Span::from_us(9)),
        ("UDP ports", |w| w.flows[0].src_port += 1),
        ("tokens", |w| w.flows[0].token = 77),
        ("which source", |w| w.flows[0].src = NodeId(4)),
    ];
    let base = World::new();
    for (name, change) in changes {
        let mut it = base.clone();
        change(&mut it);
        assert!(it.key() == base.key(), "{name}");
    }
}

/// A choice of models of any types.
struct Family<'m, T, C, E, B, S, N>(PhantomData<(&'m (), T, C, E, B, S, N)>);

impl<'m, T, C, E, B, S, N> Models for Family<'m, T, C, E, B, S, N>
where
    T: LinkTiming,
    C: CongestionControl,
    E: Telemetry,
    B: BufferManager,
    S: EgressScheduler,
    N: Nic,
{
    type Timing = T;
    type Cca = C;
    type Telemetry = E;
    type Buffers = B;
    type Scheduler = S;
    type Marker = RedMarker<'m>;
    type Loss = BernoulliLoss;
    type Router = Ecmp;
    type Nic = N;
    type Queue<'a> = Wheel<'a>;
}

/// Profile `ps`, but for the models given.
fn models<'m, T, C, E, B, S, N>(
    ccas: &'m [C],
    timing: T,
    telemetry: E,
    buffers: B,
    scheduler: S,
    nic: N,
) -> ModelSet<'m, Family<'m, T, C, E, B, S, N>>
where
    T: LinkTiming,
    C: CongestionControl,
    E: Telemetry,
    B: BufferManager,
    S: EgressScheduler,
    N: Nic,
{
    ModelSet {
        ccas,
        timing,
        telemetry,
        buffers,
        scheduler,
        marker: RedMarker { thresholds: RED, enabled: true, coins: Coins::PerPort { seed: 1 } },
        loss: BernoulliLoss::Counter { seed: 1 },
        router: Ecmp::new(EcmpHash::Salted(1)),
        nic,
        transport: Transport::default(),
    }
}

const BUFFERS: DynamicThreshold = DynamicThreshold { bytes: 32 << 20, wraps: false };

/// What buffers of fixed shares have.
const SHARES: StaticThreshold = StaticThreshold { pause: 400_000, resume: 300_000, limit: 800_000 };
const TELEMETRY: Ns3Telemetry = Ns3Telemetry { multiplier: 1 };
const TURNS: ControlThenRoundRobin = ControlThenRoundRobin;

/// The key under these models.
fn key_with<M: Models<Timing: Default>>(models: ModelSet<'_, M>) -> Key {
    only(Keys::OPEN.with(&incast(), models))
}

#[test]
fn models_count() {
    let Scenario { ccas, .. } = incast();
    assert_distinct(&[
        ("nothing", key_with(models(&ccas, PsTiming, TELEMETRY, BUFFERS, TURNS, RoundRobin))),
        ("scheduler", key_with(models(&ccas, PsTiming, TELEMETRY, BUFFERS, StrictPriority, RoundRobin))),
        ("timing", key_with(models(&ccas, Ns3Timing, TELEMETRY, BUFFERS, TURNS, RoundRobin))),
        ("NIC", key_with(models(&ccas, PsTiming, TELEMETRY, BUFFERS, TURNS, Ns3RoundRobin))),
        ("telemetry", key_with(models(&ccas, PsTiming, ExactTelemetry, BUFFERS, TURNS, RoundRobin))),
    ]);
}

#[test]
fn thresholds_of_pfc_count() {
    let Scenario { ccas, .. } = incast();
    let changes: [Change<StaticThreshold>; 3] =
        [("pause", |b| b.pause += 1), ("resume", |b| b.resume += 1), ("limit", |b| b.limit += 1)];
    let key = |b: &StaticThreshold| key_with(models(&ccas, PsTiming, TELEMETRY, *b, TURNS, RoundRobin));
    assert_each_counts(&SHARES, &changes, key);
    assert!(key(&SHARES) != key_with(models(&ccas, PsTiming, TELEMETRY, BUFFERS, TURNS, RoundRobin)));
}

/// A congestion control in another version, or under another name.
#[derive(Clone, Copy)]
struct Renamed {
    cca: Dctcp,
    id: ModelId,
}

impl CongestionControl for Renamed {
    type State = <Dctcp as CongestionControl>::State;

    fn id(&self) -> ModelId {
        self.id
    }

    fn needs(&self) -> CcaNeeds {
        self.cca.needs()
    }

    fn start(&self, flow: &FlowFacts, now: SimTime) -> (Self::State, SendControl) {
        self.cca.start(flow, now)
    }

    fn on_ack(&self, state: &mut Self::State, ack: &Ack<'_>, out: &mut CcaOut) {
        self.cca.on_ack(state, ack, out);
    }

    fn on_timer(&self, state: &mut Self::State, timer: usize, now: SimTime, out: &mut CcaOut) {
        self.cca.on_timer(state, timer, now, out);
    }

    fn on_timeout(&self, state: &mut Self::State, now: SimTime, out: &mut CcaOut) {
        self.cca.on_timeout(state, now, out);
    }

    fn relative(&self, state: &Self::State, origin: &Origin<'_>) -> Option<Self::State> {
        self.cca.relative(state, origin)
    }

    fn absolute(&self, relative: &Self::State, origin: &Origin<'_>) -> Self::State {
        self.cca.absolute(relative, origin)
    }
}

#[test]
fn versions_of_models_count() {
    let cca = Dctcp::new(DctcpConfig::default());
    let changes: [Change<Renamed>; 3] = [
        ("version", |r| r.id.version += 1),
        ("name", |r| r.id.name = "dctcq"),
        ("configuration", |r| r.id.config ^= 1),
    ];
    let key = |renamed: &Renamed| {
        let ccas = [*renamed];
        key_with(models(&ccas, PsTiming, TELEMETRY, BUFFERS, TURNS, RoundRobin))
    };
    let base = Renamed { cca, id: cca.id() };
    assert_each_counts(&base, &changes, key);
}

/// Two leaves with a host each, and two spines, one of which is farther away.
fn unequal_paths(seed: u64) -> Scenario {
    let mut nodes = vec![NodeKind::Host; 2];
    nodes.resize(6, NodeKind::Switch);
    let mut links = vec![link(0, 2), link(1, 3), link(2, 4), link(3, 4), link(2, 5), link(3, 5)];
    links[4].delay = Span::from_us(3);
    let mut flow = FlowSpec::new(NodeId(0), NodeId(1), 100_000, SimTime::ZERO);
    // Given, so that only the path tells.
    (flow.base_rtt, flow.bdp) = (Some(Span::from_us(10)), Some(100_000));
    Scenario { seed, shape: Shape::LeafSpine, nodes, links, flows: vec![flow], ..incast() }
}

#[test]
fn a_seed_counts_where_it_chooses_a_path() {
    // Mean round-trip times tell the paths of data and acknowledgements: there are three sums of delays.
    let runs: Vec<(Key, Span)> = (0..40)
        .map(|seed| {
            let scenario = unequal_paths(seed);
            let plain = scenario.with_models(Drive { tier: Tier::Off, plan: None, memo: None });
            (key(&scenario), plain.done[0].fct)
        })
        .collect();
    let distinct = |list: Vec<&Span>| list.into_iter().collect::<BTreeSet<_>>().len();
    assert_eq!(distinct(runs.iter().map(|(_, fct)| fct).collect()), 3, "all paths are taken");
    for (a, b) in runs.iter().flat_map(|a| runs.iter().map(move |b| (a, b))) {
        assert!(a.1 == b.1 || a.0 != b.0, "one key for {:?} and {:?}", a.1, b.1);
    }
    // Data and acknowledgements choose among two spines each.
    let keys: BTreeSet<&Key> = runs.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), 4, "one key per choice of paths");
}

/// A fabric of a few hosts with no choice of paths, and flows on it.
fn any(seed: u64) -> Scenario {
    let rng = &mut Rng(seed ^ 0x6e79);
    let shape = [Shape::Star, Shape::Dumbbell][rng.below(2) as usize];
    let rate = rng.pick(&[25, 100]);
    // Hosts have one rate: that of the first of them is in all thresholds of buffers, as in ns-3.
    let rates = [rate, if rng.one_in(3) { 0 } else { 4 * rate }];
    let jitter = if rng.one_in(3) { 100 } else { 1 };
    let mut build = Build { delay: rng.between(1, 4), jitter, hosts: [3, 8], ..Build::new(rates) };
    build.shape(rng, shape);
    let Build { nodes, links, .. } = build;
    let hosts = nodes.iter().filter(|&&kind| kind == NodeKind::Host).count() as u64;
    let (cca, in_step) = (rng.below(7), rng.one_in(2));
    let kind = rng.below(3);
    let flow = |token: u64, rng: &mut Rng| {
        let (src, dst) = match kind {
            0 => (token % hosts, (token + 1) % hosts),
            1 => (1 + token % (hosts - 1), 0),
            _ => {
                let dst = rng.below(hosts);
                ((dst + 1 + rng.below(hosts - 1)) % hosts, dst)
            }
        };
        let bytes = if rng.one_in(3) { rng.between(1, 200_000) } else { 200_000 };
        // Flows that start at one time open in the order in which they are added, which is part of the state.
        let start = if in_step { SimTime::ZERO } else { SimTime(token * 10_000 + rng.below(10_000)) };
        FlowSpec {
            cca: if cca < 6 { cca } else { rng.below(6) } as u8,
            token,
            ..FlowSpec::new(NodeId(src as u32), NodeId(dst as u32), bytes, start)
        }
    };
    let flows = (0..rng.between(1, 10)).map(|token| flow(token, rng)).collect();
    let ccas = wormhole_tests::ccas().into();
    // Marks by chance would be others.
    let profile = if in_step && rng.one_in(2) { Profile::Ns3 } else { Profile::Ps };
    Scenario { seed, shape, profile, nodes, links, flows, ccas, buffer: 32 << 20, ecn: None, lossy: false }
}

/// A random order of so many things.
fn shuffled(count: usize, rng: &mut Rng) -> Vec<usize> {
    let mut order: Vec<usize> = (0..count).collect();
    (1..count).rev().for_each(|i| order.swap(i, rng.below(i as u64 + 1) as usize));
    order
}

/// The same under other names: nodes and links have other numbers, links other ends, and flows are added in another
/// order, unless that is the order in which they open. Tokens stay.
fn relabelled(scenario: &Scenario) -> Scenario {
    let Scenario { seed, shape, profile, buffer, ecn, lossy, .. } = *scenario;
    let rng = &mut Rng(seed ^ 0x1abe1);
    let names = shuffled(scenario.nodes.len(), rng);
    let name = |node: NodeId| NodeId(names[node.0 as usize] as u32);
    let mut nodes = scenario.nodes.clone();
    names.iter().zip(&scenario.nodes).for_each(|(&to, &kind)| nodes[to] = kind);
    let link = |at: usize, swap: bool| {
        let LinkSpec { a, b, .. } = scenario.links[at];
        let (a, b) = if swap { (b, a) } else { (a, b) };
        LinkSpec { a: name(a), b: name(b), ..scenario.links[at] }
    };
    let links = shuffled(scenario.links.len(), rng).into_iter().map(|at| link(at, rng.one_in(2))).collect();
    let mut flows = scenario.flows.clone();
    if flows.iter().any(|flow| flow.start > SimTime::ZERO) {
        flows = shuffled(flows.len(), rng).into_iter().map(|at| scenario.flows[at]).collect();
    }
    flows.iter_mut().for_each(|flow| (flow.src, flow.dst) = (name(flow.src), name(flow.dst)));
    Scenario { seed, shape, profile, nodes, links, flows, ccas: scenario.ccas.clone(), buffer, ecn, lossy }
}

#[test]
fn names_do_not_count() {
    let mut keys_seen = 0;
    for_all_seeds(100, any, |scenario| {
        let other = relabelled(scenario);
        let last = scenario.flows.iter().map(|flow| flow.start).max().expect("a flow");
        let later = Rng(scenario.seed).below(30_000_000);
        for (at, precision) in [(SimTime(last.0 + 1), Precision::Exact), (last, Precision::Quantised)]
            .into_iter()
            .chain([(SimTime(last.0 + later), Precision::Exact)])
        {
            let [keys, others] = [scenario, &other].map(|s| s.with_models(Keys { at, precision }));
            let same = keys.iter().zip(&others).filter(|(a, b)| a == b).count();
            assert!(keys == others, "{same} of {} and {} keys, {precision:?} at {at:?}", keys.len(), others.len());
            keys_seen += keys.len();
        }
    });
    assert!(keys_seen > 0);
}

/// Completions by token: what does not depend on names.
fn ends(seen: &Seen) -> Vec<(u64, SimTime, Span, u64, Span)> {
    let end = |done: &Completion| (done.token, done.start, done.fct, done.bytes, done.mean_rtt);
    let mut ends: Vec<_> = seen.done.iter().map(end).collect();
    ends.sort();
    ends
}

#[test]
fn what_has_equal_keys_has_equal_futures() {
    let (mut hits, mut complete, mut runs, mut met_anew) = (0, 0, 0, 0);
    // In about 1 of 14; few seeds would be a matter of luck.
    for_all_seeds(400, any, |scenario| {
        let other = relabelled(scenario);
        let plain = [scenario, &other].map(|s| s.with_models(Drive { tier: Tier::Off, plan: None, memo: None }));
        assert_eq!(ends(&plain[0]), ends(&plain[1]), "it is the same under other names");
        let mut words = vec![0; 1 << 18];
        let mut store = Store::new(&mut words);
        let [first, second] = [scenario, &other].map(|s| {
            let memo = Some((&mut store, Memoisation::default()));
            s.with_models(Drive { tier: Tier::Exact, plan: None, memo })
        });
        for seen in [&first, &second] {
            assert_eq!(ends(&plain[0]), ends(seen));
        }
        // What was interrupted was not kept, and is met again. Besides, after a playback some partitions are met in a
        // state that a simulation passes by: that costs a miss, not a result.
        let (learnt, again) = (first.memoised, second.memoised);
        met_anew += u64::from(again.misses > learnt.unkept);
        runs += 1;
        complete += u64::from(learnt.unkept == 0);
        hits += again.hits;
    });
    println!("{runs} runs, {complete} of them kept whole, {hits} hits; in {met_anew} something was met anew");
    assert!(runs < 100 || 10 * met_anew <= runs, "{met_anew} of {runs} runs have met something anew");
    assert!(runs < 100 || 3 * complete >= runs && hits >= runs, "{runs} runs, {complete} kept whole, {hits} hits");
}

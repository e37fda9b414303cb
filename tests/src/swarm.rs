//! Small random scenarios, each from one seed.
//!
//! `WORMHOLE_SWARM_SEEDS=5000` runs more of them, `WORMHOLE_SWARM_FIRST=1234 WORMHOLE_SWARM_SEEDS=1` only one.

use crate::shrink::{Shrink, failure, shrink, without_some};
use crate::{Rng, ccas};
use std::fmt;
use wormhole_kernel::router::Router;
use wormhole_kernel::telemetry::ExactTelemetry;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{
    BitRate, FabricSize, FlowSpec, Limits, LinkSpec, ModelSet, Models, NodeId, NodeKind, SimTime, Span, Transport,
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

/// Far more events than any of these scenarios takes.
pub const EVENT_BUDGET: u64 = 20_000_000;
/// Rates of links, in Gb/s.
pub const RATES: [u64; 5] = [10, 25, 100, 200, 400];

/// The form of a fabric.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Shape {
    /// One switch.
    Star,
    /// Two switches.
    Dumbbell,
    /// Two layers.
    LeafSpine,
    /// Three layers.
    FatTree,
    /// Cyclic buffer dependencies: PFC may deadlock.
    Ring,
    /// Two switches with several links between them.
    Parallel,
    /// Switches joined at random, each with hosts.
    Graph,
    /// Servers whose hosts hang on a leaf each: one leaf a rail, and spines.
    Rail,
}

/// All of them; those that have been there from the first are the first six.
pub const SHAPES: [Shape; 8] = [
    Shape::Star,
    Shape::Dumbbell,
    Shape::LeafSpine,
    Shape::FatTree,
    Shape::Ring,
    Shape::Parallel,
    Shape::Graph,
    Shape::Rail,
];

/// A model family, and how it routes.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Profile {
    /// `ps`.
    Ps,
    /// `ps` with packet spraying.
    PsSpray,
    /// `ns3`.
    Ns3,
}

/// What a seed stands for.
#[derive(Clone)]
pub struct Scenario {
    /// It seeds whatever is random in the simulation, too.
    pub seed: u64,
    /// Of the fabric.
    pub shape: Shape,
    /// Model family.
    pub profile: Profile,
    /// Hosts and switches.
    pub nodes: Vec<NodeKind>,
    /// Between them.
    pub links: Vec<LinkSpec>,
    /// The traffic; tokens count it.
    pub flows: Vec<FlowSpec>,
    /// Congestion controls that flows choose from.
    pub ccas: Vec<AnyCca>,
    /// Bytes of a switch.
    pub buffer: u32,
    /// ECN thresholds; without any nothing is marked.
    pub ecn: Option<&'static [Thresholds]>,
    /// Some links lose frames.
    pub lossy: bool,
}

/// RED at moderate queues.
pub const RED: &[Thresholds] = &[Thresholds { rate: BitRate::from_gbps(100), kmin: 40_000, kmax: 160_000, pmax: 0.2 }];

/// What is done with the models of a scenario, whichever family they are.
pub trait Use {
    /// What comes of it.
    type Out;

    /// Does it.
    fn with<M: Models<Timing: Default>>(self, scenario: &Scenario, models: ModelSet<'_, M>) -> Self::Out;
}

impl Scenario {
    /// Any traffic on any fabric.
    pub fn new(seed: u64) -> Scenario {
        let rng = &mut Rng(seed);
        let shape = SHAPES[rng.below(6) as usize];
        let profile = [Profile::Ps, Profile::Ps, Profile::PsSpray, Profile::Ns3, Profile::Ns3][rng.below(5) as usize];
        let mut build = Build { delay: rng.between(1, 4), ..Build::new([0; 2]) };
        build.rates = if rng.one_in(3) { [0; 2] } else { [rng.pick(&RATES), rng.pick(&RATES)] };
        build.shape(rng, shape);
        let Build { nodes, mut links, .. } = build;
        let lossy = profile != Profile::Ns3 && rng.one_in(4);
        if lossy {
            let loss = loss_fraction(0.002 * rng.between(1, 10) as f64);
            links.iter_mut().filter(|_| rng.one_in(3)).for_each(|link| link.loss = loss);
        }
        // PFC frames can be lost, too, and a lost RESUME ends a port's life: keep PFC out of lossy fabrics.
        let buffer = (if lossy { 256 } else { rng.between(1, 32) } as u32) << 20;
        let flows = flows(rng, &nodes, profile);
        let ecn = (!rng.one_in(4)).then_some(RED);
        Scenario { seed, shape, profile, nodes, links, flows, ccas: ccas().into(), buffer, ecn, lossy }
    }

    /// The models of profile `ps`.
    pub fn models<R: Router>(&self, router: R) -> ModelSet<'_, Ps<'static, R>> {
        ModelSet {
            ccas: &self.ccas,
            timing: PsTiming,
            telemetry: ExactTelemetry,
            buffers: DynamicThreshold { bytes: self.buffer, wraps: false },
            scheduler: ControlThenRoundRobin,
            marker: self.marker(Coins::PerPort { seed: self.seed }),
            loss: BernoulliLoss::Counter { seed: self.seed },
            router,
            nic: RoundRobin,
            transport: Transport::default(),
        }
    }

    /// The models of profile `ns3`.
    pub fn ns3_models(&self) -> ModelSet<'_, Ns3<'static, Ecmp>> {
        ModelSet {
            ccas: &self.ccas,
            timing: Ns3Timing,
            telemetry: Ns3Telemetry { multiplier: 1 },
            buffers: DynamicThreshold { bytes: self.buffer, wraps: true },
            scheduler: ControlThenRoundRobin,
            marker: self.marker(Coins::Ns3(Ns3Coins::after_setup(self.nodes.len(), 0))),
            loss: BernoulliLoss::Ns3,
            router: Ecmp::new(EcmpHash::Ns3),
            nic: Ns3RoundRobin,
            transport: Transport { timeout: None, ns3_quirks: true, ..Transport::default() },
        }
    }

    fn marker(&self, coins: Coins) -> RedMarker<'static> {
        RedMarker { thresholds: self.ecn.unwrap_or(RED), enabled: self.ecn.is_some(), coins }
    }

    /// Enough for the scenario, but for inputs and acceleration.
    pub fn limits(&self) -> Limits {
        let flows = self.flows.len();
        Limits { queued_flows: flows, active_flows: flows, packets: 60_000, outputs: 7, inputs: 0, snapshot_words: 0 }
    }

    /// Of the fabric.
    pub fn size(&self) -> FabricSize {
        FabricSize { nodes: self.nodes.len(), links: self.links.len() }
    }

    /// Hands the models to `user`.
    pub fn with_models<U: Use>(&self, user: U) -> U::Out {
        match self.profile {
            Profile::Ps => user.with(self, self.models(Ecmp::new(EcmpHash::Salted(self.seed)))),
            Profile::PsSpray => user.with(self, self.models(Spray::new(self.seed))),
            Profile::Ns3 => user.with(self, self.ns3_models()),
        }
    }
}

/// A fabric in the making.
pub struct Build {
    /// So far.
    pub nodes: Vec<NodeKind>,
    /// So far.
    pub links: Vec<LinkSpec>,
    /// Of links at hosts and of others, in Gb/s; 0: each link its own.
    pub rates: [u64; 2],
    /// Stretches all delays.
    pub delay: u64,
    /// Delays differ by less than this, in nanoseconds.
    pub jitter: u64,
    /// Hosts of a switch: least and most.
    pub hosts: [u64; 2],
}

impl Build {
    /// Nothing yet.
    pub fn new(rates: [u64; 2]) -> Build {
        Build { nodes: vec![], links: vec![], rates, delay: 1, jitter: 100, hosts: [2, 4] }
    }

    /// More nodes; gives their numbers.
    pub fn add(&mut self, kind: NodeKind, count: u64) -> Vec<u32> {
        let first = self.nodes.len() as u32;
        self.nodes.resize(self.nodes.len() + count as usize, kind);
        (first..first + count as u32).collect()
    }

    /// A link of a rate as asked for and a fitting delay.
    pub fn link(&mut self, rng: &mut Rng, a: u32, b: u32) {
        let at_host = self.nodes[a as usize] == NodeKind::Host;
        let gbps = match self.rates[usize::from(!at_host)] {
            0 => rng.pick(&RATES),
            fixed => fixed,
        };
        // Headroom is three times the pipe. What comes after a PAUSE is two pipes and less than four packets: a pipe
        // that holds four packets is enough.
        let least_ns = (4 * 1_098 * 8u64).div_ceil(gbps);
        let delay = Span::from_ns(least_ns * self.delay + rng.below(self.jitter));
        self.links.push(LinkSpec { a: NodeId(a), b: NodeId(b), rate: BitRate::from_gbps(gbps), delay, loss: 0 });
    }

    /// The whole fabric.
    pub fn shape(&mut self, rng: &mut Rng, shape: Shape) {
        match shape {
            Shape::Star => {
                self.groups_of(rng, 1);
            }
            Shape::Dumbbell => {
                let switches = self.groups_of(rng, 2);
                self.link(rng, switches[0], switches[1]);
            }
            Shape::Parallel => {
                let switches = self.groups_of(rng, 2);
                (0..rng.between(2, 5)).for_each(|_| self.link(rng, switches[0], switches[1]));
            }
            Shape::Ring => self.ring(rng),
            Shape::LeafSpine => self.leaf_spine(rng),
            Shape::FatTree => self.fat_tree(rng),
            Shape::Graph => self.graph(rng),
            Shape::Rail => self.rail(rng),
        }
    }

    /// Switches with hosts of their own.
    fn groups_of(&mut self, rng: &mut Rng, switches: u64) -> Vec<u32> {
        let [least, most] = self.hosts;
        let hosts: Vec<Vec<u32>> = (0..switches).map(|_| self.add(NodeKind::Host, rng.between(least, most))).collect();
        let switches = self.add(NodeKind::Switch, switches);
        for (group, &switch) in hosts.iter().zip(&switches) {
            group.iter().for_each(|&host| self.link(rng, host, switch));
        }
        switches
    }

    fn ring(&mut self, rng: &mut Rng) {
        let size = rng.between(3, 6);
        let switches = self.groups_of(rng, size);
        for i in 0..switches.len() {
            self.link(rng, switches[i], switches[(i + 1) % switches.len()]);
        }
    }

    /// A tree, so that all are joined, and some links besides; a few of them parallel ones.
    fn graph(&mut self, rng: &mut Rng) {
        let size = rng.between(2, 8);
        let switches = self.groups_of(rng, size);
        for i in 1..switches.len() {
            let elder = switches[rng.below(i as u64) as usize];
            self.link(rng, switches[i], elder);
        }
        for _ in 0..rng.below(size + 1) {
            let (a, step) = (rng.below(size), rng.between(1, size - 1));
            self.link(rng, switches[a as usize], switches[((a + step) % size) as usize]);
        }
    }

    fn rail(&mut self, rng: &mut Rng) {
        let (servers, rails) = (rng.between(2, 4), rng.between(2, 4));
        let (hosts, leaves) = (self.add(NodeKind::Host, servers * rails), self.add(NodeKind::Switch, rails));
        let spines = self.add(NodeKind::Switch, rng.between(1, 3));
        hosts.iter().for_each(|&host| self.link(rng, host, leaves[host as usize % leaves.len()]));
        for leaf in leaves {
            spines.iter().for_each(|&spine| self.link(rng, leaf, spine));
        }
    }

    fn leaf_spine(&mut self, rng: &mut Rng) {
        let size = rng.between(2, 4);
        let leaves = self.groups_of(rng, size);
        let spines = self.add(NodeKind::Switch, rng.between(1, 4));
        for leaf in leaves {
            spines.iter().for_each(|&spine| self.link(rng, leaf, spine));
        }
    }

    /// The fat-tree of 16 hosts, four pods and 20 switches (Al-Fares, SIGCOMM 2008, k = 4).
    fn fat_tree(&mut self, rng: &mut Rng) {
        let (hosts, edges) = (self.add(NodeKind::Host, 16), self.add(NodeKind::Switch, 8));
        let (aggregates, cores) = (self.add(NodeKind::Switch, 8), self.add(NodeKind::Switch, 4));
        for (i, &host) in hosts.iter().enumerate() {
            self.link(rng, host, edges[i / 2]);
        }
        for i in 0..16 {
            self.link(rng, edges[i / 2], aggregates[i / 4 * 2 + i % 2]);
        }
        for i in 0..16 {
            self.link(rng, aggregates[i / 2], cores[i / 2 % 2 * 2 + i % 2]);
        }
    }
}

/// Random flows between the hosts; tokens count them.
fn flows(rng: &mut Rng, nodes: &[NodeKind], profile: Profile) -> Vec<FlowSpec> {
    let hosts = nodes.iter().filter(|&&kind| kind == NodeKind::Host).count() as u64;
    let (cca, incast, span) = (rng.below(12), rng.one_in(4), rng.pick(&[1, 10_000, 1_000_000]));
    let mut flow = |token| {
        let dst = if incast { 0 } else { rng.below(hosts) };
        let src = (dst + 1 + rng.below(hosts - 1)) % hosts;
        // Half of them small: sizes are spread over orders of magnitude.
        let most = rng.pick(&[1, 100, 3_000, 50_000, 300_000, 300_000]);
        FlowSpec {
            cca: if cca < 6 { cca } else { rng.below(6) } as u8,
            priority: if profile == Profile::Ns3 { 3 } else { rng.between(1, 7) as u8 },
            src_port: 1_000 + rng.below(50_000) as u16,
            token,
            ..FlowSpec::new(
                NodeId(src as u32),
                NodeId(dst as u32),
                rng.between(1, most),
                SimTime(rng.below(span) * 1_000),
            )
        }
    };
    // Start times on whole nanoseconds: profile ns3 knows no others.
    (0..1 + 2 * hosts.min(12)).map(&mut flow).collect()
}

fn number(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name} is no number: {text}")))
}

impl fmt::Display for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Scenario { seed, shape, profile, buffer, lossy, flows, .. } = self;
        write!(f, "seed {seed}, {shape:?}, {profile:?}, buffer {buffer}, lossy {lossy}, {} flows", flows.len())?;
        let row = |flow: &FlowSpec| {
            let FlowSpec { src, dst, bytes, start, priority, cca, .. } = flow;
            format!("\n  {} to {}, {bytes} bytes at {start:?}, priority {priority}, CCA {cca}", src.0, dst.0)
        };
        // All flows of a scenario that was made small.
        if flows.len() <= 8 { write!(f, "{}", flows.iter().map(row).collect::<String>()) } else { Ok(()) }
    }
}

impl Shrink for Scenario {
    fn smaller(&self) -> Vec<Scenario> {
        let with = |mut flows: Vec<FlowSpec>| {
            (0..).zip(&mut flows).for_each(|(token, flow)| flow.token = token);
            Scenario { flows, ..self.clone() }
        };
        let shorter = |at: usize| {
            let mut flows = self.flows.clone();
            flows[at].bytes = flows[at].bytes.div_ceil(2);
            (flows[at].bytes < self.flows[at].bytes).then(|| with(flows))
        };
        let fewer = without_some(&self.flows).into_iter().filter(|flows| !flows.is_empty()).map(with);
        fewer.chain((0..self.flows.len()).filter_map(shorter)).collect()
    }
}

/// Runs `check` on the case that `make` makes of every seed, of so many unless the environment says otherwise. Names
/// all those that fail, and each as small as it still fails.
///
/// # Panics
/// If any fails.
pub fn for_all_seeds<C: fmt::Display + Shrink>(default: u64, make: impl Fn(u64) -> C, check: impl FnMut(&C)) {
    for_all_seeds_keeping(default, make, check, |_, _| ());
}

/// As [`for_all_seeds`]; `keep` gets the case of every seed that fails, and then the smallest that is found from it.
///
/// # Panics
/// If any fails.
pub fn for_all_seeds_keeping<C: fmt::Display + Shrink>(
    default: u64,
    make: impl Fn(u64) -> C,
    mut check: impl FnMut(&C),
    keep: impl Fn(u64, &C),
) {
    let first = number("WORMHOLE_SWARM_FIRST", 0);
    let mut failed = vec![];
    for seed in first..first + number("WORMHOLE_SWARM_SEEDS", default) {
        let case = make(seed);
        let Some(text) = failure(|| check(&case)) else { continue };
        eprintln!("seed {seed} failed: {text}\n{case}");
        keep(seed, &case);
        // Where it fails is the first line: another failure is another matter.
        let place = |text: &str| text.lines().next().map(str::to_owned);
        let is_same = |other: Option<String>| other.is_some_and(|other| place(&other) == place(&text));
        let smallest = shrink(case, |smaller| is_same(failure(|| check(smaller))));
        let text = failure(|| check(&smallest)).unwrap_or_else(|| "it does not fail again".into());
        eprintln!("seed {seed} shrinks to: {text}\n{smallest}");
        keep(seed, &smallest);
        failed.push(seed);
    }
    assert!(failed.is_empty(), "seeds that failed: {failed:?} (WORMHOLE_SWARM_FIRST=<seed> WORMHOLE_SWARM_SEEDS=1)");
}

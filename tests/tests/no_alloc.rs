//! A kernel that is built and has its flows allocates nothing any more.

use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::kernel::Step;
use wormhole_kernel::router::Router;
use wormhole_kernel::{
    BitRate, FabricSize, FlowEnd, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, NodeId, NodeKind, SimTime, Span,
    Transport,
};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};
use wormhole_models::ecn::{Coins, RedMarker, Thresholds};
use wormhole_models::loss::BernoulliLoss;
use wormhole_models::nic::RoundRobin;
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash, Route, TableRouter};
use wormhole_models::scheduler::ControlThenRoundRobin;
use wormhole_tests::counting::{Counting, allocated};

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Allocations of this thread while `run` runs.
fn allocations(run: impl FnOnce()) -> u64 {
    allocated(run).1.calls
}

const HOSTS: u32 = 16;
const FLOWS: usize = (HOSTS * (HOSTS - 1)) as usize;
const RED: &[Thresholds] = &[Thresholds { rate: BitRate::from_gbps(100), kmin: 20_000, kmax: 80_000, pmax: 0.2 }];

/// The fat-tree of k = 4: hosts 0 to 15, edge switches 16 to 23, aggregation 24 to 31, core 32 to 35.
///
/// The links of each switch: an edge's ports 0 and 1 are hosts, 2 and 3 go up; an aggregation's 0 and 1 go down to
/// the edges of its pod, 2 and 3 up; port p of a core goes to pod p.
fn fat_tree() -> (Vec<NodeKind>, Vec<LinkSpec>) {
    let mut nodes = vec![NodeKind::Host; HOSTS as usize];
    nodes.resize(36, NodeKind::Switch);
    let hosts = (0..16).map(|i| (i, 16 + i / 2));
    let edges = (0..16).map(|i| (16 + i / 2, 24 + i / 4 * 2 + i % 2));
    let cores = (0..16).map(|i| (24 + i / 2, 32 + i / 2 % 2 * 2 + i % 2));
    let link = |(a, b)| LinkSpec {
        a: NodeId(a),
        b: NodeId(b),
        rate: BitRate::from_gbps(100),
        delay: Span::from_us(1),
        loss: 0,
    };
    (nodes, hosts.chain(edges).chain(cores).map(link).collect())
}

/// Up anywhere, down where the host is.
fn routes() -> Vec<Route> {
    let mut routes = vec![];
    for node in 0..36 {
        for dst in (0..HOSTS).filter(|&dst| dst != node) {
            let down = match node {
                0..16 => vec![0],
                16..24 if dst / 2 == node - 16 => vec![dst % 2],
                24..32 if dst / 4 == (node - 24) / 2 => vec![dst / 2 % 2],
                32.. => vec![dst / 4],
                _ => vec![2, 3],
            };
            routes.extend(down.into_iter().map(|port| Route { node: NodeId(node), dst: NodeId(dst), port }));
        }
    }
    routes
}

fn models<R: Router>(cca: &AnyCca, router: R, buffer: u32) -> ModelSet<'_, Ps<'static, R>> {
    ModelSet {
        ccas: std::slice::from_ref(cca),
        timing: wormhole_kernel::timing::PsTiming,
        telemetry: wormhole_kernel::telemetry::ExactTelemetry,
        buffers: DynamicThreshold { bytes: buffer, wraps: false },
        scheduler: ControlThenRoundRobin,
        marker: RedMarker { thresholds: RED, enabled: true, coins: Coins::PerPort { seed: 1 } },
        loss: BernoulliLoss::Counter { seed: 1 },
        router,
        nic: RoundRobin,
        transport: Transport::default(),
    }
}

/// Runs `flows` in one of the tiers; counts the allocations of the run, then sees that it was one. Gives the number of
/// events skipped.
fn assert_allocates_nothing<R: Router>(cca: &AnyCca, router: R, tier: Tier, flows: &[FlowSpec]) -> u64 {
    let (nodes, links) = fat_tree();
    let limits = Limits {
        queued_flows: FLOWS,
        active_flows: FLOWS,
        packets: 65_536,
        outputs: 512,
        inputs: 1,
        snapshot_words: 1 << 18,
    };
    // Small enough for PFC to take part; where it might, nothing is skipped.
    let buffer = if tier == Tier::Off { 1 << 20 } else { 32 << 20 };
    let models = models(cca, router, buffer);
    let size = FabricSize { nodes: nodes.len(), links: links.len() };
    let mut memory = vec![0; Kernel::<Ps<'static, R>>::words(size, &limits, &models)];
    let mut kernel = Kernel::new(&mut memory, &nodes, &links, models, &limits, ()).expect("a kernel");
    kernel.accelerate(Acceleration { tier, detector: Detector::CYCLE }).expect("memory for it");
    for flow in flows {
        // This also walks the path both ways: a router that keeps distances has all of them from here on.
        kernel.add_flow(flow).expect("a flow");
    }
    let mut done = 0;
    let counted = allocations(|| {
        assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::Idle));
        while let Some(completion) = kernel.poll_completion() {
            done += usize::from(completion.end() == FlowEnd::Done);
        }
    });
    assert_eq!(done, flows.len());
    assert_eq!(counted, 0, "{cca:?}, {tier:?}");
    kernel.skipped().events
}

fn all_to_all() -> Vec<FlowSpec> {
    let flow = |i: u32| {
        let (src, step) = (i % HOSTS, 1 + i / HOSTS);
        FlowSpec::new(NodeId(src), NodeId((src + step) % HOSTS), 20_000, SimTime::from_ns(u64::from(i)))
    };
    (0..FLOWS as u32).map(flow).collect()
}

/// Each edge switch's hosts among themselves, and a flow that joins two of these pairs when both are under way.
fn long_pairs() -> Vec<FlowSpec> {
    let pairs = (0..HOSTS / 2).map(|i| FlowSpec::new(NodeId(2 * i), NodeId(2 * i + 1), 2_000_000, SimTime::ZERO));
    let joining = FlowSpec::new(NodeId(0), NodeId(3), 100_000, SimTime::from_ns(100_000));
    pairs.chain([joining]).collect()
}

fn ccas() -> [AnyCca; 6] {
    [
        AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Unlimited))),
        AnyCca::Hpcc(Hpcc::new(HpccConfig::default())),
        AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default())),
        AnyCca::Timely(Timely::new(TimelyConfig::default())),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig::default())),
        AnyCca::Swift(Swift::new(SwiftConfig::default())),
    ]
}

#[test]
fn the_allocator_counts() {
    assert_eq!(allocations(|| drop(std::hint::black_box(Box::new(1)))), 1);
    assert_eq!(allocations(|| ()), 0);
}

#[test]
fn a_run_over_static_routes_allocates_nothing() {
    let routes = routes();
    for cca in ccas() {
        let router = TableRouter::new(&routes).expect("sorted routes");
        assert_allocates_nothing(&cca, router, Tier::Off, &all_to_all());
    }
}

/// ECMP works a distance field out when it is first asked about a destination, and a list of next hops in scratch
/// memory: adding flows has asked about all of them.
#[test]
fn a_run_over_known_ecmp_routes_allocates_nothing() {
    for cca in ccas() {
        assert_allocates_nothing(&cca, Ecmp::new(EcmpHash::Salted(1)), Tier::Off, &all_to_all());
    }
}

#[test]
fn a_run_that_is_accelerated_allocates_nothing() {
    for tier in [Tier::Exact, Tier::Bounded] {
        let mut skipped = 0;
        for cca in ccas() {
            for flows in [all_to_all(), long_pairs()] {
                skipped += assert_allocates_nothing(&cca, Ecmp::new(EcmpHash::Salted(1)), tier, &flows);
            }
        }
        assert!(skipped > 10_000, "{tier:?} has skipped {skipped} events");
    }
}

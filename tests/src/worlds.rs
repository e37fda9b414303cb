//! Random worlds, each from one seed: any fabric, traffic, congestion control and its parameters, buffers, failures,
//! losses, limits, and settings of acceleration.

use crate::Rng;
use crate::swarm::{Build, RATES, SHAPES, Shape, for_all_seeds_keeping};
use crate::world::{Change, Flow, World};
use std::path::Path;
use wormhole::memo::MemoKeys;
use wormhole::scenario::{CcaName, Profile, Routing};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::{BitRate, NodeKind, Span};
use wormhole_models::loss::loss_fraction;

/// All that the command line knows.
pub const CCAS: [CcaName; 6] =
    [CcaName::Dcqcn, CcaName::Hpcc, CcaName::Timely, CcaName::Dctcp, CcaName::Swift, CcaName::Fixed];
/// Rates that no product has, and the slowest and fastest that some do.
const ODD_RATES: [u64; 6] =
    [1_000_000, 999_999_937, 7_000_000_000, 33_333_333_333, 1_600_000_000_000, 2_880_000_000_000];
/// Delays in picoseconds: none, the least, one that is not whole in nanoseconds, and long ones.
const ODD_DELAYS: [u64; 6] = [0, 1, 999, 1_234_567, 50_000_000, 1_000_000_000];
/// Payload of all flows of a world together: what bounds its events.
const MOST_BYTES: u64 = 3_000_000;

/// The world of a seed.
pub fn world(seed: u64) -> World {
    let rng = &mut Rng(seed ^ 0xab5e_11ed);
    let mut world = fabric(rng);
    world.seed = seed;
    world.profile = if rng.one_in(3) { Profile::Ns3 } else { Profile::Ps };
    world.routing = if world.profile == Profile::Ps && rng.one_in(8) { Routing::Spray } else { Routing::Ecmp };
    world.cca = CCAS[rng.below(6) as usize];
    world.flows = flows(rng, &world);
    if rng.one_in(4) {
        lose(rng, &mut world);
    }
    if rng.one_in(3) {
        world.changes = changes(rng, &world);
    }
    configure(rng, &mut world);
    if rng.one_in(8) {
        world.max_packets = rng.between(4, 300) as usize;
    }
    world.acceleration = acceleration(rng);
    world.memo_keys = [MemoKeys::Off, MemoKeys::Exact, MemoKeys::Quantised][rng.below(3) as usize];
    if world.acceleration.tier == Tier::Exact && world.memo_keys == MemoKeys::Quantised {
        world.memo_keys = MemoKeys::Exact;
    }
    world
}

fn fabric(rng: &mut Rng) -> World {
    let shape = SHAPES[rng.below(8) as usize];
    let rates = if rng.one_in(3) { [0; 2] } else { [rng.pick(&RATES), rng.pick(&RATES)] };
    let hosts = if shape == Shape::Star { [2, 12] } else { [1, 4] };
    let jitter = if rng.one_in(2) { 100 } else { 1 };
    let mut build = Build { delay: rng.between(1, 4), jitter, hosts, ..Build::new(rates) };
    build.shape(rng, shape);
    let Build { mut nodes, mut links, .. } = build;
    // Traffic needs two hosts, which the smallest of these fabrics may lack.
    if nodes.iter().filter(|kind| **kind == NodeKind::Host).count() < 2 {
        nodes.push(NodeKind::Host);
        let first = links[0];
        let switch = if nodes[first.a.index()] == NodeKind::Host { first.b } else { first.a };
        links.push(wormhole_kernel::LinkSpec {
            a: wormhole_kernel::NodeId(nodes.len() as u32 - 1),
            b: switch,
            ..first
        });
    }
    if rng.one_in(4) {
        for link in links.iter_mut() {
            if rng.one_in(3) {
                link.rate = BitRate(rng.pick(&ODD_RATES));
            }
            if rng.one_in(3) {
                link.delay = Span(rng.pick(&ODD_DELAYS));
            }
        }
    }
    World::new(nodes, links)
}

fn flows(rng: &mut Rng, world: &World) -> Vec<Flow> {
    let hosts: Vec<u32> =
        (0..).zip(&world.nodes).filter(|(_, kind)| **kind == NodeKind::Host).map(|(node, _)| node).collect();
    let count = hosts.len() as u64;
    let (sink, source) = (rng.below(count), rng.below(count));
    let pattern = rng.below(5);
    // How far apart starts are; of many worlds all start at once.
    let span_ns = rng.pick(&[1, 1, 1_000, 100_000, 2_000_000]);
    let most = rng.pick(&[1, 4_000, 100_000, 1_000_000]);
    let (even, one_priority) = (rng.one_in(2), rng.one_in(2));
    let flow = |rng: &mut Rng| {
        let other = |rng: &mut Rng, node: u64| (node + 1 + rng.below(count - 1)) % count;
        let (src, dst) = match pattern {
            // Incast, a burst of one host, a ring, and anything.
            0 => (other(rng, sink), sink),
            1 => (source, other(rng, source)),
            2 => {
                let src = rng.below(count);
                (src, (src + 1) % count)
            }
            _ => {
                let src = rng.below(count);
                (src, other(rng, src))
            }
        };
        let priority = if one_priority { 3 } else { rng.between(1, 7) as u8 };
        Flow {
            src: hosts[src as usize],
            dst: hosts[dst as usize],
            priority: if rng.one_in(40) { 0 } else { priority },
            port: rng.between(1, 65_535) as u16,
            bytes: if even { most } else { rng.between(1, most) },
            start_ns: rng.below(span_ns),
        }
    };
    let mut left = MOST_BYTES;
    let mut flows = vec![];
    for _ in 0..rng.between(1, 24) {
        let mut flow = flow(rng);
        flow.bytes = flow.bytes.min(left);
        left -= flow.bytes;
        if flow.bytes > 0 {
            flows.push(flow);
        }
    }
    flows
}

/// Some links lose frames now and then, or one of them many.
fn lose(rng: &mut Rng, world: &mut World) {
    let loss = loss_fraction([0.0001, 0.002, 0.02][rng.below(3) as usize]);
    world.links.iter_mut().filter(|_| rng.one_in(3)).for_each(|link| link.loss = loss);
    if rng.one_in(4) {
        let at = rng.below(world.links.len() as u64) as usize;
        world.links[at].loss = loss_fraction(0.3);
    }
}

/// Links and switches that fail, most of which come back.
fn changes(rng: &mut Rng, world: &World) -> Vec<Change> {
    let end = world.flows.iter().map(|flow| flow.start_ns).max().unwrap_or(0) + rng.pick(&[2_000, 50_000, 500_000]);
    let mut changes = vec![];
    for _ in 0..rng.between(1, 3) {
        let link = world.links[rng.below(world.links.len() as u64) as usize];
        let (a, b) = if rng.one_in(2) { (link.a.0, link.b.0) } else { (link.b.0, link.a.0) };
        let b = if rng.one_in(3) && world.nodes[a as usize] != NodeKind::Host { None } else { Some(b) };
        let at_ns = rng.below(end);
        changes.push(Change { at_ns, up: false, a, b });
        if !rng.one_in(5) {
            changes.push(Change { at_ns: at_ns + rng.below(end), up: true, a, b });
        }
    }
    changes
}

fn acceleration(rng: &mut Rng) -> Acceleration {
    let tier = if rng.one_in(2) { Tier::Exact } else { Tier::Bounded };
    let theta = rng.pick(&[1_000, 20_000, 50_000]) as u32;
    let detector = match rng.below(4) {
        0 => Detector::Cycle { theta, window: Span::from_us(rng.pick(&[2, 18, 100])) },
        1 => Detector::Paper { theta, samples: rng.pick(&[20, 200, 2_000]) as u32, interval: Span::from_us(1) },
        _ => Detector::CYCLE,
    };
    Acceleration { tier, detector }
}

/// Buffers, thresholds, the transport, and the congestion control's parameters.
fn configure(rng: &mut Rng, world: &mut World) {
    let is_ns3 = world.profile == Profile::Ns3;
    let is_calm = !world.may_lose() && world.routing == Routing::Ecmp;
    let config = &mut world.config;
    let mut set = |key: &'static str, value: String| {
        config.insert(key, value);
    };
    let flag = |rng: &mut Rng| rng.below(2).to_string();
    set("BUFFER_SIZE", rng.pick(&[1, 1, 2, 8, 32]).to_string());
    if rng.one_in(4) {
        set("ENABLE_QCN", flag(rng));
    }
    if rng.one_in(2) {
        let kmin = rng.pick(&[4, 40, 100]);
        set("KMIN_MAP", format!("1 100000000000 {kmin}"));
        set("KMAX_MAP", format!("1 100000000000 {}", kmin * rng.pick(&[1, 4])));
        set("PMAX_MAP", format!("1 100000000000 {}", ["0.01", "0.2", "1.0"][rng.below(3) as usize]));
    }
    if rng.one_in(2) {
        set("HAS_WIN", flag(rng));
        set("VAR_WIN", flag(rng));
    }
    if rng.one_in(4) {
        set("PACKET_PAYLOAD_SIZE", rng.pick(&[256, 1_500, 4_096, 9_000]).to_string());
    }
    // In ns-3 a flow that ends short of these has no end.
    if !is_ns3 && rng.one_in(6) {
        set("L2_ACK_INTERVAL", rng.pick(&[0, 1, 4_000]).to_string());
    }
    if rng.one_in(6) {
        set("L2_CHUNK_SIZE", rng.pick(&[1_000, 4_000, 16_000]).to_string());
    }
    // To begin a chunk again and again where frames are lost or overtake may take for ever.
    if is_calm && !is_ns3 && rng.one_in(4) {
        set("L2_BACK_TO_ZERO", flag(rng));
    }
    for key in ["RATE_BOUND", "ACK_HIGH_PRIO", "GLOBAL_T"] {
        if rng.one_in(5) {
            set(key, flag(rng));
        }
    }
    if rng.one_in(3) {
        set("RATE_AI", format!("{}Mb/s", rng.pick(&[0, 5, 50, 1_000])));
        set("RATE_HAI", format!("{}Mb/s", rng.pick(&[0, 50, 500])));
        set("MIN_RATE", format!("{}Mb/s", rng.pick(&[100, 1_000])));
    }
    match world.cca {
        CcaName::Hpcc if rng.one_in(2) => {
            set("U_TARGET", ["0.5", "0.95", "1.2"][rng.below(3) as usize].into());
            set("MI_THRESH", rng.pick(&[0, 1, 5]).to_string());
            set("FAST_REACT", flag(rng));
            set("MULTI_RATE", flag(rng));
            set("SAMPLE_FEEDBACK", flag(rng));
            set("INT_MULTI", rng.pick(&[1, 4]).to_string());
        }
        CcaName::Dcqcn if rng.one_in(2) => {
            set("EWMA_GAIN", ["0.00390625", "0.0625", "1.0"][rng.below(3) as usize].into());
            set("ALPHA_RESUME_INTERVAL", rng.pick(&[1, 55]).to_string());
            set("RATE_DECREASE_INTERVAL", rng.pick(&[4, 50]).to_string());
            set("RP_TIMER", rng.pick(&[10, 300, 1_500]).to_string());
            set("FAST_RECOVERY_TIMES", rng.pick(&[1, 5]).to_string());
            set("CLAMP_TARGET_RATE", flag(rng));
        }
        CcaName::Dctcp if rng.one_in(2) => {
            set("EWMA_GAIN", ["0.0625", "1.0"][rng.below(2) as usize].into());
            set("DCTCP_RATE_AI", format!("{}Mb/s", rng.pick(&[0, 100, 1_000])));
        }
        _ => {}
    }
    if rng.one_in(10) {
        set("SIMULATOR_STOP_TIME", format!("{}us", rng.between(0, 1_000)));
    }
}

/// Runs `check` on so many worlds, unless the environment says otherwise. Each that fails is made smaller while it
/// fails, and written into a folder of its own below `folder`.
///
/// # Panics
/// If any fails. The command that runs it is told.
pub fn for_all_worlds(default: u64, folder: &Path, check: impl FnMut(&World)) {
    for_all_seeds_keeping(default, world, check, |seed, smallest| {
        let folder = folder.join(format!("seed-{seed}"));
        let command = smallest.write(&folder);
        eprintln!("(cd {} && {command})", folder.display());
    });
}

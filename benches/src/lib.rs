//! Scenarios that the benchmarks share: fabrics built in code, so that a benchmark needs no file.

pub mod tenants;

use std::time::Duration;
use tenants::Tenants;
use wormhole::ending::{ExitStatus, explain};
use wormhole::plugin::Plugins;
use wormhole::scenario::{FlowMaker, Profile, Routing, Scenario};
use wormhole::simulate::{Outcome, simulate};
use wormhole_kernel::accel::Acceleration;
use wormhole_kernel::{BitRate, FlowSpec, LinkSpec, NodeId, NodeKind, SimTime, Span, Transport};
use wormhole_models::cca::{AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, Hpcc, HpccConfig};
use wormhole_models::ecn::Thresholds;
use wormhole_models::telemetry::{Ns3Telemetry, TIME_MODULUS_NS};

/// Rate of every link.
pub const RATE: BitRate = BitRate::from_gbps(100);
/// Delay of every link.
pub const DELAY: Span = Span::from_us(1);
/// Scale of telemetry units in profile `ns3` (`INT_MULTI`), as in runs at 100 Gb/s.
const INT_MULTIPLIER: u64 = 4;

/// The middle one of some values; of an even number, the greater of the two in the middle.
///
/// # Panics
/// If there are none.
pub fn median(values: impl Iterator<Item = f64>) -> f64 {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Nodes and links.
pub struct Graph {
    /// What the nodes are; hosts come first.
    pub nodes: Vec<NodeKind>,
    /// The links, all of [`RATE`] and [`DELAY`].
    pub links: Vec<LinkSpec>,
}

fn link(a: usize, b: usize) -> LinkSpec {
    LinkSpec { a: NodeId(a as u32), b: NodeId(b as u32), rate: RATE, delay: DELAY, loss: 0 }
}

/// `hosts` hosts around one switch.
pub fn star(hosts: usize) -> Graph {
    let mut nodes = vec![NodeKind::Host; hosts];
    nodes.push(NodeKind::Switch);
    Graph { nodes, links: (0..hosts).map(|host| link(host, hosts)).collect() }
}

/// A fat-tree of `k`-port switches: k³/4 hosts, then edge, aggregation and core switches.
///
/// # Panics
/// If `k` is odd.
pub fn fat_tree(k: usize) -> Graph {
    assert!(k.is_multiple_of(2), "a fat-tree of {k}-port switches");
    let half = k / 2;
    let (hosts, layer) = (k * half * half, k * half);
    let (edge, aggregation, core) = (hosts, hosts + layer, hosts + 2 * layer);
    let mut nodes = vec![NodeKind::Host; hosts];
    nodes.resize(core + half * half, NodeKind::Switch);
    let mut links: Vec<LinkSpec> = (0..hosts).map(|host| link(host, edge + host / half)).collect();
    for pod in 0..k {
        for (e, a) in pairs(half) {
            links.push(link(edge + pod * half + e, aggregation + pod * half + a));
        }
    }
    for pod in 0..k {
        for (a, c) in pairs(half) {
            links.push(link(aggregation + pod * half + a, core + a * half + c));
        }
    }
    Graph { nodes, links }
}

fn pairs(n: usize) -> impl Iterator<Item = (usize, usize)> {
    (0..n).flat_map(move |a| (0..n).map(move |b| (a, b)))
}

/// One flow of `bytes` from host 0 to host 1 of a star, under DCQCN.
pub fn lone_flow(profile: Profile, bytes: u64) -> Scenario {
    let dcqcn = AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default()));
    scenario(profile, star(2), vec![flow(0, 1, bytes)], dcqcn)
}

/// Every host of a fat-tree of `k`-port switches sends `bytes` to the host half the fabric away, under HPCC in
/// profile `ns3`.
pub fn permutation(k: usize, bytes: u64) -> Scenario {
    let graph = fat_tree(k);
    let hosts = graph.nodes.iter().filter(|n| **n == NodeKind::Host).count();
    let flows = (0..hosts).map(|src| flow(src, (src + hosts / 2) % hosts, bytes)).collect();
    let hpcc = AnyCca::Hpcc(Hpcc::new(HpccConfig {
        time_modulus: Span::from_ns(TIME_MODULUS_NS),
        byte_modulus: Ns3Telemetry { multiplier: INT_MULTIPLIER }.byte_modulus(),
        ..HpccConfig::default()
    }));
    scenario(Profile::Ns3, graph, flows, hpcc)
}

/// Eight rails of 16 hosts on a fat-tree of 8-port switches: every host sends `bytes` to the eighth after it, under
/// HPCC in profile `ps`. The flows of the reference run `d2_rail128_hpcc`.
pub fn rails(bytes: u64) -> Scenario {
    let rail = |first: usize| (0..16).map(move |place| flow(first + 8 * place, first + 8 * ((place + 1) % 16), bytes));
    scenario(Profile::Ps, fat_tree(8), (0..8).flat_map(rail).collect(), AnyCca::Hpcc(Hpcc::new(HpccConfig::default())))
}

/// So many stars of 16 hosts that know nothing of each other: every host sends `bytes` to the one half the star away,
/// under HPCC in profile `ps`.
pub fn stars(count: usize, bytes: u64) -> Scenario {
    const HOSTS: usize = 16;
    let hosts = count * HOSTS;
    let mut nodes = vec![NodeKind::Host; hosts];
    nodes.resize(hosts + count, NodeKind::Switch);
    let links = (0..hosts).map(|host| link(host, hosts + host / HOSTS)).collect();
    let peer = |host: usize| host / HOSTS * HOSTS + (host + HOSTS / 2) % HOSTS;
    let flows = (0..hosts).map(|host| flow(host, peer(host), bytes)).collect();
    scenario(Profile::Ps, Graph { nodes, links }, flows, AnyCca::Hpcc(Hpcc::new(HpccConfig::default())))
}

/// Rounds of an incast of 1 MB from each of so many hosts to one more, around one switch, far enough apart: DCTCP in
/// profile `ps`.
pub fn incasts(senders: usize, rounds: u64) -> Scenario {
    const BYTES: u64 = 1_000_000;
    let apart = Span::from_us(1_000 + 2 * senders as u64 * BYTES * 8 / 100_000);
    let round = |round| {
        let start = SimTime::ZERO + Span(apart.0 * round);
        (1..=senders).map(move |src| FlowSpec { start, ..flow(src, 0, BYTES) })
    };
    let dctcp = AnyCca::Dctcp(Dctcp::new(DctcpConfig::default()));
    scenario(Profile::Ps, star(senders + 1), (0..rounds).flat_map(round).collect(), dctcp)
}

/// Tenants on the hosts of a fat-tree of `k`-port switches, under HPCC in profile `ps`.
pub fn tenants_on_fat_tree(k: usize, tenants: Tenants) -> Scenario {
    let hpcc = AnyCca::Hpcc(Hpcc::new(HpccConfig::default()));
    let scenario = scenario(Profile::Ps, fat_tree(k), Vec::new(), hpcc);
    Scenario { jobs: vec![tenants.job()], max_flows: tenants.hosts as usize, ..scenario }
}

fn flow(src: usize, dst: usize, bytes: u64) -> FlowSpec {
    FlowSpec::new(NodeId(src as u32), NodeId(dst as u32), bytes, SimTime::ZERO)
}

fn scenario(profile: Profile, graph: Graph, mut flows: Vec<FlowSpec>, cca: AnyCca) -> Scenario {
    for (token, flow) in (0..).zip(&mut flows) {
        flow.token = token;
    }
    let ns3 = profile == Profile::Ns3;
    let transport = Transport::default();
    Scenario {
        profile,
        seed: 1,
        routing: Routing::Ecmp,
        flows,
        jobs: Vec::new(),
        maker: FlowMaker::new(&graph.nodes, &graph.links, transport.mtu, profile, None),
        perturbation: None,
        nodes: graph.nodes,
        links: graph.links,
        link_events: Vec::new(),
        cca,
        plugins: Plugins::NONE,
        transport: Transport { timeout: if ns3 { None } else { transport.timeout }, ns3_quirks: ns3, ..transport },
        thresholds: vec![Thresholds { rate: RATE, kmin: 400_000, kmax: 1_600_000, pmax: 0.2 }],
        ecn: true,
        buffer_bytes: 32 << 20,
        int_multiplier: INT_MULTIPLIER,
        stop: SimTime::MAX,
        max_packets: 1 << 18,
        max_flows: 0,
        acceleration: Acceleration::default(),
        threads: None,
    }
}

/// Runs a scenario to its end.
///
/// # Panics
/// If it does not get there.
pub fn run(scenario: &Scenario) -> Outcome {
    let outcome = simulate(scenario, &mut ()).expect("the kernel takes the scenario");
    assert_eq!(explain(&outcome), ExitStatus::Done);
    outcome
}

/// Processor time of so many runs, set-up excluded.
pub fn cpu_time(scenario: &Scenario, runs: u64) -> Duration {
    (0..runs).map(|_| run(scenario).cpu).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fat_trees_have_the_textbook_sizes() {
        for (k, nodes, links) in [(4, 36, 48), (8, 208, 384)] {
            let graph = fat_tree(k);
            assert_eq!((graph.nodes.len(), graph.links.len()), (nodes, links));
            let ports = |node| graph.links.iter().filter(|l| l.a == NodeId(node) || l.b == NodeId(node)).count();
            for (id, kind) in (0..).zip(&graph.nodes) {
                assert_eq!(ports(id), if *kind == NodeKind::Host { 1 } else { k }, "node {id}, k {k}");
            }
        }
    }

    #[test]
    fn scenarios_run_to_their_end() {
        let lone = run(&lone_flow(Profile::Ps, 10_000));
        assert_eq!((lone.flows.len(), lone.totals.packet_hops), (1, 40));
        let permutation = run(&permutation(4, 10_000));
        assert_eq!((permutation.flows.len(), permutation.totals.packet_hops), (16, 16 * 10 * 12));
        let stars = run(&Scenario { threads: Some(2), ..stars(8, 10_000) });
        assert_eq!((stars.flows.len(), stars.totals.packet_hops, stars.threads), (128, 128 * 10 * 4, 2));
        assert_eq!(run(&rails(2_000)).flows.len(), 128);
    }
}

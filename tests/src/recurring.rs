//! Scenarios made for fast-forwarding, each from one seed: flows long enough to settle, that start in step and are
//! joined and left by others, and what a caller may do to them on the way.

use crate::Rng;
use crate::swarm::{Build, Profile, RED, Scenario, Shape};
use wormhole_kernel::ids::LinkId;
use wormhole_kernel::timing::{LinkTiming, PsTiming};
use wormhole_kernel::{BitRate, ExternalFrame, FlowSpec, LinkSpec, NodeId, NodeKind, SimTime, Span, Transport};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};
use wormhole_models::ecn::Thresholds;
use wormhole_models::loss::loss_fraction;
use wormhole_models::profile::{DCTCP_THRESHOLDS, THRESHOLDS};
use wormhole_models::telemetry::{Ns3Telemetry, TIME_MODULUS_NS};
use wormhole_models::timing::Ns3Timing;

/// A step at a low queue.
const STEP: &[Thresholds] = &[Thresholds { rate: BitRate::from_gbps(100), kmin: 30_000, kmax: 30_000, pmax: 1.0 }];

/// The scenario of a seed.
pub fn scenario(seed: u64) -> Scenario {
    let rng = &mut Rng(seed ^ 0x5eed_f0f0);
    let shape = [Shape::Star, Shape::Star, Shape::Dumbbell, Shape::LeafSpine, Shape::FatTree][rng.below(5) as usize];
    let profile = if rng.one_in(15) { Profile::PsSpray } else { [Profile::Ps, Profile::Ns3][rng.below(2) as usize] };
    let (nodes, mut links) = fabric(rng, shape);
    let lossy = rng.one_in(12);
    if lossy {
        let loss = loss_fraction(0.0005 * rng.between(1, 10) as f64);
        links.iter_mut().filter(|_| rng.one_in(4)).for_each(|link| link.loss = loss);
    }
    // PFC in a lossy fabric of ns-3 may end a port's life: it is none of our concern how often.
    let buffer = (if rng.one_in(6) { rng.between(1, 4) } else { 32 } as u32) << 20;
    let ecn = [None, Some(STEP), Some(RED), Some(&DCTCP_THRESHOLDS[..]), Some(&THRESHOLDS[..])][rng.below(5) as usize];
    let ccas = ccas(rng, profile);
    let flows = Traffic::new(rng, &nodes, &links, profile).flows(rng);
    Scenario { seed, shape, profile, nodes, links, flows, ccas, buffer, ecn, lossy }
}

/// Mostly of one rate, and always of one delay in most: then things happen at the same instants.
fn fabric(rng: &mut Rng, shape: Shape) -> (Vec<NodeKind>, Vec<LinkSpec>) {
    let rate = rng.pick(&[25, 100, 100, 400]);
    let rates = match rng.below(4) {
        0 => [rate, 4 * rate],
        1 if rng.one_in(2) => [0; 2],
        _ => [rate; 2],
    };
    let hosts = if shape == Shape::Star { [2, 16] } else { [1, 6] };
    let jitter = if rng.one_in(4) { 100 } else { 1 };
    let mut build = Build { delay: rng.between(1, 6), jitter, hosts, ..Build::new(rates) };
    build.shape(rng, shape);
    (build.nodes, build.links)
}

fn window(rng: &mut Rng) -> WindowRule {
    [WindowRule::Bdp, WindowRule::Bdp, WindowRule::BdpAtRate, WindowRule::Unlimited][rng.below(4) as usize]
}

/// One of each kind, with random options.
fn ccas(rng: &mut Rng, profile: Profile) -> Vec<AnyCca> {
    let is_ns3 = profile == Profile::Ns3;
    let fixed = [
        FixedWindowConfig::Rule(window(rng)),
        FixedWindowConfig::BdpPercent(rng.between(20, 300)),
        FixedWindowConfig::Bytes(rng.between(1, 100_000)),
    ][rng.below(3) as usize];
    let hpcc = HpccConfig {
        max_stage: rng.pick(&[0, 5]) as u32,
        fast_react: !rng.one_in(4),
        multi_rate: rng.one_in(4),
        sample_feedback: rng.one_in(4),
        window: [WindowRule::BdpAtRate, WindowRule::Bdp][rng.below(2) as usize],
        rate_quantum: if is_ns3 { 0 } else { rng.pick(&[0, 100_000_000, 1_000_000_000]) },
        time_modulus: Span::from_ns(if is_ns3 { TIME_MODULUS_NS } else { 0 }),
        byte_modulus: if is_ns3 { Ns3Telemetry { multiplier: 1 }.byte_modulus() } else { 0 },
        ..HpccConfig::default()
    };
    let dcqcn = DcqcnConfig { clamp_target: rng.one_in(3), window: window(rng), ..DcqcnConfig::default() };
    vec![
        AnyCca::FixedWindow(FixedWindow::new(fixed)),
        AnyCca::Hpcc(Hpcc::new(hpcc)),
        AnyCca::Dcqcn(Dcqcn::new(dcqcn)),
        AnyCca::Timely(Timely::new(TimelyConfig { window: window(rng), ..TimelyConfig::default() })),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig { window: window(rng), ..DctcpConfig::default() })),
        AnyCca::Swift(Swift::new(SwiftConfig::default())),
    ]
}

/// What the flows of a scenario have in common.
struct Traffic {
    hosts: u64,
    profile: Profile,
    /// 6: each flow its own.
    cca: u64,
    bytes: u64,
    /// When the first flows start, and how long they may take.
    first: Span,
    span: Span,
    /// Time of a full packet at the first host.
    packet: Span,
}

impl Traffic {
    fn new(rng: &mut Rng, nodes: &[NodeKind], links: &[LinkSpec], profile: Profile) -> Traffic {
        let bytes = rng.pick(&[300, 1_000, 2_000, 4_000, 4_000]) * 1_000;
        let bytes = if rng.one_in(20) { 20_000_000 } else { bytes };
        // Sprayed packets overtake each other and are sent again, so that long flows take ages.
        let bytes = if profile == Profile::PsSpray { 300_000 } else { bytes };
        let (rate, full) = (links[0].rate, Transport::data_bytes(1_000, 0));
        let packet = match profile {
            Profile::Ns3 => Ns3Timing.serialise(full, rate),
            _ => PsTiming.serialise(full, rate),
        };
        Traffic {
            hosts: nodes.iter().filter(|&&kind| kind == NodeKind::Host).count() as u64,
            profile,
            cca: rng.below(8).min(6),
            bytes,
            first: Span::from_ns(rng.pick(&[0, 0, 1_000, 12_345])),
            span: Span(packet.0 * (bytes / 1_000)),
            packet,
        }
    }

    fn flows(&self, rng: &mut Rng) -> Vec<FlowSpec> {
        let mut flows = vec![];
        match rng.below(4) {
            0 => self.pairs(rng, &mut flows),
            1 => (1..self.hosts.min(1 + rng.between(1, 6))).for_each(|src| flows.push(self.flow(rng, src, 0))),
            2 => (0..self.hosts.min(8)).for_each(|src| flows.push(self.flow(rng, src, (src + 1) % self.hosts))),
            _ => (0..rng.between(1, 6)).for_each(|_| self.any(rng, &mut flows)),
        }
        // In step, unless each has its own start.
        if rng.one_in(4) {
            flows.iter_mut().for_each(|flow| flow.start += self.later(rng));
        }
        let first_late = flows.len();
        (0..rng.below(5)).for_each(|_| self.any(rng, &mut flows));
        flows[first_late..].iter_mut().for_each(|flow| flow.start += self.later(rng));
        if !rng.one_in(3) {
            flows.sort_by_key(|flow| flow.start);
        }
        (0..).zip(&mut flows).for_each(|(token, flow)| flow.token = token);
        flows
    }

    /// Neighbours talk to each other: nobody has to do with anybody else.
    fn pairs(&self, rng: &mut Rng, flows: &mut Vec<FlowSpec>) {
        let both_ways = rng.one_in(3);
        for pair in 0..self.hosts / 2 {
            flows.push(self.flow(rng, 2 * pair, 2 * pair + 1));
            if both_ways {
                flows.push(self.flow(rng, 2 * pair + 1, 2 * pair));
            }
        }
    }

    fn any(&self, rng: &mut Rng, flows: &mut Vec<FlowSpec>) {
        let (dst, step) = (rng.below(self.hosts), 1 + rng.below(self.hosts - 1));
        flows.push(self.flow(rng, (dst + step) % self.hosts, dst));
    }

    fn flow(&self, rng: &mut Rng, src: u64, dst: u64) -> FlowSpec {
        let bytes = match rng.below(6) {
            0 => rng.between(1, self.bytes),
            1 => self.bytes / 3 + rng.below(5_000),
            _ => self.bytes,
        };
        FlowSpec {
            cca: (if self.cca < 6 { self.cca } else { rng.below(6) }) as u8,
            priority: if self.profile == Profile::Ns3 || !rng.one_in(8) { 3 } else { rng.between(1, 7) as u8 },
            src_port: 1_000 + rng.below(50_000) as u16,
            ..FlowSpec::new(NodeId(src as u32), NodeId(dst as u32), bytes, SimTime::ZERO + self.first)
        }
    }

    /// Some time into the run, often a whole number of packets.
    fn later(&self, rng: &mut Rng) -> Span {
        if rng.one_in(2) {
            return Span(self.packet.0 * rng.below(self.span.0 / self.packet.0));
        }
        // On whole nanoseconds: profile ns3 knows no others.
        Span::from_ns(rng.below(self.span.as_ns()))
    }
}

/// What a caller does during a run.
#[derive(Clone, Copy, Debug)]
pub enum Action {
    /// Adds the flow of this number, which starts now.
    Add(usize),
    /// Takes a link down or up.
    Link(LinkId, bool),
    /// A frame comes from outside.
    Inject(ExternalFrame),
    /// Only looks.
    Look,
    /// Looks, and has everything counted up to now.
    Count,
    /// Has partitions set up anew from their snapshots.
    Renew,
}

/// Interrupts by time; the flows of the scenario among them.
pub fn interrupts(scenario: &Scenario) -> Vec<(SimTime, Action)> {
    let rng = &mut Rng(scenario.seed ^ 0x1a7e);
    let mut plan: Vec<_> = scenario.flows.iter().enumerate().map(|(i, flow)| (flow.start, Action::Add(i))).collect();
    let last = scenario.flows.iter().map(|flow| flow.start.as_ns()).max().unwrap_or(0);
    let bytes = scenario.flows.iter().map(|flow| flow.bytes).max().unwrap_or(0);
    let end = last + 2 * PsTiming.serialise(bytes as u32, scenario.links[0].rate).as_ns();
    let moment = |rng: &mut Rng| SimTime::from_ns(rng.below(end));
    (0..rng.below(12)).for_each(|_| plan.push((moment(rng), Action::Look)));
    (0..rng.below(4)).for_each(|_| plan.push((moment(rng), Action::Count)));
    if rng.one_in(3) {
        for _ in 0..rng.between(1, 2) {
            let link = LinkId(rng.below(scenario.links.len() as u64) as u32);
            let down = moment(rng);
            plan.push((down, Action::Link(link, false)));
            plan.push((down + Span::from_ns(rng.below(end / 4)), Action::Link(link, true)));
        }
    }
    if rng.one_in(3) {
        let hosts = scenario.nodes.iter().filter(|&&kind| kind == NodeKind::Host).count() as u64;
        for token in 0..rng.between(1, 12) {
            let (dst, step) = (rng.below(hosts), 1 + rng.below(hosts - 1));
            let bytes = rng.between(1, 1_500) as u32;
            let frame = ExternalFrame::new(NodeId(((dst + step) % hosts) as u32), NodeId(dst as u32), bytes, token);
            plan.push((moment(rng), Action::Inject(frame)));
        }
    }
    plan.sort_by_key(|&(at, _)| at);
    plan
}

/// The same, and partitions are set up anew at any time.
pub fn interrupts_and_renewals(scenario: &Scenario) -> Vec<(SimTime, Action)> {
    let mut plan = interrupts(scenario);
    let (rng, end) = (&mut Rng(scenario.seed), plan.last().map_or(1, |&(at, _)| at.as_ns() + 1));
    (0..30).for_each(|_| plan.push((SimTime::from_ns(rng.below(end)), Action::Renew)));
    plan.sort_by_key(|&(at, _)| at);
    plan
}

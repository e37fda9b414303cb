//! Runs whose times can be worked out by hand, to the picosecond, on profile `ps`.
//!
//! Time of a flow: from its start to the arrival of its last acknowledgement at the sender.

use std::marker::PhantomData;
use wormhole_kernel::ids::LinkId;
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::marker::LossModel;
use wormhole_kernel::model::ModelId;
use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::router::Router;
use wormhole_kernel::{
    BitRate, Completion, FabricSize, FlowEnd, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, Models, NodeId, NodeKind,
    Observer, PortId, PortStats, SimTime, Span, Transport,
};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig, WindowRule};
use wormhole_models::ecn::{Coins, RedMarker};
use wormhole_models::nic::RoundRobin;
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash, Spray};
use wormhole_models::scheduler::ControlThenRoundRobin;

const MTU: u64 = 1_000;
const G100: u64 = 100_000_000_000;
/// One microsecond, in picoseconds.
const US: u64 = 1_000_000;
const SECOND: u64 = 1_000_000_000_000;
/// The retransmission time-out of short paths.
const TIMEOUT: u64 = 4_000 * US;
/// Expiries with doubling time-outs until a flow is given up: 1 + 2 + 4 + ... + 128 time-outs.
const TIMEOUTS_TO_THE_END: u64 = 255;

/// Profile `ps`, but which frames a lossy link loses is listed.
struct Listed<R>(PhantomData<R>);

impl<R: Router> Models for Listed<R> {
    type Timing = <Ps<'static, R> as Models>::Timing;
    type Cca = AnyCca;
    type Telemetry = <Ps<'static, R> as Models>::Telemetry;
    type Buffers = DynamicThreshold;
    type Scheduler = ControlThenRoundRobin;
    type Marker = RedMarker<'static>;
    type Loss = Losses;
    type Router = R;
    type Nic = RoundRobin;
    type Queue<'a> = <Ps<'static, R> as Models>::Queue<'a>;
}

/// Loses the frames with these numbers, counted from 0 over both directions of a lossy link.
#[derive(Clone, Copy)]
enum Losses {
    Frames(&'static [u64]),
    All,
}

impl LossModel for Losses {
    type Link = u64;

    fn id(&self) -> ModelId {
        ModelId { name: "listed", version: 1, config: 0 }
    }

    fn link(&self, _link: LinkId) -> u64 {
        0
    }

    fn loses(&self, seen: &mut u64, _loss: u64) -> bool {
        *seen += 1;
        match self {
            Losses::Frames(list) => list.contains(&(*seen - 1)),
            Losses::All => true,
        }
    }
}

/// A fabric and what runs on it.
struct Net {
    nodes: Vec<NodeKind>,
    links: Vec<LinkSpec>,
    window: FixedWindowConfig,
    losses: Losses,
    buffer: u32,
    /// Links that go down or up.
    changes: Vec<(u64, u32, bool)>,
}

impl Net {
    /// `hosts` hosts, then `switches` switches, no links yet.
    fn new(hosts: usize, switches: usize) -> Net {
        let mut nodes = vec![NodeKind::Host; hosts];
        nodes.resize(hosts + switches, NodeKind::Switch);
        let window = FixedWindowConfig::Rule(WindowRule::Unlimited);
        Net { nodes, links: vec![], window, losses: Losses::Frames(&[]), buffer: 32 << 20, changes: vec![] }
    }

    fn link(mut self, a: u32, b: u32, rate: u64, delay: u64) -> Net {
        let (rate, delay) = (BitRate(rate), Span(delay));
        self.links.push(LinkSpec { a: NodeId(a), b: NodeId(b), rate, delay, loss: 0 });
        self
    }

    /// The link added last loses what is listed.
    fn lossy(mut self, losses: Losses) -> Net {
        self.losses = losses;
        self.links.last_mut().expect("a link").loss = 1;
        self
    }

    fn window(mut self, bytes: u64) -> Net {
        self.window = FixedWindowConfig::Bytes(bytes);
        self
    }

    fn change(mut self, at: u64, link: u32, up: bool) -> Net {
        self.changes.push((at, link, up));
        self
    }

    fn run(&self, flows: &[FlowSpec]) -> Run {
        self.run_with(Ecmp::new(EcmpHash::Salted(1)), flows)
    }

    fn run_with<R: Router>(&self, router: R, flows: &[FlowSpec]) -> Run {
        let ccas = [AnyCca::FixedWindow(FixedWindow::new(self.window))];
        let models = ModelSet::<Listed<R>> {
            ccas: &ccas,
            timing: wormhole_kernel::timing::PsTiming,
            telemetry: wormhole_kernel::telemetry::ExactTelemetry,
            buffers: DynamicThreshold { bytes: self.buffer, wraps: false },
            scheduler: ControlThenRoundRobin,
            marker: RedMarker { thresholds: &[], enabled: false, coins: Coins::PerPort { seed: 1 } },
            loss: self.losses,
            router,
            nic: RoundRobin,
            transport: Transport::default(),
        };
        let limits = Limits::default();
        let size = FabricSize { nodes: self.nodes.len(), links: self.links.len() };
        let mut memory = vec![0; Kernel::<Listed<R>, Seen>::words(size, &limits, &models)];
        let kernel = Kernel::new(&mut memory, &self.nodes, &self.links, models, &limits, Seen::default());
        let mut kernel = kernel.expect("a kernel");
        for flow in flows {
            kernel.add_flow(flow).expect("a flow");
        }
        for &(at, link, up) in &self.changes {
            kernel.set_link(SimTime(at), LinkId(link), up).expect("a link change");
        }
        let step = kernel.run_until(SimTime::MAX).expect("enough capacity");
        let done = std::iter::from_fn(|| kernel.poll_completion()).collect();
        let ports = kernel.fabric().ports().map(|p| (kernel.fabric().port(p).link, kernel.port_stats(p))).collect();
        assert_eq!((kernel.live_packets(), kernel.paused_queues().count()), (0, 0));
        Run { done, step, totals: kernel.totals(), ports, seen: kernel.observer }
    }
}

/// What a run has shown.
struct Run {
    done: Vec<Completion>,
    step: Step,
    totals: Totals,
    ports: Vec<(LinkId, PortStats)>,
    seen: Seen,
}

impl Run {
    /// FCTs in picoseconds, in order of completion. Checks that all of these flows are done.
    fn fcts(&self, flows: &[FlowSpec]) -> Vec<u64> {
        assert_eq!((self.step, self.done.len()), (Step::Idle, flows.len()));
        assert_eq!(self.seen.in_order, flows.iter().map(|f| f.bytes).sum::<u64>(), "every byte counts once");
        self.done.iter().for_each(|c| {
            assert_eq!((c.end(), c.bytes, c.start), (FlowEnd::Done, flows[c.flow.index()].bytes, SimTime::ZERO));
        });
        self.done.iter().map(|c| c.fct.0).collect()
    }

    /// Bytes sent over a link, both directions.
    fn link_bytes(&self, link: u32) -> u64 {
        self.ports.iter().filter(|(l, _)| l.0 == link).map(|(_, stats)| stats.bytes).sum()
    }
}

/// Bytes received in order by all flows, when data left host 0, and that no port sends data that is paused there.
#[derive(Default)]
struct Seen {
    /// By port, a bit for each paused priority.
    paused: Vec<u8>,
    /// Next byte, by queue pair. Good for runs in which no slot is used twice.
    expected: Vec<u64>,
    in_order: u64,
    left: Vec<u64>,
}

impl Observer for Seen {
    fn pfc(&mut self, _time: SimTime, port: PortId, priority: u8, pause: bool) {
        self.paused.resize(self.paused.len().max(port.index() + 1), 0);
        self.paused[port.index()] &= !(1 << priority);
        self.paused[port.index()] |= u8::from(pause) << priority;
    }

    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        let paused = self.paused.get(port.index()).copied().unwrap_or(0);
        let is_held = frame.kind() == PacketKind::Data && paused >> frame.priority & 1 != 0;
        assert!(!is_held, "{port:?} sends what is paused at {time:?}");
        // Links are listed so that host 0 has port 0.
        if port == PortId(0) && frame.kind() == PacketKind::Data {
            self.left.push(time.0);
        }
    }

    fn receive(&mut self, _time: SimTime, _port: PortId, frame: &Packet) {
        // An ACK says what its receiver has in order; the largest number is what counts.
        if frame.kind() == PacketKind::Ack {
            let qp = frame.qp().index();
            if self.expected.len() <= qp {
                self.expected.resize(qp + 1, 0);
            }
            let new = frame.seq.saturating_sub(self.expected[qp]);
            self.expected[qp] += new;
            self.in_order += new;
        }
    }
}

/// Time of so many bytes on a wire, rounded up.
fn on_wire(bytes: u64, rate: u64) -> u64 {
    (u128::from(bytes) * 8 * u128::from(SECOND)).div_ceil(u128::from(rate)) as u64
}

/// A full data packet at 100 Gb/s.
fn full() -> u64 {
    on_wire(MTU + 48, G100)
}

/// An acknowledgement at 100 Gb/s.
fn ack() -> u64 {
    on_wire(60, G100)
}

fn flow(src: u32, dst: u32, bytes: u64) -> FlowSpec {
    FlowSpec::new(NodeId(src), NodeId(dst), bytes, SimTime::ZERO)
}

/// `hosts` hosts around one switch, links alike.
fn star(hosts: u32, rate: u64, delay: u64) -> Net {
    (0..hosts).fold(Net::new(hosts as usize, 1), |net, host| net.link(host, hosts, rate, delay))
}

/// Host 0, a row of switches, host 1; the links from left to right as listed.
fn chain(links: &[(u64, u64)]) -> Net {
    let switches = links.len() - 1;
    let last = links.len() as u32;
    let node = |place: u32| if place == 0 { 0 } else { place + 1 };
    (0..last).fold(Net::new(2, switches), |net, i| {
        let (rate, delay) = links[i as usize];
        let right = if i + 1 == last { 1 } else { node(i + 1) };
        net.link(node(i), right, rate, delay)
    })
}

/// Sends frames that are ready at these times over a link, first come first served; gives when they arrive.
fn over_link(ready: &[u64], bytes: impl Fn(usize) -> u64, (rate, delay): (u64, u64)) -> Vec<u64> {
    let mut free = 0;
    let frame = |(i, &ready): (usize, &u64)| {
        free = free.max(ready) + on_wire(bytes(i), rate);
        free + delay
    };
    ready.iter().enumerate().map(frame).collect()
}

/// FCT of a lone flow without window: its packets store and forward one way, their acknowledgements the other.
fn lone_fct(links: &[(u64, u64)], bytes: u64) -> u64 {
    let packets = bytes.div_ceil(MTU);
    let size = |i: usize| (bytes - i as u64 * MTU).min(MTU) + 48;
    let start = vec![0; packets as usize];
    let data = links.iter().fold(start, |ready, &link| over_link(&ready, size, link));
    let acks = links.iter().rev().fold(data, |ready, &link| over_link(&ready, |_| 60, link));
    *acks.last().expect("a packet")
}

#[test]
fn lone_flow_on_a_star_takes_store_and_forward_time() {
    for packets in [1, 2, 17, 1_000] {
        let flows = [flow(0, 1, packets * MTU)];
        let run = star(2, G100, US).run(&flows);
        // The first packet crosses the first link, all cross the second, the last ACK comes back.
        let want = full() + packets * full() + 2 * US + 2 * ack() + 2 * US;
        assert_eq!(run.fcts(&flows), [want], "{packets} packets");
        assert_eq!(run.totals.packet_hops, 4 * packets);
    }
}

#[test]
fn lone_flow_on_a_chain_takes_store_and_forward_time() {
    for packets in [1, 2, 17, 1_000] {
        let links = [(G100, US); 4];
        let flows = [flow(0, 1, packets * MTU)];
        let want = (packets + 3) * full() + 4 * ack() + 8 * US;
        assert_eq!(chain(&links).run(&flows).fcts(&flows), [want], "{packets} packets");
        assert_eq!(lone_fct(&links, packets * MTU), want);
    }
}

#[test]
fn odd_sizes_and_mixed_rates_are_exact() {
    let paths: [&[(u64, u64)]; 6] = [
        &[(G100, US), (G100, US)],
        &[(4 * G100, 0), (G100, 0)],
        &[(G100, 7), (4 * G100, 13)],
        &[(25_000_000_000, US), (3 * G100, 0), (G100, 5 * US), (10_000_000_000, 1)],
        &[(400_000_000_000, 100), (7_777_777_777, 3), (99_999_999_999, 1), (1_234_567, 12_345)],
        &[(G100, US), (G100, US), (G100, US), (G100, US)],
    ];
    for path in paths {
        for bytes in [1, 11, 12, 999, 1_000, 1_001, 2_001, 65_535, 300_000] {
            let flows = [flow(0, 1, bytes)];
            // The slowest path takes longer than a time-out for its packets to be acknowledged.
            let run = chain(path).run(&flows);
            assert_eq!(run.fcts(&flows), [lone_fct(path, bytes)], "{bytes} B over {path:?}");
            assert_eq!((run.totals.drops, run.totals.timeouts), (0, 0));
        }
    }
}

#[test]
fn slowest_and_fastest_links_without_and_with_delay_are_exact() {
    for rate in [1_000, 1_600_000_000_000] {
        for delay in [0, SECOND] {
            for bytes in [1, 1_000, 20_500] {
                let links = [(rate, delay); 2];
                let flows = [flow(0, 1, bytes)];
                let run = chain(&links).run(&flows);
                assert_eq!(run.fcts(&flows), [lone_fct(&links, bytes)], "{bytes} B at {rate} bit/s, {delay} ps");
                assert_eq!((run.totals.drops, run.totals.timeouts), (0, 0));
            }
        }
    }
}

#[test]
fn two_flows_share_a_port_in_turns() {
    for packets in [1, 50, 500] {
        let flows = [flow(0, 2, packets * MTU), flow(1, 2, packets * MTU)];
        let path = full() + 4 * US + 2 * ack();
        let fcts = star(3, G100, US).run(&flows).fcts(&flows);
        // One packet of each in turn: the one that is second all along ends last, the other a packet earlier.
        assert_eq!(fcts, [path + (2 * packets - 1) * full(), path + 2 * packets * full()], "{packets} packets");
    }
}

#[test]
fn two_flows_share_a_nic_in_turns() {
    let packets = 100;
    let flows = [flow(0, 1, packets * MTU), flow(0, 2, packets * MTU)];
    let path = full() + 4 * US + 2 * ack();
    let fcts = star(3, G100, US).run(&flows).fcts(&flows);
    assert_eq!(fcts, [path + (2 * packets - 1) * full(), path + 2 * packets * full()]);
}

#[test]
fn incast_ends_when_the_bottleneck_has_sent_every_byte() {
    for senders in [2, 5, 16] {
        let packets = 20;
        let flows: Vec<FlowSpec> = (0..senders).map(|s| flow(s, senders, packets * MTU)).collect();
        let fcts = star(senders + 1, G100, US).run(&flows).fcts(&flows);
        let all = packets * u64::from(senders) * full();
        assert_eq!(fcts.last(), Some(&(full() + all + 4 * US + 2 * ack())), "{senders} senders");
    }
}

/// Pauses hold back senders, not the bottleneck: the end stays the same, but for PFC frames that cross its last ACK.
#[test]
fn incast_under_pfc_keeps_the_bottleneck_busy() {
    let (senders, packets) = (8, 400);
    let flows: Vec<FlowSpec> = (0..senders).map(|s| flow(s, senders, packets * MTU)).collect();
    let mut net = star(senders + 1, G100, US);
    net.buffer = 1 << 20;
    let run = net.run(&flows);
    let last = run.fcts(&flows)[senders as usize - 1];
    let want = full() + packets * u64::from(senders) * full() + 4 * US + 2 * ack();
    assert!(run.totals.pauses > 0 && run.totals.drops == 0, "{:?}", run.totals);
    assert!(last >= want && last <= want + on_wire(43, G100), "{last} instead of {want}");
}

#[test]
fn a_priority_that_has_ended_does_not_hold_up_the_others() {
    let flows: Vec<FlowSpec> =
        (1..5).map(|s| FlowSpec { priority: s as u8, ..flow(s - 1, 4, 20 * u64::from(s) * MTU) }).collect();
    let fcts = star(5, G100, US).run(&flows).fcts(&flows);
    assert_eq!(fcts.last(), Some(&(full() + 200 * full() + 4 * US + 2 * ack())), "the port is kept busy");
}

/// The last link is slow: its switch pauses the one before it, whose queue is empty, for it is faster than the first.
#[test]
fn pauses_travel_up_a_chain() {
    let flows = [flow(0, 1, 3_000 * MTU)];
    let mut net = chain(&[(G100 / 2, US), (G100, US), (G100 / 10, US)]);
    net.buffer = 1 << 20;
    let run = net.run(&flows);
    let switch = run.ports.iter().filter(|(link, stats)| link.0 == 1 && stats.pauses > 0).count();
    let host = run.ports.iter().filter(|(link, stats)| link.0 == 0 && stats.pauses > 0).count();
    assert_eq!((switch, host, run.totals.drops), (1, 1, 0), "{:?}", run.totals);
    let last = 3_000 * on_wire(MTU + 48, G100 / 10);
    let fct = run.fcts(&flows)[0];
    assert!(fct >= last && fct <= last + 20 * US, "{fct} instead of {last}: the slow link is kept busy");
    // PFC frames wait for an acknowledgement at most, and the other way round.
    let back = run.ports.iter().filter(|(link, stats)| link.0 == 0 && stats.pauses == 0).map(|(_, stats)| stats);
    back.for_each(|stats| assert!(stats.queue_byte_ns < 100 * stats.frames, "{stats:?}"));
}

#[test]
fn window_limited_flow_sends_a_window_per_round_trip() {
    let rtt = 2 * full() + 2 * ack() + 4 * US;
    // A packet may leave while fewer bytes than the window are out: 1,500 bytes let two go.
    for (window, in_window) in [(1, 1), (1_000, 1), (1_500, 2), (2_000, 2), (10_000, 10)] {
        let packets = 43;
        let flows = [flow(0, 1, packets * MTU)];
        let run = star(2, G100, US).window(window).run(&flows);
        let leaves = |k: u64| k / in_window * rtt + k % in_window * full();
        assert_eq!(run.seen.left, (0..packets).map(leaves).collect::<Vec<_>>(), "window {window}");
        assert_eq!(run.fcts(&flows), [leaves(packets - 1) + rtt]);
    }
}

#[test]
fn lost_tail_waits_for_the_time_out() {
    // Data crosses the lossy link alone until the first ACK: frame 9 is the tail.
    let net = Net::new(2, 1).link(0, 2, G100, 10 * US).lossy(Losses::Frames(&[9])).link(1, 2, G100, 10 * US);
    let flows = [flow(0, 1, 10 * MTU)];
    let run = net.run(&flows);
    let rtt = 2 * full() + 2 * ack() + 40 * US;
    // The time-out runs from the ACK of the ninth packet.
    assert_eq!(run.fcts(&flows), [8 * full() + rtt + TIMEOUT + rtt]);
    assert_eq!((run.totals.drops, run.totals.timeouts, run.totals.flows_given_up), (1, 1, 0));
}

#[test]
fn lost_last_acknowledgement_is_repeated_after_the_time_out() {
    // Ten data frames, nine ACKs, then the last ACK.
    let net = Net::new(2, 1).link(0, 2, G100, 10 * US).lossy(Losses::Frames(&[19])).link(1, 2, G100, 10 * US);
    let flows = [flow(0, 1, 10 * MTU)];
    let run = net.run(&flows);
    let rtt = 2 * full() + 2 * ack() + 40 * US;
    assert_eq!(run.fcts(&flows), [8 * full() + rtt + TIMEOUT + rtt]);
    assert_eq!((run.totals.drops, run.totals.timeouts), (1, 1));
}

#[test]
fn loss_in_the_middle_recovers_by_nack() {
    let (packets, lost) = (20, 5);
    let net = Net::new(2, 1).link(0, 2, G100, 10 * US).lossy(Losses::Frames(&[5])).link(1, 2, G100, 10 * US);
    let flows = [flow(0, 1, packets * MTU)];
    let run = net.run(&flows);
    let rtt = 2 * full() + 2 * ack() + 40 * US;
    // The packet after the lost one is answered with a NACK; from its arrival on everything from the loss is repeated.
    let nack = (lost + 1) * full() + rtt;
    assert_eq!(run.fcts(&flows), [nack + (packets - lost - 1) * full() + rtt]);
    assert_eq!((run.totals.drops, run.totals.timeouts), (1, 0));
    assert_eq!(run.seen.left.len() as u64, packets + packets - lost);
}

/// A flow that is given up ends so, after the last time-out; the run ends, too.
fn assert_given_up(run: &Run, flows: &[FlowSpec]) {
    assert_eq!((run.step, run.done.len()), (Step::Idle, flows.len()));
    for completion in &run.done {
        assert_eq!(completion.end(), FlowEnd::GaveUp);
        assert_eq!(completion.fct.0, TIMEOUTS_TO_THE_END * TIMEOUT);
    }
    assert_eq!(run.totals.flows_given_up, flows.len() as u64);
    assert_eq!(run.totals.timeouts, 8 * flows.len() as u64, "the first try, then seven more");
}

#[test]
fn flow_over_a_link_that_loses_everything_is_given_up() {
    let net = Net::new(2, 1).link(0, 2, G100, US).lossy(Losses::All).link(1, 2, G100, US);
    let flows = [flow(0, 1, 5_500)];
    assert_given_up(&net.run(&flows), &flows);
}

#[test]
fn flow_whose_last_link_is_dead_is_given_up() {
    let flows = [flow(0, 1, 5_500)];
    assert_given_up(&star(2, G100, US).change(0, 1, false).run(&flows), &flows);
}

#[test]
fn flow_whose_first_link_dies_is_given_up() {
    let flows = [flow(0, 1, 5_500)];
    assert_given_up(&star(2, G100, US).change(full() / 2, 0, false).run(&flows), &flows);
}

#[test]
fn flow_over_a_link_that_comes_back_completes() {
    for link in [0, 1] {
        let flows = [flow(0, 1, 50_000)];
        let run = star(2, G100, US).change(US / 2, link, false).change(2 * TIMEOUT, link, true).run(&flows);
        let fct = run.fcts(&flows)[0];
        assert!(fct > 2 * TIMEOUT && fct < 4 * TIMEOUT, "link {link}: {fct}");
    }
}

#[test]
fn all_parallel_links_are_used() {
    let hosts = (0..8).fold(Net::new(8, 2), |net, h| net.link(h, 8 + h / 4, G100, US));
    let net = (0..4).fold(hosts, |net, _| net.link(8, 9, G100, US));
    let flows: Vec<FlowSpec> = (0..64)
        .map(|i| FlowSpec { src_port: 1_000 + i, ..flow(u32::from(i) % 4, 4 + u32::from(i) / 4 % 4, 5_000) })
        .collect();
    let run = net.run(&flows);
    run.fcts(&flows);
    let parallel: Vec<u64> = (8..12).map(|link| run.link_bytes(link)).collect();
    assert!(parallel.iter().all(|&bytes| bytes > 0), "{parallel:?}");
    assert_eq!(parallel.iter().sum::<u64>(), 64 * 5 * (1_048 + 60));
}

#[test]
fn host_with_two_nics_uses_both() {
    // Hosts 0 and 1 both hang on both switches; nothing joins the switches.
    let net = Net::new(2, 2).link(0, 2, G100, US).link(0, 3, G100, US).link(1, 2, G100, US).link(1, 3, G100, US);
    let flows: Vec<FlowSpec> = (0..32).map(|i| FlowSpec { src_port: 1_000 + i, ..flow(0, 1, 10_000) }).collect();
    let run = net.run(&flows);
    let fcts = run.fcts(&flows);
    assert!((0..4).all(|link| run.link_bytes(link) > 10 * 1_048));
    // Two NICs are faster than one.
    assert!(*fcts.last().expect("flows") < 320 * full());
}

#[test]
fn sprayed_packets_take_all_paths_and_arrive() {
    let leaves = Net::new(2, 6).link(0, 2, G100, US).link(1, 3, G100, US);
    let net = (4..8).fold(leaves, |net, spine| net.link(2, spine, G100, US).link(3, spine, G100, US));
    let flows = [flow(0, 1, 300_000)];
    let run = net.run_with(Spray::new(7), &flows);
    run.fcts(&flows);
    let paths: Vec<u64> = (2..10).map(|link| run.link_bytes(link)).collect();
    assert!(paths.iter().all(|&bytes| bytes > 30 * 1_048), "{paths:?}");
}

/// Paths of different length: packets overtake one another, go-back-N repeats some, the flow still ends whole.
#[test]
fn sprayed_packets_that_overtake_are_repeated() {
    let leaves = Net::new(2, 4).link(0, 2, G100, US).link(1, 3, G100, US);
    let net = leaves.link(2, 4, G100, US).link(3, 4, G100, US).link(2, 5, G100, 3 * US).link(3, 5, G100, 3 * US);
    let flows = [flow(0, 1, 50_000)];
    let run = net.run_with(Spray::new(7), &flows);
    run.fcts(&flows);
    assert!(run.seen.left.len() > 50, "nothing was repeated");
}

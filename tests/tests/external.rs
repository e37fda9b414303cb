//! Frames from outside, and links that go down and come up: what a caller that steers a simulation relies on.

use wormhole_kernel::ids::LinkId;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::{
    BitRate, Error, ExternalFrame, FabricSize, FlowEnd, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, NodeId, NodeKind,
    SimTime, Span, Transport,
};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig, WindowRule};
use wormhole_models::ecn::{Coins, RedMarker, Thresholds};
use wormhole_models::loss::BernoulliLoss;
use wormhole_models::nic::RoundRobin;
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_models::scheduler::ControlThenRoundRobin;

type World<'a> = Kernel<'a, Ps<'static, Ecmp>>;

const G100: u64 = 100_000_000_000;
/// One microsecond, in picoseconds.
const US: u64 = 1_000_000;
const LIMITS: Limits =
    Limits { queued_flows: 8, active_flows: 8, packets: 4_096, outputs: 512, inputs: 256, snapshot_words: 0 };
/// A step: up to 20 kB waiting nothing is marked, above everything.
const STEP: &[Thresholds] = &[Thresholds { rate: BitRate::from_gbps(100), kmin: 20_000, kmax: 20_000, pmax: 1.0 }];

/// Builds a kernel over these hosts, switches and links (100 Gb/s, 1 us) and hands it to the test.
fn with_kernel(hosts: usize, switches: usize, links: &[(u32, u32)], test: impl FnOnce(&mut World<'_>)) {
    let ccas = [AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Unlimited)))];
    let mut nodes = vec![NodeKind::Host; hosts];
    nodes.resize(hosts + switches, NodeKind::Switch);
    let link =
        |&(a, b): &(u32, u32)| LinkSpec { a: NodeId(a), b: NodeId(b), rate: BitRate(G100), delay: Span(US), loss: 0 };
    let links: Vec<LinkSpec> = links.iter().map(link).collect();
    let models = ModelSet::<Ps<'static, Ecmp>> {
        ccas: &ccas,
        timing: wormhole_kernel::timing::PsTiming,
        telemetry: wormhole_kernel::telemetry::ExactTelemetry,
        buffers: DynamicThreshold { bytes: 32 << 20, wraps: false },
        scheduler: ControlThenRoundRobin,
        marker: RedMarker { thresholds: STEP, enabled: true, coins: Coins::PerPort { seed: 1 } },
        loss: BernoulliLoss::Counter { seed: 1 },
        router: Ecmp::new(EcmpHash::Salted(1)),
        nic: RoundRobin,
        transport: Transport::default(),
    };
    let size = FabricSize { nodes: nodes.len(), links: links.len() };
    let mut memory = vec![0; World::words(size, &LIMITS, &models)];
    test(&mut Kernel::new(&mut memory, &nodes, &links, models, &LIMITS, ()).expect("a kernel"));
}

/// Time of so many bytes on a wire at 100 Gb/s.
fn on_wire(bytes: u64) -> u64 {
    (bytes * 8 * 1_000_000_000_000).div_ceil(G100)
}

fn frame(src: u32, dst: u32, bytes: u32, token: u64) -> ExternalFrame {
    ExternalFrame::new(NodeId(src), NodeId(dst), bytes, token)
}

/// Arrival time and token of all frames that have come out.
fn arrivals(kernel: &mut World<'_>) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| kernel.poll_egress()).map(|f| (f.at.0, f.token)).collect()
}

/// A row of switches between host 0 and host 1.
fn row(switches: u32) -> Vec<(u32, u32)> {
    let inner = (2..switches + 1).map(|s| (s, s + 1));
    [(0, 2)].into_iter().chain(inner).chain([(switches + 1, 1)]).collect()
}

#[test]
fn frames_arrive_after_store_and_forward() {
    for switches in [1, 3] {
        for bytes in [1, 64, 1_500, 9_000] {
            with_kernel(2, switches as usize, &row(switches), |kernel| {
                let hops = u64::from(switches) + 1;
                kernel.inject(SimTime(5 * US + 3), &frame(0, 1, bytes, 77)).expect("room");
                assert_eq!(kernel.next_event_time(), Some(SimTime(5 * US + 3)));
                assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::Idle));
                let want = 5 * US + 3 + hops * (on_wire(u64::from(bytes)) + US);
                assert_eq!(arrivals(kernel), [(want, 77)], "{bytes} B through {switches} switches");
                assert_eq!((kernel.live_packets(), kernel.now()), (0, SimTime(want)));
            });
        }
    }
}

#[test]
fn frames_keep_what_they_came_with() {
    with_kernel(2, 1, &row(1), |kernel| {
        let sent =
            ExternalFrame { src_port: 1, dst_port: 65_535, priority: 7, marked: 1, ..frame(1, 0, 333, u64::MAX) };
        kernel.inject(SimTime::ZERO, &sent).expect("room");
        kernel.run_until(SimTime::MAX).expect("capacity");
        let got = kernel.poll_egress().expect("a frame");
        assert_eq!(got, ExternalFrame { at: got.at, ..sent });
        assert_eq!(kernel.poll_egress(), None);
    });
}

#[test]
fn frames_of_one_host_leave_in_order() {
    with_kernel(2, 1, &row(1), |kernel| {
        (0..50).for_each(|token| kernel.inject(SimTime(US), &frame(0, 1, 1_000, token)).expect("room"));
        kernel.run_until(SimTime::MAX).expect("capacity");
        let want = |i: u64| (US + (i + 2) * on_wire(1_000) + 2 * US, i);
        assert_eq!(arrivals(kernel), (0..50).map(want).collect::<Vec<_>>());
    });
}

#[test]
fn congestion_marks_frames() {
    with_kernel(3, 1, &[(0, 3), (1, 3), (2, 3)], |kernel| {
        for token in 0..100 {
            kernel.inject(SimTime(US), &frame(0, 2, 1_000, 2 * token)).expect("room");
            kernel.inject(SimTime(US), &frame(1, 2, 1_000, 2 * token + 1)).expect("room");
        }
        kernel.run_until(SimTime::MAX).expect("capacity");
        let marks: Vec<u8> = std::iter::from_fn(|| kernel.poll_egress()).map(|f| f.marked).collect();
        assert_eq!(marks.len(), 200);
        // Two come for each that goes. The n-th to leave (from 0) leaves n + 1 frames behind as long as both send:
        // more than 20 of them from the 20th on, until the last 20 find nothing behind them any more.
        let marked = marks.iter().filter(|&&m| m != 0).count() as u64;
        assert_eq!(marked, kernel.totals().ecn_marks);
        assert_eq!(marks[..20], [0; 20]);
        assert_eq!(marks[40..150], [1; 110]);
        assert_eq!(marks[180..], [0; 20]);
    });
}

#[test]
fn lone_frames_are_not_marked() {
    with_kernel(2, 3, &row(3), |kernel| {
        (0..100).for_each(|token| kernel.inject(SimTime::ZERO, &frame(0, 1, 1_500, token)).expect("room"));
        kernel.run_until(SimTime::MAX).expect("capacity");
        assert!(std::iter::from_fn(|| kernel.poll_egress()).all(|f| f.marked == 0));
    });
}

#[test]
fn what_makes_no_sense_is_refused() {
    with_kernel(2, 1, &row(1), |kernel| {
        kernel.run_until(SimTime(0)).expect("capacity");
        kernel.inject(SimTime(9), &frame(0, 1, 100, 0)).expect("room");
        assert_eq!(kernel.run_until(SimTime(10)), Ok(Step::Reached));
        let (at, now) = (SimTime(9), SimTime(10));
        assert_eq!(kernel.inject(at, &frame(0, 1, 100, 0)), Err(Error::InPast { at, now }));
        assert_eq!(kernel.set_link(at, LinkId(0), false), Err(Error::InPast { at, now }));
        let late = FlowSpec::new(NodeId(0), NodeId(1), 1, at);
        assert_eq!(kernel.add_flow(&late), Err(Error::InPast { at, now }));
        assert_eq!(kernel.inject(now, &frame(0, 2, 100, 0)), Err(Error::NotAHost(NodeId(2))));
        assert_eq!(kernel.inject(now, &frame(9, 1, 100, 0)), Err(Error::NotAHost(NodeId(9))));
        assert_eq!(kernel.inject(now, &frame(1, 1, 100, 0)), Err(Error::SameHost(NodeId(1))));
        let bad = ExternalFrame { priority: 8, ..frame(0, 1, 100, 0) };
        assert_eq!(kernel.inject(now, &bad), Err(Error::BadClass));
        assert_eq!(kernel.set_link(now, LinkId(2), false), Err(Error::BadLink { link: 2 }));
        assert_eq!(kernel.add_flow(&FlowSpec { bytes: 0, start: now, ..late }), Err(Error::EmptyFlow));
        assert_eq!(kernel.add_flow(&FlowSpec { cca: 1, start: now, ..late }), Err(Error::BadClass));
        // Nothing refused has left a trace: only the first frame comes out.
        kernel.run_until(SimTime::MAX).expect("capacity");
        assert_eq!(arrivals(kernel).len(), 1);
    });
}

#[test]
fn inputs_are_limited() {
    with_kernel(2, 1, &row(1), |kernel| {
        (0..256).for_each(|token| kernel.inject(SimTime(1), &frame(0, 1, 64, token)).expect("room"));
        let refused = kernel.inject(SimTime(1), &frame(0, 1, 64, 0)).expect_err("the limit is 256");
        assert!(matches!(refused, Error::Capacity(e) if e.what == "inputs" && e.limit == 256));
        kernel.run_until(SimTime::MAX).expect("capacity");
        assert_eq!(arrivals(kernel).len(), 256);
    });
}

#[test]
fn frames_on_a_link_that_goes_down_are_lost_and_later_ones_arrive() {
    with_kernel(2, 1, &row(1), |kernel| {
        // A frame each 10 us; the second link is down from 25 to 55 us.
        (0..10).for_each(|i| kernel.inject(SimTime(10 * US * i), &frame(0, 1, 1_000, i)).expect("room"));
        kernel.set_link(SimTime(25 * US), LinkId(1), false).expect("room");
        kernel.set_link(SimTime(55 * US), LinkId(1), true).expect("room");
        kernel.run_until(SimTime::MAX).expect("capacity");
        let took = 2 * (on_wire(1_000) + US);
        let want: Vec<(u64, u64)> = [0, 1, 2, 6, 7, 8, 9].map(|i| (10 * US * i + took, i)).into();
        assert_eq!(arrivals(kernel), want);
        assert_eq!((kernel.totals().drops, kernel.live_packets()), (3, 0));
    });
}

#[test]
fn frame_on_the_wire_is_lost_with_the_wire() {
    with_kernel(2, 1, &row(1), |kernel| {
        kernel.inject(SimTime::ZERO, &frame(0, 1, 1_000, 1)).expect("room");
        // On its way over the first link, which comes back at once.
        kernel.set_link(SimTime(US / 2), LinkId(0), false).expect("room");
        kernel.set_link(SimTime(US / 2 + 1), LinkId(0), true).expect("room");
        assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::Idle));
        assert_eq!((arrivals(kernel).len(), kernel.totals().drops, kernel.live_packets()), (0, 1, 0));
    });
}

#[test]
fn flow_goes_on_over_another_path_or_when_the_link_is_back() {
    // Two ways between the leaves: over switch 4 and over switch 5. One of them dies in mid-flow, or first and last.
    let square = [(0, 2), (1, 3), (2, 4), (3, 4), (2, 5), (3, 5)];
    for dead in [vec![2], vec![4], vec![2, 5], vec![0], vec![1]] {
        with_kernel(2, 4, &square, |kernel| {
            kernel.add_flow(&FlowSpec::new(NodeId(0), NodeId(1), 200_000, SimTime::ZERO)).expect("a flow");
            for &link in &dead {
                kernel.set_link(SimTime(5 * US), LinkId(link), false).expect("room");
                kernel.set_link(SimTime(500 * US), LinkId(link), true).expect("room");
            }
            assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::Idle));
            let done = kernel.poll_completion().expect("the flow ends");
            assert_eq!((done.end(), done.bytes), (FlowEnd::Done, 200_000), "{dead:?}");
            assert_eq!((kernel.live_packets(), kernel.unfinished_flows()), (0, 0));
        });
    }
}

#[test]
fn outputs_not_polled_stop_the_run_and_are_not_lost() {
    with_kernel(2, 1, &row(1), |kernel| {
        let mut sent = 0;
        let mut got = 0;
        for round in 0..4 {
            (0..256).for_each(|_| {
                kernel.inject(SimTime(round * 1_000 * US), &frame(0, 1, 64, sent)).expect("room");
                sent += 1;
            });
            let step = kernel.run_until(SimTime((round + 1) * 1_000 * US - 1)).expect("capacity");
            if step == Step::OutputFull {
                assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::OutputFull));
                for (_, token) in arrivals(kernel) {
                    assert_eq!(token, got);
                    got += 1;
                }
                kernel.run_until(SimTime((round + 1) * 1_000 * US - 1)).expect("capacity");
            }
        }
        got += arrivals(kernel).len() as u64;
        assert_eq!((got, sent), (1_024, 1_024));
    });
}

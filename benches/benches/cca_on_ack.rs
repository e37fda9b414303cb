//! What an ACK costs in each congestion control.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use wormhole_benches::RATE;
use wormhole_kernel::cca::{Ack, CcaOut, CongestionControl, FlowFacts};
use wormhole_kernel::telemetry::{IntHop, MAX_INT_HOPS};
use wormhole_kernel::{SimTime, Span};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};

const MTU: u32 = 1_000;
/// Between ACKs of a flow with the link to itself.
const GAP: Span = Span(87_200);
const RTT: Span = Span::from_us(12);
const WINDOW: u64 = 150_000;

/// The acknowledgements of a flow that crosses five switches with short queues.
struct Acks {
    now: SimTime,
    acked: u64,
    hops: [IntHop; MAX_INT_HOPS],
}

impl Acks {
    fn new() -> Acks {
        let hop = IntHop { rate: RATE, ..IntHop::default() };
        Acks { now: SimTime::ZERO + RTT, acked: 0, hops: [hop; MAX_INT_HOPS] }
    }

    /// One in 64 is marked; round-trip times and queues vary.
    fn next(&mut self) -> Ack<'_> {
        self.now += GAP;
        self.acked += MTU as u64;
        let round = self.acked / MTU as u64;
        for hop in &mut self.hops {
            hop.at = self.now;
            hop.tx_bytes += MTU as u64 + 90;
            hop.queue = round % 8 * 1_000;
        }
        Ack {
            now: self.now,
            acked: self.acked,
            snd_nxt: self.acked + WINDOW,
            marked: round.is_multiple_of(64),
            rtt: RTT + Span(round % 16 * 100_000),
            hops: &self.hops,
            hop_count: MAX_INT_HOPS,
        }
    }
}

fn on_ack<C: CongestionControl>(criterion: &mut Criterion, name: &str, cca: C) {
    let facts = FlowFacts { line_rate: RATE, base_rtt: RTT, bdp: WINDOW, mtu: MTU };
    let (mut state, mut control) = cca.start(&facts, SimTime::ZERO);
    let mut acks = Acks::new();
    criterion.benchmark_group("cca_on_ack").bench_function(name, |bencher| {
        bencher.iter(|| {
            let mut out = CcaOut::new(control);
            cca.on_ack(&mut state, &black_box(acks.next()), &mut out);
            control = out.control;
            black_box(control)
        })
    });
}

fn cca_on_ack(criterion: &mut Criterion) {
    let hpcc = Hpcc::new(HpccConfig::default());
    on_ack(criterion, "fixed", FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Bdp)));
    on_ack(criterion, "dcqcn", Dcqcn::new(DcqcnConfig::default()));
    on_ack(criterion, "dctcp", Dctcp::new(DctcpConfig::default()));
    on_ack(criterion, "timely", Timely::new(TimelyConfig::default()));
    on_ack(criterion, "swift", Swift::new(SwiftConfig::default()));
    on_ack(criterion, "hpcc", hpcc);
    on_ack(criterion, "hpcc, chosen at run time", AnyCca::Hpcc(hpcc));
}

criterion_group!(benches, cca_on_ack);
criterion_main!(benches);

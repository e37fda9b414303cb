//! What every congestion control must keep to, tried on each of them through [`AnyCca`].

use super::*;
use wormhole_kernel::cca::{Ack, CcaOut, CongestionControl, FlowFacts, IntHop, MAX_INT_HOPS, SendControl};
use wormhole_kernel::event::CCA_TIMERS;
use wormhole_kernel::units::SimTime;

const FLOW: FlowFacts =
    FlowFacts { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_ns(12_480), bdp: 156_000, mtu: 1_000 };
const TIME_MODULUS: Span = Span::from_ns(1 << 24);
const BYTE_MODULUS: u64 = 1 << 29;
const STEPS: usize = 10_000;

fn hpcc(config: HpccConfig) -> AnyCca {
    AnyCca::Hpcc(Hpcc::new(config))
}

/// Every model, each of them in several configurations.
fn models() -> [AnyCca; 14] {
    let d = HpccConfig::default();
    [
        hpcc(d),
        hpcc(HpccConfig { time_modulus: TIME_MODULUS, byte_modulus: BYTE_MODULUS, max_stage: 5, ..d }),
        hpcc(HpccConfig { multi_rate: true, sample_feedback: true, ..d }),
        hpcc(HpccConfig { multi_rate: true, rate_quantum: 10_000_000, window: WindowRule::Unlimited, ..d }),
        hpcc(HpccConfig { fast_react: false, sample_feedback: true, min_rate: BitRate(0), rate_quantum: 1 << 40, ..d }),
        AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default())),
        AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig {
            clamp_target: true,
            min_rate: BitRate(0),
            window: WindowRule::BdpAtRate,
            ..DcqcnConfig::default()
        })),
        AnyCca::Timely(Timely::new(TimelyConfig::default())),
        AnyCca::Timely(Timely::new(TimelyConfig {
            min_rate: BitRate(0),
            window: WindowRule::BdpAtRate,
            ..TimelyConfig::default()
        })),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig::default())),
        AnyCca::Dctcp(Dctcp::new(DctcpConfig {
            min_rate: BitRate(0),
            additive: BitRate(0),
            window: WindowRule::Bdp,
            ..DctcpConfig::default()
        })),
        AnyCca::Swift(Swift::new(SwiftConfig::default())),
        AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Bytes(9_000))),
        AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::BdpPercent(150))),
    ]
}

/// xorshift64* (Vigna 2016).
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end
    }
}

/// What a model has answered, and its fingerprint after.
type Answer = (SendControl, bool, [Option<Span>; CCA_TIMERS], Option<u64>);

/// A flow fed with random ACKs, timers and time-outs, all of them `shift` later.
struct Drive<C: CongestionControl> {
    model: C,
    state: C::State,
    control: SendControl,
    random: Random,
    /// Unshifted.
    now: SimTime,
    shift: Span,
    acked: u64,
    hops: [IntHop; MAX_INT_HOPS],
    /// The model expects telemetry with a clock that wraps.
    wraps: bool,
}

impl<C: CongestionControl> Drive<C> {
    fn new(model: C, seed: u64, shift: Span) -> Self {
        let (state, control) = model.start(&FLOW, SimTime::ZERO + shift);
        let hop = IntHop { rate: FLOW.line_rate, ..IntHop::default() };
        let (random, wraps) = (Random(seed), model.id() == models()[1].id());
        Drive { model, state, control, random, now: SimTime::ZERO, shift, acked: 0, hops: [hop; MAX_INT_HOPS], wraps }
    }

    /// Moves all that is still to come, and the state with it.
    fn move_by(&mut self, by: Span) {
        self.model.rebase(&mut self.state, by);
        self.shift += by;
    }

    fn step(&mut self) -> Answer {
        // Mostly a few frames apart, sometimes half a second.
        let gap = if self.random.below(100) == 0 { self.random.below(1 << 39) } else { self.random.below(1 << 20) };
        self.now += Span(gap / 1_000 * 1_000);
        let now = self.now + self.shift;
        let mut out = CcaOut::new(self.control);
        match self.random.below(20) {
            0 => self.model.on_timeout(&mut self.state, now, &mut out),
            1..=4 => {
                let timer = self.random.below(CCA_TIMERS as u64) as usize;
                self.model.on_timer(&mut self.state, timer, now, &mut out);
            }
            _ => self.ack(now, &mut out),
        }
        self.control = out.control;
        (out.control, out.repace, out.timers, self.model.fingerprint(&self.state, now))
    }

    fn ack(&mut self, now: SimTime, out: &mut CcaOut) {
        self.acked += self.random.below(3) * 1_000;
        let snd_nxt = self.acked + self.random.below(200) * 1_000;
        for hop in &mut self.hops {
            // Sometimes nothing moves.
            if self.random.below(20) != 0 {
                hop.at = SimTime((self.now.0 - self.random.below(self.now.0.min(5_000_000) + 1)) / 1_000 * 1_000);
                hop.tx_bytes = (hop.tx_bytes + self.random.below(1 << 16)) % BYTE_MODULUS;
                hop.queue = self.random.below(4) * self.random.below(1 << 20);
            }
        }
        let mut hops = self.hops;
        for hop in &mut hops {
            hop.at += self.shift;
            if self.wraps {
                hop.at.0 %= TIME_MODULUS.0;
            }
        }
        let hop_count = self.random.below(MAX_INT_HOPS as u64 + 2) as usize;
        let ack = Ack {
            now,
            acked: self.acked,
            snd_nxt,
            marked: self.random.below(3) == 0,
            rtt: Span::from_ns(self.random.below(600_000)),
            hops: &hops[..hop_count.min(MAX_INT_HOPS)],
            hop_count,
        };
        self.model.on_ack(&mut self.state, &ack, out);
    }
}

/// Calls `test` with every model.
fn for_each(test: impl Fn(&AnyCca)) {
    for model in models() {
        test(&model);
    }
}

#[test]
fn windows_and_rates_are_never_nothing() {
    for_each(|model| {
        let mut drive = Drive::new(*model, 1, Span::ZERO);
        for step in 0..STEPS {
            let (control, ..) = drive.step();
            let bounded = control.window >= 1 && control.rate.0 >= 1 && control.rate <= FLOW.line_rate;
            assert!(bounded, "{model:?} step {step}: {control:?}");
        }
    });
}

#[test]
fn equal_inputs_give_equal_outputs() {
    for_each(|model| {
        let (mut one, mut other) = (Drive::new(*model, 2, Span::ZERO), Drive::new(*model, 2, Span::ZERO));
        for step in 0..STEPS {
            assert_eq!(one.step(), other.step(), "{model:?} step {step}");
        }
    });
}

#[test]
fn time_is_relative() {
    let by = Span::from_ns(987_654_321);
    for_each(|model| {
        // Started earlier, started later, and moved from there to here on the way.
        let (mut early, mut late) = (Drive::new(*model, 3, Span::ZERO), Drive::new(*model, 3, by));
        let mut moved = Drive::new(*model, 3, Span::ZERO);
        for step in 0..STEPS {
            if step == 100 {
                moved.move_by(by);
            }
            let answer = early.step();
            assert_eq!(answer, late.step(), "{model:?} step {step}, started later");
            assert_eq!(answer, moved.step(), "{model:?} step {step}, moved");
        }
    });
}

#[test]
fn every_call_arrives_through_the_wrapper() {
    fn compare<C: CongestionControl>(bare: C, any: AnyCca) {
        assert_eq!((bare.id(), bare.needs()), (any.id(), any.needs()));
        let (mut bare, mut any) = (Drive::new(bare, 4, Span::ZERO), Drive::new(any, 4, Span::ZERO));
        for step in 0..STEPS {
            if step % 1_000 == 999 {
                bare.move_by(Span::from_us(1));
                any.move_by(Span::from_us(1));
            }
            assert_eq!(bare.step(), any.step(), "step {step}");
        }
    }
    for_each(|model| match *model {
        AnyCca::Hpcc(bare) => compare(bare, *model),
        AnyCca::Dcqcn(bare) => compare(bare, *model),
        AnyCca::Timely(bare) => compare(bare, *model),
        AnyCca::Dctcp(bare) => compare(bare, *model),
        AnyCca::Swift(bare) => compare(bare, *model),
        AnyCca::FixedWindow(bare) => compare(bare, *model),
    });
}

#[test]
fn configurations_have_different_ids() {
    let models = models();
    for (i, one) in models.iter().enumerate() {
        for other in &models[..i] {
            assert_ne!(one.id(), other.id());
        }
    }
}

#[test]
fn headers_are_those_of_ns3() {
    let bytes = |model: &AnyCca| (model.needs().header_bytes, model.needs().telemetry);
    for_each(|model| match model {
        AnyCca::Hpcc(_) => assert_eq!(bytes(model), (42, true)),
        AnyCca::Timely(_) | AnyCca::Swift(_) => assert_eq!(bytes(model), (8, false)),
        _ => assert_eq!(bytes(model), (0, false)),
    });
}

#[test]
fn states_stay_small() {
    assert_eq!(size_of::<AnyCcaState>(), 264);
}

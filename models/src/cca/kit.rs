//! What every congestion control must keep to, tried on each of them through [`AnyCca`].

use super::*;
use bytemuck::Pod;
use wormhole_kernel::cca::{Ack, CcaOut, CongestionControl, FlowFacts, IntHop, MAX_INT_HOPS, Origin, SendControl};
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

/// What a model has answered.
type Answer = (SendControl, bool, [Option<Span>; CCA_TIMERS]);

/// Where a flow is: what its time, byte positions and telemetry counters are ahead of those of an unmoved one.
#[derive(Clone, Copy)]
struct Place {
    time: Span,
    bytes: u64,
    /// Bytes that each hop has sent; the first has sent once as many, the next twice, and so on.
    sent: u64,
}

const HERE: Place = Place { time: Span::ZERO, bytes: 0, sent: 0 };

/// A flow fed with random ACKs, timers and time-outs, all of them at its place.
struct Drive<C: CongestionControl> {
    model: C,
    state: C::State,
    control: SendControl,
    random: Random,
    place: Place,
    /// This and what follows: as if unmoved.
    now: SimTime,
    acked: u64,
    hops: [IntHop; MAX_INT_HOPS],
    /// The model expects telemetry with a clock and counters that wrap.
    wraps: bool,
}

impl<C: CongestionControl> Drive<C> {
    fn new(model: C, seed: u64, place: Place) -> Self {
        let (state, control) = model.start(&FLOW, SimTime::ZERO + place.time);
        let hop = IntHop { rate: FLOW.line_rate, ..IntHop::default() };
        let (random, wraps) = (Random(seed), model.id() == models()[1].id());
        Drive { model, state, control, random, place, now: SimTime::ZERO, acked: 0, hops: [hop; MAX_INT_HOPS], wraps }
    }

    fn now(&self) -> SimTime {
        self.now + self.place.time
    }

    /// Hops as the header has them here.
    fn header(&self, mut hops: [IntHop; MAX_INT_HOPS]) -> [IntHop; MAX_INT_HOPS] {
        for (hop, times) in hops.iter_mut().zip(1..) {
            hop.at += self.place.time;
            hop.tx_bytes += self.place.sent * times;
            if self.wraps {
                hop.at.0 %= TIME_MODULUS.0;
                hop.tx_bytes %= BYTE_MODULUS;
            }
        }
        hops
    }

    /// Calls `then` with the origin here and now.
    fn at_origin<T>(&self, then: impl FnOnce(&C, &Origin<'_>) -> T) -> T {
        let hops = self.header(self.hops.map(|hop| IntHop { at: self.now, queue: 0, ..hop }));
        then(&self.model, &Origin { now: self.now(), acked: self.acked + self.place.bytes, hops: &hops })
    }

    fn relative(&self) -> C::State {
        self.at_origin(|model, origin| model.relative(&self.state, origin)).expect("every model here has one")
    }

    /// Moves all that is still to come, and the state with it.
    fn move_to(&mut self, place: Place) {
        let relative = self.relative();
        self.place = place;
        self.state = self.at_origin(|model, origin| model.absolute(&relative, origin));
    }

    fn step(&mut self) -> Answer {
        // Mostly a few frames apart, sometimes half a second.
        let gap = if self.random.below(100) == 0 { self.random.below(1 << 39) } else { self.random.below(1 << 20) };
        self.now += Span(gap / 1_000 * 1_000);
        let now = self.now();
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
        (out.control, out.repace, out.timers)
    }

    fn ack(&mut self, now: SimTime, out: &mut CcaOut) {
        self.acked += self.random.below(3) * 1_000;
        let snd_nxt = self.acked + self.random.below(200) * 1_000;
        for hop in &mut self.hops {
            // Sometimes nothing moves.
            if self.random.below(20) != 0 {
                hop.at = SimTime((self.now.0 - self.random.below(self.now.0.min(5_000_000) + 1)) / 1_000 * 1_000);
                hop.tx_bytes += self.random.below(1 << 16);
                hop.queue = self.random.below(4) * self.random.below(1 << 20);
            }
        }
        let hops = self.header(self.hops);
        let hop_count = self.random.below(MAX_INT_HOPS as u64 + 2) as usize;
        let ack = Ack {
            now,
            acked: self.acked + self.place.bytes,
            snd_nxt: snd_nxt + self.place.bytes,
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
        let mut drive = Drive::new(*model, 1, HERE);
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
        let (mut one, mut other) = (Drive::new(*model, 2, HERE), Drive::new(*model, 2, HERE));
        for step in 0..STEPS {
            assert_eq!(one.step(), other.step(), "{model:?} step {step}");
        }
    });
}

/// Whether two states, which may be the wrapped and the bare one, are equal bit for bit.
fn are_equal<A: Pod, B: Pod>(one: &A, other: &B) -> bool {
    let (one, other) = (bytemuck::bytes_of(one), bytemuck::bytes_of(other));
    let common = one.len().min(other.len());
    one[..common] == other[..common] && one[common..].iter().chain(&other[common..]).all(|byte| *byte == 0)
}

#[test]
fn relative_and_back_is_where_it_was() {
    for_each(|model| {
        let (mut one, mut other) = (Drive::new(*model, 3, HERE), Drive::new(*model, 3, HERE));
        for step in 0..STEPS {
            assert_eq!(one.step(), other.step(), "{model:?} step {step}");
            if step % 7 == 0 {
                other.move_to(HERE);
            }
        }
    });
}

#[test]
fn time_positions_and_counters_are_relative() {
    let late = Place { time: Span::from_ns(987_654_321), bytes: 0, sent: 0x0123_4567_89ab };
    let places =
        [Place { bytes: 123_456_789, ..late }, HERE, Place { sent: 1, ..late }, Place { bytes: 1 << 40, ..HERE }];
    for_each(|model| {
        // Started earlier, started later, and moved about on the way.
        let (mut early, mut later) = (Drive::new(*model, 3, HERE), Drive::new(*model, 3, late));
        let mut moved = Drive::new(*model, 3, HERE);
        for step in 0..STEPS {
            if step % 100 == 99 {
                moved.move_to(places[step / 100 % places.len()]);
            }
            let answer = early.step();
            assert_eq!(answer, later.step(), "{model:?} step {step}, started later");
            assert_eq!(answer, moved.step(), "{model:?} step {step}, moved");
            let relative = early.relative();
            assert!(are_equal(&relative, &later.relative()), "{model:?} step {step}, started later");
            assert!(are_equal(&relative, &moved.relative()), "{model:?} step {step}, moved");
        }
    });
}

#[test]
fn positions_not_yet_set_stay_so() {
    assert_eq!(position(distance(0, 7_000), 9_000), 0);
    assert_eq!(position(distance(7_000, 7_000), 9_000), 9_000);
    assert_eq!(position(distance(6_000, 7_000), 9_000), 8_000);
    assert_eq!(distance(0, 7_000), distance(0, 9_000));
}

#[test]
fn equal_states_repeat_and_coast_to_themselves() {
    for_each(|model| {
        let mut drive = Drive::new(*model, 5, HERE);
        for step in 0..STEPS / 10 {
            drive.step();
            let state = drive.relative();
            assert!(model.repeats(&state, &state), "{model:?} step {step}");
            let mut coasted = state;
            model.coast(&mut coasted, &state, 1_000);
            assert!(are_equal(&coasted, &state), "{model:?} step {step}");
        }
    });
}

/// The state three rounds like that since `before` later, and whether it counts as the present one.
fn coasted<C: CongestionControl>(drive: &Drive<C>, before: &C::State) -> (bool, C::State) {
    let now = drive.relative();
    let mut later = now;
    drive.model.coast(&mut later, before, 3);
    (drive.model.repeats(&now, &later), later)
}

#[test]
fn every_call_arrives_through_the_wrapper() {
    fn compare<C: CongestionControl>(bare: C, any: AnyCca) {
        assert_eq!((bare.id(), bare.needs()), (any.id(), any.needs()));
        let (mut bare, mut any) = (Drive::new(bare, 4, HERE), Drive::new(any, 4, HERE));
        let mut before = (bare.relative(), any.relative());
        for step in 0..STEPS {
            if step % 1_000 == 999 {
                let place = Place { time: Span(step as u64), bytes: step as u64, sent: step as u64 };
                bare.move_to(place);
                any.move_to(place);
            }
            assert_eq!(bare.step(), any.step(), "step {step}");
            let ((repeats, state), (any_repeats, any_state)) = (coasted(&bare, &before.0), coasted(&any, &before.1));
            assert!(repeats == any_repeats && are_equal(&state, &any_state), "step {step}");
            if step % 3 == 0 {
                before = (bare.relative(), any.relative());
            }
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
    assert_eq!(size_of::<AnyCcaState>(), 256);
}

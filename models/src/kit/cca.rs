//! What a congestion control must keep to.

use super::{Bytes, Check, Difference, IN_RUST, Missteps, NOTHING_PUT_RIGHT, Random, Verdict, same};
use alloc::format;
use alloc::vec::Vec;
use core::fmt;
use wormhole_kernel::cca::{Ack, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::event::CCA_TIMERS;
use wormhole_kernel::telemetry::{IntHop, MAX_INT_HOPS};
use wormhole_kernel::units::{BitRate, SimTime, Span};

/// Shortest timer a model may set.
pub const MIN_TIMER: Span = Span::from_ns(1);
/// Longest timer a model may set: 1000 s.
pub const MAX_TIMER: Span = Span::from_ns(1_000_000_000_000);

/// The flow that is driven.
const FLOW: FlowFacts =
    FlowFacts { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_ns(12_480), bdp: 156_000, mtu: 1_000 };
const STEPS: usize = 10_000;

/// A congestion control and how it is tried.
pub struct CcaKit<'m, C> {
    model: &'m C,
    modulus: Option<(Span, u64)>,
    missteps: Option<&'m Missteps<'m>>,
}

/// What a model has answered.
type Answer = (SendControl, bool, [Option<Span>; CCA_TIMERS]);

/// What a model was given last.
#[derive(Clone, Copy)]
#[allow(clippy::large_enum_variant)] // There is one a driven flow.
enum Input {
    Start,
    Ack { ack: Ack<'static>, hops: [IntHop; MAX_INT_HOPS] },
    Timer { timer: usize, now: SimTime },
    Timeout { now: SimTime },
}

impl fmt::Display for Input {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Input::Start => write!(f, "start of {FLOW:?}"),
            Input::Ack { ack, hops } => {
                let hops = &hops[..ack.hop_count.min(MAX_INT_HOPS)];
                let Ack { now, acked, snd_nxt, marked, rtt, .. } = ack;
                write!(f, "ACK at {now:?}: acked {acked}, snd_nxt {snd_nxt}, marked {marked}, rtt {rtt:?}, {hops:?}")
            }
            Input::Timer { timer, now } => write!(f, "timer {timer} at {now:?}"),
            Input::Timeout { now } => write!(f, "time-out at {now:?}"),
        }
    }
}

/// Where a flow is: what its time, byte positions and telemetry counters are ahead of those of an unmoved one.
#[derive(Clone, Copy)]
pub(crate) struct Place {
    pub(crate) time: Span,
    pub(crate) bytes: u64,
    /// Bytes that each hop has sent; the first has sent once as many, the next twice, and so on.
    pub(crate) sent: u64,
}

pub(crate) const HERE: Place = Place { time: Span::ZERO, bytes: 0, sent: 0 };
const LATE: Place = Place { time: Span::from_ns(987_654_321), bytes: 0, sent: 0x0123_4567_89ab };
/// Where flows are moved to, one after the other.
const PLACES: [Place; 4] =
    [Place { bytes: 123_456_789, ..LATE }, HERE, Place { sent: 1, ..LATE }, Place { bytes: 1 << 40, ..HERE }];

/// A flow fed with random ACKs, timers and time-outs, all of them at its place.
pub(crate) struct Drive<'m, C: CongestionControl> {
    model: &'m C,
    state: C::State,
    control: SendControl,
    random: Random,
    place: Place,
    modulus: Option<(Span, u64)>,
    input: Input,
    /// This and what follows: as if unmoved.
    now: SimTime,
    acked: u64,
    hops: [IntHop; MAX_INT_HOPS],
}

impl<C: CongestionControl> Clone for Drive<'_, C> {
    fn clone(&self) -> Self {
        Drive { random: self.random.clone(), ..*self }
    }
}

impl<'m, C: CongestionControl> Drive<'m, C> {
    pub(crate) fn new(model: &'m C, modulus: Option<(Span, u64)>, seed: u64, place: Place) -> Self {
        let (state, control) = model.start(&FLOW, SimTime::ZERO + place.time);
        let hop = IntHop { rate: FLOW.line_rate, ..IntHop::default() };
        let (random, hops) = (Random(seed), [hop; MAX_INT_HOPS]);
        let (now, acked, input) = (SimTime::ZERO, 0, Input::Start);
        Drive { model, state, control, random, place, modulus, input, now, acked, hops }
    }

    fn now(&self) -> SimTime {
        self.now + self.place.time
    }

    /// Hops as the header has them here.
    fn header(&self, mut hops: [IntHop; MAX_INT_HOPS]) -> [IntHop; MAX_INT_HOPS] {
        for (hop, times) in hops.iter_mut().zip(1..) {
            hop.at += self.place.time;
            hop.tx_bytes += self.place.sent * times;
            if let Some((time, bytes)) = self.modulus {
                hop.at.0 %= time.0;
                hop.tx_bytes %= bytes;
            }
        }
        hops
    }

    /// Calls `then` with the origin here and now.
    fn at_origin<T>(&self, then: impl FnOnce(&C, &Origin<'_>) -> T) -> T {
        let hops = self.header(self.hops.map(|hop| IntHop { at: self.now, queue: 0, ..hop }));
        then(self.model, &Origin { now: self.now(), acked: self.acked + self.place.bytes, hops: &hops })
    }

    pub(crate) fn relative(&self) -> Option<C::State> {
        self.at_origin(|model, origin| model.relative(&self.state, origin))
    }

    /// Moves all that is still to come, and the state with it, if it can be moved just now.
    pub(crate) fn move_to(&mut self, place: Place) {
        let Some(relative) = self.relative() else { return };
        self.place = place;
        self.state = self.at_origin(|model, origin| model.absolute(&relative, origin));
    }

    pub(crate) fn step(&mut self) -> Answer {
        // Mostly a few frames apart, sometimes half a second.
        let gap = if self.random.below(100) == 0 { self.random.below(1 << 39) } else { self.random.below(1 << 20) };
        self.now += Span(gap / 1_000 * 1_000);
        let now = self.now();
        let mut out = CcaOut::new(self.control);
        match self.random.below(20) {
            0 => {
                self.input = Input::Timeout { now };
                self.model.on_timeout(&mut self.state, now, &mut out);
            }
            1..=4 => {
                let timer = self.random.below(CCA_TIMERS as u64) as usize;
                self.input = Input::Timer { timer, now };
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
            hops: &[],
            hop_count,
        };
        self.input = Input::Ack { ack, hops };
        let hops = &hops[..hop_count.min(MAX_INT_HOPS)];
        self.model.on_ack(&mut self.state, &Ack { hops, ..ack }, out);
    }
}

/// A state's bytes, for reports.
fn bytes<S: bytemuck::Pod>(state: Option<&S>) -> Option<Bytes<'_>> {
    state.map(|state| Bytes(bytemuck::bytes_of(state)))
}

impl<'m, C: CongestionControl> CcaKit<'m, C> {
    /// For a model in Rust.
    pub fn new(model: &'m C) -> Self {
        CcaKit { model, modulus: None, missteps: None }
    }

    /// The model expects telemetry whose clock and byte counters wrap at these values.
    pub fn with_wrapping_telemetry(self, time: Span, bytes: u64) -> Self {
        CcaKit { modulus: Some((time, bytes)), ..self }
    }

    /// The model is foreign code, and this tells what its wrapper has put right.
    pub fn with_missteps(self, missteps: &'m Missteps<'m>) -> Self {
        CcaKit { missteps: Some(missteps), ..self }
    }

    /// Tries everything.
    pub fn checks(&self) -> Vec<Check> {
        let (bounds, state_size) = self.bounds();
        let has_relative = self.drive(1, HERE).relative().is_some();
        let if_relative = |check: &dyn Fn() -> Result<(), Difference>| match has_relative {
            true => check().map_or_else(Verdict::Failed, |()| Verdict::Passed),
            false => Verdict::NotApplicable("the model has no relative states: it is always simulated"),
        };
        let relative = [
            ("relative and back at one place", if_relative(&|| self.relative_and_back())),
            ("moved to another time and place", if_relative(&|| self.moved())),
            ("equal flows, equal relative states", if_relative(&|| self.memo_safety())),
            ("equal states repeat themselves", if_relative(&|| self.equal_states_repeat())),
        ];
        let mut checks = Vec::from([
            Check::new("windows, rates and timers within bounds", bounds),
            Check { name: "keeps to its state", verdict: state_size },
            Check::new("equal inputs, equal outputs", self.determinism()),
            Check::new("all it remembers is in its state", self.save_and_restore()),
            Check::new("no dependence on absolute time", self.started_later()),
        ]);
        checks.extend(relative.map(|(name, verdict)| Check { name, verdict }));
        checks
    }

    fn drive(&self, seed: u64, place: Place) -> Drive<'m, C> {
        Drive::new(self.model, self.modulus, seed, place)
    }

    /// Whether outputs are in bounds, and whether it keeps to its state.
    fn bounds(&self) -> (Result<(), Difference>, Verdict) {
        let _ = self.missteps.and_then(|missteps| missteps());
        let (mut bounds, mut size) = (Ok(()), if self.missteps.is_some() { Verdict::Passed } else { IN_RUST });
        let mut drive = self.drive(1, HERE);
        for step in 0..STEPS {
            let (control, _, timers) =
                if step == 0 { (drive.control, false, [None; CCA_TIMERS]) } else { drive.step() };
            // Not only what a step gives is looked at.
            drive.move_to(HERE);
            let in_time = |timer: &Option<Span>| timer.is_none_or(|span| (MIN_TIMER..=MAX_TIMER).contains(&span));
            let is_good = control.window >= 1 && control.rate.0 >= 1 && control.rate <= FLOW.line_rate;
            let input = format!("{}", drive.input);
            let expected = "a window and a rate of at least 1, a rate of at most the line's, timers of 1 ns to 1000 s";
            let mut note = |is_overrun: bool, found, expected: &str| {
                let difference = Difference { step, input: input.clone(), found, expected: expected.into() };
                match is_overrun {
                    true if size == Verdict::Passed => size = Verdict::Failed(difference),
                    false if bounds.is_ok() => bounds = Err(difference),
                    _ => {}
                }
            };
            if !is_good || !timers.iter().all(in_time) {
                note(false, format!("{control:?}, {timers:?}"), expected);
            }
            if let Some(misstep) = self.missteps.and_then(|missteps| missteps()) {
                note(misstep.is_overrun, misstep.what, NOTHING_PUT_RIGHT);
            }
        }
        (bounds, size)
    }

    fn determinism(&self) -> Result<(), Difference> {
        let (mut one, mut other) = (self.drive(2, HERE), self.drive(2, HERE));
        same(0, &one.input, &one.control, &other.control)?;
        (0..STEPS).try_for_each(|step| {
            let (found, expected) = (one.step(), other.step());
            same(step, &one.input, &found, &expected)
        })
    }

    /// A flow goes on from a copy of its state as it does by itself.
    fn save_and_restore(&self) -> Result<(), Difference> {
        const AHEAD: usize = 50;
        let mut drive = self.drive(6, HERE);
        for step in (0..STEPS).step_by(AHEAD) {
            let mut restored = drive.clone();
            let expected: Vec<Answer> = (0..AHEAD).map(|_| drive.step()).collect();
            for (ahead, expected) in expected.iter().enumerate() {
                let found = restored.step();
                same(step + ahead, &restored.input, &found, expected)?;
            }
        }
        Ok(())
    }

    fn started_later(&self) -> Result<(), Difference> {
        let (mut early, mut later) = (self.drive(3, HERE), self.drive(3, LATE));
        same(0, &later.input, &later.control, &early.control)?;
        (0..STEPS).try_for_each(|step| {
            let (expected, found) = (early.step(), later.step());
            same(step, &later.input, &found, &expected)
        })
    }

    fn relative_and_back(&self) -> Result<(), Difference> {
        let (mut one, mut other) = (self.drive(3, HERE), self.drive(3, HERE));
        (0..STEPS).try_for_each(|step| {
            let (expected, found) = (one.step(), other.step());
            same(step, &other.input, &found, &expected)?;
            if step % 7 == 0 {
                other.move_to(HERE);
            }
            Ok(())
        })
    }

    /// A flow that is moved about goes on as one that is not.
    fn moved(&self) -> Result<(), Difference> {
        let (mut still, mut moved) = (self.drive(3, HERE), self.drive(3, HERE));
        (0..STEPS).try_for_each(|step| {
            if step % 100 == 99 {
                moved.move_to(PLACES[step / 100 % PLACES.len()]);
            }
            let (expected, found) = (still.step(), moved.step());
            same(step, &moved.input, &found, &expected)
        })
    }

    /// Flows that have seen the same have the same relative states, wherever they are.
    fn memo_safety(&self) -> Result<(), Difference> {
        let (mut early, mut later) = (self.drive(3, HERE), self.drive(3, LATE));
        let mut moved = self.drive(3, HERE);
        (0..STEPS).try_for_each(|step| {
            if step % 100 == 99 {
                moved.move_to(PLACES[step / 100 % PLACES.len()]);
            }
            early.step();
            let expected = early.relative();
            for other in [&mut later, &mut moved] {
                other.step();
                let found = other.relative();
                same(step, &other.input, &bytes(found.as_ref()), &bytes(expected.as_ref()))?;
            }
            Ok(())
        })
    }

    fn equal_states_repeat(&self) -> Result<(), Difference> {
        let mut drive = self.drive(5, HERE);
        (0..STEPS / 10).try_for_each(|step| {
            drive.step();
            let Some(state) = drive.relative() else { return Ok(()) };
            let repeats = self.model.repeats(&state, &state);
            same(step, &"the same relative state twice", &repeats, &true)?;
            let mut coasted = state;
            self.model.coast(&mut coasted, &state, 1_000);
            same(step, &"1000 rounds of nothing", &bytes(Some(&coasted)), &bytes(Some(&state)))
        })
    }
}

//! TIMELY (Mittal et al., SIGCOMM 2015): rate control from the gradient of the round-trip time, as ns-3 has it
//! (`RdmaHw::UpdateRateTimely`): once a round trip, with hyper-active increase after five increases in a row.

use super::round_trips::{RoundTrip, RoundTrips};
use super::{WindowRule, nanoseconds, repeated, scaled};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, SimTime, Span};

/// Bytes of the time stamp.
const HEADER_BYTES: u32 = 8;
/// Increases in a row after which they become hyper-active.
const HYPER_AFTER: u64 = 5;

/// Parameters of [`Timely`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct TimelyConfig {
    /// Weight of the newest difference (`m_tmly_alpha`).
    pub alpha: f64,
    /// Strength of decreases (`m_tmly_beta`).
    pub beta: f64,
    /// Below this round-trip time the rate always rises (`m_tmly_TLow`).
    pub low: Span,
    /// Above it, it always falls (`m_tmly_THigh`).
    pub high: Span,
    /// Scale of the gradient (`m_tmly_minRtt`).
    pub min_rtt: Span,
    /// Additive increase (`RATE_AI`).
    pub additive: BitRate,
    /// Hyper-active increase (`RATE_HAI`).
    pub hyper: BitRate,
    /// Least rate (`MIN_RATE`).
    pub min_rate: BitRate,
    /// Window (`HAS_WIN`, `VAR_WIN`).
    pub window: WindowRule,
}

impl Default for TimelyConfig {
    /// The reference runs': 0.875, 0.8; 50, 500, 20 us; 100 and 500 Mb/s; at least 1 Gb/s; no window.
    fn default() -> TimelyConfig {
        TimelyConfig {
            alpha: 0.875,
            beta: 0.8,
            low: Span::from_us(50),
            high: Span::from_us(500),
            min_rtt: Span::from_us(20),
            additive: BitRate(100_000_000),
            hyper: BitRate(500_000_000),
            min_rate: BitRate::from_gbps(1),
            window: WindowRule::Unlimited,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Timely {
    config: TimelyConfig,
}

/// A flow's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct TimelyState {
    line: BitRate,
    bdp: u64,
    rate: BitRate,
    trips: RoundTrips,
    /// At the beginning of the round trip, and of the last acknowledgement.
    last_rtt: Span,
    rtt: Span,
    /// Acknowledgements whose round-trip time was another than that of the one before.
    rtt_changes: u64,
    /// Smoothed difference of round-trip times, nanoseconds.
    difference: f64,
    /// Increases in a row, up to [`HYPER_AFTER`]: all after that are alike.
    increases: u64,
    /// Updates of the difference so far.
    rounds: u64,
    /// Those at which the round-trip time was another than before.
    changes: u64,
    /// Those after which the gradient decided.
    uses: u64,
}

impl TimelyState {
    /// From here to `after` the difference only decayed, and nothing depended on it.
    fn is_decaying(&self, after: &TimelyState) -> bool {
        (self.changes, self.uses) == (after.changes, after.uses)
    }
}

impl TimelyState {
    /// Whether from here to `after` round trips ended without an effect but on the difference, which only decays: then
    /// where in its round trip the flow is does not matter either.
    fn is_idling(&self, after: &TimelyState, low: Span) -> bool {
        let at_line = |s: &TimelyState| s.rate == s.line && s.increases == HYPER_AFTER;
        let same_rtt = self.rtt_changes == after.rtt_changes && after.rtt == after.last_rtt && after.rtt < low;
        at_line(self) && at_line(after) && same_rtt && self.is_decaying(after) && self.trips.keeps_pace(&after.trips)
    }
}

impl Timely {
    /// With these parameters.
    pub fn new(config: TimelyConfig) -> Timely {
        Timely { config }
    }

    /// Signed difference of two spans in nanoseconds.
    fn difference(now: Span, before: Span) -> f64 {
        if now >= before { nanoseconds(now - before) } else { -nanoseconds(before - now) }
    }

    /// The next smoothed difference.
    fn smoothed(&self, difference: f64, newest: f64) -> f64 {
        (1.0 - self.config.alpha) * difference + self.config.alpha * newest
    }

    /// The factor of a decrease, or `None` for an increase (paper, algorithm 1).
    fn verdict(&self, rtt: Span, gradient: f64) -> Option<f64> {
        let c = &self.config;
        if rtt < c.low {
            return None;
        }
        if rtt > c.high {
            // R * (1 - beta * (1 - Thigh / rtt)).
            return Some(1.0 - c.beta * (1.0 - nanoseconds(c.high) / nanoseconds(rtt)));
        }
        if gradient <= 0.0 {
            return None;
        }
        // R * (1 - beta * normalized_gradient).
        let factor = 1.0 - c.beta * gradient;
        Some(if factor < 0.0 { 0.0 } else { factor })
    }
}

impl CongestionControl for Timely {
    type State = TimelyState;

    fn id(&self) -> ModelId {
        let c = &self.config;
        let config = ConfigHash::new()
            .with(c.alpha.to_bits())
            .with(c.beta.to_bits())
            .with(c.low.0)
            .with(c.high.0)
            .with(c.min_rtt.0)
            .with(c.additive.0)
            .with(c.hyper.0)
            .with(c.min_rate.0);
        ModelId { name: "timely", version: 1, config: c.window.hash(config).finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds { telemetry: false, header_bytes: HEADER_BYTES }
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (TimelyState, SendControl) {
        let state = TimelyState { line: flow.line_rate, bdp: flow.bdp, rate: flow.line_rate, ..TimelyState::zeroed() };
        (state, self.config.window.control(flow.bdp, flow.line_rate, flow.line_rate))
    }

    fn on_ack(&self, state: &mut TimelyState, ack: &Ack<'_>, out: &mut CcaOut) {
        let trip = state.trips.on_ack(ack);
        state.rtt_changes += u64::from(ack.rtt != state.rtt);
        state.rtt = ack.rtt;
        if trip == RoundTrip::GoesOn {
            return;
        }
        let c = &self.config;
        if trip == RoundTrip::Over {
            // Paper, algorithm 1: new_rtt_diff, rtt_diff, normalized_gradient.
            let newest = Timely::difference(ack.rtt, state.last_rtt);
            state.difference = self.smoothed(state.difference, newest);
            state.rounds += 1;
            state.changes += u64::from(newest != 0.0);
            state.uses += u64::from((c.low..=c.high).contains(&ack.rtt));
            let gradient = state.difference / nanoseconds(c.min_rtt);
            match self.verdict(ack.rtt, gradient) {
                None => {
                    let step = if state.increases < HYPER_AFTER { c.additive } else { c.hyper };
                    state.rate = BitRate(state.rate.0.saturating_add(step.0).min(state.line.0));
                    state.increases = (state.increases + 1).min(HYPER_AFTER);
                }
                Some(factor) => {
                    state.rate = scaled(state.rate, factor).max(c.min_rate);
                    state.increases = 0;
                }
            }
            out.control = c.window.control(state.bdp, state.rate, state.line);
        }
        if ack.snd_nxt > state.trips.end() {
            state.trips.begin(ack.snd_nxt);
            state.last_rtt = ack.rtt;
        }
    }

    fn on_timer(&self, _state: &mut TimelyState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Nothing: TIMELY knows only delay; losses are the transport's.
    fn on_timeout(&self, _state: &mut TimelyState, _now: SimTime, _out: &mut CcaOut) {}

    fn relative(&self, state: &TimelyState, origin: &Origin<'_>) -> Option<TimelyState> {
        Some(TimelyState { trips: state.trips.relative(origin.acked), ..*state })
    }

    fn absolute(&self, relative: &TimelyState, origin: &Origin<'_>) -> TimelyState {
        TimelyState { trips: relative.trips.absolute(origin.acked), ..*relative }
    }

    /// The smoothed difference may decay while round-trip times stand still where only their length counts.
    fn repeats(&self, before: &TimelyState, after: &TimelyState) -> bool {
        let TimelyState { rounds, changes, uses, rtt_changes, .. } = *after;
        let trips = before.trips.counted_as(&after.trips);
        let mut expected = TimelyState { trips, rounds, changes, uses, rtt_changes, ..*before };
        if before.is_decaying(after) {
            expected.difference = after.difference;
        }
        if before.is_idling(after, self.config.low) {
            expected.trips = after.trips;
        }
        bytemuck::bytes_of(&expected) == bytemuck::bytes_of(after)
    }

    fn coast(&self, state: &mut TimelyState, before: &TimelyState, rounds: u64) {
        let updates = if before.is_idling(state, self.config.low) {
            state.trips.coast(&before.trips, rounds)
        } else {
            state.trips.count_on(&before.trips, rounds);
            (state.rounds - before.rounds) * rounds
        };
        if before.is_decaying(state) {
            state.difference = repeated(state.difference, updates, |difference| self.smoothed(difference, 0.0));
        }
        state.rounds += updates;
        state.changes += (state.changes - before.changes) * rounds;
        state.uses += (state.uses - before.uses) * rounds;
        state.rtt_changes += (state.rtt_changes - before.rtt_changes) * rounds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Feeds round-trip times (us), one per round trip, and gives the rate (bit/s) after the last.
    fn after(rtts: &[u64]) -> u64 {
        let model = Timely::new(TimelyConfig::default());
        let line_rate = BitRate::from_gbps(100);
        let facts = FlowFacts { line_rate, base_rtt: Span::from_us(4), bdp: 50_000, mtu: 1_000 };
        let (mut state, control) = model.start(&facts, SimTime::ZERO);
        state.rate = BitRate::from_gbps(50);
        let mut out = CcaOut::new(control);
        for (round, &us) in rtts.iter().enumerate() {
            let acked = 1_000 * (round as u64 + 1);
            let rtt = Span::from_us(us);
            let (now, marked, snd_nxt) = (SimTime::ZERO, false, acked + 500);
            model.on_ack(&mut state, &Ack { now, acked, snd_nxt, marked, rtt, hops: &[], hop_count: 0 }, &mut out);
        }
        out.control.rate.0
    }

    #[test]
    fn branches_of_the_algorithm() {
        assert_eq!(after(&[10]), 100_000_000_000, "the first round trip only records");
        assert_eq!(after(&[10, 10]), 50_100_000_000, "below low: additive increase");
        assert_eq!(after(&[100, 90]), 50_100_000_000, "falling: additive increase");
        assert_eq!(after(&[10; 7]), 51_000_000_000, "the sixth increase is hyper-active");
        assert_eq!(after(&[1_000, 1_000]), 30_000_000_000, "above high: 1 - 0.8 * (1 - 0.5)");
        // Gradient 0.875 * 10 / 20 = 0.4375.
        assert_eq!(after(&[60, 70]), (50e9 * (1.0 - 0.8 * 0.4375)) as u64);
        assert_eq!(after(&[60, 400]), 1_000_000_000, "never below the least rate");
        assert_eq!(after(&[100, 100]), 50_100_000_000, "no gradient: additive increase");
    }

    #[test]
    fn bounds_belong_to_the_gradient() {
        assert_eq!(after(&[40, 50]), (50e9 * (1.0 - 0.8 * 0.4375)) as u64);
        assert_eq!(after(&[490, 500]), (50e9 * (1.0 - 0.8 * 0.4375)) as u64);
    }

    /// Differences of -10 and 20: 0.125 * 0.875 * -10 + 0.875 * 20 = 16.40625, of 20.
    #[test]
    fn differences_are_smoothed() {
        assert_eq!(after(&[100, 90, 110]), (50_100_000_000f64 * (1.0 - 0.8 * 0.8203125)) as u64);
    }

    #[test]
    fn a_decrease_ends_the_increases_in_a_row() {
        assert_eq!(after(&[10, 10, 10, 10, 10, 10, 10, 60, 40]), 1_100_000_000);
    }

    /// Differences of 10, and of 10 again: the round trip that went back is not where the next begins.
    #[test]
    fn a_round_trip_in_which_nothing_new_was_sent_is_measured_on() {
        let mut flow = Flow::new();
        flow.state.rate = BitRate::from_gbps(50);
        for (acked, snd_nxt, us) in [(1_000, 1_500, 60), (2_000, 1_500, 70), (2_500, 3_000, 70)] {
            let (now, marked, rtt) = (SimTime::ZERO, false, Span::from_us(us));
            let ack = Ack { now, acked, snd_nxt, marked, rtt, hops: &[], hop_count: 0 };
            flow.model.on_ack(&mut flow.state, &ack, &mut flow.out);
        }
        assert_eq!(flow.state.difference, 0.125 * 8_750.0 + 8_750.0);
        let first = (50e9 * (1.0 - 0.8 * 0.4375)) as u64;
        assert_eq!(flow.out.control.rate.0, (first as f64 * (1.0 - 0.8 * 0.4921875)) as u64);
    }

    #[test]
    fn flows_idle_at_line_rate_while_nothing_changes() {
        let mut flow = Flow::new();
        let (before, after) = (flow.after(10, 20), flow.after(1, 20));
        let low = Span::from_us(50);
        assert!(before.is_idling(&after, low));
        assert!(!before.is_idling(&after, Span::from_us(20)), "the gradient counts from there on");
        let slower = BitRate::from_gbps(99);
        for (one, other) in [
            (TimelyState { rate: slower, ..before }, after),
            (before, TimelyState { rate: slower, ..after }),
            (TimelyState { increases: 4, ..before }, after),
            (before, TimelyState { increases: 4, ..after }),
            (before, TimelyState { rtt_changes: after.rtt_changes + 1, ..after }),
            (before, TimelyState { last_rtt: Span::from_us(19), ..after }),
            (before, TimelyState { changes: after.changes + 1, ..after }),
            (before, TimelyState { uses: after.uses + 1, ..after }),
            (before, TimelyState { trips: before.trips, ..after }),
        ] {
            assert!(!one.is_idling(&other, low), "{one:?} {other:?}");
        }
    }

    /// A flow with one ACK a round trip.
    struct Flow {
        model: Timely,
        state: TimelyState,
        out: CcaOut,
        acked: u64,
    }

    impl Flow {
        fn new() -> Flow {
            let model = Timely::new(TimelyConfig::default());
            let line_rate = BitRate::from_gbps(100);
            let facts = FlowFacts { line_rate, base_rtt: Span::from_us(4), bdp: 50_000, mtu: 1_000 };
            let (state, control) = model.start(&facts, SimTime::ZERO);
            Flow { model, state, out: CcaOut::new(control), acked: 0 }
        }

        /// So many round trips of so many microseconds, and the relative state after them.
        fn after(&mut self, rounds: u64, us: u64) -> TimelyState {
            for _ in 0..rounds {
                self.acked += 1_000;
                let (acked, snd_nxt, rtt) = (self.acked, self.acked + 500, Span::from_us(us));
                let (now, marked) = (SimTime::ZERO, false);
                let ack = Ack { now, acked, snd_nxt, marked, rtt, hops: &[], hop_count: 0 };
                self.model.on_ack(&mut self.state, &ack, &mut self.out);
            }
            let origin = Origin { now: SimTime::ZERO, acked: self.acked, hops: &[] };
            self.model.relative(&self.state, &origin).expect("TIMELY always has one")
        }

        /// From `before` to `after` the flow repeats itself, and coasting is the same as going on like that.
        fn assert_coasts(&mut self, before: &TimelyState, after: &TimelyState, us: u64) {
            assert!(self.model.repeats(before, after));
            let (mut gone, period) = (0, after.rounds - before.rounds);
            for rounds in [0, 1, 2, 30, 1_000, 100_000] {
                let simulated = self.after((rounds - gone) * period, us);
                gone = rounds;
                let mut coasted = *after;
                self.model.coast(&mut coasted, before, rounds);
                assert_eq!(bytemuck::bytes_of(&coasted), bytemuck::bytes_of(&simulated), "{rounds} times");
            }
        }
    }

    #[test]
    fn short_round_trips_repeat_while_the_difference_decays() {
        for (us, period) in [(20, 1), (20, 3)] {
            let mut flow = Flow::new();
            flow.after(1, us + 10);
            let before = flow.after(10, us);
            let after = flow.after(period, us);
            assert!(before.difference < after.difference && after.difference < 0.0);
            flow.assert_coasts(&before, &after, us);
        }
    }

    #[test]
    fn changed_round_trips_do_not_repeat() {
        let mut flow = Flow::new();
        flow.after(1, 30);
        let before = flow.after(10, 20);
        flow.after(1, 30);
        let mut after = flow.after(1, 20);
        assert!(!flow.model.repeats(&before, &after));
        after.changes = before.changes;
        assert!(flow.model.repeats(&before, &after), "it is for the changes only");
    }

    #[test]
    fn used_gradients_repeat_only_when_equal() {
        // Falling at first: the rate is at the line's throughout, but the gradient decides.
        let mut flow = Flow::new();
        flow.after(1, 90);
        let before = flow.after(10, 80);
        let mut after = flow.after(1, 80);
        assert!(!flow.model.repeats(&before, &after));
        after.uses = before.uses;
        assert!(flow.model.repeats(&before, &after), "it is for the use only");

        let before = flow.after(1_000, 80);
        let after = flow.after(2, 80);
        assert_eq!((before.difference.to_bits(), after.difference.to_bits(), after.uses - before.uses), (0, 0, 2));
        flow.assert_coasts(&before, &after, 80);
    }
}

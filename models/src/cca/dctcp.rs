//! DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) on rates, as ns-3 has it (`RdmaHw::HandleAckDctcp`).
//!
//! Left out: slow start; flows begin at line rate.

use super::round_trips::{RoundTrip, RoundTrips};
use super::{WindowRule, repeated, scaled};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, SimTime};

/// Parameters of [`Dctcp`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DctcpConfig {
    /// Gain of the estimate of the marked share (`EWMA_GAIN`).
    pub gain: f64,
    /// Increase per round trip (`DCTCP_RATE_AI`).
    pub additive: BitRate,
    /// Least rate (`MIN_RATE`).
    pub min_rate: BitRate,
    /// Window (`HAS_WIN`, `VAR_WIN`).
    pub window: WindowRule,
}

impl Default for DctcpConfig {
    /// The reference runs': g 1/16, 615 Mb/s, at least 1 Gb/s, window at rate.
    fn default() -> DctcpConfig {
        DctcpConfig {
            gain: 0.0625,
            additive: BitRate(615_000_000),
            min_rate: BitRate::from_gbps(1),
            window: WindowRule::BdpAtRate,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Dctcp {
    config: DctcpConfig,
}

/// A flow's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct DctcpState {
    line: BitRate,
    bdp: u64,
    mtu: u64,
    /// 1 if the rate is that of the line: increases have no effect then.
    at_line: u64,
    trips: RoundTrips,
    /// Until it is acknowledged beyond this byte, the rate is not cut again; 0 if it may be.
    recover: u64,
    reduced: u64,
    alpha: f64,
    /// Marked ACKs of this round trip.
    marks: u64,
    /// ACKs this round trip will have.
    batch: u64,
    /// Updates of alpha so far.
    rounds: u64,
    /// Marked ACKs so far.
    marks_seen: u64,
}

impl Dctcp {
    /// With these parameters.
    pub fn new(config: DctcpConfig) -> Dctcp {
        Dctcp { config }
    }

    /// The next alpha, from the marked share of a round trip (paper, eq. 1; RFC 8257, section 3.3, steps 5 and 6).
    fn smoothed(&self, alpha: f64, share: f64) -> f64 {
        (1.0 - self.config.gain) * alpha + self.config.gain * share
    }

    fn cut(&self, state: &mut DctcpState, snd_nxt: u64, out: &mut CcaOut) {
        // Paper, eq. 2; RFC 8257, section 3.3, step 9: cwnd * (1 - alpha / 2).
        let rate = scaled(out.control.rate, 1.0 - state.alpha / 2.0).max(self.config.min_rate);
        self.set_rate(state, rate, out);
        state.reduced = 1;
        state.recover = snd_nxt;
    }

    fn set_rate(&self, state: &mut DctcpState, rate: BitRate, out: &mut CcaOut) {
        state.at_line = u64::from(rate == state.line);
        out.control = self.config.window.control(state.bdp, rate, state.line);
    }
}

impl DctcpState {
    /// Whether from here to `after` no mark has come, and the ends of round trips had no effect but on alpha: then
    /// where in its round trip the flow is does not matter either.
    fn is_idling(&self, after: &DctcpState) -> bool {
        let steady = self.at_line != 0 && after.at_line != 0 && after.reduced == 0;
        steady && self.marks_seen == after.marks_seen && after.marks == 0 && self.trips.keeps_pace(&after.trips)
    }
}

impl CongestionControl for Dctcp {
    type State = DctcpState;

    fn id(&self) -> ModelId {
        let c = &self.config;
        let config = ConfigHash::new().with(c.gain.to_bits()).with(c.additive.0).with(c.min_rate.0);
        ModelId { name: "dctcp", version: 1, config: c.window.hash(config).finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds::default()
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (DctcpState, SendControl) {
        let state = DctcpState {
            line: flow.line_rate,
            bdp: flow.bdp,
            mtu: u64::from(flow.mtu).max(1),
            at_line: 1,
            alpha: 1.0,
            ..DctcpState::zeroed()
        };
        (state, self.config.window.control(flow.bdp, flow.line_rate, flow.line_rate))
    }

    fn on_ack(&self, state: &mut DctcpState, ack: &Ack<'_>, out: &mut CcaOut) {
        state.marks += u64::from(ack.marked);
        state.marks_seen += u64::from(ack.marked);
        let trip = state.trips.on_ack(ack);
        let new_batch = trip != RoundTrip::GoesOn;
        if new_batch {
            if trip == RoundTrip::First {
                state.batch = ack.snd_nxt / state.mtu + 1;
            } else {
                let share = state.marks as f64 / state.batch as f64;
                let share = if share > 1.0 { 1.0 } else { share };
                state.alpha = self.smoothed(state.alpha, share);
                state.rounds += 1;
                state.marks = 0;
                // ns-3 counts in 32 bits, which shows when a go-back has put snd_nxt behind.
                state.batch = u64::from(ack.snd_nxt.wrapping_sub(ack.acked) as u32) / state.mtu + 1;
            }
            state.trips.begin(ack.snd_nxt);
        }
        if state.reduced != 0 && ack.acked > state.recover {
            state.reduced = 0;
            state.recover = 0;
        }
        if ack.marked && state.reduced == 0 {
            self.cut(state, ack.snd_nxt, out);
        }
        if state.reduced == 0 && new_batch {
            // One step a round trip, as TCP's segment per window.
            let rate = BitRate(out.control.rate.0.saturating_add(self.config.additive.0).min(state.line.0));
            self.set_rate(state, rate, out);
        }
    }

    fn on_timer(&self, _state: &mut DctcpState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// RFC 8257, section 3.5: a loss is answered as in TCP, by half.
    fn on_timeout(&self, state: &mut DctcpState, _now: SimTime, out: &mut CcaOut) {
        let rate = BitRate((out.control.rate.0 / 2).max(self.config.min_rate.0));
        self.set_rate(state, rate, out);
    }

    fn relative(&self, state: &DctcpState, origin: &Origin<'_>) -> Option<DctcpState> {
        let recover = if state.reduced != 0 { state.recover.wrapping_sub(origin.acked) } else { 0 };
        Some(DctcpState { trips: state.trips.relative(origin.acked), recover, ..*state })
    }

    fn absolute(&self, relative: &DctcpState, origin: &Origin<'_>) -> DctcpState {
        let recover = if relative.reduced != 0 { relative.recover.wrapping_add(origin.acked) } else { 0 };
        DctcpState { trips: relative.trips.absolute(origin.acked), recover, ..*relative }
    }

    /// Only marks make alpha felt: while there are none, it may decay.
    fn repeats(&self, before: &DctcpState, after: &DctcpState) -> bool {
        let trips = before.trips.counted_as(&after.trips);
        let mut expected = DctcpState { trips, rounds: after.rounds, marks_seen: after.marks_seen, ..*before };
        if before.marks_seen == after.marks_seen {
            expected.alpha = after.alpha;
        }
        if before.is_idling(after) {
            (expected.trips, expected.batch) = (after.trips, after.batch);
        }
        bytemuck::bytes_of(&expected) == bytemuck::bytes_of(after)
    }

    fn coast(&self, state: &mut DctcpState, before: &DctcpState, rounds: u64) {
        let marks = state.marks_seen - before.marks_seen;
        let updates = if before.is_idling(state) {
            let updates = state.trips.coast(&before.trips, rounds);
            if updates > 0 {
                state.batch = state.trips.in_flight() / state.mtu + 1;
            }
            updates
        } else {
            state.trips.count_on(&before.trips, rounds);
            (state.rounds - before.rounds) * rounds
        };
        if marks == 0 {
            state.alpha = repeated(state.alpha, updates, |alpha| self.smoothed(alpha, 0.0));
        }
        state.rounds += updates;
        state.marks_seen += marks * rounds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::units::Span;

    #[test]
    fn a_mark_cuts_once_a_round_trip() {
        let model = Dctcp::new(DctcpConfig::default());
        let line_rate = BitRate::from_gbps(100);
        let facts = FlowFacts { line_rate, base_rtt: Span::from_us(4), bdp: 52_000, mtu: 1_000 };
        let (mut state, control) = model.start(&facts, SimTime::ZERO);
        let mut rate = |acked, snd_nxt, marked, out: &mut CcaOut| {
            let (now, rtt) = (SimTime::ZERO, Span::ZERO);
            model.on_ack(&mut state, &Ack { now, acked, snd_nxt, marked, rtt, hops: &[], hop_count: 0 }, out);
            out.control.rate.0
        };
        let mut out = CcaOut::new(control);
        assert_eq!(rate(1_000, 50_000, true, &mut out), 50_000_000_000, "alpha is 1: half");
        assert_eq!(rate(2_000, 51_000, true, &mut out), 50_000_000_000, "not twice");
        // A round trip later: 2 marks of 51; alpha = 15/16 + 1/16 * 3/51; no mark, so the rate rises.
        assert_eq!(rate(51_000, 100_000, false, &mut out), 50_615_000_000);
        let alpha = (1.0 - 0.0625) * 1.0 + 0.0625 * (2.0 / 51.0);
        assert_eq!(rate(52_000, 101_000, true, &mut out), (50_615_000_000f64 * (1.0 - alpha / 2.0)) as u64);
    }

    /// A flow that sends 50 packets a round trip; every 50th ACK ends one.
    struct Flow {
        model: Dctcp,
        state: DctcpState,
        out: CcaOut,
        acked: u64,
    }

    impl Flow {
        fn new() -> Flow {
            let model = Dctcp::new(DctcpConfig::default());
            let line_rate = BitRate::from_gbps(100);
            let facts = FlowFacts { line_rate, base_rtt: Span::from_us(4), bdp: 52_000, mtu: 1_000 };
            let (state, control) = model.start(&facts, SimTime::ZERO);
            Flow { model, state, out: CcaOut::new(control), acked: 0 }
        }

        /// So many round trips, and the relative state after them. `marked` says of each packet whether it is.
        fn after(&mut self, rounds: u64, marked: impl Fn(u64) -> bool) -> DctcpState {
            self.after_packets(50 * rounds, 49_000, marked)
        }

        /// So many packets, each acknowledged with so many bytes under way.
        fn after_packets(&mut self, packets: u64, in_flight: u64, marked: impl Fn(u64) -> bool) -> DctcpState {
            for packet in 0..packets {
                let acked = self.acked + 1_000;
                self.ack(acked, acked + in_flight, marked(packet));
            }
            let origin = Origin { now: SimTime::ZERO, acked: self.acked, hops: &[] };
            self.model.relative(&self.state, &origin).expect("DCTCP always has one")
        }

        /// An acknowledgement, and the rate after it, Mb/s.
        fn ack(&mut self, acked: u64, snd_nxt: u64, marked: bool) -> u64 {
            self.acked = acked;
            let (now, rtt) = (SimTime::ZERO, Span::ZERO);
            let ack = Ack { now, acked, snd_nxt, marked, rtt, hops: &[], hop_count: 0 };
            self.model.on_ack(&mut self.state, &ack, &mut self.out);
            self.out.control.rate.0 / 1_000_000
        }

        /// From `before` to `after` the flow repeats itself, and coasting is the same as going on like that.
        fn assert_coasts(&mut self, before: &DctcpState, after: &DctcpState, marked: impl Fn(u64) -> bool) {
            assert!(self.model.repeats(before, after));
            let (mut gone, period) = (0, after.rounds - before.rounds);
            for rounds in [0, 1, 2, 30, 1_000, 10_000] {
                let simulated = self.after((rounds - gone) * period, &marked);
                gone = rounds;
                let mut coasted = *after;
                self.model.coast(&mut coasted, before, rounds);
                assert_eq!(bytemuck::bytes_of(&coasted), bytemuck::bytes_of(&simulated), "{rounds} times");
            }
        }
    }

    const UNMARKED: fn(u64) -> bool = |_| false;

    #[test]
    fn unmarked_rounds_repeat_while_alpha_decays() {
        for period in [1, 3] {
            let mut flow = Flow::new();
            flow.after(2, |_| true);
            let before = flow.after(200, UNMARKED);
            let after = flow.after(period, UNMARKED);
            assert!(after.alpha < before.alpha && after.alpha > 0.0 && flow.out.control.rate == after.line);
            flow.assert_coasts(&before, &after, UNMARKED);
        }
    }

    #[test]
    fn cuts_are_a_round_trip_apart_and_so_are_increases() {
        let mut flow = Flow::new();
        assert_eq!(flow.ack(500, 10_000, true), 50_000, "alpha is 1: half");
        assert_eq!(flow.state.batch, 11);
        for packet in 2..20 {
            assert_eq!(flow.ack(500 * packet, 10_000 + 500 * packet, true), 50_000, "not yet");
        }
        assert_eq!(flow.ack(10_000, 20_000, true), 50_000, "up to what was sent at the cut");
        assert_eq!(flow.ack(10_500, 20_250, true), 25_000);
        // 21 ACKs with marks in a round trip that was to have 11: no more than all.
        let DctcpState { batch, rounds, marks, marks_seen, alpha, .. } = flow.state;
        assert_eq!((batch, rounds, marks, marks_seen, alpha), (10, 1, 0, 21, 1.0));
        assert_eq!(flow.ack(11_000, 20_500, false), 25_000, "within a round trip nothing rises");
        assert_eq!(flow.ack(20_500, 30_000, false), 25_615);
        assert_eq!(flow.ack(21_000, 30_500, false), 25_615);
        assert_eq!(flow.ack(30_500, 31_000, false), 26_230);
        assert_eq!(flow.state.at_line, 0);
    }

    #[test]
    fn time_outs_halve_the_rate_down_to_the_least() {
        let mut flow = Flow::new();
        let rates = [(); 8].map(|()| {
            flow.model.on_timeout(&mut flow.state, SimTime::ZERO, &mut flow.out);
            flow.out.control.rate.0 / 1_000_000
        });
        assert_eq!(rates, [50_000, 25_000, 12_500, 6_250, 3_125, 1_562, 1_000, 1_000]);
        assert_eq!((flow.state.at_line, flow.out.control.window), (0, 520));
    }

    #[test]
    fn flows_idle_at_line_rate_without_marks() {
        let mut flow = Flow::new();
        let (before, after) = (flow.after(200, UNMARKED), flow.after(1, UNMARKED));
        assert!(before.is_idling(&after));
        assert_eq!(Flow::new().state.at_line, 1, "it begins there");
        for (one, other) in [
            (DctcpState { at_line: 0, ..before }, after),
            (before, DctcpState { at_line: 0, ..after }),
            (before, DctcpState { reduced: 1, ..after }),
            (before, DctcpState { marks_seen: 1, ..after }),
            (before, DctcpState { marks: 1, ..after }),
            (before, DctcpState { trips: before.trips, ..after }),
        ] {
            assert!(!one.is_idling(&other), "{one:?} {other:?}");
        }
    }

    /// Where in its round trip a flow is does not matter then; what the round trip was to have stays until it is over.
    #[test]
    fn parts_of_round_trips_repeat_while_alpha_decays() {
        for (settled, in_flight, period) in [(0, 49_000, 7), (0, 50_500, 110), (1, 48_000, 2), (45, 48_000, 2)] {
            let mut flow = Flow::new();
            flow.after(200, UNMARKED);
            flow.after_packets(10, 49_000, UNMARKED);
            let before = flow.after_packets(settled + 1, in_flight, UNMARKED);
            let after = flow.after_packets(period, in_flight, UNMARKED);
            assert!(flow.model.repeats(&before, &after));
            for rounds in [1, 2, 40] {
                let mut coasted = after;
                flow.model.coast(&mut coasted, &before, rounds);
                let (model, state) = (flow.model, flow.state);
                let mut other = Flow { model, state, out: flow.out, acked: flow.acked };
                let simulated = other.after_packets(rounds * period, in_flight, UNMARKED);
                assert_eq!(bytemuck::bytes_of(&coasted), bytemuck::bytes_of(&simulated), "{in_flight}, {rounds} times");
            }
        }
    }

    #[test]
    fn rounds_with_marks_repeat_only_with_their_alpha() {
        let mut flow = Flow::new();
        let before = flow.after(200, UNMARKED);
        // A mark whose effects on the rate have passed.
        let mut after = flow.after(200, |packet| packet == 7);
        assert_ne!(before.alpha, after.alpha);
        assert!(!flow.model.repeats(&before, &after));
        after.marks_seen = before.marks_seen;
        assert!(flow.model.repeats(&before, &after), "it is for the mark only");

        // All marked: alpha stays at 1, the rate at its least.
        let mut flow = Flow::new();
        let before = flow.after(200, |_| true);
        let after = flow.after(2, |_| true);
        assert_eq!((after.marks_seen - before.marks_seen, after.alpha), (100, 1.0));
        flow.assert_coasts(&before, &after, |_| true);
    }
}

//! HPCC (Li et al., SIGCOMM 2019): inflight control from per-hop telemetry, as ns-3 has it (`RdmaHw::UpdateRateHp`).
//!
//! Left out: PINT, the probabilistic telemetry (`CC_MODE 10`).
//!
//! Beyond ns-3: a hop that shows no time since its last record is passed over, where ns-3 would divide by zero; a hop
//! that a flow has not had before is recorded first; without a window (`HAS_WIN 0`) the bandwidth-delay product still
//! scales the queue.

use super::{WindowRule, distance, nanoseconds, position};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::telemetry::{IntHop, MAX_INT_HOPS};
use wormhole_kernel::units::{BitRate, SimTime, Span};

/// Bytes of the INT header: five records of eight and two of its own (`IntHeader::GetStaticSize`).
const HEADER_BYTES: u32 = 42;

/// Parameters of [`Hpcc`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HpccConfig {
    /// Target utilisation, eta (`U_TARGET`), a share of 1. Above 0.
    pub target: f64,
    /// Round trips of additive increase before a multiplicative one, maxStage (`MI_THRESH`).
    pub max_stage: u32,
    /// Additive increase, W_AI as a rate (`RATE_AI`).
    pub additive: BitRate,
    /// Least rate (`MIN_RATE`).
    pub min_rate: BitRate,
    /// React to every ACK, not only once a round trip (`FAST_REACT`).
    pub fast_react: bool,
    /// A rate per hop, the flow's being the least (`MULTI_RATE`).
    pub multi_rate: bool,
    /// Between round trips react only to hops with a queue (`SAMPLE_FEEDBACK`).
    pub sample_feedback: bool,
    /// Window (`HAS_WIN`, `VAR_WIN`).
    pub window: WindowRule,
    /// Where the telemetry's clock wraps, such as 2^24 ns in profile `ns3`; 0: it does not.
    pub time_modulus: Span,
    /// Where the telemetry's byte counters wrap, in bytes; 0: they do not.
    pub byte_modulus: u64,
    /// Granularity of rate registers in hardware, bit/s; 0: rates are as fine as they come. Rates are rounded down to
    /// it, but not below the least rate, and the utilisation estimate is kept in units of 2^-16: states can recur.
    pub rate_quantum: u64,
}

impl Default for HpccConfig {
    /// The reference runs': eta 0.95, maxStage 0, 50 Mb/s, at least 1 Gb/s, fast reaction, window at rate.
    fn default() -> HpccConfig {
        HpccConfig {
            target: 0.95,
            max_stage: 0,
            additive: BitRate(50_000_000),
            min_rate: BitRate::from_gbps(1),
            fast_react: true,
            multi_rate: false,
            sample_feedback: false,
            window: WindowRule::BdpAtRate,
            time_modulus: Span::ZERO,
            byte_modulus: 0,
            rate_quantum: 0,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Hpcc {
    config: HpccConfig,
}

/// Rate register and utilisation estimate: the flow's (the first), or one per hop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Register {
    /// Reference rate, W_c as a rate.
    rate: BitRate,
    /// Normalised inflight bytes, U. Finite and positive.
    utilisation: f64,
}

/// What HPCC keeps of a hop between ACKs.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
struct Seen {
    at: SimTime,
    tx_bytes: u64,
    queue: u64,
}

impl Seen {
    fn of(hop: &IntHop) -> Seen {
        Seen { at: hop.at, tx_bytes: hop.tx_bytes, queue: hop.queue }
    }
}

/// A flow's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct HpccState {
    line: BitRate,
    base_rtt: Span,
    bdp: u64,
    /// Once it is acknowledged beyond this byte, a round trip has passed; 0 before the first ACK.
    last_update: u64,
    registers: [Register; MAX_INT_HOPS],
    seen: [Seen; MAX_INT_HOPS],
    /// Additive increases since the last multiplicative one, incStage; one per register.
    stages: [u32; MAX_INT_HOPS],
    /// Hops of which there is a record in `seen`.
    known: u32,
}

/// What one hop says of its utilisation.
struct Sample {
    /// Time since the last record, nanoseconds.
    tau: f64,
    utilisation: f64,
}

impl Hpcc {
    /// With these parameters.
    pub fn new(config: HpccConfig) -> Hpcc {
        Hpcc { config }
    }

    /// ns-3 `IntHop::GetTimeDelta`.
    fn time_since(&self, now: SimTime, then: SimTime) -> Span {
        let span = now.0.wrapping_sub(then.0);
        match self.config.time_modulus.0 {
            0 => Span(span),
            // Nearly always: both are below the modulus. Divisions are slow.
            modulus if now.0 >= then.0 && span < modulus => Span(span),
            modulus if now.0 >= then.0 => Span(span % modulus),
            modulus => Span(span.wrapping_add(modulus)),
        }
    }

    /// ns-3 `IntHop::GetBytesDelta`.
    fn bytes_since(&self, now: u64, then: u64) -> u64 {
        let bytes = now.wrapping_sub(then);
        if self.config.byte_modulus != 0 && now < then { bytes.wrapping_add(self.config.byte_modulus) } else { bytes }
    }

    /// The records as distances back from those of `origin`. Done twice, it gives the records again: both have the
    /// header's clock and counter, below their moduli.
    fn measured(&self, state: &HpccState, origin: &Origin<'_>) -> [Seen; MAX_INT_HOPS] {
        let mut measured = [Seen::zeroed(); MAX_INT_HOPS];
        let known = &state.seen[..state.known as usize];
        for ((to, seen), hop) in measured.iter_mut().zip(known).zip(origin.hops) {
            let at = SimTime(self.time_since(hop.at, seen.at).0);
            *to = Seen { at, tx_bytes: self.bytes_since(hop.tx_bytes, seen.tx_bytes), queue: seen.queue };
        }
        measured
    }

    /// The inflight bytes of hop `i` over its capacity (paper, eq. 2 and algorithm 1, lines 3 to 6), and its record
    /// kept. `None` if there is nothing to compare with, no time has passed in between, or a fast reaction is to pass
    /// over hops without a queue.
    #[inline(always)]
    fn sample(&self, state: &mut HpccState, i: usize, hop: &IntHop, full: bool) -> Option<Sample> {
        let is_known = i < state.known as usize;
        if is_known && self.config.sample_feedback && !full && hop.queue == 0 {
            return None;
        }
        let seen = core::mem::replace(&mut state.seen[i], Seen::of(hop));
        if !is_known {
            state.known = i as u32 + 1;
            return None;
        }
        let span = self.time_since(hop.at, seen.at);
        if span == Span::ZERO || hop.rate.0 == 0 {
            return None;
        }
        // ns-3 `UpdateRateHp`: duration, txRate and u, from left to right.
        let tau = nanoseconds(span);
        let duration = tau * 1e-9;
        let tx_rate = self.bytes_since(hop.tx_bytes, seen.tx_bytes).wrapping_mul(8) as f64 / duration;
        let line = hop.rate.0 as f64;
        let mut utilisation = tx_rate / line;
        // Most queues are empty, and two divisions of nothing are slow.
        let queue = hop.queue.min(seen.queue);
        if queue > 0 {
            utilisation += queue as f64 * state.line.0 as f64 / line / state.bdp as f64;
        }
        Some(Sample { tau, utilisation })
    }

    /// The moving average over a round trip (paper, algorithm 1, lines 8 and 9).
    fn average(&self, old: f64, sample: f64, tau: f64, base_rtt: f64) -> f64 {
        const UNITS: f64 = 65_536.0;
        let tau = if tau > base_rtt { base_rtt } else { tau };
        let mut average = (old * (base_rtt - tau) + sample * tau) / base_rtt;
        if self.config.rate_quantum != 0 {
            average = (average * UNITS + 0.5) as u64 as f64 / UNITS;
        }
        // A hop whose counters say it stood still: as good as idle, but never a division by zero.
        if average > 0.0 { average } else { 1.0 / UNITS }
    }

    /// The next rate and stage (paper, algorithm 1, lines 11 to 18).
    fn next(&self, register: &Register, stage: u32, line: BitRate) -> (BitRate, u32) {
        let c = &self.config;
        let excess = register.utilisation / c.target;
        let (rate, stage) = if excess >= 1.0 || stage >= c.max_stage {
            // ns-3 `DataRate::operator/` truncates; so does the cast, which saturates besides.
            (((register.rate.0 as f64 / excess) as u64).saturating_add(c.additive.0), 0)
        } else {
            (register.rate.0.saturating_add(c.additive.0), stage + 1)
        };
        let rate = match c.rate_quantum {
            0 => rate,
            quantum => rate - rate % quantum,
        };
        (BitRate(rate.max(c.min_rate.0).min(line.0)), stage)
    }

    /// One rate for the flow, from its most utilised hop. `None` if no hop has news.
    fn single_rate(&self, state: &mut HpccState, hops: &[IntHop], full: bool) -> Option<BitRate> {
        let (mut most, mut tau, mut news) = (0.0, 0.0, false);
        for (i, hop) in hops.iter().enumerate() {
            let Some(sample) = self.sample(state, i, hop, full) else { continue };
            news = true;
            if sample.utilisation > most {
                (most, tau) = (sample.utilisation, sample.tau);
            }
        }
        if !news {
            return None;
        }
        let register = &mut state.registers[0];
        register.utilisation = self.average(register.utilisation, most, tau, nanoseconds(state.base_rtt));
        let (rate, stage) = self.next(register, state.stages[0], state.line);
        if full {
            register.rate = rate;
            state.stages[0] = stage;
        }
        Some(rate)
    }

    /// A rate for each hop, the least of which counts. `None` if no hop has news.
    fn multi_rate(&self, state: &mut HpccState, hops: &[IntHop], full: bool) -> Option<BitRate> {
        let base_rtt = nanoseconds(state.base_rtt);
        let (mut least, mut news) = (state.line, false);
        for (i, hop) in hops.iter().enumerate() {
            let Some(sample) = self.sample(state, i, hop, full) else {
                least = least.min(state.registers[i].rate);
                continue;
            };
            news = true;
            let register = &mut state.registers[i];
            register.utilisation = self.average(register.utilisation, sample.utilisation, sample.tau, base_rtt);
            let (rate, stage) = self.next(register, state.stages[i], state.line);
            if full {
                register.rate = rate;
                state.stages[i] = stage;
            }
            least = least.min(rate);
        }
        news.then_some(least)
    }
}

impl CongestionControl for Hpcc {
    type State = HpccState;

    fn id(&self) -> ModelId {
        let c = &self.config;
        let config = ConfigHash::new()
            .with(c.target.to_bits())
            .with(u64::from(c.max_stage))
            .with(c.additive.0)
            .with(c.min_rate.0)
            .with(u64::from(c.fast_react))
            .with(u64::from(c.multi_rate))
            .with(u64::from(c.sample_feedback))
            .with(c.time_modulus.0)
            .with(c.byte_modulus)
            .with(c.rate_quantum);
        ModelId { name: "hpcc", version: 1, config: c.window.hash(config).finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds { telemetry: true, header_bytes: HEADER_BYTES }
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (HpccState, SendControl) {
        let register = Register { rate: flow.line_rate, utilisation: 1.0 };
        let state = HpccState {
            line: flow.line_rate,
            base_rtt: flow.base_rtt.max(Span(1)),
            bdp: flow.bdp.max(1),
            registers: [register; MAX_INT_HOPS],
            ..HpccState::zeroed()
        };
        (state, self.config.window.control(flow.bdp, flow.line_rate, flow.line_rate))
    }

    /// ns-3 `HandleAckHp`, `FastReactHp` and `UpdateRateHp`.
    fn on_ack(&self, state: &mut HpccState, ack: &Ack<'_>, out: &mut CcaOut) {
        let full = ack.acked > state.last_update;
        if !full && !self.config.fast_react {
            return;
        }
        // A path longer than the header says nothing of use.
        let hops = if ack.hop_count > MAX_INT_HOPS { &[] } else { ack.hops };
        if state.last_update == 0 {
            // The first round trip only records.
            state.last_update = ack.snd_nxt;
            state.known = hops.len() as u32;
            for (hop, seen) in hops.iter().zip(&mut state.seen) {
                *seen = Seen::of(hop);
            }
            return;
        }
        let rate = if self.config.multi_rate {
            self.multi_rate(state, hops, full)
        } else {
            self.single_rate(state, hops, full)
        };
        if let Some(rate) = rate {
            // ns-3 `ChangeRate`, on fast reactions too.
            out.control = self.config.window.control(state.bdp, rate, state.line);
            out.repace = true;
        }
        if full {
            state.last_update = state.last_update.max(ack.snd_nxt);
        }
    }

    fn on_timer(&self, _state: &mut HpccState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Nothing: the paper leaves losses to the transport.
    fn on_timeout(&self, _state: &mut HpccState, _now: SimTime, _out: &mut CcaOut) {}

    /// Without a `rate_quantum`, rates and estimates seldom come back to the very same bits.
    fn relative(&self, state: &HpccState, origin: &Origin<'_>) -> Option<HpccState> {
        if origin.hops.len() < state.known as usize {
            return None;
        }
        let last_update = distance(state.last_update, origin.acked);
        Some(HpccState { last_update, seen: self.measured(state, origin), ..*state })
    }

    fn absolute(&self, relative: &HpccState, origin: &Origin<'_>) -> HpccState {
        let last_update = position(relative.last_update, origin.acked);
        HpccState { last_update, seen: self.measured(relative, origin), ..*relative }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::{Ns3Telemetry, TIME_MODULUS_NS};
    use wormhole_kernel::telemetry::Telemetry as _;

    const FLOW: FlowFacts =
        FlowFacts { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_ns(4_160), bdp: 52_000, mtu: 1_000 };

    fn ack(acked: u64, snd_nxt: u64, hops: &[IntHop]) -> Ack<'_> {
        Ack { now: SimTime::ZERO, acked, snd_nxt, marked: false, rtt: Span::ZERO, hops, hop_count: hops.len() }
    }

    fn hop(ns: u64, tx_bytes: u64, queue: u64) -> IntHop {
        IntHop { at: SimTime::from_ns(ns), tx_bytes, rate: FLOW.line_rate, queue }
    }

    #[test]
    fn a_link_at_target_keeps_the_rate() {
        let model = Hpcc::new(HpccConfig { target: 1.0, additive: BitRate(0), ..HpccConfig::default() });
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(1_000, 50_000, &[hop(0, 0, 0)]), &mut out);
        assert!(!out.repace, "the first ACK only records");
        model.on_ack(&mut state, &ack(51_000, 100_000, &[hop(8_000, 100_000, 0)]), &mut out);
        assert_eq!((out.control.rate, out.repace), (FLOW.line_rate, true));
    }

    #[test]
    fn a_half_used_link_doubles_the_rate_after_max_stage() {
        let model = Hpcc::new(HpccConfig { target: 1.0, additive: BitRate(0), ..HpccConfig::default() });
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        state.registers[0].rate = BitRate::from_gbps(30);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(1_000, 50_000, &[hop(0, 0, 0)]), &mut out);
        model.on_ack(&mut state, &ack(51_000, 100_000, &[hop(8_000, 50_000, 0)]), &mut out);
        assert_eq!(out.control.rate, BitRate::from_gbps(60));
        assert_eq!(out.control.window, 52_000 * 60 / 100);
    }

    #[test]
    fn counters_that_wrap_are_no_surprise() {
        let config =
            HpccConfig { time_modulus: Span::from_ns(1 << 24), byte_modulus: 1 << 29, ..HpccConfig::default() };
        let model = Hpcc::new(config);
        assert_eq!(model.time_since(SimTime::from_ns(5), SimTime::from_ns((1 << 24) - 5)), Span::from_ns(10));
        assert_eq!(model.time_since(SimTime::from_ns((1 << 24) + 15), SimTime::from_ns(5)), Span::from_ns(10));
        assert_eq!(
            [(100, (1 << 29) - 50), (150, 100), (7, 7)].map(|(to, from)| model.bytes_since(to, from)),
            [150, 50, 0]
        );
        let model = Hpcc::new(HpccConfig::default());
        assert_eq!(model.time_since(SimTime(15), SimTime(5)), Span(10));
        assert_eq!([(15, 5), (5, 15)].map(|(to, from)| model.bytes_since(to, from)), [10, u64::MAX - 9]);
    }

    #[test]
    fn samples_count_by_their_time_up_to_a_round_trip() {
        let average = |rate_quantum, old, sample, tau| {
            Hpcc::new(HpccConfig { rate_quantum, ..HpccConfig::default() }).average(old, sample, tau, 4_000.0)
        };
        assert_eq!(average(0, 0.5, 0.75, 1_000.0), 0.5625);
        assert_eq!([4_000.0, 9_000.0].map(|tau| average(0, 0.5, 0.75, tau)), [0.75; 2]);
        let unit = 1.0 / 65_536.0;
        assert_eq!([0, 1].map(|quantum| average(quantum, 0.0, 0.0, 1_000.0)), [unit; 2]);
        let rounded = [0.4, 0.6].map(|units| average(1, 0.5 + units * unit, 0.5 + units * unit, 1_000.0));
        assert_eq!(rounded, [0.5, 0.5 + unit]);
    }

    /// Target 0.5: at 0.75 the rate is divided by 1.5, at 0.25 it would be doubled.
    #[test]
    fn rates_rise_by_a_step_twice_before_they_follow_the_utilisation() {
        let config = HpccConfig {
            target: 0.5,
            max_stage: 2,
            additive: BitRate(7),
            min_rate: BitRate(1_000),
            ..HpccConfig::default()
        };
        let next = |config, utilisation, stage| {
            let register = Register { rate: BitRate(30_000), utilisation };
            let (rate, stage) = Hpcc::new(config).next(&register, stage, BitRate(1_000_000));
            (rate.0, stage)
        };
        assert_eq!([0.75, 0.5].map(|u| next(config, u, 1)), [(20_007, 0), (30_007, 0)]);
        assert_eq!([0, 1, 2].map(|stage| next(config, 0.25, stage)), [(30_007, 1), (30_007, 2), (60_007, 0)]);
        assert_eq!([50.0, 0.0001].map(|u| next(config, u, 2)), [(1_000, 0), (1_000_000, 0)], "least and most");
        assert_eq!(next(HpccConfig { rate_quantum: 10, ..config }, 0.75, 0), (20_000, 0));
    }

    /// A flow that has one hop on record, seen at 1 us with 2,000 bytes sent and a queue of 300.
    fn with_a_record(config: HpccConfig) -> (Hpcc, HpccState) {
        let model = Hpcc::new(config);
        let (mut state, _) = model.start(&FLOW, SimTime::ZERO);
        (state.known, state.seen[0]) = (1, Seen::of(&hop(1_000, 2_000, 300)));
        (model, state)
    }

    /// 8,000 bytes in 2 us are 0.64 of 50 Gb/s; the smaller queue, of 200 bytes, is at the flow's 100 Gb/s 400 of the
    /// 52,000 that the bandwidth-delay product has.
    #[test]
    fn utilisation_is_what_was_sent_and_what_waits() {
        let (model, state) = with_a_record(HpccConfig::default());
        let rate = BitRate::from_gbps(50);
        let sample = |hop: IntHop| {
            let mut state = state;
            let sample = model.sample(&mut state, 0, &hop, true);
            assert_eq!((state.known, state.seen[0]), (1, Seen::of(&hop)), "it is on record now");
            sample.map(|sample| (sample.tau, (sample.utilisation * 1e9).round()))
        };
        assert_eq!(sample(IntHop { rate, ..hop(3_000, 10_000, 200) }), Some((2_000.0, 647_692_308.0)));
        assert_eq!(sample(IntHop { rate, ..hop(3_000, 10_000, 0) }), Some((2_000.0, 640_000_000.0)));
        assert_eq!(sample(IntHop { rate, ..hop(1_000, 10_000, 200) }), None, "no time");
        assert_eq!(sample(IntHop { rate: BitRate(0), ..hop(3_000, 10_000, 200) }), None, "no rate");
    }

    #[test]
    fn hops_without_a_record_are_recorded_first() {
        for sample_feedback in [false, true] {
            let (model, mut state) = with_a_record(HpccConfig { sample_feedback, ..HpccConfig::default() });
            assert!(model.sample(&mut state, 1, &hop(3_000, 10_000, 0), false).is_none());
            assert_eq!((state.known, state.seen[1]), (2, Seen::of(&hop(3_000, 10_000, 0))));
        }
    }

    #[test]
    fn only_feedback_between_round_trips_passes_over_hops_without_a_queue() {
        for (sample_feedback, full, queue) in
            [(false, false, 0), (false, true, 0), (true, true, 0), (true, false, 1), (true, false, 0)]
        {
            let (model, mut state) = with_a_record(HpccConfig { sample_feedback, ..HpccConfig::default() });
            let sample = model.sample(&mut state, 0, &hop(3_000, 10_000, queue), full);
            assert_eq!(sample.is_none(), (sample_feedback, full, queue) == (true, false, 0));
        }
    }

    /// Both hops carry 32 Gb/s of 100; the first has done so for 1 us of the round trip's 4.16, the second for 2.
    #[test]
    fn the_first_of_equally_utilised_hops_counts() {
        let (model, mut state) = with_a_record(HpccConfig::default());
        (state.known, state.seen[0], state.seen[1]) = (2, Seen::zeroed(), Seen::zeroed());
        model.single_rate(&mut state, &[hop(1_000, 4_000, 0), hop(2_000, 8_000, 0)], true);
        assert_eq!((state.registers[0].utilisation * 1e6).round(), 836_538.0);
        assert!(model.single_rate(&mut state, &[hop(1_000, 4_000, 0)], true).is_none(), "nothing new");
    }

    #[test]
    fn slow_reaction_waits_for_what_was_sent_at_the_last_one() {
        let model = Hpcc::new(HpccConfig { fast_react: false, ..HpccConfig::default() });
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let mut reacts = |acked, snd_nxt, hop| {
            let mut out = CcaOut::new(control);
            model.on_ack(&mut state, &ack(acked, snd_nxt, &[hop; MAX_INT_HOPS]), &mut out);
            (out.repace, state.last_update, state.known)
        };
        assert_eq!(reacts(1_000, 50_000, hop(0, 0, 0)), (false, 50_000, 5), "a path as long as the header");
        assert_eq!(reacts(50_000, 99_000, hop(4_000, 40_000, 0)), (false, 50_000, 5));
        assert_eq!(reacts(51_000, 100_000, hop(4_100, 41_000, 0)), (true, 100_000, 5));
    }

    #[test]
    fn multi_rate_takes_the_least_hop() {
        let config = HpccConfig { target: 1.0, multi_rate: true, additive: BitRate(0), ..HpccConfig::default() };
        let model = Hpcc::new(config);
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(1_000, 50_000, &[hop(0, 0, 0), hop(0, 0, 0)]), &mut out);
        let busy = [hop(8_000, 50_000, 0), hop(8_000, 100_000, 52_000)];
        model.on_ack(&mut state, &ack(51_000, 100_000, &busy), &mut out);
        assert_eq!(out.control.rate, FLOW.line_rate, "min(queue now, queue before) is 0");
        let busy = [hop(16_000, 100_000, 0), hop(16_000, 200_000, 52_000)];
        model.on_ack(&mut state, &ack(101_000, 150_000, &busy), &mut out);
        assert_eq!(out.control.rate, BitRate::from_gbps(50));
    }

    /// The first ACKs of two flows that start together over one port: telemetry and rates as logged by ns-3
    /// (reference run a1_dumbbell_sim_hpcc). Frame k leaves the switch 87 ns after frame k - 1, and leaves
    /// 1,090 more bytes behind: two frames come in for every one that goes.
    #[test]
    fn rates_equal_the_ack_log_of_ns3() {
        let header = Ns3Telemetry { multiplier: 4 };
        let config = HpccConfig {
            time_modulus: Span::from_ns(TIME_MODULUS_NS),
            byte_modulus: header.byte_modulus(),
            ..HpccConfig::default()
        };
        let model = Hpcc::new(config);
        let (start, control) = model.start(&FLOW, SimTime::ZERO);
        let mut flows = [(start, control); 2];
        let logged = [100_000_000_000, 100_000_000_000, 95282587280, 95135379919, 95260271567, 95045870076];
        for (k, rate) in logged.into_iter().enumerate() {
            let (left, frames) = (2_000_000_000 + 1_087 + 87 * k as u64, k as u64);
            let queue = if k == 0 { 0 } else { 1_090 * (frames + 1) };
            let hop = header.read(&header.record(&hop(left, 1_090 * frames, queue)));
            let (state, control) = &mut flows[k % 2];
            let mut out = CcaOut::new(*control);
            let snd_nxt = 49_000 + 1_000 * (frames / 2);
            model.on_ack(state, &ack(1_000 * (frames / 2 + 1), snd_nxt, &[hop]), &mut out);
            assert_eq!((out.control.rate.0, out.repace), (rate, k > 1));
            assert_eq!(out.control.window, 52_000 * rate / 100_000_000_000);
            *control = out.control;
        }
    }

    #[test]
    fn paths_longer_than_the_header_are_passed_over() {
        let model = Hpcc::new(HpccConfig::default());
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(1_000, 50_000, &[hop(0, 0, 0)]), &mut out);
        let hops = [hop(8_000, 100_000, 90_000); MAX_INT_HOPS];
        model.on_ack(&mut state, &Ack { hop_count: 6, ..ack(51_000, 100_000, &hops) }, &mut out);
        assert_eq!((out.control.rate, out.repace), (FLOW.line_rate, false));
    }

    #[test]
    fn estimates_stay_finite_and_positive() {
        for (multi_rate, rate_quantum) in [(false, 0), (true, 0), (false, 1_000_000), (true, 1_000_000)] {
            let model = Hpcc::new(HpccConfig { multi_rate, rate_quantum, ..HpccConfig::default() });
            let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
            let mut out = CcaOut::new(control);
            // No time, no bytes, an age, a counter that runs backwards.
            let records =
                [(0, 0, 0), (0, 500, 10), (9_000, 500, 0), (1 << 40, 500, 9), (1 << 41, 501, 0), (1 << 42, 0, 1)];
            for (i, (ns, bytes, queue)) in records.into_iter().enumerate() {
                let acked = 100_000 * (i as u64 + 1);
                model.on_ack(&mut state, &ack(acked, acked + 50_000, &[hop(ns, bytes, queue)]), &mut out);
                let utilisation = state.registers[0].utilisation;
                assert!(utilisation.is_finite() && utilisation > 0.0, "{utilisation} after record {i}");
                assert!(out.control.rate >= model.config.min_rate && out.control.rate <= FLOW.line_rate);
            }
        }
    }

    #[test]
    fn sample_feedback_reacts_fast_to_queues_only() {
        let config = HpccConfig { sample_feedback: true, ..HpccConfig::default() };
        let model = Hpcc::new(config);
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(1_000, 50_000, &[hop(0, 0, 0)]), &mut out);
        model.on_ack(&mut state, &ack(2_000, 51_000, &[hop(87, 1_090, 0)]), &mut out);
        assert!(!out.repace && state.seen[0].tx_bytes == 0, "no queue: neither reaction nor record");
        model.on_ack(&mut state, &ack(3_000, 52_000, &[hop(174, 2_180, 1)]), &mut out);
        assert!(out.repace && state.seen[0].tx_bytes == 2_180);
    }

    #[test]
    fn rate_registers_of_hardware_are_coarse() {
        let config = HpccConfig { rate_quantum: 1_000_000_000, additive: BitRate(0), ..HpccConfig::default() };
        let model = Hpcc::new(config);
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(1_000, 50_000, &[hop(0, 0, 0)]), &mut out);
        model.on_ack(&mut state, &ack(51_000, 100_000, &[hop(8_000, 100_000, 52_000)]), &mut out);
        // U is 1: the rate is 95 Gb/s, or rounded down from just below that.
        assert_eq!((state.registers[0].utilisation, out.control.rate.0 % 1_000_000_000), (1.0, 0));
        model.on_ack(&mut state, &ack(101_000, 150_000, &[hop(16_000, 199_999, 0)]), &mut out);
        assert_eq!(state.registers[0].utilisation, 65_535.0 / 65_536.0);
    }

    #[test]
    fn states_are_relative_to_all_hops_on_record() {
        let model = Hpcc::new(HpccConfig::default());
        let (mut state, control) = model.start(&FLOW, SimTime::ZERO);
        let hops = [hop(80, 7_000, 5), hop(90, 8_000, 0)];
        model.on_ack(&mut state, &ack(1_000, 50_000, &hops), &mut CcaOut::new(control));
        let later = [hop(180, 17_000, 0), hop(180, 8_000, 0)];
        let origin = Origin { now: SimTime::from_ns(180), acked: 1_000, hops: &later };
        let relative = model.relative(&state, &origin).map(|s| (s.last_update, s.seen[0], s.seen[1], s.seen[2]));
        let back = |ns, tx_bytes, queue| Seen { at: SimTime::from_ns(ns), tx_bytes, queue };
        assert_eq!(relative, Some((49_000, back(100, 10_000, 5), back(90, 0, 0), back(0, 0, 0))));
        assert!(model.relative(&state, &Origin { hops: &later[..1], ..origin }).is_none());
    }
}

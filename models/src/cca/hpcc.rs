//! HPCC (Li et al., SIGCOMM 2019): inflight control from per-hop telemetry, as ns-3 has it (`RdmaHw::UpdateRateHp`).
//!
//! Left out: PINT, the probabilistic telemetry (`CC_MODE 10`).

use super::{WindowRule, nanoseconds};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, IntHop, MAX_INT_HOPS, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, SimTime, Span};

/// Bytes of the INT header: five records of eight and two of its own (`IntHeader::GetStaticSize`).
const HEADER_BYTES: u32 = 42;

/// Parameters of [`Hpcc`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct HpccConfig {
    /// Target utilisation, eta (`U_TARGET`).
    pub target: f64,
    /// Additive increases before a multiplicative one, maxStage (`MI_THRESH`).
    pub max_stage: u32,
    /// Additive increase, W_AI as a rate (`RATE_AI`).
    pub additive: BitRate,
    /// Least rate (`MIN_RATE`).
    pub min_rate: BitRate,
    /// React to every ACK, not only once a round trip (`FAST_REACT`).
    pub fast_react: bool,
    /// A rate per hop, the flow's being the least (`MULTI_RATE`).
    pub multi_rate: bool,
    /// With `multi_rate`: between round trips react only to hops with a queue (`SAMPLE_FEEDBACK`).
    pub sample_feedback: bool,
    /// Window (`HAS_WIN`, `VAR_WIN`).
    pub window: WindowRule,
    /// Where the telemetry's clock wraps; 0: it does not.
    pub time_modulus: Span,
    /// Where the telemetry's byte counters wrap; 0: they do not.
    pub byte_modulus: u64,
    /// Granularity of rate registers in hardware, bit/s; 0: rates are as fine as they come. With it the utilisation
    /// estimate is kept in units of 2^-16.
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

/// Rate register, utilisation estimate and stage: one for the flow, or one per hop.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Register {
    /// Reference rate, W_c as a rate.
    rate: BitRate,
    /// Normalised inflight bytes, U.
    utilisation: f64,
    /// Additive increases since the last multiplicative one, incStage.
    stage: u64,
}

/// What HPCC keeps of a hop between ACKs.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Seen {
    at: SimTime,
    tx_bytes: u64,
    queue: u64,
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
    last_acked: u64,
    flow: Register,
    hops: [Register; MAX_INT_HOPS],
    seen: [Seen; MAX_INT_HOPS],
}

/// What one hop says of its utilisation.
struct Sample {
    /// Time since the last record, nanoseconds.
    tau: f64,
    utilisation: f64,
    queued: bool,
}

impl Hpcc {
    /// With these parameters.
    pub fn new(config: HpccConfig) -> Hpcc {
        Hpcc { config }
    }

    fn time_since(&self, now: SimTime, then: SimTime) -> Span {
        let span = now.0.wrapping_sub(then.0);
        match self.config.time_modulus.0 {
            0 => Span(span),
            modulus if now.0 >= then.0 => Span(span % modulus),
            modulus => Span(span.wrapping_add(modulus)),
        }
    }

    fn bytes_since(&self, now: u64, then: u64) -> u64 {
        let bytes = now.wrapping_sub(then);
        if self.config.byte_modulus != 0 && now < then { bytes.wrapping_add(self.config.byte_modulus) } else { bytes }
    }

    /// The hop's inflight bytes over its capacity (paper, eq. 2), and its record kept. `None` if no time has passed.
    fn sample(&self, state: &HpccState, seen: &mut Seen, hop: &IntHop) -> Option<Sample> {
        let tau = nanoseconds(self.time_since(hop.at, seen.at));
        let bytes = self.bytes_since(hop.tx_bytes, seen.tx_bytes);
        let queue = hop.queue.min(seen.queue);
        *seen = Seen { at: hop.at, tx_bytes: hop.tx_bytes, queue: hop.queue };
        if tau == 0.0 {
            return None;
        }
        let duration = tau * 1e-9;
        let tx_rate = bytes.wrapping_mul(8) as f64 / duration;
        let line = hop.rate.0 as f64;
        let utilisation = tx_rate / line + queue as f64 * state.line.0 as f64 / line / state.bdp as f64;
        Some(Sample { tau, utilisation, queued: hop.queue > 0 })
    }

    /// The moving average over a round trip (paper, algorithm 1, line 9).
    fn average(&self, old: f64, sample: f64, tau: f64, base_rtt: f64) -> f64 {
        let tau = if tau > base_rtt { base_rtt } else { tau };
        let average = (old * (base_rtt - tau) + sample * tau) / base_rtt;
        if self.config.rate_quantum == 0 {
            return average;
        }
        const UNITS: f64 = 65_536.0;
        (average * UNITS) as u64 as f64 / UNITS
    }

    /// The next rate and stage (paper, algorithm 1, lines 11 to 18).
    fn next(&self, register: &Register, line: BitRate) -> (BitRate, u64) {
        let c = &self.config;
        let excess = register.utilisation / c.target;
        let (rate, stage) = if excess >= 1.0 || register.stage >= c.max_stage as u64 {
            (BitRate((register.rate.0 as f64 / excess) as u64).0.saturating_add(c.additive.0), 0)
        } else {
            (register.rate.0 + c.additive.0, register.stage + 1)
        };
        let rate = match c.rate_quantum {
            0 => rate,
            quantum => rate - rate % quantum,
        };
        (BitRate(rate.clamp(c.min_rate.0.min(line.0), line.0)), stage)
    }

    /// One rate for the flow, from its most utilised hop.
    fn single_rate(&self, state: &mut HpccState, hops: &[IntHop], full: bool) -> Option<BitRate> {
        let (mut most, mut tau) = (0.0, 0.0);
        let mut seen = state.seen;
        for (hop, seen) in hops.iter().zip(&mut seen) {
            if let Some(sample) = self.sample(state, seen, hop) {
                if sample.utilisation > most {
                    (most, tau) = (sample.utilisation, sample.tau);
                }
            }
        }
        state.seen = seen;
        let base_rtt = nanoseconds(state.base_rtt);
        state.flow.utilisation = self.average(state.flow.utilisation, most, tau, base_rtt);
        let (rate, stage) = self.next(&state.flow, state.line);
        if full {
            state.flow.rate = rate;
            state.flow.stage = stage;
        }
        Some(rate)
    }

    /// A rate for each hop, the least of which counts.
    fn multi_rate(&self, state: &mut HpccState, hops: &[IntHop], full: bool) -> Option<BitRate> {
        let base_rtt = nanoseconds(state.base_rtt);
        let (mut seen, mut registers) = (state.seen, state.hops);
        let mut least = None;
        for ((hop, seen), register) in hops.iter().zip(&mut seen).zip(&mut registers) {
            let Some(sample) = self.sample(state, seen, hop) else { continue };
            register.utilisation = self.average(register.utilisation, sample.utilisation, sample.tau, base_rtt);
            if !full && self.config.sample_feedback && !sample.queued {
                continue;
            }
            let (rate, stage) = self.next(register, state.line);
            if full {
                register.rate = rate;
                register.stage = stage;
            }
            least = Some(least.map_or(rate, |l: BitRate| l.min(rate)));
        }
        state.seen = seen;
        state.hops = registers;
        least
    }
}

impl CongestionControl for Hpcc {
    type State = HpccState;

    fn id(&self) -> ModelId {
        let c = &self.config;
        let config = ConfigHash::new()
            .with(c.target.to_bits())
            .with(c.max_stage as u64)
            .with(c.additive.0)
            .with(c.min_rate.0)
            .with(c.fast_react as u64)
            .with(c.multi_rate as u64)
            .with(c.sample_feedback as u64)
            .with(c.time_modulus.0)
            .with(c.byte_modulus)
            .with(c.rate_quantum);
        ModelId { name: "hpcc", version: 1, config: c.window.hash(config).finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds { telemetry: true, header_bytes: HEADER_BYTES }
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (HpccState, SendControl) {
        let register = Register { rate: flow.line_rate, utilisation: 1.0, stage: 0 };
        let state = HpccState {
            line: flow.line_rate,
            base_rtt: flow.base_rtt,
            bdp: flow.bdp,
            flow: register,
            hops: [register; MAX_INT_HOPS],
            ..HpccState::zeroed()
        };
        (state, self.config.window.control(flow.bdp, flow.line_rate, flow.line_rate))
    }

    fn on_ack(&self, state: &mut HpccState, ack: &Ack<'_>, out: &mut CcaOut) {
        let full = ack.acked > state.last_update;
        state.last_acked = ack.acked;
        if !full && !self.config.fast_react {
            return;
        }
        if ack.hop_count > MAX_INT_HOPS {
            return;
        }
        if state.last_update == 0 {
            // The first round trip only records.
            state.last_update = ack.snd_nxt;
            for (hop, seen) in ack.hops.iter().zip(&mut state.seen) {
                *seen = Seen { at: hop.at, tx_bytes: hop.tx_bytes, queue: hop.queue };
            }
            return;
        }
        let rate = if self.config.multi_rate {
            self.multi_rate(state, ack.hops, full)
        } else {
            self.single_rate(state, ack.hops, full)
        };
        if full {
            state.last_update = state.last_update.max(ack.snd_nxt);
        }
        if let Some(rate) = rate {
            out.control = self.config.window.control(state.bdp, rate, state.line);
            out.repace = true;
        }
    }

    fn on_timer(&self, _state: &mut HpccState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Nothing: the paper leaves losses to the transport.
    fn on_timeout(&self, _state: &mut HpccState, _now: SimTime, _out: &mut CcaOut) {}

    fn rebase(&self, state: &mut HpccState, by: Span) {
        let modulus = self.config.time_modulus.0;
        for seen in &mut state.seen {
            let at = seen.at.0.wrapping_add(by.0);
            seen.at = SimTime(if modulus == 0 { at } else { at % modulus });
        }
    }

    fn fingerprint(&self, state: &HpccState, now: SimTime) -> Option<u64> {
        let mut hash = ConfigHash::new()
            .with(state.line.0)
            .with(state.base_rtt.0)
            .with(state.bdp)
            .with((state.last_update == 0) as u64)
            .with(state.last_update.wrapping_sub(state.last_acked));
        for register in core::iter::once(&state.flow).chain(&state.hops) {
            hash = hash.with(register.rate.0).with(register.utilisation.to_bits()).with(register.stage);
        }
        for seen in &state.seen {
            hash = hash.with(now.0.wrapping_sub(seen.at.0)).with(seen.tx_bytes).with(seen.queue);
        }
        Some(hash.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        state.flow.rate = BitRate::from_gbps(30);
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
        assert_eq!(model.bytes_since(100, (1 << 29) - 50), 150);
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
}

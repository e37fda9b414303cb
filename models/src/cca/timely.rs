//! TIMELY (Mittal et al., SIGCOMM 2015): rate control from the gradient of the round-trip time, as ns-3 has it
//! (`RdmaHw::UpdateRateTimely`): once a round trip, with hyper-active increase after five increases in a row.

use super::{WindowRule, nanoseconds, scaled};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, SendControl};
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
    last_update: u64,
    last_acked: u64,
    last_rtt: Span,
    /// Smoothed difference of round-trip times, nanoseconds.
    difference: f64,
    increases: u64,
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
        state.last_acked = state.last_acked.max(ack.acked);
        // Once a round trip.
        if ack.acked <= state.last_update {
            return;
        }
        let c = &self.config;
        if state.last_update != 0 {
            // Paper, algorithm 1: new_rtt_diff, rtt_diff, normalized_gradient.
            let newest = Timely::difference(ack.rtt, state.last_rtt);
            state.difference = (1.0 - c.alpha) * state.difference + c.alpha * newest;
            let gradient = state.difference / nanoseconds(c.min_rtt);
            match self.verdict(ack.rtt, gradient) {
                None => {
                    let step = if state.increases < HYPER_AFTER { c.additive } else { c.hyper };
                    state.rate = BitRate(state.rate.0.saturating_add(step.0).min(state.line.0));
                    state.increases += 1;
                }
                Some(factor) => {
                    state.rate = scaled(state.rate, factor).max(c.min_rate);
                    state.increases = 0;
                }
            }
            out.control = c.window.control(state.bdp, state.rate, state.line);
        }
        if ack.snd_nxt > state.last_update {
            state.last_update = ack.snd_nxt;
            state.last_rtt = ack.rtt;
        }
    }

    fn on_timer(&self, _state: &mut TimelyState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Nothing: TIMELY knows only delay; losses are the transport's.
    fn on_timeout(&self, _state: &mut TimelyState, _now: SimTime, _out: &mut CcaOut) {}

    fn rebase(&self, _state: &mut TimelyState, _by: Span) {}

    fn fingerprint(&self, state: &TimelyState, _now: SimTime) -> Option<u64> {
        let hash = ConfigHash::new()
            .with(state.line.0)
            .with(state.bdp)
            .with(state.rate.0)
            .with(u64::from(state.last_update == 0))
            .with(state.last_update.wrapping_sub(state.last_acked))
            .with(state.last_rtt.0)
            .with(state.difference.to_bits())
            .with(state.increases.min(HYPER_AFTER));
        Some(hash.finish())
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
    }
}

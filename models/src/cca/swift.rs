//! Swift (Kumar et al., SIGCOMM 2020): a window driven by delay against a target.
//!
//! The target is the empty round trip plus a margin, raised for small windows (flow scaling, section 3.5); the round
//! trip of the empty path already holds the hops (topology scaling). Below one packet the window becomes a pacing
//! rate. Left out: the split into fabric and endpoint windows (hosts take no time here) and retransmission by SACK.

use super::nanoseconds;
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, PS_PER_S, SimTime, Span};

/// Bytes of the time stamp.
const HEADER_BYTES: u32 = 8;

/// Parameters of [`Swift`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SwiftConfig {
    /// Queueing delay aimed at, beyond the empty round trip.
    pub margin: Span,
    /// Packets added per round trip, ai.
    pub additive: f64,
    /// Strength of decreases, beta.
    pub beta: f64,
    /// Largest share a decrease takes, max_mdf.
    pub max_decrease: f64,
    /// Range of the flow-scaling term, fs_range.
    pub scaling_range: Span,
    /// Window (packets) from which flow scaling adds nothing, fs_max_cwnd.
    pub scaling_max: f64,
    /// Window (packets) below which it adds all of its range, fs_min_cwnd.
    pub scaling_min: f64,
    /// Least window, packets.
    pub min_window: f64,
}

impl Default for SwiftConfig {
    /// A margin of 10 us, and the paper's scaling range of five times that.
    fn default() -> SwiftConfig {
        SwiftConfig {
            margin: Span::from_us(10),
            additive: 1.0,
            beta: 0.8,
            max_decrease: 0.5,
            scaling_range: Span::from_us(50),
            scaling_max: 100.0,
            scaling_min: 0.1,
            min_window: 0.001,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Swift {
    config: SwiftConfig,
}

/// A flow's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct SwiftState {
    line: BitRate,
    base_rtt: Span,
    /// Packets of the bandwidth-delay product: the window never needs more than a few of these.
    max_window: f64,
    mtu: u64,
    /// Congestion window, packets.
    window: f64,
    /// When the window was last cut.
    last_cut: SimTime,
    cut_before: u64,
    last_acked: u64,
}

impl Swift {
    /// With these parameters.
    pub fn new(config: SwiftConfig) -> Swift {
        Swift { config }
    }

    /// Target delay in nanoseconds (section 3.5: base + min(range, max(0, alpha / sqrt(cwnd) + beta))).
    fn target(&self, state: &SwiftState) -> f64 {
        let c = &self.config;
        let inverse_root = |window: f64| 1.0 / libm::sqrt(window);
        let range = nanoseconds(c.scaling_range);
        let slope = range / (inverse_root(c.scaling_min) - inverse_root(c.scaling_max));
        let scaling = slope * (inverse_root(state.window) - inverse_root(c.scaling_max));
        let scaling = if scaling < 0.0 { 0.0 } else { scaling };
        nanoseconds(state.base_rtt + c.margin) + if scaling > range { range } else { scaling }
    }

    fn may_cut(state: &SwiftState, now: SimTime, rtt: Span) -> bool {
        state.cut_before == 0 || now.since(state.last_cut) >= rtt
    }

    fn cut(&self, state: &mut SwiftState, now: SimTime, factor: f64) {
        state.window *= factor;
        state.last_cut = now;
        state.cut_before = 1;
    }

    fn control(&self, state: &mut SwiftState) -> SendControl {
        let c = &self.config;
        state.window = state.window.clamp(c.min_window, state.max_window);
        let window = if state.window < 1.0 { state.mtu } else { (state.window * state.mtu as f64) as u64 };
        if state.window >= 1.0 {
            return SendControl { window: window.max(1), rate: state.line };
        }
        // Section 3.4: less than a packet a round trip is paced.
        let bits = state.window * state.mtu as f64 * 8.0;
        let rate = (bits * PS_PER_S as f64 / state.base_rtt.0.max(1) as f64) as u64;
        SendControl { window, rate: BitRate(rate.clamp(1, state.line.0)) }
    }
}

impl CongestionControl for Swift {
    type State = SwiftState;

    fn id(&self) -> ModelId {
        let c = &self.config;
        let config = ConfigHash::new()
            .with(c.margin.0)
            .with(c.additive.to_bits())
            .with(c.beta.to_bits())
            .with(c.max_decrease.to_bits())
            .with(c.scaling_range.0)
            .with(c.scaling_max.to_bits())
            .with(c.scaling_min.to_bits())
            .with(c.min_window.to_bits());
        ModelId { name: "swift", version: 1, config: config.finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds { telemetry: false, header_bytes: HEADER_BYTES }
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (SwiftState, SendControl) {
        let pipe = flow.bdp as f64 / flow.mtu as f64;
        let pipe = if pipe < 1.0 { 1.0 } else { pipe };
        let mut state = SwiftState {
            line: flow.line_rate,
            base_rtt: flow.base_rtt,
            // The margin's queue fits on top of the pipe.
            max_window: pipe * (1.0 + nanoseconds(self.config.margin) / nanoseconds(flow.base_rtt)) + 1.0,
            mtu: flow.mtu as u64,
            window: pipe,
            ..SwiftState::zeroed()
        };
        let control = self.control(&mut state);
        (state, control)
    }

    fn on_ack(&self, state: &mut SwiftState, ack: &Ack<'_>, out: &mut CcaOut) {
        let c = &self.config;
        let newly = ack.acked.saturating_sub(state.last_acked) as f64 / state.mtu as f64;
        state.last_acked = state.last_acked.max(ack.acked);
        let (delay, target) = (nanoseconds(ack.rtt), self.target(state));
        if delay < target {
            // Algorithm 1: ai per round trip, however large the window.
            state.window += if state.window >= 1.0 { c.additive / state.window * newly } else { c.additive * newly };
        } else if Swift::may_cut(state, ack.now, ack.rtt) {
            let factor = 1.0 - c.beta * (delay - target) / delay;
            let floor = 1.0 - c.max_decrease;
            self.cut(state, ack.now, if factor < floor { floor } else { factor });
        }
        out.control = self.control(state);
    }

    fn on_timer(&self, _state: &mut SwiftState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Algorithm 1: a time-out cuts by the largest share, at most once a round trip.
    fn on_timeout(&self, state: &mut SwiftState, now: SimTime, out: &mut CcaOut) {
        if Swift::may_cut(state, now, state.base_rtt) {
            self.cut(state, now, 1.0 - self.config.max_decrease);
        }
        out.control = self.control(state);
    }

    fn rebase(&self, state: &mut SwiftState, by: Span) {
        state.last_cut += by;
    }

    fn fingerprint(&self, state: &SwiftState, now: SimTime) -> Option<u64> {
        let since_cut = if state.cut_before != 0 { now.since(state.last_cut).0 } else { u64::MAX };
        let hash = ConfigHash::new()
            .with(state.line.0)
            .with(state.base_rtt.0)
            .with(state.mtu)
            .with(state.max_window.to_bits())
            .with(state.window.to_bits())
            .with(since_cut);
        Some(hash.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> FlowFacts {
        FlowFacts { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_us(8), bdp: 100_000, mtu: 1_000 }
    }

    fn ack(us: u64, acked: u64, rtt_us: u64) -> Ack<'static> {
        let now = SimTime(us * 1_000_000);
        let rtt = Span::from_us(rtt_us);
        Ack { now, acked, snd_nxt: acked + 1_000, marked: false, rtt, hops: &[], hop_count: 0 }
    }

    #[test]
    fn delay_above_target_cuts_once_a_round_trip() {
        let model = Swift::new(SwiftConfig::default());
        let (mut state, control) = model.start(&flow(), SimTime::ZERO);
        assert_eq!(control.window, 100_000);
        let mut out = CcaOut::new(control);
        // The window of 100 packets has no scaling: the target is 18 us, twice that is 1 - 0.8 / 2.
        model.on_ack(&mut state, &ack(36, 1_000, 36), &mut out);
        assert_eq!(out.control.window, 60_000);
        model.on_ack(&mut state, &ack(37, 2_000, 36), &mut out);
        assert_eq!(out.control.window, 60_000);
        model.on_ack(&mut state, &ack(72, 3_000, 100_000), &mut out);
        assert_eq!(out.control.window, 60_000, "a round trip has not passed since the cut");
    }

    #[test]
    fn a_window_below_one_packet_is_paced() {
        let model = Swift::new(SwiftConfig::default());
        let (mut state, control) = model.start(&flow(), SimTime::ZERO);
        state.window = 0.5;
        let mut out = CcaOut::new(control);
        model.on_timeout(&mut state, SimTime::ZERO, &mut out);
        // A quarter of a packet of 8,000 bits every 8 us.
        assert_eq!((out.control.window, out.control.rate), (1_000, BitRate(250_000_000)));
    }
}

//! Swift (Kumar et al., SIGCOMM 2020): a window driven by delay against a target.
//!
//! The target is the empty round trip plus a margin, raised for small windows (flow scaling, section 3.5); the round
//! trip of the empty path stands for the hop count of topology scaling. Below one packet the window becomes a pacing
//! rate. Left out: the endpoint window (hosts take no time here), fast recovery (losses show as time-outs only), and
//! the fall to the least window after several time-outs in a row. Flows begin with a full pipe.

use super::nanoseconds;
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, PS_PER_S, SimTime, Span};

/// Bytes of the time stamp.
const HEADER_BYTES: u32 = 8;
/// A cut so long ago never holds back the next one.
const LONG_AGO: Span = Span(PS_PER_S);

/// Parameters of [`Swift`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct SwiftConfig {
    /// Queueing delay aimed at, beyond the empty round trip.
    pub margin: Span,
    /// Packets added per round trip, ai. At least 0.
    pub additive: f64,
    /// Strength of decreases, beta, a share of 1.
    pub beta: f64,
    /// Largest share of the window a decrease takes, max_mdf; below 1.
    pub max_decrease: f64,
    /// Range of the flow-scaling term, fs_range.
    pub scaling_range: Span,
    /// Window (packets) from which flow scaling adds nothing, fs_max_cwnd.
    pub scaling_max: f64,
    /// Window (packets) below which it adds all of its range, fs_min_cwnd. Above 0, below `scaling_max`.
    pub scaling_min: f64,
    /// Least window, packets. Above 0, at most 1.
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

/// Time since `then`, which a state that was set up anew may have before the simulation began.
fn since(now: SimTime, then: SimTime) -> Span {
    Span(now.0.wrapping_sub(then.0))
}

fn inverse_root(window: f64) -> f64 {
    1.0 / libm::sqrt(window)
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Swift {
    config: SwiftConfig,
    /// alpha of flow scaling, nanoseconds.
    slope: f64,
    /// 1 / sqrt(fs_max_cwnd).
    offset: f64,
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
    /// The newest round-trip time.
    rtt: Span,
    /// When the window was last cut, if it was.
    last_cut: SimTime,
    cut_before: u64,
    last_acked: u64,
}

impl Swift {
    /// With these parameters.
    pub fn new(config: SwiftConfig) -> Swift {
        // Section 3.5: alpha = fs_range / (1 / sqrt(fs_min_cwnd) - 1 / sqrt(fs_max_cwnd)).
        let offset = inverse_root(config.scaling_max);
        let slope = nanoseconds(config.scaling_range) / (inverse_root(config.scaling_min) - offset);
        Swift { config, slope, offset }
    }

    /// Target delay in nanoseconds (section 3.5: base + max(0, min(alpha / sqrt(cwnd) + beta, fs_range)), where beta
    /// is -alpha / sqrt(fs_max_cwnd)).
    fn target(&self, state: &SwiftState) -> f64 {
        let range = nanoseconds(self.config.scaling_range);
        let scaling = self.slope * (inverse_root(state.window) - self.offset);
        let scaling = if scaling > 0.0 { scaling } else { 0.0 };
        nanoseconds(state.base_rtt + self.config.margin) + if scaling > range { range } else { scaling }
    }

    /// Algorithm 1, can_decrease: at most once a round trip.
    fn may_cut(state: &SwiftState, now: SimTime) -> bool {
        state.cut_before == 0 || since(now, state.last_cut) >= state.rtt.min(LONG_AGO)
    }

    fn cut(&self, state: &mut SwiftState, now: SimTime, factor: f64) {
        state.window *= factor;
        state.last_cut = now;
        state.cut_before = 1;
    }

    /// Algorithm 1, the end: bounds of the window, and pacing below one packet.
    fn control(&self, state: &mut SwiftState) -> SendControl {
        let least = self.config.min_window;
        if state.window > state.max_window {
            state.window = state.max_window;
        }
        if state.window < least {
            state.window = least;
        }
        if state.window >= 1.0 {
            let window = (state.window * state.mtu as f64) as u64;
            return SendControl { window: window.max(1), rate: state.line };
        }
        // pacing_delay = rtt / cwnd: so many bits in a round trip.
        let bits = state.window * state.mtu as f64 * 8.0;
        let rate = (bits * PS_PER_S as f64 / state.rtt.0 as f64) as u64;
        SendControl { window: state.mtu, rate: BitRate(rate.min(state.line.0).max(1)) }
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
        let (mtu, base_rtt) = (flow.mtu.max(1), flow.base_rtt.max(Span(1)));
        let pipe = flow.bdp as f64 / f64::from(mtu);
        let pipe = if pipe < 1.0 { 1.0 } else { pipe };
        let mut state = SwiftState {
            line: flow.line_rate,
            base_rtt,
            rtt: base_rtt,
            // The margin's queue fits on top of the pipe.
            max_window: pipe * (1.0 + nanoseconds(self.config.margin) / nanoseconds(base_rtt)) + 1.0,
            mtu: u64::from(mtu),
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
        state.rtt = ack.rtt.max(Span(1));
        let (delay, target) = (nanoseconds(state.rtt), self.target(state));
        if delay < target {
            // Algorithm 1: ai per round trip, however large the window.
            state.window += if state.window >= 1.0 { c.additive / state.window * newly } else { c.additive * newly };
        } else if Swift::may_cut(state, ack.now) {
            // cwnd * max(1 - beta * (delay - target) / delay, 1 - max_mdf).
            let factor = 1.0 - c.beta * (delay - target) / delay;
            let floor = 1.0 - c.max_decrease;
            self.cut(state, ack.now, if factor < floor { floor } else { factor });
        }
        out.control = self.control(state);
    }

    fn on_timer(&self, _state: &mut SwiftState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Algorithm 1: a time-out cuts by the largest share, at most once a round trip.
    fn on_timeout(&self, state: &mut SwiftState, now: SimTime, out: &mut CcaOut) {
        if Swift::may_cut(state, now) {
            self.cut(state, now, 1.0 - self.config.max_decrease);
        }
        out.control = self.control(state);
    }

    fn relative(&self, state: &SwiftState, origin: &Origin<'_>) -> Option<SwiftState> {
        let last_acked = state.last_acked.wrapping_sub(origin.acked);
        let since_cut = since(origin.now, state.last_cut);
        if state.cut_before == 0 || since_cut >= LONG_AGO {
            return Some(SwiftState { last_acked, last_cut: SimTime::ZERO, cut_before: 0, ..*state });
        }
        Some(SwiftState { last_acked, last_cut: SimTime(since_cut.0), ..*state })
    }

    fn absolute(&self, relative: &SwiftState, origin: &Origin<'_>) -> SwiftState {
        let last_acked = relative.last_acked.wrapping_add(origin.acked);
        let cut_at = SimTime(since(origin.now, relative.last_cut).0);
        let last_cut = if relative.cut_before != 0 { cut_at } else { SimTime::ZERO };
        SwiftState { last_acked, last_cut, ..*relative }
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

    #[test]
    fn delay_below_target_adds_a_packet_a_round_trip() {
        let model = Swift::new(SwiftConfig { additive: 0.5, ..SwiftConfig::default() });
        let (mut state, control) = model.start(&flow(), SimTime::ZERO);
        let mut out = CcaOut::new(control);
        state.window = 50.0;
        model.on_ack(&mut state, &ack(10, 25_000, 10), &mut out);
        assert_eq!(state.window, 50.0 + 0.5 / 50.0 * 25.0);
        state.window = 0.5;
        model.on_ack(&mut state, &ack(20, 26_000, 10), &mut out);
        assert_eq!(state.window, 1.0, "below one packet: ai per packet");
    }

    #[test]
    fn small_windows_have_longer_targets() {
        let model = Swift::new(SwiftConfig::default());
        let (mut state, _) = model.start(&flow(), SimTime::ZERO);
        let mut target = |window| {
            state.window = window;
            model.target(&state)
        };
        assert_eq!([target(1_000.0), target(100.0)], [18_000.0, 18_000.0]);
        assert_eq!([target(0.1), target(0.001)], [68_000.0, 68_000.0]);
        assert!(target(1.0) > target(2.0) && target(2.0) > target(99.0));
    }

    /// alpha is 50 us / (1 / sqrt(0.25) - 1 / sqrt(100)) = 26,315.8 ns.
    #[test]
    fn flow_scaling_goes_with_the_inverse_root_of_the_window() {
        let model = Swift::new(SwiftConfig { scaling_min: 0.25, ..SwiftConfig::default() });
        let (mut state, _) = model.start(&flow(), SimTime::ZERO);
        let mut target = |window| {
            state.window = window;
            model.target(&state).round()
        };
        assert_eq!([1.0, 4.0, 25.0].map(&mut target), [18_000.0 + 23_684.0, 18_000.0 + 10_526.0, 18_000.0 + 2_632.0]);
    }

    #[test]
    fn windows_are_those_of_the_pipe_and_the_margin_at_most() {
        let model = Swift::new(SwiftConfig::default());
        let (mut state, _) = model.start(&flow(), SimTime::ZERO);
        assert_eq!((state.window, state.max_window), (100.0, 100.0 * (1.0 + 10.0 / 8.0) + 1.0));
        state.window = 300.0;
        assert_eq!(model.control(&mut state), SendControl { window: 226_000, rate: flow().line_rate });
        assert_eq!(state.window, 226.0);
        state.window = 0.000_1;
        // A thousandth of 8,000 bits every 8 us.
        assert_eq!(model.control(&mut state), SendControl { window: 1_000, rate: BitRate(1_000_000) });
        assert_eq!(state.window, 0.001);
        (state.window, state.rtt) = (0.5, Span::from_ns(10));
        assert_eq!(model.control(&mut state), SendControl { window: 1_000, rate: flow().line_rate });

        let (state, _) = model.start(&FlowFacts { bdp: 500, ..flow() }, SimTime::ZERO);
        assert_eq!((state.window, state.max_window), (1.0, 3.25), "a packet at least");
    }

    #[test]
    fn delay_at_target_neither_adds_nor_takes() {
        let model = Swift::new(SwiftConfig::default());
        let (mut state, control) = model.start(&flow(), SimTime::ZERO);
        model.on_ack(&mut state, &ack(18, 1_000, 18), &mut CcaOut::new(control));
        assert_eq!((state.window, state.cut_before, state.last_acked), (100.0, 1, 1_000));
    }

    #[test]
    fn the_largest_share_is_taken_at_most_and_at_time_outs() {
        let model = Swift::new(SwiftConfig { max_decrease: 0.25, ..SwiftConfig::default() });
        let (mut state, control) = model.start(&flow(), SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &ack(360, 1_000, 360), &mut out);
        assert_eq!(out.control.window, 75_000);
        for (us, window) in [(719, 75_000), (720, 56_250), (721, 56_250)] {
            model.on_timeout(&mut state, SimTime(us * 1_000_000), &mut out);
            assert_eq!(out.control.window, window, "at {us} us");
        }
    }

    #[test]
    fn cuts_move_with_their_flow() {
        let model = Swift::new(SwiftConfig::default());
        let (mut state, _) = model.start(&flow(), SimTime::ZERO);
        state.rtt = LONG_AGO;
        let cut_at = SimTime::from_ns(5_000_000_000);
        model.cut(&mut state, cut_at, 0.5);
        let origin = |now| Origin { now, acked: 0, hops: &[] };
        // To before the cut, even to where the cut was before the simulation began.
        for (age, start) in [(0, 0), (1, 0), (LONG_AGO.0 - 1, 0), (LONG_AGO.0 - 1, 7_000_000_000_000)] {
            let relative = model.relative(&state, &origin(cut_at + Span(age))).expect("Swift always has one");
            let moved = model.absolute(&relative, &origin(SimTime(start)));
            assert!(!Swift::may_cut(&moved, SimTime(start + LONG_AGO.0 - age - 1)), "{age} from {start}");
            assert!(Swift::may_cut(&moved, SimTime(start + LONG_AGO.0 - age)), "{age} from {start}");
        }
        let relative = model.relative(&state, &origin(cut_at + LONG_AGO)).expect("Swift always has one");
        assert_eq!((relative.cut_before, relative.last_cut), (0, SimTime::ZERO), "as if never cut");
    }
}

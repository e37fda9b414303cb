//! DCQCN (Zhu et al., SIGCOMM 2015) as Mellanox NICs and ns-3 have it (`RdmaHw::cnp_received_mlx` and its timers).
//!
//! Left out: the byte counter; increases are timed only. Marks come with ACKs, not in packets of their own.
//!
//! ns-3 takes the three intervals in whole microseconds; a configuration for it must round them down to that.

use super::{WindowRule, scaled};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, SimTime, Span};

/// The timers.
const ALPHA: usize = 0;
const DECREASE: usize = 1;
const INCREASE: usize = 2;

/// Parameters of [`Dcqcn`].
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct DcqcnConfig {
    /// Gain of the estimate of congestion (`EWMA_GAIN`).
    pub gain: f64,
    /// Between updates of that estimate (`ALPHA_RESUME_INTERVAL`).
    pub alpha_interval: Span,
    /// Least time between two decreases (`RATE_DECREASE_INTERVAL`).
    pub decrease_interval: Span,
    /// Between increases (`RP_TIMER`).
    pub increase_interval: Span,
    /// Increases towards the target before the target grows (`FAST_RECOVERY_TIMES`).
    pub fast_recovery: u32,
    /// Growth of the target in the stage after that (`RATE_AI`).
    pub additive: BitRate,
    /// Growth in later stages (`RATE_HAI`).
    pub hyper: BitRate,
    /// Least rate (`MIN_RATE`).
    pub min_rate: BitRate,
    /// Lower the target with every decrease (`CLAMP_TARGET_RATE`).
    pub clamp_target: bool,
    /// Window (`HAS_WIN`, `VAR_WIN`).
    pub window: WindowRule,
}

impl Default for DcqcnConfig {
    /// The reference runs': g 1/256; 1, 4 and 300 us; 20 and 200 Mb/s; at least 1 Gb/s; no window.
    fn default() -> DcqcnConfig {
        DcqcnConfig {
            gain: 0.00390625,
            alpha_interval: Span::from_us(1),
            decrease_interval: Span::from_us(4),
            increase_interval: Span::from_us(300),
            fast_recovery: 1,
            additive: BitRate(20_000_000),
            hyper: BitRate(200_000_000),
            min_rate: BitRate::from_gbps(1),
            clamp_target: false,
            window: WindowRule::Unlimited,
        }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Dcqcn {
    config: DcqcnConfig,
}

/// A flow's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct DcqcnState {
    line: BitRate,
    bdp: u64,
    /// Where increases lead to.
    target: BitRate,
    alpha: f64,
    /// Increases since the last decrease, up to the first hyper one: all after that are alike.
    stage: u32,
    /// A mark has been seen at all.
    started: u8,
    /// A mark has been seen since the last update of alpha.
    marked_for_alpha: u8,
    /// A mark has been seen since the last chance to decrease.
    marked_for_decrease: u8,
    pad: u8,
}

impl Dcqcn {
    /// With these parameters.
    pub fn new(config: DcqcnConfig) -> Dcqcn {
        Dcqcn { config }
    }

    /// ns-3 `cnp_received_mlx`; the first mark only starts the timers (`RateOnFirstCnp` is 1).
    fn on_mark(&self, state: &mut DcqcnState, out: &mut CcaOut) {
        state.marked_for_alpha = 1;
        state.marked_for_decrease = 1;
        if state.started != 0 {
            return;
        }
        state.started = 1;
        state.alpha = 1.0;
        state.marked_for_alpha = 0;
        out.timers[ALPHA] = Some(self.config.alpha_interval);
        // One nanosecond after the update of alpha due in the same microsecond (ns-3 `ScheduleDecreaseRateMlx`).
        out.timers[DECREASE] = Some(self.config.decrease_interval + Span::from_ns(1));
        state.target = out.control.rate;
    }

    /// ns-3 `UpdateAlphaMlx`.
    fn update_alpha(&self, state: &mut DcqcnState, out: &mut CcaOut) {
        // Paper, eq. 1 with a mark, eq. 2 without.
        let gain = self.config.gain;
        state.alpha =
            if state.marked_for_alpha != 0 { (1.0 - gain) * state.alpha + gain } else { (1.0 - gain) * state.alpha };
        state.marked_for_alpha = 0;
        out.timers[ALPHA] = Some(self.config.alpha_interval);
    }

    /// ns-3 `CheckRateDecreaseMlx`.
    fn decrease(&self, state: &mut DcqcnState, out: &mut CcaOut) {
        out.timers[DECREASE] = Some(self.config.decrease_interval);
        if state.marked_for_decrease == 0 {
            return;
        }
        let rate = out.control.rate;
        if self.config.clamp_target || state.stage != 0 {
            state.target = rate;
        }
        // Paper, eq. 1: the rate falls by half of alpha.
        let lower = scaled(rate, 1.0 - state.alpha / 2.0).max(self.config.min_rate);
        self.set_rate(state, lower, out);
        state.stage = 0;
        state.marked_for_decrease = 0;
        out.timers[INCREASE] = Some(self.config.increase_interval);
    }

    /// ns-3 `RateIncEventMlx`: fast recovery, active increase, hyper increase.
    fn increase(&self, state: &mut DcqcnState, out: &mut CcaOut) {
        out.timers[INCREASE] = Some(self.config.increase_interval);
        let growth = match state.stage.cmp(&self.config.fast_recovery) {
            core::cmp::Ordering::Less => 0,
            core::cmp::Ordering::Equal => self.config.additive.0,
            core::cmp::Ordering::Greater => self.config.hyper.0,
        };
        state.target = BitRate(state.target.0.saturating_add(growth).min(state.line.0));
        // Paper, eq. 3 and 4: halfway to the target. ns-3 halves each before adding (`FastRecoveryMlx`).
        let rate = BitRate(out.control.rate.0 / 2 + state.target.0 / 2);
        self.set_rate(state, rate, out);
        state.stage = state.stage.min(self.config.fast_recovery).saturating_add(1);
    }

    fn set_rate(&self, state: &DcqcnState, rate: BitRate, out: &mut CcaOut) {
        out.control = self.config.window.control(state.bdp, rate, state.line);
    }
}

impl CongestionControl for Dcqcn {
    type State = DcqcnState;

    fn id(&self) -> ModelId {
        let c = &self.config;
        let config = ConfigHash::new()
            .with(c.gain.to_bits())
            .with(c.alpha_interval.0)
            .with(c.decrease_interval.0)
            .with(c.increase_interval.0)
            .with(u64::from(c.fast_recovery))
            .with(c.additive.0)
            .with(c.hyper.0)
            .with(c.min_rate.0)
            .with(u64::from(c.clamp_target));
        ModelId { name: "dcqcn", version: 1, config: c.window.hash(config).finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds::default()
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (DcqcnState, SendControl) {
        let state = DcqcnState {
            line: flow.line_rate,
            bdp: flow.bdp,
            target: flow.line_rate,
            alpha: 1.0,
            ..DcqcnState::zeroed()
        };
        (state, self.config.window.control(flow.bdp, flow.line_rate, flow.line_rate))
    }

    fn on_ack(&self, state: &mut DcqcnState, ack: &Ack<'_>, out: &mut CcaOut) {
        if ack.marked {
            self.on_mark(state, out);
        }
    }

    fn on_timer(&self, state: &mut DcqcnState, timer: usize, _now: SimTime, out: &mut CcaOut) {
        match timer {
            ALPHA => self.update_alpha(state, out),
            DECREASE => self.decrease(state, out),
            _ => self.increase(state, out),
        }
    }

    /// Nothing: DCQCN knows only marks; losses are the transport's.
    fn on_timeout(&self, _state: &mut DcqcnState, _now: SimTime, _out: &mut CcaOut) {}

    /// Nothing in the state is absolute; the timers are the kernel's. Flows that have seen a mark do not repeat
    /// themselves: their alpha decays with every timer, until a double has no smaller value.
    fn relative(&self, state: &DcqcnState, _origin: &Origin<'_>) -> Option<DcqcnState> {
        Some(*state)
    }

    fn absolute(&self, relative: &DcqcnState, _origin: &Origin<'_>) -> DcqcnState {
        *relative
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: BitRate = BitRate::from_gbps(100);

    fn marked() -> Ack<'static> {
        Ack { now: SimTime::ZERO, acked: 1, snd_nxt: 2, marked: true, rtt: Span::ZERO, hops: &[], hop_count: 0 }
    }

    #[test]
    fn one_mark_halves_the_rate_and_recovery_brings_it_back() {
        let model = Dcqcn::new(DcqcnConfig::default());
        let facts = FlowFacts { line_rate: LINE, base_rtt: Span::from_us(4), bdp: 50_000, mtu: 1_000 };
        let (mut state, control) = model.start(&facts, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        model.on_ack(&mut state, &marked(), &mut out);
        let first = [Some(Span::from_us(1)), Some(Span::from_ns(4_001)), None];
        assert_eq!((out.control.rate, out.timers), (LINE, first), "the first mark only starts the timers");

        let mut fire = |timer| {
            let mut next = CcaOut::new(out.control);
            model.on_timer(&mut state, timer, SimTime::ZERO, &mut next);
            out = next;
            (out.control.rate.0, state.alpha)
        };
        let alpha = (1.0 - 0.00390625) * 1.0;
        assert_eq!(fire(ALPHA), (LINE.0, alpha));
        let half = (LINE.0 as f64 * (1.0 - alpha / 2.0)) as u64;
        assert_eq!(fire(DECREASE).0, half);
        assert_eq!(fire(DECREASE).0, half, "no further mark, no further decrease");
        assert_eq!(fire(INCREASE).0, half / 2 + LINE.0 / 2);
        assert_eq!(fire(INCREASE).0, (half / 2 + LINE.0 / 2) / 2 + LINE.0 / 2, "the target is capped at line rate");
    }

    /// A flow, at line rate at first.
    struct Flow {
        model: Dcqcn,
        state: DcqcnState,
        out: CcaOut,
    }

    impl Flow {
        fn new(config: DcqcnConfig) -> Flow {
            let model = Dcqcn::new(config);
            let facts = FlowFacts { line_rate: LINE, base_rtt: Span::from_us(4), bdp: 50_000, mtu: 1_000 };
            let (state, control) = model.start(&facts, SimTime::ZERO);
            Flow { model, state, out: CcaOut::new(control) }
        }

        fn mark(&mut self) {
            self.out = CcaOut::new(self.out.control);
            self.model.on_ack(&mut self.state, &marked(), &mut self.out);
        }

        fn fire(&mut self, timer: usize) -> [Option<Span>; 3] {
            self.out = CcaOut::new(self.out.control);
            self.model.on_timer(&mut self.state, timer, SimTime::ZERO, &mut self.out);
            self.out.timers
        }

        /// Rate and target, Mb/s.
        fn megabits(&self) -> [u64; 2] {
            [self.out.control.rate, self.state.target].map(|rate| rate.0 / 1_000_000)
        }
    }

    #[test]
    fn alpha_grows_with_a_mark_and_decays_without() {
        let mut flow = Flow::new(DcqcnConfig { gain: 0.25, ..DcqcnConfig::default() });
        flow.mark();
        let mut alpha = 1.0;
        for is_marked in [false, false, true, true, false] {
            if is_marked {
                flow.mark();
                assert_eq!(flow.out.timers, [None; 3], "timers are under way");
            }
            assert_eq!(flow.fire(ALPHA), [Some(Span::from_us(1)), None, None]);
            alpha = if is_marked { 0.75 * alpha + 0.25 } else { 0.75 * alpha };
            assert_eq!(flow.state.alpha, alpha);
        }
    }

    #[test]
    fn decreases_lower_the_target_after_an_increase_or_if_it_is_clamped() {
        let (again, both) = (Some(Span::from_us(4)), [None, Some(Span::from_us(4)), Some(Span::from_us(300))]);
        for clamp_target in [false, true] {
            let mut flow = Flow::new(DcqcnConfig { clamp_target, ..DcqcnConfig::default() });
            flow.mark();
            assert_eq!(flow.fire(DECREASE), both);
            assert_eq!(flow.megabits(), [50_000, 100_000]);
            flow.mark();
            assert_eq!(flow.fire(DECREASE), both);
            assert_eq!(flow.megabits(), [25_000, if clamp_target { 50_000 } else { 100_000 }]);
            assert_eq!(flow.fire(DECREASE), [None, again, None], "no mark since");
            assert_eq!(flow.fire(INCREASE), [None, None, Some(Span::from_us(300))]);
            let risen = if clamp_target { 37_500 } else { 62_500 };
            assert_eq!(flow.megabits()[0], risen);
            flow.mark();
            flow.fire(DECREASE);
            assert_eq!(flow.megabits(), [risen / 2, risen], "after an increase the target is what it had reached");
        }
    }

    #[test]
    fn rates_do_not_fall_below_the_least() {
        let mut flow = Flow::new(DcqcnConfig { window: WindowRule::BdpAtRate, ..DcqcnConfig::default() });
        for _ in 0..10 {
            flow.mark();
            flow.fire(DECREASE);
        }
        let SendControl { window, rate } = flow.out.control;
        assert_eq!((window, rate), (500, BitRate::from_gbps(1)), "the window follows");
    }

    #[test]
    fn increases_become_additive_then_hyper_and_stay_so() {
        let model = Dcqcn::new(DcqcnConfig::default());
        let facts = FlowFacts { line_rate: LINE, base_rtt: Span::from_us(4), bdp: 50_000, mtu: 1_000 };
        let (mut state, control) = model.start(&facts, SimTime::ZERO);
        state.target = BitRate::from_gbps(50);
        let mut out = CcaOut::new(control);
        let mut growth = || {
            let before = state.target.0;
            model.on_timer(&mut state, INCREASE, SimTime::ZERO, &mut out);
            (state.target.0 - before, state.stage)
        };
        assert_eq!([growth(), growth()], [(0, 1), (20_000_000, 2)]);
        assert_eq!([growth(), growth()], [(200_000_000, 2); 2]);
    }
}

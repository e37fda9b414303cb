//! Template of a congestion control: additive increase, and half of the rate at a mark, at most once a round trip.

use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::{BitRate, SimTime, Span};

/// Parameters of [`Aimd`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct AimdConfig {
    /// Increase per acknowledgement.
    pub additive: BitRate,
    /// Least rate.
    pub min_rate: BitRate,
}

impl Default for AimdConfig {
    /// 500 Mb/s per acknowledgement, at least 1 Gb/s.
    fn default() -> AimdConfig {
        AimdConfig { additive: BitRate(500_000_000), min_rate: BitRate::from_gbps(1) }
    }
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Aimd {
    config: AimdConfig,
}

/// All that is remembered of a flow: plain data without padding.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct AimdState {
    line: BitRate,
    bdp: u64,
    base_rtt: Span,
    /// Marks before this moment are of the round trip that was answered already.
    deaf_until: SimTime,
}

impl Aimd {
    /// With these parameters.
    pub fn new(config: AimdConfig) -> Aimd {
        Aimd { config }
    }

    fn control(&self, state: &AimdState, rate: BitRate) -> SendControl {
        SendControl { window: state.bdp.saturating_mul(2).max(1), rate: rate.max(self.config.min_rate).min(state.line) }
    }
}

impl CongestionControl for Aimd {
    type State = AimdState;

    /// Every parameter is in it: what is not would be taken for the same model by the memo.
    fn id(&self) -> ModelId {
        let config = ConfigHash::new().with(self.config.additive.0).with(self.config.min_rate.0);
        ModelId { name: "my-aimd", version: 1, config: config.finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds::default()
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (AimdState, SendControl) {
        let FlowFacts { line_rate: line, base_rtt, bdp, .. } = *flow;
        let state = AimdState { line, bdp, base_rtt, deaf_until: SimTime::ZERO };
        (state, self.control(&state, line))
    }

    fn on_ack(&self, state: &mut AimdState, ack: &Ack<'_>, out: &mut CcaOut) {
        let rate = out.control.rate.0;
        let next = if !ack.marked {
            rate.saturating_add(self.config.additive.0)
        } else if ack.now >= state.deaf_until {
            state.deaf_until = ack.now + state.base_rtt;
            rate / 2
        } else {
            rate
        };
        out.control = self.control(state, BitRate(next));
    }

    fn on_timer(&self, _state: &mut AimdState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    fn on_timeout(&self, state: &mut AimdState, _now: SimTime, out: &mut CcaOut) {
        out.control = self.control(state, BitRate(out.control.rate.0 / 2));
    }

    /// The one time becomes a distance from now: 0 if it has passed, whenever that was.
    fn relative(&self, state: &AimdState, origin: &Origin<'_>) -> Option<AimdState> {
        Some(AimdState { deaf_until: SimTime(state.deaf_until.since(origin.now).0), ..*state })
    }

    fn absolute(&self, relative: &AimdState, origin: &Origin<'_>) -> AimdState {
        AimdState { deaf_until: origin.now + Span(relative.deaf_until.0), ..*relative }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_models::kit::{CcaKit, assert_passed};

    #[test]
    fn it_passes_the_conformance_kit() {
        assert_passed(&CcaKit::new(&Aimd::new(AimdConfig::default())).checks());
        let extreme = AimdConfig { additive: BitRate(u64::MAX), min_rate: BitRate(1) };
        assert_passed(&CcaKit::new(&Aimd::new(extreme)).checks());
    }

    #[test]
    fn a_mark_halves_the_rate_once_a_round_trip() {
        let model = Aimd::new(AimdConfig::default());
        let (line_rate, base_rtt) = (BitRate::from_gbps(100), Span::from_us(10));
        let (mut state, control) =
            model.start(&FlowFacts { line_rate, base_rtt, bdp: 125_000, mtu: 1_000 }, SimTime::ZERO);
        let mut out = CcaOut::new(control);
        let mut rate = |us: u64, marked| {
            let (now, rtt) = (SimTime::from_ns(us * 1_000), base_rtt);
            let ack = Ack { now, acked: 0, snd_nxt: 0, marked, rtt, hops: &[], hop_count: 0 };
            model.on_ack(&mut state, &ack, &mut out);
            out.control.rate.0 / 1_000_000
        };
        assert_eq!([rate(1, true), rate(2, true), rate(10, true), rate(11, true)], [50_000, 50_000, 50_000, 25_000]);
        assert_eq!(rate(12, false), 25_500);
    }
}

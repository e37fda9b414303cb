//! DCTCP (Alizadeh et al., SIGCOMM 2010; RFC 8257) on rates, as ns-3 has it (`RdmaHw::HandleAckDctcp`).
//!
//! Left out: slow start; flows begin at line rate.

use super::{WindowRule, scaled};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, SimTime, Span};

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
    last_update: u64,
    last_acked: u64,
    /// Until it is acknowledged beyond this byte, the rate is not cut again.
    recover: u64,
    reduced: u64,
    alpha: f64,
    /// Marked ACKs of this round trip.
    marks: u64,
    /// ACKs this round trip will have.
    batch: u64,
}

impl Dctcp {
    /// With these parameters.
    pub fn new(config: DctcpConfig) -> Dctcp {
        Dctcp { config }
    }

    fn cut(&self, state: &mut DctcpState, snd_nxt: u64, out: &mut CcaOut) {
        // Paper, eq. 2; RFC 8257, section 3.3, step 9: cwnd * (1 - alpha / 2).
        let rate = scaled(out.control.rate, 1.0 - state.alpha / 2.0).max(self.config.min_rate);
        out.control = self.config.window.control(state.bdp, rate, state.line);
        state.reduced = 1;
        state.recover = snd_nxt;
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
            alpha: 1.0,
            ..DctcpState::zeroed()
        };
        (state, self.config.window.control(flow.bdp, flow.line_rate, flow.line_rate))
    }

    fn on_ack(&self, state: &mut DctcpState, ack: &Ack<'_>, out: &mut CcaOut) {
        state.last_acked = state.last_acked.max(ack.acked);
        state.marks += u64::from(ack.marked);
        let new_batch = ack.acked > state.last_update;
        if new_batch {
            if state.last_update == 0 {
                state.batch = ack.snd_nxt / state.mtu + 1;
            } else {
                // Paper, eq. 1; RFC 8257, section 3.3, steps 5 and 6.
                let share = state.marks as f64 / state.batch as f64;
                let share = if share > 1.0 { 1.0 } else { share };
                state.alpha = (1.0 - self.config.gain) * state.alpha + self.config.gain * share;
                state.marks = 0;
                // ns-3 counts in 32 bits, which shows when a go-back has put snd_nxt behind.
                state.batch = u64::from(ack.snd_nxt.wrapping_sub(ack.acked) as u32) / state.mtu + 1;
            }
            state.last_update = ack.snd_nxt;
        }
        if state.reduced != 0 && ack.acked > state.recover {
            state.reduced = 0;
        }
        if ack.marked && state.reduced == 0 {
            self.cut(state, ack.snd_nxt, out);
        }
        if state.reduced == 0 && new_batch {
            // One step a round trip, as TCP's segment per window.
            let rate = BitRate((out.control.rate.0 + self.config.additive.0).min(state.line.0));
            out.control = self.config.window.control(state.bdp, rate, state.line);
        }
    }

    fn on_timer(&self, _state: &mut DctcpState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// RFC 8257, section 3.5: a loss is answered as in TCP, by half.
    fn on_timeout(&self, state: &mut DctcpState, _now: SimTime, out: &mut CcaOut) {
        let rate = BitRate((out.control.rate.0 / 2).max(self.config.min_rate.0));
        out.control = self.config.window.control(state.bdp, rate, state.line);
    }

    fn rebase(&self, _state: &mut DctcpState, _by: Span) {}

    fn fingerprint(&self, state: &DctcpState, _now: SimTime) -> Option<u64> {
        let hash = ConfigHash::new()
            .with(state.line.0)
            .with(state.bdp)
            .with(state.mtu)
            .with(u64::from(state.last_update == 0))
            .with(state.last_update.wrapping_sub(state.last_acked))
            .with(if state.reduced != 0 { state.recover.wrapping_sub(state.last_acked) } else { 0 })
            .with(state.reduced)
            .with(state.alpha.to_bits())
            .with(state.marks)
            .with(state.batch);
        Some(hash.finish())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
}

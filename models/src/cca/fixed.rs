//! No congestion control: a fixed window at line rate.

use super::WindowRule;
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{SimTime, quotient};

/// Parameters of [`FixedWindow`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FixedWindowConfig {
    /// So many bytes; at least 1.
    Bytes(u64),
    /// So many hundredths of the bandwidth-delay product, rounded down; at least 1 byte.
    BdpPercent(u64),
    /// As a rule says, at line rate: unlimited, or the bandwidth-delay product.
    Rule(WindowRule),
}

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct FixedWindow {
    config: FixedWindowConfig,
}

/// There is nothing to remember.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct FixedWindowState {
    nothing: [u64; 0],
}

impl FixedWindow {
    /// With these parameters.
    pub fn new(config: FixedWindowConfig) -> FixedWindow {
        FixedWindow { config }
    }
}

impl CongestionControl for FixedWindow {
    type State = FixedWindowState;

    fn id(&self) -> ModelId {
        let config = match self.config {
            FixedWindowConfig::Bytes(bytes) => ConfigHash::new().with(0).with(bytes),
            FixedWindowConfig::Rule(rule) => rule.hash(ConfigHash::new().with(1)),
            FixedWindowConfig::BdpPercent(percent) => ConfigHash::new().with(2).with(percent),
        };
        ModelId { name: "fixed", version: 1, config: config.finish() }
    }

    fn needs(&self) -> CcaNeeds {
        CcaNeeds::default()
    }

    fn start(&self, flow: &FlowFacts, _now: SimTime) -> (FixedWindowState, SendControl) {
        let control = match self.config {
            FixedWindowConfig::Bytes(bytes) => SendControl { window: bytes.max(1), rate: flow.line_rate },
            FixedWindowConfig::BdpPercent(percent) => {
                let window = quotient(u128::from(flow.bdp) * u128::from(percent), 100);
                SendControl { window: window.clamp(1, u128::from(u64::MAX)) as u64, rate: flow.line_rate }
            }
            FixedWindowConfig::Rule(rule) => rule.control(flow.bdp, flow.line_rate, flow.line_rate),
        };
        (FixedWindowState::zeroed(), control)
    }

    fn on_ack(&self, _state: &mut FixedWindowState, _ack: &Ack<'_>, _out: &mut CcaOut) {}

    fn on_timer(&self, _state: &mut FixedWindowState, _timer: usize, _now: SimTime, _out: &mut CcaOut) {}

    /// Nothing: the window is fixed; losses are the transport's.
    fn on_timeout(&self, _state: &mut FixedWindowState, _now: SimTime, _out: &mut CcaOut) {}

    fn relative(&self, state: &FixedWindowState, _origin: &Origin<'_>) -> Option<FixedWindowState> {
        Some(*state)
    }

    fn absolute(&self, relative: &FixedWindowState, _origin: &Origin<'_>) -> FixedWindowState {
        *relative
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::units::{BitRate, Span};

    #[test]
    fn windows_are_what_was_asked_for() {
        let flow =
            FlowFacts { line_rate: BitRate::from_gbps(100), base_rtt: Span::from_ns(4_160), bdp: 52_000, mtu: 1_000 };
        let window = |config| {
            let control = FixedWindow::new(config).start(&flow, SimTime::ZERO).1;
            assert_eq!(control.rate, flow.line_rate);
            control.window
        };
        assert_eq!(window(FixedWindowConfig::Bytes(9_000)), 9_000);
        assert_eq!(window(FixedWindowConfig::Bytes(0)), 1);
        assert_eq!(window(FixedWindowConfig::BdpPercent(250)), 130_000);
        assert_eq!(window(FixedWindowConfig::BdpPercent(0)), 1);
        assert_eq!(window(FixedWindowConfig::Rule(WindowRule::Unlimited)), u64::MAX);
        assert_eq!(window(FixedWindowConfig::Rule(WindowRule::Bdp)), 52_000);
    }
}

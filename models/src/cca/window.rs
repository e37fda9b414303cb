//! The window beside the rate (ns-3 `RdmaQueuePair::GetWin`).

use wormhole_kernel::cca::SendControl;
use wormhole_kernel::model::ConfigHash;
use wormhole_kernel::units::{BitRate, quotient};

/// How many unacknowledged bytes a rate-based algorithm allows.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum WindowRule {
    /// Any number (`HAS_WIN 0`).
    #[default]
    Unlimited,
    /// The bandwidth-delay product (`HAS_WIN 1`).
    Bdp,
    /// The bandwidth-delay product at the present rate (`HAS_WIN 1`, `VAR_WIN 1`).
    BdpAtRate,
}

impl WindowRule {
    /// Window and rate of a flow with this bandwidth-delay product (bytes) on a link of rate `line`; both at least 1.
    #[inline(always)]
    pub fn control(self, bdp: u64, rate: BitRate, line: BitRate) -> SendControl {
        let window = match self {
            WindowRule::Unlimited => u64::MAX,
            WindowRule::Bdp => bdp,
            // floor(win * rate / max_rate), whole numbers: ns-3 `RdmaQueuePair::GetWin`.
            WindowRule::BdpAtRate => match bdp.checked_mul(rate.0) {
                Some(product) => product / line.0,
                None => quotient(u128::from(bdp) * u128::from(rate.0), u128::from(line.0)) as u64,
            },
        };
        SendControl { window: window.max(1), rate: BitRate(rate.0.max(1)) }
    }

    /// With this rule as one more field of a configuration.
    pub(super) fn hash(self, hash: ConfigHash) -> ConfigHash {
        hash.with(self as u64)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_follow_the_rule() {
        let window =
            |rule: WindowRule, gbps| rule.control(52_000, BitRate::from_gbps(gbps), BitRate::from_gbps(100)).window;
        assert_eq!(window(WindowRule::Unlimited, 1), u64::MAX);
        assert_eq!(window(WindowRule::Bdp, 1), 52_000);
        assert_eq!([window(WindowRule::BdpAtRate, 25), window(WindowRule::BdpAtRate, 0)], [13_000, 1]);
    }

    #[test]
    fn rules_have_hashes_of_their_own() {
        let [one, two, three] = [WindowRule::Unlimited, WindowRule::Bdp, WindowRule::BdpAtRate]
            .map(|rule| rule.hash(ConfigHash::new()).finish());
        assert!(one != two && two != three && three != one);
    }

    #[test]
    fn products_beyond_64_bits_keep_their_value() {
        let control = WindowRule::BdpAtRate.control(1 << 40, BitRate::from_gbps(200), BitRate::from_gbps(400));
        assert_eq!(control.window, 1 << 39);
    }
}

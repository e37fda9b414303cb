//! Serialisation times of profile `ns3`.

use wormhole_kernel::timing::LinkTiming;
use wormhole_kernel::units::{BitRate, Span};

/// Whole nanoseconds, rounded down as ns-3 does it: links run faster than nominal.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ns3Timing;

/// ns-3 `Seconds(double)`: the seconds become a 64.64 fixed-point number by truncation, times 10^9, floored.
///
/// `None` if the result does not fit in 64 bits, or `seconds` is negative or not a number.
pub fn ns3_seconds(seconds: f64) -> Option<u64> {
    const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
    if !(0.0..TWO_TO_64).contains(&seconds) {
        return None;
    }
    let whole = seconds as u64;
    // Exact: the fraction of a double, scaled by a power of two.
    let fraction = ((seconds - whole as f64) * TWO_TO_64) as u64;
    // (whole.fraction * 10^9) >> 64 without needing 94 bits for the sum.
    let ns = whole as u128 * 1_000_000_000 + ((fraction as u128 * 1_000_000_000) >> 64);
    u64::try_from(ns).ok()
}

impl LinkTiming for Ns3Timing {
    const NAME: &'static str = "ns3";

    /// ns-3 `DataRate::CalculateTxTime`: `Seconds(bytes * 8.0 / rate)`.
    #[inline]
    fn serialise(&self, bytes: u32, rate: BitRate) -> Span {
        let seconds = bytes as f64 * 8.0 / rate.0 as f64;
        if seconds < 1.0 {
            // Whole part 0: the common case, and the only one on a packet's path.
            const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;
            let fraction = (seconds * TWO_TO_64) as u64;
            return Span::from_ns(((fraction as u128 * 1_000_000_000) >> 64) as u64);
        }
        ns3_seconds(seconds).map_or(Span::MAX, Span::from_ns)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serialisation_equals_ns3() {
        let ns = |bytes, rate| Ns3Timing.serialise(bytes, BitRate(rate)).as_ns();
        let g100 = 100_000_000_000;
        let cases = [(1090, 87), (1048, 83), (1056, 84), (88, 7), (60, 4), (43, 3), (1000, 79), (250, 19)];
        for (bytes, want) in cases {
            assert_eq!(ns(bytes, g100), want, "{bytes} B at 100G");
        }
        assert_eq!(ns(1090, 95_166_151_454), 91);
        assert_eq!(ns(1048, 1_000_000_000), 8_383);
        assert_eq!(ns(9048, 400_000_000_000), 180);
        assert_eq!(ns(500, 400_000_000_000), 9);
    }

    #[test]
    fn seconds_equal_ns3() {
        let cases = [
            (2.0, 2_000_000_000),
            (2.0002, 2_000_199_999),
            (2.00005, 2_000_049_999),
            (2.00001, 2_000_010_000),
            (2.000_000_3, 2_000_000_299),
        ];
        for (seconds, want) in cases {
            assert_eq!(ns3_seconds(seconds), Some(want), "{seconds}");
        }
        assert_eq!(ns3_seconds(-1.0), None);
        assert_eq!(ns3_seconds(f64::NAN), None);
        assert_eq!(ns3_seconds(4e13), None);
    }
}

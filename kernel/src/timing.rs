//! How long a frame takes on the wire.

use crate::units::{BitRate, PS_PER_S, Span, quotient};

/// The rounding rule of serialisation times: what tells the profiles `ps` and `ns3` apart.
///
/// Who depends on it: ports (per frame, through a small cache) and NIC pacing (per data packet).
/// Implementations MUST be pure functions of their arguments.
pub trait LinkTiming {
    /// Name of the profile, part of every memo key.
    const NAME: &'static str;

    /// Time to put `bytes` on a wire of rate `rate`. `rate` is never 0.
    fn serialise(&self, bytes: u32, rate: BitRate) -> Span;
}

/// Profile `ps`: picoseconds, rounded up, in 128-bit integers. The one rounding rule of this project.
#[derive(Clone, Copy, Debug, Default)]
pub struct PsTiming;

impl LinkTiming for PsTiming {
    const NAME: &'static str = "ps";

    #[inline]
    fn serialise(&self, bytes: u32, rate: BitRate) -> Span {
        let bits = bytes as u64 * 8;
        // 64 bits hold bits * 10^12 up to frames of 2.3 MB; the 128-bit division costs ten times as much.
        match bits.checked_mul(PS_PER_S) {
            Some(product) => Span(product.div_ceil(rate.0)),
            None => {
                let span = quotient(bits as u128 * PS_PER_S as u128 + rate.0 as u128 - 1, rate.0 as u128);
                Span(u64::try_from(span).unwrap_or(u64::MAX))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn picoseconds_round_up() {
        let t = |b, r| PsTiming.serialise(b, BitRate(r)).0;
        assert_eq!(t(1048, 400_000_000_000), 20_960);
        assert_eq!(t(1, 3_000_000_000_000), 3);
        assert_eq!(t(10_000_000, 1_000), 80_000_000_000_000_000);
        assert_eq!(t(u32::MAX, 1_000), u64::MAX);
    }
}

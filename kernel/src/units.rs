//! Simulated time, durations and link rates. Integers only: the kernel holds no float.
//!
//! Sizes are plain integers in bytes (`u32` for one frame, `u64` for totals).

use bytemuck::{Pod, Zeroable};
use core::fmt;
use core::ops::{Add, AddAssign, Sub};

/// Picoseconds in one nanosecond.
pub const PS_PER_NS: u64 = 1_000;
/// Picoseconds in one microsecond.
pub const PS_PER_US: u64 = 1_000_000;
/// Picoseconds in one second.
pub const PS_PER_S: u64 = 1_000_000_000_000;

/// A point of simulated time, in picoseconds since the start of the simulation (213 days fit).
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
pub struct SimTime(pub u64);

/// A length of simulated time, in picoseconds.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
pub struct Span(pub u64);

/// A rate in bits per second.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default, Pod, Zeroable)]
pub struct BitRate(pub u64);

impl SimTime {
    /// The start of the simulation.
    pub const ZERO: SimTime = SimTime(0);
    /// Later than every event.
    pub const MAX: SimTime = SimTime(u64::MAX);

    /// `ns` nanoseconds after the start; saturates at [`SimTime::MAX`].
    pub const fn from_ns(ns: u64) -> SimTime {
        SimTime(ns.saturating_mul(PS_PER_NS))
    }

    /// Whole nanoseconds since the start, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }

    /// Time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: SimTime) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Span {
    /// No time at all.
    pub const ZERO: Span = Span(0);
    /// Longer than any simulation.
    pub const MAX: Span = Span(u64::MAX);

    /// `ns` nanoseconds; saturates at [`Span::MAX`].
    pub const fn from_ns(ns: u64) -> Span {
        Span(ns.saturating_mul(PS_PER_NS))
    }

    /// `us` microseconds; saturates at [`Span::MAX`].
    pub const fn from_us(us: u64) -> Span {
        Span(us.saturating_mul(PS_PER_US))
    }

    /// Whole nanoseconds, rounded down.
    pub const fn as_ns(self) -> u64 {
        self.0 / PS_PER_NS
    }
}

impl BitRate {
    /// `g` gigabits per second.
    pub const fn from_gbps(g: u64) -> BitRate {
        BitRate(g * 1_000_000_000)
    }
}

/// `dividend / divisor`, rounded down.
///
/// Targets of 32 bits have no routine for this: each `/` would be a division of its own, of about 1 KiB. So there is
/// one, here.
///
/// # Panics
/// If the divisor is 0.
#[cfg_attr(target_pointer_width = "64", inline(always))]
#[cfg_attr(not(target_pointer_width = "64"), inline(never))]
pub fn quotient(dividend: u128, divisor: u128) -> u128 {
    dividend / divisor
}

impl Add<Span> for SimTime {
    type Output = SimTime;
    fn add(self, by: Span) -> SimTime {
        SimTime(self.0.saturating_add(by.0))
    }
}

impl AddAssign<Span> for SimTime {
    fn add_assign(&mut self, by: Span) {
        *self = *self + by;
    }
}

impl Add for Span {
    type Output = Span;
    fn add(self, by: Span) -> Span {
        Span(self.0.saturating_add(by.0))
    }
}

impl AddAssign for Span {
    fn add_assign(&mut self, by: Span) {
        *self = *self + by;
    }
}

impl Sub for Span {
    type Output = Span;
    fn sub(self, by: Span) -> Span {
        Span(self.0.saturating_sub(by.0))
    }
}

impl fmt::Debug for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

impl fmt::Debug for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}ps", self.0)
    }
}

impl fmt::Debug for BitRate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}bit/s", self.0)
    }
}

#[cfg(feature = "defmt")]
impl defmt::Format for SimTime {
    fn format(&self, f: defmt::Formatter<'_>) {
        defmt::write!(f, "{=u64}ps", self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_saturates_instead_of_wrapping() {
        assert_eq!(SimTime::MAX + Span(1), SimTime::MAX);
        assert_eq!(SimTime::from_ns(u64::MAX), SimTime::MAX);
        assert_eq!(SimTime(3).since(SimTime(5)), Span::ZERO);
    }

    #[test]
    fn nanoseconds_round_down() {
        assert_eq!(SimTime(1_999).as_ns(), 1);
        assert_eq!(Span(999).as_ns(), 0);
    }
}

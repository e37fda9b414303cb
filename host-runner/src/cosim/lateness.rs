//! How late frames leave: how long after their simulated time, by the clock on the wall.

use super::us;
use hdrhistogram::Histogram;
use std::fmt;
use wormhole_kernel::Span;

/// Rows of the table: so many nanoseconds at most.
const ROWS: [(u64, &str); 6] = [
    (10_000, "10 us"),
    (100_000, "100 us"),
    (1_000_000, "1 ms"),
    (10_000_000, "10 ms"),
    (100_000_000, "100 ms"),
    (u64::MAX, "more"),
];

/// More than an hour, in nanoseconds, counts as an hour.
const MOST: u64 = 3_600_000_000_000;

/// All frames that have left.
pub(crate) struct Lateness {
    /// In nanoseconds, to three digits.
    histogram: Histogram<u64>,
}

impl Lateness {
    /// None yet.
    pub(crate) fn new() -> Lateness {
        Lateness { histogram: Histogram::new_with_bounds(1, MOST, 3).expect("bounds in the histogram's range") }
    }

    /// A frame leaves.
    pub(crate) fn record(&mut self, late: Span) {
        self.histogram.saturating_record(late.as_ns());
    }
}

impl fmt::Display for Lateness {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = &self.histogram;
        let us = |ns| us(Span::from_ns(ns));
        let [p50, p99] = [0.5, 0.99].map(|part| us(all.value_at_quantile(part)));
        let (frames, max) = (all.len(), us(all.max()));
        writeln!(f, "lateness of {frames} frames: p50 {p50:.1} us, p99 {p99:.1} us, max {max:.1} us")?;
        writeln!(f, "{:>8} {:>10}", "up to", "frames")?;
        let mut before = 0;
        for (most, name) in ROWS {
            let so_far = all.count_between(0, most);
            writeln!(f, "{name:>8} {:>10}", so_far - before)?;
            before = so_far;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_frame_is_in_one_row() {
        let mut lateness = Lateness::new();
        assert!(lateness.to_string().starts_with("lateness of 0 frames: p50 0.0 us, p99 0.0 us, max 0.0 us\n"));
        for ps in [0, 999, 5_000_000, 10_000_000, 10_001_000, 50_000_000, 900_000_000_000_000] {
            lateness.record(Span(ps));
        }
        let text = lateness.to_string();
        let rows: Vec<u64> =
            text.lines().skip(2).filter_map(|row| row.split_whitespace().last()?.parse().ok()).collect();
        // A nanosecond above 10 us is the same number to the histogram.
        assert_eq!(rows, [5, 1, 0, 0, 0, 1], "{text}");
        assert!(text.starts_with("lateness of 7 frames: p50 10.0 us, p99 900"), "{text}");
    }
}

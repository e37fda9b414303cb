//! How time was spent, in bins of equal width: the course of a run of any length in bounded memory.

use wormhole_kernel::{SimTime, Span};

/// Most bins. When they are full, pairs become one: there are always more than half as many once time has passed them.
pub const MOST_BINS: usize = 400;

/// Width of a bin at first.
const FIRST_WIDTH: Span = Span(1_000);

/// Time of `K` kinds in each bin. Kinds may overlap, and so may spans of one kind: their times add up.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct TimeBins<const K: usize> {
    start: SimTime,
    width: Span,
    bins: Vec<[Span; K]>,
}

impl<const K: usize> TimeBins<K> {
    /// Empty bins from a time on.
    pub fn from(start: SimTime) -> TimeBins<K> {
        TimeBins { start, width: FIRST_WIDTH, bins: Vec::new() }
    }

    /// Where the first bin begins.
    pub fn start(&self) -> SimTime {
        self.start
    }

    /// How long each bin is.
    pub fn width(&self) -> Span {
        self.width
    }

    /// What is in each, from the first to the last that has anything.
    pub fn bins(&self) -> &[[Span; K]] {
        &self.bins
    }

    /// A span of time was of a kind. What lies before the first bin is left out.
    ///
    /// # Panics
    /// If there is no such kind.
    pub fn add(&mut self, kind: usize, from: SimTime, to: SimTime) {
        let mut at = from.max(self.start).since(self.start).0;
        let end = to.max(self.start).since(self.start).0;
        if at >= end {
            return;
        }
        while end > self.width.0 * MOST_BINS as u64 {
            self.fold();
        }
        let bins = end.div_ceil(self.width.0) as usize;
        if bins > self.bins.len() {
            self.bins.resize(bins, [Span::ZERO; K]);
        }
        while at < end {
            let bin = at / self.width.0;
            let next = end.min((bin + 1) * self.width.0);
            self.bins[bin as usize][kind] += Span(next - at);
            at = next;
        }
    }

    /// Adds what another has, which began at the same time.
    pub fn merge(&mut self, other: &TimeBins<K>) {
        let mut other = other.clone();
        while self.width < other.width {
            self.fold();
        }
        while other.width < self.width {
            other.fold();
        }
        let bins = self.bins.len().max(other.bins.len());
        self.bins.resize(bins, [Span::ZERO; K]);
        for (sum, of) in self.bins.iter_mut().zip(&other.bins) {
            sum.iter_mut().zip(of).for_each(|(sum, of)| *sum += *of);
        }
    }

    /// Makes one of every two bins.
    fn fold(&mut self) {
        let pair = |pair: &[[Span; K]]| {
            std::array::from_fn(|kind| pair.iter().map(|bin| bin[kind]).fold(Span::ZERO, |sum, time| sum + time))
        };
        self.bins = self.bins.chunks(2).map(pair).collect();
        self.width += self.width;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_cut_at_bins() {
        let mut bins = TimeBins::<2>::from(SimTime(10_000));
        bins.add(0, SimTime(10_500), SimTime(12_250));
        bins.add(1, SimTime(0), SimTime(10_100));
        bins.add(1, SimTime(3), SimTime(5));
        let ps = |bin: &[Span; 2]| bin.map(|time| time.0);
        assert_eq!(bins.bins().iter().map(ps).collect::<Vec<_>>(), [[500, 100], [1_000, 0], [250, 0]]);
    }

    #[test]
    fn bins_stay_few_and_lose_no_time() {
        let mut bins = TimeBins::<3>::from(SimTime::ZERO);
        for step in 0..5_000u64 {
            bins.add(step as usize % 3, SimTime(step * 7_777), SimTime((step + 1) * 7_777));
        }
        let count = bins.bins().len();
        assert!(count <= MOST_BINS && count > MOST_BINS / 2, "{count} bins");
        let sums = (0..3).map(|kind| bins.bins().iter().map(|bin| bin[kind].0).sum::<u64>());
        assert_eq!(sums.collect::<Vec<_>>(), [1_667 * 7_777, 1_667 * 7_777, 1_666 * 7_777]);
        let full = &bins.bins()[..count - 1];
        assert!(full.iter().all(|bin| bin.iter().map(|time| time.0).sum::<u64>() == bins.width().0));
    }
}

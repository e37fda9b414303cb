//! Values: what has become of a partition by the end of an episode.
//!
//! Layout, in words: a header; the figures of ports, then those of flows, in the order of the key; the flows that have
//! finished, in their order; per port the places of those that are still in its NIC's queue; the motion, if any (see
//! `convergence`); the final state of those that go on, as a snapshot tells it.

use super::snapshot::counts;

/// Figures of a port and of a queue pair in a ledger and in a value.
pub(super) const PORT_FIGURES: usize = 7;
pub(super) const QP_FIGURES: usize = 6;
/// Where the longest queue stands among a port's figures.
pub(super) const LONGEST: usize = 5;
/// Span, flows finished, frames at the end; where the tables after the figures and the final state begin; trust; where
/// the motion begins, if the episode ends in one that goes on.
pub(super) const VALUE_HEADER: usize = 7;
/// In the header: whether a record under a coarse key may be used.
pub(super) const TRUST: usize = 5;
/// In the header: see there.
pub(super) const MOTION: usize = 6;
pub(super) const UNTRUSTED: u64 = 0;
pub(super) const TRUSTED: u64 = 1;
/// Never: two simulations have disagreed.
pub(super) const CHAOTIC: u64 = 2;
/// Largest difference between two simulations that agree, in parts per million.
const AGREEMENT: u64 = 5_000;

/// Grows a slice-backed list of words.
pub(super) struct Writer<'w> {
    pub(super) words: &'w mut [u64],
    pub(super) at: usize,
}

impl Writer<'_> {
    pub(super) fn put(&mut self, word: u64) {
        self.words[self.at] = word;
        self.at += 1;
    }

    pub(super) fn put_all(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.put(word));
    }
}

/// Whether two simulations from starts that are much alike have come to about the same.
pub(super) fn agree(value: &[u64], other: &[u64]) -> bool {
    let figures_end = value[3] as usize;
    let near = |a: u64, b: u64| u128::from(a.abs_diff(b)) * 1_000_000 <= u128::from(a.max(b)) * u128::from(AGREEMENT);
    // The tables of ports are not compared: what their flows have sent they have sent.
    let (_, ports) = counts(&value[value[4] as usize..]);
    let flows_at = VALUE_HEADER + ports * PORT_FIGURES;
    value[3] == other[3]
        && near(value[0], other[0])
        && value[flows_at..figures_end]
            .chunks(QP_FIGURES)
            .zip(other[flows_at..figures_end].chunks(QP_FIGURES))
            .all(|(a, b)| near(a[0], b[0]) && (a[4] == 0) == (b[4] == 0))
}

/// Turns the counters of a flow at the beginning into what they have grown by since.
pub(super) fn grow(entry: &mut [u64], now: &[u64; QP_FIGURES]) {
    entry[..4].iter_mut().zip(now).for_each(|(entry, now)| *entry = now.wrapping_sub(*entry));
    // That one counts modulo 2^32.
    entry[3] &= u64::from(u32::MAX);
}

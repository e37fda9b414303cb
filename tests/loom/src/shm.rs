//! Memory of two sides that loom watches.

use loom::sync::atomic;
use std::sync::atomic::Ordering;

/// Bytes of a word.
pub(crate) const WORD: usize = 8;

/// The word of a slot that both sides look at; the others are only touched by the side that owns the slot.
const OWNER: usize = 7;

/// A word, with the operations that a ring uses.
pub(crate) struct AtomicU64 {
    word: atomic::AtomicU64,
    is_contended: bool,
}

impl AtomicU64 {
    /// Of a word at which both sides look before either writes, loom keeps in mind the last look only, and misses
    /// orders. So there a look also writes what it reads, and a write also reads. A look sees the latest value then,
    /// and that is no loss: that an earlier one is seen is the same as looking earlier.
    pub(crate) fn load(&self, ordering: Ordering) -> u64 {
        if self.is_contended { self.word.fetch_or(0, ordering) } else { self.word.load(ordering) }
    }

    pub(crate) fn store(&self, value: u64, ordering: Ordering) {
        if self.is_contended {
            self.word.swap(value, ordering);
        } else {
            self.word.store(value, ordering);
        }
    }
}

/// Words that are zero at first.
pub(crate) struct Shm(Vec<AtomicU64>);

impl Shm {
    /// So many slots of so many bytes.
    pub(crate) fn new(slots: usize, slot: usize) -> Shm {
        let word = |at: usize| AtomicU64 { word: atomic::AtomicU64::new(0), is_contended: at == OWNER };
        Shm((0..slots).flat_map(|_| (0..slot / WORD).map(word)).collect())
    }

    /// All of it.
    pub(crate) fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

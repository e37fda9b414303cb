//! Memory of two sides that loom watches.

pub(super) use loom::sync::atomic::AtomicU64;

/// Bytes of a word.
pub(super) const WORD: usize = 8;

/// Words that are zero at first.
pub(super) struct Shm(Vec<AtomicU64>);

impl Shm {
    /// So many bytes.
    pub(super) fn new(bytes: usize) -> Shm {
        Shm((0..bytes / WORD).map(|_| AtomicU64::new(0)).collect())
    }

    /// All of it.
    pub(super) fn words(&self) -> &[AtomicU64] {
        &self.0
    }
}

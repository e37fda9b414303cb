//! Memoisation: what has been simulated once is looked up from then on.
//!
//! A *key* is the whole state of a partition in a canonical form, a *value* what came of it: see `accel/episode`.
//! Where records are kept is the caller's business.

use crate::error::CapacityError;
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::units::Span;

/// Raised whenever the kernel behaves differently with the same models and input, or lays keys or values out in
/// another way: records of other versions are of no use.
pub const KERNEL_VERSION: u32 = 4;

/// Keeps records.
///
/// Who depends on it: the kernel, once or twice each time a partition changes. Keys are compared in full: a store MUST
/// NOT find a record by a hash of its key alone.
pub trait MemoStore {
    /// The value of the record with this key, if there is one.
    fn find(&mut self, key: &[u64]) -> Option<&[u64]>;

    /// Keeps a record; one with the same key is replaced. A store may forget other records to make room, and does
    /// not keep what is too large for it.
    fn insert(&mut self, key: &[u64], value: &[u64]);
}

/// How alike two partitions must be to share a record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Precision {
    /// Equal in every bit that has a bearing on their future: results are those of a simulation.
    #[default]
    Exact,
    /// Alike in rates, windows and bytes up to a few per cent, as with the paper's keys. Where flows share a port, only
    /// if two simulations of such partitions have agreed; else exact keys are used.
    Quantised,
}

/// How to memoise.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memoisation {
    /// How alike partitions must be.
    pub precision: Precision,
    /// Share of hits that are simulated all the same and compared with the record, in parts per million
    /// ([`Precision::Exact`] only).
    pub check: u32,
}

/// What memoisation has done since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Memoised {
    /// Look-ups that found a record and used it.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Partitions that waited for another one of the same key, begun in the same instant.
    pub followers: u64,
    /// Records found and not used: a known interrupt falls inside the episode, or a switch's buffer might be felt.
    pub refused: u64,
    /// Episodes that could not be kept: they were interrupted, chance had a hand in them, or a buffer was felt.
    pub unkept: u64,
    /// Hits that were simulated all the same.
    pub checked: u64,
    /// Those of them whose simulation had another result: a fault of the kernel or of a model.
    pub mismatches: u64,
    /// [Name](record_name) of the record of the first mismatch.
    pub mismatch: u64,
    /// Patterns met that had not been met before in this run.
    pub distinct: u64,
    /// Patterns met.
    pub instances: u64,
    /// Simulated time skipped by records, summed over partitions.
    pub time: Span,
}

/// What a record is called in messages: a hash of its key.
pub fn record_name(key: &[u64]) -> u64 {
    key.iter().fold(key.len() as u64, |hash, word| crate::accel::mix(hash, *word))
}

impl<'a, M: Models, O: Observer> Kernel<'a, M, O> {
    /// Looks partitions up in `store` from now on, and keeps what is simulated there. Needs acceleration, of any tier
    /// but [`Off`](crate::accel::Tier::Off).
    ///
    /// # Errors
    /// [`CapacityError`] `snapshot_words` if there is no memory for states at all.
    pub fn memoise(&mut self, store: &'a mut (dyn MemoStore + Send), how: Memoisation) -> Result<(), CapacityError> {
        if self.reserve.is_empty() {
            return Err(CapacityError { what: "snapshot_words", limit: 0 });
        }
        self.models_hash = self.memo_models();
        self.memo = Some(store);
        self.memoisation = how;
        Ok(())
    }

    /// Calls `visit` with the key of every partition whose flows are under way and whose state can be told, as it is
    /// now. Partitions are kept while acceleration is on. Episodes that are being recorded or played back are broken
    /// off, which costs time and changes no result.
    pub fn each_key(&mut self, precision: Precision, mut visit: impl FnMut(&[u64])) {
        self.models_hash = self.memo_models();
        self.interrupt_recordings();
        self.wake_all();
        for id in self.partitions.ids() {
            self.visit_key(id, precision, &mut visit);
        }
    }

    /// What memoisation has done so far.
    pub fn memoised(&self) -> Memoised {
        self.memoised
    }
}

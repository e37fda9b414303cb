//! Memoisation as a user sees it: what is memoised and how, and the file that one run leaves for the next.

mod commands;
mod common;
mod file;
pub(crate) mod records;
mod shared;
mod store;

pub(crate) use commands::MemoCommand;
pub(crate) use common::{CommonStore, KernelStore};
pub use file::MemoFile;
pub(crate) use shared::{SharedStore, merge_runs};
pub(crate) use store::RunStore;

use crate::input::diagnostics::Diagnostics;
use std::io;
use std::path::Path;
use wormhole_kernel::accel::Tier;
use wormhole_kernel::memo::{Memoisation, Memoised, Precision};
use wormhole_memo_fmt::Header;

/// How alike partitions must be to share a record, as an argument.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum MemoKeys {
    /// Equal in every bit that counts: no error.
    Exact,
    /// Alike up to a few per cent; where flows share a port, only if two simulations have agreed (tier bounded only).
    Quantised,
    /// Nothing is memoised.
    Off,
}

/// What is memoised, and how.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemoOptions {
    /// How alike partitions must be; `None`: as the tier promises.
    pub keys: Option<MemoKeys>,
    /// Share of hits that are simulated all the same and compared, in parts per million.
    pub check: u32,
    /// Most memory for records, in words of 8 bytes.
    pub limit_words: usize,
}

impl MemoOptions {
    /// Whether runs of this tier can be memoised so.
    fn check_for(&self, tier: Tier) -> Result<(), Diagnostics> {
        if tier == Tier::Exact && self.keys == Some(MemoKeys::Quantised) {
            let mut found = Diagnostics::of("--memo-keys");
            found.error(0, "quantised", "tier exact has no errors: its keys are exact");
            return Err(found);
        }
        Ok(())
    }

    /// How a run of this tier memoises; `None`: not at all.
    ///
    /// Tier exact has exact keys whatever is asked for: that is its promise, also in `verify`, which runs it besides
    /// the chosen one.
    fn how(&self, tier: Tier) -> Option<Memoisation> {
        let precision = match (tier, self.keys) {
            (Tier::Off, _) | (_, Some(MemoKeys::Off)) => return None,
            (Tier::Exact, _) | (Tier::Bounded, Some(MemoKeys::Exact)) => Precision::Exact,
            (Tier::Bounded, Some(MemoKeys::Quantised) | None) => Precision::Quantised,
        };
        Some(Memoisation { precision, check: self.check })
    }
}

/// What memoisation has done in a run.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct MemoReport {
    /// What the kernel counts.
    pub counts: Memoised,
    /// The records in memory at the end, in bytes as of a file.
    pub bytes: u64,
}

/// What runs of one command know of each other's records.
#[derive(Debug)]
pub struct Memo {
    options: MemoOptions,
    file: Option<MemoFile>,
    /// Where the file is found once the run's models are known.
    shared: Option<SharedStore>,
    /// What was odd about that file.
    found: Diagnostics,
    /// Name of the first record that a simulation did not agree with.
    mismatch: Option<u64>,
}

impl Memo {
    /// For runs of up to this tier; with the records of a file, if one is named. `None` if that cannot be: the
    /// findings say why.
    pub fn open(options: MemoOptions, file: Option<&Path>, tier: Tier) -> (Option<Memo>, Diagnostics) {
        if let Err(found) = options.check_for(tier) {
            return (None, found);
        }
        let mut found = file.map_or_else(Diagnostics::default, |path| Diagnostics::of(path.display().to_string()));
        let memo = |file| Some(Memo { file, ..Memo::new(options) });
        let Some(path) = file else { return (memo(None), found) };
        if options.how(tier).is_none() {
            let option = if tier == Tier::Off { "--accel off" } else { "--memo-keys off" };
            found.warning(0, "", format!("of no use with {option}"));
            return (memo(None), found);
        }
        match MemoFile::open(path, options.limit_words, &mut found) {
            Some(file) => (memo(Some(file)), found),
            None => (None, found),
        }
    }

    /// For one run of this tier, with the records of a store that other runs share. `None` if that cannot be: the
    /// findings say why.
    pub(crate) fn sharing(options: MemoOptions, store: SharedStore, tier: Tier) -> (Option<Memo>, Diagnostics) {
        match options.check_for(tier) {
            Ok(()) => (Some(Memo { shared: Some(store), ..Memo::new(options) }), Diagnostics::default()),
            Err(found) => (None, found),
        }
    }

    fn new(options: MemoOptions) -> Memo {
        Memo { options, file: None, shared: None, found: Diagnostics::default(), mismatch: None }
    }

    /// How a run of this tier memoises; `None`: not at all.
    pub(crate) fn how(&self, tier: Tier) -> Option<Memoisation> {
        self.options.how(tier)
    }

    /// Words that a run's store takes.
    pub(crate) fn limit_words(&self) -> usize {
        self.options.limit_words
    }

    /// A run with this header begins: its store gets the records of the file, if they go with it.
    pub(crate) fn begin(&mut self, header: Header, store: &mut RunStore<'_>) {
        if let Some(shared) = self.shared.take() {
            self.file = shared.open(header.models, self.options.limit_words, &mut self.found);
        }
        if let Some(file) = &mut self.file {
            file.load(header, store);
        }
    }

    /// A run has ended. What it has learnt goes to the file, unless a record has proved wrong.
    pub(crate) fn end(&mut self, counts: &Memoised, store: RunStore<'_>) {
        if counts.mismatches > 0 {
            self.mismatch.get_or_insert(counts.mismatch);
        } else if let Some(file) = &mut self.file {
            file.note(store);
        }
    }

    /// All runs have ended: extends the file, and says what was odd about it. A record that a simulation did not
    /// agree with is an error.
    ///
    /// # Errors
    /// Those of writing the file.
    pub fn finish(self) -> io::Result<Diagnostics> {
        let name = self.file.as_ref().map_or("memo".to_owned(), |file| file.path().display().to_string());
        let mut found = Diagnostics::of(name);
        if let Some(record) = self.mismatch {
            let message = format!(
                "record {record:016x} has another result than its simulation: this is a defect of the simulator, or \
                 the record is not its own"
            );
            found.error(0, "", message);
        }
        if let Some(file) = self.file {
            file.finish(&mut found)?;
        }
        found.extend(self.found);
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: MemoOptions = MemoOptions { keys: None, check: 7, limit_words: 1_000 };

    fn precision(keys: Option<MemoKeys>, tier: Tier) -> Option<Precision> {
        MemoOptions { keys, ..OPTIONS }.how(tier).map(|how| how.precision)
    }

    #[test]
    fn keys_are_as_the_tier_promises() {
        use MemoKeys::{Exact, Off, Quantised};
        for keys in [None, Some(Exact), Some(Quantised), Some(Off)] {
            assert_eq!(precision(keys, Tier::Off), None);
        }
        for tier in [Tier::Exact, Tier::Bounded] {
            assert_eq!(precision(Some(Off), tier), None);
            assert_eq!(precision(Some(Exact), tier), Some(Precision::Exact));
        }
        assert_eq!(precision(None, Tier::Exact), Some(Precision::Exact));
        assert_eq!(precision(Some(Quantised), Tier::Exact), Some(Precision::Exact));
        assert_eq!(precision(None, Tier::Bounded), Some(Precision::Quantised));
        assert_eq!(precision(Some(Quantised), Tier::Bounded), Some(Precision::Quantised));
        assert_eq!(OPTIONS.how(Tier::Exact).map(|how| how.check), Some(7));
    }

    fn findings(found: &Diagnostics) -> Vec<String> {
        found.all().iter().map(|d| d.to_string()).collect()
    }

    #[test]
    fn quantised_keys_are_not_for_tier_exact() {
        let options = MemoOptions { keys: Some(MemoKeys::Quantised), ..OPTIONS };
        let (memo, found) = Memo::open(options, None, Tier::Exact);
        let error = "--memo-keys: error: tier exact has no errors: its keys are exact (found `quantised`)";
        assert_eq!((memo.is_none(), findings(&found)), (true, vec![error.to_owned()]));
        assert!(Memo::open(options, None, Tier::Bounded).0.is_some());
    }

    #[test]
    fn a_file_without_memoisation_is_of_no_use_and_not_touched() {
        let file = Path::new("not/there.whm");
        let (memo, found) = Memo::open(OPTIONS, Some(file), Tier::Off);
        assert_eq!(findings(&found), ["not/there.whm: warning: of no use with --accel off"]);
        assert!(memo.is_some_and(|memo| memo.file.is_none()));
        let off = MemoOptions { keys: Some(MemoKeys::Off), ..OPTIONS };
        let (_, found) = Memo::open(off, Some(file), Tier::Exact);
        assert_eq!(findings(&found), ["not/there.whm: warning: of no use with --memo-keys off"]);
    }

    #[test]
    fn a_mismatch_is_told_by_the_records_name() {
        let (memo, _) = Memo::open(OPTIONS, None, Tier::Exact);
        let mut memo = memo.expect("a memo");
        let mut words = vec![0; 1_000];
        let mismatch = Memoised { mismatches: 1, mismatch: 0xabc, ..Memoised::default() };
        memo.end(&mismatch, RunStore::new(&mut words));
        let found = memo.finish().expect("no file");
        assert!(found.has_errors());
        assert!(
            findings(&found)[0].starts_with("memo: error: record 0000000000000abc has another result"),
            "{found:?}"
        );
    }
}

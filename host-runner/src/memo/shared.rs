//! The memo store that the runs of a sweep share: a folder with a file for each set of models.
//!
//! A run reads the file `MODELS.whm` of its models and writes what it learns to a file of its own, `MODELS.RUN.whm`.
//! These are merged into the store when all runs that are to see the same store have ended. So what a run finds does
//! not depend on which others have ended meanwhile.

use super::MemoFile;
use super::commands::merge_files;
use crate::ending::ExitStatus;
use crate::input::diagnostics::Diagnostics;
use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The store, as one run uses it.
#[derive(Clone, Debug)]
pub(crate) struct SharedStore {
    folder: PathBuf,
    run: usize,
}

impl SharedStore {
    /// Of the run with this number.
    pub(crate) fn new(folder: &Path, run: usize) -> SharedStore {
        SharedStore { folder: folder.to_owned(), run }
    }

    /// The records for these models; new ones will go to the run's own file. `None` if the store is damaged.
    pub(super) fn open(&self, models: u64, limit_words: usize, found: &mut Diagnostics) -> Option<MemoFile> {
        let path = self.folder.join(format!("{models:016x}.whm"));
        let own = self.folder.join(format!("{models:016x}.{}.whm", self.run));
        let mut of_file = Diagnostics::of(path.display().to_string());
        let file = MemoFile::open_apart(&path, &own, limit_words, &mut of_file);
        found.extend(of_file);
        file
    }

    /// Removes what the run has written: it was killed before it was done, and will be made again.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn forget(&self) -> io::Result<()> {
        own_files(&self.folder)?.into_iter().filter(|own| own.run == self.run).try_for_each(|own| own.remove())
    }
}

/// Puts what these runs have learnt into the store, in the order of their numbers, and removes their own files. May be
/// done again if it was interrupted: the store will be the same.
///
/// Not [`ExitStatus::Done`] if a file is damaged; that has been told.
///
/// # Errors
/// Those of the file system.
pub(crate) fn merge_runs(folder: &Path, runs: &[usize]) -> io::Result<ExitStatus> {
    let mut by_models: BTreeMap<String, Vec<OwnFile>> = BTreeMap::new();
    for own in own_files(folder)?.into_iter().filter(|own| runs.contains(&own.run)) {
        by_models.entry(own.models.clone()).or_default().push(own);
    }
    for (models, mut own) in by_models {
        own.sort_by_key(|own| own.run);
        let store = folder.join(format!("{models}.whm"));
        let there = Some(store.clone()).filter(|store| store.exists());
        let files: Vec<PathBuf> = there.into_iter().chain(own.iter().map(|own| own.path.clone())).collect();
        if let Err(status) = merge_files(&store, &files)? {
            return Ok(status);
        }
        own.iter().try_for_each(OwnFile::remove)?;
    }
    Ok(ExitStatus::Done)
}

/// What one run has learnt.
struct OwnFile {
    path: PathBuf,
    models: String,
    run: usize,
}

impl OwnFile {
    fn remove(&self) -> io::Result<()> {
        fs::remove_file(&self.path)
    }
}

/// The files of single runs; none if the folder is not there yet.
fn own_files(folder: &Path) -> io::Result<Vec<OwnFile>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut files = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
        if let [models, run, "whm"] = name.split('.').collect::<Vec<_>>()[..]
            && let Ok(run) = run.parse()
        {
            files.push(OwnFile { models: models.to_owned(), run, path: path.clone() });
        }
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memo::RunStore;
    use wormhole_kernel::memo::{KERNEL_VERSION, MemoStore};
    use wormhole_memo_fmt::{FORMAT_VERSION, Header};

    const MODELS: Header = Header { format_version: FORMAT_VERSION, kernel_version: KERNEL_VERSION, models: 5 };

    /// What a run finds under a key, and what it then puts there.
    fn learn(folder: &Path, run: usize, key: u64, value: u64) -> Option<u64> {
        let mut found = Diagnostics::default();
        let mut file = SharedStore::new(folder, run).open(MODELS.models, 10_000, &mut found).expect("a file");
        let mut words = vec![0; 10_000];
        let mut store = RunStore::new(&mut words);
        file.load(MODELS, &mut store);
        let before = store.find(&[key]).map(|value| value[0]);
        store.insert(&[key], &[value]);
        file.note(store);
        file.finish(&mut found).expect("it is written");
        assert!(found.all().is_empty(), "{found:?}");
        before
    }

    #[test]
    fn runs_see_each_other_after_a_merge_and_merging_again_changes_nothing() {
        let folder = std::env::temp_dir().join(format!("wormhole-shared-{}", std::process::id()));
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(merge_runs(&folder, &[0]).expect("nothing to do"), ExitStatus::Done);
        fs::create_dir_all(&folder).expect("a folder");
        assert_eq!([learn(&folder, 10, 1, 100), learn(&folder, 2, 1, 20), learn(&folder, 7, 2, 70)], [None; 3]);
        // What a merge leaves that is killed before it removes anything.
        let own: Vec<(PathBuf, Vec<u8>)> =
            own_files(&folder).expect("files").into_iter().map(|own| (own.path.clone(), bytes(&own.path))).collect();
        assert_eq!(own.len(), 3);
        merge_runs(&folder, &[10, 2]).expect("a merge");
        let store = folder.join("0000000000000005.whm");
        let merged = bytes(&store);
        assert_eq!(own_files(&folder).expect("files").len(), 1, "run 7 was not to be merged");
        own.iter().for_each(|(path, bytes)| fs::write(path, bytes).expect("it is back"));
        merge_runs(&folder, &[2, 10]).expect("a merge");
        assert_eq!(bytes(&store), merged);
        // Run 10 comes after run 2, whoever was ready first.
        assert_eq!([learn(&folder, 11, 1, 0), learn(&folder, 12, 2, 0)], [Some(100), None]);
        SharedStore::new(&folder, 11).forget().expect("removed");
        let left: Vec<usize> = own_files(&folder).expect("files").iter().map(|own| own.run).collect();
        assert!(left.len() == 2 && !left.contains(&11), "{left:?}");
        fs::remove_dir_all(&folder).expect("the folder goes");
    }

    fn bytes(path: &Path) -> Vec<u8> {
        fs::read(path).expect("a file")
    }
}

//! `wormhole sweep join`: one table of the shards of a sweep.

use super::folder::{SweepFolder, write_tables};
use super::record::PointRecord;
use crate::cli::tell;
use crate::ending::ExitStatus;
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use std::collections::BTreeMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Joins the tables of folders, which must hold each point of one sweep once.
///
/// # Errors
/// Those of the file system.
pub(super) fn join(out: &Path, folders: &[PathBuf]) -> io::Result<ExitStatus> {
    let shards: Vec<SweepFolder> = folders.iter().map(|folder| SweepFolder::open(folder)).collect::<io::Result<_>>()?;
    let Some(first) = shards.first() else { return Ok(ExitStatus::BadInput) };
    let mut found = unlike(&shards, folders);
    let mut joined: BTreeMap<usize, (&PathBuf, PointRecord)> = BTreeMap::new();
    if !found.has_errors() {
        for (shard, folder) in shards.iter().zip(folders) {
            for record in shard.records(shard.manifest.own_points())? {
                if let Some((other, _)) = joined.get(&record.point) {
                    let message = format!("point {} is in {}, too", record.point, other.display());
                    found.extend(Diagnostics::fault(folder.display().to_string(), 0, message));
                } else {
                    joined.insert(record.point, (folder, record));
                }
            }
        }
        let missing: Vec<usize> = (0..first.manifest.points).filter(|point| !joined.contains_key(point)).collect();
        if !missing.is_empty() {
            let all = counted(missing.len(), "point");
            found.extend(Diagnostics::fault("", 0, format!("{all} not there: {}", ranges(&missing))));
        }
    }
    if found.has_errors() {
        tell(&found);
        return Ok(ExitStatus::BadInput);
    }
    let records: Vec<PointRecord> = joined.into_values().map(|(_, record)| record).collect();
    std::fs::create_dir_all(out)?;
    write_tables(out, &first.manifest, &records)?;
    writeln!(
        io::stdout(),
        "{} from {}: the tables are in {}",
        counted(records.len(), "point"),
        counted(folders.len(), "folder"),
        out.display()
    )?;
    Ok(ExitStatus::Done)
}

/// The folders that hold other sweeps than the first one.
fn unlike(shards: &[SweepFolder], folders: &[PathBuf]) -> Diagnostics {
    let mut found = Diagnostics::default();
    for (shard, folder) in shards.iter().zip(folders).skip(1) {
        if let Some(what) = shard.manifest.differs(&shards[0].manifest) {
            let message = format!("not of the same sweep as {}: {what}", folders[0].display());
            found.extend(Diagnostics::fault(folder.display().to_string(), 0, message));
        }
    }
    found
}

/// Numbers in order, as ranges: `0-3, 7`.
pub(super) fn ranges(numbers: &[usize]) -> String {
    let parts = numbers.chunk_by(|a, b| a + 1 == *b).map(|run| match run {
        [first, .., last] => format!("{first}-{last}"),
        alone => alone.iter().map(usize::to_string).collect(),
    });
    parts.collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_become_ranges() {
        assert_eq!(ranges(&[0, 1, 2, 3, 7, 9, 10]), "0-3, 7, 9-10");
        assert_eq!((ranges(&[]), ranges(&[5])), (String::new(), "5".into()));
    }
}

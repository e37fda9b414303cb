//! The folder of a sweep: what it is of, what has been run so far, and the tables.
//!
//! | name | content |
//! |---|---|
//! | `sweep.json` | the plan: by it a sweep is resumed or joined |
//! | `points/NUMBER.json` | a point that has been run |
//! | `memo/MODELS.whm` | records that the points share |
//! | `sweep.csv`, `sweep.parquet`, `costs.csv` | the tables |
//!
//! Each file appears whole. What a killed sweep leaves is the points that it had finished.

use super::plan::Plan;
use super::record::{Costs, PointRecord, Results};
use super::shard::Shard;
use crate::disk::{replace, replace_with};
use crate::outputs::Columns;
use serde::{Deserialize, Serialize};
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use wormhole_kernel::memo::KERNEL_VERSION;

/// `sweep.json`.
#[derive(Clone, PartialEq, Serialize, Deserialize, Debug)]
pub(crate) struct Manifest {
    /// The program and its kernel: others may have other results.
    version: String,
    /// The text of the sweep's file.
    sweep: String,
    /// The text of the scenario.
    scenario: String,
    /// Further options that count for every point.
    options: Vec<String>,
    /// The swept keys, in order.
    keys: Vec<String>,
    /// Points of all shards.
    pub(crate) points: usize,
    /// The part of the points that is run in this folder.
    pub(crate) shard: Shard,
}

impl Manifest {
    pub(crate) fn new(plan: &Plan<'_>, options: &[String], shard: Shard) -> Manifest {
        Manifest {
            version: format!("{}, kernel {KERNEL_VERSION}", env!("CARGO_PKG_VERSION")),
            sweep: plan.text.to_owned(),
            scenario: plan.scenario.text.clone(),
            options: options.to_owned(),
            keys: plan.keys.clone(),
            points: plan.points.len(),
            shard,
        }
    }

    /// What makes it another sweep than `other`, if it is one.
    pub(crate) fn differs(&self, other: &Manifest) -> Option<&'static str> {
        let parts = [
            (self.version != other.version, "another version of wormhole"),
            (self.sweep != other.sweep, "another text of the sweep's file"),
            (self.scenario != other.scenario, "another text of the scenario"),
            (self.options != other.options, "other options"),
        ];
        parts.into_iter().find(|(differs, _)| *differs).map(|(_, what)| what)
    }

    /// The points of this folder.
    pub(crate) fn own_points(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.points).filter(|point| self.shard.has(*point))
    }
}

/// See the module.
pub(crate) struct SweepFolder {
    path: PathBuf,
    pub(crate) manifest: Manifest,
}

impl SweepFolder {
    /// The sweep in a folder.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub(crate) fn open(path: &Path) -> io::Result<SweepFolder> {
        Ok(SweepFolder { path: path.to_owned(), manifest: read_json(&path.join("sweep.json"))? })
    }

    /// A folder for a sweep; nothing is written yet. With `resume` it may hold that sweep already.
    ///
    /// # Errors
    /// `Ok(Err)` says why this sweep cannot be run there.
    pub(crate) fn prepare(path: &Path, manifest: Manifest, resume: bool) -> io::Result<Result<SweepFolder, String>> {
        let there = match SweepFolder::open(path) {
            Ok(there) => there,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                return Ok(Ok(SweepFolder { path: path.to_owned(), manifest }));
            }
            Err(error) => return Err(error),
        };
        if !resume {
            return Ok(Err("it holds a sweep already; --resume goes on with it".into()));
        }
        if let Some(what) = manifest.differs(&there.manifest) {
            return Ok(Err(format!("it holds another sweep: {what}")));
        }
        if manifest.shard != there.manifest.shard {
            return Ok(Err(format!("it holds shard {}, not {}", there.manifest.shard, manifest.shard)));
        }
        Ok(Ok(there))
    }

    /// Makes the folder, and keeps other processes from it as long as what is returned lives; `None` if one is there.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn begin(&self) -> io::Result<Option<File>> {
        fs::create_dir_all(self.path.join("points"))?;
        fs::create_dir_all(self.memo())?;
        let lock = File::create(self.path.join("lock"))?;
        match lock.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
            Ok(()) => {}
        }
        replace(&self.path.join("sweep.json"), &json(&self.manifest)?)?;
        Ok(Some(lock))
    }

    /// The folder of shared records.
    pub(crate) fn memo(&self) -> PathBuf {
        self.path.join("memo")
    }

    fn point(&self, point: usize) -> PathBuf {
        self.path.join("points").join(format!("{point}.json"))
    }

    /// Whether a point has been run.
    pub(crate) fn has(&self, point: usize) -> bool {
        self.point(point).exists()
    }

    /// Keeps a point that has been run.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn keep(&self, record: &PointRecord) -> io::Result<()> {
        replace(&self.point(record.point), &json(record)?)
    }

    /// Of these points, those that have been run, by number.
    ///
    /// # Errors
    /// Those of reading.
    pub(crate) fn records(&self, points: impl Iterator<Item = usize>) -> io::Result<Vec<PointRecord>> {
        points.map(|point| self.point(point)).filter(|path| path.exists()).map(|path| read_json(&path)).collect()
    }

    /// Writes the tables of what has been run.
    ///
    /// # Errors
    /// Those of reading and writing.
    pub(crate) fn write_tables(&self) -> io::Result<()> {
        write_tables(&self.path, &self.manifest, &self.records(self.manifest.own_points())?)
    }
}

/// Writes tables of points into a folder.
///
/// # Errors
/// Those of the file system.
pub(crate) fn write_tables(folder: &Path, manifest: &Manifest, records: &[PointRecord]) -> io::Result<()> {
    let (results, costs) = (results(&manifest.keys, records), costs(records));
    replace_with(&folder.join("sweep.csv"), |out| results.write_csv(out))?;
    replace_with(&folder.join("sweep.parquet"), |out| results.write_parquet(out))?;
    replace_with(&folder.join("costs.csv"), |out| costs.write_csv(out))
}

/// What does not depend on the machine, with the swept keys.
fn results(keys: &[String], records: &[PointRecord]) -> Columns {
    let counts = |get: fn(&Results) -> u64| records.iter().map(move |record| record.results.as_ref().map(get));
    let numbers = |get: fn(&Results) -> f64| records.iter().map(move |record| record.results.as_ref().map(get));
    let mut table = Columns::default();
    table.counts("point", records.iter().map(|record| Some(record.point as u64)));
    for key in keys {
        table.texts(key, records.iter().map(|record| record.keys.get(key).cloned()));
    }
    table.texts("ending", records.iter().map(|record| Some(record.ending.clone())));
    table.counts("flows", counts(|results| results.flows));
    table.counts("flows_finished", counts(|results| results.flows_finished));
    table.counts("sim_time_ns", counts(|results| results.sim_time_ns));
    table.numbers("iteration_ns", numbers(|results| results.iteration_ns));
    table.numbers("mean_fct_ns", numbers(|results| results.mean_fct_ns));
    table.numbers("p50_fct_ns", numbers(|results| results.p50_fct_ns));
    table.numbers("p99_fct_ns", numbers(|results| results.p99_fct_ns));
    table.numbers("max_fct_ns", numbers(|results| results.max_fct_ns));
    table.counts("drops", counts(|results| results.drops));
    table.counts("ecn_marks", counts(|results| results.ecn_marks));
    table.counts("pauses", counts(|results| results.pauses));
    table.counts("collectives", counts(|results| results.collectives));
    table.numbers("mean_collective_ns", numbers(|results| results.mean_collective_ns));
    table.numbers("max_collective_ns", numbers(|results| results.max_collective_ns));
    table
}

/// What the points took.
fn costs(records: &[PointRecord]) -> Columns {
    let counts = |get: fn(&Costs) -> u64| records.iter().map(move |record| record.costs.as_ref().map(get));
    let numbers = |get: fn(&Costs) -> f64| records.iter().map(move |record| record.costs.as_ref().map(get));
    let mut table = Columns::default();
    table.counts("point", records.iter().map(|record| Some(record.point as u64)));
    table.counts("events_executed", counts(|costs| costs.events_executed));
    table.counts("events_skipped", counts(|costs| costs.events_skipped));
    table.numbers("event_ratio", numbers(|costs| costs.event_ratio));
    table.counts("memo_hits", counts(|costs| costs.memo_hits));
    table.numbers("cpu_s", numbers(|costs| costs.cpu_s));
    table.numbers("wall_s", numbers(|costs| costs.wall_s));
    table
}

fn json(value: &impl Serialize) -> io::Result<Vec<u8>> {
    let mut bytes = serde_json::to_vec_pretty(value)?;
    bytes.push(b'\n');
    Ok(bytes)
}

fn read_json<T: for<'de> Deserialize<'de>>(path: &Path) -> io::Result<T> {
    let fault = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
    let bytes = fs::read(path).map_err(fault)?;
    serde_json::from_slice(&bytes).map_err(|error| fault(error.into()))
}

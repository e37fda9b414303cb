//! Running the points of a sweep.
//!
//! Points are taken in batches of a size that the plan says, whatever the number of threads. All points of a batch see
//! the memo store that the batches before have left; what they learn is put into it when the batch is done, in the
//! order of points. So results depend neither on which point ends first, nor on where a sweep was stopped and resumed.

use super::folder::SweepFolder;
use super::plan::Plan;
use super::progress::{PointWatch, SweepProgress};
use super::record::PointRecord;
use crate::cli::tell;
use crate::ending::ExitStatus;
use crate::memo::{SharedStore, merge_runs};
use crate::simulate::{Ending, simulate_memoised};
use rayon::iter::{IndexedParallelIterator, IntoParallelRefIterator, ParallelIterator};
use std::io;

/// A sweep under way.
pub(super) struct Run<'r> {
    plan: &'r Plan<'r>,
    options: &'r [String],
    folder: &'r SweepFolder,
    progress: SweepProgress,
}

impl<'r> Run<'r> {
    /// Of a plan, in a folder; `options` of `wormhole run` count for every point.
    pub(super) fn new(plan: &'r Plan<'r>, options: &'r [String], folder: &'r SweepFolder) -> Run<'r> {
        let points = || folder.manifest.own_points();
        let before = points().filter(|point| folder.has(*point)).count();
        Run { plan, options, folder, progress: SweepProgress::new(points().count(), before) }
    }

    /// Runs the points that have not been run, on the threads of the current pool. Not [`ExitStatus::Done`] if it was
    /// interrupted, or a memo record or store has proved wrong.
    ///
    /// # Errors
    /// Those of the file system.
    pub(super) fn all(&self) -> io::Result<ExitStatus> {
        let points: Vec<usize> = self.folder.manifest.own_points().collect();
        let mut status = ExitStatus::Done;
        for batch in points.chunks(self.plan.batch) {
            let left: Vec<usize> = batch.iter().copied().filter(|point| !self.folder.has(*point)).collect();
            status = status.unless(self.batch(&left)?);
            if self.progress.is_stopped() {
                return Ok(ExitStatus::Interrupted);
            }
            let merged = merge_runs(&self.folder.memo(), batch)?;
            if merged != ExitStatus::Done {
                return Ok(merged);
            }
            if !left.is_empty() {
                self.folder.write_tables()?;
            }
        }
        Ok(status)
    }

    fn batch(&self, points: &[usize]) -> io::Result<ExitStatus> {
        let run = |point: &usize| {
            let status = self.point(*point);
            if status.is_err() {
                self.progress.stop();
            }
            status
        };
        let statuses: Vec<io::Result<ExitStatus>> = points.par_iter().with_max_len(1).map(run).collect();
        statuses.into_iter().try_fold(ExitStatus::Done, |all, status| Ok(all.unless(status?)))
    }

    /// Runs a point and keeps what came of it, unless the sweep is stopped.
    fn point(&self, point: usize) -> io::Result<ExitStatus> {
        if self.progress.is_stopped() {
            return Ok(ExitStatus::Interrupted);
        }
        let store = SharedStore::new(&self.folder.memo(), point);
        store.forget()?;
        // It could be read when the sweep began; what is odd about it has been told then.
        let changed = || io::Error::other(format!("point {point}: its files are no longer as they were"));
        let (loaded, _) = self.plan.load(point, self.options);
        let (scenario, args) = loaded.ok_or_else(changed)?;
        let mut memo = args.memo_shared(store).0.ok_or_else(changed)?;
        let mut watch = PointWatch { progress: &self.progress, point };
        let run = simulate_memoised(&scenario, &mut memo, &mut watch);
        if run.as_ref().is_ok_and(|outcome| outcome.ending == Ending::Interrupted) {
            return Ok(ExitStatus::Interrupted);
        }
        // Its records first: a point that is there is not run again.
        let found = memo.finish()?;
        tell(&found);
        self.folder.keep(&PointRecord::new(point, self.plan.values(point), &scenario, &run))?;
        self.progress.end(point);
        Ok(if found.has_errors() { ExitStatus::ErrorBound } else { ExitStatus::Done })
    }
}

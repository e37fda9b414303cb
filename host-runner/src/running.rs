//! `wormhole run` while it runs: shows progress, keeps the results so far on disk, tells the trace what ranks do, and
//! ends when it is asked to.

use crate::interrupt;
use crate::outputs::ResultFolder;
use crate::progress::ProgressLine;
use crate::recording::RankTrace;
use crate::scenario::Scenario;
use crate::simulate::{Outcome, Progress, Watch};
use crate::workload::engine::RankStretch;
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Results are first written after this time; short runs write them once, at their end.
const FIRST: Duration = Duration::from_secs(1);
/// Then they are written anew after this time at least.
const EVERY: Duration = Duration::from_secs(5);
/// And writing may take one part in so many of the time.
const SHARE: u32 = 50;

/// See the module.
pub(crate) struct Running<'r> {
    scenario: &'r Scenario,
    folder: &'r ResultFolder,
    trace: Option<RankTrace<'r>>,
    flows_file: Option<File>,
    line: ProgressLine,
    next: Instant,
    written: io::Result<()>,
}

impl<'r> Running<'r> {
    /// # Errors
    /// Those of the folder.
    pub(crate) fn new(
        scenario: &'r Scenario,
        folder: &'r ResultFolder,
        trace: Option<RankTrace<'r>>,
    ) -> io::Result<Running<'r>> {
        let (line, next) = (ProgressLine::new(), Instant::now() + FIRST);
        let flows_file = Some(folder.nameless()?);
        Ok(Running { scenario, folder, trace, flows_file, line, next, written: Ok(()) })
    }

    /// Takes the progress line away.
    ///
    /// # Errors
    /// What kept results from being written on the way, which has ended the run.
    pub(crate) fn end(self) -> io::Result<()> {
        self.written
    }
}

impl Watch for Running<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.line.progress(progress)?;
        if interrupt::is_wished() || self.written.is_err() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    fn follows_ranks(&self) -> bool {
        self.trace.is_some()
    }

    fn rank(&mut self, did: &RankStretch) {
        if let Some(trace) = self.trace {
            trace.rank(did);
        }
    }

    fn flows_file(&mut self) -> Option<File> {
        self.flows_file.take()
    }

    fn wants_interim(&mut self) -> bool {
        Instant::now() >= self.next
    }

    fn interim(&mut self, outcome: &Outcome) {
        let begun = Instant::now();
        self.written = self.folder.write(self.scenario, outcome);
        self.next = Instant::now() + EVERY.max(begun.elapsed() * SHARE);
    }
}

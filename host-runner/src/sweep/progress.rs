//! How far a sweep has come, and how it is stopped.

use crate::interrupt;
use crate::progress::Line;
use crate::simulate::{Progress, Watch};
use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What the threads of a sweep tell of.
pub(crate) struct SweepProgress {
    state: Mutex<State>,
    stopped: AtomicBool,
}

struct State {
    line: Line,
    counts: Counts,
}

struct Counts {
    /// Points of the sweep.
    points: usize,
    /// Those that had been run before.
    before: usize,
    done: usize,
    hits: u64,
    /// Of points that are running: their share done, and their hits.
    running: BTreeMap<usize, (f64, u64)>,
}

impl SweepProgress {
    /// Of so many points, of which so many have been run already.
    pub(crate) fn new(points: usize, before: usize) -> SweepProgress {
        let counts = Counts { points, before, done: 0, hits: 0, running: BTreeMap::new() };
        let state = State { line: Line::new(), counts };
        SweepProgress { state: Mutex::new(state), stopped: AtomicBool::new(false) }
    }

    /// Points that are running end, and none begins any more.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the sweep was asked to end, by a user or by [`stop`](Self::stop).
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed) || interrupt::is_wished()
    }

    /// A point is done.
    pub(crate) fn end(&self, point: usize) {
        let mut state = self.state();
        let (_, hits) = state.counts.running.remove(&point).unwrap_or_default();
        state.counts.hits += hits;
        state.counts.done += 1;
        state.tell();
    }

    /// What is only counted is sound even if a thread has panicked.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn tell(&mut self) {
        let State { line, counts } = self;
        line.tell(counts.share(), |_| counts.describe());
    }
}

impl Counts {
    /// Share that is done of what was left to do.
    fn share(&self) -> f64 {
        let running: f64 = self.running.values().map(|(done, _)| done).sum();
        (self.done as f64 + running) / (self.points - self.before).max(1) as f64
    }

    fn describe(&self) -> String {
        let hits = self.hits + self.running.values().map(|(_, hits)| hits).sum::<u64>();
        let done = self.before + self.done;
        format!("{done} of {} points, {} running, {hits} memo hits", self.points, self.running.len())
    }
}

/// Follows one point.
pub(crate) struct PointWatch<'p> {
    pub(crate) progress: &'p SweepProgress,
    pub(crate) point: usize,
}

impl Watch for PointWatch<'_> {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let mut state = self.progress.state();
        state.counts.running.insert(self.point, (progress.done, progress.memo_hits));
        state.tell();
        if self.progress.is_stopped() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::SimTime;

    #[test]
    fn a_line_says_how_far_the_whole_has_come() {
        let sweep = SweepProgress::new(40, 10);
        let at = |done, memo_hits| Progress {
            now: SimTime::ZERO,
            flows: 0,
            flows_begun: 0,
            done,
            events: 0,
            events_skipped: 0,
            memo_hits,
        };
        for (point, hits) in [(10, 3), (11, 4)] {
            assert!(PointWatch { progress: &sweep, point }.progress(at(0.5, hits)).is_continue());
        }
        sweep.end(10);
        assert_eq!(sweep.state().counts.describe(), "11 of 40 points, 1 running, 7 memo hits");
        assert_eq!(sweep.state().counts.share(), 1.5 / 30.0);
        sweep.stop();
        assert!(PointWatch { progress: &sweep, point: 11 }.progress(at(0.6, 5)).is_break());
    }
}

//! How far a run has come: a line that moves on a terminal, now and then a line of a log elsewhere.

use crate::simulate::{Progress, Watch};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::{IsTerminal, stderr};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

/// Steps of the bar.
const STEPS: u64 = 10_000;

/// The line on standard error.
pub(crate) struct Line {
    bar: ProgressBar,
    begun: Instant,
    /// When to tell next, and how long after that again.
    next: Instant,
    every: Duration,
    on_terminal: bool,
}

impl Line {
    /// Begins to count the time; nothing is told yet.
    pub(crate) fn new() -> Line {
        let on_terminal = stderr().is_terminal();
        let bar = ProgressBar::with_draw_target(Some(STEPS), ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template("{elapsed_precise} {wide_bar} {percent} %  {msg}  ETA {eta}") {
            bar.set_style(style);
        }
        let every = if on_terminal { Duration::from_millis(200) } else { Duration::from_secs(30) };
        let begun = Instant::now();
        Line { bar, begun, next: begun + every, every, on_terminal }
    }

    /// If it is time to, tells the share of the work that is done, 0 to 1, and what `describe` says of the time since
    /// the beginning.
    pub(crate) fn tell(&mut self, done: f64, describe: impl FnOnce(Duration) -> String) {
        let now = Instant::now();
        if now < self.next {
            return;
        }
        self.next = now + self.every;
        let elapsed = now - self.begun;
        let text = describe(elapsed);
        if self.on_terminal {
            self.bar.set_position((done * STEPS as f64) as u64);
            self.bar.set_message(text);
        } else {
            let left = elapsed.as_secs_f64() * (1.0 - done) / done.max(1e-9);
            eprintln!("{:.0} s, {:.1} %: {text}; ETA {left:.0} s", elapsed.as_secs_f64(), 100.0 * done);
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

/// The line of one run.
pub struct ProgressLine(Line);

impl ProgressLine {
    /// On standard error.
    pub fn new() -> ProgressLine {
        ProgressLine(Line::new())
    }
}

impl Default for ProgressLine {
    fn default() -> ProgressLine {
        ProgressLine::new()
    }
}

impl Watch for ProgressLine {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        self.0.tell(progress.done, |elapsed| describe(elapsed, &progress));
        ControlFlow::Continue(())
    }
}

/// What has come of a run after so much time of the clock.
fn describe(elapsed: Duration, progress: &Progress) -> String {
    let Progress { now, flows, flows_begun, events, events_skipped, memo_hits, .. } = *progress;
    let rate = events as f64 / elapsed.as_secs_f64().max(1e-9) / 1e6;
    let skipped = 100.0 * events_skipped as f64 / (events + events_skipped).max(1) as f64;
    format!(
        "{flows} of {flows_begun} flows, {} us simulated, {rate:.1} M events/s, {skipped:.1} % skipped, \
         {memo_hits} memo hits",
        now.as_ns() / 1_000
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::SimTime;

    #[test]
    fn a_line_says_how_far_a_run_has_come() {
        let progress = Progress {
            now: SimTime(5_000_000_000),
            flows: 3,
            flows_begun: 8,
            done: 0.375,
            events: 4_000_000,
            events_skipped: 12_000_000,
            memo_hits: 7,
        };
        let line = describe(Duration::from_secs(2), &progress);
        assert_eq!(line, "3 of 8 flows, 5000 us simulated, 2.0 M events/s, 75.0 % skipped, 7 memo hits");
    }
}

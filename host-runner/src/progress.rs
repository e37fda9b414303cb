//! A progress line on a terminal; silence in a pipe.

use crate::scenario::Scenario;
use crate::simulate::Progress;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// See the module.
pub struct ProgressLine {
    bar: ProgressBar,
}

impl ProgressLine {
    /// For a run of a scenario. How many flows jobs will begin is not known before. `indicatif` draws nothing where
    /// standard error is not a terminal.
    pub fn new(scenario: &Scenario) -> ProgressLine {
        let (flows, template) = if scenario.jobs.is_empty() {
            let template = "{elapsed_precise} {wide_bar} {pos}/{len} flows  {msg}  ETA {eta}";
            (Some(scenario.flows.len() as u64), template)
        } else {
            (None, "{elapsed_precise} {spinner} {pos} flows  {msg}")
        };
        let bar = ProgressBar::with_draw_target(flows, ProgressDrawTarget::stderr_with_hz(5));
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        ProgressLine { bar }
    }

    /// Brings the line up to date.
    pub fn tell(&self, progress: Progress) {
        self.bar.set_position(progress.flows);
        let (us, events) = (progress.now.as_ns() / 1_000, progress.events as f64 / 1e6);
        self.bar.set_message(format!("{us} us simulated, {events:.1} M events"));
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.bar.finish_and_clear();
    }
}

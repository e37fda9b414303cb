//! Processor time of a run, and memory of this process.

use nix::sys::resource::{UsageWho, getrusage};
use nix::time::{ClockId, clock_gettime};
use std::time::Duration;

/// Measures processor time of the calling thread: a run is made by one, and others may run beside it.
pub struct CpuClock(Duration);

fn processor_time() -> Duration {
    // The clock exists on every platform this crate builds for; zero would only falsify a report.
    clock_gettime(ClockId::CLOCK_THREAD_CPUTIME_ID).map_or(Duration::ZERO, Duration::from)
}

impl CpuClock {
    /// Starts measuring.
    pub fn start() -> CpuClock {
        CpuClock(processor_time())
    }

    /// Processor time since the start, which MUST have been on this thread.
    pub fn elapsed(&self) -> Duration {
        processor_time().saturating_sub(self.0)
    }
}

/// Most memory this process has ever had resident, in MB (10^6 bytes).
pub fn peak_rss_mb() -> f64 {
    // Linux counts in KiB.
    getrusage(UsageWho::RUSAGE_SELF).map_or(0.0, |usage| usage.max_rss() as f64 * 1024.0 / 1e6)
}

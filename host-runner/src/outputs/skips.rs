//! When which part of the fabric was not simulated, and why not.

use crate::time_bins::TimeBins;
use wormhole_kernel::accel::SkippedBy;
use wormhole_kernel::{Observer, PartitionId, SimTime};

/// Time that was skipped over the course of a run, summed over partitions, by [`SkipLog::KINDS`].
#[derive(Clone, Debug)]
pub struct SkipLog {
    /// From the run's first start on.
    pub time: TimeBins<3>,
}

impl SkipLog {
    /// The kinds, in order.
    pub const KINDS: [SkippedBy; 3] = [SkippedBy::Exact, SkippedBy::Bounded, SkippedBy::Memo];

    /// Of a run whose first flow or job starts then.
    pub fn from(start: SimTime) -> SkipLog {
        SkipLog { time: TimeBins::from(start) }
    }
}

impl Observer for SkipLog {
    fn skipped(&mut self, from: SimTime, to: SimTime, _partition: PartitionId, by: SkippedBy) {
        self.time.add(by as usize, from, to);
    }
}

//! Egress schedulers of switch ports.

use wormhole_kernel::model::ModelId;
use wormhole_kernel::scheduler::{CONTROL_PRIORITY, EgressScheduler};

/// The control priority first, the others in turn (ns-3 `BEgressQueue::DoDequeueRR`).
#[derive(Clone, Copy, Debug, Default)]
pub struct ControlThenRoundRobin;

impl EgressScheduler for ControlThenRoundRobin {
    fn id(&self) -> ModelId {
        ModelId { name: "control-then-round-robin", version: 1, config: 0 }
    }

    #[inline(always)]
    fn select(&self, last: &mut u8, ready: u8) -> u8 {
        if ready & 1 << CONTROL_PRIORITY != 0 {
            return CONTROL_PRIORITY;
        }
        // Bits above the last one served, else from the bottom.
        let above = ready & (0xfe_u8).checked_shl(*last as u32).unwrap_or(0);
        *last = if above != 0 { above } else { ready }.trailing_zeros() as u8;
        *last
    }

    /// The turn is that of the highest of them up to the last one served, or else of the highest.
    fn canonical(&self, last: u8, priorities: u8) -> u8 {
        let waiting = priorities & !(1 << CONTROL_PRIORITY);
        let served = waiting & !(0xfe_u8).checked_shl(last as u32).unwrap_or(0);
        let turn = if served != 0 { served } else { waiting };
        turn.checked_ilog2().map_or(0, |priority| priority as u8)
    }
}

/// The lowest-numbered priority first: control, then 1, 2, and so on.
#[derive(Clone, Copy, Debug, Default)]
pub struct StrictPriority;

impl EgressScheduler for StrictPriority {
    fn id(&self) -> ModelId {
        ModelId { name: "strict-priority", version: 1, config: 0 }
    }

    #[inline(always)]
    fn select(&self, _last: &mut u8, ready: u8) -> u8 {
        ready.trailing_zeros() as u8
    }

    fn canonical(&self, _last: u8, _priorities: u8) -> u8 {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_goes_first_and_the_others_take_turns() {
        let mut last = 0;
        let mut next = |ready| ControlThenRoundRobin.select(&mut last, ready);
        assert_eq!(next(0b1000), 3);
        assert_eq!([next(0b1010_1010), next(0b1010_1010), next(0b1010_1010), next(0b1010_1010)], [5, 7, 1, 3]);
        assert_eq!([next(0b1001), next(0b1010)], [0, 1]);
    }

    #[test]
    fn states_of_one_canonical_form_choose_alike() {
        let scheduler = ControlThenRoundRobin;
        let choices = |last: u8, priorities: u8| {
            // All that may be ready, one after the other.
            (1..=priorities).filter(move |ready| ready & !priorities == 0).map(move |ready| {
                let mut last = last;
                let first = scheduler.select(&mut last, ready);
                (first, scheduler.select(&mut last, priorities))
            })
        };
        for priorities in [0b1000, 0b1001, 0b0110, 0b1010_1010, 0xff] {
            for (a, b) in (0..8).flat_map(|a| (0..8).map(move |b| (a, b))) {
                let alike = scheduler.canonical(a, priorities) == scheduler.canonical(b, priorities);
                let same = choices(a, priorities).eq(choices(b, priorities));
                assert!(same || !alike, "{a} {b} among {priorities:b}");
            }
        }
        assert_eq!([0, 3, 7].map(|last| scheduler.canonical(last, 0b1000)), [3; 3]);
        assert_eq!([1, 2, 4, 6].map(|last| scheduler.canonical(last, 0b0001_0100)), [4, 2, 4, 4]);
    }

    #[test]
    fn strict_priority_starves() {
        let mut last = 0;
        assert_eq!([0b1010, 0b1010, 0b1000].map(|ready| StrictPriority.select(&mut last, ready)), [1, 1, 3]);
    }
}

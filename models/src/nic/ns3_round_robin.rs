//! Round robin to the letter of ns-3 (`RdmaEgressQueue::GetNextQindex`, `QbbNetDevice::DequeueAndTransmit`).
//!
//! Two habits of the original matter for exactness. Finished queue pairs leave only when a scan passes them, and
//! the position is an index that does not move with them. And the wake-up is set for the earliest pacing time of
//! all queue pairs with data, also of those that are blocked otherwise; if that time has passed, none is set.

use wormhole_kernel::ids::QpId;
use wormhole_kernel::model::ModelId;
use wormhole_kernel::nic::{Nic, NicPoll, NicQueue};
use wormhole_kernel::qp::Qp;
use wormhole_kernel::units::SimTime;

/// See the module.
#[derive(Clone, Copy, Debug, Default)]
pub struct Ns3RoundRobin;

/// What a scan around the queue found.
struct Scan {
    chosen: QpId,
    chosen_index: u32,
    /// The finished queue pair of the lowest index among those passed.
    finished: QpId,
    finished_index: u32,
}

impl Nic for Ns3RoundRobin {
    fn id(&self) -> ModelId {
        ModelId { name: "ns3-round-robin", version: 1, config: 0 }
    }

    #[inline]
    fn poll(&self, queue: &mut NicQueue, qps: &mut [Qp], now: SimTime, paused: u8, wake: Option<SimTime>) -> NicPoll {
        if queue.is_empty() {
            return NicPoll::Idle;
        }
        let mut scan = scan(queue, qps, now, paused);
        if scan.finished.is_some() {
            compact(queue, qps, &mut scan);
        }
        if scan.chosen.is_some() {
            queue.cursor = scan.chosen;
            queue.cursor_index = scan.chosen_index;
            return NicPoll::Send(scan.chosen);
        }
        if wake.is_some() {
            return NicPoll::Idle;
        }
        match earliest(queue, qps) {
            Some(at) if at > now => NicPoll::WakeAt(at),
            _ => NicPoll::Idle,
        }
    }

    fn finished(&self, _queue: &mut NicQueue, _qps: &mut [Qp], _qp: QpId) {}
}

/// Looks at every queue pair once, beginning after the round-robin position.
#[inline(always)]
fn scan(queue: &NicQueue, qps: &[Qp], now: SimTime, paused: u8) -> Scan {
    let count = queue.len() as u32;
    let mut scan = Scan { chosen: QpId::NONE, chosen_index: 0, finished: QpId::NONE, finished_index: u32::MAX };
    let (mut qp, mut index) = after_cursor(queue, qps);
    for _ in 0..count {
        let slot = &qps[qp.index()];
        if !slot.blocked(paused) {
            if slot.next_avail() <= now {
                scan.chosen = qp;
                scan.chosen_index = index;
                break;
            }
        } else if slot.is_finished() && index < scan.finished_index {
            scan.finished = qp;
            scan.finished_index = index;
        }
        qp = queue.next(qps, qp);
        index += 1;
        if qp.is_none() {
            qp = queue.first();
            index = 0;
        }
    }
    scan
}

/// The queue pair after the position, and its index. The position may lie beyond the end.
#[inline(always)]
fn after_cursor(queue: &NicQueue, qps: &[Qp]) -> (QpId, u32) {
    let count = queue.len() as u32;
    let next = queue.cursor_index + 1;
    // Divisions are slow, and most positions are within the queue.
    let index = if next < count { next } else { next % count };
    if index == 0 {
        return (queue.first(), 0);
    }
    if queue.cursor.is_some() && queue.cursor_index < count {
        return (queue.next(qps, queue.cursor), index);
    }
    (nth(queue, qps, index), index)
}

fn nth(queue: &NicQueue, qps: &[Qp], index: u32) -> QpId {
    let mut qp = queue.first();
    for _ in 0..index {
        qp = queue.next(qps, qp);
    }
    qp
}

/// Takes out every finished queue pair from the first one found on. The chosen one's index follows, the
/// position's does not.
#[cold]
fn compact(queue: &mut NicQueue, qps: &mut [Qp], scan: &mut Scan) {
    let (mut qp, mut index, mut removed) = (scan.finished, scan.finished_index, 0);
    while qp.is_some() {
        let next = queue.next(qps, qp);
        if qp == scan.chosen {
            scan.chosen_index = index - removed;
        }
        if qps[qp.index()].is_finished() {
            queue.remove(qps, qp);
            removed += 1;
        }
        qp = next;
        index += 1;
    }
    let at = queue.cursor_index;
    queue.cursor = if (at as usize) < queue.len() { nth(queue, qps, at) } else { QpId::NONE };
}

/// The earliest pacing time of the queue pairs that have data left.
#[inline(always)]
fn earliest(queue: &NicQueue, qps: &[Qp]) -> Option<SimTime> {
    let mut qp = queue.first();
    let mut least = None;
    while qp.is_some() {
        let slot = &qps[qp.index()];
        if slot.bytes_left() > 0 && least.is_none_or(|t| slot.next_avail() < t) {
            least = Some(slot.next_avail());
        }
        qp = queue.next(qps, qp);
    }
    least
}

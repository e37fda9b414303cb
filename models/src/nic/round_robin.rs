//! Round robin over the queue pairs that may send, paced individually.

use wormhole_kernel::ids::QpId;
use wormhole_kernel::model::ModelId;
use wormhole_kernel::nic::{Nic, NicPoll, NicQueue};
use wormhole_kernel::qp::Qp;
use wormhole_kernel::units::SimTime;

/// Each port serves its queue pairs in turn; one that is not due by its pacing is passed over, and the port wakes
/// up for the first that will be.
#[derive(Clone, Copy, Debug, Default)]
pub struct RoundRobin;

impl Nic for RoundRobin {
    fn id(&self) -> ModelId {
        ModelId { name: "round-robin", version: 1, config: 0 }
    }

    #[inline]
    fn poll(&self, queue: &mut NicQueue, qps: &mut [Qp], now: SimTime, paused: u8, wake: Option<SimTime>) -> NicPoll {
        if queue.is_empty() {
            return NicPoll::Idle;
        }
        let mut qp = if queue.cursor.is_none() { queue.first() } else { queue.next_around(qps, queue.cursor) };
        let mut earliest = SimTime::MAX;
        for _ in 0..queue.len() {
            let slot = &qps[qp.index()];
            if !slot.blocked(paused) {
                if slot.next_avail() <= now {
                    queue.cursor = qp;
                    return NicPoll::Send(qp);
                }
                earliest = earliest.min(slot.next_avail());
            }
            qp = queue.next_around(qps, qp);
        }
        let set_already = wake.is_some_and(|at| at <= earliest);
        if earliest == SimTime::MAX || set_already { NicPoll::Idle } else { NicPoll::WakeAt(earliest) }
    }

    fn finished(&self, queue: &mut NicQueue, qps: &mut [Qp], qp: QpId) {
        if queue.cursor == qp {
            queue.cursor = queue.previous(qps, qp);
        }
        queue.remove(qps, qp);
    }
}

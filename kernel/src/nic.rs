//! Which queue pair of a NIC port sends next, and when to look again.

use crate::ids::QpId;
use crate::model::ModelId;
use crate::qp::Qp;
use crate::units::SimTime;
use bytemuck::{Pod, Zeroable};

/// What a NIC port does next.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NicPoll {
    /// This queue pair sends a packet now.
    Send(QpId),
    /// None may send now; look again at this time.
    WakeAt(SimTime),
    /// None may send until something else happens, or until the wake-up already set.
    Idle,
}

/// The scheduling policy over the queue pairs of a NIC port.
///
/// Who depends on it: hosts, whenever a port may send: after a frame, an ACK, a wake-up, the end of a pause.
pub trait Nic {
    /// Part of every memo key.
    fn id(&self) -> ModelId;

    /// Chooses. `paused`: bit p means that priority p is paused. `wake`: the wake-up already set, if any.
    ///
    /// The answer MUST be a queue pair in `queue` that is not [blocked](Qp::blocked) and is due, or a time after
    /// `now`.
    fn poll(&self, queue: &mut NicQueue, qps: &mut [Qp], now: SimTime, paused: u8, wake: Option<SimTime>) -> NicPoll;

    /// A queue pair has finished. It leaves the queue now, or in a later [`poll`](Self::poll).
    fn finished(&self, queue: &mut NicQueue, qps: &mut [Qp], qp: QpId);
}

/// The queue pairs of a NIC port in order of opening, and the round-robin position among them.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct NicQueue {
    head: QpId,
    tail: QpId,
    /// Queue pairs removed since the kernel last looked.
    removed: QpId,
    len: u32,
    /// The queue pair that the round-robin position stands on, if it is in the queue.
    pub cursor: QpId,
    /// Its index.
    pub cursor_index: u32,
}

impl NicQueue {
    pub(crate) const EMPTY: NicQueue = NicQueue {
        head: QpId::NONE,
        tail: QpId::NONE,
        removed: QpId::NONE,
        len: 0,
        cursor: QpId::NONE,
        cursor_index: 0,
    };

    /// Number of queue pairs.
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The first queue pair, or [`QpId::NONE`].
    pub fn first(&self) -> QpId {
        self.head
    }

    /// The one after `qp`, or [`QpId::NONE`].
    #[inline(always)]
    pub fn next(&self, qps: &[Qp], qp: QpId) -> QpId {
        qps[qp.index()].next
    }

    /// The one after `qp`, or after the last the first.
    #[inline(always)]
    pub fn next_around(&self, qps: &[Qp], qp: QpId) -> QpId {
        let next = qps[qp.index()].next;
        if next.is_none() { self.head } else { next }
    }

    /// The one before `qp`, or [`QpId::NONE`].
    pub fn previous(&self, qps: &[Qp], qp: QpId) -> QpId {
        qps[qp.index()].prev
    }

    pub(crate) fn push(&mut self, qps: &mut [Qp], qp: QpId) {
        qps[qp.index()].next = QpId::NONE;
        qps[qp.index()].prev = self.tail;
        if self.head.is_none() {
            self.head = qp;
        } else {
            qps[self.tail.index()].next = qp;
        }
        self.tail = qp;
        self.len += 1;
    }

    /// Takes a queue pair out. The cursor is the policy's to mend.
    pub fn remove(&mut self, qps: &mut [Qp], qp: QpId) {
        self.unlink(qps, qp);
        qps[qp.index()].next = self.removed;
        self.removed = qp;
    }

    /// Takes a queue pair out that goes on elsewhere. The policy finds its position again by the index.
    pub(crate) fn withdraw(&mut self, qps: &mut [Qp], qp: QpId) {
        self.unlink(qps, qp);
        self.cursor = QpId::NONE;
    }

    fn unlink(&mut self, qps: &mut [Qp], qp: QpId) {
        let Qp { next, prev, .. } = qps[qp.index()];
        if next.is_some() {
            qps[next.index()].prev = prev;
        } else {
            self.tail = prev;
        }
        if prev.is_some() {
            qps[prev.index()].next = next;
        } else {
            self.head = next;
        }
        self.len -= 1;
    }

    pub(crate) fn pop_removed(&mut self, qps: &[Qp]) -> Option<QpId> {
        let qp = self.removed;
        if qp.is_none() {
            return None;
        }
        self.removed = qps[qp.index()].next;
        Some(qp)
    }
}

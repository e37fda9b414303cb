//! Partitions: which flows and ports belong together, kept up to date as flows start, finish and take other paths.
//!
//! A flow belongs with every port its data or its acknowledgements may leave by, and so do all flows of such a port.
//! The smaller partition is merged into the larger one. A flow that has finished leaves its ports behind; they are
//! given up when the partition is next looked at ([`split`](crate::kernel::Kernel::split)).

use super::episode::Episode;
use super::park::Parked;
use super::recurrence::Recurrence;
use super::steady::Steady;
use crate::error::CapacityError;
use crate::ids::{FlowId, NodeId, PartitionId, PortId, QpId};
use crate::kernel::Kernel;
use crate::memory::{Carver, words_for};
use crate::models::Models;
use crate::observer::Observer;
use crate::qp::{CACHED_HOPS, Qp};
use crate::router::{RouteKey, Router};
use bytemuck::{Pod, Zeroable};

/// Does something for every queue pair of a partition. The body may return, and may take the queue pair out.
macro_rules! for_each_qp {
    ($kernel:ident, $id:expr, $qp:ident, $body:block) => {
        let mut next = $kernel.first_qp($id);
        while let Some($qp) = next {
            next = $kernel.next_qp($qp);
            $body
        }
    };
}

/// The same for its ports.
macro_rules! for_each_port {
    ($kernel:ident, $id:expr, $port:ident, $body:block) => {
        let mut next = $kernel.first_port($id);
        while let Some($port) = next {
            next = $kernel.next_port($port);
            $body
        }
    };
}

pub(super) use {for_each_port, for_each_qp};

/// What has happened to a partition since it was last looked at: nothing, it was parted from others after something had
/// left, something joined, something left.
pub(crate) const SAME: u32 = 0;
pub(crate) const PARTED: u32 = 1;
pub(crate) const JOINED: u32 = 2;
pub(crate) const LEFT: u32 = 3;

/// A partition: two lists, threaded through queue pairs and ports, and what is known of its motion.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Partition {
    pub(crate) first_qp: QpId,
    last_qp: QpId,
    pub(crate) first_port: PortId,
    last_port: PortId,
    pub(crate) qps: u32,
    pub(crate) ports: u32,
    /// The queue pair whose acknowledgements set the pace of looking at the partition.
    pub(crate) leader: QpId,
    /// Links free slots.
    next_free: PartitionId,
    /// The flow that was added first, of all there have been: of partitions in step, the one with the elder goes
    /// first.
    pub(crate) elder: FlowId,
    /// [`SAME`], [`PARTED`], [`JOINED`] or [`LEFT`].
    pub(crate) changed: u32,
    pub(crate) recurrence: Recurrence,
    pub(crate) steady: Steady,
    pub(crate) parked: Parked,
    pub(crate) episode: Episode,
    /// Whether this slot is in the list of those that have changed, and the next one there.
    is_due: u32,
    next_due: PartitionId,
}

impl Partition {
    const EMPTY: Partition = Partition {
        first_qp: QpId::NONE,
        last_qp: QpId::NONE,
        first_port: PortId::NONE,
        last_port: PortId::NONE,
        qps: 0,
        ports: 0,
        leader: QpId::NONE,
        next_free: PartitionId::NONE,
        elder: FlowId::NONE,
        changed: JOINED,
        recurrence: Recurrence::NEW,
        steady: Steady::NEW,
        parked: Parked::NONE,
        episode: Episode::NONE,
        is_due: 0,
        next_due: PartitionId::NONE,
    };

    /// Whether it is out of the simulation at present.
    pub(crate) fn is_parked(&self) -> bool {
        self.parked.anchor.is_some()
    }
}

/// All partitions; slots are used again.
pub(crate) struct Partitions<'a> {
    slots: &'a mut [Partition],
    used: u32,
    free: PartitionId,
    live: u32,
    /// How many of them are parked.
    pub(crate) parked: u32,
    /// Slots whose partitions have changed in the present instant, the first to change first. A slot stays in the list
    /// whatever becomes of its partition.
    first_due: PartitionId,
    last_due: PartitionId,
    /// Searches of ports by a router are numbered: a port remembers the last one that found it.
    search: u32,
}

impl<'a> Partitions<'a> {
    /// As many as there can be at once: each has a flow, and the NIC ports at both of its ends. One more is about to be
    /// merged into those whose ports it shares.
    pub(crate) fn most(qps: usize, ports: usize) -> usize {
        qps.min(ports / 2 + 1)
    }

    pub(crate) const fn words(partitions: usize) -> usize {
        words_for::<Partition>(partitions)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, partitions: usize) -> Result<Self, CapacityError> {
        Ok(Partitions {
            slots: carver.take(partitions)?,
            used: 0,
            free: PartitionId::NONE,
            live: 0,
            parked: 0,
            first_due: PartitionId::NONE,
            last_due: PartitionId::NONE,
            search: 0,
        })
    }

    /// Slots that may be in use.
    pub(crate) fn ids(&self) -> impl Iterator<Item = PartitionId> + use<> {
        (0..self.used).map(PartitionId)
    }

    fn insert(&mut self) -> PartitionId {
        self.live += 1;
        let id = self.free;
        let id = if id.is_some() {
            self.free = self.slots[id.index()].next_free;
            id
        } else {
            self.used += 1;
            PartitionId(self.used - 1)
        };
        self.clear(id);
        id
    }

    fn remove(&mut self, id: PartitionId) {
        self.live -= 1;
        self.clear(id);
        self.slots[id.index()].next_free = self.free;
        self.free = id;
    }

    fn clear(&mut self, id: PartitionId) {
        let Partition { is_due, next_due, .. } = self.slots[id.index()];
        self.slots[id.index()] = Partition { is_due, next_due, ..Partition::EMPTY };
    }

    /// Puts a slot on the list of those that have changed.
    pub(super) fn push_due(&mut self, id: PartitionId) {
        if core::mem::replace(&mut self.get_mut(id).is_due, 1) != 0 {
            return;
        }
        self.get_mut(id).next_due = PartitionId::NONE;
        let last = core::mem::replace(&mut self.last_due, id);
        if self.first_due.is_none() {
            self.first_due = id;
        } else {
            self.get_mut(last).next_due = id;
        }
    }

    pub(super) fn pop_due(&mut self) -> Option<PartitionId> {
        let id = self.first_due;
        if id.is_none() {
            return None;
        }
        self.first_due = self.get(id).next_due;
        self.get_mut(id).is_due = 0;
        Some(id)
    }

    /// The first of those on the list, and the one behind another.
    pub(super) fn first_due(&self) -> PartitionId {
        self.first_due
    }

    pub(super) fn due_after(&self, id: PartitionId) -> PartitionId {
        self.get(id).next_due
    }

    pub(crate) fn any_due(&self) -> bool {
        self.first_due.is_some()
    }

    pub(super) fn is_due(&self, id: PartitionId) -> bool {
        self.get(id).is_due != 0
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn get(&self, id: PartitionId) -> &Partition {
        &self.slots[id.index()]
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn get_mut(&mut self, id: PartitionId) -> &mut Partition {
        &mut self.slots[id.index()]
    }
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// The queue pairs of a partition.
    pub(crate) fn next_qp(&self, qp: QpId) -> Option<QpId> {
        let next = self.qps.slots[qp.index()].next_member;
        next.is_some().then_some(next)
    }

    pub(crate) fn first_qp(&self, id: PartitionId) -> Option<QpId> {
        let first = self.partitions.get(id).first_qp;
        first.is_some().then_some(first)
    }

    pub(crate) fn next_port(&self, port: PortId) -> Option<PortId> {
        let next = self.ports[port.index()].next_member;
        next.is_some().then_some(next)
    }

    pub(crate) fn first_port(&self, id: PartitionId) -> Option<PortId> {
        let first = self.partitions.get(id).first_port;
        first.is_some().then_some(first)
    }

    /// A queue pair opens: puts it into a partition, together with whatever shares a port with it.
    pub(crate) fn join(&mut self, qp: QpId) {
        let id = self.partitions.insert();
        self.add_qp(id, qp);
        let priority = self.qps.slots[qp.index()].priority;
        self.each_port(qp, &mut |kernel, port, _| {
            let id = kernel.qps.slots[qp.index()].partition;
            kernel.claim(id, port);
            kernel.ports[port.index()].priorities |= 1 << priority;
        });
        self.skipped.partitions_max = self.skipped.partitions_max.max(self.partitions.live);
        self.note_change(self.qps.slots[qp.index()].partition);
    }

    /// Brings `port`, and the partition it is in, into partition `id`.
    pub(crate) fn claim(&mut self, id: PartitionId, port: PortId) {
        let other = self.ports[port.index()].partition;
        if other == id {
            return;
        }
        self.interrupt_recording(id, false);
        if other.is_none() {
            self.add_port(id, port);
        } else {
            self.interrupt_recording(other, true);
            self.wake(other);
            self.merge(id, other);
        }
    }

    fn add_qp(&mut self, id: PartitionId, qp: QpId) {
        self.link_qp(id, qp);
        let slot = &mut self.qps.slots[qp.index()];
        slot.partition = id;
        let flow = slot.flow;
        let partition = self.partitions.get_mut(id);
        partition.qps += 1;
        partition.elder = partition.elder.min(flow);
        partition.changed = partition.changed.max(JOINED);
    }

    fn add_port(&mut self, id: PartitionId, port: PortId) {
        let state = &mut self.ports[port.index()];
        state.partition = id;
        state.next_member = PortId::NONE;
        state.priorities = 0;
        let partition = self.partitions.get_mut(id);
        let last = core::mem::replace(&mut partition.last_port, port);
        if last.is_none() {
            partition.first_port = port;
        } else {
            self.ports[last.index()].next_member = port;
        }
        partition.ports += 1;
        partition.changed = partition.changed.max(JOINED);
    }

    /// Merges two active partitions, the smaller into the larger.
    fn merge(&mut self, a: PartitionId, b: PartitionId) {
        let size = |id: PartitionId| self.partitions.get(id).qps + self.partitions.get(id).ports;
        let (from, to) = if size(a) < size(b) { (a, b) } else { (b, a) };
        self.forget_motion(from);
        self.forget_motion(to);
        let Partition { first_qp, last_qp, first_port, last_port, qps, ports, elder, changed, .. } =
            *self.partitions.get(from);
        for_each_qp!(self, from, qp, {
            self.qps.slots[qp.index()].partition = to;
        });
        for_each_port!(self, from, port, {
            self.ports[port.index()].partition = to;
        });
        self.partitions.remove(from);
        let target = self.partitions.get_mut(to);
        target.qps += qps;
        target.ports += ports;
        target.elder = target.elder.min(elder);
        target.changed = target.changed.max(changed).max(JOINED);
        if first_qp.is_some() {
            let before = core::mem::replace(&mut target.last_qp, last_qp);
            if before.is_none() {
                target.first_qp = first_qp;
            } else {
                self.qps.slots[before.index()].next_member = first_qp;
                self.qps.slots[first_qp.index()].prev_member = before;
            }
        }
        let target = self.partitions.get_mut(to);
        if first_port.is_some() {
            let before = core::mem::replace(&mut target.last_port, last_port);
            if before.is_none() {
                target.first_port = first_port;
            } else {
                self.ports[before.index()].next_member = first_port;
            }
        }
    }

    /// A queue pair gives its slot back: it leaves its partition. The last one to leave dissolves it.
    pub(crate) fn leave(&mut self, qp: QpId) {
        let slot = &mut self.qps.slots[qp.index()];
        let id = core::mem::replace(&mut slot.partition, PartitionId::NONE);
        if id.is_none() {
            return;
        }
        self.unlink_qp(id, qp);
        let partition = self.partitions.get_mut(id);
        partition.qps -= 1;
        // A flow that has finished long ago is missed by nobody.
        if !partition.episode.is_recording() {
            partition.changed = LEFT;
        }
        match (partition.qps, self.memo.is_some()) {
            (0, true) => self.note_change(id),
            (0, false) => self.dissolve(id),
            _ => {}
        }
    }

    /// Takes a queue pair out of a partition's list.
    fn unlink_qp(&mut self, id: PartitionId, qp: QpId) {
        let Qp { next_member: next, prev_member: prev, .. } = self.qps.slots[qp.index()];
        if next.is_some() {
            self.qps.slots[next.index()].prev_member = prev;
        } else {
            self.partitions.get_mut(id).last_qp = prev;
        }
        if prev.is_some() {
            self.qps.slots[prev.index()].next_member = next;
        } else {
            self.partitions.get_mut(id).first_qp = next;
        }
    }

    /// Puts a queue pair at the end of a partition's list.
    fn link_qp(&mut self, id: PartitionId, qp: QpId) {
        let last = core::mem::replace(&mut self.partitions.get_mut(id).last_qp, qp);
        let slot = &mut self.qps.slots[qp.index()];
        slot.next_member = QpId::NONE;
        slot.prev_member = last;
        if last.is_some() {
            self.qps.slots[last.index()].next_member = qp;
        } else {
            self.partitions.get_mut(id).first_qp = qp;
        }
    }

    /// Moves a queue pair of a partition to the end of its list.
    pub(super) fn move_to_end(&mut self, id: PartitionId, qp: QpId) {
        self.unlink_qp(id, qp);
        self.link_qp(id, qp);
    }

    /// Puts all ports of a partition into this order.
    pub(super) fn relist_ports(&mut self, id: PartitionId, order: impl Iterator<Item = PortId>) {
        let (mut first, mut last) = (PortId::NONE, PortId::NONE);
        for port in order {
            self.ports[port.index()].next_member = PortId::NONE;
            if last.is_some() {
                self.ports[last.index()].next_member = port;
            } else {
                first = port;
            }
            last = port;
        }
        let partition = self.partitions.get_mut(id);
        (partition.first_port, partition.last_port) = (first, last);
    }

    pub(super) fn dissolve(&mut self, id: PartitionId) {
        self.interrupt_recording(id, true);
        self.forget_motion(id);
        for_each_port!(self, id, port, {
            self.ports[port.index()].partition = PartitionId::NONE;
        });
        self.partitions.remove(id);
    }

    /// Takes an active partition apart and puts its queue pairs together anew: what no longer shares a port is apart
    /// then.
    pub(crate) fn split(&mut self, id: PartitionId) {
        let mut next = self.first_qp(id);
        self.dissolve(id);
        let mut first_apart = next;
        while let Some(qp) = next {
            next = self.next_qp(qp);
            self.qps.slots[qp.index()].partition = PartitionId::NONE;
        }
        // Joining threads the list anew, behind us.
        while let Some(qp) = first_apart {
            first_apart = self.next_qp(qp);
            self.join(qp);
            let id = self.qps.slots[qp.index()].partition;
            self.partitions.get_mut(id).changed = PARTED;
            self.propose_leader(qp);
        }
    }

    /// The flow with most left to send leads; those that are outdone have no effect when their time to look comes.
    fn propose_leader(&mut self, qp: QpId) {
        let slot = &self.qps.slots[qp.index()];
        let (id, left) = (slot.partition, slot.bytes_left());
        let leader = self.partitions.get(id).leader;
        let outdone = leader.is_some() && self.qps.slots[leader.index()].bytes_left() >= left;
        if slot.is_open() && !outdone {
            self.partitions.get_mut(id).leader = qp;
            self.lead(qp);
        }
    }

    /// Links have changed: paths are found anew, and partitions with them.
    pub(crate) fn repartition(&mut self) {
        for qp in self.qps.ids() {
            if self.qps.slots[qp.index()].is_open() {
                self.refresh_paths(qp);
            }
        }
        // A partition that is split leaves new ones in slots that are looked at later, or not; either is right.
        for id in self.partitions.ids() {
            if self.partitions.get(id).qps > 0 {
                self.split(id);
            }
        }
    }

    /// Calls `visit` with every port that the data of a queue pair may leave by, and then with `false` and every port
    /// that its acknowledgements may leave by.
    pub(crate) fn each_port(&mut self, qp: QpId, visit: &mut dyn FnMut(&mut Self, PortId, bool)) {
        let slot = self.qps.slots[qp.index()];
        let ways = [(slot.port, slot.data_key(0), true), (slot.ack_port, slot.ack_key(0), false)];
        for (first, key, is_data) in ways {
            if first.is_none() {
                continue;
            }
            let visit = &mut |kernel: &mut Self, port| visit(kernel, port, is_data);
            if !M::Router::PER_FLOW || !self.each_kept_port(qp, first, is_data, key.dst, visit) {
                self.each_reachable_port(first, &key, visit);
            }
        }
    }

    /// The ports of a kept path, if it is kept whole.
    fn each_kept_port(
        &mut self,
        qp: QpId,
        first: PortId,
        is_data: bool,
        dst: NodeId,
        visit: &mut impl FnMut(&mut Self, PortId),
    ) -> bool {
        let paths = self.qps.paths[qp.index()];
        let kept = (0..CACHED_HOPS as u8).map(|hop| paths.port(is_data, hop)).take_while(|p| p.is_some());
        if self.fabric.neighbour(kept.clone().last().unwrap_or(first)) != dst {
            return false;
        }
        visit(self, first);
        kept.for_each(|port| visit(self, port));
        true
    }

    /// All ports that packets of a flow may take from `first` on, nearest first.
    fn each_reachable_port(&mut self, first: PortId, key: &RouteKey, visit: &mut impl FnMut(&mut Self, PortId)) {
        self.partitions.search = self.partitions.search.wrapping_add(1);
        let search = self.partitions.search;
        let mut last = first;
        self.ports[first.index()].found_by = search;
        self.ports[first.index()].next_found = PortId::NONE;
        let mut next = first;
        while next.is_some() {
            let node = self.fabric.neighbour(next);
            if !self.fabric.is_host(node) {
                let ports = &mut *self.ports;
                self.models.router.choices(&self.fabric, node, key, &mut |port| {
                    if ports[port.index()].found_by != search {
                        ports[port.index()].found_by = search;
                        ports[port.index()].next_found = PortId::NONE;
                        ports[last.index()].next_found = port;
                        last = port;
                    }
                });
            }
            let port = next;
            next = self.ports[port.index()].next_found;
            visit(self, port);
        }
    }
}

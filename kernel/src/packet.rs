//! Frames, and the lists they wait in.
//!
//! A frame is in exactly one place: a queue of a port, the lane of a link, or the receiver's hands. So lists are
//! threaded through the frames and need no memory of their own.

use crate::error::CapacityError;
use crate::event::EventKey;
use crate::ids::{PacketId, PortId, QpId};
use crate::lane::Due;
use crate::memory::{Carver, words_for};
use crate::units::SimTime;
use bytemuck::{Pod, Zeroable};
use core::hint::select_unpredictable;

/// What a frame is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PacketKind {
    /// Payload of a flow.
    Data,
    /// Cumulative acknowledgement.
    Ack,
    /// Acknowledgement that also asks to go back to the first byte missing.
    Nack,
    /// PFC: pause a priority (IEEE 802.1Qbb).
    Pause,
    /// PFC: let a priority go on.
    Resume,
    /// A frame injected from outside.
    External,
}

/// A frame: one cache line.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub struct Packet {
    /// On a wire: when it reaches the other end.
    pub(crate) arrival: EventKey,
    /// Data: first payload byte. ACK and NACK: first byte missing. External: the caller's token.
    pub seq: u64,
    /// When the data packet was built at its NIC.
    pub(crate) sent: SimTime,
    pub(crate) qp: u32,
    pub(crate) next: u32,
    /// The port it came in by.
    pub(crate) ingress: u32,
    /// Bytes on the wire.
    pub bytes: u32,
    /// Payload bytes of a data packet.
    pub payload: u32,
    /// The routing epoch it left its NIC in.
    pub(crate) epoch: u32,
    pub(crate) kind: u8,
    /// Priority (802.1p class).
    pub priority: u8,
    /// The ECN field says "congestion experienced"; in an ACK, the data packet's did.
    pub(crate) marked: u8,
    /// Switches passed so far.
    pub(crate) hop: u8,
    /// Telemetry records appended, also those there was no room for.
    pub(crate) int_hops: u8,
    /// Whether switches append telemetry.
    pub(crate) telemetry: u8,
    /// What its arrival is.
    pub(crate) due: Due,
    pub(crate) pad: u8,
}

const _: () = assert!(size_of::<Packet>() == 64);

impl Packet {
    /// What the frame is.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn kind(&self) -> PacketKind {
        match self.kind {
            0 => PacketKind::Data,
            1 => PacketKind::Ack,
            2 => PacketKind::Nack,
            3 => PacketKind::Pause,
            4 => PacketKind::Resume,
            _ => PacketKind::External,
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn is_data(&self) -> bool {
        self.kind == PacketKind::Data as u8
    }

    /// Whether this is a PFC frame.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn is_pfc(&self) -> bool {
        self.kind == PacketKind::Pause as u8 || self.kind == PacketKind::Resume as u8
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn set_kind(&mut self, kind: PacketKind) {
        self.kind = kind as u8;
    }

    /// The queue pair whose data or acknowledgement this is; [`QpId::NONE`] for PFC and external frames.
    pub fn qp(&self) -> QpId {
        QpId(self.qp)
    }

    /// Whether the ECN mark is set.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn is_marked(&self) -> bool {
        self.marked != 0
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn mark(&mut self) {
        self.marked = 1;
    }

    /// As the head of a lane.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn head(&self) -> (EventKey, Due) {
        (self.arrival, self.due)
    }

    pub(crate) fn ingress(&self) -> PortId {
        PortId(self.ingress)
    }
}

/// All frames of the fabric.
pub(crate) struct PacketPool<'a> {
    packets: &'a mut [Packet],
    /// Slots ever used; those below it are in use or on the free list.
    used: u32,
    free: PacketList,
    live: u32,
}

impl<'a> PacketPool<'a> {
    pub(crate) const fn words(packets: usize) -> usize {
        words_for::<Packet>(packets)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, packets: usize) -> Result<Self, CapacityError> {
        Ok(PacketPool { packets: carver.take(packets)?, used: 0, free: PacketList::EMPTY, live: 0 })
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn available(&self) -> usize {
        self.packets.len() - self.live as usize
    }

    pub(crate) fn live(&self) -> usize {
        self.live as usize
    }

    pub(crate) fn capacity(&self) -> usize {
        self.packets.len()
    }

    /// A slot for a new frame.
    ///
    /// # Panics
    /// If none is [`available`](Self::available): the event loop checks before every event.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn insert(&mut self, packet: Packet) -> PacketId {
        self.live += 1;
        let id = match self.free.head() {
            Some(id) => {
                self.free.head = PacketId(self.get(id).next);
                id
            }
            None => {
                self.used += 1;
                PacketId(self.used - 1)
            }
        };
        self.packets[id.index()] = packet;
        id
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn remove(&mut self, id: PacketId) {
        self.live -= 1;
        self.packets[id.index()].next = self.free.head.0;
        self.free.head = id;
    }

    /// Keeps room for frames that will come.
    pub(crate) fn hold(&mut self, frames: usize) {
        self.live += frames as u32;
    }

    /// Gives room back that was kept.
    pub(crate) fn release(&mut self, frames: usize) {
        self.live -= frames as u32;
    }

    /// Gives the slot of a frame back, but keeps room for the frame: it will return.
    pub(crate) fn shelve(&mut self, id: PacketId) {
        self.live += 1;
        self.remove(id);
    }

    /// A slot for a frame that returns.
    pub(crate) fn unshelve(&mut self, packet: Packet) -> PacketId {
        self.live -= 1;
        self.insert(packet)
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn get(&self, id: PacketId) -> &Packet {
        &self.packets[id.index()]
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn get_mut(&mut self, id: PacketId) -> &mut Packet {
        &mut self.packets[id.index()]
    }

    /// Changes a frame, if there is one, and all that follow it in its list.
    pub(crate) fn change_from(&mut self, first: PacketId, mut change: impl FnMut(&mut Packet)) {
        let mut next = first;
        while next.is_some() {
            let packet = self.get_mut(next);
            change(packet);
            next = PacketId(packet.next);
        }
    }
}

/// A first-in first-out list of frames.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct PacketList {
    head: PacketId,
    tail: PacketId,
}

impl PacketList {
    pub(crate) const EMPTY: PacketList = PacketList { head: PacketId::NONE, tail: PacketId::NONE };

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn is_empty(&self) -> bool {
        self.head.is_none()
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn head(&self) -> Option<PacketId> {
        (!self.is_empty()).then_some(self.head)
    }

    /// The frames, oldest first.
    pub(crate) fn iter<'p>(&self, pool: &'p PacketPool<'_>) -> impl Iterator<Item = PacketId> + 'p {
        core::iter::successors(self.head(), |id| {
            let next = PacketId(pool.get(*id).next);
            next.is_some().then_some(next)
        })
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn push(&mut self, pool: &mut PacketPool<'_>, id: PacketId) {
        // Whether a queue is empty is hard to guess. So this is no branch: the first frame is its own predecessor for
        // a moment.
        let is_first = self.is_empty();
        pool.get_mut(select_unpredictable(is_first, id, self.tail)).next = id.0;
        pool.get_mut(id).next = PacketId::NONE.0;
        self.head = select_unpredictable(is_first, id, self.head);
        self.tail = id;
    }

    /// Puts a frame in order of arrival into a list that is in that order, behind `after`.
    pub(crate) fn insert(&mut self, pool: &mut PacketPool<'_>, after: Option<PacketId>, id: PacketId) {
        let arrival = pool.get(id).arrival;
        let mut before = after;
        let mut next = after.map_or(self.head, |after| PacketId(pool.get(after).next));
        while next.is_some() && pool.get(next).arrival < arrival {
            before = Some(next);
            next = PacketId(pool.get(next).next);
        }
        pool.get_mut(id).next = next.0;
        match before {
            None => self.head = id,
            Some(before) => pool.get_mut(before).next = id.0,
        }
        if next.is_none() {
            self.tail = id;
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn pop(&mut self, pool: &PacketPool<'_>) -> Option<PacketId> {
        let id = self.head()?;
        self.head = PacketId(pool.get(id).next);
        Some(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_reused_and_lists_keep_order() {
        let mut words = [0u64; 64];
        let mut pool = PacketPool::carve(&mut Carver::new(&mut words), 4).unwrap();
        let mut list = PacketList::EMPTY;
        for round in 0..3 {
            for seq in 0..4 {
                let id = pool.insert(Packet { seq: round * 10 + seq, ..Packet::default() });
                list.push(&mut pool, id);
            }
            assert_eq!(pool.available(), 0);
            for seq in 0..4 {
                let id = list.pop(&pool).unwrap();
                assert_eq!(pool.get(id).seq, round * 10 + seq);
                pool.remove(id);
            }
            assert!(list.is_empty() && list.pop(&pool).is_none());
            assert_eq!(pool.available(), 4);
        }
    }
}

//! The changing part of a port: its queues, its transmitter, and the lane of frames on the wire.

use crate::error::CapacityError;
use crate::event::EventKey;
use crate::fabric::PortInfo;
use crate::ids::{NodeId, PartitionId, PortId};
use crate::lane::Due;
use crate::memory::{Carver, words_for};
use crate::nic::NicQueue;
use crate::packet::{Packet, PacketList};
use crate::scheduler::{CONTROL_PRIORITY, PRIORITIES};
use crate::units::{BitRate, SimTime, Span};
use bytemuck::{Pod, Zeroable};
use core::ops::{Index, IndexMut};

/// What a port has counted since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PortStats {
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Most bytes ever waiting here.
    pub max_queue: u64,
    /// Frames marked with ECN as they left.
    pub marks: u64,
    /// PAUSE frames that arrived here.
    pub pauses: u64,
    /// Frames lost here: refused by the buffer, lost by the link, without a route, or on a dead link.
    pub drops: u64,
    /// Sum over all frames of their bytes times the nanoseconds they waited here: the integral of the queue over time.
    pub queue_byte_ns: u64,
    /// Time that was skipped, not simulated; the counters above include what was sent in it.
    pub skipped: Span,
}

/// What acceleration keeps of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct Parking {
    /// Most bytes ever waiting before they were measured anew.
    pub(crate) longest: u64,
    /// Most that a parked partition may come to have here.
    pub(crate) reserved: u64,
    /// Time that was skipped.
    pub(crate) skipped: Span,
}

/// One priority's queue of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct PriorityQueue {
    pub(crate) frames: PacketList,
    pub(crate) bytes: u64,
}

/// Which lanes frames of a size went to last (see `lane`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct LaneHints {
    pub(crate) tx_done: u8,
    pub(crate) arrival: u8,
}

/// What is known of frames of a size seen lately.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
struct TxCache {
    bytes: u32,
    hints: LaneHints,
    pad: u16,
    /// Serialisation time.
    time: Span,
}

/// A port: a cache line that every frame needs, one that most need, and the rest.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Port {
    /// When the transmitter is done with its last frame.
    pub(crate) idle_from: EventKey,
    /// Bytes waiting, all priorities.
    pub(crate) backlog: u64,
    pub(crate) delay: Span,
    pub(crate) peer: PortId,
    /// Copies of what the fabric knows, so that a frame's way touches one table less.
    pub(crate) node: NodeId,
    /// In a lane of transmissions: the next port. Sending, but in no lane: the last port of its lane when it began.
    pub(crate) next_done: u32,
    /// Bit p: priority p has a frame waiting.
    pub(crate) occupied: u8,
    /// Bit p: the peer has paused priority p.
    pub(crate) paused: u8,
    /// Bit p: this port has paused its peer's priority p.
    pub(crate) pausing: u8,
    /// State of the egress scheduler.
    pub(crate) scheduler: u8,
    pub(crate) at_host: u8,
    pub(crate) is_up: u8,
    /// Bit p: a flow of the partition sends at priority p here.
    pub(crate) priorities: u8,
    /// Whether the other end belongs to another shard.
    pub(crate) crosses: u8,
    /// Whether something waits for the end of the present transmission: [`IN_LANE`], [`HAS_TIMER`], or 0.
    pub(crate) awaits_done: u8,
    /// The lane that the end of the present transmission belongs in.
    pub(crate) done_lane: u8,
    /// What the arrivals of data and of ACKs at the other end are.
    arrivals: [Due; 2],
    pub(crate) queue_byte_ns: u64,

    /// Of a small and of a large size: traffic has two, ACKs and data.
    tx_cache: [TxCache; 2],
    pub(crate) sent_frames: u64,
    pub(crate) sent_bytes: u64,
    /// Most bytes waiting, since the partition has been watched or recorded.
    pub(crate) max_queue: u64,
    pub(crate) rate: BitRate,

    pub(crate) marks: u64,
    pub(crate) pauses: u64,
    pub(crate) drops: u64,
    /// Since when a priority has been paused, for reports of deadlocks.
    pub(crate) paused_since: SimTime,
    /// Frames on the wire that found no lane, oldest first. Only the oldest has a timer.
    pub(crate) lane: PacketList,
    /// The partition it is in, and the next port there.
    pub(crate) partition: PartitionId,
    pub(crate) next_member: PortId,
    /// Its number in the partition, while a snapshot is made.
    pub(crate) local: u32,
    /// The last search that found it, and the port found next.
    pub(crate) found_by: u32,
    pub(crate) next_found: PortId,
    /// Wake-ups of the NIC that have come, those skipped among them, modulo 2^32.
    pub(crate) wakes: u32,
}

const _: () = assert!(size_of::<Port>() == 192);

/// The end of the transmission is in a lane.
pub(crate) const IN_LANE: u8 = 1;
/// It has a timer.
pub(crate) const HAS_TIMER: u8 = 2;

impl Port {
    pub(crate) fn new(info: &PortInfo, at_host: bool, peer_at_host: bool) -> Port {
        let is_lossy = info.loss != 0;
        let arrivals = if is_lossy { [Due::FRAME; 2] } else { [Due::data(peer_at_host), Due::ack(peer_at_host)] };
        Port {
            lane: PacketList::EMPTY,
            peer: info.peer,
            node: info.node,
            delay: info.delay,
            at_host: at_host as u8,
            is_up: info.is_up() as u8,
            rate: info.rate,
            arrivals,
            partition: PartitionId::NONE,
            ..Port::zeroed()
        }
    }

    #[inline(always)]
    pub(crate) fn is_at_host(&self) -> bool {
        self.at_host != 0
    }

    /// Whether the link is up.
    #[inline(always)]
    pub(crate) fn is_up(&self) -> bool {
        self.is_up != 0
    }

    /// What the arrival of a frame at the other end is.
    #[inline(always)]
    pub(crate) fn arrival_of(&self, packet: &Packet) -> Due {
        self.arrivals.get(packet.kind as usize).copied().unwrap_or(Due::FRAME)
    }

    /// As the head of a lane.
    #[inline(always)]
    pub(crate) fn head(&self) -> (EventKey, Due) {
        (self.idle_from, Due::tx_done(self.is_at_host()))
    }

    pub(crate) fn stats(&self, parking: &Parking) -> PortStats {
        PortStats {
            frames: self.sent_frames,
            bytes: self.sent_bytes,
            max_queue: self.max_queue.max(parking.longest),
            marks: self.marks,
            pauses: self.pauses,
            drops: self.drops,
            queue_byte_ns: self.queue_byte_ns,
            skipped: parking.skipped,
        }
    }

    /// Bits of the priorities that may send now.
    #[inline(always)]
    pub(crate) fn ready(&self) -> u8 {
        // PFC frames travel in the control priority, so that one is never paused.
        self.occupied & (!self.paused | 1 << CONTROL_PRIORITY)
    }

    /// Whether there may be something to send as soon as the transmitter is done.
    #[inline(always)]
    pub(crate) fn may_send_more(&self, nic: &NicQueue) -> bool {
        self.occupied != 0 || self.is_at_host() && !nic.is_empty()
    }

    #[inline(always)]
    fn cache_of(&mut self, bytes: u32) -> &mut TxCache {
        &mut self.tx_cache[(bytes > 256) as usize]
    }

    /// Serialisation time of frames of this size; `time` finds it out if it is not known.
    #[inline(always)]
    pub(crate) fn tx_time(&mut self, bytes: u32, time: impl FnOnce() -> Span) -> Span {
        let cache = self.cache_of(bytes);
        if cache.bytes != bytes {
            cache.bytes = bytes;
            cache.time = time();
        }
        cache.time
    }

    #[inline(always)]
    pub(crate) fn lane_hints(&mut self, bytes: u32) -> &mut LaneHints {
        &mut self.cache_of(bytes).hints
    }
}

/// Something that every port has of each priority. All of one priority are side by side: traffic uses few of them, and
/// these take few cache lines then.
pub(crate) struct PerPriority<'a, T> {
    all: &'a mut [T],
    ports: usize,
}

impl<'a, T: Pod> PerPriority<'a, T> {
    pub(crate) const fn words(ports: usize) -> usize {
        words_for::<T>(ports * PRIORITIES)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, ports: usize) -> Result<Self, CapacityError> {
        Ok(PerPriority { all: carver.take(ports * PRIORITIES)?, ports })
    }

    pub(crate) fn fill(&mut self, value: T) {
        self.all.fill(value);
    }
}

impl<T> Index<(PortId, u8)> for PerPriority<'_, T> {
    type Output = T;

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn index(&self, (port, priority): (PortId, u8)) -> &T {
        &self.all[priority as usize * self.ports + port.index()]
    }
}

impl<T> IndexMut<(PortId, u8)> for PerPriority<'_, T> {
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn index_mut(&mut self, (port, priority): (PortId, u8)) -> &mut T {
        &mut self.all[priority as usize * self.ports + port.index()]
    }
}

impl PriorityQueue {
    pub(crate) const EMPTY: PriorityQueue = PriorityQueue { frames: PacketList::EMPTY, bytes: 0 };
}

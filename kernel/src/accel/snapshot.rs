//! Snapshots: the state of a partition, relative to a moment, to the bytes its flows have acknowledged and to the
//! counters of its ports.
//!
//! Equal snapshots are equal states: whatever happens to the partition on its own will be the same. A snapshot is set
//! up again at any other moment, with any other counters.
//!
//! Layout, in words: a header (the numbers of queue pairs and ports and of what is pending; where the congestion
//! controls, the ids and what is pending begin); the ports; the queue pairs; the frames in queues; then all that is
//! pending, frames on wires and timers, in the order in which it comes due; last the states of the congestion controls,
//! a piece each. Entities are named by their number in the partition's lists, where finished flows do not count. Behind
//! all that stands what is no part of the state: the ids that the numbers stood for, and counters that tell whether
//! there were pauses, losses or chance since another snapshot.

use super::arena::{Arena, Block};
use super::partition::{for_each_port, for_each_qp};
use crate::buffer::BufferManager;
use crate::cca::{CongestionControl, Origin};
use crate::event::{CCA_TIMERS, Event, EventKey, Tie};
use crate::ids::{PacketId, PartitionId, PortId, QpId};
use crate::kernel::{BufferQueue, CcaState, Kernel, LossLink, MarkerPort};
use crate::lane::Merge;
use crate::marker::Marker;
use crate::models::Models;
use crate::observer::Observer;
use crate::packet::{Packet, PacketList};
use crate::port::Port;
use crate::qp::{CACHED_HOPS, Qp};
use crate::queue::EventQueue;
use crate::router::Router;
use crate::scheduler::{EgressScheduler, PRIORITIES};
use crate::sort::sort_by_key;
use crate::telemetry::{IntHop, MAX_INT_HOPS, Telemetry};
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};

pub(super) const HEADER_WORDS: usize = 5;
const PORT_WORDS: usize = 5;
/// Per port: pauses, losses, and the position in its random sequence.
pub(super) const WITNESS_WORDS: usize = 3;
/// Stands in for the number of a flow that has finished and is still in its NIC's queue.
const FINISHED: u64 = u32::MAX as u64;
const QP_WORDS: usize = 17;
const FRAME_WORDS: usize = 6;
const HOP_WORDS: usize = 3;
/// Key and name of something pending.
const ITEM_WORDS: usize = 3;

/// Something pending, while it is sorted by its key.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Pod, Zeroable)]
struct Item {
    key: EventKey,
    kind: u32,
    /// A packet, port or queue pair.
    id: u32,
}

const FRAME: u32 = 0;
const TX_DONE: u32 = 1;
const WAKE: u32 = 2;
/// And the other timers of congestion controls.
const CCA: u32 = 3;

/// Moves words between tables and a snapshot, one way or the other, so that both ways are written once.
trait Carry {
    fn word(&mut self, value: &mut u64);

    /// A time, as a distance from `origin`.
    fn time(&mut self, at: &mut SimTime, origin: SimTime) {
        self.position(&mut at.0, origin.0);
    }

    /// A number, as a distance from `origin`.
    fn position(&mut self, value: &mut u64, origin: u64) {
        let mut relative = value.wrapping_sub(origin);
        self.word(&mut relative);
        *value = relative.wrapping_add(origin);
    }

    fn pair(&mut self, a: &mut u32, b: &mut u32) {
        let mut both = u64::from(*a) << 32 | u64::from(*b);
        self.word(&mut both);
        (*a, *b) = ((both >> 32) as u32, both as u32);
    }

    fn bytes(&mut self, bytes: [&mut u8; 8]) {
        let mut all = u64::from_le_bytes(core::array::from_fn(|i| *bytes[i]));
        self.word(&mut all);
        let all = all.to_le_bytes();
        bytes.into_iter().zip(all).for_each(|(to, from)| *to = from);
    }

    /// Any plain data, padded to whole words.
    fn pod<T: Pod>(&mut self, value: &mut T) {
        for chunk in bytemuck::bytes_of_mut(value).chunks_mut(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            let mut word = u64::from_le_bytes(word);
            self.word(&mut word);
            chunk.copy_from_slice(&word.to_le_bytes()[..chunk.len()]);
        }
    }
}

struct Store<'s> {
    words: &'s mut [u64],
    at: usize,
}

impl Carry for Store<'_> {
    fn word(&mut self, value: &mut u64) {
        self.words[self.at] = *value;
        self.at += 1;
    }
}

struct Load<'s> {
    words: &'s [u64],
    at: usize,
}

impl Carry for Load<'_> {
    fn word(&mut self, value: &mut u64) {
        *value = self.words[self.at];
        self.at += 1;
    }
}

/// The ids that the numbers in a snapshot stand for.
struct Members<'s> {
    qps: &'s [u64],
    ports: &'s [u64],
}

impl<'s> Members<'s> {
    fn of(words: &'s [u64]) -> Members<'s> {
        let (qps, ports) = counts(words);
        let ids = &words[words[3] as usize..];
        Members { qps: &ids[..qps], ports: &ids[qps..qps + ports] }
    }

    fn all_qps(&self) -> impl Iterator<Item = QpId> + use<'s> {
        self.qps.iter().map(|id| QpId(*id as u32))
    }

    fn all_ports(&self) -> impl Iterator<Item = PortId> + use<'s> {
        self.ports.iter().map(|id| PortId(*id as u32))
    }

    fn qp(&self, number: u32) -> QpId {
        QpId(self.qps[number as usize] as u32)
    }

    fn port(&self, number: u32) -> PortId {
        PortId(self.ports[number as usize] as u32)
    }
}

/// How many queue pairs and ports a snapshot tells of.
pub(super) fn counts(words: &[u64]) -> (usize, usize) {
    ((words[0] >> 32) as usize, words[0] as u32 as usize)
}

/// The state in a snapshot, without what stands behind it.
pub(super) fn state(words: &[u64]) -> &[u64] {
    &words[..words[3] as usize]
}

/// Whether a snapshot has something pending in its own instant.
pub(super) fn is_mid_instant(words: &[u64]) -> bool {
    words[1] > 0 && words[words[4] as usize] == 0
}

/// What stands behind the state in a whole snapshot.
pub(super) fn witness(words: &[u64]) -> &[u64] {
    let (qps, ports) = counts(words);
    &words[words[3] as usize..][..qps + ports + WITNESS_WORDS * ports]
}

/// Words that a value of type `T` takes.
const fn pod_words<T>() -> usize {
    size_of::<T>().div_ceil(8)
}

/// `turn`: the state of the scheduler in its canonical form. It is compared only: what has been served since is not
/// forgotten. `used`: bits of the priorities that anything is told of.
fn carry_port(carry: &mut impl Carry, port: &mut Port, mut turn: u8, used: &mut u8) {
    let Port { occupied, paused, pausing, .. } = port;
    let [a, b, c] = &mut [0; 3];
    carry.bytes([occupied, paused, pausing, &mut turn, used, a, b, c]);
    carry.word(&mut port.backlog);
}

/// The priorities whose bits are set.
fn priorities(bits: u8) -> impl Iterator<Item = u8> {
    (0..PRIORITIES as u8).filter(move |priority| bits >> priority & 1 != 0)
}

/// `chunk`: where in its chunk the receiver is matters to what it acknowledges; `begun`: so does whether it has come
/// so far that it acknowledges all.
fn carry_qp(carry: &mut impl Carry, qp: &mut Qp, now: SimTime, chunk: u64, mut begun: u64) {
    let acked = qp.snd_una;
    carry.position(&mut qp.snd_nxt, acked);
    carry.position(&mut qp.expected, acked);
    carry.word(&mut qp.control.window);
    carry.word(&mut qp.control.rate.0);
    carry.time(&mut qp.next_avail, now);
    if qp.timeout == Span::MAX || qp.in_flight() == 0 {
        // There is no time-out to wait for.
        qp.deadline = now;
    }
    carry.time(&mut qp.deadline, now);
    let (mut last_bytes, mut retries) = (qp.last_bytes, qp.retries);
    carry.pair(&mut last_bytes, &mut retries);
    (qp.last_bytes, qp.retries) = (last_bytes, retries);
    if qp.nack_until <= now {
        (qp.nack_until, qp.last_nack) = (now, acked);
    }
    carry.time(&mut qp.nack_until, now);
    carry.position(&mut qp.last_nack, acked);
    let mut phase = if chunk == 0 { 0 } else { qp.expected % chunk };
    carry.word(&mut phase);
    carry.word(&mut begun);
    // Cached for a rate and a size: not known at the new ones.
    qp.paced_rate.0 = 0;
}

fn carry_frame(carry: &mut impl Carry, frame: &mut Packet, now: SimTime, acked: u64) {
    let Packet { kind, priority, marked, hop, int_hops, telemetry, .. } = frame;
    let (a, b) = (&mut 0, &mut 0);
    carry.bytes([kind, priority, marked, hop, int_hops, telemetry, a, b]);
    carry.pair(&mut frame.bytes, &mut frame.payload);
    carry.position(&mut frame.seq, acked);
    carry.time(&mut frame.sent, now);
    carry.time(&mut frame.arrival.at, now);
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Numbers the open flows of a partition; gives how many there are.
    pub(super) fn number_qps(&mut self, id: PartitionId) -> usize {
        let mut qps = 0;
        for_each_qp!(self, id, qp, {
            let slot = &mut self.qps.slots[qp.index()];
            slot.local = if slot.is_open() { qps } else { FINISHED as u32 };
            qps += u32::from(slot.is_open());
        });
        qps as usize
    }

    /// Numbers the ports of a partition; gives how many there are.
    pub(super) fn number_ports(&mut self, id: PartitionId) -> usize {
        let mut ports = 0;
        for_each_port!(self, id, port, {
            self.ports[port.index()].local = ports;
            ports += 1;
        });
        ports as usize
    }

    /// Numbers the members of a partition, and says how many words a snapshot may take.
    fn number(&mut self, id: PartitionId) -> usize {
        let (qps, ports, frames) = (self.number_qps(id), self.number_ports(id), self.frames(id));
        let mut policies = ports * pod_words::<MarkerPort<M>>();
        for_each_port!(self, id, port, {
            let used = self.used_priorities(port).count_ones() as usize;
            // Bytes and frames of a queue, and what is held at the other end.
            policies += used * (2 + pod_words::<BufferQueue<M>>());
            policies += usize::from(self.fabric.port(port).loss != 0) * pod_words::<LossLink<M>>();
        });
        let hops = if self.models.telemetry_needed() { MAX_INT_HOPS * HOP_WORDS } else { 0 };
        let items = self.most_items(id);
        // Every member is in one NIC's queue at most, those that have finished too.
        let queued = self.partitions.get(id).qps as usize;
        HEADER_WORDS
            + qps
            + queued
            + ports * (1 + WITNESS_WORDS + PORT_WORDS)
            + policies
            + qps * (QP_WORDS + 1 + pod_words::<CcaState<M>>())
            + frames * (FRAME_WORDS + 1 + hops)
            + items * (ITEM_WORDS + size_of::<Item>() / 8)
    }

    /// Whether the state of a partition can be told: its flows are under way or have left nothing behind, nothing in
    /// it is about to change in a way that only the whole fabric could tell.
    fn is_regular(&self, id: PartitionId) -> bool {
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            let is_regular = if slot.is_open() {
                slot.path_epoch == self.route_epoch && slot.retries == 0
            } else {
                slot.frames == 0
            };
            if !is_regular {
                return false;
            }
        });
        for_each_port!(self, id, port, {
            let state = &self.ports[port.index()];
            if state.paused | state.pausing != 0 || !state.is_up() {
                return false;
            }
        });
        self.visitors == 0
    }

    /// Takes a snapshot of an active partition. `None` if there is no room for it, or its state cannot be told apart
    /// from its surroundings.
    pub(crate) fn capture(&mut self, id: PartitionId) -> Option<Block> {
        if !self.is_regular(id) {
            return None;
        }
        let words = self.number(id);
        let mut block = self.arena.alloc(words)?;
        // Lent out for as long as it is filled.
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let filled = self.fill(id, arena.get_mut(block));
        self.arena = arena;
        match filled {
            // Mostly much less than it may take.
            Some(words) => self.arena.shorten(&mut block, words),
            None => self.arena.free(&mut block),
        }
        filled.map(|_| block)
    }

    /// Writes the snapshot; gives its length.
    fn fill(&mut self, id: PartitionId, words: &mut [u64]) -> Option<usize> {
        let (mut qps, ports) = (0, self.partitions.get(id).ports);
        let store = &mut Store { words, at: HEADER_WORDS };
        for_each_port!(self, id, port, {
            self.carry_port_and_policies(store, port);
            self.store_nic(store, port);
        });
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                self.carry_queue_pair(store, qp);
                qps += 1;
            }
        });
        for_each_port!(self, id, port, {
            self.store_queues(store, port)?;
        });
        let pending_at = store.at as u64;
        let items = self.store_pending(store, id)?;
        let cca_at = store.at as u64;
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                let mut state = self.relative_cca(qp)?;
                store.pod(&mut state);
            }
        });
        let ids_at = store.at as u64;
        self.store_ids(store, id);
        self.store_witness(store, id);
        let header = [qps << 32 | u64::from(ports), items, cca_at, ids_at, pending_at];
        store.words[..HEADER_WORDS].copy_from_slice(&header);
        Some(store.at)
    }

    fn store_ids(&self, store: &mut Store<'_>, id: PartitionId) {
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                store.word(&mut u64::from(qp.0));
            }
        });
        for_each_port!(self, id, port, {
            store.word(&mut u64::from(port.0));
        });
    }

    fn store_witness(&self, store: &mut Store<'_>, id: PartitionId) {
        for_each_port!(self, id, port, {
            self.port_witness(port).iter_mut().for_each(|word| store.word(word));
        });
    }

    /// What tells that there were pauses, losses or chance at a port: these counters stand still otherwise.
    pub(super) fn port_witness(&self, port: PortId) -> [u64; WITNESS_WORDS] {
        let Port { pauses, drops, .. } = self.ports[port.index()];
        [pauses, drops, self.models.marker.position(&self.marker_ports[port.index()])]
    }

    fn carry_queue_pair(&mut self, carry: &mut impl Carry, qp: QpId) {
        let (transport, slot) = (&self.models.transport, &mut self.qps.slots[qp.index()]);
        let begun = slot.expected.min(transport.ack_interval);
        // The chunk length, if it has an effect on what a receiver does.
        let counts = transport.back_to_chunk || begun < transport.ack_interval;
        carry_qp(carry, slot, self.clock.now(), if counts { transport.chunk } else { 0 }, begun);
    }

    fn carry_port_and_policies(&mut self, carry: &mut impl Carry, port: PortId) {
        let info = *self.fabric.port(port);
        let mut used = self.used_priorities(port);
        let state = &mut self.ports[port.index()];
        let turn = self.models.scheduler.canonical(state.scheduler, state.priorities);
        carry_port(carry, state, turn, &mut used);
        let (time_unit, byte_unit) = self.telemetry_units();
        let mut phase = self.ports[port.index()].sent_bytes % byte_unit;
        carry.word(&mut phase);
        let mut phase = self.clock.now().0 % time_unit.0;
        carry.word(&mut phase);
        for priority in 0..PRIORITIES as u8 {
            let bytes = &mut self.queues[(port, priority)].bytes;
            // What this port's frames hold at the other end.
            let held = &mut self.buffer_queues[(info.peer, priority)];
            let mut to = *held;
            if used >> priority & 1 != 0 {
                carry.word(bytes);
                carry.pod(&mut to);
            } else {
                (*bytes, to) = (0, BufferQueue::<M>::zeroed());
            }
            let node = self.fabric.port(info.peer).node;
            self.models.buffers.replace(&mut self.switches[node.index()], held, to);
        }
        self.carry_marker(carry, port);
        if info.loss != 0 {
            carry.pod(&mut self.loss_links[info.link.index()]);
        }
    }

    /// Bits of the priorities of which a port has bytes waiting, or holds some at the other end. Mostly one or none.
    fn used_priorities(&self, port: PortId) -> u8 {
        let peer = self.fabric.port(port).peer;
        let nothing: BufferQueue<M> = Zeroable::zeroed();
        let is_used = |priority: u8| {
            let held = &self.buffer_queues[(peer, priority)];
            self.queues[(port, priority)].bytes != 0 || bytemuck::bytes_of(held) != bytemuck::bytes_of(&nothing)
        };
        priorities(u8::MAX).filter(|priority| is_used(*priority)).fold(0, |bits, priority| bits | 1 << priority)
    }

    /// Where chance is stays where it is.
    fn carry_marker(&mut self, carry: &mut impl Carry, port: PortId) {
        let marker = &self.models.marker;
        let state = &mut self.marker_ports[port.index()];
        let position = marker.position(state);
        marker.set_position(state, 0);
        carry.pod(state);
        marker.set_position(state, position);
    }

    /// What telemetry rounds clock and counters down to, if any flow reads it.
    pub(super) fn telemetry_units(&self) -> (Span, u64) {
        if self.models.telemetry_needed() { self.models.telemetry.units() } else { (Span(1), 1) }
    }

    /// The order of a NIC's queue pairs, and its position among them: the place in the queue, and the policy's index.
    fn store_nic(&self, store: &mut Store<'_>, port: PortId) {
        let nic = &self.nics[port.index()];
        let (mut length, position_at) = (nic.len() as u64, store.at + 1);
        let mut position = u64::MAX << 32 | u64::from(nic.cursor_index);
        store.word(&mut length);
        store.word(&mut position);
        let mut qp = nic.first();
        for place in 0..length {
            if qp == nic.cursor {
                store.words[position_at] = place << 32 | u64::from(nic.cursor_index);
            }
            store.word(&mut u64::from(self.qps.slots[qp.index()].local));
            qp = nic.next(self.qps.slots, qp);
        }
    }

    /// Takes a NIC's position over; its queue stays as it is.
    fn load_nic(&mut self, load: &mut Load<'_>, port: PortId) {
        let (mut length, mut position) = (0, 0);
        load.word(&mut length);
        load.word(&mut position);
        load.at += length as usize;
        let nic = &mut self.nics[port.index()];
        nic.cursor_index = position as u32;
        nic.cursor = QpId::NONE;
        let mut qp = nic.first();
        for place in 0..length {
            if place == position >> 32 {
                nic.cursor = qp;
            }
            qp = nic.next(self.qps.slots, qp);
        }
    }

    fn store_queues(&mut self, store: &mut Store<'_>, port: PortId) -> Option<()> {
        for priority in priorities(self.ports[port.index()].occupied) {
            let frames = &self.queues[(port, priority)].frames;
            let mut count = frames.iter(&self.packets).count() as u64;
            store.word(&mut count);
            let mut next = frames.head();
            while let Some(id) = next {
                self.store_frame(store, id)?;
                let after = PacketId(self.packets.get(id).next);
                next = after.is_some().then_some(after);
            }
        }
        Some(())
    }

    fn store_frame(&mut self, store: &mut Store<'_>, id: PacketId) -> Option<()> {
        let mut frame = *self.packets.get(id);
        let qp = frame.qp();
        if qp.is_none() || frame.epoch != self.route_epoch || frame.int_hops as usize > MAX_INT_HOPS {
            return None;
        }
        let slot = &self.qps.slots[qp.index()];
        let sender = self.fabric.port(frame.ingress()).peer;
        let (mut qp_number, mut sender) = (slot.local, self.ports[sender.index()].local);
        store.pair(&mut qp_number, &mut sender);
        carry_frame(store, &mut frame, self.clock.now(), slot.snd_una);
        let mut hops = [IntHop::default(); MAX_INT_HOPS];
        let hops = self.headers.read(&self.models.telemetry, id, &frame, &mut hops);
        for (number, hop) in (0..).zip(hops) {
            let origin = self.hop_origin(qp, number)?;
            // An acknowledgement tells of the path that its data took, which the flow may have left since.
            if hop.rate != origin.rate {
                return None;
            }
            let mut relative = self.models.telemetry.relative(*hop, &origin);
            store.word(&mut relative.at.0);
            store.word(&mut relative.tx_bytes);
            store.word(&mut relative.queue);
        }
        Some(())
    }

    /// What a packet of a flow would read from a hop of its path if it left there now.
    /// Nothing is known of sprayed packets.
    fn hop_origin(&self, qp: QpId, hop: u8) -> Option<IntHop> {
        if !M::Router::PER_FLOW {
            return None;
        }
        let port = if (hop as usize) < CACHED_HOPS { self.qps.paths[qp.index()].port(true, hop) } else { PortId::NONE };
        let state = self.ports.get(port.index())?;
        let rate = self.fabric.port(port).rate;
        let exact = IntHop { at: self.clock.now(), tx_bytes: state.sent_bytes, rate, queue: 0 };
        let telemetry = &self.models.telemetry;
        Some(telemetry.read(&telemetry.record(&exact)))
    }

    /// Calls `use_it` with the origin that the state of a flow's congestion control is measured from.
    fn with_origin<R>(&self, qp: QpId, use_it: impl FnOnce(&M::Cca, &CcaState<M>, &Origin<'_>) -> R) -> R {
        let slot = &self.qps.slots[qp.index()];
        let mut hops = heapless::Vec::<IntHop, MAX_INT_HOPS>::new();
        if slot.telemetry != 0 {
            hops.extend((0..MAX_INT_HOPS as u8).map_while(|hop| self.hop_origin(qp, hop)));
        }
        let origin = Origin { now: self.clock.now(), acked: slot.snd_una, hops: &hops };
        use_it(&self.models.ccas[slot.cca as usize], &self.qps.cca[qp.index()], &origin)
    }

    /// Words of the state of a congestion control.
    pub(super) const CCA_WORDS: usize = pod_words::<CcaState<M>>();

    /// The state of a congestion control in a snapshot.
    pub(super) fn cca_of(words: &[u64]) -> CcaState<M> {
        bytemuck::pod_read_unaligned(&bytemuck::cast_slice(words)[..size_of::<CcaState<M>>()])
    }

    pub(super) fn relative_cca(&self, qp: QpId) -> Option<CcaState<M>> {
        self.with_origin(qp, |cca, state, origin| cca.relative(state, origin))
    }

    /// Stores what is pending, in order. Gives the number of things.
    fn store_pending(&mut self, store: &mut Store<'_>, id: PartitionId) -> Option<u64> {
        let now = self.clock.now();
        // The end of the block serves for sorting.
        let (words, scratch) = {
            let items = self.most_items(id);
            let all = core::mem::take(&mut store.words);
            let split = all.len() - items * (size_of::<Item>() / 8);
            all.split_at_mut(split)
        };
        let items: &mut [Item] = bytemuck::cast_slice_mut(scratch);
        store.words = words;
        let count = self.gather(id, items)?;
        let items = &mut items[..count];
        sort_by_key(items, |item| *item);
        let mut rank = 0;
        for i in 0..count {
            let item = items[i];
            // Of one instant and delay only the order counts.
            let same = i > 0 && items[i - 1].key.at == item.key.at && items[i - 1].key.tie.same_delay(item.key.tie);
            rank = if same { rank + 1 } else { 0 };
            let mut at = item.key.at;
            store.time(&mut at, now);
            let mut tie = item.key.tie.delay().map(|_| item.key.tie.with_count(rank))?.0;
            store.word(&mut tie);
            let local = match item.kind {
                FRAME => 0,
                TX_DONE | WAKE => self.ports[item.id as usize].local,
                _ => self.qps.slots[item.id as usize].local,
            };
            let (mut kind, mut local) = (item.kind, local);
            store.pair(&mut kind, &mut local);
            if kind == FRAME {
                self.store_frame(store, PacketId(item.id))?;
            }
        }
        Some(count as u64)
    }

    /// Frames of a partition's flows.
    pub(super) fn frames(&self, id: PartitionId) -> usize {
        let mut frames = 0;
        for_each_qp!(self, id, qp, {
            frames += self.qps.slots[qp.index()].frames as usize;
        });
        frames
    }

    /// Frames of a partition's flows that wait in no queue.
    pub(super) fn frames_on_wires(&self, id: PartitionId) -> usize {
        let mut frames = self.frames(id);
        for_each_port!(self, id, port, {
            if self.ports[port.index()].occupied != 0 {
                for priority in 0..PRIORITIES as u8 {
                    frames -= self.queues[(port, priority)].frames.iter(&self.packets).count();
                }
            }
        });
        frames
    }

    /// As many things as can be pending in a partition.
    fn most_items(&self, id: PartitionId) -> usize {
        let partition = self.partitions.get(id);
        2 * partition.ports as usize + CCA_TIMERS * partition.qps as usize + self.frames(id)
    }

    /// Gathers all that is pending in a partition. Time-outs are left out: when their checks come follows from their
    /// deadlines. `None` if a PFC frame is on its way here, or a frame of others is in a port's own lane.
    fn gather(&mut self, id: PartitionId, items: &mut [Item]) -> Option<usize> {
        let mut count = 0;
        let mut add = |key, kind, id| {
            items[count] = Item { key, kind, id };
            count += 1;
        };
        let (mut foreign, mut left) = (false, self.frames_on_wires(id));
        // PFC frames are rare, but where there is one in the fabric all must be looked at.
        let pfc_about = self.pfc_frames > 0;
        self.lanes.each_frame(&self.packets, |frame, packet| {
            if packet.qp().is_none() {
                foreign |= self.ports[packet.ingress().index()].partition == id;
            } else if self.qps.slots[packet.qp().index()].partition == id {
                add(packet.arrival, FRAME, frame.0);
                left -= 1;
            }
            left == 0 && !pfc_about
        });
        for_each_port!(self, id, port, {
            let state = &self.ports[port.index()];
            for frame in state.lane.iter(&self.packets) {
                let packet = self.packets.get(frame);
                // There was no room made for others', of which there may be any number.
                if self.qps.slots.get(packet.qp().index()).is_some_and(|slot| slot.partition == id) {
                    add(packet.arrival, FRAME, frame.0);
                } else {
                    foreign = true;
                }
            }
            foreign |= !self.ports[state.peer.index()].lane.is_empty() && self.has_own_pfc(state.peer);
            if state.idle_from > self.clock.current() {
                add(state.idle_from, TX_DONE, port.0);
            }
            if let Some(key) = self.events.pending(self.timers.timer(Event::Wake(port))) {
                add(key, WAKE, port.0);
            }
        });
        for_each_qp!(self, id, qp, {
            for timer in 0..CCA_TIMERS {
                if let Some(key) = self.events.pending(self.timers.timer(Event::Cca(qp, timer))) {
                    add(key, CCA + timer as u32, qp.0);
                }
            }
        });
        (!foreign).then_some(count)
    }

    fn has_own_pfc(&self, port: PortId) -> bool {
        self.ports[port.index()].lane.iter(&self.packets).any(|frame| self.packets.get(frame).is_pfc())
    }

    /// Sets the members of a snapshot, at `from` in its block, up as it says, now, and with the counters and
    /// acknowledged bytes they have now. Their frames and timers must be out of the simulation.
    pub(crate) fn restore(&mut self, block: Block, from: usize) {
        let arena = core::mem::replace(&mut self.arena, Arena::empty());
        self.set_up(&arena.get(block)[from..]);
        self.arena = arena;
    }

    fn set_up(&mut self, words: &[u64]) {
        let members = Members::of(words);
        let load = &mut Load { words, at: HEADER_WORDS };
        for port in members.all_ports() {
            self.carry_port_and_policies(load, port);
            self.load_nic(load, port);
            self.ports[port.index()].idle_from = EventKey::default();
            self.ports[port.index()].awaits_done = 0;
            self.ports[port.index()].next_done = PortId::NONE.0;
        }
        for qp in members.all_qps() {
            self.carry_queue_pair(load, qp);
            self.qps.slots[qp.index()].frames = 0;
        }
        for port in members.all_ports() {
            self.load_queues(load, &members, port);
        }
        self.load_pending(load, &members, words[1]);
        for qp in members.all_qps() {
            let mut state = CcaState::<M>::zeroed();
            load.pod(&mut state);
            self.qps.cca[qp.index()] = self.with_origin(qp, |cca, _, origin| cca.absolute(&state, origin));
            self.resume_timeout(qp);
        }
    }

    fn load_queues(&mut self, load: &mut Load<'_>, members: &Members<'_>, port: PortId) {
        for priority in priorities(self.ports[port.index()].occupied) {
            let mut count = 0;
            load.word(&mut count);
            for _ in 0..count {
                let frame = self.load_frame(load, members);
                self.queues[(port, priority)].frames.push(&mut self.packets, frame);
            }
        }
    }

    fn load_frame(&mut self, load: &mut Load<'_>, members: &Members<'_>) -> PacketId {
        let (mut qp, mut sender) = (0, 0);
        load.pair(&mut qp, &mut sender);
        let (qp, sender) = (members.qp(qp), members.port(sender));
        let mut frame = Packet { qp: qp.0, epoch: self.route_epoch, ..Packet::default() };
        frame.ingress = self.fabric.port(sender).peer.0;
        carry_frame(load, &mut frame, self.clock.now(), self.qps.slots[qp.index()].snd_una);
        frame.due = self.ports[sender.index()].arrival_of(&frame);
        self.qps.slots[qp.index()].frames += 1;
        let packet = self.packets.unshelve(frame);
        for hop in 0..frame.int_hops {
            let mut relative = IntHop::default();
            load.word(&mut relative.at.0);
            load.word(&mut relative.tx_bytes);
            load.word(&mut relative.queue);
            if let Some(origin) = self.hop_origin(qp, hop) {
                relative.rate = origin.rate;
                let telemetry = &self.models.telemetry;
                self.headers.set(packet, hop, telemetry.record(&telemetry.absolute(relative, &origin)));
            }
        }
        packet
    }

    fn load_pending(&mut self, load: &mut Load<'_>, members: &Members<'_>, items: u64) {
        let now = self.clock.now();
        let mut merge = Merge::default();
        let mut last = EventKey::default();
        for _ in 0..items {
            let mut key = EventKey { at: now, tie: Tie::default() };
            load.time(&mut key.at, now);
            load.word(&mut key.tie.0);
            if key.at == last.at && key.tie.same_delay(last.tie) {
                // What came before may have had to give way to other partitions.
                key.tie = key.tie.with_count(key.tie.count().max(last.tie.count() + 1));
            }
            let (mut kind, mut local) = (0, 0);
            load.pair(&mut kind, &mut local);
            match kind {
                FRAME => {
                    let frame = self.load_frame(load, members);
                    self.packets.get_mut(frame).arrival = key;
                    self.on_wire += 1;
                    self.put_on_wire(frame, &mut merge);
                    key = self.packets.get(frame).arrival;
                }
                TX_DONE => {
                    let port = members.port(local);
                    let state = &mut self.ports[port.index()];
                    state.idle_from = key;
                    if state.may_send_more(&self.nics[port.index()]) {
                        self.put_back_tx_done(port, &mut merge);
                    }
                    key = self.ports[port.index()].idle_from;
                }
                WAKE => {
                    let port = members.port(local);
                    self.wakes += 1;
                    self.schedule(Event::Wake(port), key);
                }
                _ => {
                    let qp = members.qp(local);
                    self.schedule(Event::Cca(qp, (kind - CCA) as usize), key);
                }
            }
            last = key;
        }
        self.clock.pass(merge.highest());
        self.skipped.contested += merge.contested();
    }

    pub(super) fn put_on_wire(&mut self, frame: PacketId, merge: &mut Merge) {
        let packet = self.packets.get(frame);
        let (key, sender) = (packet.arrival, self.fabric.port(packet.ingress()).peer);
        let Kernel { lanes, packets, partitions, qps, .. } = self;
        let elder = |qp: QpId| qps.slots.get(qp.index()).map(|slot| partitions.get(slot.partition).elder);
        if lanes.merge_frame(packets, frame, merge, |packet| elder(packet.qp())) {
            return;
        }
        // Frames that found no lane while the partition caught up may be there already, later than this one.
        let mut others = core::mem::replace(&mut self.ports[sender.index()].lane, PacketList::EMPTY);
        let lane = &mut self.ports[sender.index()].lane;
        while let Some(other) = others.head().filter(|other| self.packets.get(*other).arrival < key) {
            others.pop(&self.packets);
            lane.push(&mut self.packets, other);
        }
        lane.push(&mut self.packets, frame);
        while let Some(other) = others.pop(&self.packets) {
            lane.push(&mut self.packets, other);
        }
        if lane.head() == Some(frame) {
            self.schedule(Event::Arrive(sender), key);
        }
    }

    pub(super) fn put_back_tx_done(&mut self, port: PortId, merge: &mut Merge) {
        let Kernel { lanes, ports, partitions, .. } = self;
        let elder = |port: &Port| port.partition.is_some().then(|| partitions.get(port.partition).elder);
        if !lanes.merge_port(ports, port, merge, elder) {
            self.set_tx_done_timer(port);
        }
    }
}

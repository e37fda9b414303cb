//! Episodes: what becomes of a partition from one change of its members to the next is simulated once, and looked up
//! from then on.
//!
//! At the end of an instant in which flows have joined or left, a partition's state is put into canonical form: that is
//! the *key*. The episode ends with the instant in which the first of its flows finish, or with the drain of the whole
//! partition. What has been counted until then, who finished, and the state of those that go on is the *value*.
//!
//! * A miss is simulated, by whatever tier of acceleration there is, and recorded.
//! * A hit is parked with what the record says. If something nobody knew of comes before its end, it is replayed from
//!   the start that was kept.
//! * A partition that is like one whose recording began in the same instant follows it: it is parked without an end,
//!   and takes the leader's value, or its state at the moment of an interrupt.
//!
//! With coarse keys ([`Precision::Quantised`]) a partition that is only much like a recorded one is a hit too. Where no
//! two flows share a port, little can come of the difference. Where they do, it may decide which flow comes off better:
//! such a record is used only after a second simulation has agreed with it, and exact keys until then.
//!
//! Chance, losses, pauses, time-outs and frames from outside spoil a recording, and so does a switch that comes near
//! the level at which its buffer couples partitions: nothing of the kind is in a record.

use super::arena::{Arena, Block};
use super::park::{EPISODE, FOLLOWER, Parked};
use super::partition::{LEFT, for_each_port, for_each_qp};
use super::snapshot::{WITNESS_WORDS, counts, is_mid_instant, state};
use super::{Tier, mix};
use crate::buffer::BufferManager;
use crate::cca::{CongestionControl, Telemetry};
use crate::event::{Event, EventKey};
use crate::flow::FlowEnd;
use crate::ids::{PartitionId, PortId, QpId};
use crate::kernel::{BufferPort, Kernel, PACKETS_PER_EVENT};
use crate::log::debug;
use crate::marker::Marker;
use crate::memo::{Precision, record_name};
use crate::model::ModelId;
use crate::models::Models;
use crate::nic::Nic;
use crate::observer::Observer;
use crate::port::Port;
use crate::qp::QpState;
use crate::router::{RouteKey, Router};
use crate::scheduler::EgressScheduler;
use crate::timing::LinkTiming;
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// Figures of a port and of a queue pair in a ledger and in a value.
const PORT_FIGURES: usize = 7;
const QP_FIGURES: usize = 6;
/// Where the longest queue stands among a port's figures.
const LONGEST: usize = 5;
/// Span, flows finished, frames at the end; where the tables after the figures and the final state begin; trust.
const VALUE_HEADER: usize = 6;
/// In the header: whether a record under a coarse key may be used.
const TRUST: usize = 5;
const UNTRUSTED: u64 = 0;
const TRUSTED: u64 = 1;
/// Never: two simulations have disagreed.
const CHAOTIC: u64 = 2;
/// Largest difference between two simulations that agree, in parts per million.
const AGREEMENT: u64 = 5_000;
/// Interrupts that are looked for among the flows that start next.
const FLOWS_LOOKED_AT: usize = 1_024;
/// A look-up costs about 10 ns a word of its key, a packet of a flow some 500 ns on its way: a word for two packets
/// keeps look-ups that come to nothing about 1 % of the work.
const PACKETS_PER_WORD: u64 = 2;
/// Words that may be spent before anything has been earned.
pub(crate) const CREDIT: u64 = 1 << 16;

/// A recording, if there is one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Episode {
    pub(super) began: SimTime,
    key: Block,
    /// The coarse key, if there is one to be kept too.
    coarse: Block,
    /// The counters at its beginning, and what must not have changed.
    ledger: Block,
    /// The value that a record has, if this simulation is to check it.
    expected: Block,
    /// Flows that have finished, all in the present instant.
    finished: u32,
    /// Something has happened that cannot be in a record.
    is_spoilt: u32,
    /// Those that follow it, and in a follower: the next of them, and whom it follows.
    first_follower: PartitionId,
    next_follower: PartitionId,
    leader: PartitionId,
    /// Flows share a port.
    contended: u32,
}

impl Episode {
    pub(crate) const NONE: Episode = Episode {
        began: SimTime::ZERO,
        key: Block::NONE,
        coarse: Block::NONE,
        ledger: Block::NONE,
        expected: Block::NONE,
        finished: 0,
        is_spoilt: 0,
        first_follower: PartitionId::NONE,
        next_follower: PartitionId::NONE,
        leader: PartitionId::NONE,
        contended: 0,
    };

    /// Whether what happens to the partition is being recorded.
    pub(super) fn is_recording(&self) -> bool {
        !self.key.is_none()
    }
}

/// The partitions whose recording has begun in the present instant: whom others may follow.
#[derive(Clone, Default)]
pub(crate) struct Leaders {
    at: SimTime,
    /// Names of their keys. What does not fit is not followed.
    list: heapless::Vec<(u64, PartitionId), 64>,
}

/// Grows a slice-backed list of words.
struct Writer<'w> {
    words: &'w mut [u64],
    at: usize,
}

impl Writer<'_> {
    fn put(&mut self, word: u64) {
        self.words[self.at] = word;
        self.at += 1;
    }

    fn put_all(&mut self, words: impl IntoIterator<Item = u64>) {
        words.into_iter().for_each(|word| self.put(word));
    }
}

/// Looking partitions up.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Flows have joined a partition, or left it: it is looked up at the end of the instant.
    pub(crate) fn note_change(&mut self, id: PartitionId) {
        if self.memo.is_some() && M::Router::PER_FLOW {
            self.partitions.push_due(id);
            self.interrupted = true;
        }
    }

    /// Looks at the partitions that have changed, if all of this instant has happened.
    pub(crate) fn end_instant(&mut self) {
        let next = self.next_timer.min(self.lanes.first().1);
        if next.at <= self.now() {
            return;
        }
        if self.leaders.at != self.now() {
            self.leaders = Leaders { at: self.now(), ..Leaders::default() };
        }
        while let Some(id) = self.partitions.pop_due() {
            self.settle(id);
        }
    }

    /// A partition's change is over.
    fn settle(&mut self, id: PartitionId) {
        let partition = self.partitions.get(id);
        if partition.ports == 0 || partition.is_parked() {
            return;
        }
        if partition.episode.is_recording() {
            self.end_recording(id, true);
        }
        let partition = self.partitions.get(id);
        if partition.qps == 0 {
            return self.dissolve(id);
        }
        let cost = self.price(id);
        if cost > self.credit {
            return;
        }
        if partition.changed == LEFT {
            // Each part comes up by itself.
            self.split(id);
        } else {
            self.credit -= cost;
            self.look_up(id);
        }
    }

    /// About how many words a key has, which is what it costs.
    fn price(&self, id: PartitionId) -> u64 {
        let partition = self.partitions.get(id);
        let frames = self.frames(id) as u64;
        48 * u64::from(partition.qps) + 32 * u64::from(partition.ports) + 8 * frames
    }

    /// A flow earns the look-ups that it causes: they stay a small share of its events.
    pub(crate) fn earn(&mut self, bytes: u64) {
        let packets = bytes / u64::from(self.models.transport.mtu);
        self.credit = self.credit.saturating_add(packets / PACKETS_PER_WORD);
    }

    fn look_up(&mut self, id: PartitionId) {
        self.forget_motion(id);
        let is_coarse = self.memoisation.precision == Precision::Quantised;
        let contended = is_coarse && self.is_contended(id);
        let Some(start) = self.label(id).and_then(|()| self.capture(id)) else { return };
        self.memoised.instances += 1;
        let mut coarse = Block::NONE;
        if is_coarse {
            coarse = self.write_key(id, start, Precision::Quantised).unwrap_or_default();
            if let Some(value) = self.find(id, coarse).filter(|value| self.is_trusted(*value)) {
                self.arena.free(&mut coarse);
                return self.use_record(id, start, value);
            }
        }
        self.look_up_exactly(id, start, coarse, contended);
    }

    fn look_up_exactly(&mut self, id: PartitionId, mut start: Block, mut coarse: Block, contended: bool) {
        let Some(key) = self.write_key(id, start, Precision::Exact) else {
            self.arena.free(&mut coarse);
            return self.arena.free(&mut start);
        };
        let name = record_name(self.arena.get(key));
        let episode = Episode { key, coarse, contended: u32::from(contended), ..Episode::NONE };
        if let Some(value) = self.find(id, key) {
            if self.is_to_be_checked() {
                self.memoised.checked += 1;
                self.arena.free(&mut start);
                return self.record(id, Episode { expected: value, ..episode });
            }
            self.free_episode(episode);
            self.use_record(id, start, value);
        } else if let Some(leader) = self.leader(name, key).filter(|leader| self.may_follow(id, *leader)) {
            self.free_episode(episode);
            self.follow(id, leader, start);
        } else {
            self.memoised.misses += 1;
            self.memoised.distinct += 1;
            self.arena.free(&mut start);
            self.record(id, episode);
            if self.partitions.get(id).episode.is_recording() {
                // More distinct patterns at once than fit are not followed.
                let _ = self.leaders.list.push((name, id));
            }
        }
    }

    fn free_episode(&mut self, episode: Episode) {
        let Episode { mut key, mut coarse, mut ledger, mut expected, .. } = episode;
        self.arena.free(&mut key);
        self.arena.free(&mut coarse);
        self.arena.free(&mut ledger);
        self.arena.free(&mut expected);
    }

    /// The value of the record with this key, with room behind it for the ids that its final state will need.
    fn find(&mut self, id: PartitionId, key: Block) -> Option<Block> {
        let store = self.memo.as_mut().filter(|_| !key.is_none())?;
        let value = store.find(self.arena.get(key))?;
        let partition = self.partitions.get(id);
        let room = partition.qps as usize + partition.ports as usize;
        let block = self.arena.alloc(value.len() + room)?;
        self.arena.get_mut(block)[..value.len()].copy_from_slice(value);
        Some(block)
    }

    /// Whether a record under a coarse key may be used. One that may not is not needed further.
    fn is_trusted(&mut self, mut value: Block) -> bool {
        let trusted = self.arena.get(value)[TRUST] == TRUSTED;
        if !trusted {
            self.arena.free(&mut value);
        }
        trusted
    }

    fn use_record(&mut self, id: PartitionId, mut start: Block, mut value: Block) {
        self.credit = self.credit.saturating_add(self.price(id));
        if self.fits(id, value) {
            self.memoised.hits += 1;
            return self.park_episode(id, start, value);
        }
        self.memoised.refused += 1;
        self.arena.free(&mut start);
        self.arena.free(&mut value);
    }

    /// Whether this hit is one of those that are simulated all the same: their share is kept to, hit by hit.
    fn is_to_be_checked(&self) -> bool {
        let share = u64::from(self.memoisation.check.min(1_000_000));
        let due = (self.memoised.hits + self.memoised.checked + 1) * share / 1_000_000;
        self.memoised.checked < due
    }

    /// Whether a record can be used: nothing that is known of comes in between, outputs and frames have room, and no
    /// buffer is felt.
    fn fits(&mut self, id: PartitionId, value: Block) -> bool {
        let [span, finished, frames, ..] = self.arena.get(value)[..] else { return false };
        let until = self.now() + Span(span);
        let more = (frames as usize).saturating_sub(self.frames(id));
        if finished as usize > self.completions.capacity()
            || self.packets.available() < more + PACKETS_PER_EVENT
            || self.is_interrupted_by(id, until)
        {
            return false;
        }
        let mut at = VALUE_HEADER;
        for_each_port!(self, id, port, {
            self.queue_bounds[port.index()].reserved = self.arena.get(value)[at + LONGEST];
            at += PORT_FIGURES;
        });
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            if slot.is_open() {
                let [bytes, .., finish, left] = self.arena.get(value)[at..at + QP_FIGURES] else { return false };
                // With coarse keys a flow may have less left than the record takes for granted.
                let (now_left, needed) = (slot.size - slot.snd_una, bytes.saturating_add(2 * slot.bdp));
                if finish == 0 && now_left != left && now_left <= needed {
                    return false;
                }
                at += QP_FIGURES;
            }
        });
        self.is_calm(id)
    }

    /// Whether a command, or a flow that is to start, is known to reach the partition by `until`.
    fn is_interrupted_by(&mut self, id: PartitionId, until: SimTime) -> bool {
        if self.inputs.first_time().is_some_and(|at| at <= until) {
            return true;
        }
        let mut next = self.flows.first().copied();
        for _ in 0..FLOWS_LOOKED_AT {
            let Some(flow) = next.filter(|flow| flow.start <= until) else { return false };
            let data = flow.route_key();
            if self.passes(id, &data) || self.passes(id, &data.reversed()) {
                return true;
            }
            next = self.flows.after(&flow).copied();
        }
        false
    }

    /// Whether a path leads through a partition. Where no path is up, it may.
    fn passes(&mut self, id: PartitionId, key: &RouteKey) -> bool {
        self.walk(key).is_ok_and(|path| path.iter().any(|port| self.ports[port.index()].partition == id))
    }

    fn park_episode(&mut self, id: PartitionId, start: Block, value: Block) {
        let (span, frames) = (self.arena.get(value)[0], self.arena.get(value)[2] as usize);
        let more = frames.saturating_sub(self.frames(id));
        self.packets.hold(more);
        let now = self.now();
        let until = now + Span(span);
        self.park(id, Parked { since: now, until, before: start, after: value, kind: EPISODE, ..Parked::NONE });
    }
}

/// Keys.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// A hash over what models are, with their versions and configurations.
    pub fn memo_models(&self) -> u64 {
        let models = &self.models;
        let parts = [
            models.telemetry.id(),
            models.buffers.id(),
            models.scheduler.id(),
            models.marker.id(),
            models.nic.id(),
            models.transport.id(),
        ];
        let ccas = models.ccas.iter().map(|cca| cca.id());
        let start = mix_bytes(u64::from(crate::memo::KERNEL_VERSION), M::Timing::NAME.as_bytes());
        parts.into_iter().chain(ccas).fold(start, |hash, id| {
            let ModelId { name, version, config } = id;
            mix(mix(mix_bytes(hash, name.as_bytes()), u64::from(version)), config)
        })
    }

    /// Calls `visit` with the key of a partition that is not parked, if it has one.
    pub(crate) fn visit_key(&mut self, id: PartitionId, precision: Precision, visit: &mut impl FnMut(&[u64])) {
        if self.partitions.get(id).qps == 0 {
            return;
        }
        // Members are put into another order.
        self.forget_motion(id);
        let Some(mut start) = self.label(id).and_then(|()| self.capture(id)) else { return };
        if let Some(mut key) = self.write_key(id, start, precision) {
            visit(self.arena.get(key));
            self.arena.free(&mut key);
        }
        self.arena.free(&mut start);
    }

    /// The key of a partition whose exact state is `start`. `None` if there is none: a link loses frames by chance, or
    /// there is no room.
    fn write_key(&mut self, id: PartitionId, start: Block, precision: Precision) -> Option<Block> {
        let mut edges = 0;
        for_each_qp!(self, id, qp, {
            self.each_port(qp, |_, _, _| edges += 1);
        });
        let (qps, ports) = counts(self.arena.get(start));
        let port_words = 3 + size_of::<BufferPort<M>>().div_ceil(8);
        let most = 4 + ports * port_words + qps * 9 + edges + self.arena.get(start)[3] as usize;
        let mut block = self.arena.alloc(most)?;
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let [key, start] = arena.several([block, start]);
        let writer = &mut Writer { words: key, at: 0 };
        let filled = self.fill_key(id, writer, start, precision);
        let words = writer.at;
        self.arena = arena;
        if filled.is_none() {
            self.arena.free(&mut block);
            return None;
        }
        self.arena.shorten(&mut block, words);
        Some(block)
    }

    fn fill_key(&mut self, id: PartitionId, key: &mut Writer<'_>, start: &[u64], precision: Precision) -> Option<()> {
        // What was skipped within a bound is in the records of a bounded tier.
        let detector = match self.acceleration.tier {
            Tier::Bounded => self.acceleration.detector.hash(),
            Tier::Off | Tier::Exact => 0,
        };
        key.put_all([precision as u64, self.models_hash, detector, start[0]]);
        for_each_port!(self, id, port, {
            let info = self.fabric.port(port);
            if info.loss != 0 {
                return None;
            }
            let state = &self.ports[port.index()];
            key.put_all([info.rate.0, info.delay.0, u64::from(state.at_host) << 8 | u64::from(state.priorities)]);
            let bytes = bytemuck::bytes_of(&self.buffer_ports[port.index()]);
            key.put_all(bytes.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            }));
        });
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                self.describe_flow(qp, key, precision);
            }
        });
        match precision {
            Precision::Exact => key.put_all(state(start)[1..].iter().copied()),
            Precision::Quantised => self.describe_queues(id, key),
        }
        Some(())
    }

    /// What a flow is, and the way it takes.
    fn describe_flow(&mut self, qp: QpId, key: &mut Writer<'_>, precision: Precision) {
        let slot = &self.qps.slots[qp.index()];
        let class = u64::from(slot.priority) << 16 | u64::from(slot.cca) << 8 | u64::from(slot.telemetry);
        key.put_all([class, u64::from(slot.header), slot.base_rtt.0, slot.bdp, slot.line_rate.0, slot.timeout.0]);
        match precision {
            Precision::Exact => key.put(slot.size.wrapping_sub(slot.snd_una)),
            Precision::Quantised => key.put_all(self.coarse_state(qp)),
        }
        let at = key.at;
        key.put(0);
        self.each_port(qp, |kernel, port, is_data| {
            key.words[at] += if is_data { 1 } else { 1 << 32 };
            key.put(u64::from(kernel.ports[port.index()].local));
        });
    }

    /// A flow's state in coarse steps: bytes left and rate to about 0.8 %, window and bytes under way to 3 %.
    pub(super) fn coarse_state(&self, qp: QpId) -> [u64; 3] {
        let slot = &self.qps.slots[qp.index()];
        let left = coarse(slot.size.wrapping_sub(slot.snd_una), 7);
        let pace = coarse(slot.control.rate.0, 7);
        let window = coarse(slot.control.window, 5) << 32 | coarse(slot.in_flight(), 5);
        [left, pace, window]
    }

    /// Queues of ports, in steps of about 3 %.
    fn describe_queues(&self, id: PartitionId, key: &mut Writer<'_>) {
        for_each_port!(self, id, port, {
            key.put(coarse(self.ports[port.index()].backlog, 5));
        });
    }
}

/// Recording.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Begins to record a partition: `episode` tells the keys, and the value to expect if it is known.
    fn record(&mut self, id: PartitionId, episode: Episode) {
        self.measure_queues(id);
        let Some(ledger) = self.write_figures(id) else {
            self.memoised.unkept += 1;
            return self.free_episode(episode);
        };
        self.recordings += 1;
        let began = self.now();
        self.partitions.get_mut(id).episode = Episode { began, ledger, ..episode };
    }

    /// The counters of a partition as they are.
    ///
    /// Behind the figures of ports and of open flows: per port the ids in its NIC's queue, led by their number, and
    /// what must stay as it is.
    fn write_figures(&mut self, id: PartitionId) -> Option<Block> {
        let partition = self.partitions.get(id);
        let (qps, ports) = (partition.qps as usize, partition.ports as usize);
        let block = self.arena.alloc(ports * (PORT_FIGURES + 1 + WITNESS_WORDS) + qps * (QP_FIGURES + 1))?;
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let writer = &mut Writer { words: arena.get_mut(block), at: 0 };
        for_each_port!(self, id, port, {
            writer.put_all(self.port_figures(port));
        });
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                writer.put_all(self.qp_figures(qp));
            }
        });
        for_each_port!(self, id, port, {
            let nic = &self.nics[port.index()];
            writer.put(nic.len() as u64);
            let mut qp = nic.first();
            while qp.is_some() {
                writer.put(u64::from(qp.0));
                qp = nic.next(self.qps.slots, qp);
            }
        });
        for_each_port!(self, id, port, {
            writer.put_all(self.port_witness(port));
        });
        self.arena = arena;
        Some(block)
    }

    fn port_figures(&self, port: PortId) -> [u64; PORT_FIGURES] {
        let state = &self.ports[port.index()];
        let wakes = u64::from(state.wakes);
        let served = u64::from(state.scheduler);
        [state.sent_frames, state.sent_bytes, state.marks, state.queue_byte_ns, wakes, state.max_queue, served]
    }

    /// The first four are counters. Then the place of a flow among those that have finished, and the bytes it had left
    /// at the beginning.
    fn qp_figures(&self, qp: QpId) -> [u64; QP_FIGURES] {
        let slot = &self.qps.slots[qp.index()];
        let left = slot.size.wrapping_sub(slot.snd_una);
        [slot.snd_una, slot.acks, slot.rtt_sum.0, u64::from(slot.timers), 0, left]
    }

    /// A flow of a partition that is being recorded has finished: its slot may soon be another's.
    pub(crate) fn note_finish(&mut self, qp: QpId) {
        let id = self.qps.slots[qp.index()].partition;
        if id.is_none() || !self.partitions.get(id).episode.is_recording() {
            return;
        }
        let partition = self.partitions.get_mut(id);
        partition.episode.finished += 1;
        let (rank, ledger) = (u64::from(partition.episode.finished), partition.episode.ledger);
        let at = partition.ports as usize * PORT_FIGURES;
        let number = self.qps.slots[qp.index()].local as usize;
        let figures = self.qp_figures(qp);
        let entry = &mut self.arena.get_mut(ledger)[at + number * QP_FIGURES..][..QP_FIGURES];
        grow(entry, &figures);
        entry[4] = rank;
    }

    /// Ends a recording and gives its value to the store and to those that follow. `is_over`: the instant is.
    fn end_recording(&mut self, id: PartitionId, is_over: bool) {
        let Episode { expected, finished, .. } = self.partitions.get(id).episode;
        let value = if finished > 0 { self.write_value(id, is_over) } else { None };
        let Some(mut value) = value else { return self.abandon(id, is_over) };
        if expected.is_none() {
            self.keep(id, value);
        } else {
            self.check(id, value);
        }
        while let Some(follower) = self.unlink_first_follower(id) {
            self.give(follower, value);
        }
        self.arena.free(&mut value);
        self.drop_recording(id);
    }

    /// Gives a value to the store.
    fn keep(&mut self, id: PartitionId, value: Block) {
        let Episode { key, coarse, contended, .. } = self.partitions.get(id).episode;
        let Some(store) = self.memo.as_mut() else { return };
        if coarse.is_none() {
            return store.insert(self.arena.get(key), self.arena.get(value));
        }
        let [key, coarse, value] = self.arena.several([key, coarse, value]);
        if contended == 0 {
            value[TRUST] = TRUSTED;
            return store.insert(coarse, value);
        }
        store.insert(key, value);
        value[TRUST] = match store.find(coarse) {
            None => UNTRUSTED,
            Some(other) if other[TRUST] == UNTRUSTED && agree(value, other) => TRUSTED,
            Some(_) => CHAOTIC,
        };
        // What is not used is not kept, but for what is to be compared.
        let length = match value[TRUST] {
            TRUSTED => value.len(),
            UNTRUSTED => value[3] as usize,
            _ => VALUE_HEADER,
        };
        store.insert(coarse, &value[..length]);
        value[TRUST] = UNTRUSTED;
    }

    /// Compares a value with the record's.
    fn check(&mut self, id: PartitionId, value: Block) {
        let Episode { key, expected, .. } = self.partitions.get(id).episode;
        let (told, expected) = (self.arena.get(value), self.arena.get(expected));
        if !expected.starts_with(told) {
            self.memoised.mismatches += 1;
            if self.memoised.mismatches == 1 {
                self.memoised.mismatch = record_name(self.arena.get(key));
            }
        }
    }

    /// Forgets a recording that came to nothing. Those that follow take the leader's state over, if `is_clean`, or
    /// are replayed.
    pub(crate) fn abandon(&mut self, id: PartitionId, is_clean: bool) {
        if !self.partitions.get(id).episode.is_recording() {
            return;
        }
        self.memoised.unkept += 1;
        if !is_clean {
            self.partitions.get_mut(id).episode.is_spoilt = 1;
        }
        loop {
            let follower = self.partitions.get(id).episode.first_follower;
            if follower.is_none() {
                break;
            }
            self.wake(follower);
        }
        self.drop_recording(id);
    }

    /// Something reaches a partition, which may be recorded, that cannot be in a record. `is_clean`: it comes from
    /// outside, and nothing of it has happened yet.
    ///
    /// At once: those that follow must not be late, if chance has a hand in it that is one for the whole fabric.
    pub(crate) fn interrupt_recording(&mut self, id: PartitionId, is_clean: bool) {
        if id.is_none() || !self.partitions.get(id).episode.is_recording() {
            return;
        }
        if is_clean && self.partitions.get(id).episode.finished > 0 {
            self.end_recording(id, false);
        } else {
            self.abandon(id, is_clean);
        }
    }

    /// Forgets all recordings: models or links are about to change.
    pub(crate) fn interrupt_recordings(&mut self) {
        if self.recordings > 0 {
            for id in self.partitions.ids() {
                self.interrupt_recording(id, true);
            }
        }
    }

    fn drop_recording(&mut self, id: PartitionId) {
        self.recordings -= 1;
        let episode = core::mem::replace(&mut self.partitions.get_mut(id).episode, Episode::NONE);
        self.free_episode(episode);
    }

    /// What has come of a recorded partition up to now. `None` if that cannot be told.
    fn write_value(&mut self, id: PartitionId, is_over: bool) -> Option<Block> {
        let Episode { ledger, is_spoilt, .. } = self.partitions.get(id).episode;
        if is_spoilt != 0 {
            return None;
        }
        let mut end = self.capture(id)?;
        let ports = self.partitions.get(id).ports as usize;
        let room = self.arena.get(ledger).len() + state(self.arena.get(end)).len() + 2 * ports + VALUE_HEADER;
        let block = self.arena.alloc(room);
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let told = block.and_then(|block| {
            let [value, ledger, end] = arena.several([block, ledger, end]);
            self.tell(id, value, ledger, end, is_over)
        });
        self.arena = arena;
        self.arena.free(&mut end);
        match (block, told) {
            (Some(mut block), Some(words)) => {
                self.arena.shorten(&mut block, words);
                Some(block)
            }
            (Some(mut block), None) => {
                self.arena.free(&mut block);
                None
            }
            (None, _) => None,
        }
    }

    fn tell(&self, id: PartitionId, value: &mut [u64], ledger: &[u64], end: &[u64], is_over: bool) -> Option<usize> {
        let Episode { began, finished, .. } = self.partitions.get(id).episode;
        let (open, ports) = counts(end);
        let qps = open + finished as usize;
        let (ports_at, qps_at) = (0, ports * PORT_FIGURES);
        let queues_at = qps_at + qps * QP_FIGURES;
        let value = &mut Writer { words: value, at: VALUE_HEADER };
        let (mut at, mut queue_at) = (ports_at, queues_at);
        for_each_port!(self, id, port, {
            let before = &ledger[at..at + PORT_FIGURES];
            let figures = self.port_figures(port);
            value.put_all((0..5).map(|i| figures[i].wrapping_sub(before[i])));
            value.words[value.at - 1] &= u64::from(u32::MAX);
            // Who was served last matters only where anybody was.
            let served = if figures[0] == before[0] { 0 } else { figures[6] };
            value.put_all([figures[5], served]);
            at += PORT_FIGURES;
            queue_at += 1 + ledger[queue_at] as usize;
        });
        let witness_at = queue_at;
        if !is_over && is_mid_instant(end) || !self.is_untouched(id, &ledger[witness_at..]) {
            return None;
        }
        // In the ledger, finished flows have their differences already. The open ones follow each other in the list.
        let mut open_qps = self.first_open(id);
        for entry in ledger[qps_at..queues_at].chunks(QP_FIGURES) {
            if entry[4] != 0 {
                value.put_all(entry.iter().copied());
                continue;
            }
            let qp = open_qps?;
            let mut grown: [u64; QP_FIGURES] = core::array::from_fn(|i| entry[i]);
            grow(&mut grown, &self.qp_figures(qp));
            value.put_all(grown);
            open_qps = self.next_open(qp);
        }
        let finish_at = value.at;
        value.at += finished as usize;
        for (number, entry) in ledger[qps_at..queues_at].chunks(QP_FIGURES).enumerate() {
            if entry[4] != 0 {
                value.words[finish_at + entry[4] as usize - 1] = number as u64;
            }
        }
        let mut queue_at = queues_at;
        for_each_port!(self, id, port, {
            let length = ledger[queue_at] as usize;
            self.tell_queue(value, port, &ledger[queue_at + 1..][..length])?;
            queue_at += 1 + length;
        });
        let end_at = value.at;
        value.put_all(state(end).iter().copied());
        let (span, frames) = (self.now().since(began).0, self.frames(id) as u64);
        let header = [span, u64::from(finished), frames, finish_at as u64, end_at as u64, UNTRUSTED];
        value.words[..VALUE_HEADER].copy_from_slice(&header);
        Some(value.at)
    }

    /// Which of those that were in a NIC's queue are in it still, by their places. Finished ones may stay a while.
    fn tell_queue(&self, value: &mut Writer<'_>, port: PortId, before: &[u64]) -> Option<()> {
        let nic = &self.nics[port.index()];
        value.put(nic.len() as u64);
        let mut places = before.iter().enumerate();
        let mut qp = nic.first();
        while qp.is_some() {
            let (place, _) = places.find(|(_, id)| **id == u64::from(qp.0))?;
            value.put(place as u64);
            qp = nic.next(self.qps.slots, qp);
        }
        Some(())
    }

    fn first_open(&self, id: PartitionId) -> Option<QpId> {
        let first = self.first_qp(id)?;
        if self.qps.slots[first.index()].is_open() { Some(first) } else { self.next_open(first) }
    }

    fn next_open(&self, qp: QpId) -> Option<QpId> {
        let mut next = self.next_qp(qp);
        while let Some(qp) = next.filter(|qp| !self.qps.slots[qp.index()].is_open()) {
            next = self.next_qp(qp);
        }
        next
    }

    /// Whether there were no pauses, losses or chance since the ledger was written.
    fn is_untouched(&self, id: PartitionId, witness: &[u64]) -> bool {
        let mut at = 0;
        for_each_port!(self, id, port, {
            if witness[at..at + WITNESS_WORDS] != self.port_witness(port) {
                return false;
            }
            at += WITNESS_WORDS;
        });
        true
    }
}

/// Following and playing back.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// A partition of this key whose recording has begun in this instant.
    fn leader(&self, name: u64, key: Block) -> Option<PartitionId> {
        let is_it = |id: PartitionId| {
            let Episode { began, key: of, is_spoilt, .. } = self.partitions.get(id).episode;
            let is_one = !of.is_none() && is_spoilt == 0 && began == self.now();
            is_one && self.arena.get(of) == self.arena.get(key)
        };
        self.leaders.list.iter().find(|(of, id)| *of == name && is_it(*id)).map(|(_, id)| *id)
    }

    /// Whether a partition may follow: no buffer is felt as yet. What it may come to have in switches is not known; it
    /// is reserved as the leader's queues grow.
    fn may_follow(&mut self, id: PartitionId, leader: PartitionId) -> bool {
        let (mut next, mut followed) = (self.first_port(id), self.first_port(leader));
        while let (Some(port), Some(of)) = (next, followed) {
            self.queue_bounds[port.index()].reserved = self.ports[of.index()].max_queue;
            (next, followed) = (self.next_port(port), self.next_port(of));
        }
        self.is_calm(id)
    }

    /// A queue of a partition that is being recorded has become longer than before: so would those of its followers.
    #[cold]
    pub(crate) fn queue_grew(&mut self, port: PortId) {
        let Port { partition: id, local: number, max_queue, .. } = self.ports[port.index()];
        if id.is_none() {
            return;
        }
        let mut follower = self.partitions.get(id).episode.first_follower;
        let mut calm = true;
        while follower.is_some() {
            let start = self.arena.get(self.partitions.get(follower).parked.before);
            let port = PortId(start[start[3] as usize + counts(start).0 + number as usize] as u32);
            let node = self.ports[port.index()].node;
            let reserved = &mut self.queue_bounds[port.index()].reserved;
            let more = max_queue - core::mem::replace(reserved, max_queue);
            self.reserve[node.index()] += more;
            calm &= self.is_calm_at(node);
            follower = self.partitions.get(follower).episode.next_follower;
        }
        if !calm {
            self.interrupt_recording(id, false);
        }
    }

    fn follow(&mut self, id: PartitionId, leader: PartitionId, start: Block) {
        self.memoised.followers += 1;
        self.credit = self.credit.saturating_add(self.price(id));
        self.park(id, Parked { since: self.now(), until: SimTime::MAX, before: start, kind: FOLLOWER, ..Parked::NONE });
        let next = core::mem::replace(&mut self.partitions.get_mut(leader).episode.first_follower, PartitionId::NONE);
        // In order of age: the newest at the end.
        if next.is_none() {
            self.partitions.get_mut(leader).episode.first_follower = id;
        } else {
            self.partitions.get_mut(leader).episode.first_follower = next;
            let mut last = next;
            while self.partitions.get(last).episode.next_follower.is_some() {
                last = self.partitions.get(last).episode.next_follower;
            }
            self.partitions.get_mut(last).episode.next_follower = id;
        }
        self.partitions.get_mut(id).episode.leader = leader;
    }

    fn unlink_first_follower(&mut self, leader: PartitionId) -> Option<PartitionId> {
        let first = self.partitions.get(leader).episode.first_follower;
        first.is_some().then(|| {
            self.unlink(first);
            first
        })
    }

    /// A partition follows no more.
    fn unlink(&mut self, id: PartitionId) {
        let Episode { leader, next_follower, .. } = self.partitions.get(id).episode;
        let first = self.partitions.get(leader).episode.first_follower;
        if first == id {
            self.partitions.get_mut(leader).episode.first_follower = next_follower;
        } else {
            let mut before = first;
            while self.partitions.get(before).episode.next_follower != id {
                before = self.partitions.get(before).episode.next_follower;
            }
            self.partitions.get_mut(before).episode.next_follower = next_follower;
        }
        self.partitions.get_mut(id).episode = Episode::NONE;
    }

    /// The leader's episode is over: so is its follower's. It is played back as an event of its own.
    fn give(&mut self, id: PartitionId, value: Block) {
        let Some(copy) = self.copy_value(id, value) else {
            // It is replayed: nobody leads it any more.
            self.partitions.get_mut(id).parked.kind = EPISODE;
            return self.wake(id);
        };
        let now = self.now();
        let partition = self.partitions.get_mut(id);
        (partition.parked.kind, partition.parked.after, partition.parked.until) = (EPISODE, copy, now);
        let (anchor, key) = (partition.parked.anchor, EventKey::at_end_of(now, partition.elder));
        self.schedule(Event::Unpark(anchor), key);
    }

    /// A copy of a value for another partition, with room for ids and its frames held. `None` if there is no room.
    fn copy_value(&mut self, id: PartitionId, value: Block) -> Option<Block> {
        let more = (self.arena.get(value)[2] as usize).saturating_sub(self.frames(id));
        if self.packets.available() < more + PACKETS_PER_EVENT {
            return None;
        }
        let partition = self.partitions.get(id);
        let room = partition.qps as usize + partition.ports as usize;
        let words = self.arena.get(value).len();
        let copy = self.arena.alloc(words + room)?;
        let [to, from] = self.arena.several([copy, value]);
        to[..words].copy_from_slice(from);
        self.packets.hold(more);
        Some(copy)
    }

    /// The end of an episode that was looked up: if outputs have room, it happens.
    pub(super) fn end_episode(&mut self, id: PartitionId) {
        let Parked { until, after, anchor, .. } = self.partitions.get(id).parked;
        let finished = self.arena.get(after)[1] as usize;
        if self.completions.room() < finished {
            self.outputs_needed = finished;
            self.interrupted = true;
            let key = EventKey::at_end_of(until, self.partitions.get(id).elder);
            return self.schedule(Event::Unpark(anchor), key);
        }
        let parked = self.unpark_members(id);
        self.memoised.time += parked.until.since(parked.since);
        self.play(id, parked);
    }

    /// Sets a partition up as the value in `parked.after` says.
    fn play(&mut self, id: PartitionId, parked: Parked) {
        debug!("{} ps: partition {} has come to the end of an episode", self.now().0, id.0);
        let Parked { mut before, mut after, .. } = parked;
        let [_, finished, frames, finish_at, end_at, ..] = self.arena.get(after)[..] else { return };
        let (finished, finish_at, end_at) = (finished as usize, finish_at as usize, end_at as usize);
        self.packets.release(self.frames(id).saturating_sub(frames as usize));
        let (qps, ports) = counts(self.arena.get(before));
        let member = |kernel: &Self, at: usize| kernel.arena.get(before)[kernel.arena.get(before)[3] as usize + at];
        let qp = |kernel: &Self, number: usize| QpId(member(kernel, number) as u32);
        let port = |kernel: &Self, number: usize| PortId(member(kernel, qps + number) as u32);
        for number in 0..ports {
            let port = port(self, number);
            self.play_port(port, after, VALUE_HEADER + number * PORT_FIGURES);
            self.ports[port.index()].skipped += parked.until.min(self.now()).since(parked.since);
        }
        let figures = VALUE_HEADER + ports * PORT_FIGURES;
        for number in 0..qps {
            self.play_qp(qp(self, number), after, figures + number * QP_FIGURES);
        }
        for place in 0..finished {
            let number = self.arena.get(after)[finish_at + place] as usize;
            let qp = qp(self, number);
            // It may stay in its NIC's queue, with nothing left to send.
            self.qps.slots[qp.index()].snd_nxt = self.qps.slots[qp.index()].size;
            self.complete(qp, FlowEnd::Done);
        }
        let mut queue_at = finish_at + finished;
        for number in 0..ports {
            self.thin_out(port(self, number), after, queue_at);
            queue_at += 1 + self.arena.get(after)[queue_at] as usize;
        }
        // The ids behind the final state: those that go on.
        let ids_at = end_at + self.arena.get(after)[end_at + 3] as usize;
        let mut at = ids_at;
        for number in 0..qps {
            let id = qp(self, number);
            if self.qps.slots[id.index()].is_open() {
                self.arena.get_mut(after)[at] = u64::from(id.0);
                at += 1;
            }
        }
        for number in 0..ports {
            self.arena.get_mut(after)[at] = u64::from(port(self, number).0);
            at += 1;
        }
        self.restore(after, end_at);
        self.arena.free(&mut before);
        self.arena.free(&mut after);
        self.note_change(id);
    }

    fn play_port(&mut self, port: PortId, value: Block, at: usize) {
        let [frames, bytes, marks, queue, wakes, longest, served] =
            core::array::from_fn(|i| self.arena.get(value)[at + i]);
        let state = &mut self.ports[port.index()];
        state.marks += marks;
        state.queue_byte_ns = state.queue_byte_ns.wrapping_add(queue);
        state.max_queue = state.max_queue.max(longest);
        if frames > 0 {
            state.scheduler = served as u8;
        }
        self.totals.ecn_marks += marks;
        self.skipped.events += wakes;
        self.count_sent(port, frames, bytes);
    }

    fn play_qp(&mut self, qp: QpId, value: Block, at: usize) {
        let [bytes, acks, rtt_sum, timers, ..] =
            core::array::from_fn::<_, QP_FIGURES, _>(|i| self.arena.get(value)[at + i]);
        self.skipped.events += timers;
        let slot = &mut self.qps.slots[qp.index()];
        slot.frames = 0;
        slot.snd_una += bytes;
        slot.acks += acks;
        slot.rtt_sum += Span(rtt_sum);
    }

    /// Takes out of a NIC's queue what had left it by the end of the episode.
    fn thin_out(&mut self, port: PortId, value: Block, at: usize) {
        let stay = self.arena.get(value)[at] as usize;
        let (mut kept, mut place) = (0, 0);
        let mut qp = self.nics[port.index()].first();
        while qp.is_some() {
            let next = self.nics[port.index()].next(self.qps.slots, qp);
            if kept < stay && self.arena.get(value)[at + 1 + kept] == place {
                kept += 1;
            } else {
                self.nics[port.index()].remove(self.qps.slots, qp);
            }
            (qp, place) = (next, place + 1);
        }
        while let Some(qp) = self.nics[port.index()].pop_removed(self.qps.slots) {
            self.qps.slots[qp.index()].set_state(QpState::Retired);
            self.retire_if_done(qp);
        }
    }

    /// Wakes a partition in an episode that was looked up, or that follows: as a simulation would have it now.
    pub(super) fn break_off(&mut self, id: PartitionId) {
        let is_follower = self.partitions.get(id).parked.kind == FOLLOWER;
        if is_follower && self.take_over(id) {
            return;
        }
        if is_follower {
            self.unlink(id);
        }
        let Parked { since, mut before, mut after, .. } = self.unpark_members(id);
        if !after.is_none() {
            let frames = self.arena.get(after)[2] as usize;
            self.packets.release(frames.saturating_sub(self.frames(id)));
        }
        self.replay(id, before, since);
        self.arena.free(&mut before);
        self.arena.free(&mut after);
    }

    /// A follower takes its leader's state over as it is now. Says whether that could be told.
    fn take_over(&mut self, id: PartitionId) -> bool {
        let leader = self.partitions.get(id).episode.leader;
        let Episode { is_spoilt, finished, .. } = self.partitions.get(leader).episode;
        if is_spoilt != 0 || self.completions.room() < finished as usize {
            return false;
        }
        self.wake(leader);
        let Some(mut value) = self.write_value(leader, true) else { return false };
        let copy = self.copy_value(id, value);
        self.arena.free(&mut value);
        let Some(after) = copy else { return false };
        self.unlink(id);
        let parked = self.unpark_members(id);
        self.memoised.time += self.now().since(parked.since);
        self.play(id, Parked { after, ..parked });
        true
    }
}

/// Whether two simulations from starts that are much alike have come to about the same.
fn agree(value: &[u64], other: &[u64]) -> bool {
    let figures_end = value[3] as usize;
    let near = |a: u64, b: u64| u128::from(a.abs_diff(b)) * 1_000_000 <= u128::from(a.max(b)) * u128::from(AGREEMENT);
    // The tables of ports are not compared: what their flows have sent they have sent.
    let (_, ports) = counts(&value[value[4] as usize..]);
    let flows_at = VALUE_HEADER + ports * PORT_FIGURES;
    value[3] == other[3]
        && near(value[0], other[0])
        && value[flows_at..figures_end]
            .chunks(QP_FIGURES)
            .zip(other[flows_at..figures_end].chunks(QP_FIGURES))
            .all(|(a, b)| near(a[0], b[0]) && (a[4] == 0) == (b[4] == 0))
}

/// Turns the counters of a flow at the beginning into what they have grown by since.
fn grow(entry: &mut [u64], now: &[u64; QP_FIGURES]) {
    entry[..4].iter_mut().zip(now).for_each(|(entry, now)| *entry = now.wrapping_sub(*entry));
    // That one counts modulo 2^32.
    entry[3] &= u64::from(u32::MAX);
}

/// The leading `bits` of a number after its first, and their place: steps of 2^-`bits`.
fn coarse(value: u64, bits: u32) -> u64 {
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(bits);
    u64::from(shift) << 16 | value >> shift
}

fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(mix(hash, bytes.len() as u64), |hash, byte| mix(hash, u64::from(*byte)))
}

//! Episodes: what becomes of a partition from one change of its members to the next is simulated once, and looked up
//! from then on.
//!
//! At the end of an instant in which flows have joined or left, a partition's state is put into canonical form: that is
//! the *key*. The episode ends with the instant in which the first of its flows finish, or with the drain of the whole
//! partition. What has been counted until then, who finished, and the state of those that go on is the *value*.
//!
//! * The part of an episode up to where a partition begins to repeat itself, or to run steadily, is a record too, in
//!   whose key the sizes of flows are left out (see `convergence`).
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

use super::arena::Block;
use super::park::{EPISODE, Parked};
use super::partition::{LEFT, for_each_port, for_each_qp};
use super::rarer;
use super::value::{LONGEST, MOTION, PORT_FIGURES, QP_FIGURES, TRUST, TRUSTED, VALUE_HEADER};
use crate::ids::PartitionId;
use crate::kernel::{Kernel, PACKETS_PER_EVENT};
use crate::memo::{Precision, record_name};
use crate::models::Models;
use crate::observer::Observer;
use crate::router::{RouteKey, Router};
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// Interrupts that are looked for among the flows that start next.
const FLOWS_LOOKED_AT: usize = 1_024;
/// A look-up costs about 10 ns a word of its key, and as much again if it comes to nothing and is recorded, a packet of
/// a flow some 500 ns on its way: a word for two packets keeps that a few per cent of the work.
const PACKETS_PER_WORD: u64 = 2;
/// Words that may be spent before anything has been earned.
pub(crate) const CREDIT: u64 = 1 << 16;

/// A recording, if there is one.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Episode {
    pub(super) began: SimTime,
    pub(super) key: Block,
    /// The coarse key, if there is one to be kept too.
    pub(super) coarse: Block,
    /// The counters at its beginning, and what must not have changed.
    pub(super) ledger: Block,
    /// The value that a record has, if this simulation is to check it.
    pub(super) expected: Block,
    /// Flows that have finished, all in the present instant.
    pub(super) finished: u32,
    /// Something has happened that cannot be in a record.
    pub(super) is_spoilt: u32,
    /// Those that follow it, eldest first; and in a follower: the next of them, and whom it follows.
    pub(super) first_follower: PartitionId,
    pub(super) last_follower: PartitionId,
    pub(super) next_follower: PartitionId,
    pub(super) leader: PartitionId,
    /// Flows share a port.
    pub(super) contended: u32,
    /// Its motion has been found already, and recorded.
    pub(super) has_converged: u32,
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
        last_follower: PartitionId::NONE,
        next_follower: PartitionId::NONE,
        leader: PartitionId::NONE,
        contended: 0,
        has_converged: 0,
    };

    /// Whether what happens to the partition is being recorded.
    pub(super) fn is_recording(&self) -> bool {
        !self.key.is_none()
    }
}

/// The partitions whose recording has begun in the present instant: whom others may follow.
#[derive(Clone, Default)]
pub(crate) struct Leaders {
    pub(super) at: SimTime,
    /// Half of the names of their keys: whole keys are compared after that. What does not fit is not followed.
    pub(super) list: heapless::Vec<(u32, PartitionId), 64>,
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
        if self.has_more_now() {
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
        // Mostly, where there are many flows, there is no credit: then not even their frames are counted.
        if self.price_without_frames(id) > self.credit {
            return;
        }
        let cost = self.price(id);
        if cost > self.credit {
            return;
        }
        let partition = self.partitions.get(id);
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
        self.price_without_frames(id) + 8 * self.frames(id) as u64
    }

    fn price_without_frames(&self, id: PartitionId) -> u64 {
        let partition = self.partitions.get(id);
        48 * u64::from(partition.qps) + 32 * u64::from(partition.ports)
    }

    /// A look-up that was worth it costs nothing.
    pub(super) fn refund(&mut self, id: PartitionId) {
        self.fruitless = 0;
        self.credit = self.credit.saturating_add(self.price(id));
    }

    /// A flow earns the look-ups that it causes: they stay a small share of its events.
    pub(crate) fn earn(&mut self, bytes: u64) {
        let packets = bytes / u64::from(self.models.transport.mtu);
        self.credit = self.credit.saturating_add(packets / (PACKETS_PER_WORD * rarer(self.fruitless)));
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
            let motion = self.find_motion(id, episode);
            self.record(id, episode);
            if self.partitions.get(id).episode.is_recording() {
                // More distinct patterns at once than fit are not followed.
                let _ = self.leaders.list.push((name as u32, id));
            }
            if let Some(value) = motion {
                // Simulated from there on, and recorded as a whole.
                return self.park_episode(id, start, value);
            }
            self.fruitless += 1;
            self.memoised.misses += 1;
            self.memoised.distinct += 1;
            self.arena.free(&mut start);
        }
    }

    pub(super) fn free_episode(&mut self, episode: Episode) {
        let Episode { mut key, mut coarse, mut ledger, mut expected, .. } = episode;
        self.arena.free(&mut key);
        self.arena.free(&mut coarse);
        self.arena.free(&mut ledger);
        self.arena.free(&mut expected);
    }

    /// The value of the record with this key, with room behind it for the ids that its final state will need.
    pub(super) fn find(&mut self, id: PartitionId, key: Block) -> Option<Block> {
        let room = self.id_words(id);
        let store = self.memo.as_mut().filter(|_| !key.is_none())?;
        let value = store.find(self.arena.get(key))?;
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
        if self.fits(id, value) {
            return self.park_episode(id, start, value);
        }
        self.refund(id);
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
    pub(super) fn fits(&mut self, id: PartitionId, value: Block) -> bool {
        let [span, finished, ..] = self.arena.get(value)[..] else { return false };
        let until = self.now() + Span(span);
        if finished as usize > self.completions.capacity()
            || !self.frames_fit(id, value)
            || self.is_interrupted_by(id, until)
        {
            return false;
        }
        let (has_motion, mtu) = (self.arena.get(value)[MOTION] != 0, u64::from(self.models.transport.mtu));
        let mut at = VALUE_HEADER;
        for_each_port!(self, id, port, {
            self.parking[port.index()].reserved = self.arena.get(value)[at + LONGEST];
            at += PORT_FIGURES;
        });
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            if slot.is_open() {
                let [bytes, .., finish, left] = self.arena.get(value)[at..at + QP_FIGURES] else { return false };
                // A flow may have less left than the record takes for granted: with coarse keys, or with none of sizes.
                let needed = if has_motion { left + mtu } else { bytes.saturating_add(2 * slot.bdp) };
                let now_left = slot.size - slot.snd_una;
                if finish == 0 && (has_motion || now_left != left) && now_left <= needed {
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

    /// A hit.
    fn park_episode(&mut self, id: PartitionId, start: Block, value: Block) {
        self.memoised.hits += 1;
        self.refund(id);
        self.hold_frames(id, value);
        let now = self.now();
        let until = now + Span(self.arena.get(value)[0]);
        self.park(id, Parked { since: now, until, before: start, after: value, kind: EPISODE, ..Parked::NONE });
    }

    /// Frames that a partition has at the end of an episode beyond those it has now.
    fn more_frames(&self, id: PartitionId, value: Block) -> usize {
        (self.arena.get(value)[2] as usize).saturating_sub(self.frames(id))
    }

    /// Whether there is room for them.
    pub(super) fn frames_fit(&self, id: PartitionId, value: Block) -> bool {
        self.packets.available() >= self.more_frames(id, value) + PACKETS_PER_EVENT
    }

    /// Words for the ids of a partition's members: behind a value, those that go on will stand.
    pub(super) fn id_words(&self, id: PartitionId) -> usize {
        let partition = self.partitions.get(id);
        partition.qps as usize + partition.ports as usize
    }

    /// Holds room for the frames that a value will have.
    pub(super) fn hold_frames(&mut self, id: PartitionId, value: Block) {
        self.packets.hold(self.more_frames(id, value));
    }
}

//! Playing back: partitions that follow others, and partitions whose future is known.

use super::SkippedBy;
use super::arena::Block;
use super::episode::Episode;
use super::park::{EPISODE, FOLLOWER, Parked};
use super::snapshot::counts;
use super::value::{MOTION, PORT_FIGURES, QP_FIGURES, VALUE_HEADER};
use crate::event::{Event, EventKey};
use crate::flow::FlowEnd;
use crate::ids::{PartitionId, PortId, QpId};
use crate::kernel::Kernel;
use crate::log::debug;
use crate::memo::Precision;
use crate::models::Models;
use crate::observer::Observer;
use crate::port::Port;
use crate::qp::QpState;
use crate::units::{SimTime, Span};

/// What has come of a partition that was replayed in an instant: of others like it the same comes.
#[derive(Clone, Copy)]
pub(crate) struct Twin {
    /// Of its start, exactly.
    key: Block,
    value: Block,
    since: SimTime,
}

/// Partitions that were replayed in one instant.
#[derive(Clone, Default)]
pub(crate) struct Twins {
    at: SimTime,
    /// What does not fit has no twins.
    list: heapless::Vec<Twin, 8>,
}

/// Following and playing back.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// A partition of this key whose recording has begun in this instant.
    pub(super) fn leader(&self, name: u64, key: Block) -> Option<PartitionId> {
        let is_it = |id: PartitionId| {
            let Episode { began, key: of, is_spoilt, .. } = self.partitions.get(id).episode;
            let is_one = !of.is_none() && is_spoilt == 0 && began == self.now();
            is_one && self.arena.get(of) == self.arena.get(key)
        };
        self.leaders.list.iter().find(|(of, id)| *of == name as u32 && is_it(*id)).map(|(_, id)| *id)
    }

    /// Whether a partition may follow: no buffer is felt as yet. What it may come to have in switches is not known; it
    /// is reserved as the leader's queues grow.
    pub(super) fn may_follow(&mut self, id: PartitionId, leader: PartitionId) -> bool {
        let (mut next, mut followed) = (self.first_port(id), self.first_port(leader));
        while let (Some(port), Some(of)) = (next, followed) {
            self.parking[port.index()].reserved = self.ports[of.index()].max_queue;
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
            let reserved = &mut self.parking[port.index()].reserved;
            let more = max_queue - core::mem::replace(reserved, max_queue);
            self.reserve[node.index()] += more;
            calm &= self.is_calm_at(node);
            follower = self.partitions.get(follower).episode.next_follower;
        }
        if !calm {
            self.interrupt_recording(id, false);
        }
    }

    pub(super) fn follow(&mut self, id: PartitionId, leader: PartitionId, start: Block) {
        self.memoised.followers += 1;
        self.refund(id);
        self.park(id, Parked { since: self.now(), until: SimTime::MAX, before: start, kind: FOLLOWER, ..Parked::NONE });
        self.partitions.get_mut(id).episode.leader = leader;
        let led = &mut self.partitions.get_mut(leader).episode;
        let last = core::mem::replace(&mut led.last_follower, id);
        if last.is_none() {
            led.first_follower = id;
        } else {
            self.partitions.get_mut(last).episode.next_follower = id;
        }
    }

    pub(super) fn unlink_first_follower(&mut self, leader: PartitionId) -> Option<PartitionId> {
        let first = self.partitions.get(leader).episode.first_follower;
        first.is_some().then(|| {
            self.unlink(first);
            first
        })
    }

    /// A partition follows no more.
    fn unlink(&mut self, id: PartitionId) {
        let Episode { leader, next_follower, .. } = self.partitions.get(id).episode;
        let (mut before, mut at) = (PartitionId::NONE, self.partitions.get(leader).episode.first_follower);
        while at != id {
            (before, at) = (at, self.partitions.get(at).episode.next_follower);
        }
        if before.is_none() {
            self.partitions.get_mut(leader).episode.first_follower = next_follower;
        } else {
            self.partitions.get_mut(before).episode.next_follower = next_follower;
        }
        if next_follower.is_none() {
            self.partitions.get_mut(leader).episode.last_follower = before;
        }
        self.partitions.get_mut(id).episode = Episode::NONE;
    }

    /// The leader's episode is over: so is its follower's. It is played back as an event of its own.
    pub(super) fn give(&mut self, id: PartitionId, value: Block) {
        let Some(copy) = self.copy_value(id, value) else {
            // It is replayed: nobody leads it any more.
            self.partitions.get_mut(id).parked.kind = EPISODE;
            return self.wake(id);
        };
        let now = self.now();
        let parked = &mut self.partitions.get_mut(id).parked;
        (parked.kind, parked.after, parked.until) = (EPISODE, copy, now);
        self.await_end(id);
    }

    /// The end of an episode that is played back comes when all else of its instant has happened.
    pub(super) fn await_end(&mut self, id: PartitionId) {
        let partition = self.partitions.get(id);
        let Parked { anchor, until, .. } = partition.parked;
        let key = EventKey::at_end_of(until, partition.elder);
        self.schedule(Event::Unpark(anchor), key);
    }

    /// A copy of a value for another partition, with room for ids and its frames held. `None` if there is no room, or
    /// outputs will never have room for all its flows at once.
    fn copy_value(&mut self, id: PartitionId, value: Block) -> Option<Block> {
        let finished = self.arena.get(value)[1] as usize;
        if finished > self.completions.capacity() || !self.frames_fit(id, value) {
            return None;
        }
        let copy = self.arena.copy(value, self.id_words(id))?;
        self.hold_frames(id, value);
        Some(copy)
    }

    /// The end of an episode that was looked up: if outputs have room, it happens.
    pub(super) fn end_episode(&mut self, id: PartitionId) {
        let finished = self.arena.get(self.partitions.get(id).parked.after)[1] as usize;
        if self.completions.room() < finished {
            self.outputs_needed = finished;
            self.interrupted = true;
            return self.await_end(id);
        }
        let parked = self.unpark_members(id);
        self.count_memo_time(id, parked.since, parked.until);
        self.play(id, parked);
    }

    fn count_memo_time(&mut self, id: PartitionId, from: SimTime, to: SimTime) {
        self.memoised.time += to.since(from);
        self.tell_skipped(id, from, to, SkippedBy::Memo);
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
            self.parking[port.index()].skipped += parked.until.min(self.now()).since(parked.since);
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
        let motion_at = self.arena.get(after)[MOTION] as usize;
        if motion_at == 0 {
            self.note_change(id);
        } else {
            self.resume_motion(id, after, motion_at);
        }
        self.arena.free(&mut before);
        self.arena.free(&mut after);
    }

    fn play_port(&mut self, port: PortId, value: Block, at: usize) {
        let [frames, bytes, marks, queue, wakes, longest, served] =
            core::array::from_fn(|i| self.arena.get(value)[at + i]);
        let state = &mut self.ports[port.index()];
        state.marks += marks;
        state.queue_byte_ns = state.queue_byte_ns.wrapping_add(queue);
        state.wakes = state.wakes.wrapping_add(wakes as u32);
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
        slot.timers = slot.timers.wrapping_add(timers as u32);
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
        let parked = self.unpark_members(id);
        let Parked { since, mut before, mut after, .. } = parked;
        if !after.is_none() {
            let frames = self.arena.get(after)[2] as usize;
            self.packets.release(frames.saturating_sub(self.frames(id)));
        }
        let mut key = self.write_key(id, before, Precision::Exact).unwrap_or_default();
        if let Some(value) = self.of_twin(id, key, since) {
            self.arena.free(&mut key);
            self.arena.free(&mut after);
            self.count_memo_time(id, since, self.now());
            return self.play(id, Parked { after: value, ..parked });
        }
        self.replay_for_twins(id, before, since, key);
        self.arena.free(&mut before);
        self.arena.free(&mut after);
    }

    /// What has come of a partition that began with this key at the same time, and was replayed in this instant.
    fn of_twin(&mut self, id: PartitionId, key: Block, since: SimTime) -> Option<Block> {
        self.forget_old_twins();
        let is_it = |twin: &&Twin| twin.since == since && self.arena.get(twin.key) == self.arena.get(key);
        let value = self.twins.list.iter().find(is_it).map(|twin| twin.value)?;
        self.copy_value(id, value)
    }

    /// Replays a partition whose start has this key, and keeps what comes of it for others like it. Nothing of it goes
    /// to the store. A partition whose motion was known is in a recording of its own, which goes on.
    fn replay_for_twins(&mut self, id: PartitionId, start: Block, since: SimTime, mut key: Block) {
        let is_recording = self.partitions.get(id).episode.is_recording();
        let is_kept = !key.is_none() && !is_recording && !self.twins.list.is_full();
        let Some(copy) = is_kept.then(|| self.arena.copy(key, 0)).flatten() else {
            self.arena.free(&mut key);
            return self.replay(id, start, since);
        };
        self.record(id, Episode { key, has_converged: 1, ..Episode::NONE });
        self.partitions.get_mut(id).episode.began = since;
        self.replay(id, start, since);
        self.note_twin(id, copy, since);
    }

    /// Keeps what has come of a partition by now, if it can be told and nothing has come of it outside.
    fn note_twin(&mut self, id: PartitionId, mut key: Block, since: SimTime) {
        let episode = &self.partitions.get(id).episode;
        let is_told = episode.is_recording() && episode.finished == 0 && !self.must_stop();
        let value = if is_told { self.write_value(id, false, None) } else { None };
        if self.partitions.get(id).episode.is_recording() {
            self.drop_recording(id);
        }
        match value {
            Some(value) => {
                // Whether there is room has been seen to.
                let _ = self.twins.list.push(Twin { key, value, since });
            }
            None => self.arena.free(&mut key),
        }
    }

    /// Twins are those of one instant.
    fn forget_old_twins(&mut self) {
        let now = self.now();
        if self.twins.at != now {
            for mut twin in core::mem::take(&mut self.twins.list) {
                self.arena.free(&mut twin.key);
                self.arena.free(&mut twin.value);
            }
            self.twins.at = now;
        }
    }

    /// A follower takes its leader's state over as it is now. Says whether that could be told.
    fn take_over(&mut self, id: PartitionId) -> bool {
        let leader = self.partitions.get(id).episode.leader;
        let Episode { is_spoilt, finished, .. } = self.partitions.get(leader).episode;
        if is_spoilt != 0 || self.completions.room() < finished as usize {
            return false;
        }
        self.wake(leader);
        let Some(mut value) = self.write_value(leader, true, None) else { return false };
        let copy = self.copy_value(id, value);
        self.arena.free(&mut value);
        let Some(after) = copy else { return false };
        self.unlink(id);
        let parked = self.unpark_members(id);
        self.count_memo_time(id, parked.since, self.now());
        self.play(id, Parked { after, ..parked });
        true
    }
}

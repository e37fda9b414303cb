//! Recording: what a partition does in an episode, from its counters at the beginning to a value at the end.

use super::arena::{Arena, Block};
use super::convergence::Motion;
use super::episode::Episode;
use super::park::Parked;
use super::partition::{for_each_port, for_each_qp};
use super::snapshot::{WITNESS_WORDS, counts, is_mid_instant, state};
use super::value::{CHAOTIC, PORT_FIGURES, QP_FIGURES, TRUST, TRUSTED, UNTRUSTED, VALUE_HEADER, Writer, agree, grow};
use crate::ids::{PartitionId, PortId, QpId};
use crate::kernel::Kernel;
use crate::memo::record_name;
use crate::models::Models;
use crate::observer::Observer;

/// Recording.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Begins to record a partition: `episode` tells the keys, and the value to expect if it is known.
    pub(super) fn record(&mut self, id: PartitionId, episode: Episode) {
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
    pub(super) fn end_recording(&mut self, id: PartitionId, is_over: bool) {
        let Episode { expected, finished, .. } = self.partitions.get(id).episode;
        let value = if finished > 0 { self.write_value(id, is_over, None) } else { None };
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

    /// Ends the recordings in which flows have finished in this instant, which is over but for those that follow: with
    /// their values these come to their ends in the same instant.
    #[cold]
    pub(crate) fn end_followed_recordings(&mut self) {
        let mut id = self.partitions.first_due();
        while id.is_some() {
            let Episode { finished, first_follower, .. } = self.partitions.get(id).episode;
            if finished > 0 && first_follower.is_some() {
                self.end_recording(id, true);
            }
            id = self.partitions.due_after(id);
        }
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

    pub(super) fn drop_recording(&mut self, id: PartitionId) {
        self.recordings -= 1;
        let episode = core::mem::replace(&mut self.partitions.get_mut(id).episode, Episode::NONE);
        self.free_episode(episode);
    }

    /// What has come of a recorded partition up to now; `motion`: how it is to go on, if it is being parked. `None` if
    /// that cannot be told.
    pub(super) fn write_value(&mut self, id: PartitionId, is_over: bool, motion: Option<&Parked>) -> Option<Block> {
        let Episode { ledger, is_spoilt, .. } = self.partitions.get(id).episode;
        if is_spoilt != 0 {
            return None;
        }
        let mut end = self.capture(id)?;
        let ports = self.partitions.get(id).ports as usize;
        let told = self.arena.get(ledger).len() + state(self.arena.get(end)).len() + 2 * ports + VALUE_HEADER;
        let room = told + motion.map_or(0, |motion| self.motion_words(motion));
        let block = self.arena.alloc(room);
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let told = block.and_then(|block| {
            let Parked { ledger: moved, before, .. } = motion.copied().unwrap_or(Parked::NONE);
            let [value, ledger, end, moved, before] = arena.several([block, ledger, end, moved, before]);
            let motion = motion.map(|parked| Motion { parked, ledger: moved, before });
            self.tell(id, value, ledger, end, is_over, motion)
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

    fn tell(
        &self,
        id: PartitionId,
        value: &mut [u64],
        ledger: &[u64],
        end: &[u64],
        is_over: bool,
        motion: Option<Motion<'_>>,
    ) -> Option<usize> {
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
            if motion.is_some() {
                grown[5] = self.sent_on_the_way(qp, entry[0], entry[5])?;
            }
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
        let motion_at = if motion.is_some() { value.at as u64 } else { 0 };
        if let Some(motion) = motion {
            self.tell_motion(id, value, motion);
        }
        let end_at = value.at;
        value.put_all(state(end).iter().copied());
        let (span, frames) = (self.now().since(began).0, self.frames(id) as u64);
        let (finish_at, end_at) = (finish_at as u64, end_at as u64);
        let header = [span, u64::from(finished), frames, finish_at, end_at, UNTRUSTED, motion_at];
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

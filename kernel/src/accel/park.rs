//! Parking and waking.
//!
//! A parked partition has no frame on a wire and no timer, only a wake-up: the earliest interrupt that is known. What
//! its ports and buffers hold stays where it is, for others to see. It may be woken at any time before: its state is
//! set up as of then. In an exact stretch the last part of a period is simulated, on the partition's own, up to the
//! present.

use super::arena::{Arena, Block};
use super::partition::{for_each_port, for_each_qp};
use super::{Looks, SkippedBy};
use crate::buffer::BufferManager;
use crate::cca::CongestionControl;
use crate::event::{CCA_TIMERS, Clock, Event, EventKey};
use crate::ids::{NodeId, PartitionId, PortId, QpId};
use crate::kernel::{CcaState, Kernel};
use crate::lane::{Lanes, Merge};
use crate::log::debug;
use crate::models::Models;
use crate::observer::Observer;
use crate::packet::{Packet, PacketList};
use crate::port::IN_LANE;
use crate::qp::Qp;
use crate::queue::EventQueue;
use crate::router::Router;
use crate::scheduler::PRIORITIES;
use crate::transport::Transport;
use crate::units::{SimTime, Span, quotient};
use bytemuck::{Pod, Zeroable};

/// Words of a ledger per port and per queue pair.
pub(super) const PORT_ENTRIES: usize = 5;
pub(super) const QP_ENTRIES: usize = 4;

/// Its flows go on at their rates.
pub(crate) const STEADY: u32 = 0;
/// Whole periods are skipped, which repeat.
pub(crate) const RECURRENCE: u32 = 1;
/// What will have become of it at the end is known: it stands in `after`.
pub(crate) const EPISODE: u32 = 2;
/// The same becomes of it as of another partition.
pub(crate) const FOLLOWER: u32 = 3;

/// A stretch that is being skipped.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Parked {
    pub(crate) since: SimTime,
    pub(crate) until: SimTime,
    /// The time before `since` in which what the ledger tells was done: a period, or the time measured.
    pub(crate) span: Span,
    /// The counters at its beginning.
    pub(crate) ledger: Block,
    /// The state at the beginning of a period; with [`EPISODE`] and [`FOLLOWER`] that at `since`.
    pub(crate) before: Block,
    /// The state at `since`; with [`EPISODE`] the value that tells of the end.
    pub(crate) after: Block,
    /// Why it is out of the simulation: [`STEADY`], [`RECURRENCE`], [`EPISODE`] or [`FOLLOWER`].
    pub(crate) kind: u32,
    /// The port whose timer is the wake-up.
    pub(super) anchor: PortId,
}

impl Parked {
    pub(crate) const NONE: Parked = Parked {
        since: SimTime::ZERO,
        until: SimTime::ZERO,
        span: Span::ZERO,
        ledger: Block::NONE,
        before: Block::NONE,
        after: Block::NONE,
        kind: STEADY,
        anchor: PortId::NONE,
    };
}

/// How much of what a span had is to be added: so many of it, or a fraction.
#[derive(Clone, Copy)]
struct Share {
    of: u64,
    per: u64,
}

impl Share {
    /// This share of what a counter has grown, a multiple of `unit`.
    fn of(self, now: u64, before: u64, unit: u64) -> u64 {
        let grown = u128::from(now.wrapping_sub(before));
        let share = quotient(grown * u128::from(self.of), u128::from(self.per.max(1)));
        let share = u64::try_from(share).unwrap_or(u64::MAX);
        share - share % unit.max(1)
    }

    /// Adds this share of what a counter modulo 2^32 has grown to it; gives what it added.
    fn add_to(self, counter: &mut u32, before: u64) -> u64 {
        let more = self.of(u64::from(counter.wrapping_sub(before as u32)), 0, 1);
        *counter = counter.wrapping_add(more as u32);
        more
    }
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Writes down the counters of a partition's ports and open flows, if there is room.
    pub(crate) fn write_ledger(&mut self, id: PartitionId) -> Option<Block> {
        let partition = self.partitions.get(id);
        let words = partition.ports as usize * PORT_ENTRIES + partition.qps as usize * QP_ENTRIES;
        let block = self.arena.alloc(words)?;
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let mut words = arena.get_mut(block).iter_mut();
        self.each_ledger_word(id, |word, _| {
            if let Some(entry) = words.next() {
                *entry = word;
            }
        });
        self.arena = arena;
        Some(block)
    }

    /// Calls `visit` with every word of a ledger as it would be written now, and whether it counts modulo 2^32.
    pub(super) fn each_ledger_word(&self, id: PartitionId, mut visit: impl FnMut(u64, bool)) {
        for_each_port!(self, id, port, {
            let state = &self.ports[port.index()];
            for word in [state.sent_frames, state.sent_bytes, state.marks, state.queue_byte_ns] {
                visit(word, false);
            }
            visit(u64::from(state.wakes), true);
        });
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            if !slot.is_open() {
                continue;
            }
            for word in [slot.snd_una, slot.acks, slot.rtt_sum.0] {
                visit(word, false);
            }
            visit(u64::from(slot.timers), true);
        });
    }

    /// Where the entries of flows begin in a partition's ledgers.
    pub(super) fn ledger_entries_at(&self, id: PartitionId) -> usize {
        self.partitions.get(id).ports as usize * PORT_ENTRIES
    }

    /// Calls `visit` with every queue pair of a partition and its acknowledged bytes in a ledger.
    pub(crate) fn each_ledger_entry(
        &mut self,
        id: PartitionId,
        ledger: Block,
        mut visit: impl FnMut(&mut Qp, &mut u64),
    ) {
        let mut at = self.ledger_entries_at(id);
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                visit(&mut self.qps.slots[qp.index()], &mut self.arena.get_mut(ledger)[at]);
                at += QP_ENTRIES;
            }
        });
    }

    /// How many periods like the one since the ledger was written fit before any flow sends its last packets.
    pub(crate) fn rounds_before_an_end(&mut self, id: PartitionId, ledger: Block) -> u64 {
        let mtu = u64::from(self.models.transport.mtu);
        let mut rounds = u64::MAX;
        self.each_ledger_entry(id, ledger, |qp, before| {
            // A flow that stands still does not end.
            if let Some(fits) = qp.bytes_left().saturating_sub(mtu).checked_div(qp.snd_una - *before) {
                rounds = rounds.min(fits.saturating_sub(1));
            }
        });
        rounds
    }

    /// Takes an active partition out of the simulation until `parked.until`.
    pub(crate) fn park(&mut self, id: PartitionId, parked: Parked) {
        let Some(anchor) = self.first_port(id) else { return };
        self.note_convergence(id, &parked);
        debug!("{} ps: partition {} parks until {} ps", self.now().0, id.0, parked.until.0);
        self.lift(id);
        self.reserve(id, true);
        let partition = self.partitions.get_mut(id);
        partition.parked = Parked { anchor, ..parked };
        self.partitions.parked += 1;
        self.watching_has_paid();
        match parked.kind {
            FOLLOWER => {}
            EPISODE => self.await_end(id),
            _ => {
                let key = self.clock.issue(parked.until.since(self.now()));
                self.schedule(Event::Unpark(anchor), key);
            }
        }
    }

    /// Takes the frames and timers of a partition out. They are in its snapshot.
    fn lift(&mut self, id: PartitionId) {
        let mut frames = PacketList::EMPTY;
        let (on_wires, sending) = (self.frames_on_wires(id), self.ports_sending(id));
        let qps = &self.qps.slots;
        let of = |qp: QpId| qps.get(qp.index()).map(|slot| slot.partition);
        let is_cut = |packet: &Packet| of(packet.qp()) == Some(id);
        self.lanes.cut(&mut self.packets, is_cut, on_wires, &mut frames);
        self.lanes.cut_ports(self.ports, |port| port.partition == id, sending);
        self.on_wire -= self.shelve(frames);
        for_each_port!(self, id, port, {
            let own = core::mem::replace(&mut self.ports[port.index()].lane, PacketList::EMPTY);
            self.on_wire -= self.shelve(own);
            self.wakes -= usize::from(self.events.pending(self.timers.timer(Event::Wake(port))).is_some());
            for priority in 0..PRIORITIES as u8 {
                let queue = &mut self.queues[(port, priority)];
                let waiting = core::mem::replace(&mut queue.frames, PacketList::EMPTY);
                self.shelve(waiting);
            }
            for event in [Event::Arrive(port), Event::TxDone(port), Event::Wake(port)] {
                self.cancel(event);
            }
            self.ports[port.index()].awaits_done = 0;
        });
        for_each_qp!(self, id, qp, {
            (0..CCA_TIMERS).for_each(|timer| self.cancel(Event::Cca(qp, timer)));
            self.cancel(Event::Qp(qp));
        });
    }

    /// Ports of a partition that are in a lane of transmissions.
    fn ports_sending(&self, id: PartitionId) -> usize {
        let mut sending = 0;
        for_each_port!(self, id, port, {
            sending += usize::from(self.ports[port.index()].awaits_done == IN_LANE);
        });
        sending
    }

    /// Takes frames out for now; gives their number.
    fn shelve(&mut self, mut frames: PacketList) -> usize {
        let mut count = 0;
        while let Some(frame) = frames.pop(&self.packets) {
            self.packets.shelve(frame);
            count += 1;
        }
        count
    }

    /// The wake-up of a parked partition has come.
    pub(crate) fn unpark(&mut self, anchor: PortId) {
        let id = self.ports[anchor.index()].partition;
        if id.is_none() {
            return;
        }
        if self.partitions.get(id).parked.kind == EPISODE {
            self.end_episode(id);
        } else {
            self.wake(id);
        }
    }

    /// Wakes every parked partition: what is counted is up to date then.
    pub fn wake_all(&mut self) {
        for id in self.partitions.ids() {
            self.wake(id);
        }
    }

    /// Takes every partition whose state can be told out of the simulation, and sets it up again from its snapshot:
    /// this changes nothing, which shows that snapshots are whole. Gives the number of partitions.
    pub fn renew(&mut self) -> usize {
        let mut renewed = 0;
        for id in self.partitions.ids() {
            let partition = self.partitions.get(id);
            if partition.qps == 0 || partition.is_parked() {
                continue;
            }
            if let Some(mut state) = self.capture(id) {
                self.lift(id);
                self.restore(state, 0);
                self.arena.free(&mut state);
                renewed += 1;
            }
        }
        renewed
    }

    /// Brings a partition back, if it is parked, as it is now.
    pub(crate) fn wake(&mut self, id: PartitionId) {
        let partition = self.partitions.get(id);
        if !partition.is_parked() {
            return;
        }
        if let EPISODE | FOLLOWER = partition.parked.kind {
            return self.break_off(id);
        }
        let now = self.now();
        let Parked { since, span, mut ledger, mut before, mut after, kind, .. } = self.unpark_members(id);
        let passed = now.since(since);
        if kind == RECURRENCE {
            let rounds = passed.0 / span.0.max(1);
            let start = since + Span(rounds * span.0);
            self.advance(id, ledger, Share { of: rounds, per: 1 }, start.since(since), false);
            self.coast(id, before, after, rounds);
            self.skipped.time_exact += start.since(since);
            self.tell_skipped(id, since, start, SkippedBy::Exact);
            self.catch_up(after, start, false);
        } else {
            self.advance(id, ledger, Share { of: passed.0, per: span.0 }, passed, M::Router::PER_FLOW);
            self.skipped.time_bounded += passed;
            self.tell_skipped(id, since, now, SkippedBy::Bounded);
            self.catch_up(after, now, false);
            self.resume_watch(id, passed);
        }
        self.arena.free(&mut ledger);
        self.arena.free(&mut before);
        self.arena.free(&mut after);
        self.watch_on(id);
    }

    pub(super) fn tell_skipped(&mut self, id: PartitionId, from: SimTime, to: SimTime, by: SkippedBy) {
        if from < to {
            self.observer.skipped(from, to, id, by);
        }
    }

    /// A partition is parked no more; its members are still out of the simulation.
    pub(super) fn unpark_members(&mut self, id: PartitionId) -> Parked {
        debug!("{} ps: partition {} wakes", self.now().0, id.0);
        let parked = core::mem::replace(&mut self.partitions.get_mut(id).parked, Parked::NONE);
        self.partitions.parked -= 1;
        self.skipped.wakes += 1;
        self.skipped.skip_backs += u64::from(self.now() < parked.until);
        self.cancel(Event::Unpark(parked.anchor));
        self.reserve(id, false);
        parked
    }

    /// Simulates a partition from the start that was kept up to the present.
    pub(super) fn replay(&mut self, id: PartitionId, start: Block, since: SimTime) {
        self.catch_up(start, since, true);
        // It may have been found to repeat itself on the way.
        self.wake(id);
    }

    /// Adds what would have been counted. `by_flow`: what ports have sent follows from their flows; else, in whole
    /// periods or where packets are sprayed, from the ledger.
    fn advance(&mut self, id: PartitionId, ledger: Block, share: Share, time: Span, by_flow: bool) {
        let mut at = 0;
        for_each_port!(self, id, port, {
            let entries = core::array::from_fn(|i| self.arena.get(ledger)[at + i]);
            self.advance_port(port, entries, share, by_flow);
            self.parking[port.index()].skipped += time;
            at += PORT_ENTRIES;
        });
        for_each_qp!(self, id, qp, {
            if !self.qps.slots[qp.index()].is_open() {
                continue;
            }
            let entries = core::array::from_fn(|i| self.arena.get(ledger)[at + i]);
            let packets = self.advance_qp(qp, entries, share);
            if by_flow {
                self.credit(qp, packets);
            }
            at += QP_ENTRIES;
        });
    }

    fn advance_port(&mut self, port: PortId, entries: [u64; PORT_ENTRIES], share: Share, by_flow: bool) {
        let [frames, bytes, marks, queue, wakes] = entries;
        let (_, byte_unit) = self.telemetry_units();
        let state = &mut self.ports[port.index()];
        let new_marks = share.of(state.marks, marks, 1);
        state.marks += new_marks;
        state.queue_byte_ns = state.queue_byte_ns.wrapping_add(share.of(state.queue_byte_ns, queue, 1));
        self.totals.ecn_marks += new_marks;
        self.skipped.events += share.add_to(&mut state.wakes, wakes);
        if !by_flow {
            let (frames, bytes) =
                (share.of(state.sent_frames, frames, 1), share.of(state.sent_bytes, bytes, byte_unit));
            self.count_sent(port, frames, bytes);
        }
    }

    pub(super) fn count_sent(&mut self, port: PortId, frames: u64, bytes: u64) {
        let state = &mut self.ports[port.index()];
        state.sent_frames += frames;
        state.sent_bytes += bytes;
        // The end of a transmission and the arrival.
        self.skipped.events += 2 * frames;
    }

    /// Moves a flow on; gives the packets that it has sent.
    fn advance_qp(&mut self, qp: QpId, entries: [u64; QP_ENTRIES], share: Share) -> u64 {
        let [acked, acks, rtt_sum, timers] = entries;
        let mtu = u64::from(self.models.transport.mtu);
        let slot = &mut self.qps.slots[qp.index()];
        let bytes = share.of(slot.snd_una, acked, mtu);
        self.skipped.events += share.add_to(&mut slot.timers, timers);
        let (acks, rtt_sum) = (share.of(slot.acks, acks, 1), Span(share.of(slot.rtt_sum.0, rtt_sum, 1)));
        slot.snd_una += bytes;
        slot.acks += acks;
        slot.rtt_sum += rtt_sum;
        for mark in &mut slot.marks {
            mark.acked += bytes;
            mark.acks += acks;
            mark.rtt_sum += rtt_sum;
        }
        bytes / mtu
    }

    /// Counts the packets of a flow and their acknowledgements at every port they have passed. So the counters of
    /// ports and flows agree whatever was measured: telemetry tells of the differences between ports to the byte.
    fn credit(&mut self, qp: QpId, packets: u64) {
        let header = self.qps.slots[qp.index()].header;
        let data = u64::from(Transport::data_bytes(self.models.transport.mtu, header));
        let ack = u64::from(Transport::ack_bytes(header));
        self.each_port(qp, &mut |kernel, port, is_data| {
            kernel.count_sent(port, packets, packets * if is_data { data } else { ack });
        });
    }

    /// Brings what congestion controls leave out of recurrences forward, in the snapshot at the end.
    fn coast(&mut self, id: PartitionId, before: Block, after: Block, rounds: u64) {
        let mut at = self.arena.get(after)[2] as usize;
        for_each_qp!(self, id, qp, {
            if !self.qps.slots[qp.index()].is_open() {
                continue;
            }
            let words = at..at + Self::CCA_WORDS;
            let before = Self::cca_of(&self.arena.get(before)[words.clone()]);
            let mut state = Self::cca_of(&self.arena.get(after)[words.clone()]);
            let cca = &self.models.ccas[self.qps.slots[qp.index()].cca as usize];
            cca.coast(&mut state, &before, rounds);
            let to = bytemuck::cast_slice_mut(&mut self.arena.get_mut(after)[words]);
            to[..size_of::<CcaState<M>>()].copy_from_slice(bytemuck::bytes_of(&state));
            at += Self::CCA_WORDS;
        });
    }

    /// Simulates a partition on its own from `start`, where it is as `state` says, to the present. `accelerates`:
    /// what repeats itself is skipped.
    fn catch_up(&mut self, state: Block, start: SimTime, accelerates: bool) {
        if self.is_catching_up {
            // Woken on its own way to the present, at an end that was known.
            return self.restore(state, 0);
        }
        self.is_catching_up = true;
        let present = self.clock;
        let main_timer = self.next_timer;
        let mut lanes = Lanes::EMPTY;
        core::mem::swap(&mut self.lanes, &mut lanes);
        let mut looks = Looks::new();
        core::mem::swap(&mut self.looks, &mut looks);
        core::mem::swap(&mut self.events, &mut self.side_events);
        self.clock = Clock::beginning_of(start);
        self.next_timer = EventKey::NEVER;
        self.restore(state, 0);
        loop {
            let (next, lane) = self.next_due();
            if next >= present.current() || self.must_stop_on_the_way(next.at < present.now()) {
                break;
            }
            self.clock.advance(next);
            self.execute(lane);
            if accelerates {
                self.look_at_end_of_instant();
            }
        }
        self.is_catching_up = false;
        core::mem::swap(&mut self.lanes, &mut lanes);
        core::mem::swap(&mut self.events, &mut self.side_events);
        self.clock = present;
        self.next_timer = main_timer;
        core::mem::swap(&mut self.looks, &mut looks);
        for qp in &looks {
            self.ask_for_look(*qp);
        }
        self.bring_over(&mut lanes);
    }

    /// Brings over what is pending after a partition has caught up.
    fn bring_over(&mut self, side: &mut Lanes) {
        let (mut frames, mut sending) = (PacketList::EMPTY, PortId::NONE);
        let mut last_sending = PortId::NONE;
        loop {
            let (lane, due) = side.first();
            if due == EventKey::NEVER {
                break;
            }
            if side.due(lane).is_tx_done() {
                let port = side.pop_port(lane, self.ports);
                self.ports[port.index()].next_done = PortId::NONE.0;
                if last_sending.is_some() {
                    self.ports[last_sending.index()].next_done = port.0;
                } else {
                    sending = port;
                }
                last_sending = port;
            } else {
                let frame = side.pop_frame(lane, &self.packets);
                frames.push(&mut self.packets, frame);
            }
        }
        let mut merge = Merge::default();
        while let Some(frame) = frames.pop(&self.packets) {
            self.put_on_wire(frame, &mut merge);
        }
        while sending.is_some() {
            let port = sending;
            sending = PortId(self.ports[port.index()].next_done);
            self.put_back_tx_done(port, &mut merge);
        }
        self.clock.pass(merge.highest());
        self.skipped.contested += merge.contested();
        while let Some((key, timer)) = self.side_events.pop() {
            match self.timers.event(timer) {
                // An older frame may have joined a port's own lane: then its timer is set already.
                Event::Arrive(_) if self.events.pending(timer).is_some() => {}
                event => self.schedule(event, key),
            }
        }
    }

    /// Measures the longest queues of a partition anew from now on.
    pub(super) fn measure_queues(&mut self, id: PartitionId) {
        for_each_port!(self, id, port, {
            let state = &mut self.ports[port.index()];
            let longest = &mut self.parking[port.index()].longest;
            *longest = state.max_queue.max(*longest);
            // Those of hosts are not measured at all.
            state.max_queue = if state.is_at_host() { 0 } else { state.backlog };
        });
    }

    /// As [`is_calm`](Self::is_calm), if queues do not become longer than they have been since they were measured.
    pub(crate) fn stays_calm(&mut self, id: PartitionId) -> bool {
        for_each_port!(self, id, port, {
            self.parking[port.index()].reserved = self.ports[port.index()].max_queue;
        });
        self.is_calm(id)
    }

    /// Whether nothing that other partitions do to shared buffers could reach this one, nor it them, as long as its
    /// queues stay within what is reserved for them.
    pub(super) fn is_calm(&mut self, id: PartitionId) -> bool {
        let mut calm = true;
        self.reserve(id, true);
        for_each_port!(self, id, port, {
            calm &= self.is_calm_at(self.ports[port.index()].node);
        });
        self.reserve(id, false);
        calm
    }

    /// Whether a switch stays calm if all that is reserved in it comes. All that a switch holds waits at its egress
    /// ports, so that the longest queues tell how much that may be.
    pub(super) fn is_calm_at(&self, node: NodeId) -> bool {
        let is_calm = || self.models.buffers.is_calm(&self.switches[node.index()], self.reserve[node.index()]);
        self.fabric.is_host(node) || is_calm()
    }

    /// Sets aside what a parked partition may come to have in switches, or gives it back.
    fn reserve(&mut self, id: PartitionId, is_parking: bool) {
        for_each_port!(self, id, port, {
            let bytes = self.parking[port.index()].reserved;
            let reserve = &mut self.reserve[self.ports[port.index()].node.index()];
            *reserve = if is_parking { *reserve + bytes } else { *reserve - bytes };
        });
    }

    /// A switch is about to hold so much that parked partitions could feel it: they are woken, and no record is made.
    #[cold]
    pub(crate) fn couple(&mut self, node: NodeId) {
        if self.is_catching_up {
            // Those that are parked have reserved more than this.
            return;
        }
        // First these: whose frame this is, is at no rest that others could take over.
        for port in self.fabric.ports_of(node) {
            let id = self.ports[port.index()].partition;
            if id.is_some() {
                self.interrupt_recording(id, false);
            }
        }
        for port in self.fabric.ports_of(node) {
            let id = self.ports[port.index()].partition;
            if id.is_some() && self.partitions.get(id).is_parked() {
                self.skipped.buffer_couplings += 1;
                self.wake(id);
            }
        }
    }

    /// A frame is to leave by a port that its flow's partition may not have: whatever has it is joined, or at least
    /// woken.
    #[cold]
    pub(crate) fn trespass(&mut self, port: PortId, by: Option<PartitionId>) {
        let owner = self.ports[port.index()].partition;
        if owner.is_some() {
            self.interrupt_recording(owner, false);
            self.wake(owner);
            // It may leave everything as it finds it, but what has been counted since would not repeat.
            self.drop_candidate(owner);
        }
        if let Some(id) = by.filter(|id| id.is_some() && *id != owner) {
            self.claim(id, port);
        }
    }
}

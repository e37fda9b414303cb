//! Hosts: flows that start and end, data, acknowledgements, and time-outs.
//!
//! The order of the steps is that of the reference model (ns-3 `RdmaHw`, `QbbNetDevice`).

use crate::cca::{Ack, CcaOut, CongestionControl, FlowFacts, SendControl};
use crate::event::{CCA_TIMERS, Event, EventKey, Tie};
use crate::fabric::Fabric;
use crate::flow::{Completion, FlowEnd};
use crate::ids::{NodeId, PacketId, PortId, QpId};
use crate::input::ExternalFrame;
use crate::kernel::{Kernel, PACKETS_PER_EVENT};
use crate::log::debug;
use crate::models::Models;
use crate::nic::{Nic, NicPoll};
use crate::observer::Observer;
use crate::packet::{Packet, PacketKind};
use crate::port::Port;
use crate::qp::{CACHED_HOPS, Paths, QpState};
use crate::queue::EventQueue;
use crate::router::{RouteKey, Router};
use crate::scheduler::CONTROL_PRIORITY;
use crate::telemetry::{IntHop, MAX_INT_HOPS};
use crate::timing::LinkTiming;
use crate::transport::Transport;
use crate::units::{SimTime, Span};

/// The priority whose pause holds back ACKs in ns-3, whatever their own.
const NS3_ACK_PRIORITY: u8 = 3;

/// Starting.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Makes sure the earliest queued flow has an event.
    pub(crate) fn schedule_start(&mut self) {
        let Some(start) = self.flows.first().map(|f| f.start) else { return };
        let pending = self.events.pending(self.timers.timer(Event::Start));
        if pending.is_none_or(|p| p.at > start) {
            // A batch is scheduled as the one before it starts, no matter when the caller came to add it.
            let key = self.clock.issue_as_of(self.last_start, start.max(self.clock.now()));
            self.schedule(Event::Start, key);
        }
    }

    /// Creates the queue pairs of all flows that start now.
    pub(crate) fn start_flows(&mut self) {
        // Flows that start together share it, whatever kernel they are in.
        self.totals.events -= 1;
        let now = self.clock.now();
        while let Some(flow) = self.flows.first().filter(|f| f.start <= now) {
            match self.qps.insert(flow) {
                Ok(qp) => {
                    self.flows.pop();
                    self.unfinished += 1;
                    self.push_opening(qp);
                }
                Err(fault) => {
                    self.fail(fault);
                    break;
                }
            }
        }
        self.last_start = now;
        self.schedule_start();
    }

    fn push_opening(&mut self, qp: QpId) {
        let [first, last] = &mut self.opening;
        let last = core::mem::replace(last, qp);
        if first.is_none() {
            *first = qp;
            let key = self.clock.issue(Span::ZERO);
            self.schedule(Event::Open, key);
        } else {
            self.qps.slots[last.index()].next = qp;
        }
    }

    /// Opens the queue pairs whose time has come: flows that start together do so in one go, in their order.
    pub(crate) fn open_flows(&mut self) {
        self.totals.events -= 1;
        let mut next = self.opening[0];
        while next.is_some() && self.packets.available() >= PACKETS_PER_EVENT {
            let slot = &mut self.qps.slots[next.index()];
            if slot.state() == QpState::Created {
                break;
            }
            let qp = core::mem::replace(&mut next, slot.next);
            self.open(qp);
            self.begin_common_step();
        }
        self.opening[0] = next;
        if next.is_none() {
            return;
        }
        while next.is_some() {
            let slot = &mut self.qps.slots[next.index()];
            slot.set_state(QpState::Starting);
            next = slot.next;
        }
        let key = self.clock.issue(Span::ZERO);
        self.schedule(Event::Open, key);
    }

    fn open(&mut self, qp: QpId) {
        self.refresh_paths(qp);
        let now = self.clock.now();
        let slot = &mut self.qps.slots[qp.index()];
        let cca = &self.models.ccas[slot.cca as usize];
        let (needs, info) = (cca.needs(), self.fabric.port(slot.port));
        let facts =
            FlowFacts { line_rate: info.rate, base_rtt: slot.base_rtt, bdp: slot.bdp, mtu: self.models.transport.mtu };
        let (state, control) = cca.start(&facts, now);
        self.qps.cca[qp.index()] = state;
        slot.control = control;
        slot.line_rate = info.rate;
        slot.header = needs.header_bytes;
        slot.telemetry = needs.telemetry as u8;
        slot.next_avail = now;
        slot.start = now;
        // A timeout below the round trip would expire on every packet.
        slot.timeout = self.models.transport.timeout.map_or(Span::MAX, |t| t.max(slot.base_rtt + slot.base_rtt));
        let (port, flow) = (slot.port, slot.flow);
        // Partitions that are woken catch up with the present without the newcomer.
        if self.accelerates() {
            self.earn(self.qps.slots[qp.index()].size);
            self.join(qp);
            self.watch_from(qp);
        }
        self.qps.slots[qp.index()].set_state(QpState::Open);
        if self.is_foreign(self.qps.slots[qp.index()].src) {
            return;
        }
        self.nics[port.index()].push(self.qps.slots, qp);
        debug!("{} ps: flow {} starts", now.0, flow.0);
        self.observer.flow_started(now, flow);
        self.observer.queue_pair_opened(now, qp, &self.qps.slots[qp.index()].data_key(0));
        if !self.ports[port.index()].is_up() {
            self.restart_timeout(qp);
        }
        self.try_send_host(port);
    }

    /// Asks the router for the paths of a queue pair again, if links have changed since.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn refresh_paths(&mut self, qp: QpId) {
        if self.qps.slots[qp.index()].path_epoch != self.route_epoch {
            self.find_paths(qp);
        }
    }

    #[cold]
    fn find_paths(&mut self, qp: QpId) {
        let slot = self.qps.slots[qp.index()];
        let (data, ack) = (slot.data_key(0), slot.ack_key(0));
        let first = |fabric: &Fabric<'_>, node| fabric.ports_of(node).next().unwrap_or(PortId::NONE);
        if slot.port.is_none() {
            let port = self.route(slot.src, &data).unwrap_or_else(|| first(&self.fabric, slot.src));
            self.qps.slots[qp.index()].port = port;
        }
        let ack_port = self.route(slot.dst, &ack).unwrap_or_else(|| first(&self.fabric, slot.dst));
        let port = self.qps.slots[qp.index()].port;
        if M::Router::PER_FLOW {
            self.qps.paths[qp.index()] = Paths::new(self.trace_path(port, &data), self.trace_path(ack_port, &ack));
        }
        let slot = &mut self.qps.slots[qp.index()];
        slot.ack_port = ack_port;
        slot.path_epoch = self.route_epoch;
    }

    fn trace_path(&mut self, nic: PortId, key: &RouteKey) -> [PortId; CACHED_HOPS] {
        let mut path = [PortId::NONE; CACHED_HOPS];
        let mut node = self.fabric.neighbour(nic);
        for hop in &mut path {
            if node == key.dst || self.fabric.is_host(node) {
                break;
            }
            let Some(port) = self.route(node, key) else { break };
            *hop = port;
            node = self.fabric.neighbour(port);
        }
        path
    }

    /// Queue pairs whose NIC port has lost its link move to another port of their host, if it has one.
    pub(crate) fn move_queue_pairs(&mut self, dead: &[PortId]) {
        for qp in self.qps.ids() {
            let slot = self.qps.slots[qp.index()];
            if slot.state() != QpState::Open || !dead.contains(&slot.port) {
                continue;
            }
            let Some(port) = self.route(slot.src, &slot.data_key(0)) else {
                if slot.in_flight() == 0 {
                    self.restart_timeout(qp);
                }
                continue;
            };
            self.nics[slot.port.index()].withdraw(self.qps.slots, qp);
            self.qps.slots[qp.index()].port = port;
            self.qps.slots[qp.index()].path_epoch = u32::MAX;
            self.nics[port.index()].push(self.qps.slots, qp);
            self.try_send_host(port);
        }
    }
}

/// Sending.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Sends the next frame of a NIC port: acknowledgements first, then data as the NIC's policy chooses.
    // Not inlined: see `transmit`.
    #[inline(never)]
    pub(crate) fn try_send_host(&mut self, port: PortId) {
        if self.is_busy(port) {
            return self.wait_for(port);
        }
        if !self.ports[port.index()].is_up() {
            return;
        }
        if self.may_send_ack(port)
            && let Some(id) = self.dequeue(port, CONTROL_PRIORITY)
        {
            let waits = self.ports[port.index()].may_send_more(&self.nics[port.index()]);
            return self.transmit(port, id, waits);
        }
        let now = self.clock.now();
        let paused = self.ports[port.index()].paused;
        let wake_timer = self.timers.timer(Event::Wake(port));
        let wake = self.events.pending(wake_timer).map(|k| k.at);
        let nic = &mut self.nics[port.index()];
        let next = self.models.nic.poll(nic, self.qps.slots, now, paused, wake);
        while let Some(qp) = self.nics[port.index()].pop_removed(self.qps.slots) {
            self.qps.slots[qp.index()].set_state(QpState::Retired);
            self.retire_if_done(qp);
        }
        match next {
            NicPoll::Send(qp) => self.send_data(port, qp),
            NicPoll::WakeAt(at) => self.schedule_wake(port, at),
            NicPoll::Idle => {}
        }
    }

    fn schedule_wake(&mut self, port: PortId, at: SimTime) {
        let timer = self.timers.timer(Event::Wake(port));
        self.wakes += self.events.pending(timer).is_none() as usize;
        let key = self.clock.issue(at.since(self.clock.now()));
        self.schedule(Event::Wake(port), key);
    }

    /// Hosts keep acknowledgements and external frames in one queue, that of the control priority.
    fn may_send_ack(&self, port: PortId) -> bool {
        let Port { occupied, paused, .. } = self.ports[port.index()];
        if occupied & 1 << CONTROL_PRIORITY == 0 {
            return false;
        }
        let transport = &self.models.transport;
        let priority = if transport.ns3_quirks { NS3_ACK_PRIORITY } else { self.head_priority(port) };
        transport.ack_control_priority || paused >> priority & 1 == 0
    }

    fn head_priority(&self, port: PortId) -> u8 {
        let queue = &self.queues[(port, CONTROL_PRIORITY)];
        queue.frames.head().map_or(CONTROL_PRIORITY, |id| self.packets.get(id).priority)
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn send_data(&mut self, port: PortId, qp: QpId) {
        self.refresh_paths(qp);
        let now = self.clock.now();
        let slot = &mut self.qps.slots[qp.index()];
        let payload = slot.bytes_left().min(self.models.transport.mtu as u64) as u32;
        let frame = Packet {
            seq: slot.snd_nxt,
            sent: now,
            qp: qp.0,
            bytes: Transport::data_bytes(payload, slot.header),
            payload,
            epoch: self.route_epoch,
            priority: slot.priority,
            telemetry: slot.telemetry,
            ..Packet::default()
        };
        let idle = slot.in_flight() == 0;
        slot.snd_nxt += payload as u64;
        slot.frames += 1;
        let id = self.new_frame(frame);
        // Its queue pair is in the NIC's queue still.
        self.transmit(port, id, true);
        let slot = &mut self.qps.slots[qp.index()];
        slot.sent(frame.bytes);
        let rate = if self.models.transport.paced { slot.control.rate } else { slot.line_rate };
        slot.next_avail = now + slot.spacing(rate, |bytes, rate| self.models.timing.serialise(bytes, rate));
        if idle {
            self.restart_timeout(qp);
        }
    }

    /// A frame from outside enters at its source.
    pub(crate) fn enter(&mut self, frame: &ExternalFrame) {
        let key = RouteKey {
            src: frame.src,
            dst: frame.dst,
            src_port: frame.src_port,
            dst_port: frame.dst_port,
            packet: frame.token,
        };
        let mut packet = Packet {
            arrival: self.clock.current(),
            seq: frame.token,
            qp: QpId::NONE.0,
            bytes: frame.bytes,
            // External frames have no queue pair: their addresses travel in the fields they do not use.
            sent: SimTime((frame.src_port as u64) << 16 | frame.dst_port as u64),
            payload: frame.src.0,
            epoch: frame.dst.0,
            priority: frame.priority,
            marked: u8::from(frame.marked != 0),
            ..Packet::default()
        };
        packet.set_kind(PacketKind::External);
        let id = self.new_frame(packet);
        self.visitors += 1;
        match self.route(frame.src, &key) {
            Some(port) => {
                self.trespass(port, None);
                self.enqueue(port, CONTROL_PRIORITY, id);
                self.try_send_host(port);
            }
            None => {
                // A host that is injected into has a port, if not a live one.
                if let Some(port) = self.fabric.ports_of(frame.src).next() {
                    self.drop_frame(port, id);
                }
            }
        }
    }

    pub(crate) fn external_key(&self, packet: &Packet) -> RouteKey {
        RouteKey {
            src: NodeId(packet.payload),
            dst: NodeId(packet.epoch),
            src_port: (packet.sent.0 >> 16) as u16,
            dst_port: packet.sent.0 as u16,
            packet: packet.seq,
        }
    }
}

/// Receiving.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn frame_reaches_host(&mut self, node: NodeId, port: PortId, id: PacketId) {
        match self.packets.get(id).kind() {
            PacketKind::Data => self.data_arrives(id),
            PacketKind::Ack => self.ack_arrives(id, false),
            PacketKind::Nack => self.ack_arrives(id, true),
            _ => self.external_arrives(node, port, id),
        }
    }

    fn external_arrives(&mut self, node: NodeId, port: PortId, id: PacketId) {
        let packet = *self.packets.get(id);
        let key = self.external_key(&packet);
        if key.dst != node {
            return self.drop_frame(port, id);
        }
        self.packets.remove(id);
        self.visitors -= 1;
        let frame = ExternalFrame {
            at: self.clock.now(),
            token: packet.seq,
            src: key.src,
            dst: key.dst,
            bytes: packet.bytes,
            src_port: key.src_port,
            dst_port: key.dst_port,
            priority: packet.priority,
            marked: packet.is_marked() as u8,
            pad: [0; 6],
        };
        self.push_egress(frame);
    }

    /// The receiver: in-order data is acknowledged, a gap asks the sender to go back (ns-3 `ReceiverCheckSeq`).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn data_arrives(&mut self, id: PacketId) {
        let packet = self.packets.get(id);
        let qp = packet.qp();
        let now = self.clock.now();
        let transport = &self.models.transport;
        let slot = &mut self.qps.slots[qp.index()];
        if slot.is_finished() && !transport.ns3_quirks {
            return self.free_frame(id);
        }
        let answer = if packet.seq == slot.expected {
            slot.expected += packet.payload as u64;
            let whole_chunk = transport.chunk != 0 && slot.expected.is_multiple_of(transport.chunk);
            // The last byte is always acknowledged, or the flow would never end.
            let last = slot.expected >= slot.size && !transport.ns3_quirks;
            (slot.expected >= transport.ack_interval || whole_chunk || last).then_some(PacketKind::Ack)
        } else if packet.seq > slot.expected {
            let due = now >= slot.nack_until || slot.last_nack != slot.expected;
            if due {
                slot.nack_until = now + transport.nack_interval;
                slot.last_nack = slot.expected;
                if transport.back_to_chunk && transport.chunk != 0 {
                    slot.expected -= slot.expected % transport.chunk;
                }
            }
            due.then_some(PacketKind::Nack)
        } else {
            // A duplicate. With a time-out the sender may be repeating because its ACK was lost: answer again.
            transport.timeout.is_some().then_some(PacketKind::Ack)
        };
        match answer {
            Some(kind) => self.acknowledge(qp, id, kind),
            None => self.free_frame(id),
        }
    }

    /// Turns a data packet into its acknowledgement: mark, time stamp and telemetry stay as they are.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn acknowledge(&mut self, qp: QpId, id: PacketId, kind: PacketKind) {
        self.refresh_paths(qp);
        let slot = &self.qps.slots[qp.index()];
        let port = slot.ack_port;
        let packet = self.packets.get_mut(id);
        packet.set_kind(kind);
        packet.seq = slot.expected;
        packet.bytes = Transport::ack_bytes(slot.header);
        packet.payload = 0;
        packet.hop = 0;
        packet.telemetry = 0;
        packet.epoch = self.route_epoch;
        if !self.ports[port.index()].is_up() {
            return self.drop_frame(port, id);
        }
        self.enqueue(port, CONTROL_PRIORITY, id);
        self.try_send_host(port);
    }

    /// The sender (ns-3 `ReceiveAck`).
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn ack_arrives(&mut self, id: PacketId, nack: bool) {
        let packet = self.packets.get(id);
        let qp = packet.qp();
        let now = self.clock.now();
        let transport = &self.models.transport;
        let slot = &mut self.qps.slots[qp.index()];
        if slot.is_finished() {
            return self.free_frame(id);
        }
        // The last byte counts wherever it is in its chunk, or the flow would never end. In ns-3 it does not.
        let is_whole = packet.seq >= slot.size && !transport.ns3_quirks;
        let beyond = if transport.back_to_chunk && !is_whole { packet.seq % transport.chunk.max(1) } else { 0 };
        let seq = packet.seq - beyond;
        let progress = seq > slot.snd_una;
        slot.snd_una = slot.snd_una.max(seq);
        let finished = slot.is_finished();
        if nack {
            slot.snd_nxt = slot.snd_una;
        } else if !transport.ns3_quirks {
            slot.snd_nxt = slot.snd_nxt.max(slot.snd_una);
        }
        let mut hops = [IntHop::default(); MAX_INT_HOPS];
        let ack = Ack {
            now,
            acked: packet.seq,
            snd_nxt: slot.snd_nxt,
            marked: packet.is_marked(),
            rtt: now.since(packet.sent),
            hops: self.headers.read(&self.models.telemetry, id, packet, &mut hops),
            hop_count: packet.int_hops as usize,
        };
        let mut out = CcaOut::new(slot.control);
        self.models.ccas[slot.cca as usize].on_ack(&mut self.qps.cca[qp.index()], &ack, &mut out);
        let port = slot.port;
        slot.rtt_sum += ack.rtt;
        slot.acks += 1;
        if slot.snd_una >= slot.section {
            self.ask_for_look(qp);
        }
        if finished {
            self.finish(qp, FlowEnd::Done);
            self.apply_control(qp, &out);
        } else {
            self.apply(qp, &out);
            if progress {
                self.qps.slots[qp.index()].retries = 0;
                self.restart_timeout(qp);
            }
        }
        self.free_frame(id);
        self.try_send_host(port);
    }

    pub(crate) fn cca_timer(&mut self, qp: QpId, timer: usize) {
        let slot = &mut self.qps.slots[qp.index()];
        slot.timers = slot.timers.wrapping_add(1);
        let mut out = CcaOut::new(slot.control);
        let cca = &self.models.ccas[slot.cca as usize];
        cca.on_timer(&mut self.qps.cca[qp.index()], timer, self.clock.now(), &mut out);
        self.apply(qp, &out);
    }

    /// Takes over what a congestion control has decided.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn apply(&mut self, qp: QpId, out: &CcaOut) {
        for (timer, delay) in out.timers.iter().enumerate() {
            if let Some(delay) = *delay {
                let key = self.clock.issue(delay);
                self.schedule(Event::Cca(qp, timer), key);
            }
        }
        self.apply_control(qp, out);
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn apply_control(&mut self, qp: QpId, out: &CcaOut) {
        let control = SendControl { window: out.control.window.max(1), rate: out.control.rate };
        if out.repace {
            self.repace(qp, control);
        }
        self.qps.slots[qp.index()].control = control;
    }

    /// Moves the next departure to what it would be at the new rate (ns-3 `ChangeRate`).
    fn repace(&mut self, qp: QpId, control: SendControl) {
        let slot = &mut self.qps.slots[qp.index()];
        let serialise = |bytes, rate| self.models.timing.serialise(bytes, rate);
        let old = slot.spacing(slot.control.rate, serialise);
        let new = slot.spacing(control.rate, serialise);
        slot.next_avail = SimTime((slot.next_avail + new).0.saturating_sub(old.0));
        let (port, at) = (slot.port, slot.next_avail);
        let pending = self.events.pending(self.timers.timer(Event::Wake(port)));
        if pending.is_some_and(|p| at < p.at) {
            self.schedule_wake(port, at.max(self.clock.now()));
        }
    }
}

/// Ending.
impl<M: Models, O: Observer> Kernel<'_, M, O> {
    fn finish(&mut self, qp: QpId, end: FlowEnd) {
        let port = self.qps.slots[qp.index()].port;
        self.qps.slots[qp.index()].snd_una = self.qps.slots[qp.index()].size;
        self.note_finish(qp);
        self.complete(qp, end);
        self.models.nic.finished(&mut self.nics[port.index()], self.qps.slots, qp);
    }

    /// A flow has come to its end; it is in its NIC's queue still.
    pub(crate) fn complete(&mut self, qp: QpId, end: FlowEnd) {
        let now = self.clock.now();
        let slot = &mut self.qps.slots[qp.index()];
        slot.snd_una = slot.size;
        slot.set_state(QpState::Finished);
        // The receiver forgets the flow; only with ns-3's quirks does it answer what still comes in.
        slot.expected = 0;
        slot.nack_until = SimTime::ZERO;
        slot.last_nack = 0;
        let record = Completion {
            flow: slot.flow,
            token: slot.token,
            start: slot.start,
            fct: now.since(slot.start),
            bytes: slot.size,
            mean_rtt: Span(slot.rtt_sum.0 / slot.acks.max(1)),
            gave_up: (end == FlowEnd::GaveUp) as u32,
        };
        for timer in 0..CCA_TIMERS {
            self.cancel(Event::Cca(qp, timer));
        }
        self.cancel(Event::Qp(qp));
        debug!("{} ps: flow {} ends, given up: {}", now.0, record.flow.0, (end == FlowEnd::GaveUp) as u8);
        self.unfinished -= 1;
        self.totals.flows_finished += 1;
        self.totals.flows_given_up += (end == FlowEnd::GaveUp) as u64;
        self.push_completion(record);
        self.observer.flow_finished(now, &record);
        self.flow_left(qp);
    }

    /// Frees the slot of a queue pair that is out of its NIC's queue and of which no frame is left.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn retire_if_done(&mut self, qp: QpId) {
        let slot = &self.qps.slots[qp.index()];
        // All shards have the same slots.
        if slot.frames == 0 && slot.state() == QpState::Retired && self.shard.is_none() {
            self.leave(qp);
            self.qps.remove(qp);
        }
    }

    /// Starts the retransmission time-out again. Its event is only moved when it comes due too early.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn restart_timeout(&mut self, qp: QpId) {
        if self.models.transport.timeout.is_none() {
            return;
        }
        let now = self.clock.now();
        let slot = &mut self.qps.slots[qp.index()];
        slot.deadline = now + Span(slot.timeout.0.saturating_mul(1 << slot.retries.min(31)));
        let deadline = slot.deadline;
        // After a back-off the check may be later than the deadline: then it is moved.
        if self.events.pending(self.timers.timer(Event::Qp(qp))).is_none_or(|check| check.at > deadline) {
            self.await_deadline(qp);
        }
    }

    /// Has the deadline of a queue pair checked when it comes. The key follows from the state alone.
    fn await_deadline(&mut self, qp: QpId) {
        let slot = &self.qps.slots[qp.index()];
        let key = EventKey { at: slot.deadline, tie: Tie::of_deadline(slot.flow) };
        self.schedule(Event::Qp(qp), key);
    }

    /// Waits for the time-out of a queue pair that comes back into the simulation.
    pub(crate) fn resume_timeout(&mut self, qp: QpId) {
        let slot = &self.qps.slots[qp.index()];
        if slot.timeout != Span::MAX && slot.in_flight() > 0 {
            self.await_deadline(qp);
        }
    }

    pub(crate) fn check_timeout(&mut self, qp: QpId) {
        let now = self.clock.now();
        let slot = &mut self.qps.slots[qp.index()];
        // With nothing under way there is nothing to wait for, unless a dead link keeps the flow from sending.
        if slot.in_flight() == 0 && self.ports[slot.port.index()].is_up() {
            return;
        }
        if now < slot.deadline {
            return self.await_deadline(qp);
        }
        let (port, partition) = (slot.port, slot.partition);
        self.totals.timeouts += 1;
        self.interrupt_recording(partition, false);
        // What is skipped has no time-outs: nobody would count them.
        if partition.is_some() {
            self.drop_candidate(partition);
        }
        let slot = &mut self.qps.slots[qp.index()];
        if slot.retries >= self.models.transport.retries {
            self.finish(qp, FlowEnd::GaveUp);
        } else {
            slot.retries += 1;
            slot.snd_nxt = slot.snd_una;
            let mut out = CcaOut::new(slot.control);
            let cca = &self.models.ccas[slot.cca as usize];
            cca.on_timeout(&mut self.qps.cca[qp.index()], now, &mut out);
            self.apply(qp, &out);
            self.restart_timeout(qp);
        }
        self.try_send_host(port);
    }
}

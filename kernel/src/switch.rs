//! Switches: admission, queues, PFC, ECN marking, telemetry.
//!
//! Store and forward: a frame is admitted when its last bit has arrived, and leaves when its egress port gets to
//! it. The order of the steps is that of the reference model (ns-3 `SwitchNode::SendToDev`, `SwitchNotifyDequeue`).

use crate::buffer::BufferManager;
use crate::ids::{NodeId, PacketId, PortId, QpId};
use crate::kernel::Kernel;
use crate::marker::Marker;
use crate::models::Models;
use crate::observer::Observer;
use crate::packet::{Packet, PacketKind};
use crate::qp::CACHED_HOPS;
use crate::router::{RouteKey, Router};
use crate::scheduler::{CONTROL_PRIORITY, EgressScheduler};
use crate::telemetry::{IntHop, Telemetry};
use crate::transport::PFC_BYTES;

/// What is known of the kind of a frame when code is generated: data, ACKs, and whatever it is. Which of them comes
/// next is hard to guess, so each has code of its own that asks no more.
pub(crate) const DATA: u8 = PacketKind::Data as u8;
pub(crate) const ACK: u8 = PacketKind::Ack as u8;
pub(crate) const ANY: u8 = u8::MAX;

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// A frame has come in at `ingress` of a switch.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn forward<const KIND: u8>(&mut self, ingress: PortId, id: PacketId) {
        let Some(out) = self.egress_port::<KIND>(ingress, id) else {
            return self.drop_frame(ingress, id);
        };
        let node = self.ports[out.index()].node;
        let packet = self.packets.get_mut(id);
        packet.hop = packet.hop.saturating_add(1);
        let (priority, bytes) = (packet.priority, packet.bytes);
        if priority != CONTROL_PRIORITY {
            if self.partitions.parked | self.recordings != 0
                && !self.models.buffers.is_calm(&self.switches[node.index()], self.reserve[node.index()])
            {
                self.couple(node);
            }
            let buffers = &self.models.buffers;
            let switch = &mut self.switches[node.index()];
            let share = &self.buffer_ports[ingress.index()];
            let held = &mut self.buffer_queues[(ingress, priority)];
            if !buffers.admit(switch, share, held, bytes) {
                return self.drop_frame(ingress, id);
            }
            if buffers.pauses(switch, share, held) {
                self.pause(ingress, priority);
            }
        }
        // The one thing here that nobody can guess is whether the port is busy: it is asked first, and once.
        if self.is_busy(out) {
            self.enqueue(out, priority, id);
            self.note_longest_queue(out);
            return self.wait_for(out);
        }
        let state = &mut self.ports[out.index()];
        let ready = 1 << priority & !(state.paused & !1);
        if state.occupied == 0 && ready != 0 {
            // Nothing waits and nothing is being sent: the queue would be entered and left at once.
            self.models.scheduler.select(&mut state.scheduler, ready);
            return self.send_frame::<KIND>(out, priority, id);
        }
        self.enqueue(out, priority, id);
        self.try_send_switch(out);
    }

    /// Which port a frame leaves by: from the kept path of its flow, or from the router.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn egress_port<const KIND: u8>(&mut self, ingress: PortId, id: PacketId) -> Option<PortId> {
        let packet = self.packets.get(id);
        let kept = M::Router::PER_FLOW && packet.epoch == self.route_epoch && (packet.hop as usize) < CACHED_HOPS;
        if kept && (KIND != ANY || packet.qp().is_some()) {
            let paths = &self.qps.paths[packet.qp().index()];
            let is_data = if KIND == ANY { packet.is_data() } else { KIND == DATA };
            let port = paths.port(is_data, packet.hop);
            return port.is_some().then_some(port);
        }
        self.ask_router(self.ports[ingress.index()].node, id)
    }

    fn ask_router(&mut self, node: NodeId, id: PacketId) -> Option<PortId> {
        let packet = self.packets.get(id);
        let (key, qp) = (self.route_key(packet), packet.qp());
        let port = self.route(node, &key)?;
        if self.accelerates() {
            let of = self.qps.slots.get(qp.index()).map(|slot| slot.partition);
            if of.is_none_or(|of| of != self.ports[port.index()].partition) {
                self.trespass(port, of);
            }
        }
        Some(port)
    }

    fn route_key(&self, packet: &Packet) -> RouteKey {
        match packet.kind() {
            PacketKind::External => self.external_key(packet),
            PacketKind::Data => self.qps.slots[packet.qp().index()].data_key(packet.seq),
            _ => self.qps.slots[packet.qp().index()].ack_key(packet.seq),
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn enqueue(&mut self, port: PortId, priority: u8, id: PacketId) {
        let bytes = self.packets.get(id).bytes as u64;
        let queue = &mut self.queues[(port, priority)];
        queue.frames.push(&mut self.packets, id);
        queue.bytes += bytes;
        let state = &mut self.ports[port.index()];
        state.occupied |= 1 << priority;
        state.backlog += bytes;
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn dequeue(&mut self, port: PortId, priority: u8) -> Option<PacketId> {
        let queue = &mut self.queues[(port, priority)];
        let id = queue.frames.pop(&self.packets)?;
        let packet = self.packets.get(id);
        let bytes = packet.bytes as u64;
        queue.bytes -= bytes;
        let state = &mut self.ports[port.index()];
        let waited = self.clock.now().since(packet.arrival.at).as_ns();
        state.queue_byte_ns = state.queue_byte_ns.wrapping_add(bytes.wrapping_mul(waited));
        state.occupied &= !(u8::from(queue.frames.is_empty()) << priority);
        state.backlog -= bytes;
        Some(id)
    }

    /// Sends the next frame of a switch port, if it is idle and has one that is not paused.
    // Not inlined: see `transmit`.
    #[inline(never)]
    pub(crate) fn try_send_switch(&mut self, port: PortId) {
        let busy = self.is_busy(port);
        let state = &mut self.ports[port.index()];
        let ready = state.ready();
        if busy || ready == 0 {
            self.note_longest_queue(port);
            if busy && self.ports[port.index()].occupied != 0 {
                self.wait_for(port);
            }
            return;
        }
        let priority = self.models.scheduler.select(&mut state.scheduler, ready);
        if let Some(id) = self.dequeue(port, priority) {
            self.send_frame::<ANY>(port, priority, id);
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn note_longest_queue(&mut self, port: PortId) {
        let state = &mut self.ports[port.index()];
        if state.backlog > state.max_queue {
            state.max_queue = state.backlog;
            if self.recordings != 0 {
                self.queue_grew(port);
            }
        }
    }

    /// Sends a frame that has left its queue.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn send_frame<const KIND: u8>(&mut self, port: PortId, priority: u8, id: PacketId) {
        if priority != CONTROL_PRIORITY {
            self.leave_buffer_marked(port, priority, id);
        }
        // What an ACK tells is of its data's way.
        if KIND != ACK {
            self.append_telemetry(port, id);
        }
        self.transmit(port, id, self.ports[port.index()].occupied != 0);
    }

    /// A frame leaves: its buffer is given back, it may be marked, and its sender may go on.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn leave_buffer_marked(&mut self, port: PortId, priority: u8, id: PacketId) {
        let ingress = self.give_back(port, id, priority);
        let left_behind = self.queues[(port, priority)].bytes;
        let marker_port = &mut self.marker_ports[port.index()];
        let position = self.models.marker.position(marker_port);
        let marks = self.models.marker.marks(marker_port, left_behind);
        if self.recordings != 0 && self.models.marker.position(marker_port) != position {
            self.interrupt_recording(self.ports[port.index()].partition, false);
        }
        if marks {
            self.totals.ecn_marks += 1;
            self.ports[port.index()].marks += 1;
            let packet = self.packets.get_mut(id);
            // The mark of an ACK is its data packet's; its own header's mark tells nobody anything.
            if matches!(packet.kind(), PacketKind::Data | PacketKind::External) {
                packet.mark();
            }
        }
        self.resume_if_possible(ingress, priority);
    }

    /// A frame is thrown away that was admitted.
    pub(crate) fn leave_buffer(&mut self, port: PortId, priority: u8, id: PacketId) {
        if priority != CONTROL_PRIORITY {
            let ingress = self.give_back(port, id, priority);
            self.resume_if_possible(ingress, priority);
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn give_back(&mut self, port: PortId, id: PacketId, priority: u8) -> PortId {
        let packet = self.packets.get(id);
        let ingress = packet.ingress();
        let node = self.ports[port.index()].node;
        self.models.buffers.release(
            &mut self.switches[node.index()],
            &self.buffer_ports[ingress.index()],
            &mut self.buffer_queues[(ingress, priority)],
            packet.bytes,
        );
        ingress
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn append_telemetry(&mut self, port: PortId, id: PacketId) {
        if !self.headers.are_needed() {
            return;
        }
        let state = &self.ports[port.index()];
        let hop = IntHop { at: self.clock.now(), tx_bytes: state.sent_bytes, rate: state.rate, queue: state.backlog };
        self.headers.push(id, self.packets.get_mut(id), self.models.telemetry.record(&hop));
    }

    /// Asks the other end of `ingress` to pause a priority, unless it has been asked already.
    fn pause(&mut self, ingress: PortId, priority: u8) {
        let bit = 1 << priority;
        if self.ports[ingress.index()].pausing & bit == 0 {
            self.ports[ingress.index()].pausing |= bit;
            self.pausing += 1;
            self.send_pfc(ingress, priority, PacketKind::Pause);
        }
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn resume_if_possible(&mut self, ingress: PortId, priority: u8) {
        if self.pausing != 0 {
            self.resume(ingress, priority);
        }
    }

    #[cold]
    fn resume(&mut self, ingress: PortId, priority: u8) {
        let bit = 1 << priority;
        let state = &mut self.ports[ingress.index()];
        if state.pausing & bit == 0 {
            return;
        }
        let switch = &self.switches[state.node.index()];
        let held = &self.buffer_queues[(ingress, priority)];
        if self.models.buffers.resumes(switch, &self.buffer_ports[ingress.index()], held) {
            state.pausing &= !bit;
            self.pausing -= 1;
            self.send_pfc(ingress, priority, PacketKind::Resume);
        }
    }

    /// Sends a PFC frame out of `port`, ahead of everything that has not begun.
    fn send_pfc(&mut self, port: PortId, priority: u8, kind: PacketKind) {
        self.models.marker.pfc_built();
        let arrival = self.clock.current();
        let (qp, payload) = (QpId::NONE.0, priority as u32);
        let mut frame = Packet { arrival, qp, bytes: PFC_BYTES, payload, ..Packet::default() };
        frame.set_kind(kind);
        let id = self.new_frame(frame);
        self.pfc_frames += 1;
        if !self.ports[port.index()].is_up() {
            return self.drop_frame(port, id);
        }
        self.trespass(port, None);
        self.enqueue(port, CONTROL_PRIORITY, id);
        self.try_send_switch(port);
    }

    /// A PFC frame has arrived at `port`, of a switch or a host.
    pub(crate) fn pfc_arrives(&mut self, port: PortId, id: PacketId) {
        let packet = self.packets.get(id);
        let (priority, pause) = (packet.payload as u8, packet.kind() == PacketKind::Pause);
        self.packets.remove(id);
        self.pfc_frames -= 1;
        let now = self.clock.now();
        self.observer.pfc(now, port, priority, pause);
        let state = &mut self.ports[port.index()];
        if pause {
            state.paused |= 1 << priority;
            state.paused_since = now;
            state.pauses += 1;
            self.totals.pauses += 1;
        } else {
            state.paused &= !(1 << priority);
            self.try_send(port);
        }
    }
}

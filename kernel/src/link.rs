//! Links: transmitting, the lane of frames in flight, and links that go down and come up.

use crate::event::Event;
use crate::ids::{LinkId, PacketId, PortId};
use crate::input::Command;
use crate::kernel::Kernel;
use crate::lane::LaneKind;
use crate::log::debug;
use crate::marker::LossModel;
use crate::models::Models;
use crate::observer::Observer;
use crate::packet::{PacketKind, PacketList};
use crate::port::{HAS_TIMER, Port};
use crate::queue::EventQueue;
use crate::router::Router;
use crate::scheduler::PRIORITIES;
use crate::switch::{ACK, ANY, DATA};
use crate::timing::LinkTiming;

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Whether the transmitter of `port` is still at work. When it is done it looks for more.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn is_busy(&self, port: PortId) -> bool {
        let (idle_from, present) = (self.ports[port.index()].idle_from, self.clock.current());
        idle_from > present && (idle_from.at > present.at || self.is_to_come(idle_from))
    }

    /// Puts a frame on the wire. The transmitter must be idle and the link up. `waits`: whether there may be something
    /// to send as soon as it is done.
    // Not inlined: what runs for every event has to fit into the cache for instructions.
    #[inline(never)]
    pub(crate) fn transmit(&mut self, port: PortId, id: PacketId, waits: bool) {
        let state = &mut self.ports[port.index()];
        let packet = self.packets.get_mut(id);
        let (bytes, delay, rate) = (packet.bytes, state.delay, state.rate);
        let time = state.tx_time(bytes, || self.models.timing.serialise(bytes, rate));
        // The order of ns-3: first the end of the transmission is scheduled, then the arrival.
        (state.idle_from, packet.arrival) = self.clock.issue_two(time, time + delay);
        packet.ingress = state.peer.0;
        packet.due = state.arrival_of(packet);
        state.sent_frames += 1;
        state.sent_bytes += bytes as u64;
        state.awaits_done = 0;
        self.on_wire += 1;
        self.observer.transmit(self.clock.now(), port, packet);
        let done_lane = self.lanes.find_by(&mut state.lane_hints(bytes).tx_done, LaneKind::TxDone, time);
        let done_before = done_lane.and_then(|lane| self.lanes.begin(lane, state, port, waits));
        if state.crosses != 0 {
            self.depart(id);
        } else {
            let hint = &mut state.lane_hints(bytes).arrival;
            match self.lanes.find_by(hint, LaneKind::Arrival, time + delay) {
                Some(lane) => {
                    if let Some(before) = self.lanes.push_frame(lane, packet, id) {
                        self.packets.get_mut(before).next = id.0;
                    }
                }
                None => self.push_own_lane(port, id),
            }
        }
        if let Some(before) = done_before {
            self.ports[before.index()].next_done = port.0;
        } else if waits && done_lane.is_none() {
            self.set_tx_done_timer(port);
        }
    }

    /// Something waits for a transmitter that is at work: the end of the transmission becomes an event, with the rank
    /// that it was given when it began.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn wait_for(&mut self, port: PortId) {
        let Port { awaits_done, done_lane, idle_from, .. } = self.ports[port.index()];
        if awaits_done == 0 {
            let lane = self.lanes.hinted(done_lane, LaneKind::TxDone, idle_from.tie.least_delay());
            if !lane.is_some_and(|lane| self.lanes.insert_port(lane, self.ports, port)) {
                self.set_tx_done_timer(port);
            }
        }
    }

    /// The end of a transmission has no place in a lane.
    #[cold]
    pub(crate) fn set_tx_done_timer(&mut self, port: PortId) {
        let state = &mut self.ports[port.index()];
        state.awaits_done = HAS_TIMER;
        let idle_from = state.idle_from;
        self.schedule(Event::TxDone(port), idle_from);
    }

    /// Too many different delays are about: the port keeps its frames itself, the oldest has a timer.
    #[cold]
    fn push_own_lane(&mut self, port: PortId, id: PacketId) {
        let arrival = self.packets.get(id).arrival;
        let first = self.ports[port.index()].lane.is_empty();
        self.ports[port.index()].lane.push(&mut self.packets, id);
        if first {
            self.schedule(Event::Arrive(port), arrival);
        }
    }

    /// The oldest frame of a port's own lane arrives.
    #[cold]
    pub(crate) fn own_lane_arrives(&mut self, port: PortId) {
        let state = &mut self.ports[port.index()];
        let Some(id) = state.lane.pop(&self.packets) else { return };
        if let Some(next) = state.lane.head() {
            let arrival = self.packets.get(next).arrival;
            self.schedule(Event::Arrive(port), arrival);
        }
        self.frame_arrives(id);
    }

    /// The head of a lane is due.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn lane_due(&mut self, lane: usize) {
        let due = self.lanes.due(lane);
        if due.is_tx_done() {
            let port = self.lanes.pop_port(lane, self.ports);
            let state = &mut self.ports[port.index()];
            state.awaits_done = 0;
            if due.is_at_host() {
                self.try_send_host(port);
            } else {
                self.try_send_switch(port);
            }
            return;
        }
        let id = self.lanes.pop_frame(lane, &self.packets);
        // Code of their own for data and ACKs takes room, of which microcontrollers have little.
        if !due.is_of_flow() || cfg!(not(target_pointer_width = "64")) {
            return self.frame_arrives(id);
        }
        let port = self.leave_wire(id);
        match (due.is_at_host(), due.is_ack()) {
            (false, false) => self.forward::<DATA>(port, id),
            (false, true) => self.forward::<ACK>(port, id),
            (true, false) => self.data_arrives(id),
            (true, true) => self.ack_arrives(id, false),
        }
    }

    /// A port has put the last bit of a frame on the wire, and something waits for that.
    pub(crate) fn transmission_ends(&mut self, port: PortId) {
        self.ports[port.index()].awaits_done = 0;
        self.try_send(port);
    }

    /// A frame of a flow has come over a wire that loses nothing, to this port.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn leave_wire(&mut self, id: PacketId) -> PortId {
        self.on_wire -= 1;
        let packet = self.packets.get(id);
        let port = packet.ingress();
        self.observer.receive(self.clock.now(), port, packet);
        port
    }

    /// A frame, of whatever kind, reaches the other end of its wire.
    pub(crate) fn frame_arrives(&mut self, id: PacketId) {
        self.on_wire -= 1;
        let port = self.packets.get(id).ingress();
        let (node, is_at_host) = (self.ports[port.index()].node, self.ports[port.index()].is_at_host());
        let packet = self.packets.get(id);
        let is_pfc = packet.is_pfc();
        if self.fabric.port(port).loss != 0 && self.loses(port, is_pfc) {
            return self.drop_frame(port, id);
        }
        let packet = self.packets.get(id);
        self.observer.receive(self.clock.now(), port, packet);
        if is_pfc {
            self.pfc_arrives(port, id);
        } else if is_at_host {
            self.frame_reaches_host(node, port, id);
        } else {
            self.forward::<ANY>(port, id);
        }
    }

    /// Whether a lossy link loses a frame. PFC frames get through but in ns-3: there a lost RESUME pauses for ever.
    fn loses(&mut self, port: PortId, is_pfc: bool) -> bool {
        if is_pfc && !self.models.transport.ns3_quirks {
            return false;
        }
        let info = self.fabric.port(port);
        self.models.loss.loses(&mut self.loss_links[info.link.index()], info.loss)
    }

    /// Sends what may be sent next out of `port`, if it is idle.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn try_send(&mut self, port: PortId) {
        if self.ports[port.index()].is_at_host() {
            self.try_send_host(port);
        } else {
            self.try_send_switch(port);
        }
    }

    /// A frame is lost at `port`.
    pub(crate) fn drop_frame(&mut self, port: PortId, id: PacketId) {
        self.totals.drops += 1;
        self.ports[port.index()].drops += 1;
        self.interrupt_recording(self.ports[port.index()].partition, false);
        self.observer.dropped(self.clock.now(), port, self.packets.get(id));
        self.free_frame(id);
    }

    /// Gives a frame's slot back.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn free_frame(&mut self, id: PacketId) {
        let packet = self.packets.get(id);
        let qp = packet.qp();
        let (is_external, is_pfc) = (packet.kind() == PacketKind::External, packet.is_pfc());
        self.packets.remove(id);
        if qp.is_some() {
            self.qps.slots[qp.index()].frames -= 1;
            self.retire_if_done(qp);
        } else {
            self.visitors -= u32::from(is_external);
            self.pfc_frames -= u32::from(is_pfc);
        }
    }

    /// Executes the commands from outside that are due.
    pub(crate) fn apply_inputs(&mut self) {
        while let Some(command) = self.inputs.pop_due(self.clock.now()) {
            match command {
                Command::Link { link, up } => self.change_link(link, up),
                Command::Frame(frame) => self.enter(&frame),
            }
            // One frame takes one slot of memory: look again before the next.
            if self.packets.available() == 0 {
                break;
            }
        }
        self.schedule_input();
    }

    pub(crate) fn schedule_input(&mut self) {
        let Some(at) = self.inputs.first_time() else { return };
        let pending = self.events.pending(self.timers.timer(Event::Input));
        let at = at.max(self.clock.now());
        if pending.is_none_or(|p| p.at > at) {
            let key = self.clock.issue(at.since(self.clock.now()));
            self.schedule(Event::Input, key);
        }
    }

    fn change_link(&mut self, link: LinkId, up: bool) {
        let ends = self.fabric.ends(link);
        if self.fabric.port(ends[0]).is_up() == up {
            return;
        }
        debug!("{} ps: link {} up: {}", self.clock.now().0, link.0, up as u8);
        self.interrupt_recordings();
        self.wake_all();
        self.fabric.set_up(link, up);
        ends.into_iter().for_each(|port| self.ports[port.index()].is_up = up as u8);
        self.route_epoch += 1;
        self.models.router.links_changed(&self.fabric);
        if up {
            ends.into_iter().for_each(|port| self.try_send(port));
        } else {
            for port in ends {
                self.cut_wire(port);
                self.flush_queues(port);
                self.forget_pauses(port);
            }
            self.move_queue_pairs(&ends);
        }
        self.repartition();
    }

    /// Frames on a wire that is cut are lost.
    fn cut_wire(&mut self, port: PortId) {
        self.cancel(Event::Arrive(port));
        let peer = self.ports[port.index()].peer;
        let mut lost = PacketList::EMPTY;
        let mut own = core::mem::replace(&mut self.ports[port.index()].lane, PacketList::EMPTY);
        while let Some(id) = own.pop(&self.packets) {
            lost.push(&mut self.packets, id);
        }
        self.lanes.cut(&mut self.packets, |packet| packet.ingress() == peer, usize::MAX, &mut lost);
        while let Some(id) = lost.pop(&self.packets) {
            self.on_wire -= 1;
            self.drop_frame(peer, id);
        }
    }

    /// Frames that wait for a dead link are lost, and their buffer is given back.
    fn flush_queues(&mut self, port: PortId) {
        let at_switch = !self.fabric.is_host(self.fabric.port(port).node);
        for priority in 0..PRIORITIES as u8 {
            while let Some(id) = self.dequeue(port, priority) {
                if at_switch {
                    self.leave_buffer(port, priority, id);
                }
                self.drop_frame(port, id);
            }
        }
    }

    /// A dead link carries no RESUME: both ends start afresh.
    fn forget_pauses(&mut self, port: PortId) {
        let state = &mut self.ports[port.index()];
        state.paused = 0;
        self.pausing -= state.pausing.count_ones();
        state.pausing = 0;
    }
}

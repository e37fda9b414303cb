//! Links: transmitting, the lane of frames in flight, and links that go down and come up.

use crate::event::{Event, EventKey};
use crate::ids::{LinkId, PacketId, PortId};
use crate::input::Command;
use crate::kernel::Kernel;
use crate::marker::LossModel;
use crate::models::Models;
use crate::observer::Observer;
use crate::packet::PacketKind;
use crate::queue::EventQueue;
use crate::router::Router;
use crate::scheduler::PRIORITIES;
use crate::timing::LinkTiming;

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Whether the transmitter of `port` is still at work. If so, it will look for more when it is done.
    ///
    /// The end of a transmission is only an event if something waits for it.
    #[inline(always)]
    pub(crate) fn is_busy(&mut self, port: PortId) -> bool {
        let idle_from = self.ports[port.index()].idle_from;
        if idle_from <= self.clock.current() {
            return false;
        }
        self.schedule_tx_done(port, idle_from);
        true
    }

    #[inline(always)]
    pub(crate) fn schedule_tx_done(&mut self, port: PortId, idle_from: EventKey) {
        if self.ports[port.index()].claim_tx_done() {
            self.schedule(Event::TxDone(port), idle_from);
        }
    }

    #[inline(always)]
    pub(crate) fn transmitter_idle(&mut self, port: PortId) {
        self.ports[port.index()].tx_done();
        self.try_send(port);
    }

    /// Puts a frame on the wire. The transmitter must be idle and the link up.
    #[inline(always)]
    pub(crate) fn transmit(&mut self, port: PortId, id: PacketId) {
        let info = self.fabric.port(port);
        let (rate, delay) = (info.rate, info.delay);
        let state = &mut self.ports[port.index()];
        let packet = self.packets.get_mut(id);
        let time = state.serialise(packet.bytes, || self.models.timing.serialise(packet.bytes, rate));
        state.stats.frames += 1;
        state.stats.bytes += packet.bytes as u64;
        self.totals.packet_hops += 1;
        // The order of ns-3: first the end of the transmission is scheduled, then the arrival.
        state.idle_from = self.clock.issue(time);
        packet.arrival = self.clock.issue(time + delay);
        let (arrival, first) = (packet.arrival, state.lane.is_empty());
        self.on_wire += 1;
        self.observer.transmit(self.clock.now(), port, packet);
        state.lane.push(&mut self.packets, id);
        if first {
            self.schedule(Event::Arrive(port), arrival);
        }
    }

    /// The oldest frame on the wire out of `port` reaches the peer.
    #[inline(always)]
    pub(crate) fn frame_arrives(&mut self, port: PortId) {
        let state = &mut self.ports[port.index()];
        let peer = state.peer;
        let Some(id) = state.lane.pop(&self.packets) else { return };
        if let Some(next) = state.lane.head() {
            let arrival = self.packets.get(next).arrival;
            self.schedule(Event::Arrive(port), arrival);
        }
        self.on_wire -= 1;
        let info = self.fabric.port(peer);
        if info.loss != 0 && self.models.loss.loses(&mut self.loss_links[info.link.index()], info.loss) {
            self.drop_frame(peer, id);
            return;
        }
        let node = info.node;
        self.observer.receive(self.clock.now(), peer, self.packets.get(id));
        match self.packets.get(id).kind() {
            PacketKind::Pause => self.pfc_arrives(peer, id, true),
            PacketKind::Resume => self.pfc_arrives(peer, id, false),
            _ if self.fabric.is_host(node) => self.frame_reaches_host(node, peer, id),
            _ => self.forward(node, peer, id),
        }
    }

    /// Sends what may be sent next out of `port`, if it is idle.
    #[inline(always)]
    pub(crate) fn try_send(&mut self, port: PortId) {
        if self.fabric.is_host(self.fabric.port(port).node) {
            self.try_send_host(port);
        } else {
            self.try_send_switch(port);
        }
    }

    /// A frame is lost at `port`.
    pub(crate) fn drop_frame(&mut self, port: PortId, id: PacketId) {
        self.totals.drops += 1;
        self.ports[port.index()].stats.drops += 1;
        self.observer.dropped(self.clock.now(), port, self.packets.get(id));
        self.free_frame(id);
    }

    /// Gives a frame's slot back.
    #[inline(always)]
    pub(crate) fn free_frame(&mut self, id: PacketId) {
        let qp = self.packets.get(id).qp();
        self.packets.remove(id);
        if qp.is_some() {
            self.qps.slots[qp.index()].frames -= 1;
            self.retire_if_done(qp);
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
        self.fabric.set_up(link, up);
        self.route_epoch += 1;
        self.models.router.links_changed(&self.fabric);
        if up {
            ends.into_iter().for_each(|port| self.try_send(port));
            return;
        }
        for port in ends {
            self.cut_lane(port);
            self.flush_queues(port);
            self.forget_pauses(port);
        }
        self.move_queue_pairs(&ends);
    }

    /// Frames on a wire that is cut are lost.
    fn cut_lane(&mut self, port: PortId) {
        self.events.cancel(self.timers.timer(Event::Arrive(port)));
        let peer = self.ports[port.index()].peer;
        while let Some(id) = self.ports[port.index()].lane.pop(&self.packets) {
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
        state.pausing = 0;
    }
}

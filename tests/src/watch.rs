//! An observer that checks, event by event, what holds of every run in which all events are executed.

use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::{BitRate, Completion, FlowEnd, FlowId, LinkSpec, NodeKind, Observer, PortId, SimTime, Span};

/// Looks on and checks what can be checked on the way: time goes on, a port sends one frame after the other and none at
/// a paused priority, a flow that finishes has been received in order and whole, and no more arrives than was sent.
pub struct Watch {
    serialise: fn(u32, BitRate) -> Span,
    rates: Vec<BitRate>,
    at_host: Vec<bool>,
    /// Per port: when its transmitter is free again.
    busy_until: Vec<SimTime>,
    /// Per port, bit p: priority p is paused.
    paused: Vec<u8>,
    /// Per queue pair: bytes received in order by the flow that has the slot; `None` between flows.
    in_order: Vec<Option<u64>>,
    last_ack: usize,
    /// A flow was given up: which slot it had cannot be seen, so bytes are not counted any more.
    blind: bool,
    /// Links change: a link that comes back forgets its pauses unseen.
    pub links_change: bool,
    /// Flows whose queue pair has opened.
    pub started: u64,
    /// Flows that have ended.
    pub finished: u64,
    /// Frames lost.
    pub drops: u64,
    /// Payload that hosts have put on their wires, that has arrived at hosts, and that was lost.
    sent: u64,
    arrived: u64,
    lost: u64,
    last: SimTime,
}

impl Watch {
    /// For a fabric and at most so many flows at once.
    pub fn new(nodes: &[NodeKind], links: &[LinkSpec], flows: usize, serialise: fn(u32, BitRate) -> Span) -> Watch {
        let (rates, at_host) = ports(nodes, links).into_iter().unzip();
        Watch {
            serialise,
            rates,
            at_host,
            busy_until: vec![SimTime::ZERO; 2 * links.len()],
            paused: vec![0; 2 * links.len()],
            in_order: vec![None; flows],
            last_ack: usize::MAX,
            blind: false,
            links_change: false,
            started: 0,
            finished: 0,
            drops: 0,
            sent: 0,
            arrived: 0,
            lost: 0,
            last: SimTime::ZERO,
        }
    }

    /// Whether no port is paused.
    pub fn nothing_is_paused(&self) -> bool {
        self.paused.iter().all(|&bits| bits == 0)
    }

    /// Payload bytes that were sent, and have neither arrived at a host nor were lost.
    pub fn in_flight(&self) -> u64 {
        self.sent - self.arrived - self.lost
    }

    fn tick(&mut self, time: SimTime) {
        assert!(time >= self.last, "time goes back from {:?} to {time:?}", self.last);
        self.last = time;
    }

    fn assert_conserved(&self) {
        let Watch { sent, arrived, lost, .. } = self;
        assert!(arrived + lost <= *sent, "{arrived} bytes have arrived and {lost} were lost of {sent}");
    }
}

/// Of each port its rate, and whether it is a host's: ports are sorted by node, and by link within a node.
fn ports(nodes: &[NodeKind], links: &[LinkSpec]) -> Vec<(BitRate, bool)> {
    let mut ends: Vec<(usize, BitRate)> =
        links.iter().flat_map(|link| [(link.a.index(), link.rate), (link.b.index(), link.rate)]).collect();
    ends.sort_by_key(|(node, _)| *node);
    ends.into_iter().map(|(node, rate)| (rate, nodes[node] == NodeKind::Host)).collect()
}

impl Observer for Watch {
    fn flow_started(&mut self, time: SimTime, _flow: FlowId) {
        self.tick(time);
        self.started += 1;
    }

    fn flow_finished(&mut self, time: SimTime, record: &Completion) {
        self.tick(time);
        self.finished += 1;
        if record.end() == FlowEnd::GaveUp {
            self.blind = true;
        } else if !self.blind {
            let received = self.in_order[self.last_ack].take();
            assert_eq!(received, Some(record.bytes), "bytes received in order by flow {:?}", record.flow);
        }
    }

    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.tick(time);
        let port = port.index();
        assert!(time >= self.busy_until[port], "port {port} sends two frames at once, at {time:?}");
        self.busy_until[port] = time + (self.serialise)(frame.bytes, self.rates[port]);
        let is_new = frame.kind() == PacketKind::Data && self.at_host[port];
        if is_new {
            self.in_order[frame.qp().index()].get_or_insert(0);
            self.sent += u64::from(frame.payload);
        }
        let pausable = frame.priority != 0 && !matches!(frame.kind(), PacketKind::Pause | PacketKind::Resume);
        if pausable && !self.at_host[port] && !self.links_change {
            assert_eq!(self.paused[port] >> frame.priority & 1, 0, "port {port} sends at a paused priority");
        }
    }

    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.tick(time);
        if !self.at_host[port.index()] {
            return;
        }
        let qp = frame.qp().index();
        match frame.kind() {
            PacketKind::Ack | PacketKind::Nack => self.last_ack = qp,
            PacketKind::Data => {
                self.arrived += u64::from(frame.payload);
                self.assert_conserved();
                if let Some(bytes) = self.in_order[qp].as_mut().filter(|bytes| **bytes == frame.seq) {
                    *bytes += u64::from(frame.payload);
                }
            }
            _ => {}
        }
    }

    fn dropped(&mut self, time: SimTime, _port: PortId, frame: &Packet) {
        self.tick(time);
        self.drops += 1;
        if frame.kind() == PacketKind::Data {
            self.lost += u64::from(frame.payload);
            self.assert_conserved();
        }
    }

    fn pfc(&mut self, time: SimTime, port: PortId, priority: u8, pause: bool) {
        self.tick(time);
        let bit = 1 << priority;
        let paused = &mut self.paused[port.index()];
        *paused = if pause { *paused | bit } else { *paused & !bit };
    }
}

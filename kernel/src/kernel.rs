//! The kernel: what a caller sees of the simulator.
//!
//! # Calling order
//! 1. [`Kernel::words`] says how much zeroed memory a simulation takes, [`Kernel::new`] builds it there.
//! 2. Commands, at any time: [`add_flow`](Kernel::add_flow), [`set_link`](Kernel::set_link),
//!    [`inject`](Kernel::inject). A command names the time it takes effect, not before [`now`](Kernel::now).
//! 3. [`next_event_time`](Kernel::next_event_time) says when something will happen next;
//!    [`run_until`](Kernel::run_until) lets it happen.
//! 4. Outputs: [`poll_completion`](Kernel::poll_completion) and [`poll_egress`](Kernel::poll_egress) until they
//!    give `None`. Outputs not polled stop [`run_until`](Kernel::run_until), they are never lost.
//! 5. Back to 2. Getters may be called anywhere.
//!
//! The kernel reads no clock, no file and no random source, and does not allocate.

use crate::accel::arena::Arena;
use crate::accel::episode::{CREDIT, Leaders};
use crate::accel::partition::Partitions;
use crate::accel::playback::Twins;
use crate::accel::{Acceleration, Looks, Skipped};
use crate::buffer::BufferManager;
use crate::cca::{CongestionControl, SendControl};
use crate::error::{CapacityError, Error};
use crate::event::{Clock, Event, EventKey, Tie, TimerMap};
use crate::fabric::{Fabric, FabricSize, LinkSpec, NodeKind};
use crate::flow::{Completion, FlowQueue, FlowSpec};
use crate::ids::{FlowId, LinkId, NodeId, PacketId, PortId, QpId};
use crate::input::{Command, ExternalFrame, Inputs};
use crate::lane::Lanes;
use crate::limits::Limits;
use crate::marker::{LossModel, Marker};
use crate::memo::{MemoStore, Memoisation, Memoised};
use crate::memory::{Carver, words_for};
use crate::models::{ModelSet, Models};
use crate::nic::NicQueue;
use crate::observer::Observer;
use crate::packet::{Packet, PacketPool};
use crate::port::{Parking, PerPriority, Port, PortStats, PriorityQueue};
use crate::qp::{Qp, QpTable};
use crate::queue::EventQueue;
use crate::ring::Ring;
use crate::router::{RouteKey, Router};
use crate::scheduler::PRIORITIES;
use crate::shard::Shard;
use crate::telemetry::{Headers, MAX_INT_HOPS, Telemetry};
use crate::timing::LinkTiming;
use crate::transport::Transport;
use crate::units::{PS_PER_S, SimTime, Span, quotient};

/// Frames one event can make at most: a data packet, a PAUSE and a RESUME, and one to spare.
pub(crate) const PACKETS_PER_EVENT: usize = 4;

/// Links of the longest path.
pub const MAX_PATH: usize = 64;

/// The egress ports of a path, from the source's NIC on.
pub type Path = heapless::Vec<PortId, MAX_PATH>;

/// Why [`Kernel::run_until`] returned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// Everything up to the limit has happened; `now` is the limit.
    Reached,
    /// No event is left before the end of simulated time; `now` is the time of the last one. If more was to happen,
    /// [`next_event_time`](Kernel::next_event_time) is [`SimTime::MAX`].
    Idle,
    /// Outputs must be polled before anything more can happen.
    OutputFull,
    /// Flows have ended now, and nothing else is due in this instant: see
    /// [`run_to_completion`](Kernel::run_to_completion).
    Completed,
    /// The number of events asked for has been executed.
    Budget,
    /// Nothing moves any more, and only timers that cannot change that are left: frames wait in queues that stay
    /// paused (a PFC deadlock, see [`Kernel::paused_queues`]), or flows wait for acknowledgements that will never
    /// come.
    Stalled,
}

/// What the fabric has counted since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Totals {
    /// Events executed, without those by which flows start.
    pub events: u64,
    /// Frames put on a wire: packet-hops.
    pub packet_hops: u64,
    /// Frames lost.
    pub drops: u64,
    /// Frames marked with ECN.
    pub ecn_marks: u64,
    /// PAUSE frames that arrived.
    pub pauses: u64,
    /// Flows finished, also those given up.
    pub flows_finished: u64,
    /// Flows given up after too many time-outs.
    pub flows_given_up: u64,
    /// Retransmission time-outs that expired.
    pub timeouts: u64,
}

/// A queue that waits for the end of a pause.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PausedQueue {
    /// The egress port.
    pub port: PortId,
    /// The paused priority.
    pub priority: u8,
    /// Bytes waiting.
    pub bytes: u64,
    /// Since when the port has been paused.
    pub since: SimTime,
}

/// A flow between its start and its end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ActiveFlow {
    /// The flow.
    pub flow: FlowId,
    /// The token of its spec.
    pub token: u64,
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Its payload bytes.
    pub bytes: u64,
    /// Those acknowledged. In skipped time this is as of when it began.
    pub acked: u64,
    /// What it may send at present.
    pub control: SendControl,
}

/// Shorthands for the state types of a model family.
pub(crate) type SwitchState<M> = <<M as Models>::Buffers as BufferManager>::Switch;
pub(crate) type BufferPort<M> = <<M as Models>::Buffers as BufferManager>::Port;
pub(crate) type BufferQueue<M> = <<M as Models>::Buffers as BufferManager>::Queue;
pub(crate) type MarkerPort<M> = <<M as Models>::Marker as Marker>::Port;
pub(crate) type IntRecord<M> = <<M as Models>::Telemetry as Telemetry>::Record;
pub(crate) type LossLink<M> = <<M as Models>::Loss as LossModel>::Link;
pub(crate) type CcaState<M> = <<M as Models>::Cca as CongestionControl>::State;

/// A packet-level simulator over caller memory. See the module for the calling order.
pub struct Kernel<'a, M: Models, O: Observer = ()> {
    pub(crate) models: ModelSet<'a, M>,
    /// Receives what happens, as it happens.
    pub observer: O,
    pub(crate) clock: Clock,
    pub(crate) events: M::Queue<'a>,
    /// When the earliest timer is due: the queue is only asked when that may have changed.
    pub(crate) next_timer: EventKey,
    pub(crate) timers: TimerMap,
    pub(crate) lanes: Lanes,
    pub(crate) fabric: Fabric<'a>,
    pub(crate) ports: &'a mut [Port],
    pub(crate) queues: PerPriority<'a, PriorityQueue>,
    pub(crate) nics: &'a mut [NicQueue],
    pub(crate) buffer_ports: &'a mut [BufferPort<M>],
    pub(crate) buffer_queues: PerPriority<'a, BufferQueue<M>>,
    /// Per node; hosts' stay empty.
    pub(crate) switches: &'a mut [SwitchState<M>],
    pub(crate) marker_ports: &'a mut [MarkerPort<M>],
    pub(crate) loss_links: &'a mut [LossLink<M>],
    pub(crate) packets: PacketPool<'a>,
    pub(crate) headers: Headers<'a, IntRecord<M>>,
    pub(crate) flows: FlowQueue<'a>,
    pub(crate) qps: QpTable<'a, CcaState<M>>,
    pub(crate) inputs: Inputs<'a>,
    pub(crate) completions: Ring<'a, Completion>,
    pub(crate) egress: Ring<'a, ExternalFrame>,
    pub(crate) totals: Totals,
    /// Raised with every change of a link: kept paths of an older epoch are asked for again.
    pub(crate) route_epoch: u32,
    /// Start time of the last batch of flows: as of then the next one is scheduled.
    pub(crate) last_start: SimTime,
    /// Flows that have started and not opened yet, first to last.
    pub(crate) opening: [QpId; 2],
    /// Frames on wires, and NIC wake-ups pending, but for those of parked partitions: while both are 0 nothing moves.
    pub(crate) on_wire: usize,
    pub(crate) wakes: usize,
    /// Flows started and not yet finished.
    pub(crate) unfinished: usize,
    pub(crate) fault: Option<CapacityError>,
    /// Outputs are full, frames run out, or there is a fault: looked at before the next event.
    pub(crate) interrupted: bool,
    /// An instant in which flows have ended ends the run.
    stops_at_completions: bool,
    pub(crate) acceleration: Acceleration,
    pub(crate) skipped: Skipped,
    pub(crate) partitions: Partitions<'a>,
    /// Per node: bytes that parked partitions may come to have in it. Empty without memory for acceleration.
    pub(crate) reserve: &'a mut [u64],
    /// Per port. Empty without memory for acceleration.
    pub(crate) parking: &'a mut [Parking],
    pub(crate) arena: Arena<'a>,
    /// The pending-event set of a partition that catches up with the present.
    pub(crate) side_events: M::Queue<'a>,
    /// A partition is on its own, on its way to the present.
    pub(crate) is_catching_up: bool,
    /// Where partitions are looked up, if anywhere.
    pub(crate) memo: Option<&'a mut (dyn MemoStore + Send)>,
    pub(crate) memoisation: Memoisation,
    pub(crate) memoised: Memoised,
    /// [`memo_models`](Kernel::memo_models), once.
    pub(crate) models_hash: u64,
    /// Words of keys that may yet be made.
    pub(crate) credit: u64,
    /// Look-ups that came to nothing since the last that did not.
    pub(crate) fruitless: u64,
    /// Partitions that have been watched in vain, beyond what those that were parked make up for.
    pub(crate) vain_watches: u64,
    /// Partitions that are being recorded.
    pub(crate) recordings: u32,
    pub(crate) leaders: Leaders,
    pub(crate) twins: Twins,
    /// Completions that the next event will have at once.
    pub(crate) outputs_needed: usize,
    /// Priorities of ports that this kernel's switches have paused the senders of.
    pub(crate) pausing: u32,
    /// PFC frames in the fabric, and frames from outside.
    pub(crate) pfc_frames: u32,
    pub(crate) visitors: u32,
    /// Queue pairs on whose acknowledgement their partitions are to be looked at, at the end of the instant.
    pub(crate) looks: Looks,
    pub(crate) shard: Option<Shard<'a>>,
    next_flow: u32,
}

impl<'a, M: Models, O: Observer> Kernel<'a, M, O> {
    /// Words of zeroed memory a kernel takes. `models` tells whether packets carry telemetry.
    pub fn words(size: FabricSize, limits: &Limits, models: &ModelSet<'_, M>) -> usize {
        let ports = 2 * size.links;
        let timers = TimerMap::new(ports, limits.active_flows).len();
        Fabric::words(size)
            + M::Queue::words(timers)
            + words_for::<Port>(ports)
            + PerPriority::<PriorityQueue>::words(ports)
            + words_for::<NicQueue>(ports)
            + words_for::<BufferPort<M>>(ports)
            + PerPriority::<BufferQueue<M>>::words(ports)
            + words_for::<SwitchState<M>>(size.nodes)
            + words_for::<MarkerPort<M>>(ports)
            + words_for::<LossLink<M>>(size.links)
            + PacketPool::words(limits.packets)
            + Headers::<IntRecord<M>>::words(limits.packets, models.telemetry_needed())
            + FlowQueue::words(limits.queued_flows)
            + QpTable::<CcaState<M>>::words(limits.active_flows)
            + Inputs::words(limits.inputs)
            + Ring::<Completion>::words(limits.outputs)
            + Ring::<ExternalFrame>::words(limits.outputs)
            + Partitions::words(Self::accelerated(limits, Partitions::most(limits.active_flows, ports)))
            + words_for::<u64>(Self::accelerated(limits, size.nodes))
            + words_for::<Parking>(Self::accelerated(limits, ports))
            + Arena::words(limits.snapshot_words)
            + M::Queue::words(Self::accelerated(limits, timers))
    }

    /// A number of things that only acceleration needs.
    fn accelerated(limits: &Limits, things: usize) -> usize {
        if limits.snapshot_words == 0 { 0 } else { things }
    }

    /// Builds an idle simulation at time 0 in `words`, which MUST be zero.
    ///
    /// # Errors
    /// [`Error::Capacity`] if there are too few words; [`Error::BadLink`], [`Error::ZeroRate`] for a bad fabric.
    // Not inlined: a kernel is large, and that of the making is off the stack again when it returns.
    #[inline(never)]
    pub fn new(
        words: &'a mut [u64],
        nodes: &[NodeKind],
        links: &[LinkSpec],
        models: ModelSet<'a, M>,
        limits: &Limits,
        observer: O,
    ) -> Result<Self, Error> {
        let carver = &mut Carver::new(words);
        let fabric = Fabric::carve(carver, nodes, links)?;
        let timers = TimerMap::new(fabric.port_count(), limits.active_flows);
        let horizon = typical_hop(&models, &fabric);
        let ports = fabric.port_count();
        let telemetry = models.telemetry_needed();
        let most_partitions = Self::accelerated(limits, Partitions::most(limits.active_flows, ports));
        let mut kernel = Kernel {
            models,
            observer,
            clock: Clock::default(),
            events: M::Queue::carve(carver, timers.len(), horizon)?,
            next_timer: EventKey::NEVER,
            timers,
            lanes: Lanes::EMPTY,
            ports: carver.take(ports)?,
            queues: PerPriority::carve(carver, ports)?,
            nics: carver.take(ports)?,
            buffer_ports: carver.take(ports)?,
            buffer_queues: PerPriority::carve(carver, ports)?,
            switches: carver.take(nodes.len())?,
            marker_ports: carver.take(ports)?,
            loss_links: carver.take(links.len())?,
            packets: PacketPool::carve(carver, limits.packets)?,
            headers: Headers::carve(carver, limits.packets, telemetry)?,
            flows: FlowQueue::carve(carver, limits.queued_flows)?,
            qps: QpTable::carve(carver, limits.active_flows)?,
            inputs: Inputs::carve(carver, limits.inputs)?,
            completions: Ring::carve(carver, limits.outputs)?,
            egress: Ring::carve(carver, limits.outputs)?,
            totals: Totals::default(),
            route_epoch: 0,
            last_start: SimTime::ZERO,
            opening: [QpId::NONE; 2],
            on_wire: 0,
            wakes: 0,
            unfinished: 0,
            fault: None,
            interrupted: true,
            stops_at_completions: false,
            acceleration: Acceleration::default(),
            skipped: Skipped::default(),
            partitions: Partitions::carve(carver, most_partitions)?,
            reserve: carver.take(Self::accelerated(limits, nodes.len()))?,
            parking: carver.take(Self::accelerated(limits, ports))?,
            arena: Arena::carve(carver, limits.snapshot_words)?,
            side_events: M::Queue::carve(carver, Self::accelerated(limits, timers.len()), horizon)?,
            is_catching_up: false,
            memo: None,
            memoisation: Memoisation::default(),
            memoised: Memoised::default(),
            models_hash: 0,
            credit: CREDIT,
            fruitless: 0,
            vain_watches: 0,
            recordings: 0,
            leaders: Leaders::default(),
            twins: Twins::default(),
            outputs_needed: 0,
            pausing: 0,
            pfc_frames: 0,
            visitors: 0,
            looks: Looks::new(),
            shard: None,
            next_flow: 0,
            fabric,
        };
        kernel.initialise();
        Ok(kernel)
    }

    fn initialise(&mut self) {
        let fabric = &self.fabric;
        let nic_rate = fabric.nic_rate();
        self.queues.fill(PriorityQueue::EMPTY);
        self.nics.fill(NicQueue::EMPTY);
        for port in fabric.ports() {
            let info = fabric.port(port);
            let peer_at_host = fabric.is_host(fabric.neighbour(port));
            self.ports[port.index()] = Port::new(info, fabric.is_host(info.node), peer_at_host);
            self.buffer_ports[port.index()] = self.models.buffers.port(info, nic_rate);
            self.marker_ports[port.index()] = self.models.marker.port(port, info);
        }
        for node in (0..fabric.node_count() as u32).map(NodeId) {
            let mut infos = fabric.ports_of(node).map(|p| *fabric.port(p));
            self.switches[node.index()] = self.models.buffers.switch(&mut infos);
        }
        for link in (0..fabric.link_count() as u32).map(LinkId) {
            self.loss_links[link.index()] = self.models.loss.link(link);
        }
    }

    // Getters.

    /// Present simulated time.
    pub fn now(&self) -> SimTime {
        self.clock.now()
    }

    /// When something happens next, if anything does.
    pub fn next_event_time(&self) -> Option<SimTime> {
        let (next, _) = self.next_due();
        let next = self.shard.as_ref().map_or(next, |shard| next.min(shard.next_import));
        (next != EventKey::NEVER).then_some(next.at)
    }

    /// The fabric.
    pub fn fabric(&self) -> &Fabric<'a> {
        &self.fabric
    }

    /// What has been counted so far.
    pub fn totals(&self) -> Totals {
        // Counted by the ports already; once is enough on a frame's way.
        Totals { packet_hops: self.ports.iter().map(|p| p.sent_frames).sum(), ..self.totals }
    }

    /// What a port has counted so far.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn port_stats(&self, port: PortId) -> PortStats {
        let parking = self.parking.get(port.index()).copied().unwrap_or_default();
        self.ports[port.index()].stats(&parking)
    }

    /// What acceleration has done so far.
    pub fn skipped(&self) -> Skipped {
        self.skipped
    }

    /// Flows added and not yet started.
    pub fn queued_flows(&self) -> usize {
        self.flows.len()
    }

    /// Flows started and not yet finished.
    pub fn unfinished_flows(&self) -> usize {
        self.unfinished
    }

    /// Flows that have opened and not finished, in no particular order.
    pub fn active_flows(&self) -> impl Iterator<Item = ActiveFlow> + '_ {
        self.qps.ids().map(|qp| &self.qps.slots[qp.index()]).filter(|slot| slot.is_open()).map(|slot| ActiveFlow {
            flow: slot.flow,
            token: slot.token,
            src: slot.src,
            dst: slot.dst,
            bytes: slot.size,
            acked: slot.snd_una,
            control: slot.control,
        })
    }

    /// Frames in queues and on wires.
    pub fn live_packets(&self) -> usize {
        self.packets.live()
    }

    /// Bytes in the shared part of a switch's buffer.
    ///
    /// # Panics
    /// If there is no such node.
    pub fn shared_bytes(&self, node: NodeId) -> u64 {
        self.models.buffers.shared_bytes(&self.switches[node.index()])
    }

    /// Bytes a switch's buffer holds for what came in by `port` at `priority`.
    ///
    /// # Panics
    /// If there is no such port, or the priority is above 7.
    pub fn ingress_bytes(&self, port: PortId, priority: u8) -> u64 {
        self.models.buffers.queue_bytes(&self.buffer_queues[(port, priority)])
    }

    /// Bytes waiting at an egress port at `priority`.
    ///
    /// # Panics
    /// If there is no such port, or the priority is above 7.
    pub fn egress_bytes(&self, port: PortId, priority: u8) -> u64 {
        self.queues[(port, priority)].bytes
    }

    /// Queues that have frames and wait for the end of a pause.
    pub fn paused_queues(&self) -> impl Iterator<Item = PausedQueue> + '_ {
        self.fabric.ports().flat_map(move |port| {
            let state = &self.ports[port.index()];
            (0..PRIORITIES as u8).filter(move |&p| (state.occupied & state.paused & !1) >> p & 1 != 0).map(
                move |priority| PausedQueue {
                    port,
                    priority,
                    bytes: self.egress_bytes(port, priority),
                    since: state.paused_since,
                },
            )
        })
    }

    /// Parameters of the transport.
    pub fn transport(&self) -> &Transport {
        &self.models.transport
    }

    /// A congestion control, if there is one of that index.
    pub fn cca(&self, index: u8) -> Option<&M::Cca> {
        self.models.ccas.get(index as usize)
    }

    /// Time that `bytes` take on the wire out of `port`.
    ///
    /// # Panics
    /// If there is no such port.
    pub fn serialise(&self, port: PortId, bytes: u32) -> Span {
        self.models.timing.serialise(bytes, self.fabric.port(port).rate)
    }

    /// The egress ports that a flow's data takes from its source to its destination, by the links up now.
    ///
    /// # Errors
    /// As [`add_flow`](Self::add_flow), but for time and capacity.
    pub fn data_path(&mut self, flow: &FlowSpec) -> Result<Path, Error> {
        self.check_flow(flow)?;
        self.walk(&flow.route_key())
    }

    /// The egress ports that its acknowledgements take back.
    ///
    /// # Errors
    /// As [`add_flow`](Self::add_flow), but for time and capacity.
    pub fn ack_path(&mut self, flow: &FlowSpec) -> Result<Path, Error> {
        self.check_flow(flow)?;
        self.walk(&flow.route_key().reversed())
    }

    /// The round-trip time of a flow's empty path, and its bandwidth-delay product in bytes: a full data packet one
    /// way, store and forward, its ACK the other.
    fn path_facts(&mut self, flow: &FlowSpec) -> Result<(Span, u64), Error> {
        let (out, back) = (self.data_path(flow)?, self.ack_path(flow)?);
        let needs = self.models.ccas[flow.cca as usize].needs();
        let switches = out.len() - 1;
        if needs.telemetry && switches > MAX_INT_HOPS && !self.models.transport.ns3_quirks {
            return Err(Error::PathTooLong { switches, limit: MAX_INT_HOPS });
        }
        let time = |path: &Path, bytes: u32| {
            let hop = |&port: &PortId| self.fabric.port(port).delay + self.serialise(port, bytes);
            path.iter().map(hop).fold(Span::ZERO, |sum, hop| sum + hop)
        };
        let data = Transport::data_bytes(self.models.transport.mtu, needs.header_bytes);
        let rtt = time(&out, data) + time(&back, Transport::ack_bytes(needs.header_bytes));
        let bottleneck = out.iter().map(|&p| self.fabric.port(p).rate.0).min().unwrap_or(0);
        let bdp = quotient(rtt.0 as u128 * bottleneck as u128, 8 * PS_PER_S as u128);
        Ok((rtt, u64::try_from(bdp).unwrap_or(u64::MAX).max(1)))
    }

    // Commands.

    /// Adds a flow.
    ///
    /// # Errors
    /// [`Error::InPast`], [`Error::NotAHost`], [`Error::SameHost`], [`Error::EmptyFlow`], [`Error::BadClass`],
    /// [`Error::NoPath`], [`Error::PathTooLong`], or [`Error::Capacity`] (`queued_flows`). Nothing is changed then.
    pub fn add_flow(&mut self, flow: &FlowSpec) -> Result<FlowId, Error> {
        self.check_time(flow.start)?;
        let (rtt, bdp) = self.path_facts(flow)?;
        let id = FlowId(self.next_flow);
        self.flows.push(flow, id, flow.base_rtt.unwrap_or(rtt), flow.bdp.unwrap_or(bdp))?;
        self.next_flow += 1;
        self.schedule_start();
        Ok(id)
    }

    /// Takes a link down or up at a time not before now. Frames on a link that goes down are lost, and so are those
    /// that wait for it; routes are chosen anew.
    ///
    /// # Errors
    /// [`Error::InPast`], [`Error::BadLink`] if there is no such link, or [`Error::Capacity`] (`inputs`).
    pub fn set_link(&mut self, at: SimTime, link: LinkId, up: bool) -> Result<(), Error> {
        if link.index() >= self.fabric.link_count() {
            return Err(Error::BadLink { link: link.index() });
        }
        self.add_input(at, Command::Link { link, up })
    }

    /// Hands a frame from outside to the NIC of host `frame.src` at a time not before now. It travels to
    /// `frame.dst` like any other and comes out of [`poll_egress`](Self::poll_egress) there.
    ///
    /// # Errors
    /// [`Error::InPast`], [`Error::NotAHost`], [`Error::SameHost`], [`Error::BadClass`], [`Error::NoPath`] if the host
    /// has no port at all, or [`Error::Capacity`] (`inputs`).
    pub fn inject(&mut self, at: SimTime, frame: &ExternalFrame) -> Result<(), Error> {
        let ExternalFrame { src, dst, .. } = *frame;
        self.check_hosts(src, dst)?;
        if self.fabric.ports_of(src).len() == 0 {
            return Err(Error::NoPath { src, dst });
        }
        if frame.priority as usize >= PRIORITIES {
            return Err(Error::BadClass);
        }
        self.add_input(at, Command::Frame(*frame))
    }

    // Outputs.

    /// The next flow that has ended, in order of time.
    pub fn poll_completion(&mut self) -> Option<Completion> {
        self.completions.pop()
    }

    /// The next external frame that has reached its host; its `at` is the time of arrival.
    pub fn poll_egress(&mut self) -> Option<ExternalFrame> {
        self.egress.pop()
    }

    // Running.

    /// Lets everything up to and including `limit` happen.
    ///
    /// # Errors
    /// [`CapacityError`] if the next event needs more than a limit allows. It has not happened then, and the kernel
    /// can still be asked and polled; asked to run on, it says the same again.
    pub fn run_until(&mut self, limit: SimTime) -> Result<Step, CapacityError> {
        self.run_bounded(limit, u64::MAX)
    }

    /// As [`run_until`](Self::run_until), but executes at most `budget` events.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn run_bounded(&mut self, limit: SimTime, budget: u64) -> Result<Step, CapacityError> {
        self.stops_at_completions = false;
        self.run(limit, budget)
    }

    /// As [`run_bounded`](Self::run_bounded), but also returns after an instant in which flows have ended:
    /// [`Step::Completed`]. Who lets flows wait for others adds them then, at [`now`](Self::now). Partitions are looked
    /// up in the memo only after that, so that what follows at once is part of what is looked up.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn run_to_completion(&mut self, limit: SimTime, budget: u64) -> Result<Step, CapacityError> {
        self.stops_at_completions = true;
        // Some may be left of an earlier call.
        self.interrupted |= !self.completions.is_empty();
        self.run(limit, budget)
    }

    fn run(&mut self, limit: SimTime, budget: u64) -> Result<Step, CapacityError> {
        let mut budget = budget;
        // What is pending at the end of time does not happen.
        let last = limit.min(SimTime(SimTime::MAX.0 - 1));
        loop {
            if self.interrupted
                && let Some(stop) = self.interruption()
            {
                return stop;
            }
            let (next, lane) = self.next_due();
            if next.at > last {
                return Ok(self.end_of_run(limit, next));
            }
            if budget == 0 {
                return Ok(Step::Budget);
            }
            budget -= 1;
            self.clock.advance(next);
            self.execute(lane);
            if self.on_wire | self.wakes == 0 && self.is_stalled() {
                return Ok(Step::Stalled);
            }
        }
    }

    /// When something happens next, and the lane it is in unless it is a timer.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn next_due(&self) -> (EventKey, Option<usize>) {
        let (lane, lane_due) = self.lanes.first();
        if lane_due < self.next_timer { (lane_due, Some(lane)) } else { (self.next_timer, None) }
    }

    /// Lets the head of a lane or the earliest timer happen; the clock has come to it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn execute(&mut self, lane: Option<usize>) {
        self.totals.events += 1;
        match lane {
            Some(lane) => self.lane_due(lane),
            None => self.timer_due(),
        }
    }

    /// Something needs the caller's attention before the next event: outputs are full, frames or a limit run out.
    #[cold]
    pub(crate) fn interruption(&mut self) -> Option<Result<Step, CapacityError>> {
        self.look_at_end_of_instant();
        if self.stops_at_completions && !self.completions.is_empty() && !self.has_more_now() {
            // What ends now for those that are followed ends now for their followers, too.
            self.end_followed_recordings();
            if !self.has_more_now() {
                return Some(Ok(Step::Completed));
            }
        }
        if self.partitions.any_due() {
            self.end_instant();
        }
        if let Some(fault) = self.fault.take() {
            return Some(Err(fault));
        }
        if self.completions.room() < self.outputs_needed.max(1) || self.egress.is_full() {
            return Some(Ok(Step::OutputFull));
        }
        self.outputs_needed = 0;
        if self.packets.available() < PACKETS_PER_EVENT {
            return Some(Err(CapacityError { what: "packets", limit: self.packets.capacity() }));
        }
        let completed = self.stops_at_completions && !self.completions.is_empty();
        self.interrupted = completed || self.partitions.any_due() || !self.looks.is_empty();
        None
    }

    /// Whether something else is due in this instant.
    pub(crate) fn has_more_now(&self) -> bool {
        self.next_due().0.at <= self.now()
    }

    /// Whether outputs or frames have no room for another event.
    pub(crate) fn must_stop(&self) -> bool {
        self.completions.is_full() || self.egress.is_full() || self.lacks_frames()
    }

    /// The same of a partition that catches up. In the past it has no outputs: a flow that had ended there would have
    /// ended the episode, and partitions with frames from outside are not parked.
    pub(crate) fn must_stop_on_the_way(&self, is_past: bool) -> bool {
        if is_past { self.lacks_frames() } else { self.must_stop() }
    }

    fn lacks_frames(&self) -> bool {
        self.packets.available() < PACKETS_PER_EVENT
    }

    fn end_of_run(&mut self, limit: SimTime, next: EventKey) -> Step {
        // Time goes on towards what is pending at its end.
        if next == EventKey::NEVER || limit == SimTime::MAX {
            return Step::Idle;
        }
        self.clock.advance(EventKey { at: limit.max(self.now()), tie: Tie::LAST });
        Step::Reached
    }

    /// The earliest timer has come due.
    pub(crate) fn timer_due(&mut self) {
        let Some((_, timer)) = self.events.pop() else { return };
        self.next_timer = self.events.peek().unwrap_or(EventKey::NEVER);
        match self.timers.event(timer) {
            Event::Arrive(port) => self.own_lane_arrives(port),
            Event::TxDone(port) => self.transmission_ends(port),
            Event::Wake(port) => {
                self.wakes -= 1;
                self.ports[port.index()].wakes = self.ports[port.index()].wakes.wrapping_add(1);
                self.try_send(port);
            }
            Event::Unpark(port) => self.unpark(port),
            Event::Cca(qp, timer) => self.cca_timer(qp, timer),
            Event::Qp(qp) => self.check_timeout(qp),
            Event::Start => self.start_flows(),
            Event::Open => self.open_flows(),
            Event::Input => self.apply_inputs(),
        }
    }

    /// Nothing is on a wire and no NIC will wake up. Is there anything else that could set the fabric in motion?
    #[cold]
    fn is_stalled(&self) -> bool {
        let may_change = self.flows.len() > 0 || !self.inputs.is_empty() || self.partitions.parked > 0;
        if self.unfinished == 0 || may_change {
            return false;
        }
        // Time-outs help where frames were lost. Frames that wait in paused queues were not, and a host that is
        // paused itself cannot repeat anything.
        let helped = self.models.transport.timeout.is_some();
        if helped && self.packets.live() == 0 {
            return false;
        }
        let may_act = |slot: &Qp| {
            let paused = slot.port.is_some() && self.ports[slot.port.index()].paused >> slot.priority & 1 != 0;
            slot.is_opening() || (helped && slot.is_open() && !paused)
        };
        !self.qps.ids().any(|qp| may_act(&self.qps.slots[qp.index()]))
    }

    // Helpers of several parts.

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn schedule(&mut self, event: Event, key: EventKey) {
        let timer = self.timers.timer(event);
        let replaces_first = self.next_timer < key && self.events.pending(timer) == Some(self.next_timer);
        self.events.schedule(timer, key);
        self.next_timer =
            if replaces_first { self.events.peek().unwrap_or(EventKey::NEVER) } else { self.next_timer.min(key) };
    }

    pub(crate) fn cancel(&mut self, event: Event) {
        if self.events.cancel(self.timers.timer(event)) {
            self.next_timer = self.events.peek().unwrap_or(EventKey::NEVER);
        }
    }

    /// A limit is reached: nothing more happens but that the caller is told.
    #[cold]
    pub(crate) fn fail(&mut self, fault: CapacityError) {
        self.fault = Some(fault);
        self.interrupted = true;
    }

    pub(crate) fn push_completion(&mut self, record: Completion) {
        self.completions.push(record);
        self.interrupted |= self.stops_at_completions || self.completions.is_full();
    }

    pub(crate) fn push_egress(&mut self, frame: ExternalFrame) {
        self.egress.push(frame);
        self.interrupted |= self.egress.is_full();
    }

    /// A slot for a new frame. The last few are a reserve for what one event may still need.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn new_frame(&mut self, packet: Packet) -> PacketId {
        let id = self.packets.insert(packet);
        self.interrupted |= self.packets.available() < PACKETS_PER_EVENT;
        id
    }

    fn check_time(&self, at: SimTime) -> Result<(), Error> {
        let now = self.now();
        if at < now { Err(Error::InPast { at, now }) } else { Ok(()) }
    }

    fn check_hosts(&self, src: NodeId, dst: NodeId) -> Result<(), Error> {
        for node in [src, dst] {
            if self.fabric.kind(node) != Some(NodeKind::Host) {
                return Err(Error::NotAHost(node));
            }
        }
        if src == dst { Err(Error::SameHost(src)) } else { Ok(()) }
    }

    fn check_flow(&self, flow: &FlowSpec) -> Result<(), Error> {
        self.check_hosts(flow.src, flow.dst)?;
        if flow.bytes == 0 {
            return Err(Error::EmptyFlow);
        }
        if flow.priority as usize >= PRIORITIES || flow.cca as usize >= self.models.ccas.len() {
            return Err(Error::BadClass);
        }
        Ok(())
    }

    fn add_input(&mut self, at: SimTime, command: Command) -> Result<(), Error> {
        self.check_time(at)?;
        self.inputs.push(at, command)?;
        self.schedule_input();
        Ok(())
    }
}

/// A typical time from the start of a transmission to its arrival: that of the median link by delay.
fn typical_hop<M: Models>(models: &ModelSet<'_, M>, fabric: &Fabric<'_>) -> Span {
    let hop = |port: PortId| {
        let info = fabric.port(port);
        info.delay + models.timing.serialise(models.transport.mtu, info.rate)
    };
    // The median by bisection on powers of two: the number of ports is large, the memory for a sort is not there.
    let ports = fabric.port_count();
    let below = |bound: u64| fabric.ports().filter(|&p| hop(p).0 <= bound).count();
    let bits = (0..64).find(|&bits| 2 * below(1 << bits) >= ports).unwrap_or(63);
    Span(1 << bits)
}

impl<'a, M: Models, O: Observer> Kernel<'a, M, O> {
    /// The egress port of `node` towards a destination, if a path is up.
    pub(crate) fn route(&mut self, node: NodeId, key: &RouteKey) -> Option<PortId> {
        self.models.router.egress(&self.fabric, node, key)
    }

    pub(crate) fn walk(&mut self, key: &RouteKey) -> Result<Path, Error> {
        let no_path = Error::NoPath { src: key.src, dst: key.dst };
        let (mut node, mut path) = (key.src, Path::new());
        while node != key.dst {
            let port = self.route(node, key).ok_or(no_path)?;
            let too_long = Error::PathTooLong { switches: path.len(), limit: MAX_PATH - 1 };
            path.push(port).map_err(|_| too_long)?;
            node = self.fabric.neighbour(port);
        }
        Ok(path)
    }
}

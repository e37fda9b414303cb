//! Queue pairs: the state of a flow between its start and its end, sender and receiver side.

use crate::cca::SendControl;
use crate::error::CapacityError;
use crate::flow::QueuedFlow;
use crate::ids::{FlowId, NodeId, PartitionId, PortId, QpId};
use crate::memory::{Carver, words_for};
use crate::router::RouteKey;
use crate::units::{BitRate, SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// Switch hops of a path that are kept; routers are asked again for hops beyond.
pub(crate) const CACHED_HOPS: usize = 8;

/// A queue pair.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Qp {
    // Sender.
    pub(crate) size: u64,
    pub(crate) snd_nxt: u64,
    pub(crate) snd_una: u64,
    pub(crate) control: SendControl,
    pub(crate) next_avail: SimTime,
    pub(crate) line_rate: BitRate,
    pub(crate) paced_rate: BitRate,
    pub(crate) paced_time: Span,
    /// Size of the last data packet, and what a packet of that size takes at that rate: rates change less often
    /// than they are used, and a serialisation time costs a division.
    pub(crate) last_bytes: u32,
    /// Bytes its congestion control adds to headers.
    pub(crate) header: u32,
    /// The NIC port it sends by, and the one its receiver acknowledges by.
    pub(crate) port: PortId,
    pub(crate) ack_port: PortId,
    /// Neighbours in the queue of its NIC port; `next` also links free slots, and those that open together.
    pub(crate) next: QpId,
    pub(crate) prev: QpId,
    pub(crate) priority: u8,
    pub(crate) cca: u8,
    /// Whether its packets collect telemetry.
    pub(crate) telemetry: u8,
    state: u8,
    /// Frames in the fabric that name this slot.
    pub(crate) frames: u32,
    // Receiver.
    pub(crate) expected: u64,
    pub(crate) nack_until: SimTime,
    pub(crate) last_nack: u64,
    // Rarely used.
    pub(crate) deadline: SimTime,
    pub(crate) timeout: Span,
    pub(crate) start: SimTime,
    pub(crate) token: u64,
    /// Of all acknowledgements so far: their round-trip times, and their number.
    pub(crate) rtt_sum: Span,
    pub(crate) acks: u64,
    pub(crate) base_rtt: Span,
    pub(crate) bdp: u64,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) flow: FlowId,
    pub(crate) path_epoch: u32,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) retries: u32,
    // Acceleration.
    /// Once acknowledged beyond this byte, the partition is looked at.
    pub(crate) section: u64,
    /// At the ends of the last windows, the latest last.
    pub(crate) marks: [Mark; MARKS],
    /// Its rate in the samples of the paper's detector.
    pub(crate) rates: Rates,
    /// The partition it is in, and its neighbours there.
    pub(crate) partition: PartitionId,
    pub(crate) next_member: QpId,
    pub(crate) prev_member: QpId,
    /// Its number in the partition, while a snapshot is made.
    pub(crate) local: u32,
    /// Timers of its congestion control that have come due, those skipped among them, modulo 2^32.
    pub(crate) timers: u32,
    pad: u32,
}

/// Ends of windows that are kept: three windows.
pub(crate) const MARKS: usize = 4;

/// What a flow had come to at the end of a window.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct Mark {
    /// Bytes acknowledged.
    pub(crate) acked: u64,
    /// Of all acknowledgements so far: their round-trip times, and their number.
    pub(crate) rtt_sum: Span,
    pub(crate) acks: u64,
}

/// What samples of a rate have shown.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, Pod, Zeroable)]
pub(crate) struct Rates {
    pub(crate) least: BitRate,
    pub(crate) most: BitRate,
    pub(crate) sum: u64,
    pub(crate) count: u64,
}

impl Rates {
    pub(crate) fn sample(&mut self, rate: BitRate) {
        self.least = if self.count == 0 { rate } else { self.least.min(rate) };
        self.most = self.most.max(rate);
        self.sum = self.sum.saturating_add(rate.0);
        self.count += 1;
    }
}

/// Life of a queue pair. Opening takes two zero-delay steps, as it does in ns-3.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(crate) enum QpState {
    Free = 0,
    Created,
    Starting,
    Open,
    /// Finished, but still in its NIC port's queue.
    Finished,
    /// Finished and out of the queue; frames may still name it.
    Retired,
}

const STATES: [QpState; 6] =
    [QpState::Free, QpState::Created, QpState::Starting, QpState::Open, QpState::Finished, QpState::Retired];

impl Qp {
    /// Whether every byte is acknowledged (or the flow was given up).
    #[inline(always)]
    pub fn is_finished(&self) -> bool {
        self.snd_una >= self.size
    }

    /// Payload bytes not yet sent, counted from the present position.
    #[inline(always)]
    pub fn bytes_left(&self) -> u64 {
        self.size.saturating_sub(self.snd_nxt)
    }

    /// Payload bytes sent and not acknowledged. Wraps if less is sent than acknowledged, which only happens
    /// with the transport's ns-3 quirks.
    #[inline(always)]
    pub fn in_flight(&self) -> u64 {
        self.snd_nxt.wrapping_sub(self.snd_una)
    }

    /// Whether pause, want of data or the window keeps it from sending, whatever the time.
    /// `paused` as in [`Nic::poll`](crate::nic::Nic::poll).
    #[inline(always)]
    pub fn blocked(&self, paused: u8) -> bool {
        paused >> self.priority & 1 != 0 || self.bytes_left() == 0 || self.in_flight() >= self.control.window
    }

    /// When pacing lets it send.
    #[inline(always)]
    pub fn next_avail(&self) -> SimTime {
        self.next_avail
    }

    /// The flow.
    pub fn flow(&self) -> FlowId {
        self.flow
    }

    /// What it may send at present.
    pub fn control(&self) -> SendControl {
        self.control
    }

    /// The spacing of packets like the last one at `rate`; `serialise` gives the time such a packet takes.
    #[inline(always)]
    pub(crate) fn spacing(&mut self, rate: BitRate, serialise: impl FnOnce(u32, BitRate) -> Span) -> Span {
        if self.paced_rate != rate {
            self.paced_rate = rate;
            self.paced_time = serialise(self.last_bytes, rate);
        }
        self.paced_time
    }

    /// A data packet of `bytes` has been sent.
    #[inline(always)]
    pub(crate) fn sent(&mut self, bytes: u32) {
        if self.last_bytes != bytes {
            self.last_bytes = bytes;
            self.paced_rate = BitRate(0);
        }
    }

    pub(crate) fn state(&self) -> QpState {
        STATES[self.state as usize]
    }

    pub(crate) fn is_opening(&self) -> bool {
        matches!(self.state(), QpState::Created | QpState::Starting)
    }

    /// Whether it has been open and is in the way of others still.
    pub(crate) fn is_in_use(&self) -> bool {
        matches!(self.state(), QpState::Open | QpState::Finished | QpState::Retired)
    }

    pub(crate) fn is_open(&self) -> bool {
        self.state() == QpState::Open
    }

    pub(crate) fn set_state(&mut self, state: QpState) {
        self.state = state as u8;
    }

    /// What routers see of its data packets.
    pub(crate) fn data_key(&self, packet: u64) -> RouteKey {
        RouteKey { src: self.src, dst: self.dst, src_port: self.src_port, dst_port: self.dst_port, packet }
    }

    /// What routers see of its acknowledgements.
    pub(crate) fn ack_key(&self, packet: u64) -> RouteKey {
        self.data_key(packet).reversed()
    }
}

/// The egress ports of a queue pair's paths, hop by hop, data first: one cache line.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Paths {
    ports: [PortId; 2 * CACHED_HOPS],
}

impl Paths {
    pub(crate) fn new(data: [PortId; CACHED_HOPS], ack: [PortId; CACHED_HOPS]) -> Paths {
        let mut ports = [PortId::NONE; 2 * CACHED_HOPS];
        ports[..CACHED_HOPS].copy_from_slice(&data);
        ports[CACHED_HOPS..].copy_from_slice(&ack);
        Paths { ports }
    }

    /// The egress port of hop `hop`, below [`CACHED_HOPS`]. Data and ACKs alternate at random: this is no branch.
    #[inline(always)]
    pub(crate) fn port(&self, is_data: bool, hop: u8) -> PortId {
        let way = if is_data { 0 } else { CACHED_HOPS };
        self.ports[(way + hop as usize) % (2 * CACHED_HOPS)]
    }
}

/// All queue pairs; slots of finished ones are used again.
pub(crate) struct QpTable<'a, S> {
    pub(crate) slots: &'a mut [Qp],
    pub(crate) paths: &'a mut [Paths],
    pub(crate) cca: &'a mut [S],
    used: u32,
    free: QpId,
}

impl<'a, S: Pod> QpTable<'a, S> {
    pub(crate) const fn words(qps: usize) -> usize {
        words_for::<Qp>(qps) + words_for::<Paths>(qps) + words_for::<S>(qps)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, qps: usize) -> Result<Self, CapacityError> {
        Ok(QpTable {
            slots: carver.take(qps)?,
            paths: carver.take(qps)?,
            cca: carver.take(qps)?,
            used: 0,
            free: QpId::NONE,
        })
    }

    /// Slots that may be in use.
    pub(crate) fn ids(&self) -> impl Iterator<Item = QpId> + use<S> {
        (0..self.used).map(QpId)
    }

    /// A slot for a flow that starts.
    pub(crate) fn insert(&mut self, flow: &QueuedFlow) -> Result<QpId, CapacityError> {
        let qp = if self.free.is_some() { self.free } else { QpId(self.used) };
        if qp.index() >= self.slots.len() {
            return Err(CapacityError { what: "active_flows", limit: self.slots.len() });
        }
        if qp.0 == self.used {
            self.used += 1;
        } else {
            self.free = self.slots[qp.index()].next;
        }
        self.slots[qp.index()] = Qp {
            size: flow.bytes,
            token: flow.token,
            base_rtt: flow.base_rtt,
            bdp: flow.bdp,
            src: flow.src,
            dst: flow.dst,
            flow: flow.id,
            src_port: flow.src_port,
            dst_port: flow.dst_port,
            priority: flow.priority,
            cca: flow.cca,
            state: QpState::Created as u8,
            path_epoch: u32::MAX,
            port: PortId::NONE,
            ack_port: PortId::NONE,
            next: QpId::NONE,
            prev: QpId::NONE,
            section: u64::MAX,
            partition: PartitionId::NONE,
            ..Qp::zeroed()
        };
        Ok(qp)
    }

    pub(crate) fn remove(&mut self, qp: QpId) {
        let slot = &mut self.slots[qp.index()];
        slot.set_state(QpState::Free);
        slot.next = self.free;
        self.free = qp;
    }
}

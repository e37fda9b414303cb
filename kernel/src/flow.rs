//! Flows as the caller sees them, and the queue of those not yet started.

use crate::error::CapacityError;
use crate::ids::{FlowId, NodeId};
use crate::memory::{Carver, words_for};
use crate::router::RouteKey;
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// A message to send.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowSpec {
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// Payload bytes, at least 1.
    pub bytes: u64,
    /// When to start; not before now.
    pub start: SimTime,
    /// Priority (802.1p class), below 8.
    pub priority: u8,
    /// Index into the kernel's congestion controls.
    pub cca: u8,
    /// UDP source port: what ECMP tells flows of a pair apart by.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Round-trip time the congestion control shall assume; `None`: that of the flow's own empty path.
    pub base_rtt: Option<Span>,
    /// Bandwidth-delay product it shall assume, in bytes; `None`: that of the flow's own path.
    pub bdp: Option<u64>,
    /// Comes back in the completion.
    pub token: u64,
}

impl FlowSpec {
    /// A flow of `bytes` at priority 3 under the first congestion control.
    pub fn new(src: NodeId, dst: NodeId, bytes: u64, start: SimTime) -> FlowSpec {
        FlowSpec {
            src,
            dst,
            bytes,
            start,
            priority: 3,
            cca: 0,
            src_port: 10_000,
            dst_port: 100,
            base_rtt: None,
            bdp: None,
            token: 0,
        }
    }
}

impl FlowSpec {
    /// What routers see of its data packets.
    pub(crate) fn route_key(&self) -> RouteKey {
        RouteKey { src: self.src, dst: self.dst, src_port: self.src_port, dst_port: self.dst_port, packet: 0 }
    }
}

/// How a flow ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FlowEnd {
    /// Every byte was acknowledged.
    Done,
    /// Given up after too many time-outs in a row.
    GaveUp,
}

/// The end of a flow.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub struct Completion {
    /// The flow.
    pub flow: FlowId,
    pub(crate) gave_up: u32,
    /// The token of its spec.
    pub token: u64,
    /// When its queue pair opened.
    pub start: SimTime,
    /// From then to the acknowledgement of its last byte.
    pub fct: Span,
    /// Its payload bytes.
    pub bytes: u64,
    /// Mean over its acknowledgements of the time since their data packets were built.
    pub mean_rtt: Span,
}

impl Completion {
    /// How the flow ended.
    pub fn end(&self) -> FlowEnd {
        if self.gave_up == 0 { FlowEnd::Done } else { FlowEnd::GaveUp }
    }
}

impl Default for Completion {
    fn default() -> Completion {
        Completion::zeroed()
    }
}

/// A [`FlowSpec`] in memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct QueuedFlow {
    pub(crate) start: SimTime,
    pub(crate) bytes: u64,
    pub(crate) token: u64,
    pub(crate) base_rtt: Span,
    pub(crate) bdp: u64,
    pub(crate) src: NodeId,
    pub(crate) dst: NodeId,
    pub(crate) id: FlowId,
    next: u32,
    pub(crate) src_port: u16,
    pub(crate) dst_port: u16,
    pub(crate) priority: u8,
    pub(crate) cca: u8,
    pad: u16,
}

impl QueuedFlow {
    /// What routers see of its data packets.
    pub(crate) fn route_key(&self) -> RouteKey {
        RouteKey { src: self.src, dst: self.dst, src_port: self.src_port, dst_port: self.dst_port, packet: 0 }
    }
}

/// Flows not yet started, by start time; of one time, first added first.
pub(crate) struct FlowQueue<'a> {
    slots: &'a mut [QueuedFlow],
    /// Slots ever used.
    used: u32,
    /// Heads and tail of lists of slots; ends are `NONE`.
    free: u32,
    first: u32,
    last: u32,
    len: usize,
}

const NONE: u32 = u32::MAX;

impl<'a> FlowQueue<'a> {
    pub(crate) const fn words(flows: usize) -> usize {
        words_for::<QueuedFlow>(flows)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, flows: usize) -> Result<Self, CapacityError> {
        Ok(FlowQueue { slots: carver.take(flows)?, used: 0, free: NONE, first: NONE, last: NONE, len: 0 })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn first(&self) -> Option<&QueuedFlow> {
        (self.first != NONE).then(|| &self.slots[self.first as usize])
    }

    /// The one to start after `flow`, which is in the queue.
    pub(crate) fn after(&self, flow: &QueuedFlow) -> Option<&QueuedFlow> {
        (flow.next != NONE).then(|| &self.slots[flow.next as usize])
    }

    pub(crate) fn push(&mut self, spec: &FlowSpec, id: FlowId, base_rtt: Span, bdp: u64) -> Result<(), CapacityError> {
        if self.len == self.slots.len() {
            return Err(CapacityError { what: "queued_flows", limit: self.slots.len() });
        }
        let slot = if self.free != NONE { self.free } else { self.used };
        if slot == self.used {
            self.used += 1;
        } else {
            self.free = self.slots[slot as usize].next;
        }
        self.slots[slot as usize] = QueuedFlow {
            start: spec.start,
            bytes: spec.bytes,
            token: spec.token,
            base_rtt,
            bdp,
            src: spec.src,
            dst: spec.dst,
            id,
            next: NONE,
            src_port: spec.src_port,
            dst_port: spec.dst_port,
            priority: spec.priority,
            cca: spec.cca,
            pad: 0,
        };
        self.link(slot);
        self.len += 1;
        Ok(())
    }

    /// Puts a slot in its place. Callers mostly add in order of start, so the end is looked at first.
    fn link(&mut self, slot: u32) {
        let start = self.slots[slot as usize].start;
        if self.first == NONE {
            self.first = slot;
            self.last = slot;
        } else if self.slots[self.last as usize].start <= start {
            self.slots[self.last as usize].next = slot;
            self.last = slot;
        } else if start < self.slots[self.first as usize].start {
            self.slots[slot as usize].next = self.first;
            self.first = slot;
        } else {
            let mut at = self.first;
            loop {
                let next = self.slots[at as usize].next;
                if self.slots[next as usize].start > start {
                    self.slots[slot as usize].next = next;
                    self.slots[at as usize].next = slot;
                    return;
                }
                at = next;
            }
        }
    }

    pub(crate) fn pop(&mut self) -> Option<QueuedFlow> {
        let flow = *self.first()?;
        self.slots[self.first as usize].next = self.free;
        self.free = self.first;
        self.first = flow.next;
        self.len -= 1;
        Some(flow)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flows_come_out_by_start_then_by_order_of_adding() {
        let mut words = [0u64; 100];
        let mut queue = FlowQueue::carve(&mut Carver::new(&mut words), 6).unwrap();
        let starts = [5, 3, 9, 3, 5, 1];
        for (i, start) in starts.iter().enumerate() {
            let spec = FlowSpec::new(NodeId(0), NodeId(1), 1, SimTime(*start));
            queue.push(&spec, FlowId(i as u32), Span(1), 1).unwrap();
        }
        let spec = FlowSpec::new(NodeId(0), NodeId(1), 1, SimTime(0));
        assert_eq!(queue.push(&spec, FlowId(6), Span(1), 1).unwrap_err().what, "queued_flows");
        let order: heapless::Vec<u32, 6> = core::iter::from_fn(|| queue.pop()).map(|f| f.id.0).collect();
        assert_eq!(order, [5, 1, 3, 0, 4, 2]);
        queue.push(&spec, FlowId(7), Span(1), 1).unwrap();
        assert_eq!((queue.len(), queue.pop().map(|f| f.id), queue.len()), (1, Some(FlowId(7)), 0));
    }
}

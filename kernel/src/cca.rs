//! Congestion control: a read-only algorithm shared by flows, and plain-data state per flow.

use crate::event::CCA_TIMERS;
use crate::model::ModelId;
use crate::telemetry::IntHop;
use crate::units::{BitRate, SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// What a flow may send, decided by its congestion control.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub struct SendControl {
    /// Unacknowledged payload bytes allowed; `u64::MAX` is unlimited. At least 1.
    pub window: u64,
    /// Pacing rate on wire bytes. At least 1 bit/s.
    pub rate: BitRate,
}

/// What a congestion control reads from packets. It decides the size of headers and what switches record.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct CcaNeeds {
    /// Switches append an [`IntHop`] to data packets, and ACKs echo them.
    pub telemetry: bool,
    /// Bytes the algorithm's own header adds to data packets and ACKs.
    pub header_bytes: u32,
}

/// The facts of a flow that its congestion control may use.
#[derive(Clone, Copy, Debug)]
pub struct FlowFacts {
    /// Rate of the sender's NIC port.
    pub line_rate: BitRate,
    /// Round-trip time of the empty path.
    pub base_rtt: Span,
    /// Bandwidth-delay product in bytes: the window a full pipe needs.
    pub bdp: u64,
    /// Largest payload of a packet, in bytes.
    pub mtu: u32,
}

/// What the congestion control learns from an ACK or NACK.
#[derive(Clone, Copy, Debug)]
pub struct Ack<'a> {
    /// Time of arrival at the sender.
    pub now: SimTime,
    /// Bytes received in order so far.
    pub acked: u64,
    /// Next byte the sender would send.
    pub snd_nxt: u64,
    /// The acknowledged data packet carried an ECN mark.
    pub marked: bool,
    /// Since the data packet was built at the sender.
    pub rtt: Span,
    /// Telemetry of the data packet's switch hops, nearest to the sender first. Empty unless asked for.
    pub hops: &'a [IntHop],
    /// Switch hops that appended telemetry; more than `hops` holds if the header ran out of room.
    pub hop_count: usize,
}

/// Effects of a call: what to send from now on, and timers to set.
#[derive(Clone, Copy, Debug)]
pub struct CcaOut {
    /// What the flow may send; starts as what it was.
    pub control: SendControl,
    /// The rate applies to the packet already paced: move the next departure by the difference.
    pub repace: bool,
    /// Timers to set, relative to now, in this order; a pending one is replaced. `None` leaves it alone.
    pub timers: [Option<Span>; CCA_TIMERS],
}

impl CcaOut {
    /// No effects.
    pub fn new(control: SendControl) -> CcaOut {
        CcaOut { control, repace: false, timers: [None; CCA_TIMERS] }
    }
}

/// What is absolute in a flow's state, at one moment: what a relative state is measured from.
#[derive(Clone, Copy, Debug)]
pub struct Origin<'a> {
    /// The moment.
    pub now: SimTime,
    /// Bytes acknowledged by then.
    pub acked: u64,
    /// What a packet would read from each switch hop of its path, if it left there now: clock and byte counter as the
    /// header has them. The queue is 0.
    pub hops: &'a [IntHop],
}

/// A congestion-control algorithm.
///
/// Who depends on it: the transport, once per ACK and per timer, and fast-forwarding. An implementation MUST be
/// deterministic, MUST keep all per-flow state in [`State`](Self::State), and MUST treat times, byte positions and
/// telemetry counters as relative: measuring a state from one [`Origin`] and setting it up again at another changes
/// nothing but where it is.
pub trait CongestionControl {
    /// Per-flow state: plain data, copied bit for bit into snapshots.
    type State: Pod;

    /// Name, version and configuration.
    fn id(&self) -> ModelId;

    /// What the algorithm reads.
    fn needs(&self) -> CcaNeeds;

    /// State and first [`SendControl`] of a flow that starts at `now`.
    fn start(&self, flow: &FlowFacts, now: SimTime) -> (Self::State, SendControl);

    /// An ACK or NACK has arrived.
    fn on_ack(&self, state: &mut Self::State, ack: &Ack<'_>, out: &mut CcaOut);

    /// Timer `timer` (an index into [`CcaOut::timers`]) has come due.
    fn on_timer(&self, state: &mut Self::State, timer: usize, now: SimTime, out: &mut CcaOut);

    /// The retransmission timeout has expired.
    fn on_timeout(&self, state: &mut Self::State, now: SimTime, out: &mut CcaOut);

    /// The state measured from `origin`: two flows that behave alike from now on have equal ones, bit for bit. Its
    /// times, byte positions and counters are no longer absolute; [`absolute`](Self::absolute) takes it back. `None`
    /// if there is no such thing; flows of this algorithm are then always simulated.
    fn relative(&self, state: &Self::State, origin: &Origin<'_>) -> Option<Self::State>;

    /// The inverse of [`relative`](Self::relative), at any origin with at least as many hops.
    fn absolute(&self, relative: &Self::State, origin: &Origin<'_>) -> Self::State;

    /// Whether the flow repeats itself: all else in its surroundings has come back to what it was, and its own
    /// relative state has gone from `before` to `after`. Equal states do. A model may forgive a difference in what
    /// had no effect in between and will have none in the next round either, if [`coast`](Self::coast) can bring it
    /// forward.
    fn repeats(&self, before: &Self::State, after: &Self::State) -> bool {
        bytemuck::bytes_of(before) == bytemuck::bytes_of(after)
    }

    /// Brings what [`repeats`](Self::repeats) forgives forward by `rounds` more rounds like that from `before` to
    /// `state`, to what it would have become, bit for bit. All states are relative.
    fn coast(&self, state: &mut Self::State, before: &Self::State, rounds: u64) {
        let _ = (state, before, rounds);
    }
}

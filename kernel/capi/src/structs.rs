//! The structs of the C interface. All but `WhLink` begin with their size and only grow at their end.

use crate::constants::WH_CCA_VALUES;

/// A full-duplex link. This struct never grows.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WhLink {
    /// One end: an index into the nodes.
    pub a: u32,
    /// The other end.
    pub b: u32,
    /// Rate of each direction, bit/s; from 1 to 10^15.
    pub rate_bps: u64,
    /// Propagation delay, at most 10^15 ps.
    pub delay_ps: u64,
    /// Probability that a frame is lost, as a fraction of 2^64.
    pub loss: u64,
}

/// A congestion control and its parameters. `wh_cca_defaults` fills it in, `wh_cca_set` changes a parameter by its
/// name.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WhCca {
    /// `sizeof(WhCca)`. The same for all elements of an array.
    pub struct_size: u32,
    /// A `WhCcaKind`.
    pub kind: u32,
    /// Parameters in the order of `wh_cca_parameter`; the rest is 0.
    pub values: [f64; WH_CCA_VALUES],
}

/// A fabric, models and limits. `wh_config_defaults` fills in all but nodes, links and congestion controls.
/// Arrays are copied by `wh_init`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct WhConfig {
    /// `sizeof(WhConfig)`.
    pub struct_size: u32,
    /// 0 or `WH_MEMORY_IS_ZERO`.
    pub flags: u32,
    /// A `WhProfile`.
    pub profile: u32,
    /// A `WhRouting`.
    pub routing: u32,
    /// Seed of everything random.
    pub seed: u64,
    /// What each node is: a `WhNodeKind`.
    pub nodes: *const u8,
    /// How many there are, at least 1.
    pub node_count: usize,
    /// The links.
    pub links: *const WhLink,
    /// How many there are.
    pub link_count: usize,
    /// Congestion controls: a flow names one by its index.
    pub ccas: *const WhCca,
    /// How many there are, from 1 to 256.
    pub cca_count: usize,
    /// Most flows added and not yet started.
    pub queued_flows: usize,
    /// Most flows started and not yet finished.
    pub active_flows: usize,
    /// Most frames in queues and on wires.
    pub packets: usize,
    /// Completions not yet polled, and as many external frames.
    pub outputs: usize,
    /// Most link changes and external frames not yet due.
    pub inputs: usize,
    /// Memory for acceleration, in words of 8 bytes; 0: there is none. It does without what does not fit.
    pub snapshot_words: usize,
    /// Memory for memo records, in words of 8 bytes; 0: there are none.
    pub memo_words: usize,
    /// Buffer of each switch, bytes.
    pub buffer_bytes: u32,
    /// Whether switches mark frames: 0 or 1.
    pub ecn: u32,
    /// Port rate that the thresholds are for, bit/s; ports of other rates scale them.
    pub ecn_rate_bps: u64,
    /// Up to so many bytes nothing is marked.
    pub ecn_kmin_bytes: u64,
    /// Above so many bytes everything is marked.
    pub ecn_kmax_bytes: u64,
    /// Probability of a mark just below that, from 0 to 1.
    pub ecn_pmax: f64,
    /// Largest payload of a packet, from 1 to 16000 bytes.
    pub mtu: u32,
    /// Time-outs in a row after which a flow is given up.
    pub retries: u32,
    /// Retransmission time-out; 0: none.
    pub timeout_ps: u64,
    /// Pace packets at the rate of the congestion control: 0 or 1.
    pub paced: u32,
    /// Zero.
    pub reserved: u32,
}

/// A usual fabric by its parameters. `wh_plan_defaults` fills it in. What does not concern the kind is ignored.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WhPlan {
    /// `sizeof(WhPlan)`.
    pub struct_size: u32,
    /// A `WhPlanKind`.
    pub kind: u32,
    /// Star: hosts.
    pub hosts: u32,
    /// Dumbbell: hosts on the left, which have the lower numbers.
    pub left: u32,
    /// Dumbbell: hosts on the right.
    pub right: u32,
    /// Fat-tree: ports of a switch, even.
    pub k: u32,
    /// Clos: pods; 1 without cores.
    pub pods: u32,
    /// Clos: leaves of a pod.
    pub leaves: u32,
    /// Clos: hosts of a leaf.
    pub hosts_per_leaf: u32,
    /// Clos: spines of a pod.
    pub spines: u32,
    /// Clos: cores, a multiple of `spines`; 0: two tiers.
    pub cores: u32,
    /// Dumbbell, Clos: parallel links between two switches.
    pub trunk_links: u32,
    /// Rate of hosts' links, bit/s.
    pub host_rate_bps: u64,
    /// Their delay.
    pub host_delay_ps: u64,
    /// Rate of links between switches, bit/s.
    pub trunk_rate_bps: u64,
    /// Their delay.
    pub trunk_delay_ps: u64,
}

/// A message to send. `wh_flow_defaults` fills in all but hosts, bytes and start.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WhFlow {
    /// `sizeof(WhFlow)`.
    pub struct_size: u32,
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Index of its congestion control.
    pub cca: u32,
    /// Priority (802.1p class), below 8.
    pub priority: u32,
    /// UDP source port: what ECMP tells flows of a pair apart by.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Payload bytes, at least 1.
    pub bytes: u64,
    /// When to start; not before now.
    pub start_ps: u64,
    /// Round-trip time the congestion control shall assume; 0: that of the flow's own empty path.
    pub base_rtt_ps: u64,
    /// Bandwidth-delay product it shall assume, bytes; 0: that of the flow's own path.
    pub bdp_bytes: u64,
    /// Comes back in the completion.
    pub token: u64,
}

/// The end of a flow.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhCompletion {
    /// `sizeof(WhCompletion)`, set by the caller.
    pub struct_size: u32,
    /// The number `wh_add_flow` gave it.
    pub flow: u32,
    /// The token it was added with.
    pub token: u64,
    /// When it began.
    pub start_ps: u64,
    /// From then to the acknowledgement of its last byte.
    pub fct_ps: u64,
    /// Its payload bytes.
    pub bytes: u64,
    /// Mean over its acknowledgements of the time since their data packets were built.
    pub mean_rtt_ps: u64,
    /// 1 if it was given up after too many time-outs.
    pub gave_up: u32,
    /// Zero.
    pub reserved: u32,
}

/// A frame that enters or leaves the simulation at a host. Its content stays with the caller: the token names it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhFrame {
    /// `sizeof(WhFrame)`, set by the caller.
    pub struct_size: u32,
    /// The host it enters at.
    pub src: u32,
    /// The host it leaves at.
    pub dst: u32,
    /// Bytes on the wire, all headers included; from 1 to 65535.
    pub bytes: u32,
    /// On the way out: when its last bit arrived. On the way in: ignored.
    pub at_ps: u64,
    /// The caller's name for it.
    pub token: u64,
    /// What tells its flow apart: ECMP hashes it.
    pub src_port: u16,
    /// The same.
    pub dst_port: u16,
    /// Priority (802.1p class), below 8. RoCE traffic usually has 3.
    pub priority: u8,
    /// On the way out: 1 if a switch has set the ECN mark. On the way in: 0 or 1.
    pub marked: u8,
    /// Zero.
    pub reserved: u16,
}

/// How to accelerate. `wh_acceleration_defaults` fills it in.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WhAcceleration {
    /// `sizeof(WhAcceleration)`.
    pub struct_size: u32,
    /// A `WhTier`.
    pub tier: u32,
    /// Tier bounded: how far a steady goodput may vary, parts per million of itself.
    pub theta_ppm: u32,
    /// Zero.
    pub reserved: u32,
    /// Tier bounded: shortest window over which it is measured.
    pub window_ps: u64,
}

/// How to memoise.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct WhMemoisation {
    /// `sizeof(WhMemoisation)`.
    pub struct_size: u32,
    /// A `WhPrecision`.
    pub precision: u32,
    /// Share of hits that are simulated all the same and compared, parts per million.
    pub check_ppm: u32,
    /// Zero.
    pub reserved: u32,
}

/// What the fabric has counted since the start, and what is under way.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhTotals {
    /// `sizeof(WhTotals)`, set by the caller.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Events executed.
    pub events: u64,
    /// Frames put on a wire.
    pub packet_hops: u64,
    /// Frames lost.
    pub drops: u64,
    /// Frames marked with ECN.
    pub ecn_marks: u64,
    /// PAUSE frames that arrived.
    pub pauses: u64,
    /// Flows finished, also those given up.
    pub flows_finished: u64,
    /// Flows given up.
    pub flows_given_up: u64,
    /// Retransmission time-outs that expired.
    pub timeouts: u64,
    /// Flows added and not yet started.
    pub queued_flows: u64,
    /// Flows started and not yet finished.
    pub active_flows: u64,
    /// Frames in queues and on wires.
    pub live_frames: u64,
}

/// What acceleration has done since the start. Times are sums over partitions.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhSkipped {
    /// `sizeof(WhSkipped)`, set by the caller.
    pub struct_size: u32,
    /// Most partitions there were at once.
    pub partitions_max: u32,
    /// Events not executed.
    pub events: u64,
    /// Simulated time skipped exactly.
    pub exact_ps: u64,
    /// Simulated time skipped within a bound.
    pub bounded_ps: u64,
    /// Parked partitions that were woken.
    pub wakes: u64,
    /// Those woken before their time.
    pub skip_backs: u64,
    /// Frames and ports put back beside others of the same instant: their order was a guess. While 0, tier exact is
    /// exact.
    pub contested: u64,
}

/// What memoisation has done since the start.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhMemoised {
    /// `sizeof(WhMemoised)`, set by the caller.
    pub struct_size: u32,
    /// Zero.
    pub reserved: u32,
    /// Look-ups that found a record and used it.
    pub hits: u64,
    /// Look-ups that found none.
    pub misses: u64,
    /// Records found and not used.
    pub refused: u64,
    /// Hits that were simulated all the same.
    pub checked: u64,
    /// Those of them whose simulation had another result: a defect, or records that are not of this fabric's models.
    pub mismatches: u64,
    /// Simulated time skipped by records, summed over partitions.
    pub skipped_ps: u64,
    /// Records in memory.
    pub records: u64,
}

/// An egress port and what it has counted since the start.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct WhPortStats {
    /// `sizeof(WhPortStats)`, set by the caller.
    pub struct_size: u32,
    /// The node it belongs to.
    pub node: u32,
    /// The node at the other end.
    pub neighbour: u32,
    /// The link.
    pub link: u32,
    /// Frames sent.
    pub frames: u64,
    /// Bytes sent.
    pub bytes: u64,
    /// Most bytes ever waiting.
    pub max_queue_bytes: u64,
    /// Frames marked with ECN.
    pub marks: u64,
    /// PAUSE frames that arrived here.
    pub pauses: u64,
    /// Frames lost here.
    pub drops: u64,
    /// Integral of the queue over time, bytes times nanoseconds.
    pub queue_byte_ns: u64,
    /// Time that was skipped, not simulated; the counters include what was sent in it.
    pub skipped_ps: u64,
}

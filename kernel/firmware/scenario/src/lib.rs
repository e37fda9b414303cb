//! What the firmware simulates, and how. A test on a host runs the same code and compares.
//!
//! Two switches with three hosts each, and two trunks between them: 8 links, 16 ports. Four times over there is an
//! incast in each rack, and then an exchange between the racks: 8 flows a phase, 32 in all.
//!
//! * The incasts are marked, so that DCQCN works with its floats.
//! * The exchange has its paths to itself and soon repeats itself, and is skipped.
//! * Racks do the same as each other, and phases the same as those before: that is found in the memo.
#![no_std]

use core::fmt;
use wormhole_kernel::accel::{Acceleration, Detector, Skipped, Tier};
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::memo::{KERNEL_VERSION, Memoisation, Memoised, Precision};
use wormhole_kernel::queue::Heap4;
use wormhole_kernel::telemetry::ExactTelemetry;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{
    BitRate, CapacityError, Error, FabricSize, FlowId, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, Models, NodeId,
    NodeKind, SimTime, Span, Transport,
};
use wormhole_memo_fmt::{FORMAT_VERSION, FormatError, Header, Store, write_header, write_record};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::{Dcqcn, DcqcnConfig, WindowRule};
use wormhole_models::ecn::{Coins, RedMarker, Thresholds};
use wormhole_models::loss::NoLoss;
use wormhole_models::nic::RoundRobin;
use wormhole_models::router::{Route, TableRouter};
use wormhole_models::scheduler::ControlThenRoundRobin;

/// Flows, of which any number may be under way at once.
pub const FLOWS: usize = 32;

/// What the kernel has room for.
pub const LIMITS: Limits =
    Limits { queued_flows: FLOWS, active_flows: FLOWS, packets: 40, outputs: 4, inputs: 1, snapshot_words: 896 };

/// Words of memory the kernel takes: what [`Kernel::words`] says on a target of 32 bits.
pub const KERNEL_WORDS: usize = 6_330;

/// On hosts, tables begin at cache lines.
const ALIGNMENT_WORDS: usize = if cfg!(target_pointer_width = "64") { 256 } else { 0 };

/// Words of memory for memo records.
pub const STORE_WORDS: usize = 880;

const RACK_HOSTS: u32 = 3;
const HOSTS: u32 = 2 * RACK_HOSTS;
const TRUNKS: u32 = 2;
const NODES: [NodeKind; HOSTS as usize + 2] = {
    let mut nodes = [NodeKind::Host; HOSTS as usize + 2];
    nodes[HOSTS as usize] = NodeKind::Switch;
    nodes[HOSTS as usize + 1] = NodeKind::Switch;
    nodes
};

const RATE: BitRate = BitRate::from_gbps(10);
const DELAY: Span = Span::from_ns(500);

/// Hosts to their switches, then the trunks. In flash, not on the stack.
static LINKS: [LinkSpec; (HOSTS + TRUNKS) as usize] = {
    let trunk = LinkSpec { a: NodeId(HOSTS), b: NodeId(HOSTS + 1), rate: RATE, delay: DELAY, loss: 0 };
    let mut links = [trunk; (HOSTS + TRUNKS) as usize];
    let mut host = 0;
    while host < HOSTS {
        links[host as usize] = LinkSpec { a: NodeId(host), b: NodeId(HOSTS + host / RACK_HOSTS), ..trunk };
        host += 1;
    }
    links
};

/// A step, so that chance has no part in marking: what chance has decided is in no memo record.
const MARKING: [Thresholds; 1] = [Thresholds { rate: RATE, kmin: 3_000, kmax: 3_000, pmax: 1.0 }];

/// Flows of a phase: source, destination, bytes, microseconds after the phase begins.
const PHASE: [(u32, u32, u64, u64); FLOWS / PHASES as usize] = [
    (0, 2, 20_000, 0),
    (1, 2, 15_000, 0),
    (3, 5, 20_000, 0),
    (4, 5, 15_000, 0),
    (0, 3, 500_000, 500),
    (3, 0, 500_000, 500),
    (1, 4, 500_000, 500),
    (4, 1, 500_000, 500),
];
const PHASES: u64 = 4;
const PHASE_TIME: Span = Span::from_us(1_000);

/// Hosts have one port. A switch has those to its hosts first, then the trunks.
const ROUTES: [Route; 48] = {
    let mut rows = [Route { node: NodeId(0), dst: NodeId(0), port: 0 }; 48];
    let (mut count, mut node) = (0, 0);
    while node < HOSTS + 2 {
        let mut dst = 0;
        while dst < HOSTS {
            let (first, ways) = match node {
                0..HOSTS => (0, (node != dst) as u32),
                _ if node - HOSTS == dst / RACK_HOSTS => (dst % RACK_HOSTS, 1),
                _ => (RACK_HOSTS, TRUNKS),
            };
            let mut way = 0;
            while way < ways {
                rows[count] = Route { node: NodeId(node), dst: NodeId(dst), port: first + way };
                count += 1;
                way += 1;
            }
            dst += 1;
        }
        node += 1;
    }
    assert!(count == rows.len());
    rows
};

/// One model of each kind: nothing is compiled that is not used.
struct Small;

impl Models for Small {
    type Timing = PsTiming;
    type Cca = Dcqcn;
    type Telemetry = ExactTelemetry;
    type Buffers = DynamicThreshold;
    type Scheduler = ControlThenRoundRobin;
    type Marker = RedMarker<'static>;
    type Loss = NoLoss;
    type Router = TableRouter<'static>;
    type Nic = RoundRobin;
    type Queue<'a> = Heap4<'a>;
}

fn models(ccas: &[Dcqcn]) -> ModelSet<'_, Small> {
    ModelSet {
        ccas,
        timing: PsTiming,
        telemetry: ExactTelemetry,
        buffers: DynamicThreshold { bytes: 1 << 20, wraps: false },
        scheduler: ControlThenRoundRobin,
        marker: RedMarker { thresholds: &MARKING, enabled: true, coins: Coins::PerPort { seed: 1 } },
        loss: NoLoss,
        router: TableRouter::new(&ROUTES).expect("the rows are sorted"),
        nic: RoundRobin,
        transport: Transport::default(),
    }
}

/// All flows, in the order in which they start.
fn flows() -> impl Iterator<Item = FlowSpec> {
    let phases = (0..PHASES).flat_map(|phase| PHASE.iter().map(move |flow| (phase, flow)));
    phases.map(|(phase, &(src, dst, bytes, us))| {
        let start = SimTime::ZERO + Span(phase * PHASE_TIME.0) + Span::from_us(us);
        // The ports of a queue pair tell which trunk it takes.
        let src_port = 10_000 + (src % RACK_HOSTS) as u16;
        FlowSpec { src_port, ..FlowSpec::new(NodeId(src), NodeId(dst), bytes, start) }
    })
}

/// What keeps a run from its end.
#[derive(Debug)]
pub enum Failure {
    /// The kernel refuses something, or a limit is too low.
    Kernel(Error),
    /// The simulation stops before its end.
    Stopped(Step),
    /// The memo does not fit the buffer.
    Memo(FormatError),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Kernel(error)
    }
}

impl From<CapacityError> for Failure {
    fn from(error: CapacityError) -> Failure {
        Failure::Kernel(error.into())
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Failure {
        Failure::Memo(error)
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Kernel(error) => error.fmt(f),
            Failure::Stopped(_) => f.write_str("the simulation stops before its end"),
            Failure::Memo(error) => error.fmt(f),
        }
    }
}

/// A flow that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Done {
    /// Flows are numbered as they are added.
    pub flow: FlowId,
    /// From its start to its last acknowledgement.
    pub fct: Span,
}

/// All memory of a run.
pub struct Memory {
    kernel: [u64; KERNEL_WORDS + ALIGNMENT_WORDS],
    store: [u64; STORE_WORDS],
    done: heapless::Vec<Done, FLOWS>,
}

impl Memory {
    /// As a static has it.
    pub const EMPTY: Memory =
        Memory { kernel: [0; KERNEL_WORDS + ALIGNMENT_WORDS], store: [0; STORE_WORDS], done: heapless::Vec::new() };
}

/// What came of a run.
pub struct Report<'m> {
    /// The flows, in the order in which they ended.
    pub done: &'m [Done],
    /// The bytes of a memo file with all that was learnt.
    pub memo: &'m [u8],
    /// What the fabric has counted.
    pub totals: Totals,
    /// What acceleration has done.
    pub skipped: Skipped,
    /// What memoisation has done.
    pub memoised: Memoised,
    /// Words of memory that records take.
    pub store_words: usize,
}

/// Runs the scenario within `limits`, which are no wider than [`LIMITS`].
///
/// # Errors
/// [`Failure`]: a limit is too low.
pub fn run<'m>(tier: Tier, limits: &Limits, memory: &'m mut Memory) -> Result<Report<'m>, Failure> {
    let Memory { kernel: words, store, done } = memory;
    words.fill(0);
    store.fill(0);
    done.clear();
    let mut store = Store::new(store);
    let (header, totals, skipped, memoised) = simulate(tier, limits, words, &mut store, done)?;
    // The kernel is gone, and has left its memory.
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(words);
    let mut length = write_header(&header, bytes)?;
    for (key, value) in store.records() {
        length += write_record(key, value, &mut bytes[length..])?;
    }
    Ok(Report { done, memo: &bytes[..length], totals, skipped, memoised, store_words: store.used_words() })
}

fn simulate(
    tier: Tier,
    limits: &Limits,
    words: &mut [u64],
    store: &mut Store<'_>,
    done: &mut heapless::Vec<Done, FLOWS>,
) -> Result<(Header, Totals, Skipped, Memoised), Failure> {
    let ccas = [Dcqcn::new(DcqcnConfig { window: WindowRule::Bdp, ..DcqcnConfig::default() })];
    let mut kernel = Kernel::new(words, &NODES, &LINKS, models(&ccas), limits, ());
    // Stays where it is: it is large for a small stack.
    let kernel = match &mut kernel {
        Ok(kernel) => kernel,
        Err(error) => return Err((*error).into()),
    };
    kernel.accelerate(Acceleration { tier, detector: Detector::CYCLE })?;
    kernel.memoise(store, Memoisation { precision: Precision::Exact, check: 0 })?;
    for flow in flows() {
        kernel.add_flow(&flow)?;
    }
    loop {
        let step = kernel.run_until(SimTime::MAX)?;
        // No more than there are flows.
        let ended = core::iter::from_fn(|| kernel.poll_completion());
        done.extend(ended.map(|done| Done { flow: done.flow, fct: done.fct }));
        match step {
            Step::OutputFull => {}
            Step::Idle => break,
            other => return Err(Failure::Stopped(other)),
        }
    }
    let models = kernel.memo_models();
    let header = Header { format_version: FORMAT_VERSION, kernel_version: KERNEL_VERSION, models };
    Ok((header, kernel.totals(), kernel.skipped(), kernel.memoised()))
}

/// Words of memory the kernel takes on this target.
pub fn kernel_words() -> usize {
    words_for(FabricSize::of(&NODES, &LINKS), &LIMITS)
}

/// Words of memory that a kernel of these models takes for another fabric and other limits.
pub fn words_for(size: FabricSize, limits: &Limits) -> usize {
    let ccas = [Dcqcn::new(DcqcnConfig::default())];
    Kernel::<Small>::words(size, limits, &models(&ccas))
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for done in self.done {
            writeln!(f, "flow {}: {} ps", done.flow.0, done.fct.0)?;
        }
        let Report { totals, skipped, memoised, .. } = self;
        writeln!(f, "events: {} executed, {} skipped", totals.events, skipped.events)?;
        writeln!(f, "packet-hops: {}, marks: {}", totals.packet_hops, totals.ecn_marks)?;
        let Memoised { hits, misses, followers, unkept, .. } = memoised;
        writeln!(f, "memo: {hits} hits, {misses} misses, {followers} followers, {unkept} unkept")?;
        writeln!(f, "memo: {} of {STORE_WORDS} words", self.store_words)
    }
}

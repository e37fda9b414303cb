//! What the firmware simulates, and how. The test on a host runs the same code and compares.
//!
//! Two switches with three hosts each, and two trunks between them: 8 links, 16 ports. Four times over there is an
//! incast in each rack, and then an exchange between the racks: 8 flows a phase, 32 in all. The incasts are marked and
//! make DCQCN work with floats. The exchange has its path to itself and soon repeats itself: that is skipped. Both racks
//! do the same, and all phases do the same: that is found in the memo.
#![no_std]

use core::fmt;
use wormhole_kernel::accel::{Acceleration, Detector, Skipped, Tier};
use wormhole_kernel::cca::ExactTelemetry;
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::memo::{KERNEL_VERSION, Memoisation, Memoised, Precision};
use wormhole_kernel::queue::Heap4;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{
    BitRate, CapacityError, Completion, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, Models, NodeId,
    NodeKind, SimTime, Span, Transport,
};
use wormhole_memo_fmt::{FORMAT_VERSION, FormatError, Header, Store, write_header, write_record};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::{Dcqcn, DcqcnConfig, WindowRule};
use wormhole_models::ecn::{Coins, RedMarker, Thresholds};
use wormhole_models::loss::BernoulliLoss;
use wormhole_models::nic::RoundRobin;
use wormhole_models::router::{Route, TableRouter};
use wormhole_models::scheduler::ControlThenRoundRobin;

/// Most flows at once, and in all.
pub const FLOWS: usize = 32;

/// What the kernel has room for.
pub const LIMITS: Limits = Limits {
    queued_flows: FLOWS,
    active_flows: FLOWS,
    packets: 96,
    outputs: 8,
    inputs: 1,
    snapshot_words: 1_536,
};

/// Words of memory the kernel takes: [`Kernel::words`] is the same number, found at run time.
pub const KERNEL_WORDS: usize = 9_301;

/// Words of memory the memo takes.
pub const STORE_WORDS: usize = 2_400;

const RACK_HOSTS: u32 = 3;
const HOSTS: u32 = 2 * RACK_HOSTS;
const SWITCHES: [NodeId; 2] = [NodeId(HOSTS), NodeId(HOSTS + 1)];
const NODES: [NodeKind; 8] = {
    let mut nodes = [NodeKind::Host; 8];
    nodes[HOSTS as usize] = NodeKind::Switch;
    nodes[HOSTS as usize + 1] = NodeKind::Switch;
    nodes
};
const TRUNKS: u32 = 2;
const LINKS: usize = (HOSTS + TRUNKS) as usize;

const RATE: BitRate = BitRate::from_gbps(10);

/// A step, so that marking takes no chance: a memo record cannot hold any.
const MARKING: [Thresholds; 1] = [Thresholds { rate: RATE, kmin: 3_000, kmax: 3_000, pmax: 1.0 }];

const PHASES: u64 = 4;

/// The models: one of each kind, so that nothing is compiled that is not used.
pub struct Small;

impl Models for Small {
    type Timing = PsTiming;
    type Cca = Dcqcn;
    type Telemetry = ExactTelemetry;
    type Buffers = DynamicThreshold;
    type Scheduler = ControlThenRoundRobin;
    type Marker = RedMarker<'static>;
    type Loss = BernoulliLoss;
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
        loss: BernoulliLoss::Counter { seed: 1 },
        router: TableRouter::new(&ROUTES).expect("sorted rows"),
        nic: RoundRobin,
        transport: Transport::default(),
    }
}

fn links() -> [LinkSpec; LINKS] {
    core::array::from_fn(|link| {
        let host = link as u32;
        let (a, b) = match host {
            0..HOSTS => (NodeId(host), SWITCHES[(host / RACK_HOSTS) as usize]),
            _ => (SWITCHES[0], SWITCHES[1]),
        };
        LinkSpec { a, b, rate: RATE, delay: Span::from_ns(500), loss: 0 }
    })
}

const ROUTES: [Route; 48] = {
    let mut rows = [Route { node: NodeId(0), dst: NodeId(0), port: 0 }; 48];
    let (mut count, mut node) = (0, 0);
    while node < HOSTS + 2 {
        let mut dst = 0;
        while dst < HOSTS {
            let (first, ways) = match node {
                _ if node == dst => (0, 0),
                0..HOSTS => (0, 1),
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
    // 48 = 30 + 6 + 12 - 2 ... checked below
    rows
};

/// All flows, in the order in which they start.
fn flows() -> heapless::Vec<FlowSpec, FLOWS> {
    let mut flows = heapless::Vec::new();
    for phase in 0..PHASES {
        let incast = SimTime::ZERO + Span::from_us(1_000 * phase);
        let exchange = incast + Span::from_us(500);
        let steps = [
            (0, 2, 60_000, incast),
            (1, 2, 45_000, incast),
            (3, 5, 60_000, incast),
            (4, 5, 45_000, incast),
            (0, 3, 500_000, exchange),
            (3, 0, 500_000, exchange),
            (1, 4, 500_000, exchange),
            (4, 1, 500_000, exchange),
        ];
        for (src, dst, bytes, start) in steps {
            let token = flows.len() as u64;
            // Two ways lead to the other rack: the ports of a queue pair tell which it takes.
            let src_port = 10_000 + (src % RACK_HOSTS) as u16;
            let flow = FlowSpec { token, src_port, ..FlowSpec::new(NodeId(src), NodeId(dst), bytes, start) };
            flows.push(flow).expect("FLOWS flows");
        }
    }
    flows
}

/// What keeps a run from its end.
#[derive(Debug)]
pub enum Failure {
    /// The kernel refused the fabric or a flow.
    Refused(wormhole_kernel::Error),
    /// A limit was too low.
    Capacity(CapacityError),
    /// The simulation stopped for this reason.
    Stopped(Step),
    /// The memo could not be written.
    Memo(FormatError),
}

impl From<wormhole_kernel::Error> for Failure {
    fn from(error: wormhole_kernel::Error) -> Failure {
        Failure::Refused(error)
    }
}

impl From<CapacityError> for Failure {
    fn from(error: CapacityError) -> Failure {
        Failure::Capacity(error)
    }
}

impl From<FormatError> for Failure {
    fn from(error: FormatError) -> Failure {
        Failure::Memo(error)
    }
}

/// All memory of a run.
pub struct Memory {
    kernel: [u64; KERNEL_WORDS],
    store: [u64; STORE_WORDS],
}

impl Memory {
    /// As a static has it.
    pub const ZERO: Memory = Memory { kernel: [0; KERNEL_WORDS], store: [0; STORE_WORDS] };
}

/// What came of a run.
pub struct Report {
    pub done: heapless::Vec<Completion, FLOWS>,
    pub totals: Totals,
    pub skipped: Skipped,
    pub memoised: Memoised,
    pub store_words: usize,
    pub words: usize,
}

/// Runs the scenario; gives what came of it, and the bytes of a memo file.
pub fn run(tier: Tier, memory: &mut Memory) -> Result<(Report, &[u8]), Failure> {
    memory.kernel.fill(0);
    memory.store.fill(0);
    let ccas = [Dcqcn::new(DcqcnConfig { window: WindowRule::Bdp, ..DcqcnConfig::default() })];
    let models = models(&ccas);
    let links = links();
    let mut store = Store::new(&mut memory.store);
    let words = Kernel::<Small>::words(FabricSize::of(&NODES, &links), &LIMITS, &models);
    let mut kernel = Kernel::new(&mut memory.kernel, &NODES, &links, models, &LIMITS, ())?;
    let header =
        Header { format_version: FORMAT_VERSION, kernel_version: KERNEL_VERSION, models: kernel.memo_models() };
    kernel.accelerate(Acceleration { tier, detector: Detector::CYCLE })?;
    kernel.memoise(&mut store, Memoisation { precision: Precision::Exact, check: 0 })?;
    for flow in &flows() {
        kernel.add_flow(flow)?;
    }
    let mut done = heapless::Vec::new();
    loop {
        let step = kernel.run_until(SimTime::MAX)?;
        while let Some(completion) = kernel.poll_completion() {
            done.push(completion).expect("no more than flows");
        }
        match step {
            Step::OutputFull => {}
            Step::Idle => break,
            other => return Err(Failure::Stopped(other)),
        }
    }
    let (totals, skipped, memoised) = (kernel.totals(), kernel.skipped(), kernel.memoised());
    drop(kernel);
    let report = Report { done, totals, skipped, memoised, store_words: store.used_words(), words };
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut memory.kernel);
    let mut length = write_header(&header, bytes)?;
    for (key, value) in store.records() {
        length += write_record(key, value, &mut bytes[length..])?;
    }
    Ok((report, &bytes[..length]))
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for done in &self.done {
            writeln!(f, "flow {} fct {} ps", done.token, done.fct.0)?;
        }
        let Report { totals, skipped, memoised, .. } = self;
        writeln!(f, "events {}, skipped {}", totals.events, skipped.events)?;
        writeln!(f, "packet-hops {}, marks {}", totals.packet_hops, totals.ecn_marks)?;
        writeln!(f, "hits {}, misses {}, followers {}, unkept {}", memoised.hits, memoised.misses, memoised.followers, memoised.unkept)?;
        write!(f, "store {} words {}", self.store_words, self.words)
    }
}

#[test]
fn try_it() {
    extern crate std;
    for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
        let mut memory = std::boxed::Box::new(Memory::ZERO);
        match run(tier, &mut memory) {
            Ok((report, bytes)) => std::println!("{tier:?}\n{report}\n{} bytes", bytes.len()),
            Err(e) => std::println!("{tier:?} {e:?}"),
        }
    }
}
#[test]
fn sizes() {
    extern crate std;
    let ccas = [Dcqcn::new(DcqcnConfig { window: WindowRule::Bdp, ..DcqcnConfig::default() })];
    let models = models(&ccas);
    let w = |nodes, links, l: Limits| 8 * Kernel::<Small>::words(FabricSize { nodes, links }, &l, &models);
    let base = w(8, 8, LIMITS);
    let l = LIMITS;
    std::println!("all {base}");
    std::println!("per packet {}", (w(8, 8, Limits { packets: 1096, ..l }) - base) / 1000);
    std::println!("per queued {}", (w(8, 8, Limits { queued_flows: 1032, ..l }) - base) / 1000);
    std::println!("per active {}", (w(8, 8, Limits { active_flows: 1032, ..l }) - base) / 1000);
    std::println!("per active, no accel {}", (w(8, 8, Limits { snapshot_words: 1_536, active_flows: 1032, ..l }) - w(8, 8, Limits { snapshot_words: 0, ..l })) / 1000);
    std::println!("per link {}", (w(8, 1008, l) - base) / 1000);
    std::println!("per node {}", (w(1008, 8, l) - base) / 1000);
    std::println!("per output {}", (w(8, 8, Limits { outputs: 1008, ..l }) - base) / 1000);
    std::println!("per input {}", (w(8, 8, Limits { inputs: 1001, ..l }) - base) / 1000);
    std::println!("snap0 {}", w(8, 8, Limits { snapshot_words: 1_536, ..l }));
    std::println!("kernel struct {}", size_of::<Kernel<'_, Small>>());
}
#[test]
fn records() {
    extern crate std;
    let mut memory = std::boxed::Box::new(Memory::ZERO);
    let (_, bytes) = run(Tier::Exact, &mut memory).ok().unwrap();
    for r in wormhole_memo_fmt::Reader::new(bytes).unwrap() { let r = r.unwrap(); std::println!("key {} value {} bytes {}", r.key().count_words(), r.value().count_words(), r.len()); }
}

//! A scenario: everything a run depends on, from input files or made by a program.

use crate::input::config::{CcMode, Config};
use crate::input::diagnostics::Diagnostics;
use crate::input::flows::FlowRow;
use crate::input::link_events::{LinkEvent, links_between};
use crate::input::topology::Topology;
use crate::ns3_setup::{Ns3Setup, PairFacts};
use crate::plugin::Plugins;
use crate::workload::engine::PlacedJob;
use std::collections::BTreeSet;
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::cca::CongestionControl;
use wormhole_kernel::transport::DATA_HEADER_BYTES;
use wormhole_kernel::units::PS_PER_S;
use wormhole_kernel::{BitRate, FlowSpec, LinkSpec, NodeId, NodeKind, SimTime, Span, Transport};
use wormhole_models::cca::{
    AnyCca, Dcqcn, DcqcnConfig, Dctcp, DctcpConfig, FixedWindow, FixedWindowConfig, Hpcc, HpccConfig, Swift,
    SwiftConfig, Timely, TimelyConfig, WindowRule,
};
use wormhole_models::ecn::Thresholds;
use wormhole_models::loss::loss_fraction;
use wormhole_models::profile::{DCTCP_THRESHOLDS, THRESHOLDS};
use wormhole_models::telemetry::{Ns3Telemetry, TIME_MODULUS_NS};

/// Frames in the fabric at once, unless the user says otherwise.
pub const DEFAULT_MAX_PACKETS: usize = 4 << 20;

/// Flows of jobs at once, unless the user says otherwise.
pub const DEFAULT_MAX_FLOWS: usize = 1 << 18;

/// Which model family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Profile {
    /// The reference simulator, to the nanosecond.
    Ns3,
    /// Picoseconds, no quirks, lost packets are sent again after a time-out.
    Ps,
}

/// Which router. Profile `ns3` knows only ECMP.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Routing {
    /// A flow keeps to one of the shortest paths, by a hash.
    Ecmp,
    /// It keeps to the one that is its destination's (routing modulo k): no two destinations of a switch share one.
    DModK,
    /// Every packet takes its own.
    Spray,
}

/// Which congestion control, when the user names one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
#[allow(missing_docs)] // Named as in the literature.
pub enum CcaName {
    Dcqcn,
    Hpcc,
    Timely,
    Dctcp,
    Swift,
    /// None: a fixed window at line rate.
    Fixed,
}

/// Choices that are not in input files.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Which model family.
    pub profile: Profile,
    /// Seed of everything random in profile `ps`, and of its ECMP hashes.
    pub seed: u64,
    /// Overrides `CC_MODE`, and the congestion control of a plugin.
    pub cca: Option<CcaName>,
    /// Models from shared objects.
    pub plugins: Plugins,
    /// Which router.
    pub routing: Routing,
    /// Most frames in the fabric at once.
    pub max_packets: usize,
    /// Most flows of jobs at once.
    pub max_flows: usize,
    /// What may be skipped, and how steady states are recognised.
    pub acceleration: Acceleration,
    /// Granularity of HPCC's rate registers in bit/s, profile `ps` only; 0: rates are as fine as they come.
    pub rate_quantum: u64,
    /// Threads that may be used, if the run may be made by several kernels. What comes of it does not depend on their
    /// number.
    pub threads: Option<usize>,
}

impl Options {
    /// Profile `ps` and nothing else chosen, every event executed.
    pub const PLAIN: Options = Options {
        profile: Profile::Ps,
        seed: 1,
        cca: None,
        plugins: Plugins::NONE,
        routing: Routing::Ecmp,
        max_packets: DEFAULT_MAX_PACKETS,
        max_flows: DEFAULT_MAX_FLOWS,
        acceleration: Acceleration { tier: Tier::Off, detector: Detector::CYCLE },
        rate_quantum: 0,
        threads: None,
    };
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Scenario {
    /// Which model family.
    pub profile: Profile,
    /// Seed of everything random.
    pub seed: u64,
    /// Which router.
    pub routing: Routing,
    /// What the nodes are.
    pub nodes: Vec<NodeKind>,
    /// The links.
    pub links: Vec<LinkSpec>,
    /// The flows of the list, in order of start. Tokens are 0, 1, 2 and so on: a flow's is its index here.
    pub flows: Vec<FlowSpec>,
    /// The jobs, whose flows follow from each other.
    pub jobs: Vec<PlacedJob>,
    /// What flows get besides what their rows or jobs say.
    pub maker: FlowMaker,
    /// If there is a seed, every flow of a job starts 0 to 2 ns late, by chance from it.
    pub perturbation: Option<u64>,
    /// Link changes, by time.
    pub link_events: Vec<LinkEvent>,
    /// The congestion control of all flows.
    pub cca: AnyCca,
    /// Models from shared objects; of switches they take the place of the profile's.
    pub plugins: Plugins,
    /// The transport.
    pub transport: Transport,
    /// ECN thresholds by port rate.
    pub thresholds: Vec<Thresholds>,
    /// Whether switches mark at all.
    pub ecn: bool,
    /// Buffer of each switch, in bytes.
    pub buffer_bytes: u32,
    /// Profile `ns3`: scale of telemetry units.
    pub int_multiplier: u64,
    /// Nothing happens at or after this time.
    pub stop: SimTime,
    /// Most frames in the fabric at once.
    pub max_packets: usize,
    /// Most flows of jobs at once.
    pub max_flows: usize,
    /// What may be skipped, and how steady states are recognised.
    pub acceleration: Acceleration,
    /// Threads that may be used, if the run may be made by several kernels. What comes of it does not depend on their
    /// number.
    pub threads: Option<usize>,
}

/// A tier's name on the command line and in outputs.
pub fn tier_name(tier: Tier) -> &'static str {
    match tier {
        Tier::Off => "off",
        Tier::Exact => "exact",
        Tier::Bounded => "bounded",
    }
}

impl Profile {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Profile::Ns3 => "ns3",
            Profile::Ps => "ps",
        }
    }
}

impl Scenario {
    /// When the first flow or job starts.
    pub fn start(&self) -> SimTime {
        let starts = self.flows.iter().map(|flow| flow.start).chain(self.jobs.iter().map(|job| job.start));
        starts.min().unwrap_or(SimTime::ZERO)
    }

    /// Puts a scenario together. What is odd about the configuration goes to `found`.
    pub fn new(
        topology: Topology,
        rows: &[FlowRow],
        config: &Config,
        link_events: Vec<LinkEvent>,
        options: &Options,
        found: &mut Diagnostics,
    ) -> Scenario {
        let Topology { nodes, mut links, .. } = topology;
        apply_error_rate(config, options.profile, &mut links, found);
        let mode = mode(config, options);
        let mtu = config.packet_payload_size.unwrap_or(1_000);
        let mut maker = FlowMaker::new(&nodes, &links, mtu, options.profile, config.global_t);
        let thresholds = thresholds(mode, config, &nodes, &links, found);
        let flows = rows.iter().enumerate().map(|(i, row)| maker.complete(flow(row, i, options.profile))).collect();
        let mut events = link_events;
        events.extend(configured_link_down(config, &links, found));
        events.sort_by_key(|e| e.at);
        let foreign = options.plugins.cca().filter(|_| options.cca.is_none());
        Scenario {
            profile: options.profile,
            seed: options.seed,
            routing: options.routing,
            flows,
            jobs: Vec::new(),
            maker,
            perturbation: None,
            link_events: events,
            cca: foreign.map_or_else(|| cca(mode, config, options), AnyCca::ForeignCca),
            plugins: options.plugins,
            transport: transport(config, mtu, options.profile),
            thresholds,
            ecn: config.enable_qcn.unwrap_or(true),
            buffer_bytes: buffer_bytes(config, found),
            int_multiplier: config.int_multi.unwrap_or(1),
            stop: SimTime(config.simulator_stop_time.map_or(u64::MAX, |t| t.saturating_sub(1))),
            max_packets: options.max_packets,
            max_flows: options.max_flows,
            acceleration: options.acceleration,
            threads: options.threads,
            nodes,
            links,
        }
    }

    /// Name of the congestion control.
    pub fn cca_name(&self) -> &'static str {
        self.cca.id().name
    }
}

fn mode(config: &Config, options: &Options) -> CcMode {
    match options.cca {
        None => config.cc_mode.unwrap_or(CcMode::Dcqcn),
        Some(CcaName::Dcqcn) => CcMode::Dcqcn,
        Some(CcaName::Hpcc) => CcMode::Hpcc,
        Some(CcaName::Timely) => CcMode::Timely,
        Some(CcaName::Dctcp) => CcMode::Dctcp,
        Some(CcaName::Swift) => CcMode::Swift,
        Some(CcaName::Fixed) => CcMode::Fixed,
    }
}

fn apply_error_rate(config: &Config, profile: Profile, links: &mut [LinkSpec], found: &mut Diagnostics) {
    let Some(rate) = config.error_rate_per_link.filter(|r| *r > 0.0) else { return };
    if profile == Profile::Ns3 {
        found.warning(0, "ERROR_RATE_PER_LINK", "ns-3 has one random sequence for all links here, this has one a link");
    }
    links.iter_mut().filter(|l| l.loss == 0).for_each(|l| l.loss = loss_fraction(rate));
}

fn configured_link_down(config: &Config, links: &[LinkSpec], found: &mut Diagnostics) -> Vec<LinkEvent> {
    let Some(down) = config.link_down else { return Vec::new() };
    let joins = links_between(Some(down.a), Some(down.b), links);
    if joins.is_empty() {
        found.error(0, "LINK_DOWN", format!("no link joins nodes {} and {}", down.a, down.b));
    }
    // ns-3 counts from 2 s on, where its flows begin.
    let at = SimTime(2 * PS_PER_S) + Span(down.after);
    joins.into_iter().map(|link| LinkEvent { at, link, up: false }).collect()
}

fn buffer_bytes(config: &Config, found: &mut Diagnostics) -> u32 {
    let mebibytes = config.buffer_size.unwrap_or(32);
    mebibytes.checked_mul(1 << 20).and_then(|bytes| u32::try_from(bytes).ok()).unwrap_or_else(|| {
        found.error(0, "BUFFER_SIZE", format!("{mebibytes} MiB: a switch has less than 4096 MiB"));
        0
    })
}

/// ECN thresholds as configured, else the reference's for 100 Gb/s. Rates that are not listed are scaled.
fn thresholds(
    mode: CcMode,
    config: &Config,
    nodes: &[NodeKind],
    links: &[LinkSpec],
    found: &mut Diagnostics,
) -> Vec<Thresholds> {
    if config.kmin.is_empty() && config.kmax.is_empty() && config.pmax.is_empty() {
        return match mode {
            CcMode::Dctcp => DCTCP_THRESHOLDS.to_vec(),
            _ => THRESHOLDS.to_vec(),
        };
    }
    let complete = config.kmin.keys().filter(|r| config.kmax.contains_key(r) && config.pmax.contains_key(r));
    let table: Vec<Thresholds> = complete
        .map(|r| Thresholds {
            rate: BitRate(*r),
            kmin: config.kmin[r] * 1_000,
            kmax: config.kmax[r] * 1_000,
            pmax: config.pmax[r],
        })
        .collect();
    if table.is_empty() {
        found.error(0, "KMIN_MAP", "no rate is in all three of KMIN_MAP, KMAX_MAP and PMAX_MAP");
        return table;
    }
    let at_switch = |l: &&LinkSpec| [l.a, l.b].iter().any(|n| nodes[n.index()] != NodeKind::Host);
    let rates: BTreeSet<u64> = links.iter().filter(at_switch).map(|l| l.rate.0).collect();
    let missing: Vec<String> =
        rates.iter().filter(|r| table.iter().all(|t| t.rate.0 != **r)).map(|r| r.to_string()).collect();
    if !missing.is_empty() {
        let message = "no ECN thresholds for these port rates (bit/s); those of the nearest lower rate are scaled";
        found.warning(0, &missing.join(" "), message);
    }
    table
}

fn window_rule(config: &Config, default: WindowRule) -> WindowRule {
    match (config.has_win, config.var_win) {
        (None, None) => default,
        (Some(false), _) => WindowRule::Unlimited,
        (_, Some(true)) => WindowRule::BdpAtRate,
        (_, Some(false)) => WindowRule::Bdp,
        (Some(true), None) => WindowRule::Bdp,
    }
}

fn cca(mode: CcMode, config: &Config, options: &Options) -> AnyCca {
    let rate = |given: Option<u64>, default: BitRate| given.map_or(default, BitRate);
    match mode {
        CcMode::Hpcc => {
            let d = HpccConfig::default();
            let header = Ns3Telemetry { multiplier: config.int_multi.unwrap_or(1) };
            let ns3 = options.profile == Profile::Ns3;
            AnyCca::Hpcc(Hpcc::new(HpccConfig {
                target: config.u_target.unwrap_or(d.target),
                max_stage: config.mi_thresh.unwrap_or(d.max_stage),
                additive: rate(config.rate_ai, d.additive),
                min_rate: rate(config.min_rate, d.min_rate),
                fast_react: config.fast_react.unwrap_or(d.fast_react),
                multi_rate: config.multi_rate.unwrap_or(d.multi_rate),
                sample_feedback: config.sample_feedback.unwrap_or(d.sample_feedback),
                window: window_rule(config, d.window),
                time_modulus: if ns3 { Span::from_ns(TIME_MODULUS_NS) } else { Span::ZERO },
                byte_modulus: if ns3 { header.byte_modulus() } else { 0 },
                rate_quantum: options.rate_quantum,
            }))
        }
        CcMode::Dcqcn => {
            let d = DcqcnConfig::default();
            let interval = |given: Option<u64>, default: Span| given.map_or(default, Span::from_us);
            AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig {
                gain: config.ewma_gain.unwrap_or(d.gain),
                alpha_interval: interval(config.alpha_resume_interval, d.alpha_interval),
                decrease_interval: interval(config.rate_decrease_interval, d.decrease_interval),
                increase_interval: interval(config.rp_timer, d.increase_interval),
                fast_recovery: config.fast_recovery_times.unwrap_or(d.fast_recovery),
                additive: rate(config.rate_ai, d.additive),
                hyper: rate(config.rate_hai, d.hyper),
                min_rate: rate(config.min_rate, d.min_rate),
                clamp_target: config.clamp_target_rate.unwrap_or(d.clamp_target),
                window: window_rule(config, d.window),
            }))
        }
        CcMode::Timely => {
            let d = TimelyConfig::default();
            AnyCca::Timely(Timely::new(TimelyConfig {
                additive: rate(config.rate_ai, d.additive),
                hyper: rate(config.rate_hai, d.hyper),
                min_rate: rate(config.min_rate, d.min_rate),
                window: window_rule(config, d.window),
                ..d
            }))
        }
        CcMode::Dctcp => {
            let d = DctcpConfig::default();
            AnyCca::Dctcp(Dctcp::new(DctcpConfig {
                gain: config.ewma_gain.unwrap_or(d.gain),
                additive: rate(config.dctcp_rate_ai, d.additive),
                min_rate: rate(config.min_rate, d.min_rate),
                window: window_rule(config, d.window),
            }))
        }
        CcMode::Swift => AnyCca::Swift(Swift::new(SwiftConfig::default())),
        CcMode::Fixed => {
            let rule = window_rule(config, WindowRule::Bdp);
            AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(rule)))
        }
    }
}

fn transport(config: &Config, mtu: u32, profile: Profile) -> Transport {
    let d = Transport::default();
    let ns3 = profile == Profile::Ns3;
    Transport {
        mtu,
        ack_interval: config.l2_ack_interval.unwrap_or(d.ack_interval),
        chunk: config.l2_chunk_size.unwrap_or(d.chunk),
        back_to_chunk: config.l2_back_to_zero.unwrap_or(d.back_to_chunk),
        ack_control_priority: config.ack_high_prio.unwrap_or(d.ack_control_priority),
        paced: config.rate_bound.unwrap_or(d.paced),
        timeout: if ns3 { None } else { d.timeout },
        ns3_quirks: ns3,
        ..d
    }
}

/// Makes the flows of a scenario: gives them what does not follow from the kernel's own view of a path.
#[derive(Clone, Debug)]
pub struct FlowMaker {
    ns3: bool,
    mtu: u32,
    setup: Ns3Setup,
    global: Option<PairFacts>,
}

impl FlowMaker {
    /// For a fabric. `global` is `GLOBAL_T`: whether all flows assume the same round trip; the default is the
    /// profile's. `mtu` is in payload bytes.
    pub fn new(nodes: &[NodeKind], links: &[LinkSpec], mtu: u32, profile: Profile, global: Option<bool>) -> FlowMaker {
        let ns3 = profile == Profile::Ns3;
        let mut setup = Ns3Setup::new(nodes, links, mtu);
        let global = global.unwrap_or(ns3).then(|| setup.maxima());
        FlowMaker { ns3, mtu, setup, global }
    }

    /// The flow with the round trip and bandwidth-delay product its congestion control assumes: in profile `ns3` those
    /// of the pair or the greatest of all pairs (`GLOBAL_T`), else those of its own path unless `GLOBAL_T 1` is given.
    pub fn complete(&mut self, flow: FlowSpec) -> FlowSpec {
        let own = if self.ns3 { self.setup.pair(flow.src.0, flow.dst.0) } else { None };
        let facts = self.global.or(own);
        FlowSpec { base_rtt: facts.map(|f| Span::from_ns(f.rtt_ns)), bdp: facts.map(|f| f.bdp), ..flow }
    }

    /// ns-3's "standalone" FCT (`third.cc`, `qp_finish`) in nanoseconds: the pair's round trip plus all bytes at the
    /// bottleneck's rate. 0 if no path joins the pair.
    pub fn ns3_ideal(&mut self, src: NodeId, dst: NodeId, bytes: u64) -> u64 {
        let Some(facts) = self.setup.pair(src.0, dst.0) else { return 0 };
        let headers = bytes.div_ceil(self.mtu as u64) as u128 * DATA_HEADER_BYTES as u128;
        let bytes = bytes as u128 + headers;
        let bytes = if self.ns3 { bytes as u32 as u128 } else { bytes };
        u64::try_from(facts.rtt_ns as u128 + bytes * 8_000_000_000 / facts.bandwidth as u128).unwrap_or(u64::MAX)
    }
}

fn flow(row: &FlowRow, index: usize, profile: Profile) -> FlowSpec {
    FlowSpec {
        priority: row.priority,
        src_port: row.src_port,
        dst_port: row.dst_port,
        token: index as u64,
        ..FlowSpec::new(row.src, row.dst, row.bytes, if profile == Profile::Ns3 { row.ns3_start } else { row.start })
    }
}

//! Running a scenario to its end.

use crate::cpu::CpuClock;
use crate::ideal::ideal_fct;
use crate::scenario::{Profile, Routing, Scenario};
use std::time::{Duration, Instant};
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::kernel::{PausedQueue, Step, Totals};
use wormhole_kernel::router::Router;
use wormhole_kernel::{
    CapacityError, Completion, Error, FabricSize, Kernel, Limits, ModelSet, Models, NodeId, Observer, PortStats,
    SimTime, Span,
};
use wormhole_models::ecn::Ns3Coins;
use wormhole_models::profile::{Ns3, Ps};
use wormhole_models::router::{Ecmp, EcmpHash, Spray};

/// Events between two looks at the clock and the progress line.
const SLICE: u64 = 1 << 18;

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// Every flow ended.
    Done,
    /// The stop time came first.
    StopTime,
    /// Frames wait for ever in queues that are paused.
    Deadlock(Vec<PausedQueue>),
    /// Flows wait for acknowledgements that will never come.
    Stalled,
    /// A capacity is used up.
    OutOf(CapacityError),
}

/// One finished flow.
#[derive(Clone, Copy, Debug)]
pub struct FlowRecord {
    /// What the kernel says. `token` is the flow's index in the scenario.
    pub completion: Completion,
    /// The least FCT the path allows: the flow alone, at line rate.
    pub ideal: Span,
}

/// What one port has done.
#[derive(Clone, Copy, Debug)]
pub struct PortReport {
    /// The port.
    pub info: PortInfo,
    /// The node at the other end.
    pub neighbour: NodeId,
    /// Its counters.
    pub stats: PortStats,
}

/// What a run has shown.
pub struct Outcome {
    /// Finished flows, in order of completion.
    pub flows: Vec<FlowRecord>,
    /// Counters of the fabric.
    pub totals: Totals,
    /// Each port, its neighbour and its counters.
    pub ports: Vec<PortReport>,
    /// When the last thing happened.
    pub end: SimTime,
    /// How it ended.
    pub ending: Ending,
    /// Processor time of the run, set-up excluded.
    pub cpu: Duration,
    /// Elapsed time of the run, set-up excluded.
    pub wall: Duration,
}

/// What is told now and then during a run.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: SimTime,
    /// Flows finished.
    pub flows: u64,
    /// Events executed.
    pub events: u64,
}

/// What the kernel refuses to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Index of the flow, if it is about one.
    pub flow: Option<usize>,
    /// Why.
    pub error: Error,
}

/// Runs a scenario. `tell` hears of progress a few times a second.
///
/// # Errors
/// Everything the kernel refuses.
pub fn simulate<O: Observer>(
    scenario: &Scenario,
    observer: O,
    tell: &mut dyn FnMut(Progress),
) -> Result<Outcome, Vec<Refusal>> {
    let salted = EcmpHash::Salted(scenario.seed);
    match (scenario.profile, scenario.routing) {
        (Profile::Ns3, _) => run(scenario, ns3_models(scenario, Ecmp::new(EcmpHash::Ns3)), observer, tell),
        (Profile::Ps, Routing::Ecmp) => run(scenario, ps_models(scenario, Ecmp::new(salted)), observer, tell),
        (Profile::Ps, Routing::Spray) => run(scenario, ps_models(scenario, Spray::new(scenario.seed)), observer, tell),
    }
}

fn ns3_models<R: Router>(scenario: &Scenario, router: R) -> ModelSet<'_, Ns3<'_, R>> {
    let lossy = scenario.links.iter().filter(|l| l.loss != 0).count();
    let coins = Ns3Coins::after_setup(scenario.nodes.len(), lossy);
    let mut models = Ns3::models(std::slice::from_ref(&scenario.cca), router, coins);
    models.telemetry.multiplier = scenario.int_multiplier;
    models.buffers.bytes = scenario.buffer_bytes;
    models.marker.thresholds = &scenario.thresholds;
    models.marker.enabled = scenario.ecn;
    models.transport = scenario.transport;
    models
}

fn ps_models<R: Router>(scenario: &Scenario, router: R) -> ModelSet<'_, Ps<'_, R>> {
    let mut models = Ps::models(std::slice::from_ref(&scenario.cca), router, scenario.seed);
    models.buffers.bytes = scenario.buffer_bytes;
    models.marker.thresholds = &scenario.thresholds;
    models.marker.enabled = scenario.ecn;
    models.transport = scenario.transport;
    models
}

fn run<M: Models, O: Observer>(
    scenario: &Scenario,
    models: ModelSet<'_, M>,
    observer: O,
    tell: &mut dyn FnMut(Progress),
) -> Result<Outcome, Vec<Refusal>> {
    let limits = limits(scenario);
    let size = FabricSize::of(&scenario.nodes, &scenario.links);
    let mut memory = vec![0u64; Kernel::<M, O>::words(size, &limits, &models)];
    let refuse = |flow, error| vec![Refusal { flow, error }];
    let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, observer);
    let mut kernel = kernel.map_err(|e| refuse(None, e))?;
    let ideals = add_flows(scenario, &mut kernel)?;
    for event in &scenario.link_events {
        kernel.set_link(event.at, event.link, event.up).map_err(|e| refuse(None, e))?;
    }
    let (cpu, wall) = (CpuClock::start(), Instant::now());
    let mut flows = Vec::with_capacity(scenario.flows.len());
    let ending = drive(scenario, &mut kernel, &ideals, &mut flows, tell);
    Ok(Outcome {
        flows,
        totals: kernel.totals(),
        ports: port_reports(&kernel),
        end: kernel.now(),
        ending,
        cpu: cpu.elapsed(),
        wall: wall.elapsed(),
    })
}

/// Adds all flows; gives the ideal FCT of each.
fn add_flows<M: Models, O: Observer>(
    scenario: &Scenario,
    kernel: &mut Kernel<'_, M, O>,
) -> Result<Vec<Span>, Vec<Refusal>> {
    let mut ideals = Vec::with_capacity(scenario.flows.len());
    let mut refused = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        match kernel.add_flow(flow).and_then(|_| ideal_fct(kernel, flow)) {
            Ok(ideal) => ideals.push(ideal),
            Err(error) => refused.push(Refusal { flow: Some(index), error }),
        }
    }
    if refused.is_empty() { Ok(ideals) } else { Err(refused) }
}

fn port_reports<M: Models, O: Observer>(kernel: &Kernel<'_, M, O>) -> Vec<PortReport> {
    let fabric = kernel.fabric();
    let report = |port| PortReport {
        info: *fabric.port(port),
        neighbour: fabric.neighbour(port),
        stats: kernel.port_stats(port),
    };
    fabric.ports().map(report).collect()
}

fn drive<M: Models, O: Observer>(
    scenario: &Scenario,
    kernel: &mut Kernel<'_, M, O>,
    ideals: &[Span],
    flows: &mut Vec<FlowRecord>,
    tell: &mut dyn FnMut(Progress),
) -> Ending {
    loop {
        let step = kernel.run_bounded(scenario.stop, SLICE);
        while let Some(completion) = kernel.poll_completion() {
            flows.push(FlowRecord { completion, ideal: ideals[completion.token as usize] });
        }
        if flows.len() == scenario.flows.len() {
            return Ending::Done;
        }
        tell(Progress { now: kernel.now(), flows: flows.len() as u64, events: kernel.totals().events });
        match step {
            Ok(Step::Budget | Step::OutputFull) => {}
            Ok(Step::Reached) => return Ending::StopTime,
            Ok(Step::Idle | Step::Stalled) => {
                let paused: Vec<PausedQueue> = kernel.paused_queues().collect();
                return if paused.is_empty() { Ending::Stalled } else { Ending::Deadlock(paused) };
            }
            Err(fault) => return Ending::OutOf(fault),
        }
    }
}

/// Room for everything the scenario can hold: memory is only used as it is touched.
fn limits(scenario: &Scenario) -> Limits {
    let flows = scenario.flows.len().max(1);
    Limits {
        queued_flows: flows,
        active_flows: flows,
        packets: scenario.max_packets,
        outputs: 4_096,
        inputs: scenario.link_events.len(),
    }
}

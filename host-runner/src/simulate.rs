//! Running a scenario to its end.

use crate::cpu::CpuClock;
pub use crate::flow_records::{FlowRecord, FlowRecords};
use crate::memo::{Memo, MemoReport, RunStore};
use crate::outputs::{PfcLog, PfcRow, SkipLog, sorted_pfc};
use crate::parallel;
use crate::scenario::{Profile, Routing, Scenario};
use crate::traffic::{Halt, Traffic};
use crate::workload::engine::{RankStretch, Wait};
use crate::workload::report::JobReport;
use std::fs::File;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use wormhole_kernel::accel::{Skipped, Tier};
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::kernel::{ActiveFlow, PausedQueue, Step, Totals};
use wormhole_kernel::memo::KERNEL_VERSION;
use wormhole_kernel::router::Router;
use wormhole_kernel::{
    CapacityError, Error, FabricSize, Kernel, Limits, ModelSet, Models, NodeId, Observer, PortStats, SimTime,
};
use wormhole_memo_fmt::{FORMAT_VERSION, Header};
use wormhole_models::any::{AnyBuffers, AnyMarker};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::ecn::{Ns3Coins, RedMarker};
use wormhole_models::profile::{Ns3, Ps, with_switches};
use wormhole_models::router::{Ecmp, EcmpHash, Spray};

/// How a run ended.
#[derive(Clone, PartialEq, Debug)]
pub enum Ending {
    /// Every flow ended.
    Done,
    /// The stop time came first.
    StopTime,
    /// Frames wait for ever in queues that are paused.
    Deadlock(Vec<PausedQueue>),
    /// These flows wait for acknowledgements that will never come.
    Stalled(Vec<ActiveFlow>),
    /// Ranks wait for others that will never come: who for what.
    Waiting(Vec<Wait>),
    /// Ranks do not agree about a collective.
    Mismatch(String),
    /// A capacity is used up.
    OutOf(CapacityError),
    /// Something is to happen after the end of simulated time, [`SimTime::MAX`].
    OutOfTime,
    /// A plugin has given what it may not: which, and what.
    Plugin(String),
    /// Whoever watched it wished it to end.
    Interrupted,
    /// It has not ended: these are results so far.
    Running,
}

impl Ending {
    /// One word: `done`, `stop_time`, `deadlock`, `stalled`, `waiting`, `mismatch`, `plugin`, `interrupted`, `running`,
    /// or `out_of_<limit>`.
    pub fn name(&self) -> String {
        match self {
            Ending::Done => "done".into(),
            Ending::StopTime => "stop_time".into(),
            Ending::Deadlock(_) => "deadlock".into(),
            Ending::Stalled(_) => "stalled".into(),
            Ending::Waiting(_) => "waiting".into(),
            Ending::Mismatch(_) => "mismatch".into(),
            Ending::Plugin(_) => "plugin".into(),
            Ending::OutOf(fault) => format!("out_of_{}", fault.what),
            Ending::OutOfTime => "out_of_time".into(),
            Ending::Interrupted => "interrupted".into(),
            Ending::Running => "running".into(),
        }
    }
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
    /// Finished flows, in order of completion. In profile `ps` those that end in one instant are in order of number, in
    /// profile `ns3` in ns-3's order.
    pub flows: FlowRecords,
    /// Flows that were to run: those of the list, and those that jobs have begun.
    pub flows_begun: usize,
    /// What came of the jobs.
    pub jobs: Vec<JobReport>,
    /// Counters of the fabric.
    pub totals: Totals,
    /// What acceleration has done.
    pub skipped: Skipped,
    /// What memoisation has done.
    pub memo: MemoReport,
    /// Each port, its neighbour and its counters.
    pub ports: Vec<PortReport>,
    /// PFC frames, as they arrived; in profile `ps` those of one instant in order of port.
    pub pfc: Vec<PfcRow>,
    /// What was skipped over the course of the run.
    pub skips: SkipLog,
    /// When the last thing happened.
    pub end: SimTime,
    /// How it ended.
    pub ending: Ending,
    /// Elapsed time of the set-up: of the kernel, the jobs and the listed flows.
    pub setup: Duration,
    /// Threads that have run kernels side by side.
    pub threads: usize,
    /// Processor time of the run, of all threads, set-up excluded.
    pub cpu: Duration,
    /// Elapsed time of the run, set-up excluded.
    pub wall: Duration,
}

impl Outcome {
    /// Events executed and skipped over events executed: how many times less work there was. 1 if nothing was skipped.
    pub fn event_ratio(&self) -> f64 {
        let executed = self.totals.events.max(1) as f64;
        (executed + self.skipped.events as f64) / executed
    }
}

/// How far a run has come.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    /// Simulated time.
    pub now: SimTime,
    /// Flows that have ended.
    pub flows: usize,
    /// Flows of the list, and those that jobs have begun.
    pub flows_begun: usize,
    /// Share of the work that is done, 0 to 1. An estimate: of flows, and of the tasks of each job's first rank.
    pub done: f64,
    /// Events executed.
    pub events: u64,
    /// Events that acceleration made unnecessary.
    pub events_skipped: u64,
    /// Look-ups of partitions that found a record and used it.
    pub memo_hits: u64,
}

/// Follows a run from outside. Nothing that it does changes a result.
pub trait Watch {
    /// Hears how far the run has come, several times a second at least as long as events are executed. `Break` ends the
    /// run: [`Ending::Interrupted`].
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        let _ = progress;
        ControlFlow::Continue(())
    }

    /// Whether [`rank`](Self::rank) is to be told.
    fn follows_ranks(&self) -> bool {
        false
    }

    /// Hears what a rank has done. Those of one rank come in order.
    fn rank(&mut self, did: &RankStretch) {
        let _ = did;
    }

    /// A file for flows that have ended, empty and nobody else's: then memory does not grow with their number. Asked
    /// for before the run.
    fn flows_file(&mut self) -> Option<File> {
        None
    }

    /// Whether [`interim`](Self::interim) is to be told now.
    fn wants_interim(&mut self) -> bool {
        false
    }

    /// Hears what the run would have shown if it had ended now ([`Ending::Running`]). Port counters of partitions that
    /// are skipped are as of when that began.
    fn interim(&mut self, outcome: &Outcome) {
        let _ = outcome;
    }
}

/// Nobody watches.
impl Watch for () {}

/// What the kernel refuses to simulate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Index of the flow, if it is about one.
    pub flow: Option<usize>,
    /// Why.
    pub error: Error,
}

// None of these is generic: the kernel is compiled once for each kind of models and observers, here, and not again in
// every crate that makes a run.

/// Runs a scenario without memoisation.
///
/// # Errors
/// Everything the kernel refuses.
pub fn simulate(scenario: &Scenario, watch: &mut dyn Watch) -> Result<Outcome, Vec<Refusal>> {
    if let Some(outcome) = parallel::simulate(scenario, None, watch)? {
        return Ok(outcome);
    }
    with_models(scenario, Run { scenario, memo: None, driver: ToTheEnd { watch } })
}

/// As [`simulate`], but what `memo` has of earlier runs is looked up, and what is new goes there.
///
/// # Errors
/// Everything the kernel refuses.
pub fn simulate_memoised(scenario: &Scenario, memo: &mut Memo, watch: &mut dyn Watch) -> Result<Outcome, Vec<Refusal>> {
    if let Some(outcome) = parallel::simulate(scenario, Some(&mut *memo), watch)? {
        return Ok(outcome);
    }
    with_models(scenario, Run { scenario, memo: Some(memo), driver: ToTheEnd { watch } })
}

/// As [`simulate_memoised`] or, without `memo`, as [`simulate`]; `observer` sees every event that is executed.
///
/// # Errors
/// Everything the kernel refuses.
pub fn simulate_observed(
    scenario: &Scenario,
    memo: Option<&mut Memo>,
    observer: &mut dyn Observer,
    watch: &mut dyn Watch,
) -> Result<Outcome, Vec<Refusal>> {
    simulate_driven(scenario, memo, observer, ToTheEnd { watch })
}

/// As [`simulate_observed`], but `driver` says how far the simulation goes, and when.
///
/// # Errors
/// Everything the kernel refuses.
pub(crate) fn simulate_driven(
    scenario: &Scenario,
    memo: Option<&mut Memo>,
    observer: &mut dyn Observer,
    driver: impl Driver,
) -> Result<Outcome, Vec<Refusal>> {
    let run = Run { scenario, memo, driver };
    match scenario.plugins.concern_switches() {
        false => with_usual_switches(scenario, observer, run),
        true => with_foreign_switches(scenario, observer, run),
    }
}

/// What every run keeps.
pub(crate) type Logs = (PfcLog, SkipLog);

pub(crate) fn logs(scenario: &Scenario) -> Logs {
    (PfcLog::default(), SkipLog::from(scenario.start()))
}

/// What leads a simulation from its start to its end.
pub(crate) trait Driver {
    /// Commands that may be waiting for their time, besides the scenario's link changes.
    fn inputs(&self) -> usize;

    /// Runs a kernel that is set up. Gives how it ended. `results` gives what the run has shown so far.
    ///
    /// # Errors
    /// Everything the kernel refuses.
    fn drive<'k, M: Models, O: Observer>(
        self,
        scenario: &Scenario,
        kernel: &mut Kernel<'k, M, O>,
        traffic: &mut Traffic<'_>,
        results: &dyn Fn(&Kernel<'k, M, O>, &Traffic<'_>) -> Outcome,
    ) -> Result<Ending, Vec<Refusal>>;
}

/// Runs until all flows and jobs have ended, or to the stop time, or until who watches breaks it off.
struct ToTheEnd<'w> {
    watch: &'w mut dyn Watch,
}

impl Driver for ToTheEnd<'_> {
    fn inputs(&self) -> usize {
        0
    }

    fn drive<'k, M: Models, O: Observer>(
        self,
        scenario: &Scenario,
        kernel: &mut Kernel<'k, M, O>,
        traffic: &mut Traffic<'_>,
        results: &dyn Fn(&Kernel<'k, M, O>, &Traffic<'_>) -> Outcome,
    ) -> Result<Ending, Vec<Refusal>> {
        let watch = self.watch;
        if watch.follows_ranks() {
            traffic.keep_stretches();
        }
        if let Some(file) = watch.flows_file() {
            traffic.keep_records_in(file);
        }
        let ending = drive(scenario, kernel, traffic, |kernel, traffic| {
            traffic.take_stretches().iter().for_each(|did| watch.rank(did));
            watch.progress(progress(kernel, traffic))?;
            if watch.wants_interim() {
                watch.interim(&results(kernel, traffic));
            }
            ControlFlow::Continue(())
        });
        if watch.follows_ranks() {
            traffic.take_stretches().iter().for_each(|did| watch.rank(did));
            traffic.open_stretches().for_each(|did| watch.rank(&did));
        }
        ending
    }
}

/// Something to do with a scenario's models. Every profile and router is a type of its own.
pub(crate) trait WithModels {
    /// What comes of it.
    type Output;

    /// Does it. The observer is for the kernel.
    fn with<M: Models, O: Observer>(self, models: ModelSet<'_, M>, observer: (Logs, O)) -> Self::Output;
}

/// Makes the models of a scenario and does something with them.
pub(crate) fn with_models<W: WithModels>(scenario: &Scenario, work: W) -> W::Output {
    match scenario.plugins.concern_switches() {
        false => with_usual_switches(scenario, (), work),
        true => with_foreign_switches(scenario, &mut (), work),
    }
}

fn with_usual_switches<W: WithModels, O: Observer>(scenario: &Scenario, observer: O, work: W) -> W::Output {
    let observer = (logs(scenario), observer);
    match (scenario.profile, scenario.routing) {
        (Profile::Ns3, _) => work.with(ns3_models(scenario, Ecmp::new(EcmpHash::Ns3)), observer),
        (Profile::Ps, Routing::Ecmp | Routing::DModK) => {
            work.with(ps_models(scenario, Ecmp::new(ps_hash(scenario))), observer)
        }
        (Profile::Ps, Routing::Spray) => work.with(ps_models(scenario, Spray::new(scenario.seed)), observer),
    }
}

/// How switches of profile `ps` choose among paths if flows keep to one.
pub(crate) fn ps_hash(scenario: &Scenario) -> EcmpHash {
    match scenario.routing {
        Routing::DModK => EcmpHash::Destination,
        Routing::Ecmp | Routing::Spray => EcmpHash::Salted(scenario.seed),
    }
}

/// Whoever observes: such a kernel is compiled once.
fn with_foreign_switches<W: WithModels>(scenario: &Scenario, observer: &mut dyn Observer, work: W) -> W::Output {
    /// The models of a profile, with the buffers and the marker of plugins where there are some.
    fn foreign<'s, A, Z>(scenario: &'s Scenario, models: ModelSet<'s, A>) -> ModelSet<'s, Z>
    where
        A: Models<Buffers = DynamicThreshold, Marker = RedMarker<'s>>,
        Z: Models<
                Buffers = AnyBuffers,
                Marker = AnyMarker<'s>,
                Timing = A::Timing,
                Cca = A::Cca,
                Telemetry = A::Telemetry,
                Scheduler = A::Scheduler,
                Loss = A::Loss,
                Router = A::Router,
                Nic = A::Nic,
            >,
    {
        let buffers = scenario.plugins.buffers().map(AnyBuffers::ForeignBuffers);
        let buffers = buffers.unwrap_or(AnyBuffers::DynamicThreshold(models.buffers));
        let marker = scenario.plugins.marker(scenario.seed).map(AnyMarker::ForeignMarker);
        let marker = marker.unwrap_or_else(|| AnyMarker::RedMarker(models.marker.clone()));
        with_switches(models, buffers, marker)
    }
    type ForeignNs3<'s> = Ns3<'s, Ecmp, AnyBuffers, AnyMarker<'s>>;
    type ForeignPs<'s, R> = Ps<'s, R, AnyBuffers, AnyMarker<'s>>;
    let observer = (logs(scenario), observer);
    match (scenario.profile, scenario.routing) {
        (Profile::Ns3, _) => {
            let models = ns3_models(scenario, Ecmp::new(EcmpHash::Ns3));
            work.with::<ForeignNs3<'_>, _>(foreign(scenario, models), observer)
        }
        (Profile::Ps, Routing::Ecmp | Routing::DModK) => {
            let models = ps_models(scenario, Ecmp::new(ps_hash(scenario)));
            work.with::<ForeignPs<'_, Ecmp>, _>(foreign(scenario, models), observer)
        }
        (Profile::Ps, Routing::Spray) => {
            let models = ps_models(scenario, Spray::new(scenario.seed));
            work.with::<ForeignPs<'_, Spray>, _>(foreign(scenario, models), observer)
        }
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

pub(crate) fn ps_models<R: Router>(scenario: &Scenario, router: R) -> ModelSet<'_, Ps<'_, R>> {
    let mut models = Ps::models(std::slice::from_ref(&scenario.cca), router, scenario.seed);
    models.buffers.bytes = scenario.buffer_bytes;
    models.marker.thresholds = &scenario.thresholds;
    models.marker.enabled = scenario.ecn;
    models.transport = scenario.transport;
    models
}

/// A run of a scenario.
struct Run<'r, D> {
    scenario: &'r Scenario,
    memo: Option<&'r mut Memo>,
    driver: D,
}

impl<D: Driver> WithModels for Run<'_, D> {
    type Output = Result<Outcome, Vec<Refusal>>;

    fn with<M: Models, O: Observer>(self, models: ModelSet<'_, M>, observer: (Logs, O)) -> Self::Output {
        let Run { scenario, mut memo, driver } = self;
        let begun = Instant::now();
        let how = memo.as_ref().and_then(|memo| memo.how(scenario.acceleration.tier));
        // Before the kernel, which borrows it for as long as it lives.
        let mut records = vec![0u64; memo.as_ref().filter(|_| how.is_some()).map_or(0, |memo| memo.limit_words())];
        let mut store = RunStore::new(&mut records);
        let mut limits = limits(scenario);
        limits.inputs += driver.inputs();
        let mut memory = memory::<M, (Logs, O)>(scenario, &limits, &models);
        let mut kernel = kernel(scenario, &mut memory, models, &limits, observer)?;
        kernel.accelerate(scenario.acceleration).map_err(refused)?;
        if let (Some(memo), Some(how)) = (&mut memo, how) {
            memo.begin(memo_header(&kernel), &mut store);
            kernel.memoise(&mut store, how).map_err(refused)?;
        }
        let mut outcome = run(scenario, kernel, driver, begun)?;
        outcome.memo.bytes = store.bytes();
        if let Some(memo) = memo {
            memo.end(&outcome.memo.counts, store);
        }
        Ok(outcome)
    }
}

/// What a kernel's records go by.
pub(crate) fn memo_header<M: Models, O: Observer>(kernel: &Kernel<'_, M, O>) -> Header {
    let (format_version, kernel_version) = (FORMAT_VERSION, KERNEL_VERSION);
    Header { format_version, kernel_version, models: kernel.memo_models() }
}

pub(crate) fn refused(fault: CapacityError) -> Vec<Refusal> {
    vec![Refusal { flow: None, error: fault.into() }]
}

/// Memory for a scenario's kernel.
pub(crate) fn memory<M: Models, O: Observer>(
    scenario: &Scenario,
    limits: &Limits,
    models: &ModelSet<'_, M>,
) -> Vec<u64> {
    vec![0; Kernel::<M, O>::words(FabricSize::of(&scenario.nodes, &scenario.links), limits, models)]
}

/// The kernel of a scenario, without its flows.
pub(crate) fn kernel<'a, M: Models, O: Observer>(
    scenario: &Scenario,
    memory: &'a mut [u64],
    models: ModelSet<'a, M>,
    limits: &Limits,
    observer: O,
) -> Result<Kernel<'a, M, O>, Vec<Refusal>> {
    Kernel::new(memory, &scenario.nodes, &scenario.links, models, limits, observer)
        .map_err(|error| vec![Refusal { flow: None, error }])
}

/// A kernel that keeps a log of PFC frames, whoever else observes it.
type Logged<'a, M, O> = Kernel<'a, M, (Logs, O)>;

/// Runs a kernel that is set up but for what comes from outside. The set-up has begun at `begun`.
fn run<M: Models, O: Observer>(
    scenario: &Scenario,
    mut kernel: Logged<'_, M, O>,
    driver: impl Driver,
    begun: Instant,
) -> Result<Outcome, Vec<Refusal>> {
    let mut traffic = add_inputs(scenario, &mut kernel)?;
    let setup = begun.elapsed();
    let (cpu, wall) = (CpuClock::start(), Instant::now());
    let outcome = |kernel: &Logged<'_, M, O>, traffic: &Traffic<'_>, flows, ending| {
        let jobs = traffic.job_reports();
        Outcome {
            // A job may end with something that no packet has a part in.
            end: jobs.iter().map(|job| job.end).fold(kernel.now(), SimTime::max),
            flows_begun: traffic.begun(),
            jobs,
            flows,
            totals: kernel.totals(),
            skipped: kernel.skipped(),
            memo: MemoReport { counts: kernel.memoised(), bytes: 0 },
            ports: port_reports(kernel),
            pfc: match scenario.profile {
                Profile::Ns3 => kernel.observer.0.0.rows.clone(),
                Profile::Ps => sorted_pfc(kernel.observer.0.0.rows.clone()),
            },
            skips: kernel.observer.0.1.clone(),
            ending,
            threads: 1,
            setup,
            cpu: cpu.elapsed(),
            wall: wall.elapsed(),
        }
    };
    let ending = driver.drive(scenario, &mut kernel, &mut traffic, &|kernel, traffic| {
        outcome(kernel, traffic, traffic.records().clone(), Ending::Running)
    })?;
    // What is parked at the stop time has counted nothing since.
    kernel.wake_all();
    let ending = scenario.plugins.fault().map_or(ending, Ending::Plugin);
    let flows = traffic.take_records();
    Ok(outcome(&kernel, &traffic, flows, ending))
}

fn progress<M: Models, O: Observer>(kernel: &Kernel<'_, M, O>, traffic: &Traffic<'_>) -> Progress {
    Progress {
        now: kernel.now(),
        flows: traffic.ended(),
        flows_begun: traffic.begun(),
        done: traffic.share_done(),
        events: kernel.totals().events,
        events_skipped: kernel.skipped().events,
        memo_hits: kernel.memoised().hits,
    }
}

/// Adds the flows of the list and link changes.
pub(crate) fn add_inputs<'s, M: Models, O: Observer>(
    scenario: &'s Scenario,
    kernel: &mut Kernel<'_, M, O>,
) -> Result<Traffic<'s>, Vec<Refusal>> {
    let mut traffic = Traffic::new(scenario);
    traffic.add_list(kernel)?;
    for event in &scenario.link_events {
        let set = kernel.set_link(event.at, event.link, event.up);
        set.map_err(|error| vec![Refusal { flow: None, error }])?;
    }
    Ok(traffic)
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

/// Runs to the end: of all flows and jobs, or to the stop time, or when `follow`, which is called now and then, breaks.
pub(crate) fn drive<'k, M: Models, O: Observer>(
    scenario: &Scenario,
    kernel: &mut Kernel<'k, M, O>,
    traffic: &mut Traffic<'_>,
    mut follow: impl FnMut(&Kernel<'k, M, O>, &mut Traffic<'_>) -> ControlFlow<()>,
) -> Result<Ending, Vec<Refusal>> {
    let mut now = SimTime::ZERO;
    if let Err(halt) = traffic.advance(now, kernel) {
        return halt.into_ending();
    }
    while !traffic.is_done() {
        let Stretch { step, goes_on } = match advance(scenario.stop, &mut now, kernel, traffic) {
            Ok(stretch) => stretch,
            Err(halt) => {
                traffic.collect_rest(kernel);
                return halt.into_ending();
            }
        };
        traffic.collect(kernel);
        if follow(kernel, traffic).is_break() {
            return Ok(Ending::Interrupted);
        }
        if let Some(fault) = scenario.plugins.fault() {
            return Ok(Ending::Plugin(fault));
        }
        match step {
            _ if goes_on || traffic.is_done() => {}
            Step::Reached => return Ok(Ending::StopTime),
            Step::Idle | Step::Stalled => return Ok(stuck(scenario, kernel, traffic)),
            Step::Budget | Step::Completed | Step::OutputFull => {}
        }
    }
    match come_to_rest(scenario, kernel) {
        Ok(()) => Ok(Ending::Done),
        Err(fault) => Ok(Ending::OutOf(fault)),
    }
}

/// After the last flow of a list its last frames are on their way still. What is counted of them is not to depend on
/// where the run was last looked at.
fn come_to_rest<M: Models, O: Observer>(
    scenario: &Scenario,
    kernel: &mut Kernel<'_, M, O>,
) -> Result<(), CapacityError> {
    if scenario.jobs.is_empty() && scenario.link_events.is_empty() {
        kernel.run_until(scenario.stop)?;
    }
    Ok(())
}

/// What [`advance`] has come to.
pub(crate) struct Stretch {
    /// Why it returned.
    pub(crate) step: Step,
    /// Jobs had something to do by themselves: there may be more before the limit.
    pub(crate) goes_on: bool,
}

/// Runs the kernel to `limit` at most, and tells jobs what has ended. `now` is how far jobs have been told of.
///
/// # Errors
/// A capacity is used up, or what jobs do makes no sense.
pub(crate) fn advance<M: Models, O: Observer>(
    limit: SimTime,
    now: &mut SimTime,
    kernel: &mut Kernel<'_, M, O>,
    traffic: &mut Traffic<'_>,
) -> Result<Stretch, Halt> {
    let next = traffic.next_time().filter(|&at| at <= limit);
    let step = traffic.run(next.unwrap_or(limit), kernel).map_err(Halt::OutOf)?;
    *now = match step {
        // In the midst of an instant jobs are told nothing: what they do is not to depend on where a slice ends.
        Step::Budget => return Ok(Stretch { step, goes_on: true }),
        Step::Completed | Step::OutputFull => kernel.now(),
        Step::Reached => next.unwrap_or(limit),
        // Jobs may have gone on after the last event of the kernel.
        Step::Idle | Step::Stalled => next.unwrap_or((*now).max(kernel.now())),
    };
    traffic.advance(*now, kernel)?;
    Ok(Stretch { step, goes_on: next.is_some() })
}

/// Nothing moves any more, and not all is done.
fn stuck<M: Models, O: Observer>(scenario: &Scenario, kernel: &Kernel<'_, M, O>, traffic: &Traffic<'_>) -> Ending {
    let paused: Vec<PausedQueue> = kernel.paused_queues().collect();
    if !paused.is_empty() {
        Ending::Deadlock(paused)
    } else if kernel.next_event_time() == Some(SimTime::MAX) {
        Ending::OutOfTime
    } else if traffic.next_time().is_some_and(|at| at > scenario.stop) {
        Ending::StopTime
    } else if kernel.unfinished_flows() == 0 && kernel.queued_flows() == 0 {
        Ending::Waiting(traffic.waits())
    } else {
        Ending::Stalled(kernel.active_flows().collect())
    }
}

/// Room for everything the scenario can hold: memory is only used as it is touched.
pub(crate) fn limits(scenario: &Scenario) -> Limits {
    let flows = most_flows(scenario).max(1);
    Limits {
        queued_flows: flows,
        active_flows: flows,
        packets: scenario.max_packets,
        outputs: 4_096,
        inputs: scenario.link_events.len(),
        snapshot_words: snapshot_words(scenario),
    }
}

/// Flows there can be at once.
fn most_flows(scenario: &Scenario) -> usize {
    let of_jobs = if scenario.jobs.is_empty() { 0 } else { scenario.max_flows };
    scenario.flows.len().saturating_add(of_jobs)
}

/// Memory for the states of partitions, in words of 8 bytes: several copies of all that the scenario can hold at once,
/// but no more than 1 GiB. It is only used as it is touched; none is reserved if nothing may be skipped.
///
/// The sizes are generous, not exact: acceleration does without what does not fit.
pub fn snapshot_words(scenario: &Scenario) -> usize {
    const COPIES: usize = 16;
    const FLOW: usize = 128;
    const FRAME: usize = 16;
    const PORT: usize = 64;
    const MOST: usize = 1 << 27;
    if scenario.acceleration.tier == Tier::Off {
        return 0;
    }
    let flows = most_flows(scenario).saturating_mul(FLOW);
    let frames = scenario.max_packets.saturating_mul(FRAME);
    let ports = scenario.links.len().saturating_mul(2 * PORT);
    flows.saturating_add(frames).saturating_add(ports).saturating_mul(COPIES).min(MOST)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::reference::NS3;
    use crate::scenario::Options;

    #[test]
    fn states_of_partitions_have_memory_only_if_something_may_be_skipped() {
        let words = |tier, max_packets| {
            let texts = Texts {
                topology: ("topology", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
                flows: Some(("flows", "1\n0 1 3 100 1000 0\n")),
                config: None,
                link_events: None,
            };
            let mut options = Options { max_packets, ..NS3 };
            options.acceleration.tier = tier;
            snapshot_words(&load_texts(&texts, &options).scenario.expect("a scenario"))
        };
        assert_eq!(words(Tier::Off, 1_000), 0);
        // 16 times a flow, 1000 frames and 4 ports.
        assert_eq!(words(Tier::Exact, 1_000), 16 * (128 + 16_000 + 4 * 64));
        assert_eq!(words(Tier::Bounded, usize::MAX), 1 << 27);
    }
}

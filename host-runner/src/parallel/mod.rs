//! Runs a scenario with several kernels, on as many threads as the user allows.
//!
//! * `cut`: which kernel simulates which nodes.
//! * `apart`: parts of the fabric that exchange no traffic, each simulated as if there were no other, accelerated or
//!   not.
//! * `windows`: a fabric that all flows share, cut into shards that hear of each other window by window; by their
//!   `milestones`, made of what is in `sync`, they know how far the others have come.
//!
//! What comes of a run depends neither on the number of threads nor on which of them is faster. In windows the order of
//! events is that of one kernel. Parts that are accelerated have the kernels that they have whatever the number of
//! threads. These find each other's records from the next exchange on, which is a matter of simulated time.

mod apart;
mod cut;
mod milestones;
mod sync;
mod windows;

use crate::cpu::CpuClock;
use crate::memo::{CommonStore, KernelStore, Memo, MemoReport, RunStore};
use crate::outputs::{SkipLog, sorted_pfc};
use crate::scenario::{Profile, Routing, Scenario};
use crate::simulate::{
    Ending, Logs, Outcome, PortReport, Progress, Refusal, Watch, kernel, limits, logs, memo_header, memory, ps_hash,
    ps_models, refused,
};
use crate::traffic::Traffic;
use apart::Epochs;
use cut::{Cut, Weights};
use rayon::{ThreadPool, ThreadPoolBuilder};
use std::time::{Duration, Instant};
use windows::{TOLD, Windows};
use wormhole_kernel::accel::{Skipped, Tier};
use wormhole_kernel::kernel::Totals;
use wormhole_kernel::memo::Memoised;
use wormhole_kernel::router::Router;
use wormhole_kernel::shard::{MOST_SHARDS, ShardLimits, Window};
use wormhole_kernel::{Completion, Kernel, ModelSet, NodeId, SimTime};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, Spray};

/// Whoever watches hears of the run this often.
const ROUND: Duration = Duration::from_millis(100);
/// What a window may hold. Memory is only used as it is touched.
const WINDOW_LIMITS: ShardLimits = ShardLimits { events: 1 << 20, departures: 1 << 18 };
/// Flows at most: every shard has all of them, and keeps them.
const MOST_FLOWS: usize = 1 << 17;

/// Runs a scenario with several kernels. `None` if one does as well, or something has come up that only one can
/// simulate.
///
/// # Errors
/// Everything the kernel refuses.
pub(crate) fn simulate(
    scenario: &Scenario,
    memo: Option<&mut Memo>,
    watch: &mut dyn Watch,
) -> Result<Option<Outcome>, Vec<Refusal>> {
    let Some(threads) = scenario.threads.filter(|&threads| can_be_cut(scenario, threads)) else { return Ok(None) };
    let threads = threads.min(MOST_SHARDS);
    match scenario.routing {
        Routing::Ecmp | Routing::DModK => {
            run(scenario, threads, || ps_models(scenario, Ecmp::new(ps_hash(scenario))), memo, watch)
        }
        Routing::Spray => run(scenario, threads, || ps_models(scenario, Spray::new(scenario.seed)), memo, watch),
    }
}

/// Whether kernels that each have a part of the fabric could have the results of one.
fn can_be_cut(scenario: &Scenario, threads: usize) -> bool {
    // Parts that are accelerated have kernels of their own on one thread, too.
    let is_of_use = threads > 1 || scenario.acceleration.tier != Tier::Off;
    // What jobs begin begins at once, anywhere. ns-3's coins are one sequence for the whole fabric.
    let is_local = scenario.jobs.is_empty() && scenario.profile == Profile::Ps && !scenario.plugins.concern_switches();
    // Senders and receivers of packets that are sent again would have to know of each other at once.
    let is_lossless = scenario.link_events.is_empty() && scenario.links.iter().all(|link| link.loss == 0);
    is_of_use && is_local && is_lossless && scenario.flows.len() <= MOST_FLOWS
}

/// The cut of a scenario, if there is one to be made.
fn cut<R: Router>(scenario: &Scenario, threads: usize, weights: &Weights) -> Option<Cut> {
    let skips = scenario.acceleration.tier != Tier::Off;
    // A packet that chooses its path may leave its part.
    let apart = R::PER_FLOW.then(|| apart::parts(scenario, weights));
    if skips {
        return apart?.by_kind();
    }
    let apart = apart.and_then(|parts| parts.in_equal_shares(threads));
    Some(apart.unwrap_or_else(|| Cut::across(&scenario.links, weights, threads)))
}

fn run<'s, R: Router + Send>(
    scenario: &'s Scenario,
    threads: usize,
    models: impl Fn() -> ModelSet<'s, Ps<'s, R>>,
    mut memo: Option<&mut Memo>,
    watch: &mut dyn Watch,
) -> Result<Option<Outcome>, Vec<Refusal>> {
    let set_up = Instant::now();
    let limits = limits(scenario);
    let weights = weights(scenario, &models)?;
    let Some(cut) = cut::<R>(scenario, threads, &weights) else { return Ok(None) };
    let how = memo.as_ref().and_then(|memo| memo.how(scenario.acceleration.tier));
    // Half is for all, the other half for what each has learnt or found itself.
    let record_words = memo.as_ref().filter(|_| how.is_some()).map_or(0, |memo| memo.limit_words() / 2);
    let mut records = vec![0; record_words];
    let common = CommonStore::new(RunStore::new(&mut records), cut.kernels);
    let of_shards = |words| if cut.lookahead.is_some() { words } else { 0 };
    let shard_words = of_shards(Kernel::<Ps<'_, R>, Logs>::shard_words(scenario.nodes.len(), &WINDOW_LIMITS));
    let window_words = of_shards(Window::words(&WINDOW_LIMITS));
    // Before the kernels, which borrow it for as long as they live.
    let mut memories: Vec<Memory> = (0..cut.kernels)
        .map(|_| Memory {
            kernel: memory::<Ps<'_, R>, Logs>(scenario, &limits, &models()),
            shard: vec![0; shard_words],
            windows: [(); TOLD].map(|()| vec![0; window_words]),
            records: vec![0; record_words / cut.kernels],
        })
        .collect();
    let (mut words, mut of_windows) = (Vec::new(), Vec::new());
    let mut stores: Vec<KernelStore<'_, '_>> = Vec::new();
    for (index, Memory { kernel, shard, windows, records }) in memories.iter_mut().enumerate() {
        words.push((kernel, shard));
        of_windows.push(windows);
        stores.push(common.of_kernel(index, records));
    }
    let windows = cut.lookahead.map(|lookahead| Windows::new(lookahead, of_windows)).transpose().map_err(refused)?;
    let mut traffic = Traffic::new(scenario);
    let mut kernels = Vec::new();
    for ((index, (words, of_shard)), store) in (0..).zip(words).zip(&mut stores) {
        let mut kernel = kernel(scenario, words, models(), &limits, logs(scenario))?;
        kernel.accelerate(scenario.acceleration).map_err(refused)?;
        if let (Some(memo), Some(how)) = (&mut memo, how) {
            if index == 0 {
                memo.begin(memo_header(&kernel), &mut common.records());
            }
            kernel.memoise(store, how).map_err(refused)?;
        }
        let owns = |node: NodeId| cut.owners[node.index()] == index;
        match cut.lookahead {
            // A kernel has what happens at its nodes, and that is all that it would ever know.
            None => traffic.add_some(&mut kernel, |flow| owns(flow.src))?,
            Some(_) => {
                match index {
                    0 => traffic.add_list(&mut kernel)?,
                    _ => add_as_before(scenario, &mut kernel)?,
                }
                kernel.become_shard(of_shard, &WINDOW_LIMITS, owns).map_err(refused)?;
            }
        }
        kernels.push(kernel);
    }
    let Ok(pool) = ThreadPoolBuilder::new().num_threads(threads).build() else { return Ok(None) };
    if let Some(file) = watch.flows_file() {
        traffic.keep_records_in(file);
    }
    let mut run = Run {
        scenario,
        cut,
        threads,
        pool,
        kernels,
        traffic,
        held_back: Vec::new(),
        windows,
        epochs: how.map(|_| Epochs::new(&common)),
        is_at_stop: false,
        setup: set_up.elapsed(),
        cpu: Duration::ZERO,
        begun: Instant::now(),
    };
    let outcome = run.run_to_end(watch).map(|ending| run.outcome(ending));
    drop(run);
    let Some(mut outcome) = outcome else { return Ok(None) };
    drop(stores);
    let records = common.into_records();
    outcome.memo.bytes = records.bytes();
    if let Some(memo) = memo {
        memo.end(&outcome.memo.counts, records);
    }
    Ok(Some(outcome))
}

/// Adds the flows of the list to another kernel. What the first one has taken this one takes.
fn add_as_before<R: Router>(scenario: &Scenario, kernel: &mut PartKernel<'_, '_, R>) -> Result<(), Vec<Refusal>> {
    let add = |flow| kernel.add_flow(flow).map(drop);
    scenario.flows.iter().try_for_each(add).map_err(|error| vec![Refusal { flow: None, error }])
}

/// Memory of a kernel, of what it is besides as a shard, of the windows of which others read, and of its records.
struct Memory {
    kernel: Vec<u64>,
    shard: Vec<u64>,
    windows: [Vec<u64>; TOLD],
    records: Vec<u64>,
}

/// The frames that the flows of the list put on nodes and links.
fn weights<'s, R: Router>(
    scenario: &'s Scenario,
    models: impl Fn() -> ModelSet<'s, Ps<'s, R>>,
) -> Result<Weights, Vec<Refusal>> {
    let limits = limits(scenario);
    let mut memory = memory::<Ps<'_, R>, Logs>(scenario, &limits, &models());
    let mut kernel = kernel(scenario, &mut memory, models(), &limits, logs(scenario))?;
    let mut weights = Weights { nodes: vec![0; scenario.nodes.len()], links: vec![0; scenario.links.len()] };
    let mut refused = Vec::new();
    for (index, flow) in scenario.flows.iter().enumerate() {
        let frames = flow.bytes.div_ceil(scenario.transport.mtu.max(1).into()).max(1);
        for path in [kernel.data_path(flow), kernel.ack_path(flow)] {
            match path {
                Ok(path) => path.iter().for_each(|&port| weights.add(kernel.fabric().port(port), frames)),
                Err(error) => refused.push(Refusal { flow: Some(index), error }),
            }
        }
        // The last node of a path sends nothing, but it has the frames.
        weights.nodes[flow.src.index()] += frames;
        weights.nodes[flow.dst.index()] += frames;
    }
    if refused.is_empty() { Ok(weights) } else { Err(refused) }
}

/// The kernel of a part or a shard.
type PartKernel<'k, 's, R> = Kernel<'k, Ps<'s, R>, Logs>;

/// A run with several kernels.
struct Run<'k, 's, 'c, 'w, R: Router> {
    scenario: &'s Scenario,
    cut: Cut,
    threads: usize,
    pool: ThreadPool,
    kernels: Vec<PartKernel<'k, 's, R>>,
    traffic: Traffic<'s>,
    /// What has completed later than some kernel has come.
    held_back: Vec<Completion>,
    /// If the kernels are shards.
    windows: Option<Windows<'k>>,
    /// If the kernels memoise.
    epochs: Option<Epochs<'c, 'w>>,
    /// Nothing is left to happen before the stop time, but after it.
    is_at_stop: bool,
    setup: Duration,
    cpu: Duration,
    begun: Instant,
}

/// Why a round is over. Of several kernels that are apart, the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RoundEnd {
    /// Nothing is left to happen.
    Idle,
    /// Nothing is left to happen before the stop time.
    StopTime,
    /// It has lasted long enough.
    Time,
    /// One kernel has to do it.
    GiveUp,
}

/// What has come of a kernel's round.
struct KernelRound {
    end: RoundEnd,
    completions: Vec<Completion>,
    cpu: Duration,
}

impl KernelRound {
    /// Lets a kernel have a round; `round` says why it is over, and keeps what completes.
    fn of(round: impl FnOnce(&mut Vec<Completion>) -> RoundEnd) -> KernelRound {
        let (cpu, mut completions) = (CpuClock::start(), Vec::new());
        let end = round(&mut completions);
        KernelRound { end, completions, cpu: cpu.elapsed() }
    }
}

impl<R: Router + Send> Run<'_, '_, '_, '_, R> {
    /// Runs until it is clear how the run ends; `None` if one kernel has to do it.
    fn run_to_end(&mut self, watch: &mut dyn Watch) -> Option<Ending> {
        loop {
            let end = self.round();
            self.is_at_stop = end == RoundEnd::StopTime;
            let totals = self.totals();
            // See the kernel's `shard`: receivers do not know of ends.
            let repeats = self.windows.is_some() && totals.drops + totals.timeouts > 0;
            if end == RoundEnd::GiveUp || repeats {
                return None;
            }
            if watch.progress(self.progress(&totals)).is_break() {
                return Some(Ending::Interrupted);
            }
            match end {
                RoundEnd::Idle | RoundEnd::StopTime if self.traffic.is_done() => return Some(Ending::Done),
                // Whether it is a deadlock is for one kernel to say.
                RoundEnd::Idle => return None,
                RoundEnd::StopTime => return Some(Ending::StopTime),
                RoundEnd::Time | RoundEnd::GiveUp => {}
            }
            if watch.wants_interim() {
                watch.interim(&self.outcome(Ending::Running));
            }
        }
    }

    /// Runs all kernels for a while.
    fn round(&mut self) -> RoundEnd {
        let stop = self.scenario.stop;
        let rounds = match &mut self.windows {
            None => apart::round(&self.pool, &mut self.kernels, self.epochs.as_mut(), stop),
            Some(windows) => windows.round(&mut self.kernels, &self.cut.owners, stop),
        };
        self.cpu += rounds.iter().map(|round| round.cpu).sum::<Duration>();
        self.held_back.extend(rounds.iter().flat_map(|round| &round.completions));
        let goes_on = rounds.iter().zip(&self.kernels).filter(|(round, _)| round.end == RoundEnd::Time);
        let known = goes_on.map(|(_, kernel)| kernel.now()).min().unwrap_or(SimTime::MAX);
        self.take_completions(known);
        rounds.iter().map(|round| round.end).max().unwrap_or(RoundEnd::Idle)
    }

    /// Takes what has completed before `known`, in order of time: kernels have not come equally far.
    fn take_completions(&mut self, known: SimTime) {
        let end = |completion: &Completion| completion.start + completion.fct;
        self.held_back.sort_by_key(end);
        let whole = self.held_back.partition_point(|completion| end(completion) < known);
        self.held_back.drain(..whole).for_each(|completion| self.traffic.take(completion));
    }

    fn totals(&self) -> Totals {
        self.kernels.iter().map(Kernel::totals).fold(Totals::default(), |sum, of| Totals {
            events: sum.events + of.events,
            packet_hops: sum.packet_hops + of.packet_hops,
            drops: sum.drops + of.drops,
            ecn_marks: sum.ecn_marks + of.ecn_marks,
            pauses: sum.pauses + of.pauses,
            flows_finished: sum.flows_finished + of.flows_finished,
            flows_given_up: sum.flows_given_up + of.flows_given_up,
            timeouts: sum.timeouts + of.timeouts,
        })
    }

    fn skipped(&self) -> Skipped {
        self.kernels.iter().map(Kernel::skipped).fold(Skipped::default(), |sum, of| Skipped {
            events: sum.events + of.events,
            time_exact: sum.time_exact + of.time_exact,
            time_bounded: sum.time_bounded + of.time_bounded,
            partitions_max: sum.partitions_max + of.partitions_max,
            wakes: sum.wakes + of.wakes,
            skip_backs: sum.skip_backs + of.skip_backs,
            contested: sum.contested + of.contested,
            buffer_couplings: sum.buffer_couplings + of.buffer_couplings,
        })
    }

    fn memoised(&self) -> Memoised {
        self.kernels.iter().map(Kernel::memoised).fold(Memoised::default(), |sum, of| Memoised {
            hits: sum.hits + of.hits,
            misses: sum.misses + of.misses,
            followers: sum.followers + of.followers,
            refused: sum.refused + of.refused,
            unkept: sum.unkept + of.unkept,
            checked: sum.checked + of.checked,
            mismatches: sum.mismatches + of.mismatches,
            mismatch: if sum.mismatches > 0 { sum.mismatch } else { of.mismatch },
            distinct: sum.distinct + of.distinct,
            instances: sum.instances + of.instances,
            time: sum.time + of.time,
        })
    }

    fn now(&self) -> SimTime {
        self.kernels.iter().map(Kernel::now).max().unwrap_or(SimTime::ZERO)
    }

    fn progress(&self, totals: &Totals) -> Progress {
        Progress {
            now: self.now(),
            flows: self.traffic.ended(),
            flows_begun: self.traffic.begun(),
            done: self.traffic.share_done(),
            events: totals.events,
            events_skipped: self.skipped().events,
            memo_hits: self.memoised().hits,
        }
    }

    /// What the run has shown. Every port's counters are those of the kernel that owns it.
    fn outcome(&mut self, ending: Ending) -> Outcome {
        if ending != Ending::Running {
            // What is parked at the stop time has counted nothing since.
            self.kernels.iter_mut().for_each(Kernel::wake_all);
        }
        let fabric = self.kernels[0].fabric();
        let port = |port| {
            let info = *fabric.port(port);
            let owner = &self.kernels[usize::from(self.cut.owners[info.node.index()])];
            PortReport { info, neighbour: fabric.neighbour(port), stats: owner.port_stats(port) }
        };
        let logs = || self.kernels.iter().map(|kernel| &kernel.observer);
        let mut skips = SkipLog::from(self.scenario.start());
        logs().for_each(|(_, of)| skips.time.merge(&of.time));
        Outcome {
            flows: self.traffic.records().clone(),
            flows_begun: self.traffic.begun(),
            jobs: Vec::new(),
            totals: self.totals(),
            skipped: self.skipped(),
            memo: MemoReport { counts: self.memoised(), bytes: 0 },
            ports: fabric.ports().map(port).collect(),
            pfc: sorted_pfc(logs().flat_map(|(pfc, _)| &pfc.rows).copied().collect()),
            skips,
            end: if self.is_at_stop { self.scenario.stop } else { self.now() },
            ending,
            threads: self.threads.min(self.kernels.len()),
            setup: self.setup,
            cpu: self.cpu,
            wall: self.begun.elapsed(),
        }
    }
}

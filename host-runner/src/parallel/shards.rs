//! A run in shards: kernels that each simulate some nodes, window by window (see the kernel's module `shard`).

use super::cut::{Cut, Weights};
use crate::cpu::CpuClock;
use crate::memo::MemoReport;
use crate::outputs::sorted_pfc;
use crate::scenario::{Routing, Scenario};
use crate::simulate::{
    Ending, Logs, Outcome, PortReport, Progress, Refusal, Watch, kernel, limits, logs, memory, ps_models,
};
use crate::traffic::Traffic;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError, RwLock, RwLockReadGuard};
use std::time::{Duration, Instant};
use wormhole_kernel::accel::Skipped;
use wormhole_kernel::event::EventKey;
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::shard::{Departure, MOST_SHARDS, ShardLimits, rank_events};
use wormhole_kernel::{Completion, Kernel, ModelSet, Models, NodeId, SimTime, Span};
use wormhole_models::router::{Ecmp, EcmpHash, Spray};

/// Events between two looks at the clock, where shards do not wait for each other.
const SLICE: u64 = 1 << 16;
/// Whoever watches hears of the run this often.
const ROUND: Duration = Duration::from_millis(100);
/// Windows are made shorter if more events than this are in one: they stay in the processor's caches then.
const MANY_EVENTS: usize = 1 << 17;
/// So many windows are simulated before it is judged whether they hold enough.
const TRIAL: u64 = 4_096;
/// Fewer events a shard and window are not worth the threads' waiting for each other.
const FEW_EVENTS: u64 = 100;
/// What a window may hold. Memory is only used as it is touched.
const LIMITS: ShardLimits = ShardLimits { events: 1 << 21, departures: 1 << 19, timers: 1 << 21 };
/// Flows at most: every shard has all of them, and keeps them.
const MOST_FLOWS: usize = 1 << 17;

/// Runs a scenario in a shard for each thread. `None` if that is not worth while, or something has come up that only one
/// kernel can simulate.
///
/// # Errors
/// Everything the kernel refuses.
pub(super) fn simulate(scenario: &Scenario, watch: &mut dyn Watch) -> Result<Option<Outcome>, Vec<Refusal>> {
    if scenario.flows.len() > MOST_FLOWS {
        return Ok(None);
    }
    match scenario.routing {
        Routing::Ecmp => {
            let models = || ps_models(scenario, Ecmp::new(EcmpHash::Salted(scenario.seed)));
            run(scenario, &mut Vec::new(), models, watch)
        }
        Routing::Spray => run(scenario, &mut Vec::new(), || ps_models(scenario, Spray::new(scenario.seed)), watch),
    }
}

/// Memory of a shard: of its kernel, and of what it is besides.
type Memory = (Vec<u64>, Vec<u64>);

fn run<'m, M: Models + 'm>(
    scenario: &'m Scenario,
    memories: &'m mut Vec<Memory>,
    models: impl Fn() -> ModelSet<'m, M>,
    watch: &mut dyn Watch,
) -> Result<Option<Outcome>, Vec<Refusal>>
where
    Kernel<'m, M, Logs>: Send,
{
    let count = scenario.threads.min(MOST_SHARDS);
    let limits = limits(scenario);
    for _ in 0..count {
        let words = Kernel::<M, Logs>::shard_words(scenario.nodes.len(), &LIMITS);
        memories.push((memory::<M, Logs>(scenario, &limits, &models()), vec![0; words]));
    }
    let (mut kernels, mut shard_words) = (Vec::new(), Vec::new());
    for (words, of_shard) in memories {
        kernels.push(kernel(scenario, words, models(), &limits, logs(scenario))?);
        shard_words.push(of_shard);
    }
    let weights = weights(scenario, &mut kernels[0])?;
    let cut = Cut::new(&scenario.links, &weights, count);
    let mut traffic = Traffic::new(scenario);
    for ((index, kernel), words) in (0..).zip(&mut kernels).zip(shard_words) {
        let owns = |node: NodeId| cut.owners[node.index()] == index;
        match cut.lookahead {
            // Every kernel has what happens at its nodes, and that is all that it would ever know.
            None => traffic.add_some(kernel, |flow| owns(flow.src))?,
            Some(_) => {
                traffic.add_some(kernel, |_| true)?;
                if kernel.become_shard(words, &LIMITS, owns).is_err() {
                    return Ok(None);
                }
            }
        }
    }
    let mut run = Run {
        scenario,
        cut,
        kernels,
        traffic,
        width: Span(1),
        windows: 0,
        is_at_stop: false,
        cpu: Duration::ZERO,
        begun: Instant::now(),
    };
    Ok(run.to_the_end(watch).map(|ending| run.outcome(ending)))
}

/// The frames that the flows of the list put on nodes and links.
fn weights<M: Models>(scenario: &Scenario, kernel: &mut Kernel<'_, M, Logs>) -> Result<Weights, Vec<Refusal>> {
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
    }
    if refused.is_empty() { Ok(weights) } else { Err(refused) }
}

/// A run in shards.
struct Run<'m, M: Models + 'm> {
    scenario: &'m Scenario,
    cut: Cut,
    kernels: Vec<Kernel<'m, M, Logs>>,
    traffic: Traffic<'m>,
    /// Length of a window, no longer than the lookahead.
    width: Span,
    /// Windows so far.
    windows: u64,
    /// Nothing is left to happen before the stop time, but after it.
    is_at_stop: bool,
    cpu: Duration,
    begun: Instant,
}

/// Why a round is over. Of several shards that are apart, the last of these counts.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum RoundEnd {
    /// Nothing is left to happen.
    Idle,
    /// Nothing is left to happen before the stop time.
    StopTime,
    /// It has lasted long enough.
    Time,
    /// Shards are of no use here.
    GiveUp,
}

impl<'m, M: Models + 'm> Run<'m, M>
where
    Kernel<'m, M, Logs>: Send,
{
    /// Runs until it is clear how the run ends; `None` if one kernel has to do it.
    fn to_the_end(&mut self, watch: &mut dyn Watch) -> Option<Ending> {
        loop {
            let end = self.round();
            self.is_at_stop = end == RoundEnd::StopTime;
            let totals = self.totals();
            if end == RoundEnd::GiveUp || totals.drops > 0 || totals.timeouts > 0 {
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

    /// Runs all shards side by side for a while.
    fn round(&mut self) -> RoundEnd {
        let shared = &Shared::new(self.kernels.len());
        let plan = Plan {
            owners: &self.cut.owners,
            lookahead: self.cut.lookahead,
            stop: self.scenario.stop,
            until: Instant::now() + ROUND,
        };
        let (width, windows) = (self.width, self.windows);
        let ends: Vec<ShardEnd> = std::thread::scope(|scope| {
            let start = |(index, kernel)| {
                let shard = ShardRun { index, kernel, plan, shared, width, windows, completions: Vec::new() };
                scope.spawn(move || shard.round())
            };
            let threads: Vec<_> = self.kernels.iter_mut().enumerate().map(start).collect();
            // A panic of a shard is a panic of the run.
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
        });
        for end in &ends {
            self.cpu += end.cpu;
            end.completions.iter().for_each(|&completion| self.traffic.take(completion));
        }
        (self.width, self.windows) = (ends[0].width, ends[0].windows);
        ends.iter().map(|end| end.end).max().unwrap_or(RoundEnd::Idle)
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
            events_skipped: 0,
            memo_hits: 0,
        }
    }

    /// What the run has shown. Every port's counters are those of the shard that owns it.
    fn outcome(&self, ending: Ending) -> Outcome {
        let fabric = self.kernels[0].fabric();
        let port = |port| {
            let info = *fabric.port(port);
            let owner = &self.kernels[usize::from(self.cut.owners[info.node.index()])];
            PortReport { info, neighbour: fabric.neighbour(port), stats: owner.port_stats(port) }
        };
        Outcome {
            flows: self.traffic.records(),
            flows_begun: self.traffic.begun(),
            jobs: Vec::new(),
            totals: self.totals(),
            skipped: Skipped::default(),
            memo: MemoReport::default(),
            ports: fabric.ports().map(port).collect(),
            pfc: sorted_pfc(self.kernels.iter().flat_map(|kernel| &kernel.observer.0.rows).copied().collect()),
            skips: self.kernels[0].observer.1.clone(),
            end: if self.is_at_stop { self.scenario.stop } else { self.now() },
            ending,
            threads: self.kernels.len(),
            cpu: self.cpu,
            wall: self.begun.elapsed(),
        }
    }
}

/// What shards tell each other.
struct Shared {
    barrier: Barrier,
    exchanges: Vec<Exchange>,
    /// The round is to end.
    pauses: AtomicBool,
    gives_up: AtomicBool,
}

/// What one shard tells the others.
#[derive(Default)]
struct Exchange {
    /// When something happens there next.
    next: AtomicU64,
    window: RwLock<Window>,
}

/// What has happened in a shard in a window.
#[derive(Default)]
struct Window {
    log: Vec<EventKey>,
    departures: Vec<Departure>,
}

impl Shared {
    fn new(shards: usize) -> Shared {
        Shared {
            barrier: Barrier::new(shards),
            exchanges: (0..shards).map(|_| Exchange::default()).collect(),
            pauses: AtomicBool::new(false),
            gives_up: AtomicBool::new(false),
        }
    }

    /// When something happens next in any shard.
    fn next(&self) -> u64 {
        self.exchanges.iter().map(|exchange| exchange.next.load(Ordering::Acquire)).min().unwrap_or(u64::MAX)
    }

    fn windows(&self) -> Vec<RwLockReadGuard<'_, Window>> {
        // Whoever panics with a window in hand ends the run.
        self.exchanges.iter().map(|exchange| exchange.window.read().unwrap_or_else(PoisonError::into_inner)).collect()
    }
}

/// What all shards know of a round.
#[derive(Clone, Copy)]
struct Plan<'p> {
    owners: &'p [u8],
    lookahead: Option<Span>,
    stop: SimTime,
    until: Instant,
}

/// A shard in a round.
struct ShardRun<'s, 'm, M: Models + 'm> {
    index: usize,
    kernel: &'s mut Kernel<'m, M, Logs>,
    plan: Plan<'s>,
    shared: &'s Shared,
    width: Span,
    windows: u64,
    completions: Vec<Completion>,
}

/// What has come of a shard's round.
struct ShardEnd {
    end: RoundEnd,
    completions: Vec<Completion>,
    width: Span,
    windows: u64,
    cpu: Duration,
}

impl<M: Models> ShardRun<'_, '_, M> {
    fn round(mut self) -> ShardEnd {
        let cpu = CpuClock::start();
        let end = match self.plan.lookahead {
            None => self.run_apart(),
            Some(lookahead) => self.run_windows(lookahead),
        };
        let ShardRun { completions, width, windows, .. } = self;
        ShardEnd { end, completions, width, windows, cpu: cpu.elapsed() }
    }

    /// Nothing comes from elsewhere.
    fn run_apart(&mut self) -> RoundEnd {
        loop {
            match self.kernel.next_event_time() {
                None => return RoundEnd::Idle,
                Some(next) if next > self.plan.stop => return RoundEnd::StopTime,
                Some(_) if Instant::now() >= self.plan.until => return RoundEnd::Time,
                Some(_) => {}
            }
            let step = self.kernel.run_bounded(self.plan.stop, SLICE);
            self.collect();
            match step {
                Ok(Step::Stalled) | Err(_) => return RoundEnd::GiveUp,
                Ok(_) => {}
            }
        }
    }

    fn collect(&mut self) {
        self.completions.extend(std::iter::from_fn(|| self.kernel.poll_completion()));
    }

    fn run_windows(&mut self, lookahead: Span) -> RoundEnd {
        let mut ranks = vec![Vec::new(); self.shared.exchanges.len()];
        loop {
            // All shards decide alike: by what all of them have told.
            match self.next_window(lookahead) {
                Ok(end) => self.simulate(end),
                Err(end) => return end,
            }
            self.settle(lookahead, &mut ranks);
        }
    }

    /// The end of the next window, if the round goes on.
    fn next_window(&mut self, lookahead: Span) -> Result<SimTime, RoundEnd> {
        let next = self.kernel.next_event_time().map_or(u64::MAX, |at| at.0);
        self.shared.exchanges[self.index].next.store(next, Ordering::Release);
        if self.index == 0 && Instant::now() >= self.plan.until {
            self.shared.pauses.store(true, Ordering::Release);
        }
        self.shared.barrier.wait();
        let start = SimTime(self.shared.next());
        let end = if self.shared.gives_up.load(Ordering::Acquire) {
            RoundEnd::GiveUp
        } else if start == SimTime::MAX {
            RoundEnd::Idle
        } else if start > self.plan.stop {
            RoundEnd::StopTime
        } else if self.shared.pauses.load(Ordering::Acquire) {
            RoundEnd::Time
        } else {
            let after_stop = SimTime(self.plan.stop.0.saturating_add(1));
            return Ok((start + self.width.min(lookahead)).min(after_stop));
        };
        Err(end)
    }

    /// Simulates a window, and tells the others what has happened.
    fn simulate(&mut self, end: SimTime) {
        loop {
            let step = self.kernel.run_window(end);
            self.collect();
            match step {
                Ok(Step::OutputFull) => {}
                Ok(_) => break,
                Err(_) => {
                    self.shared.gives_up.store(true, Ordering::Release);
                    break;
                }
            }
        }
        let window = &self.shared.exchanges[self.index].window;
        let mut window = window.write().unwrap_or_else(PoisonError::into_inner);
        window.log.clear();
        window.log.extend_from_slice(self.kernel.window_log());
        window.departures.clear();
        window.departures.extend_from_slice(self.kernel.departures());
        drop(window);
        self.shared.barrier.wait();
    }

    /// Ends a window: learns what the others have done in it.
    fn settle(&mut self, lookahead: Span, ranks: &mut [Vec<u32>]) {
        let windows = self.shared.windows();
        let logs: Vec<&[EventKey]> = windows.iter().map(|window| &window.log[..]).collect();
        for (ranks, log) in ranks.iter_mut().zip(&logs) {
            ranks.resize(log.len(), 0);
        }
        rank_events(&logs, &mut ranks.iter_mut().map(|ranks| &mut ranks[..]).collect::<Vec<_>>());
        self.kernel.close_window(&ranks[self.index]);
        let mut arrivals = Vec::new();
        for (window, ranks) in windows.iter().zip(&*ranks) {
            let here = |departure: &&Departure| {
                let node = self.kernel.fabric().port(departure.ingress()).node;
                usize::from(self.plan.owners[node.index()]) == self.index
            };
            arrivals.extend(window.departures.iter().filter(here).map(|departure| departure.arrival(ranks)));
        }
        arrivals.sort_unstable_by_key(|arrival| arrival.key);
        if self.kernel.receive(&arrivals).is_err() {
            self.shared.gives_up.store(true, Ordering::Release);
        }
        self.adapt(lookahead, &logs);
    }

    /// Sets the length of the next window by the events of this one.
    fn adapt(&mut self, lookahead: Span, logs: &[&[EventKey]]) {
        self.windows += 1;
        let most = logs.iter().map(|log| log.len()).max().unwrap_or(0);
        if most > MANY_EVENTS {
            self.width = Span(self.width.0 / 2).max(Span(1));
        } else if most < MANY_EVENTS / 4 {
            self.width = Span(self.width.0.saturating_mul(2)).min(lookahead);
        }
        if self.index == 0 && self.windows == TRIAL && self.kernel.totals().events / TRIAL < FEW_EVENTS {
            self.shared.gives_up.store(true, Ordering::Release);
        }
    }
}

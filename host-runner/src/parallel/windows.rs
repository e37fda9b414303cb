//! Shards side by side, window by window (see the kernel's module `shard`).

use super::{KernelRound, PartKernel, ROUND, RoundEnd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Barrier, PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;
use wormhole_kernel::event::EventKey;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::router::Router;
use wormhole_kernel::shard::{Departure, rank_events};
use wormhole_kernel::{Completion, SimTime, Span};

/// Windows are made shorter if more events than this are in one: they stay in the processor's caches then.
const MANY_EVENTS: usize = 1 << 17;
/// So many windows are simulated before it is judged whether they hold enough.
const TRIAL: u64 = 4_096;
/// Fewer events a shard and window are not worth the threads' waiting for each other.
const FEW_EVENTS: u64 = 100;

/// How long windows are, and how many there were.
#[derive(Clone, Copy)]
pub(super) struct Windows {
    /// No longer than the lookahead.
    width: Span,
    count: u64,
}

impl Windows {
    /// The first windows are short: what they hold is not known.
    pub(super) fn new() -> Windows {
        Windows { width: Span(1), count: 0 }
    }

    /// Runs all shards side by side for a while, each on a thread of its own.
    pub(super) fn round<R: Router + Send>(
        &mut self,
        kernels: &mut [PartKernel<'_, '_, R>],
        owners: &[u8],
        lookahead: Span,
        stop: SimTime,
    ) -> Vec<KernelRound> {
        let shared = &Shared::new(kernels.len());
        let plan = Plan { owners, lookahead, stop, until: Instant::now() + ROUND };
        let windows = *self;
        let ends: Vec<(KernelRound, Windows)> = std::thread::scope(|scope| {
            let start = |(index, kernel)| {
                scope.spawn(move || {
                    let mut windows = windows;
                    let round = KernelRound::of(|completions| {
                        Shard { index, kernel, plan, shared, windows: &mut windows, completions }.round()
                    });
                    (round, windows)
                })
            };
            let threads: Vec<_> = kernels.iter_mut().enumerate().map(start).collect();
            // A panic of a shard is a panic of the run.
            threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| std::panic::resume_unwind(e))).collect()
        });
        *self = ends[0].1;
        ends.into_iter().map(|(round, _)| round).collect()
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
    lookahead: Span,
    stop: SimTime,
    until: Instant,
}

/// A shard in a round.
struct Shard<'r, 'k, 's, R: Router> {
    index: usize,
    kernel: &'r mut PartKernel<'k, 's, R>,
    plan: Plan<'r>,
    shared: &'r Shared,
    windows: &'r mut Windows,
    completions: &'r mut Vec<Completion>,
}

impl<R: Router> Shard<'_, '_, '_, R> {
    fn round(&mut self) -> RoundEnd {
        let mut ranks = vec![Vec::new(); self.shared.exchanges.len()];
        loop {
            // All shards decide alike: by what all of them have told.
            match self.next_window() {
                Ok(end) => self.simulate(end),
                Err(end) => return end,
            }
            self.settle(&mut ranks);
        }
    }

    /// The end of the next window, if the round goes on.
    fn next_window(&mut self) -> Result<SimTime, RoundEnd> {
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
            return Ok((start + self.windows.width.min(self.plan.lookahead)).min(after_stop));
        };
        Err(end)
    }

    /// Simulates a window, and tells the others what has happened.
    fn simulate(&mut self, end: SimTime) {
        loop {
            let step = self.kernel.run_window(end);
            self.completions.extend(std::iter::from_fn(|| self.kernel.poll_completion()));
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
    fn settle(&mut self, ranks: &mut [Vec<u32>]) {
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
        self.adapt(&logs);
    }

    /// Sets the length of the next window by the events of this one.
    fn adapt(&mut self, logs: &[&[EventKey]]) {
        let Windows { width, count } = self.windows;
        *count += 1;
        let most = logs.iter().map(|log| log.len()).max().unwrap_or(0);
        if most > MANY_EVENTS {
            *width = Span(width.0 / 2).max(Span(1));
        } else if most < MANY_EVENTS / 4 {
            *width = Span(width.0.saturating_mul(2)).min(self.plan.lookahead);
        }
        if self.index == 0 && *count == TRIAL && self.kernel.totals().events / TRIAL < FEW_EVENTS {
            self.shared.gives_up.store(true, Ordering::Release);
        }
    }
}

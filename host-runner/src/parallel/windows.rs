//! Shards side by side, window by window (see the kernel's module `shard`).

use super::barrier::{Barrier, Broken};
use super::{KernelRound, PartKernel, ROUND, RoundEnd};
use std::panic::resume_unwind;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;
use wormhole_kernel::event::EventKey;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::router::Router;
use wormhole_kernel::shard::{Departure, rank_events};
use wormhole_kernel::{Completion, SimTime, Span};

/// Windows are made shorter if more events than this are in one: they stay in the processor's caches then.
const MANY_EVENTS: usize = 1 << 17;
/// So many windows are simulated before it is judged whether they hold enough.
const TRIAL: u64 = 1_024;
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

    /// Runs all shards side by side for a while: the first one here, the others each on a thread of its own.
    pub(super) fn round<R: Router + Send>(
        &mut self,
        kernels: &mut [PartKernel<'_, '_, R>],
        owners: &[u8],
        lookahead: Span,
        stop: SimTime,
    ) -> Vec<KernelRound> {
        let barrier = &Barrier::new(kernels.len());
        let exchanges = &(0..kernels.len()).map(|_| Exchange::default()).collect::<Vec<_>>();
        let start = kernels.iter().filter_map(|kernel| kernel.next_event_time()).min().unwrap_or(SimTime::MAX);
        let plan = Plan { owners, lookahead, stop, until: Instant::now() + ROUND };
        let windows = *self;
        let run = |(index, kernel): (usize, _)| {
            let _breaker = barrier.breaks_in_a_panic();
            let mut windows = windows;
            let round = KernelRound::of(|completions| {
                let windows = &mut windows;
                Shard { index, kernel, plan, barrier, exchanges, windows, completions }.round(start)
            });
            (round, windows)
        };
        let ends: Vec<(KernelRound, Windows)> = std::thread::scope(|scope| {
            let mut shards = kernels.iter_mut().enumerate();
            let first = shards.next();
            let threads: Vec<_> = shards.map(|shard| scope.spawn(move || run(shard))).collect();
            // A thread that has nothing to do but wait for others makes it harder to find a processor for each of them.
            let first = first.map(run);
            // A panic of a shard is a panic of the run.
            let others = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| resume_unwind(e)));
            first.into_iter().chain(others).collect()
        });
        *self = ends[0].1;
        ends.into_iter().map(|(round, _)| round).collect()
    }
}

/// What one shard tells the others: of the present window, while some may still read of the one before.
type Exchange = [RwLock<Window>; 2];

/// What has happened in a shard in a window.
#[derive(Default)]
struct Window {
    log: Vec<EventKey>,
    departures: Vec<Departure>,
    /// When the next event is that has come of this window or of earlier ones.
    next: SimTime,
    /// Why the round should be over.
    ends: Option<RoundEnd>,
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
    barrier: &'r Barrier,
    exchanges: &'r [Exchange],
    windows: &'r mut Windows,
    completions: &'r mut Vec<Completion>,
}

impl<R: Router> Shard<'_, '_, '_, R> {
    /// Simulates window by window. All shards decide alike: by what all of them have told.
    fn round(&mut self, start: SimTime) -> RoundEnd {
        let mut ranks = vec![Vec::new(); self.exchanges.len()];
        let (mut start, mut gives_up) = (start, false);
        let end = loop {
            let Plan { lookahead, stop, .. } = self.plan;
            if start == SimTime::MAX {
                break RoundEnd::Idle;
            }
            if start > stop {
                break RoundEnd::StopTime;
            }
            let after_stop = SimTime(stop.0.saturating_add(1));
            self.simulate((start + self.windows.width.min(lookahead)).min(after_stop), gives_up);
            // Whoever waits for the others hears of their panic when this round is over.
            if self.barrier.wait() == Err(Broken) {
                break RoundEnd::GiveUp;
            }
            let windows = told(self.exchanges, self.windows.count);
            let ends = windows.iter().filter_map(|window| window.ends).max();
            if ends == Some(RoundEnd::GiveUp) {
                break RoundEnd::GiveUp;
            }
            gives_up = !self.settle(&windows, &mut ranks);
            if let Some(end) = ends {
                break end;
            }
            start = windows.iter().map(|window| window.next).min().unwrap_or(SimTime::MAX);
        };
        // What is to be told in a next window that does not come is told all the same.
        if gives_up { RoundEnd::GiveUp } else { end }
    }

    /// Simulates a window, and tells the others what has happened.
    fn simulate(&mut self, end: SimTime, gives_up: bool) {
        let is_cut_short = loop {
            let step = self.kernel.run_window(end);
            self.completions.extend(std::iter::from_fn(|| self.kernel.poll_completion()));
            match step {
                Ok(Step::OutputFull) => {}
                other => break other.is_err(),
            }
        };
        let is_late = self.index == 0 && Instant::now() >= self.plan.until;
        let window = turn(&self.exchanges[self.index], self.windows.count);
        let mut window = window.write().unwrap_or_else(PoisonError::into_inner);
        window.log.clear();
        window.log.extend_from_slice(self.kernel.window_log());
        window.departures.clear();
        window.departures.extend_from_slice(self.kernel.departures());
        let next = window.departures.iter().map(Departure::at).chain(self.kernel.next_event_time()).min();
        window.next = next.unwrap_or(SimTime::MAX);
        let is_lost = is_cut_short || gives_up;
        window.ends = is_lost.then_some(RoundEnd::GiveUp).or(is_late.then_some(RoundEnd::Time));
    }

    /// Ends a window with what the others have done in it. False if one kernel should do the rest.
    fn settle(&mut self, windows: &[RwLockReadGuard<'_, Window>], ranks: &mut [Vec<u32>]) -> bool {
        let logs: Vec<&[EventKey]> = windows.iter().map(|window| &window.log[..]).collect();
        for (ranks, log) in ranks.iter_mut().zip(&logs) {
            ranks.resize(log.len(), 0);
        }
        rank_events(&logs, &mut ranks.iter_mut().map(|ranks| &mut ranks[..]).collect::<Vec<_>>());
        self.kernel.close_window(&ranks[self.index]);
        let mut arrivals = Vec::new();
        let others = windows.iter().zip(&*ranks).enumerate().filter(|(shard, _)| *shard != self.index);
        for (_, (window, ranks)) in others {
            let here = |departure: &&Departure| {
                let node = self.kernel.fabric().port(departure.ingress()).node;
                usize::from(self.plan.owners[node.index()]) == self.index
            };
            arrivals.extend(window.departures.iter().filter(here).map(|departure| departure.arrival(ranks)));
        }
        arrivals.sort_by_key(|arrival| arrival.key);
        let has_room = self.kernel.receive(&arrivals).is_ok();
        self.adapt(logs.iter().map(|log| log.len()).max().unwrap_or(0));
        has_room && self.is_of_use()
    }

    /// Sets the length of the next window by the most events that a shard has had in this one.
    fn adapt(&mut self, most: usize) {
        let Windows { width, count } = self.windows;
        *count += 1;
        if most > MANY_EVENTS {
            *width = Span(width.0 / 2).max(Span(1));
        } else if most < MANY_EVENTS / 4 {
            *width = Span(width.0.saturating_mul(2)).min(self.plan.lookahead);
        }
    }

    /// Whether windows hold enough, as far as is known.
    fn is_of_use(&self) -> bool {
        self.index != 0 || self.windows.count != TRIAL || self.kernel.totals().events / TRIAL >= FEW_EVENTS
    }
}

/// What a shard tells of the `count`th window.
fn turn(exchange: &Exchange, count: u64) -> &RwLock<Window> {
    &exchange[count as usize % exchange.len()]
}

/// What all shards have told of the `count`th window.
fn told(exchanges: &[Exchange], count: u64) -> Vec<RwLockReadGuard<'_, Window>> {
    // Whoever panics with a window in hand ends the run.
    exchanges.iter().map(|of| turn(of, count).read().unwrap_or_else(PoisonError::into_inner)).collect()
}

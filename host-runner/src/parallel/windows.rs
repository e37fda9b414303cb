//! Shards side by side, window by window (see the kernel's module `shard`).

use super::milestones::{Broken, Milestones};
use super::{KernelRound, PartKernel, ROUND, RoundEnd, WINDOW_LIMITS};
use std::panic::resume_unwind;
use std::sync::{PoisonError, RwLock, RwLockReadGuard};
use std::time::Instant;
use wormhole_kernel::error::CapacityError;
use wormhole_kernel::event::EventKey;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::router::Router;
use wormhole_kernel::shard::{Arrival, Departure, Window, rank_events};
use wormhole_kernel::{Completion, SimTime, Span};

/// Windows are made shorter if more events than this are in one: they stay in the processor's caches then.
const MANY_EVENTS: usize = 1 << 16;
/// So many windows are simulated before it is judged whether they hold enough.
const TRIAL: u64 = 2_048;
/// Fewer events a shard and window are not worth the threads' waiting for each other.
const FEW_EVENTS: u64 = 50;

/// Windows of which a shard tells at a time. Who tells of window k has settled window k - 2, so all have told of that
/// one, and before that they have settled window k - 4: nobody reads of it any more.
pub(super) const TOLD: usize = 4;

/// How long windows are, and how many there were. All shards find the same.
#[derive(Clone, Copy)]
struct Pace {
    /// No longer than the widest.
    width: Span,
    count: u64,
}

/// A fabric that is simulated in windows.
pub(super) struct Windows<'k> {
    /// How long a window may be: half the lookahead.
    widest: Span,
    pace: Pace,
    /// Per shard.
    exchanges: Vec<Exchange<'k>>,
}

impl<'k> Windows<'k> {
    /// The first windows are short: what they hold is not known. `memories` are of the shards, zeroed, of
    /// [`Window::words`] each.
    ///
    /// # Errors
    /// [`CapacityError`] if one is too small.
    pub(super) fn new(lookahead: Span, memories: Vec<&'k mut [Vec<u64>; TOLD]>) -> Result<Windows<'k>, CapacityError> {
        let told = |words: &'k mut Vec<u64>| {
            let done = Window::new(words, &WINDOW_LIMITS)?;
            Ok(RwLock::new(Told { done, next: SimTime::MAX, ends: None }))
        };
        let exchange = |memory: &'k mut [Vec<u64>; TOLD]| memory.iter_mut().map(told).collect();
        let exchanges = memories.into_iter().map(exchange).collect::<Result<_, _>>()?;
        Ok(Windows { widest: Span(lookahead.0 / 2), pace: Pace { width: Span(1), count: 0 }, exchanges })
    }

    /// Runs all shards side by side for a while: the first one here, the others each on a thread of its own.
    pub(super) fn round<R: Router + Send>(
        &mut self,
        kernels: &mut [PartKernel<'k, '_, R>],
        owners: &[u8],
        stop: SimTime,
    ) -> Vec<KernelRound> {
        let (widest, pace, exchanges, until) = (self.widest, self.pace, &self.exchanges[..], Instant::now() + ROUND);
        let start = kernels.iter().filter_map(|kernel| kernel.next_event_time()).min().unwrap_or(SimTime::MAX);
        let milestones = &Milestones::new(kernels.len());
        let plan = Plan { owners, widest, start, stop, until, milestones, exchanges };
        let run = |(index, kernel): (usize, _)| {
            let _breaker = milestones.breaks_in_a_panic();
            let mut pace = pace;
            let round = KernelRound::of(|completions| {
                Shard::new(index, kernel, plan, &mut pace, completions).round().unwrap_or(RoundEnd::GiveUp)
            });
            (round, pace)
        };
        let ends: Vec<(KernelRound, Pace)> = std::thread::scope(|scope| {
            let mut shards = kernels.iter_mut().enumerate();
            let first = shards.next();
            let threads: Vec<_> = shards.map(|shard| scope.spawn(move || run(shard))).collect();
            // A thread that has nothing to do but wait for others makes it harder to find a processor for each of them.
            let first = first.map(run);
            // A panic of a shard is a panic of the run.
            let others = threads.into_iter().map(|thread| thread.join().unwrap_or_else(|e| resume_unwind(e)));
            first.into_iter().chain(others).collect()
        });
        self.pace = ends[0].1;
        ends.into_iter().map(|(round, _)| round).collect()
    }
}

/// What one shard tells the others, window by window.
type Exchange<'k> = Vec<RwLock<Told<'k>>>;

/// What has happened in a shard in a window.
struct Told<'k> {
    done: Window<'k>,
    /// When the next event is that has come of this window or of earlier ones.
    next: SimTime,
    /// Why the round should be over.
    ends: Option<RoundEnd>,
}

/// What all shards know of a round.
#[derive(Clone, Copy)]
struct Plan<'p, 'k> {
    owners: &'p [u8],
    widest: Span,
    /// When the first event is.
    start: SimTime,
    stop: SimTime,
    until: Instant,
    milestones: &'p Milestones,
    exchanges: &'p [Exchange<'k>],
}

/// What all shards have told of a window.
#[derive(Clone, Copy)]
struct Known {
    next: SimTime,
    ends: Option<RoundEnd>,
}

impl Known {
    /// Whether the round is over, and why.
    fn end(&self, stop: SimTime) -> Option<RoundEnd> {
        let at_end = match self.next {
            SimTime::MAX => Some(RoundEnd::Idle),
            next => (next > stop).then_some(RoundEnd::StopTime),
        };
        self.ends.filter(|&end| end == RoundEnd::GiveUp).or(at_end).or(self.ends)
    }
}

/// Ranks of a shard's events, of the window that was ranked last and of the one before it.
#[derive(Clone, Default)]
struct Ranks {
    list: Vec<u32>,
    /// How many are of the one before.
    before: usize,
}

impl Ranks {
    /// Makes room for the ranks of the next window.
    fn advance(&mut self, events: usize) {
        self.list.drain(..self.before);
        self.before = self.list.len();
        self.list.resize(self.before + events, 0);
    }

    fn of_last(&self) -> &[u32] {
        &self.list[self.before..]
    }
}

/// A shard in a round.
struct Shard<'r, 'k, 's, R: Router> {
    index: usize,
    kernel: &'r mut PartKernel<'k, 's, R>,
    plan: Plan<'r, 'k>,
    pace: &'r mut Pace,
    completions: &'r mut Vec<Completion>,
    /// Windows of the round that it has simulated, and those of which it has heard what all have done in them.
    simulated: usize,
    settled: usize,
    /// When the last window that was simulated ends.
    end: SimTime,
    /// The first arrival elsewhere of what has departed in it.
    departs: SimTime,
    ranks: Vec<Ranks>,
    /// One kernel should do the rest.
    is_lost: bool,
}

impl<'r, 'k, 's, R: Router> Shard<'r, 'k, 's, R> {
    /// A shard at the beginning of a round.
    fn new(
        index: usize,
        kernel: &'r mut PartKernel<'k, 's, R>,
        plan: Plan<'r, 'k>,
        pace: &'r mut Pace,
        completions: &'r mut Vec<Completion>,
    ) -> Self {
        let ranks = vec![Ranks::default(); plan.exchanges.len()];
        let (simulated, settled, end, departs, is_lost) = (0, 0, plan.start, SimTime::MAX, false);
        Shard { index, kernel, plan, pace, completions, simulated, settled, end, departs, ranks, is_lost }
    }

    /// Simulates window by window, one ahead of what the others are known to have done. All shards decide alike: by
    /// what all of them have told.
    ///
    /// # Errors
    /// [`Broken`]: who waited hears of another's panic when this round is over.
    fn round(mut self) -> Result<RoundEnd, Broken> {
        let mut known = Known { next: self.plan.start, ends: None };
        let end = loop {
            match known.end(self.plan.stop) {
                // Some shard has not simulated the next window.
                Some(RoundEnd::GiveUp) => return Ok(RoundEnd::GiveUp),
                Some(end) => break end,
                None => self.simulate(known.next),
            }
            if self.is_lost {
                return Ok(RoundEnd::GiveUp);
            }
            if self.simulated > 1 {
                known = self.settle()?;
            }
        };
        if self.settled < self.simulated {
            known = self.settle()?;
        }
        let is_lost = self.is_lost || known.ends == Some(RoundEnd::GiveUp);
        Ok(if is_lost { RoundEnd::GiveUp } else { end })
    }

    /// Simulates a window, unless all is lost, and tells the others what has happened. Nothing is pending anywhere
    /// before `next`, as of the end of the window before the last.
    fn simulate(&mut self, next: SimTime) {
        let after_stop = SimTime(self.plan.stop.0.saturating_add(1));
        let width = self.pace.width.min(self.plan.widest);
        self.end = (self.end.max(next) + width).min(after_stop);
        self.is_lost |= self.run_window().is_err();
        let is_late = self.index == 0 && Instant::now() >= self.plan.until;
        let told = turn(&self.plan.exchanges[self.index], self.simulated);
        let mut told = told.write().unwrap_or_else(PoisonError::into_inner);
        self.kernel.close_window(&mut told.done);
        let first_departure = told.done.departures().iter().map(Departure::at).min().unwrap_or(SimTime::MAX);
        let pending = self.kernel.next_event_time().unwrap_or(SimTime::MAX);
        // What has departed in the window before nobody else may have received yet.
        told.next = pending.min(first_departure).min(self.departs);
        told.ends = self.is_lost.then_some(RoundEnd::GiveUp).or(is_late.then_some(RoundEnd::Time));
        self.departs = first_departure;
        self.simulated += 1;
        drop(told);
        self.plan.milestones.pass(self.index);
    }

    fn run_window(&mut self) -> Result<(), CapacityError> {
        while !self.is_lost {
            let step = self.kernel.run_window(self.end)?;
            self.completions.extend(std::iter::from_fn(|| self.kernel.poll_completion()));
            if step != Step::OutputFull {
                break;
            }
        }
        Ok(())
    }

    /// Hears what all have done in the next window that is not settled, and ranks it.
    fn settle(&mut self) -> Result<Known, Broken> {
        let number = self.settled;
        self.settled += 1;
        self.plan.milestones.wait(self.settled)?;
        let told: Vec<RwLockReadGuard<'_, Told<'_>>> = self
            .plan
            .exchanges
            .iter()
            // Whoever panics with a window in hand ends the run.
            .map(|exchange| turn(exchange, number).read().unwrap_or_else(PoisonError::into_inner))
            .collect();
        let logs: Vec<&[EventKey]> = told.iter().map(|told| told.done.log()).collect();
        self.ranks.iter_mut().zip(&logs).for_each(|(ranks, log)| ranks.advance(log.len()));
        rank_events(&logs, &mut self.ranks.iter_mut().map(|ranks| &mut ranks.list[..]).collect::<Vec<_>>());
        self.kernel.keep_ranks(self.ranks[self.index].of_last());
        let has_room = self.kernel.receive(&self.arrivals(&told)).is_ok();
        self.adapt(logs.iter().map(|log| log.len()).max().unwrap_or(0));
        self.is_lost |= !has_room || !self.is_of_use();
        let next = told.iter().map(|told| told.next).min().unwrap_or(SimTime::MAX);
        Ok(Known { next, ends: told.iter().filter_map(|told| told.ends).max() })
    }

    /// What has departed to this shard in the window whose ranks are the last ones, in its order.
    fn arrivals<'t>(&self, told: &'t [RwLockReadGuard<'_, Told<'_>>]) -> Vec<Arrival<'t>> {
        let here = |departure: &&Departure| {
            let node = self.kernel.fabric().port(departure.ingress()).node;
            usize::from(self.plan.owners[node.index()]) == self.index
        };
        let mut arrivals = Vec::new();
        for (told, ranks) in told.iter().zip(&self.ranks) {
            let departures = told.done.departures().iter().filter(here);
            arrivals.extend(departures.map(|departure| departure.arrival(&ranks.list)));
        }
        arrivals.sort_by_key(|arrival| arrival.key);
        arrivals
    }

    /// Sets the length of the next window by the most events that a shard has had in this one.
    fn adapt(&mut self, most: usize) {
        let Pace { width, count } = self.pace;
        *count += 1;
        if most > MANY_EVENTS {
            *width = Span(width.0 / 2).max(Span(1));
        } else if most < MANY_EVENTS / 4 {
            *width = Span(width.0.saturating_mul(2)).min(self.plan.widest);
        }
    }

    /// Whether windows hold enough, as far as is known.
    fn is_of_use(&self) -> bool {
        self.index != 0 || self.pace.count != TRIAL || self.kernel.totals().events / TRIAL >= FEW_EVENTS
    }
}

/// What a shard tells of the `count`th window.
fn turn<'e, 'k>(exchange: &'e Exchange<'k>, count: usize) -> &'e RwLock<Told<'k>> {
    &exchange[count % exchange.len()]
}

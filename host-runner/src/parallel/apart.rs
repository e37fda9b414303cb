//! Parts of a fabric that exchange no traffic: nothing that happens in one is ever heard of in another.

use super::cut::{Cut, Weights, find, join};
use super::{KernelRound, PartKernel, ROUND, RoundEnd};
use crate::memo::CommonStore;
use crate::scenario::Scenario;
use rayon::ThreadPool;
use rayon::prelude::*;
use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::time::Instant;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::router::Router;
use wormhole_kernel::{Completion, SimTime, Span};

/// How much more than its share a kernel may have.
const SLACK: f64 = 0.15;
/// Kernels for parts that are accelerated, at most. Each has a store of records, and the whole fabric in its tables.
const MOST_KERNELS: usize = 16;
/// Events of all kernels in an epoch at most, about: what kernels learn they exchange several times a second.
const EPOCH_EVENTS: u64 = 1 << 20;
/// Events between two looks at the clock.
const SLICE: u64 = 1 << 16;

/// See the module.
pub(super) struct Parts {
    /// Per node: the first node of its part.
    leaders: Vec<usize>,
    /// Per first node: frames; 0 if its part has no traffic.
    frames: Vec<u64>,
    /// Per first node: what its flows are. Parts of equal kind are likely to be simulated alike.
    kinds: Vec<Kind>,
}

/// Per flow: bytes, start as of the first, priority.
type Kind = Vec<(u64, u64, u8)>;

/// The parts of a scenario whose flows keep to their paths.
pub(super) fn parts(scenario: &Scenario, weights: &Weights) -> Parts {
    let nodes = weights.nodes.len();
    let mut leaders: Vec<usize> = (0..nodes).collect();
    for (link, _) in scenario.links.iter().zip(&weights.links).filter(|(_, weight)| **weight > 0) {
        join(&mut leaders, link.a.index(), link.b.index());
    }
    let leaders: Vec<usize> = (0..nodes).map(|node| find(&mut leaders, node)).collect();
    let (mut frames, mut kinds) = (vec![0; nodes], vec![Kind::new(); nodes]);
    for (node, weight) in weights.nodes.iter().enumerate() {
        frames[leaders[node]] += weight;
    }
    for flow in &scenario.flows {
        kinds[leaders[flow.src.index()]].push((flow.bytes, flow.start.0, flow.priority));
    }
    for kind in &mut kinds {
        let begun = kind.iter().map(|(_, start, _)| *start).min().unwrap_or(0);
        kind.iter_mut().for_each(|(_, start, _)| *start -= begun);
        kind.sort_unstable();
    }
    Parts { leaders, frames, kinds }
}

impl Parts {
    /// A kernel for each of so many threads. `None` if some would have much more to do than others.
    pub(super) fn in_equal_shares(&self, threads: usize) -> Option<Cut> {
        let parts = self.with_traffic().map(|part| (self.frames[part], vec![part])).collect();
        let (cut, loads) = self.share_out(parts, threads);
        let share = loads.iter().sum::<u64>() as f64 / threads as f64;
        loads.iter().all(|&load| load as f64 <= share * (1.0 + SLACK)).then_some(cut)
    }

    /// Parts of one kind in one kernel: there they follow each other and use each other's records. `None` if all are of
    /// one kind. The number of threads has no part in it.
    pub(super) fn by_kind(&self) -> Option<Cut> {
        let mut kinds: BTreeMap<&Kind, Vec<usize>> = BTreeMap::new();
        self.with_traffic().for_each(|part| kinds.entry(&self.kinds[part]).or_default().push(part));
        let kernels = kinds.len().min(MOST_KERNELS);
        // One of a kind is simulated, the others follow it.
        let groups = kinds.into_values().map(|parts| (self.frames[parts[0]], parts)).collect();
        (kernels > 1).then(|| self.share_out(groups, kernels).0)
    }

    fn with_traffic(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.frames.len()).filter(|&part| self.frames[part] > 0)
    }

    /// Gives groups of parts, each with its load, to kernels: the largest first, each to whom has least. Gives what
    /// every kernel has to do, too.
    fn share_out(&self, mut groups: Vec<(u64, Vec<usize>)>, kernels: usize) -> (Cut, Vec<u64>) {
        groups.sort_by_key(|(load, parts)| (Reverse(*load), parts[0]));
        let (mut loads, mut of_part) = (vec![0; kernels], vec![0; self.leaders.len()]);
        for (load, parts) in groups {
            let least = (0..kernels).min_by_key(|&kernel| loads[kernel]).unwrap_or(0);
            loads[least] += load;
            parts.into_iter().for_each(|part| of_part[part] = least as u8);
        }
        let owners = self.leaders.iter().map(|&part| of_part[part]).collect();
        (Cut { owners, kernels, lookahead: None }, loads)
    }
}

/// Spans of simulated time after which kernels hear of each other's records.
pub(super) struct Epochs<'c, 'w> {
    store: &'c CommonStore<'w>,
    /// Of the present one.
    end: SimTime,
    width: Span,
    /// Events of all kernels before it.
    events: u64,
}

impl<'c, 'w> Epochs<'c, 'w> {
    /// The first one is short: what it holds is not known.
    pub(super) fn new(store: &'c CommonStore<'w>) -> Epochs<'c, 'w> {
        Epochs { store, end: SimTime::ZERO, width: Span(1), events: 0 }
    }

    /// All kernels have come to the end of an epoch: begins the next one with what happens next. How long it is
    /// depends on what there is to simulate, and not on how long that takes.
    fn next<R: Router>(&mut self, kernels: &[PartKernel<'_, '_, R>]) {
        self.store.exchange();
        let before = std::mem::replace(&mut self.events, kernels.iter().map(|kernel| kernel.totals().events).sum());
        let events = self.events - before;
        if events > EPOCH_EVENTS {
            self.width = Span(self.width.0 / 2).max(Span(1));
        } else if events < EPOCH_EVENTS / 4 {
            self.width = Span(self.width.0.saturating_mul(2));
        }
        let next = kernels.iter().filter_map(|kernel| kernel.next_event_time()).min();
        self.end = next.map_or(self.end, |next| SimTime(next.0.saturating_add(self.width.0)));
    }
}

/// Runs all kernels for a while, as many at a time as there are threads, and no further than to the end of the epoch.
pub(super) fn round<R: Router + Send>(
    pool: &ThreadPool,
    kernels: &mut [PartKernel<'_, '_, R>],
    epochs: Option<&mut Epochs<'_, '_>>,
    stop: SimTime,
) -> Vec<KernelRound> {
    let end = epochs.as_ref().map_or(stop, |epochs| epochs.end.min(stop));
    let round = |kernel| KernelRound::of(|completions| round_of(kernel, end, completions));
    let mut rounds: Vec<KernelRound> = pool.install(|| kernels.par_iter_mut().with_max_len(1).map(round).collect());
    if let Some(epochs) = epochs.filter(|_| end < stop && rounds.iter().all(|round| round.end <= RoundEnd::StopTime)) {
        epochs.next(kernels);
        // There is more to do.
        rounds.iter_mut().filter(|round| round.end == RoundEnd::StopTime).for_each(|round| round.end = RoundEnd::Time);
    }
    rounds
}

fn round_of<R: Router>(
    kernel: &mut PartKernel<'_, '_, R>,
    stop: SimTime,
    completions: &mut Vec<Completion>,
) -> RoundEnd {
    let until = Instant::now() + ROUND;
    loop {
        match kernel.next_event_time() {
            None => return RoundEnd::Idle,
            Some(next) if next > stop => return RoundEnd::StopTime,
            Some(_) if Instant::now() >= until => return RoundEnd::Time,
            Some(_) => {}
        }
        let step = kernel.run_bounded(stop, SLICE);
        completions.extend(std::iter::from_fn(|| kernel.poll_completion()));
        match step {
            Ok(Step::Stalled) | Err(_) => return RoundEnd::GiveUp,
            Ok(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::scenario::Options;

    /// Four pairs of hosts at one switch each, with flows of these bytes from the first to the second of each, and a
    /// spine that nobody uses.
    fn pairs(bytes: [u64; 4]) -> (Scenario, Weights) {
        let mut links: Vec<String> = (0..8).map(|host| format!("{host} {} 100Gbps 1us 0", 8 + host / 2)).collect();
        links.extend((8..12).map(|leaf| format!("{leaf} 12 100Gbps 1us 0")));
        let flows: Vec<String> =
            (0..4).zip(bytes).map(|(pair, bytes)| format!("{} {} 3 100 {bytes} 0", 2 * pair, 2 * pair + 1)).collect();
        let topology = format!("13 5 12\n8 9 10 11 12\n{}\n", links.join("\n"));
        let texts = Texts {
            topology: ("topology", &topology),
            flows: Some(("flows", &format!("4\n{}\n", flows.join("\n")))),
            config: None,
            link_events: None,
        };
        let scenario = load_texts(&texts, &Options::PLAIN).scenario.expect("a scenario");
        let used =
            |node: usize| if node < 8 { bytes[node / 2] } else { bytes.get(node - 8).map_or(0, |bytes| 2 * bytes) };
        let links = (0..12).map(|link| if link < 8 { bytes[link / 2] } else { 0 }).collect();
        let weights = Weights { nodes: (0..13).map(used).collect(), links };
        (scenario, weights)
    }

    fn owners(cut: &Cut) -> [u8; 4] {
        for pair in 0..4 {
            assert_eq!([cut.owners[2 * pair + 1], cut.owners[8 + pair]], [cut.owners[2 * pair]; 2], "parts are whole");
        }
        [0, 2, 4, 6].map(|host| cut.owners[host])
    }

    #[test]
    fn parts_are_shared_out_if_shares_are_about_equal() {
        let (scenario, weights) = pairs([3_000, 1_000, 1_000, 1_000]);
        let parts = parts(&scenario, &weights);
        assert_eq!(parts.in_equal_shares(2).map(|cut| owners(&cut)), Some([0, 1, 1, 1]));
        assert!(parts.in_equal_shares(4).is_none());
    }

    #[test]
    fn parts_of_one_kind_stay_together() {
        let (scenario, weights) = pairs([2_000, 3_000, 2_000, 2_000]);
        let cut = parts(&scenario, &weights).by_kind().expect("two kinds");
        assert_eq!((owners(&cut), cut.kernels, cut.lookahead), ([1, 0, 1, 1], 2, None));
        let (scenario, weights) = pairs([2_000; 4]);
        assert!(parts(&scenario, &weights).by_kind().is_none(), "one kind, one kernel");
    }
}

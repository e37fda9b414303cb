//! A run on several threads has the results of one, to the byte.

use std::collections::VecDeque;
use std::fmt::Write;
use wormhole::memo::{Memo, MemoOptions};
use wormhole::scenario::{Profile, Scenario};
use wormhole::simulate::{Outcome, simulate, simulate_memoised};
use wormhole::workload::messages::MessageName;
use wormhole_kernel::accel::{Acceleration, Tier};
use wormhole_kernel::kernel::Step;
use wormhole_kernel::shard::{Departure, ShardLimits, Window, rank_events};
use wormhole_kernel::{
    BitRate, Completion, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, NodeId, NodeKind, SimTime, Span,
};
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig, WindowRule};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_tests::shrink::{Shrink, without_some};
use wormhole_tests::swarm::for_all_seeds;
use wormhole_tests::{Rng, load_text, usable};

/// A random fabric and random flows, as texts.
struct Inputs {
    seed: u64,
    topology: String,
    flows: String,
    config: String,
}

impl std::fmt::Display for Inputs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "seed {}\n{}\n{}\n{}", self.seed, self.topology, self.flows, self.config)
    }
}

impl Shrink for Inputs {}

/// Leaves with hosts, joined by spines or in a line; starts, sizes, delays and rates of which many are equal.
fn inputs(seed: u64) -> Inputs {
    let rng = &mut Rng(seed);
    let (leaves, hosts, spines) = (rng.between(2, 5), rng.between(1, 5), rng.between(0, 4));
    let switches = leaves + spines;
    let (nodes, first) = (leaves * hosts + switches, leaves * hosts);
    let delays: &[&str] = if rng.one_in(2) { &["0.001ms"] } else { &["0.001ms", "0.0005ms", "0.000007ms", "0ms"] };
    let rates: &[&str] = if rng.one_in(2) { &["100Gbps"] } else { &["100Gbps", "25Gbps", "400Gbps"] };
    let mut links = Vec::new();
    let mut link = |rng: &mut Rng, a: u64, b: u64| {
        let delay = delays[rng.below(delays.len() as u64) as usize];
        links.push(format!("{a} {b} {} {delay} 0", rates[rng.below(rates.len() as u64) as usize]));
    };
    for host in 0..first {
        link(rng, host, first + host / hosts);
    }
    for leaf in 0..leaves {
        (0..spines).for_each(|spine| link(rng, first + leaf, first + leaves + spine));
        if spines == 0 && leaf > 0 {
            link(rng, first + leaf - 1, first + leaf);
        }
    }
    let list = |from: u64, to: u64| (from..to).map(|n| n.to_string()).collect::<Vec<_>>().join(" ");
    let topology = format!("{nodes} {switches} {}\n{}\n{}\n", links.len(), list(first, nodes), links.join("\n"));
    let stays_local = rng.one_in(4);
    let mut rows = Vec::new();
    for _ in 0..rng.between(1, 40) {
        let src = rng.below(first);
        let dst = if stays_local { src / hosts * hosts + rng.below(hosts) } else { rng.below(first) };
        let start = if rng.one_in(2) { 2_000_000 } else { 2_000_000 + rng.below(40) };
        let bytes = rng.pick(&[1, 999, 1_000, 20_000, 100_000, 100_000, 1_000_000]);
        if src != dst {
            rows.push((start, format!("{src} {dst} 3 100 {bytes} {}.{:06}", start / 1_000_000, start % 1_000_000)));
        }
    }
    rows.sort();
    let mut flows = format!("{}\n", rows.len());
    rows.iter().for_each(|(_, row)| writeln!(flows, "{row}").expect("memory"));
    let mode = rng.pick(&[1, 3, 7, 8]);
    let buffer = rng.pick(&[1, 32]);
    let config = format!("CC_MODE {mode}\nBUFFER_SIZE {buffer}\nHAS_WIN {}\nVAR_WIN 1\n", rng.below(2));
    Inputs { seed, topology, flows, config }
}

/// All of a run that does not tell of time or memory of this machine.
fn told(outcome: &Outcome) -> String {
    let mut text = format!("{:?} {:?} {:?}\n", outcome.ending, outcome.end, outcome.totals);
    for flow in outcome.flows.in_memory() {
        // Not the number that its kernel gave it: another kernel gave another.
        let Completion { token, start, fct, bytes, mean_rtt, .. } = flow.completion;
        let done = (token, start, fct, bytes, mean_rtt, flow.completion.end());
        writeln!(text, "{:?} {:?} {done:?}", flow.name, flow.ideal).expect("memory");
    }
    for port in &outcome.ports {
        writeln!(text, "{:?} {:?}", port.info, port.stats).expect("memory");
    }
    for row in &outcome.pfc {
        writeln!(text, "{row:?}").expect("memory");
    }
    text
}

fn with_threads(scenario: &Scenario, threads: Option<usize>) -> Outcome {
    let scenario = Scenario { threads, ..scenario.clone() };
    simulate(&scenario, &mut ()).expect("it is accepted")
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let (mut cut, mut paused, mut flows) = (0, 0, 0);
    for_all_seeds(150, inputs, |inputs| {
        let loaded = load_text(&inputs.topology, &inputs.flows, &inputs.config);
        let scenario = Scenario { profile: Profile::Ps, ..usable(loaded) };
        let one = with_threads(&scenario, None);
        for threads in [1, 2, 3, 8] {
            let several = with_threads(&scenario, Some(threads));
            cut += u64::from(several.threads > 1);
            assert!(told(&one) == told(&several), "{threads} threads:\n{}\n{}", told(&one), told(&several));
        }
        paused += one.totals.pauses;
        flows += one.flows.len();
    });
    println!("{flows} flows, {paused} pauses; {cut} runs in shards");
    assert!(cut > 100 && paused > 0, "{cut} runs in shards, {paused} pauses");
}

type PsKernel<'a> = Kernel<'a, Ps<'static, Ecmp>>;

/// Hosts at each of the two switches of a dumbbell.
const HOSTS: u32 = 4;
/// What a frame of 1,048 bytes takes to be sent.
const FRAME: Span = Span(83_840);
/// What an ACK takes.
const ACK: Span = Span(4_800);
/// A fraction of the events that are on wires at a time.
const SMALL_WINDOWS: ShardLimits = ShardLimits { events: 64, departures: 64 };

/// Flows in a dumbbell that start at multiples of what a frame takes; so do all frames arrive.
struct InStep(Vec<FlowSpec>);

impl std::fmt::Display for InStep {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|flow| writeln!(f, "{flow:?}"))
    }
}

impl Shrink for InStep {
    fn smaller(&self) -> Vec<InStep> {
        without_some(&self.0).into_iter().map(InStep).collect()
    }
}

fn flows_in_step(seed: u64) -> InStep {
    let rng = &mut Rng(seed);
    let mut flows = Vec::new();
    for token in 0..rng.between(6, 30) {
        let host = |rng: &mut Rng| rng.below(2 * u64::from(HOSTS)) as u32;
        // Whose frame is first is felt where they meet.
        let (src, dst) = (host(rng), if rng.one_in(2) { 0 } else { host(rng) });
        let start = SimTime(FRAME.0 * rng.below(20));
        if src != dst {
            let bytes = 1_000 * rng.between(5, 60);
            flows.push(FlowSpec { token, ..FlowSpec::new(NodeId(src), NodeId(dst), bytes, start) });
        }
    }
    InStep(flows)
}

/// Memory of a shard, and of its windows that are not settled or being written.
struct ShardMemory {
    shard: Vec<u64>,
    windows: [Vec<u64>; 2],
}

/// Does something with `count` kernels of a dumbbell whose links have this delay, and that have these flows.
fn on_a_dumbbell<T>(
    count: usize,
    delay: Span,
    flows: &[FlowSpec],
    work: impl for<'k> FnOnce(Vec<PsKernel<'k>>, &'k mut [ShardMemory]) -> T,
) -> T {
    let kind = |node| if node < 2 * HOSTS { NodeKind::Host } else { NodeKind::Switch };
    let nodes: Vec<NodeKind> = (0..2 * HOSTS + 2).map(kind).collect();
    let rate = BitRate::from_gbps(100);
    let link = |a, b| LinkSpec { a: NodeId(a), b: NodeId(b), rate, delay, loss: 0 };
    let mut links: Vec<LinkSpec> = (0..2 * HOSTS).map(|host| link(host, 2 * HOSTS + host / HOSTS)).collect();
    links.push(link(2 * HOSTS, 2 * HOSTS + 1));
    let window = FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Bdp));
    let ccas: &[AnyCca] = Box::leak(Box::new([AnyCca::FixedWindow(window)]));
    let models = || Ps::models(ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let limits = Limits::default();
    let words = PsKernel::words(FabricSize::of(&nodes, &links), &limits, &models());
    let shard_words = PsKernel::shard_words(nodes.len(), &SMALL_WINDOWS);
    let mut memories = vec![vec![0; words]; count];
    let window = || vec![0; Window::words(&SMALL_WINDOWS)];
    let of_shard = || ShardMemory { shard: vec![0; shard_words], windows: [window(), window()] };
    let mut of_shards: Vec<ShardMemory> = (0..count).map(|_| of_shard()).collect();
    let kernel = |memory| {
        let mut kernel = Kernel::new(memory, &nodes, &links, models(), &limits, ()).expect("a kernel");
        for flow in flows {
            kernel.add_flow(flow).expect("a flow");
        }
        kernel
    };
    let kernels = memories.iter_mut().map(|memory| kernel(&mut memory[..])).collect();
    work(kernels, &mut of_shards)
}

/// When which flow has ended, and how long its packets have taken.
fn ends(kernels: &mut [PsKernel<'_>]) -> Vec<(SimTime, u64, Span)> {
    let ends = |kernel: &mut PsKernel<'_>| core::iter::from_fn(|| kernel.poll_completion()).collect::<Vec<_>>();
    let end = |done: Completion| (done.start + done.fct, done.token, done.mean_rtt);
    let mut ends: Vec<_> = kernels.iter_mut().flat_map(ends).map(end).collect();
    ends.sort();
    ends
}

/// Ranks of a shard's events, the first so many of them of the window before.
#[derive(Default)]
struct Ranks {
    list: Vec<u32>,
    before: usize,
}

/// Two shards in windows of a fraction of the lookahead, each begun when all but `ahead` of the earlier ones are
/// settled.
struct SmallWindows<'k> {
    kernels: Vec<PsKernel<'k>>,
    ahead: usize,
    ranks: [Ranks; 2],
    /// Events in the logs of the first shard.
    events: usize,
}

impl<'k> SmallWindows<'k> {
    /// Runs until nothing is pending. `free` are two windows of each shard.
    fn run(&mut self, width: Span, mut free: Vec<[Window<'k>; 2]>) {
        let pending = |kernels: &[PsKernel<'_>]| kernels.iter().filter_map(Kernel::next_event_time).min();
        let mut known = pending(&self.kernels);
        let (mut end, mut unsettled) = (SimTime::ZERO, VecDeque::new());
        while let Some(next) = known {
            end = end.max(next) + width;
            let mut done = free.pop().expect("a window");
            for (kernel, done) in self.kernels.iter_mut().zip(&mut done) {
                assert_eq!(kernel.run_window(end), Ok(Step::Reached));
                kernel.close_window(done);
            }
            unsettled.push_back((done, pending(&self.kernels)));
            let departures = unsettled.iter().flat_map(|(done, _)| done).flat_map(|done| done.departures());
            let first_departure = departures.map(Departure::at).min();
            let (_, pending) = unsettled.back_mut().expect("it has just been put there");
            *pending = pending.iter().copied().chain(first_departure).min();
            if unsettled.len() > self.ahead {
                let (done, pending) = unsettled.pop_front().expect("more than none");
                self.settle(&done);
                known = pending;
                free.push(done);
            }
        }
    }

    fn settle(&mut self, done: &[Window<'_>; 2]) {
        let logs = done.each_ref().map(Window::log);
        for (Ranks { list, before }, log) in self.ranks.iter_mut().zip(logs) {
            // Those of a window that was settled before this one began are of no use.
            list.drain(..if self.ahead == 0 { list.len() } else { *before });
            *before = list.len();
            list.resize(*before + log.len(), 0);
        }
        rank_events(&logs, &mut self.ranks.each_mut().map(|ranks| &mut ranks.list[..]));
        for (shard, kernel) in self.kernels.iter_mut().enumerate() {
            let Ranks { list, before } = &self.ranks[shard];
            kernel.keep_ranks(&list[*before..]);
            let arrival = |departure| Departure::arrival(departure, &self.ranks[1 - shard].list);
            let mut arrivals: Vec<_> = done[1 - shard].departures().iter().map(arrival).collect();
            arrivals.sort_by_key(|arrival| arrival.key);
            kernel.receive(&arrivals).expect("frames");
        }
        self.events += logs[0].len();
    }
}

/// What is scheduled in a window is pending while many others end, and after so many of them there are no more places
/// for ranks.
#[test]
fn ranks_of_shards_are_forgotten_in_time() {
    let mut forgotten = 0;
    // With the second delay an ACK takes as long to arrive as a frame takes to be sent.
    for delay in [Span(10 * FRAME.0), Span(FRAME.0 - ACK.0)] {
        for_all_seeds(60, flows_in_step, |InStep(flows)| {
            forgotten += compare_with_shards(delay, flows) / (2 * SMALL_WINDOWS.events);
        });
    }
    assert!(forgotten > 100, "ranks were forgotten {forgotten} times");
}

/// Checks that two shards do what one kernel does. Gives the events in the logs of the first one.
fn compare_with_shards(delay: Span, flows: &[FlowSpec]) -> usize {
    let one = on_a_dumbbell(1, delay, flows, |mut kernels, _| {
        assert_eq!(kernels[0].run_until(SimTime::MAX), Ok(Step::Idle));
        ends(&mut kernels)
    });
    assert_eq!(one.len(), flows.len());
    let width = Span(FRAME.0.min(delay.0) / 2);
    let events = [0, 1].map(|ahead| {
        let (two, events) = on_a_dumbbell(2, delay, flows, |mut kernels, memories| {
            let owner = |node: NodeId| if node.0 < 2 * HOSTS { node.0 / HOSTS } else { node.0 - 2 * HOSTS };
            let mut windows = Vec::new();
            for ((number, kernel), ShardMemory { shard, windows: of_shard }) in (0..).zip(&mut kernels).zip(memories) {
                kernel.become_shard(shard, &SMALL_WINDOWS, |node| owner(node) == number).expect("a shard");
                windows.push(of_shard.each_mut().map(|words| Window::new(words, &SMALL_WINDOWS).expect("a window")));
            }
            let [a, b] = <[_; 2]>::try_from(windows).ok().expect("two shards");
            let free = a.into_iter().zip(b).map(|(a, b)| [a, b]).collect();
            let mut small = SmallWindows { kernels, ahead, ranks: Default::default(), events: 0 };
            small.run(width, free);
            (ends(&mut small.kernels), small.events)
        });
        assert!(one == two, "{ahead} ahead:\n{one:?}\n{two:?}");
        events
    });
    events[1]
}

/// Pairs of hosts at switches of their own: what a fabric does that is made of parts. Each pair exchanges so many bytes
/// at these times, in microseconds.
fn pairs(exchanges: &[&[(u64, u64)]]) -> Scenario {
    let hosts = 2 * exchanges.len() as u64;
    let (mut links, mut flows) = (String::new(), Vec::new());
    for (pair, exchanges) in (0..).zip(exchanges) {
        for host in [2 * pair, 2 * pair + 1] {
            writeln!(links, "{host} {} 100Gbps 0.001ms 0", hosts + pair).expect("memory");
        }
        for (bytes, start) in *exchanges {
            for (src, dst) in [(2 * pair, 2 * pair + 1), (2 * pair + 1, 2 * pair)] {
                flows.push((start, format!("{src} {dst} 3 100 {bytes} 2.{start:06}\n")));
            }
        }
    }
    flows.sort();
    let switches: Vec<String> = (hosts..hosts + hosts / 2).map(|switch| switch.to_string()).collect();
    let topology = format!("{} {} {hosts}\n{}\n{links}", hosts + hosts / 2, hosts / 2, switches.join(" "));
    let rows: String = flows.iter().map(|(_, row)| &row[..]).collect();
    let loaded = load_text(&topology, &format!("{}\n{rows}", flows.len()), "CC_MODE 3\n");
    usable(loaded)
}

/// What acceleration has done, besides what came of it.
fn skipped(outcome: &Outcome) -> String {
    format!("{}{:?} {:?}\n{:?}", told(outcome), outcome.skipped, outcome.memo, outcome.skips)
}

/// Runs a scenario with a memo of its own.
fn memoised(scenario: &Scenario, threads: Option<usize>) -> Outcome {
    let options = MemoOptions { keys: None, check: 0, limit_words: 1_000_000 };
    let mut memo = Memo::open(options, None, scenario.acceleration.tier).0.expect("a memo");
    let scenario = Scenario { threads, ..scenario.clone() };
    simulate_memoised(&scenario, &mut memo, &mut ()).expect("it is accepted")
}

/// Runs with 1, 2 and 8 threads, of which nothing is to be seen.
fn with_1_2_and_8_threads(scenario: &Scenario) -> [Outcome; 3] {
    let several = [1, 2, 8].map(|threads| memoised(scenario, Some(threads)));
    for outcome in &several {
        assert!(skipped(outcome) == skipped(&several[0]), "{}\n{}", skipped(outcome), skipped(&several[0]));
    }
    several
}

fn accelerated(scenario: Scenario, tier: Tier) -> Scenario {
    Scenario { acceleration: Acceleration { tier, ..Acceleration::default() }, ..scenario }
}

fn fcts(outcome: &Outcome) -> Vec<(MessageName, Span)> {
    outcome.flows.in_memory().iter().map(|flow| (flow.name, flow.completion.fct)).collect()
}

#[test]
fn parts_are_accelerated_alike_by_any_number_of_threads() {
    let sizes = [(3_000_000, 0), (1_000_000, 0), (3_000_000, 5), (2_000_000, 1), (1_000_000, 7), (3_000_000, 0)];
    let exchanges = sizes.each_ref().map(core::slice::from_ref);
    for tier in [Tier::Exact, Tier::Bounded] {
        let scenario = accelerated(pairs(&exchanges), tier);
        let several = with_1_2_and_8_threads(&scenario);
        assert_eq!(several.each_ref().map(|outcome| outcome.threads), [1, 2, 3], "a kernel for each of three sizes");
        let counts = &several[0].memo.counts;
        assert!(counts.hits + counts.followers > 0, "{counts:?}");
        assert!(several[0].skipped.events > 0, "{:?}", several[0].skipped);
        // One kernel has the same flows; what its parts share with each other is counted otherwise.
        assert!(tier != Tier::Exact || fcts(&memoised(&scenario, None)) == fcts(&several[0]));
    }
}

/// What three pairs do at first is the same; what they do later is not, so they are in three kernels.
fn three_kinds(starts: [u64; 3]) -> Scenario {
    let first = starts.map(|start| (3_000_000, start));
    let later = [1, 2].map(|pair| (pair as u64 * 1_000_000, starts[pair] + 5_000));
    pairs(&[&first[..1], &[first[1], later[0]], &[first[2], later[1]]])
}

#[test]
fn what_one_kernel_learns_the_others_find() {
    for tier in [Tier::Exact, Tier::Bounded] {
        let [one_by_one, together] = [[0, 10_000, 20_000], [0; 3]].map(|starts| accelerated(three_kinds(starts), tier));
        let hits = |outcome: &Outcome| outcome.memo.counts.hits;
        let [outcome, ..] = with_1_2_and_8_threads(&one_by_one);
        assert!(hits(&outcome) >= 2, "{:?}", outcome.memo.counts);
        assert_eq!(hits(&outcome), hits(&memoised(&one_by_one, None)), "as if they were in one kernel");
        // Nobody knows yet what the others are learning.
        assert_eq!(with_1_2_and_8_threads(&together).map(|outcome| hits(&outcome)), [0; 3]);
    }
}

//! Small random workloads on small random fabrics, each from one seed, and what must hold in all of them.
//!
//! `WORMHOLE_SWARM_SEEDS=5000` runs more of them, `WORMHOLE_SWARM_FIRST=1234 WORMHOLE_SWARM_SEEDS=1` only one.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::fmt;
use std::path::{Path, PathBuf};
use wormhole::load::{Texts, load_texts};
use wormhole::memo::{Memo, MemoOptions};
use wormhole::scenario::{CcaName, Options, Profile, Scenario};
use wormhole::simulate::{Ending, Outcome, simulate, simulate_memoised};
use wormhole::topo::build;
use wormhole::workload::activity::Activity;
use wormhole::workload::collective::{AllReduce, AllToAll, CollectiveOptions};
use wormhole::workload::engine::PlacedJob;
use wormhole::workload::messages::MessageName;
use wormhole::workload::report::{CollectiveReport, JobReport};
use wormhole::workload::task::{Call, CollectiveKind, Group, GroupId, Job, Listed, Rank, Task, TaskId, Work};
use wormhole_kernel::accel::Tier;
use wormhole_kernel::{BitRate, FlowEnd, NodeId, NodeKind, SimTime, Span};
use wormhole_models::topology::{
    Attachment, Clos, Dumbbell, FabricPlan, HostLinks, LinkClass, PlanError, Rail, Star, Trunk,
};
use wormhole_tests::shrink::Shrink;
use wormhole_tests::swarm::for_all_seeds;
use wormhole_tests::{Rng, usable};

/// Seeds that every test runs unless told otherwise.
const SEEDS: u64 = 60;

const CCAS: [CcaName; 6] =
    [CcaName::Dcqcn, CcaName::Hpcc, CcaName::Timely, CcaName::Dctcp, CcaName::Swift, CcaName::Fixed];

const KINDS: [CollectiveKind; 6] = [
    CollectiveKind::AllReduce,
    CollectiveKind::ReduceScatter,
    CollectiveKind::AllGather,
    CollectiveKind::AllToAll,
    CollectiveKind::Broadcast,
    CollectiveKind::Barrier,
];

/// What a seed stands for.
struct Case {
    seed: u64,
    scenario: Scenario,
    /// The jobs, before they are put into the scenario.
    drafts: Vec<Draft>,
    /// One line for people.
    what: String,
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.what)
    }
}

impl Shrink for Case {}

impl Case {
    fn new(seed: u64) -> Case {
        let rng = &mut Rng(seed ^ 0x3075_0b5e);
        let profile = [Profile::Ps, Profile::Ns3][rng.below(2) as usize];
        let cca = CCAS[rng.below(6) as usize];
        let options =
            Options { profile, seed, cca: Some(cca), max_packets: 1 << 16, max_flows: 1 << 12, ..Options::PLAIN };
        let (shape, text) = fabric(rng);
        let texts = Texts { topology: ("topology", &text), flows: None, config: None, link_events: None };
        let mut scenario = usable(load_texts(&texts, &options));
        let hosts = scenario.nodes.iter().filter(|&&kind| kind == NodeKind::Host).count() as u64;
        let drafts: Vec<Draft> = (0..rng.between(1, 2)).map(|job| Draft::new(rng, job, hosts)).collect();
        scenario.jobs = drafts.iter().map(Draft::place).collect();
        let jobs: Vec<String> = drafts.iter().map(Draft::describe).collect();
        let what = format!("{shape}, {profile:?}, {cca:?}, {}", jobs.join("; "));
        Case { seed, scenario, drafts, what }
    }

    fn with_tier(&self, tier: Tier) -> Scenario {
        let mut scenario = self.scenario.clone();
        scenario.acceleration.tier = tier;
        scenario
    }

    /// Bytes that flows carry from host to host.
    fn payload(&self) -> BTreeMap<(NodeId, NodeId), u64> {
        let mut payload = BTreeMap::new();
        let mut all: Vec<_> = self.drafts.iter().flat_map(Draft::messages).collect();
        all.retain(|&(src, dst, bytes)| src != dst && bytes > 0);
        all.into_iter().for_each(|(src, dst, bytes)| *payload.entry((src, dst)).or_default() += bytes);
        payload
    }
}

/// A fabric as text, and its name.
fn fabric(rng: &mut Rng) -> (&'static str, String) {
    let rates = [25, 100, 400].map(BitRate::from_gbps);
    let delay = Span::from_ns(rng.between(1, 4) * 250);
    let rate = rates[rng.below(3) as usize];
    // Links of one rate in most: then things happen at the same instants.
    let some = [rate, rates[1]];
    let rates = if rng.one_in(5) { &some[..] } else { &some[..1] };
    let host = HostLinks { rates, delay };
    let trunk = Trunk { links: rng.between(1, 2) as u32, class: LinkClass { rate, delay } };
    let mut small = |least: u64, most: u64| rng.between(least, most) as u32;
    match small(0, 3) {
        0 => ("star", text(&Star { hosts: small(2, 10), host })),
        1 => {
            let plan = Dumbbell { left: small(1, 4), right: small(1, 4), host, bottleneck: trunk };
            ("dumbbell", text(&plan))
        }
        2 => {
            let (leaves, hosts_per_leaf, spines) = (small(2, 3), small(1, 4), small(1, 3));
            ("clos", text(&Clos { leaves, hosts_per_leaf, spines, host, spine: trunk, ..Clos::default() }))
        }
        _ => {
            let attachment = [Attachment::SingleTor, Attachment::DualTor, Attachment::DualPlane][small(0, 2) as usize];
            let (gpus_per_server, servers, servers_per_leaf) = (small(2, 4), small(2, 3), small(1, 3));
            let rail = Rail { gpus_per_server, servers, servers_per_leaf, spines: 2, attachment, ..Rail::default() };
            ("rail", text(&Rail { nic: host, spine: trunk, ..rail }))
        }
    }
}

fn text(plan: &dyn FabricPlan) -> String {
    let topology = build(plan).unwrap_or_else(|error: PlanError| panic!("{error}"));
    let mut text = Vec::new();
    wormhole::input::topology::write_topology(&topology, &mut text).expect("memory");
    String::from_utf8(text).expect("text")
}

/// A job under construction. What its ranks do is made in one order that all of them keep to; so nobody waits for ever.
#[derive(Clone)]
struct Draft {
    name: String,
    groups: Vec<Group>,
    programs: Vec<Vec<Task>>,
    /// Of each rank and group, the last collective.
    called: HashMap<(Rank, GroupId), TaskId>,
    calls: Vec<Call>,
    /// Sends and puts.
    sends: Vec<(Rank, Rank, u64)>,
    hosts: Vec<NodeId>,
    start: SimTime,
    collectives: CollectiveOptions,
}

impl Draft {
    fn new(rng: &mut Rng, job: u64, hosts: u64) -> Draft {
        let ranks = rng.between(2, 8);
        let mut draft = Draft {
            name: format!("job {job}"),
            groups: (0..rng.between(1, 3)).map(|id| group(rng, id, ranks)).collect(),
            programs: vec![Vec::new(); ranks as usize],
            called: HashMap::new(),
            calls: Vec::new(),
            sends: Vec::new(),
            hosts: some_hosts(rng, ranks, hosts),
            start: SimTime::ZERO + Span::from_ns(rng.pick(&[0, 0, 1, 5_000, 20_000])),
            collectives: options(rng),
        };
        (0..rng.between(2, 10)).for_each(|_| draft.act(rng));
        draft
    }

    /// Something more.
    fn act(&mut self, rng: &mut Rng) {
        let ranks = self.programs.len() as u64;
        let from = rng.below(ranks);
        let to = (from + rng.between(1, ranks - 1)) % ranks;
        let (from, to) = (from as Rank, to as Rank);
        let time = Span::from_ns(rng.below(30_000));
        match rng.below(10) {
            0..5 => self.call(rng),
            5 | 6 => self.send(rng, from, to),
            7 => {
                let bytes = size(rng);
                self.sends.push((from, to, bytes));
                self.add(rng, from, Work::Put { to, bytes });
            }
            8 => {
                let processor = rng.below(2) as u32;
                (0..2).for_each(|_| self.add(rng, from, Work::Compute { time, processor }));
            }
            _ => {
                let pause = if rng.one_in(2) { Work::Nothing } else { Work::Delay(time) };
                self.add(rng, from, pause);
            }
        }
    }

    /// A send and its receive, which knows the tag and perhaps the sender.
    fn send(&mut self, rng: &mut Rng, from: Rank, to: Rank) {
        let (bytes, tag) = (size(rng), self.sends.len() as u64);
        self.sends.push((from, to, bytes));
        self.add(rng, from, Work::Send { to, bytes, tag });
        self.add(rng, to, Work::Recv { from: Some(from).filter(|_| tag % 2 == 0), tag: Some(tag) });
    }

    /// A collective of some group. All members call those of a group in the same order; the next one may begin while
    /// the one before is under way.
    fn call(&mut self, rng: &mut Rng) {
        let group = rng.below(self.groups.len() as u64) as GroupId;
        let call = Call { group, kind: KINDS[rng.below(6) as usize], bytes: size(rng) };
        self.calls.push(call);
        let overlaps = rng.one_in(3);
        for rank in self.groups[group as usize].ranks.clone() {
            self.add(rng, rank, Work::Collective(call));
            let tasks = &mut self.programs[rank as usize];
            let id = tasks.len() as TaskId - 1;
            let task = &mut tasks[id as usize];
            let order = if overlaps { &mut task.with } else { &mut task.after };
            order.extend(self.called.insert((rank, group), id));
        }
    }

    /// A task that waits for the one before it, for another one, or for none.
    fn add(&mut self, rng: &mut Rng, rank: Rank, work: Work) {
        let tasks = &mut self.programs[rank as usize];
        let count = tasks.len() as u64;
        let after = match rng.below(5) {
            _ if count == 0 => Vec::new(),
            0 => Vec::new(),
            1 => vec![rng.below(count) as TaskId],
            _ => vec![count as TaskId - 1],
        };
        tasks.push(Task::new(work, after));
    }

    fn place(&self) -> PlacedJob {
        let programs = self.programs.iter().map(|tasks| Box::new(Listed::new(tasks.clone())) as Box<_>).collect();
        PlacedJob {
            name: self.name.clone(),
            job: Job { description: self.describe(), groups: self.groups.clone(), programs },
            hosts: self.hosts.clone(),
            start: self.start,
            collectives: self.collectives,
        }
    }

    fn describe(&self) -> String {
        let CollectiveOptions { all_reduce, all_to_all, channels, chunk_bytes } = self.collectives;
        let (ranks, calls, sends) = (self.programs.len(), self.calls.len(), self.sends.len());
        format!(
            "{ranks} ranks, {calls} collectives ({all_reduce:?}, {all_to_all:?}, {channels} channels, chunks of \
             {chunk_bytes}), {sends} sends"
        )
    }

    /// Messages of all tasks: from which host to which, and their bytes. Messages within a host are among them.
    fn messages(&self) -> Vec<(NodeId, NodeId, u64)> {
        let host = |rank: Rank| self.hosts[rank as usize];
        let sends = self.sends.iter().map(|&(from, to, bytes)| (host(from), host(to), bytes));
        let mut messages: Vec<_> = sends.collect();
        for call in &self.calls {
            let ranks = &self.groups[call.group as usize].ranks;
            let algorithm = self.collectives.algorithm(call.kind, ranks.len() as u32, call.bytes);
            for (member, &rank) in (0..).zip(ranks) {
                for lane in 0..algorithm.lanes() {
                    let hops = (0..).map_while(|index| algorithm.hop(member, lane, index));
                    messages.extend(hops.map(|hop| (host(rank), host(ranks[hop.to as usize]), hop.bytes)));
                }
            }
        }
        messages
    }

    /// Leaves out the last collective of a rank that others take part in; gives how those that wait for it say so.
    fn leave_out(&mut self, rank: Rank) -> Option<String> {
        let groups = &self.groups;
        let is_shared = |group: GroupId| groups[group as usize].ranks.len() > 1;
        let tasks = &mut self.programs[rank as usize];
        let task = tasks.iter_mut().rev().find(|t| matches!(t.work, Work::Collective(c) if is_shared(c.group)))?;
        let Work::Collective(Call { group, .. }) = std::mem::replace(&mut task.work, Work::Nothing) else {
            return None;
        };
        Some(format!("rank {rank} in group {}", groups[group as usize].name))
    }
}

/// Some ranks in any order; half of the groups are all of them.
fn group(rng: &mut Rng, id: u64, ranks: u64) -> Group {
    let mut order = shuffled(rng, ranks);
    if rng.one_in(2) {
        order.truncate(rng.between(1, ranks) as usize);
    }
    Group { name: format!("g{id}"), ranks: order }
}

fn shuffled(rng: &mut Rng, count: u64) -> Vec<u32> {
    let mut all: Vec<u32> = (0..count as u32).collect();
    (1..all.len()).for_each(|i| all.swap(i, rng.below(i as u64 + 1) as usize));
    all
}

/// A host for each rank: a host of its own if there are enough, in most.
fn some_hosts(rng: &mut Rng, ranks: u64, hosts: u64) -> Vec<NodeId> {
    if ranks > hosts || rng.one_in(6) {
        return (0..ranks).map(|_| NodeId(rng.below(hosts) as u32)).collect();
    }
    shuffled(rng, hosts).into_iter().take(ranks as usize).map(NodeId).collect()
}

fn options(rng: &mut Rng) -> CollectiveOptions {
    CollectiveOptions {
        all_reduce: [AllReduce::Ring, AllReduce::HalvingDoubling, AllReduce::DoubleTree][rng.below(3) as usize],
        all_to_all: [AllToAll::Direct, AllToAll::Pairwise][rng.below(2) as usize],
        channels: rng.between(1, 3) as u32,
        chunk_bytes: rng.pick(&[u64::MAX, 65_536, 20_000, 5_000]),
    }
}

/// Sizes are spread over orders of magnitude.
fn size(rng: &mut Rng) -> u64 {
    let most = rng.pick(&[1, 100, 3_000, 50_000, 300_000]);
    rng.between(1, most)
}

/// A run without memoisation.
fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &mut ()).expect("the kernel takes the scenario")
}

/// What must be the same in every run: of each flow its start, its FCT and its bytes; of each job its times.
#[derive(PartialEq, Debug)]
struct Seen {
    flows: BTreeMap<MessageName, (SimTime, Span, u64)>,
    jobs: Vec<(SimTime, SimTime, Vec<CollectiveReport>, Vec<Activity>)>,
}

impl Seen {
    fn of(outcome: &Outcome) -> Seen {
        let flow = |done: &wormhole_kernel::Completion| (done.start, done.fct, done.bytes);
        let flows: BTreeMap<_, _> = outcome.flows.in_memory().iter().map(|f| (f.name, flow(&f.completion))).collect();
        assert_eq!(flows.len(), outcome.flows.len(), "names are unique");
        let job = |job: &JobReport| (job.start, job.end, job.collectives.clone(), job.ranks.clone());
        Seen { flows, jobs: outcome.jobs.iter().map(job).collect() }
    }

    /// Tells the first difference only.
    fn assert_same(&self, other: &Seen, what: &str) {
        for (name, flow) in &self.flows {
            assert_eq!(Some(flow), other.flows.get(name), "{what}: flow {:032x}", name.0);
        }
        assert_eq!(self.flows.len(), other.flows.len(), "{what}: number of flows");
        for (job, other) in self.jobs.iter().zip(&other.jobs) {
            assert_eq!(job, other, "{what}");
        }
        assert_eq!(self.jobs.len(), other.jobs.len(), "{what}: number of jobs");
    }
}

/// Every message has arrived whole.
fn assert_done(case: &Case, outcome: &Outcome) {
    assert_eq!(outcome.ending, Ending::Done);
    let mut payload: BTreeMap<(NodeId, NodeId), u64> = BTreeMap::new();
    for flow in outcome.flows.in_memory() {
        assert_eq!(flow.completion.end(), FlowEnd::Done);
        assert!(flow.completion.fct >= flow.ideal, "slowdown below 1: {flow:?}");
        *payload.entry((flow.src, flow.dst)).or_default() += flow.completion.bytes;
    }
    assert_eq!(payload, case.payload());
    assert_eq!(outcome.flows.len(), outcome.flows_begun);
}

/// The times of every rank add up to that of the job.
fn assert_times_add_up(outcome: &Outcome) {
    for job in &outcome.jobs {
        assert!(job.ranks.iter().all(|rank| rank.total() == job.time()), "{job:#?}");
        let within = |c: &CollectiveReport| job.start <= c.start && c.start + c.time <= job.end;
        assert!(job.collectives.iter().all(within), "{job:#?}");
    }
}

/// Rates of all links of a host together, in GB/s.
fn host_rate(scenario: &Scenario, host: NodeId) -> f64 {
    let links = scenario.links.iter().filter(|link| [link.a, link.b].contains(&host));
    links.map(|link| link.rate.0 as f64 / 8e9).sum()
}

/// No link is slower than the bus bandwidth of what it carries: all members of a ring send its share; of trees, and of
/// halving and doubling, at least one member does. Members that share a host need no link.
fn assert_bandwidths_are_possible(case: &Case, outcome: &Outcome) {
    for (draft, job) in case.drafts.iter().zip(&outcome.jobs) {
        let has_own_hosts = draft.hosts.iter().collect::<HashSet<_>>().len() == draft.hosts.len();
        for report in job.collectives.iter().filter(|report| has_own_hosts && report.members > 1) {
            let group = draft.groups.iter().find(|group| group.name == report.group).expect("its group");
            let rates = group.ranks.iter().map(|&rank| host_rate(&case.scenario, draft.hosts[rank as usize]));
            let is_even = draft.collectives.all_reduce == AllReduce::Ring || report.kind != CollectiveKind::AllReduce;
            let most = if is_even { rates.fold(f64::MAX, f64::min) } else { rates.fold(0.0, f64::max) };
            assert!(report.bus_bandwidth() <= most, "{report:?}: {} of {most} GB/s", report.bus_bandwidth());
        }
    }
}

#[test]
fn plain_runs_end_with_all_bytes_and_every_moment_accounted_for() {
    let mut collectives = 0;
    for_all_seeds(SEEDS, Case::new, |case| {
        let outcome = run(&case.scenario);
        assert_done(case, &outcome);
        assert_times_add_up(&outcome);
        assert_bandwidths_are_possible(case, &outcome);
        let counts = case.drafts.iter().map(|draft| draft.calls.len());
        assert!(counts.eq(outcome.jobs.iter().map(|job| job.collectives.len())), "every collective is reported");
        collectives += outcome.jobs.iter().map(|job| job.collectives.len() as u64).sum::<u64>();
    });
    println!("{collectives} collectives");
}

#[test]
fn the_same_run_twice_is_identical() {
    for_all_seeds(SEEDS, Case::new, |case| {
        let (one, two) = (run(&case.scenario), run(&case.scenario));
        Seen::of(&one).assert_same(&Seen::of(&two), "again");
        let order = |outcome: &Outcome| outcome.flows.in_memory().iter().map(|f| f.name).collect::<Vec<_>>();
        assert_eq!((order(&one), one.totals, one.end), (order(&two), two.totals, two.end));
    });
}

/// A memo file of a case's own; it is removed at the end.
struct File(PathBuf);

impl File {
    fn new(seed: u64) -> File {
        let name = format!("workload-swarm-{}-{seed}.whm", std::process::id());
        File(Path::new(env!("CARGO_TARGET_TMPDIR")).join(name))
    }

    /// For runs of the exact tier.
    fn open(&self) -> Memo {
        let options = MemoOptions { keys: None, check: 0, limit_words: 1 << 18 };
        let (memo, found) = Memo::open(options, Some(&self.0), Tier::Exact);
        assert!(found.all().is_empty(), "{found:?}");
        memo.expect("a memo")
    }
}

impl Drop for File {
    fn drop(&mut self) {
        // What is left behind lies in cargo's own folder and does no harm.
        let _ = std::fs::remove_file(&self.0);
    }
}

/// What runs of the exact tier have done.
#[derive(Default, Debug)]
struct Tally {
    runs: u64,
    runs_that_skip: u64,
    hits: u64,
    /// Runs in which the order of partitions in step was guessed, and those of them that differ.
    contested: u64,
    guessed_wrong: u64,
}

impl Tally {
    /// Compares a run with the plain one. Where partitions ran in step, and the order of their events may have been
    /// guessed, a difference is only counted.
    fn compare(&mut self, case: &Case, plain: &Seen, fast: &Outcome, what: &str) {
        assert_done(case, fast);
        let seen = Seen::of(fast);
        let contested = fast.skipped.contested > 0;
        self.runs += 1;
        self.runs_that_skip += u64::from(fast.skipped.events > 0);
        self.hits += fast.memo.counts.hits;
        self.contested += u64::from(contested);
        if contested && seen != *plain {
            self.guessed_wrong += 1;
            println!("seed {} differs, {what}: {} contested", case.seed, fast.skipped.contested);
        } else {
            plain.assert_same(&seen, what);
        }
    }
}

/// The first run with a memo finds nothing in it but what it has learnt itself; the second one has the same memo; the
/// third one finds what was written to its file.
#[test]
fn exact_runs_with_a_memo_equal_plain_ones() {
    let mut tally = Tally::default();
    for_all_seeds(SEEDS, Case::new, |case| {
        let plain = Seen::of(&run(&case.scenario));
        let (scenario, file) = (case.with_tier(Tier::Exact), File::new(case.seed));
        let memoised =
            |memo: &mut Memo| simulate_memoised(&scenario, memo, &mut ()).expect("the kernel takes the scenario");
        let mut memo = file.open();
        tally.compare(case, &plain, &memoised(&mut memo), "fresh memo");
        tally.compare(case, &plain, &memoised(&mut memo), "same memo");
        assert!(memo.finish().expect("the file is written").all().is_empty());
        tally.compare(case, &plain, &memoised(&mut file.open()), "memo of a file");
    });
    println!("{tally:?}");
    assert!(20 * tally.guessed_wrong <= tally.runs.max(20), "too many differ: {tally:?}");
    assert!(tally.runs < 120 || tally.runs_that_skip * 10 >= tally.runs, "few runs skip anything: {tally:?}");
}

#[test]
fn bounded_runs_end_with_all_bytes() {
    for_all_seeds(SEEDS, Case::new, |case| {
        let outcome = run(&case.with_tier(Tier::Bounded));
        assert_done(case, &outcome);
        assert_times_add_up(&outcome);
    });
}

/// A rank leaves out its last collective: the others wait there, and say for whom.
#[test]
fn ranks_that_wait_name_the_one_that_is_missing() {
    let (mut runs, mut waits) = (0, 0);
    for_all_seeds(SEEDS, Case::new, |case| {
        runs += 1;
        let rng = &mut Rng(case.seed);
        let job = rng.below(case.drafts.len() as u64) as usize;
        let mut draft = case.drafts[job].clone();
        let rank = rng.below(draft.programs.len() as u64) as Rank;
        let Some(missing) = draft.leave_out(rank) else { return };
        let mut scenario = case.scenario.clone();
        scenario.jobs[job] = draft.place();
        let Ending::Waiting(list) = run(&scenario).ending else { panic!("nobody waits for {missing}") };
        assert!(list.iter().any(|wait| wait.job == draft.name && wait.what == missing), "{missing}: {list:?}");
        assert!(list.iter().all(|wait| wait.job == draft.name), "{list:?}");
        waits += 1;
    });
    assert!(runs < 40 || 2 * waits >= runs, "few collectives are left out: {waits} of {runs}");
}

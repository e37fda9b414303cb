//! The same input gives the same output: whatever the event queue, however the run is cut, whoever looks on, whichever
//! way the program was built.
//!
//! `WORMHOLE_BINARY=target/release/wormhole` compares the files of another build with the hashes that are kept;
//! `WORMHOLE_GOLDEN=write` keeps those of this one, after a change that is meant to change results.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::fmt::Write;
use std::fs;
use std::marker::PhantomData;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::ids::LinkId;
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::packet::Packet;
use wormhole_kernel::queue::{Heap4, Wheel};
use wormhole_kernel::router::Router;
use wormhole_kernel::telemetry::ExactTelemetry;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{Completion, FlowId, Kernel, Limits, ModelSet, Models, Observer, PortId, SimTime, Span};
use wormhole_models::buffer::DynamicThreshold;
use wormhole_models::cca::AnyCca;
use wormhole_models::ecn::RedMarker;
use wormhole_models::loss::BernoulliLoss;
use wormhole_models::nic::RoundRobin;
use wormhole_models::profile::{Ns3, Ps};
use wormhole_models::router::{Ecmp, EcmpHash, Spray};
use wormhole_models::scheduler::ControlThenRoundRobin;
use wormhole_tests::swarm::Scenario;
use wormhole_tests::worlds::world;
use wormhole_tests::{Rng, Said, WORMHOLE, case_file, data, empty_folder};

const SCENARIOS: u64 = 40;

/// A profile with another event queue.
macro_rules! with_queue {
    ($($name:ident: $profile:ident, $queue:ident;)*) => {$(
        struct $name<R>(PhantomData<R>);

        impl<R: Router> Models for $name<R> {
            type Timing = <$profile<'static, R> as Models>::Timing;
            type Cca = <$profile<'static, R> as Models>::Cca;
            type Telemetry = <$profile<'static, R> as Models>::Telemetry;
            type Buffers = <$profile<'static, R> as Models>::Buffers;
            type Scheduler = <$profile<'static, R> as Models>::Scheduler;
            type Marker = <$profile<'static, R> as Models>::Marker;
            type Loss = <$profile<'static, R> as Models>::Loss;
            type Router = R;
            type Nic = <$profile<'static, R> as Models>::Nic;
            type Queue<'a> = $queue<'a>;
        }
    )*};
}

with_queue! {
    PsHeap: Ps, Heap4;
    PsWheel: Ps, Wheel;
    Ns3Heap: Ns3, Heap4;
    Ns3Wheel: Ns3, Wheel;
}

/// The same models over another event queue.
fn queued<'m, A: Models, Z>(models: ModelSet<'m, A>) -> ModelSet<'m, Z>
where
    Z: Models<
            Timing = A::Timing,
            Cca = A::Cca,
            Telemetry = A::Telemetry,
            Buffers = A::Buffers,
            Scheduler = A::Scheduler,
            Marker = A::Marker,
            Loss = A::Loss,
            Router = A::Router,
            Nic = A::Nic,
        >,
{
    let ModelSet { ccas, timing, telemetry, buffers, scheduler, marker, loss, router, nic, transport } = models;
    ModelSet { ccas, timing, telemetry, buffers, scheduler, marker, loss, router, nic, transport }
}

/// Any of the swarm's scenarios, and links that go down for a while in some of them.
struct Case {
    scenario: Scenario,
    changes: Vec<(SimTime, LinkId, bool)>,
}

impl Case {
    fn new(seed: u64) -> Case {
        let (rng, mut scenario) = (&mut Rng(seed ^ 0xd0_d0), Scenario::new(seed));
        // Small: PFC has something to do.
        scenario.buffer = 1 << 20;
        let changes = if rng.one_in(2) { changes(rng, scenario.links.len() as u64) } else { vec![] };
        Case { scenario, changes }
    }

    /// Profile `ps`, whatever the scenario says.
    fn ps<Q>(&self) -> ModelSet<'_, Q>
    where
        Q: Models<
                Timing = PsTiming,
                Cca = AnyCca,
                Telemetry = ExactTelemetry,
                Buffers = DynamicThreshold,
                Scheduler = ControlThenRoundRobin,
                Marker = RedMarker<'static>,
                Loss = BernoulliLoss,
                Router = Ecmp,
                Nic = RoundRobin,
            >,
    {
        queued(self.scenario.models(Ecmp::new(EcmpHash::Salted(self.scenario.seed))))
    }
}

/// A few links go down for a while.
fn changes(rng: &mut Rng, links: u64) -> Vec<(SimTime, LinkId, bool)> {
    let mut change = || {
        let link = LinkId(rng.below(links) as u32);
        let (down, up) = (SimTime::from_ns(rng.below(20_000)), SimTime::from_ns(30_000 + rng.below(20_000)));
        [(down, link, false), (up, link, true)]
    };
    (0..3).flat_map(|_| change()).collect()
}

/// A hash of everything that happens, in its order.
#[derive(Default, PartialEq, Debug)]
struct Trace {
    hash: u64,
    calls: u64,
}

impl Trace {
    fn note(&mut self, time: SimTime, words: [u64; 4]) {
        self.calls += 1;
        for word in [time.0].into_iter().chain(words) {
            self.hash = Rng(self.hash ^ word).next();
        }
    }

    fn frame(&mut self, what: u64, time: SimTime, port: PortId, frame: &Packet) {
        let kind = frame.kind() as u64 + 8 * u64::from(frame.is_marked());
        let place = u64::from(port.0) << 32 | u64::from(frame.qp().0);
        self.note(time, [what << 8 | kind, place, frame.seq, u64::from(frame.bytes)]);
    }
}

impl Observer for Trace {
    fn flow_started(&mut self, time: SimTime, flow: FlowId) {
        self.note(time, [1, u64::from(flow.0), 0, 0]);
    }

    fn flow_finished(&mut self, time: SimTime, record: &Completion) {
        self.note(time, [2, u64::from(record.flow.0), record.fct.0, record.bytes]);
    }

    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(3, time, port, frame);
    }

    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(4, time, port, frame);
    }

    fn dropped(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(5, time, port, frame);
    }

    fn pfc(&mut self, time: SimTime, port: PortId, priority: u8, pause: bool) {
        self.note(time, [6, u64::from(port.0), u64::from(priority), u64::from(pause)]);
    }
}

/// How a run is cut into calls.
enum Cut {
    Whole,
    /// Into spans of random length, up to so many picoseconds.
    Spans(Rng, u64),
    /// Into random numbers of events.
    Events(Rng),
}

/// What a run shows to its caller.
#[derive(PartialEq, Debug)]
struct Shown {
    done: Vec<Completion>,
    totals: Totals,
    last: Step,
    now: SimTime,
}

fn run<M: Models, O: Observer>(case: &Case, models: ModelSet<'_, M>, observer: O, cut: Cut) -> (Shown, O) {
    run_tier(case, models, observer, cut, Tier::Off)
}

fn run_tier<M: Models, O: Observer>(
    Case { scenario, changes }: &Case,
    models: ModelSet<'_, M>,
    observer: O,
    mut cut: Cut,
    tier: Tier,
) -> (Shown, O) {
    let snapshot_words = if tier == Tier::Off { 0 } else { 1 << 20 };
    let limits = Limits { outputs: 40, inputs: 8, snapshot_words, ..scenario.limits() };
    let mut memory = vec![0; Kernel::<M, O>::words(scenario.size(), &limits, &models)];
    let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, observer);
    let mut kernel = kernel.expect("a kernel");
    kernel.accelerate(Acceleration { tier, detector: Detector::CYCLE }).expect("room");
    scenario.flows.iter().for_each(|flow| assert!(kernel.add_flow(flow).is_ok()));
    for &(at, link, up) in changes {
        kernel.set_link(at, link, up).expect("room");
    }
    let mut done = vec![];
    loop {
        let step = match &mut cut {
            Cut::Whole => kernel.run_until(SimTime::MAX),
            Cut::Spans(rng, most) => {
                // Jump over silence, or time-outs take millions of calls.
                let from = kernel.next_event_time().unwrap_or(SimTime::ZERO).max(kernel.now());
                kernel.run_until(from + Span(rng.below(*most)))
            }
            Cut::Events(rng) => kernel.run_bounded(SimTime::MAX, rng.below(50)),
        };
        done.extend(std::iter::from_fn(|| kernel.poll_completion()));
        match step.expect("capacity") {
            Step::Reached | Step::Budget | Step::OutputFull => {}
            last => return (Shown { done, totals: kernel.totals(), last, now: kernel.now() }, kernel.observer),
        }
    }
}

/// Runs `check` on every case, and says which one it was that failed.
fn for_all(check: impl Fn(&Case)) {
    for seed in 0..SCENARIOS {
        let case = Case::new(seed);
        let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| check(&case)));
        assert!(result.is_ok(), "seed {seed}");
    }
}

/// A traced run in one go.
fn traced<M: Models>(case: &Case, models: ModelSet<'_, M>) -> (Shown, Trace) {
    run(case, models, Trace::default(), Cut::Whole)
}

/// The traced run that others are compared with.
fn reference(case: &Case) -> (Shown, Trace) {
    traced(case, case.ps::<PsWheel<_>>())
}

#[test]
fn scenarios_differ_and_are_not_trivial() {
    let references: Vec<(Shown, Trace)> = (0..SCENARIOS).map(|seed| reference(&Case::new(seed))).collect();
    let hashes: HashSet<u64> = references.iter().map(|(_, trace)| trace.hash).collect();
    assert_eq!(hashes.len() as u64, SCENARIOS);
    let some = |count: fn(&Totals) -> u64| references.iter().filter(|(shown, _)| count(&shown.totals) > 0).count();
    let counts = [some(|t| t.drops), some(|t| t.ecn_marks), some(|t| t.pauses), some(|t| t.timeouts)];
    let is_enough = counts.iter().zip([5, 5, 2, 5]).all(|(&count, least)| count >= least);
    assert!(is_enough, "drops, marks, pauses, time-outs: {counts:?}");
}

#[test]
fn same_run_twice_is_the_same() {
    for_all(|case| {
        assert_eq!(reference(case), reference(case));
        let ns3 = || traced(case, queued::<_, Ns3Wheel<_>>(case.scenario.ns3_models()));
        assert_eq!(ns3(), ns3());
    });
}

#[test]
fn event_queues_give_one_order() {
    for_all(|case| {
        assert_eq!(reference(case), traced(case, case.ps::<PsHeap<_>>()));
        let ns3 = || case.scenario.ns3_models();
        assert_eq!(traced(case, queued::<_, Ns3Wheel<_>>(ns3())), traced(case, queued::<_, Ns3Heap<_>>(ns3())));
        let spray = || case.scenario.models(Spray::new(case.scenario.seed));
        assert_eq!(traced(case, queued::<_, PsWheel<_>>(spray())), traced(case, queued::<_, PsHeap<_>>(spray())));
    });
}

/// Acceleration takes events out of a queue and puts others back.
#[test]
fn event_queues_give_one_order_to_accelerated_runs() {
    let mut skipped = 0;
    for seed in 0..SCENARIOS {
        // Long flows, few of them, and no losses: something to skip.
        let mut case = Case::new(seed);
        case.scenario.flows.truncate(3);
        case.scenario.flows.iter_mut().for_each(|flow| flow.bytes *= 40);
        case.scenario.links.iter_mut().for_each(|link| link.loss = 0);
        fn fast<M: Models>(case: &Case, models: ModelSet<'_, M>, tier: Tier) -> (Shown, Trace) {
            run_tier(case, models, Trace::default(), Cut::Whole, tier)
        }
        for tier in [Tier::Exact, Tier::Bounded] {
            let wheel = fast(&case, case.ps::<PsWheel<_>>(), tier);
            assert_eq!(wheel, fast(&case, case.ps::<PsHeap<_>>(), tier), "seed {seed}, {tier:?}");
            skipped += u64::from(wheel.0.totals.events < reference(&case).0.totals.events);
            let ns3 = || case.scenario.ns3_models();
            let wheel = fast(&case, queued::<_, Ns3Wheel<_>>(ns3()), tier);
            assert_eq!(wheel, fast(&case, queued::<_, Ns3Heap<_>>(ns3()), tier), "seed {seed}, {tier:?}");
        }
    }
    assert!(skipped >= SCENARIOS / 2, "few runs skip anything: {skipped}");
}

#[test]
fn runs_in_slices_are_runs() {
    for_all(|case| {
        let (whole, seed) = (reference(case), case.scenario.seed);
        for cut in [Cut::Spans(Rng(seed), 2_000), Cut::Spans(Rng(seed), 3_000_000), Cut::Events(Rng(seed))] {
            assert_eq!(whole, run(case, case.ps::<PsWheel<_>>(), Trace::default(), cut));
        }
    });
}

#[test]
fn looking_on_changes_nothing() {
    for_all(|case| {
        let (shown, trace) = reference(case);
        assert_eq!(shown, run(case, case.ps::<PsWheel<_>>(), (), Cut::Whole).0);
        let mut lent = Trace::default();
        let (seen, pair) = run(case, case.ps::<PsWheel<_>>(), (&mut lent, Trace::default()), Cut::Whole);
        assert_eq!((seen, pair.1), (shown, trace));
    });
}

// Files.

/// Keys of `summary.json` that tell of the machine.
const OF_THE_MACHINE: [&str; 8] =
    ["threads", "load_s", "setup_s", "cpu_s", "wall_s", "outputs_s", "packet_hops_per_cpu_s", "peak_rss_mb"];

/// Random worlds among what is run.
const WORLDS: u64 = 8;

/// What is run in which folder, by name.
fn golden_runs(place: &Path) -> Vec<(String, PathBuf, String)> {
    let mut runs = vec![];
    for seed in 0..WORLDS {
        let (name, folder) = (format!("world-{seed}"), place.join(format!("world-{seed}")));
        let command = world(seed).write(&folder).replacen("wormhole ", "", 1);
        runs.push((name, folder, format!("{command} --parquet --events out/events.csv --trace out/trace.json")));
    }
    let mut add = |name: &str, arguments: String| {
        runs.push((
            name.to_owned(),
            empty_folder(place.join(name)),
            format!("run {arguments} --out out --memo-check 0"),
        ));
    };
    let reference = |run: &str| {
        let file = |name: &str| data("reference").join(run).join(name).display().to_string();
        format!("--topology {} --flows {} --config {}", file("topology.txt"), file("flow.txt"), file("config.txt"))
    };
    let case = |name: &str| {
        let file = |file: &str| case_file(name, file).display().to_string();
        format!("--topology {} --flows {}", file("topology.txt"), file("flow.txt"))
    };
    add("incast", reference("b_incast16_dcqcn") + " --profile ns3 --accel exact --events out/events.csv");
    add("ring", reference("c1_ring16_hpcc") + " --accel bounded --parquet --trace out/trace.json");
    add("pauses", reference("e1_pfc_incast16_dctcp") + " --accel off --pcap 0-17=out/port.pcap");
    add(
        "link-down",
        format!("{} --link-events {}", case("c23_link_down"), case_file("c23_link_down", "events.txt").display()),
    );
    add("shards", reference("c1_ring16_hpcc") + " --accel off");
    add("job", "gpt-13b-128 --parquet --trace out/trace.json".into());
    runs
}

/// Hashes of the files that a build's runs leave with such options besides, by name; `report.html` tells of the
/// machine, too.
fn hashes(binary: &Path, place: &Path, options: &str) -> BTreeMap<String, u64> {
    let mut hashes = BTreeMap::new();
    for (name, folder, arguments) in golden_runs(place) {
        fs::create_dir_all(folder.join("out")).expect("a folder");
        let mut command = Command::new(binary);
        command
            .args(arguments.split_whitespace())
            .args(options.split_whitespace())
            .current_dir(&folder)
            .stdin(Stdio::null());
        let said: Said = command.output().expect("wormhole runs").into();
        hashes.insert(format!("{name}: exit code"), said.code.expect("no signal") as u64);
        for entry in fs::read_dir(folder.join("out")).expect("a folder") {
            let path = entry.expect("an entry").path();
            let file = path.file_name().and_then(|file| file.to_str()).expect("UTF-8").to_owned();
            let bytes = fs::read(&path).expect("a file");
            match file.as_str() {
                "report.html" => {}
                "summary.json" => {
                    let text = String::from_utf8(bytes).expect("UTF-8");
                    let of_machine = |line: &&str| OF_THE_MACHINE.iter().any(|key| line.contains(key));
                    let kept: Vec<&str> = text.lines().filter(|line| !of_machine(line)).collect();
                    assert_eq!(text.lines().count(), kept.len() + OF_THE_MACHINE.len());
                    hashes.insert(format!("{name}/{file}"), hash(kept.join("\n").as_bytes()));
                }
                _ => {
                    hashes.insert(format!("{name}/{file}"), hash(&bytes));
                }
            }
        }
    }
    hashes
}

/// FNV-1a (Fowler, Noll, Vo), 64 bits.
fn hash(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x100_0000_01b3))
}

fn folder(name: &str) -> PathBuf {
    empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("determinism").join(name))
}

/// Every file of every run is, byte for byte, what it was when its hash was kept: with this build, or with the one that
/// the environment names.
#[test]
fn files_are_those_of_every_other_build() {
    let binary = std::env::var_os("WORMHOLE_BINARY").map_or_else(|| WORMHOLE.clone(), PathBuf::from);
    let binary = binary.canonicalize().expect("a binary");
    let hashes = hashes(&binary, &folder("golden"), "");
    let mut text = String::new();
    hashes.iter().for_each(|(name, hash)| writeln!(text, "{hash:016x} {name}").expect("memory"));
    let kept = data("golden/outputs.txt");
    if std::env::var("WORMHOLE_GOLDEN").is_ok_and(|what| what == "write") {
        fs::create_dir_all(kept.parent().expect("a folder")).expect("a folder");
        fs::write(&kept, &text).expect("the hashes");
    }
    let want = fs::read_to_string(&kept).unwrap_or_else(|error| panic!("{}: {error}", kept.display()));
    let lines = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<String>>();
    let (want, got) = (lines(&want), lines(&text));
    let (gone, new): (Vec<_>, Vec<_>) = (want.difference(&got).collect(), got.difference(&want).collect());
    assert!(want == got, "{} differs: instead of {gone:#?} there are {new:#?}", binary.display());
}

/// Options that change how a run is made, and nothing of what comes of it.
const SAME: [&str; 4] = ["--threads 1", "--threads 1", "--threads 2", "--threads 8"];

/// Runs of one build, one beside the other.
#[test]
fn files_are_those_of_the_run_before() {
    let runs = std::thread::scope(|scope| {
        let run =
            |(index, options)| scope.spawn(move || hashes(&WORMHOLE, &folder(&format!("again-{index}")), options));
        let runs: Vec<_> = SAME.into_iter().enumerate().map(run).collect();
        runs.into_iter().map(|run| run.join().expect("a run")).collect::<Vec<_>>()
    });
    runs.iter().for_each(|run| assert_eq!(run, &runs[0]));
}

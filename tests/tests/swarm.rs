//! A swarm of small random scenarios, each from one seed, and what must hold in all of them.
//!
//! `WORMHOLE_SWARM_SEEDS=5000` runs more of them, `WORMHOLE_SWARM_FIRST=1234 WORMHOLE_SWARM_SEEDS=1` only one.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::path::Path;
use wormhole::ideal::ideal_fct;
use wormhole::scenario::{CcaName, Profile as Family, Routing};
use wormhole::simulate::{Ending, Outcome, Progress, Refusal, Watch as Follow, simulate_observed};
use wormhole_kernel::accel::{Detector, Skipped, Tier};
use wormhole_kernel::kernel::{Step, Totals};
use wormhole_kernel::timing::{LinkTiming, PsTiming};
use wormhole_kernel::{
    BitRate, CapacityError, Completion, Error, FlowEnd, FlowSpec, Kernel, Limits, ModelSet, Models, NodeId, NodeKind,
    PortStats, SimTime, Span, Transport,
};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_models::timing::Ns3Timing;
use wormhole_tests::shrink::shrink;
use wormhole_tests::swarm::{Build, EVENT_BUDGET, Profile, Scenario, Shape, Use, for_all_seeds};
use wormhole_tests::watch::Watch;
use wormhole_tests::world::{ENOUGH_PACKETS, World};
use wormhole_tests::worlds::{for_all_worlds, world};
use wormhole_tests::{Rng, Said, ccas, empty_folder, usable, wormhole_in};

/// What a run has shown to the caller.
struct Run {
    done: Vec<Completion>,
    end: Result<Step, CapacityError>,
    pauses: u64,
    drops: u64,
}

/// A run within limits, checked on the way and at its end.
struct Checked<'l>(&'l Limits);

impl Use for Checked<'_> {
    type Out = Run;

    fn with<M: Models<Timing: Default>>(self, scenario: &Scenario, models: ModelSet<'_, M>) -> Run {
        run(scenario, self.0, models)
    }
}

fn run<M: Models<Timing: Default>>(scenario: &Scenario, limits: &Limits, models: ModelSet<'_, M>) -> Run {
    let serialise = |bytes, rate| M::Timing::default().serialise(bytes, rate);
    let watch = Watch::new(&scenario.nodes, &scenario.links, scenario.flows.len(), serialise);
    let mut memory = vec![0; Kernel::<M, Watch>::words(scenario.size(), limits, &models)];
    let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, limits, watch);
    let mut kernel = kernel.expect("a kernel");
    let mut ideals = vec![];
    for flow in &scenario.flows {
        kernel.add_flow(flow).expect("a flow");
        ideals.push(ideal_fct(&mut kernel, flow).expect("a path"));
    }
    let mut done = vec![];
    let end = drive(&mut kernel, &mut done);
    assert_eq!(kernel.totals().drops, kernel.observer.drops);
    check_port_counters(&kernel);
    if end.is_ok() {
        check_completions(scenario, &done, &ideals);
        check_end(scenario, &kernel, end, &done);
    }
    Run { done, end, pauses: kernel.totals().pauses, drops: kernel.totals().drops }
}

/// Runs until nothing more happens.
fn drive<M: Models>(kernel: &mut Kernel<'_, M, Watch>, done: &mut Vec<Completion>) -> Result<Step, CapacityError> {
    loop {
        let step = kernel.run_bounded(SimTime::MAX, EVENT_BUDGET);
        let polled = done.len();
        done.extend(std::iter::from_fn(|| kernel.poll_completion()));
        match step {
            Ok(Step::OutputFull) => assert!(done.len() > polled, "output full, but there is none"),
            Ok(Step::Budget) => panic!("no end in sight at {:?}", kernel.now()),
            other => return other,
        }
    }
}

fn check_port_counters<M: Models>(kernel: &Kernel<'_, M, Watch>) {
    let totals = kernel.totals();
    let stats: Vec<_> = kernel.fabric().ports().map(|p| kernel.port_stats(p)).collect();
    assert_eq!(stats.iter().map(|s| s.frames).sum::<u64>(), totals.packet_hops);
    assert_eq!(stats.iter().map(|s| s.marks).sum::<u64>(), totals.ecn_marks);
    assert_eq!(stats.iter().map(|s| s.pauses).sum::<u64>(), totals.pauses);
    assert_eq!(stats.iter().map(|s| s.drops).sum::<u64>(), totals.drops);
    // Bits sent in the time that has passed, and one frame that may have begun. ns-3 rounds times down: 3 % on the
    // smallest frames at 400 Gb/s and more; so this is for the exact profile. (The observer checks the other, too.)
    if M::Timing::NAME != "ps" {
        return;
    }
    for (port, stats) in kernel.fabric().ports().zip(stats) {
        let rate = u128::from(kernel.fabric().port(port).rate.0);
        let most = rate * u128::from(kernel.now().0) / 8 / 1_000_000_000_000 + 1_100;
        assert!(u128::from(stats.bytes) <= most, "port {port:?} has sent {} bytes of {most}", stats.bytes);
    }
}

fn check_completions(scenario: &Scenario, done: &[Completion], ideals: &[Span]) {
    let mut seen = vec![false; scenario.flows.len()];
    for completion in done {
        let token = completion.token as usize;
        let flow = &scenario.flows[token];
        assert!(!std::mem::replace(&mut seen[token], true), "flow {token} ended twice");
        assert_eq!((completion.bytes, completion.start), (flow.bytes, flow.start), "flow {token}");
        assert!(completion.end() == FlowEnd::Done || scenario.lossy, "flow {token} was given up");
        // Sprayed packets may find a faster path than the one asked about.
        if scenario.profile != Profile::PsSpray && completion.end() == FlowEnd::Done {
            assert!(completion.fct >= ideals[token], "flow {token}: {:?} < {:?}", completion.fct, ideals[token]);
        }
    }
}

fn check_end<M: Models>(
    scenario: &Scenario,
    kernel: &Kernel<'_, M, Watch>,
    end: Result<Step, CapacityError>,
    done: &[Completion],
) {
    let totals = kernel.totals();
    if !scenario.lossy {
        assert_eq!(totals.drops, 0, "drops in a lossless fabric");
    }
    let paused: Vec<_> = kernel.paused_queues().collect();
    if scenario.shape == Shape::Ring && end == Ok(Step::Stalled) {
        assert!(!paused.is_empty() && done.len() < scenario.flows.len(), "stalled without a deadlock");
        return;
    }
    // A lost RESUME is a legal end as well, but buffers are so large that there should be no PAUSE.
    assert!(!scenario.lossy || totals.pauses == 0, "pauses in a lossy fabric: make the buffers larger");
    assert_eq!((end, done.len()), (Ok(Step::Idle), scenario.flows.len()), "paused: {paused:?}");
    assert_eq!((kernel.live_packets(), kernel.unfinished_flows(), kernel.queued_flows()), (0, 0, 0));
    assert_eq!((totals.flows_finished, kernel.observer.finished, kernel.observer.started), {
        let flows = scenario.flows.len() as u64;
        (flows, flows, flows)
    });
    assert!(kernel.observer.nothing_is_paused(), "a port stays paused");
    assert_eq!(kernel.observer.in_flight(), 0, "bytes that neither arrived nor were lost");
    check_all_empty(kernel);
}

fn check_all_empty<M: Models>(kernel: &Kernel<'_, M, Watch>) {
    for node in (0..kernel.fabric().node_count() as u32).map(NodeId) {
        assert_eq!(kernel.shared_bytes(node), 0, "shared bytes of {node:?}");
    }
    for port in kernel.fabric().ports() {
        for priority in 0..8 {
            let bytes = (kernel.ingress_bytes(port, priority), kernel.egress_bytes(port, priority));
            assert_eq!(bytes, (0, 0), "{port:?}, priority {priority}");
        }
    }
}

#[test]
fn invariants_hold_in_all_scenarios() {
    let (mut flows, mut pauses, mut drops, mut deadlocks) = (0, 0, 0, 0);
    for_all_seeds(200, Scenario::new, |scenario| {
        let run = scenario.with_models(Checked(&scenario.limits()));
        flows += run.done.len();
        pauses += run.pauses;
        drops += run.drops;
        deadlocks += u64::from(run.end == Ok(Step::Stalled));
    });
    println!("{flows} flows, {pauses} pauses, {drops} drops, {deadlocks} deadlocks");
}

/// Five switches in a ring, all traffic two switches onward: every ring link waits for the next one.
#[test]
fn deadlock_in_a_ring_is_told() {
    let rng = &mut Rng(1);
    let mut build = Build::new([100, 100]);
    let hosts = build.add(NodeKind::Host, 10);
    let switches = build.add(NodeKind::Switch, 5);
    hosts.iter().for_each(|&host| build.link(rng, host, switches[host as usize / 2]));
    (0..5).for_each(|i| build.link(rng, switches[i], switches[(i + 1) % 5]));
    let flow = |i: u32| FlowSpec {
        src_port: i as u16,
        token: u64::from(i),
        ..FlowSpec::new(NodeId(i % 10), NodeId((i + 4) % 10), 300_000, SimTime::ZERO)
    };
    for profile in [Profile::Ps, Profile::Ns3] {
        let Build { nodes, links, .. } = &build;
        let (nodes, links, flows) = (nodes.clone(), links.clone(), (0..200).map(flow).collect());
        let (shape, buffer, ccas) = (Shape::Ring, 1 << 20, ccas().into());
        let (ecn, lossy) = (None, false);
        let scenario = Scenario { seed: 1, shape, profile, nodes, links, flows, ccas, buffer, ecn, lossy };
        // That the paused queues are there is checked with the other invariants.
        assert_eq!(scenario.with_models(Checked(&scenario.limits())).end, Ok(Step::Stalled), "{profile:?}");
    }
}

/// Whatever runs out, the kernel says what, and goes on answering.
#[test]
fn tiny_limits_are_errors_not_panics() {
    for_all_seeds(200, Scenario::new, |scenario| {
        let roomy = scenario.limits();
        let tiny = [
            Limits { packets: 8, ..roomy },
            Limits { active_flows: 1, ..roomy },
            Limits { outputs: 1, ..roomy },
            Limits { packets: 5, active_flows: 2, outputs: 1, ..roomy },
        ];
        for limits in tiny {
            let run = scenario.with_models(Checked(&limits));
            let Err(CapacityError { what, limit }) = run.end else { continue };
            match what {
                "packets" => assert_eq!(limit, limits.packets),
                "active_flows" => assert_eq!(limit, limits.active_flows),
                other => panic!("ran out of {other}"),
            }
            assert!(limits.outputs == roomy.outputs || limits.packets < 8, "outputs are polled, not an error");
        }
    });
}

/// After a capacity error the kernel can be asked again, and says the same without doing anything.
#[test]
fn capacity_errors_repeat() {
    for_all_seeds(50, Scenario::new, |scenario| {
        let models = scenario.models(Ecmp::new(EcmpHash::Salted(1)));
        let limits = Limits { packets: 8, active_flows: 1, outputs: 1, ..scenario.limits() };
        let mut memory = vec![0; Kernel::<Ps<'_, Ecmp>>::words(scenario.size(), &limits, &models)];
        let kernel = Kernel::new(&mut memory, &scenario.nodes, &scenario.links, models, &limits, ());
        let mut kernel = kernel.expect("a kernel");
        scenario.flows.iter().for_each(|flow| assert!(kernel.add_flow(flow).is_ok()));
        let mut ended = 0;
        for _ in 0..1_000 {
            let step = kernel.run_bounded(SimTime::MAX, EVENT_BUDGET);
            if step == Ok(Step::OutputFull) {
                assert_eq!(kernel.run_until(SimTime::MAX), Ok(Step::OutputFull), "nothing was polled");
                assert!(kernel.poll_completion().is_some() && kernel.poll_completion().is_none());
                ended += 1;
            } else if let Err(CapacityError { what, .. }) = step {
                assert!(["packets", "active_flows"].contains(&what), "out of {what}");
                let _ = (kernel.next_event_time(), kernel.live_packets(), kernel.paused_queues().count());
            } else {
                break;
            }
        }
        assert_eq!(ended, kernel.totals().flows_finished);
    });
}

// Worlds: what input files and the command line can say.

/// Far more events than any world takes.
const WORLD_BUDGET: u64 = 4_000_000;

/// Ends a run that goes on for ever.
struct Budget;

impl Follow for Budget {
    fn progress(&mut self, progress: Progress) -> ControlFlow<()> {
        if progress.events > WORLD_BUDGET { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }
}

/// Runs a world with a tier; `None` if a path is longer than the congestion control's telemetry.
fn run_world(world: &World, tier: Tier, watch: &mut dyn wormhole_kernel::Observer) -> Option<Outcome> {
    let scenario = usable(world.load(tier));
    let mut memo = world.memo(tier);
    let outcome = simulate_observed(&scenario, memo.as_mut(), watch, &mut Budget);
    let is_too_long = |refusal: &Refusal| matches!(refusal.error, Error::PathTooLong { limit: 5, .. });
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(refused) if world.cca == CcaName::Hpcc && refused.iter().all(is_too_long) => return None,
        Err(refused) => panic!("refused: {refused:?}"),
    };
    // Where time-outs are shorter than queues, all is sent over and over.
    assert!(outcome.ending != Ending::Interrupted || has_slow_links(world), "no end in sight");
    Some(outcome)
}

/// Whether no frame finds a buffer full: pipes hold what is under way when a pause goes out, and PFC is for all.
fn is_roomy(world: &World) -> bool {
    let mtu = world.config.get("PACKET_PAYLOAD_SIZE").map_or(1_000, |text| text.parse().expect("a number"));
    let frame = u128::from(Transport::data_bytes(mtu, 50));
    let holds_four = |bits: u128| bits / 8 >= 4 * frame * 1_000_000_000_000;
    world.flows.iter().all(|flow| flow.priority != 0)
        && world.links.iter().all(|link| holds_four(u128::from(link.rate.0) * u128::from(link.delay.0 / 1_000 * 1_000)))
}

/// Whether the payload of a world takes some links longer than a time-out.
fn has_slow_links(world: &World) -> bool {
    world.links.iter().any(|link| link.rate < BitRate::from_gbps(7))
}

/// What holds of every run of a world, however it is accelerated.
fn check_outcome(world: &World, outcome: &Outcome) {
    let totals = outcome.totals;
    let sum = |of: fn(&PortStats) -> u64| outcome.ports.iter().map(|port| of(&port.stats)).sum::<u64>();
    assert_eq!(
        [totals.packet_hops, totals.ecn_marks, totals.pauses, totals.drops],
        [sum(|s| s.frames), sum(|s| s.marks), sum(|s| s.pauses), sum(|s| s.drops)]
    );
    let mut ended = vec![false; world.flows.len()];
    let mut sizes: Vec<u64> = vec![];
    for record in outcome.flows.in_memory() {
        let done = &record.completion;
        assert!(!std::mem::replace(&mut ended[done.token as usize], true), "flow {} ended twice", done.token);
        assert!(done.start + done.fct <= outcome.end, "{done:?} ends after the run: {:?}", outcome.end);
        if done.end() == FlowEnd::GaveUp {
            // Where links are slow, queues outlast the time-outs.
            let is_lost = world.may_lose() || totals.drops > 0;
            assert!(is_lost || has_slow_links(world), "given up without loss: {done:?}");
            continue;
        }
        sizes.push(done.bytes);
        // Links that fail, and sprayed packets, may find a faster path than the one asked about.
        if world.changes.is_empty() && world.routing == Routing::Ecmp {
            assert!(done.fct >= record.ideal, "slowdown below 1: ideal {:?}, {done:?}", record.ideal);
        }
    }
    let given_up = outcome.flows.in_memory().iter().filter(|f| f.completion.end() == FlowEnd::GaveUp).count();
    assert_eq!(given_up as u64, totals.flows_given_up);
    let lossless = !world.may_lose() && is_roomy(world);
    assert!(!lossless || totals.drops == 0, "{} drops in a lossless fabric", totals.drops);
    match &outcome.ending {
        Ending::Done => {
            assert!(ended.iter().all(|&ended| ended), "done, but not all flows have ended");
            let mut want: Vec<u64> = world.flows.iter().map(|flow| flow.bytes).collect();
            want.sort_unstable();
            sizes.sort_unstable();
            assert!(given_up > 0 || sizes == want, "payload: {sizes:?}, not {want:?}");
        }
        Ending::StopTime => assert!(world.config.contains_key("SIMULATOR_STOP_TIME"), "there is no stop time"),
        Ending::OutOf(CapacityError { what, limit }) => {
            assert_eq!((*what, *limit), ("packets", world.max_packets));
            assert!(world.max_packets < ENOUGH_PACKETS, "out of {limit} packets");
        }
        Ending::Deadlock(queues) => {
            assert!(!queues.is_empty() && queues.iter().all(|queue| queue.bytes > 0), "{queues:?}");
            // In ns-3 a RESUME can be lost.
            let lost = world.profile == Family::Ns3 && world.may_lose();
            assert!(lost || world.may_deadlock(), "a deadlock where queues cannot wait in a circle: {queues:?}");
        }
        // ns-3 has no time-outs: what is lost last is never asked for.
        Ending::Stalled(flows) => {
            let is_lost = world.may_lose() || totals.drops > 0;
            assert!(!flows.is_empty() && world.profile == Family::Ns3 && is_lost, "stalled: {flows:?}");
        }
        Ending::Interrupted => {}
        other => panic!("ended with {other:?}"),
    }
}

/// Runs a world with every event executed, watched by one that checks each.
fn plain_run(world: &World) -> Option<Outcome> {
    let serialise = match world.profile {
        Family::Ps => |bytes, rate| PsTiming.serialise(bytes, rate),
        Family::Ns3 => |bytes, rate| Ns3Timing.serialise(bytes, rate),
    };
    let mut watch = Watch::new(&world.nodes, &world.links, world.flows.len(), serialise);
    watch.links_change = !world.changes.is_empty();
    let outcome = run_world(world, Tier::Off, &mut watch)?;
    check_outcome(world, &outcome);
    assert_eq!((outcome.skipped, watch.drops), (Skipped::default(), outcome.totals.drops));
    assert_eq!((watch.finished, outcome.flows.len() as u64), (outcome.totals.flows_finished, watch.finished));
    // Where nothing is lost or overtakes, nothing is sent twice: what was acknowledged in the end is all there was.
    let Totals { drops, timeouts, .. } = outcome.totals;
    let in_order = drops + timeouts == 0 && world.changes.is_empty() && world.routing == Routing::Ecmp;
    if in_order && outcome.ending == Ending::Done {
        assert_eq!(watch.in_flight(), 0, "bytes that have not arrived, and all flows are done");
    }
    Some(outcome)
}

/// What two runs must have in common if one of them is exact.
fn visible(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug {
    let mut done: Vec<Completion> = outcome.flows.in_memory().iter().map(|flow| flow.completion).collect();
    // Records tell of instants, not of the order in them.
    done.sort_by_key(|done| (done.start + done.fct, done.token));
    let stats = |port: &wormhole::simulate::PortReport| PortStats { skipped: Span::ZERO, ..port.stats };
    let ports: Vec<PortStats> = outcome.ports.iter().map(stats).collect();
    (done, outcome.ending.name(), outcome.end, Totals { events: 0, ..outcome.totals }, ports)
}

/// What the accelerated runs of a swarm of worlds have done.
#[derive(Default, Debug)]
struct WorldTally {
    worlds: u64,
    /// Those whose paths are too long for their congestion control.
    refused: u64,
    endings: BTreeMap<String, u64>,
    drops: u64,
    pauses: u64,
    given_up: u64,
    exact_that_skip: u64,
    bounded: u64,
    bounded_that_skip: u64,
    memo_hits: u64,
    contested: u64,
    guessed_wrong: u64,
    /// Relative errors of FCTs in bounded runs.
    errors: Vec<f64>,
}

impl WorldTally {
    fn check(&mut self, world: &World) {
        self.worlds += 1;
        let Some(plain) = plain_run(world) else {
            self.refused += 1;
            return;
        };
        *self.endings.entry(plain.ending.name()).or_default() += 1;
        self.drops += plain.totals.drops;
        self.pauses += plain.totals.pauses;
        self.given_up += plain.totals.flows_given_up;
        if plain.ending == Ending::Interrupted {
            return;
        }
        self.check_exact(world, &plain);
        if world.acceleration.tier == Tier::Bounded {
            self.check_bounded(world, &plain);
        }
    }

    fn check_exact(&mut self, world: &World, plain: &Outcome) {
        let exact = run_world(world, Tier::Exact, &mut ()).expect("paths as before");
        check_outcome(world, &exact);
        self.exact_that_skip += u64::from(exact.skipped.events > 0);
        self.memo_hits += exact.memo.counts.hits;
        // Where the order of partitions in step was guessed, a difference is only counted. Parked frames take room.
        let (plain, seen) = (visible(plain), visible(&exact));
        let differs = plain != seen;
        self.contested += u64::from(exact.skipped.contested > 0);
        if exact.skipped.contested > 0 && differs {
            self.guessed_wrong += 1;
        } else if world.max_packets >= ENOUGH_PACKETS {
            assert_eq!(plain, seen, "exact differs");
        }
    }

    /// Whether lost frames or deadlocks keep a flow from its end is chance.
    fn check_bounded(&mut self, world: &World, plain: &Outcome) {
        let bounded = run_world(world, Tier::Bounded, &mut ()).expect("paths as before");
        // The paper's detector takes rates that the bottleneck does not have for steady ones.
        if matches!(world.acceleration.detector, Detector::Paper { .. }) {
            return;
        }
        check_outcome(world, &bounded);
        self.bounded += 1;
        self.bounded_that_skip += u64::from(bounded.skipped.events > 0);
        self.memo_hits += bounded.memo.counts.hits;
        let calm = !world.may_lose() && plain.totals.drops == 0 && plain.ending == Ending::Done;
        if calm && world.max_packets >= ENOUGH_PACKETS && !world.may_deadlock() {
            assert_eq!(bounded.ending, Ending::Done);
            let fcts: BTreeMap<u64, Span> =
                bounded.flows.in_memory().iter().map(|flow| (flow.completion.token, flow.completion.fct)).collect();
            let error = |done: &Completion| (fcts[&done.token].0 as f64 / done.fct.0 as f64 - 1.0).abs();
            self.errors.extend(plain.flows.in_memory().iter().map(|flow| error(&flow.completion)));
        }
    }

    fn assert_varied(&mut self) {
        self.errors.sort_by(f64::total_cmp);
        let mean = self.errors.iter().sum::<f64>() / self.errors.len().max(1) as f64;
        let most = self.errors.last().copied().unwrap_or(0.0);
        let errors = std::mem::take(&mut self.errors).len();
        println!("{self:?}; bounded FCT errors of {errors} flows: mean {mean:.6}, largest {most:.6}");
        assert!(20 * self.guessed_wrong <= self.contested.max(20), "too many differ");
        assert!(mean <= 0.01, "bounded errs by {mean} on average");
        if self.worlds >= 100 {
            let common = ["done", "out_of_packets", "stop_time"].iter().all(|name| self.endings.contains_key(*name));
            assert!(common && self.drops > 0 && self.pauses > 0 && self.given_up > 0, "worlds without variety");
            assert!(
                self.exact_that_skip * 20 >= self.worlds && self.bounded_that_skip * 16 >= self.bounded,
                "few skip"
            );
        }
    }
}

/// Below the folder of this test, where failing worlds are written to.
fn folder(name: &str) -> std::path::PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join("swarm").join(name)
}

#[test]
fn worlds_keep_their_promises() {
    let mut tally = WorldTally::default();
    for_all_worlds(300, &empty_folder(folder("failed")), |world| tally.check(world));
    tally.assert_varied();
}

/// What is written is what is run.
#[test]
fn written_worlds_are_run_by_the_command_line() {
    let mut ends = BTreeMap::<String, u64>::new();
    for seed in 0..12 {
        let (world, folder) = (world(seed), empty_folder(folder(&format!("written-{seed}"))));
        let command = world.write(&folder);
        let arguments = command.strip_prefix("wormhole ").expect("a command of wormhole");
        let said: Said = wormhole_in(&folder, arguments).output().expect("wormhole runs").into();
        let outcome = run_world(&world, world.acceleration.tier, &mut ()).expect("short paths");
        let code = wormhole::ending::explain(&outcome) as i32;
        assert_eq!(said.code, Some(code), "seed {seed}: {said:?}");
        let mut table = Vec::new();
        let scenario = usable(world.load(world.acceleration.tier));
        let rows = wormhole::outputs::fct_table(&scenario, &outcome).expect("flows in memory");
        rows.write_csv(&mut table).expect("memory");
        let written = std::fs::read(folder.join("out/fct.csv")).expect("fct.csv");
        assert!(written == table, "seed {seed}: {}", String::from_utf8_lossy(&written));
        *ends.entry(outcome.ending.name()).or_default() += 1;
    }
    println!("{ends:?}");
}

/// A fault that only a known smallest world has: four flows to one host.
#[test]
fn a_planted_fault_shrinks_to_its_smallest_world() {
    let incast = |world: &World| {
        let mut flows = BTreeMap::<u32, usize>::new();
        world.flows.iter().for_each(|flow| *flows.entry(flow.dst).or_default() += 1);
        flows.values().any(|&flows| flows > 3)
    };
    let failing: Vec<World> = (0..200).map(world).filter(incast).take(6).collect();
    assert_eq!(failing.len(), 6, "few worlds have four flows to a host");
    for world in failing {
        let smallest = shrink(world, incast);
        assert_eq!((smallest.flows.len(), smallest.changes.len(), smallest.config.len()), (4, 0, 0), "{smallest}");
        // One sender, one receiver, and one switch between them.
        assert_eq!((smallest.nodes.len(), smallest.links.len()), (3, 2), "{smallest}");
        assert!(smallest.flows.iter().all(|flow| (flow.bytes, flow.start_ns, flow.priority) == (1, 0, 3)));
        assert_eq!((smallest.profile, smallest.max_packets), (Family::Ps, ENOUGH_PACKETS));
    }
}

/// A fault that shows in a run: a frame is lost with a link. One failure is left, and one flow that comes upon it.
#[test]
fn a_fault_of_a_run_shrinks_to_its_smallest_world() {
    let loses = |world: &World| {
        let lossless = world.links.iter().all(|link| link.loss == 0);
        let drops = || run_world(world, Tier::Off, &mut ()).map_or(0, |outcome| outcome.totals.drops);
        lossless && !world.changes.is_empty() && drops() > 0
    };
    let failing: Vec<World> = (0..200).map(world).filter(loses).take(3).collect();
    assert_eq!(failing.len(), 3, "few worlds lose a frame with a link");
    for world in failing {
        let smallest = shrink(world, loses);
        println!("{smallest}");
        assert_eq!((smallest.flows.len(), smallest.changes.len()), (1, 1), "{smallest}");
        // Not always the very smallest: the moment of the failure fits the path that is left.
        assert!(smallest.nodes.len() <= 4 && smallest.config.len() <= 1, "{smallest}");
        let folder = empty_folder(folder("shrunk"));
        let command = smallest.write(&folder);
        let said: Said = wormhole_in(&folder, &command["wormhole ".len()..]).output().expect("wormhole runs").into();
        let summary = std::fs::read_to_string(folder.join("out/summary.json")).expect("a summary");
        let summary: serde_json::Value = serde_json::from_str(&summary).expect("JSON");
        assert!(summary["drops"].as_u64() > Some(0), "{said:?}: {summary}");
    }
}

//! Links and switches that fail and come back, bursts of loss, pauses that spread: runs end, or say why not, and
//! accelerated runs show what plain ones do.

use std::fs;
use std::path::Path;
use wormhole::ending::{ExitStatus, explain};
use wormhole::load::{Texts, load_texts};
use wormhole::scenario::{CcaName, Options, Profile, Scenario};
use wormhole::simulate::{Ending, Outcome, simulate};
use wormhole::topo::build;
use wormhole::workload::collective::CollectiveOptions;
use wormhole::workload::task::CollectiveKind;
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::units::PS_PER_US;
use wormhole_kernel::{BitRate, FlowEnd, SimTime, Span};
use wormhole_models::topology::{Clos, FabricPlan, HostLinks, LinkClass, Rail, Trunk};
use wormhole_tests::{Run, Said, case_text, collective, data, empty_folder, run, usable, wormhole_in};

const US: u64 = PS_PER_US;
/// The retransmission time-out of short paths.
const TIMEOUT: u64 = 4_000 * US;

/// A scenario as its files say it.
#[derive(Clone, Copy)]
struct Files<'t> {
    topology: &'t str,
    flows: Option<&'t str>,
    config: &'t str,
    changes: &'t str,
}

impl Files<'_> {
    fn load(&self, options: Options) -> Scenario {
        let texts = Texts {
            topology: ("topology.txt", self.topology),
            flows: self.flows.map(|text| ("flow.txt", text)),
            config: Some(("config.txt", self.config)),
            link_events: Some(("link-events.txt", self.changes)),
        };
        usable(load_texts(&texts, &options))
    }

    fn with(&self, profile: Profile) -> Scenario {
        self.load(Options { profile, ..Options::PLAIN })
    }
}

fn text(plan: &dyn FabricPlan) -> String {
    let topology = build(plan).expect("a fabric");
    let mut text = Vec::new();
    wormhole::input::topology::write_topology(&topology, &mut text).expect("memory");
    String::from_utf8(text).expect("text")
}

/// Leaves 8 and 9 with hosts 0 to 3 and 4 to 7, spines 10 and 11; all links of 100 Gb/s and 1 us.
fn clos() -> String {
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let spine = Trunk { links: 1, class: LinkClass { rate, delay } };
    let host = HostLinks { rates: &[rate], delay };
    text(&Clos { leaves: 2, hosts_per_leaf: 4, spines: 2, host, spine, ..Clos::default() })
}

/// Two servers of four GPUs, one leaf a rail, and two spines.
fn rail() -> String {
    text(&Rail { servers: 2, gpus_per_server: 4, servers_per_leaf: 2, spines: 2, ..Rail::default() })
}

/// The scenario with a tier.
fn tiered(scenario: &Scenario, tier: Tier) -> Outcome {
    let acceleration = Acceleration { tier, detector: Detector::CYCLE };
    let scenario = Scenario { acceleration, ..scenario.clone() };
    simulate(&scenario, &mut ()).unwrap_or_else(|refused| panic!("refused: {refused:?}"))
}

/// What a plain run shows of its flows and jobs, for comparison: flows by name.
fn shown(outcome: &Outcome) -> impl PartialEq + std::fmt::Debug + use<> {
    let mut flows: Vec<_> =
        outcome.flows.in_memory().iter().map(|f| (f.name, f.completion.start, f.completion.fct)).collect();
    flows.sort_unstable();
    let jobs: Vec<_> = outcome.jobs.iter().map(|job| (job.start, job.end, job.collectives.clone())).collect();
    (outcome.ending.clone(), flows, jobs)
}

fn mean_fct(outcome: &Outcome) -> f64 {
    outcome.flows.in_memory().iter().map(|flow| flow.completion.fct.0 as f64).sum::<f64>() / outcome.flows.len() as f64
}

/// Runs a scenario plainly, and asserts that tier exact shows the same, and tier bounded the same within 1 %.
fn same_in_all_tiers(scenario: &Scenario) -> Outcome {
    let plain = tiered(scenario, Tier::Off);
    let exact = tiered(scenario, Tier::Exact);
    assert_eq!(shown(&exact), shown(&plain), "exact differs, {} events contested", exact.skipped.contested);
    assert_eq!((exact.totals.drops, exact.totals.timeouts), (plain.totals.drops, plain.totals.timeouts));
    let bounded = tiered(scenario, Tier::Bounded);
    assert_eq!((bounded.ending.name(), bounded.flows.len()), (plain.ending.name(), plain.flows.len()));
    if !plain.flows.is_empty() {
        let error = mean_fct(&bounded) / mean_fct(&plain) - 1.0;
        let end = bounded.end.0 as f64 / plain.end.0 as f64 - 1.0;
        println!("bounded: mean FCT {error:+.5}, end {end:+.5}, {} events skipped", bounded.skipped.events);
        assert!(error.abs() < 0.01 && end.abs() < 0.01, "mean FCT {error}, end {end}");
    }
    plain
}

// Collectives.

/// A ring all-reduce of 8 hosts, 4 MB, under a congestion control; links change as the rows say.
fn all_reduce(topology: &str, cca: CcaName, changes: &str) -> Scenario {
    let files = Files { topology, flows: None, config: "", changes };
    let mut scenario = files.load(Options { cca: Some(cca), ..Options::PLAIN });
    scenario.jobs = vec![collective(8, CollectiveKind::AllReduce, 4_000_000, CollectiveOptions::default())];
    scenario
}

/// Time of the only collective, which must end.
fn time(outcome: &Outcome) -> Span {
    assert_eq!(outcome.ending, Ending::Done);
    assert!(outcome.flows.in_memory().iter().all(|flow| flow.completion.end() == FlowEnd::Done));
    let [report] = &outcome.jobs[0].collectives[..] else { panic!("one collective") };
    report.time
}

/// A spine fails in the midst of it: leaves send over the other one, what was under way is sent again.
#[test]
fn a_collective_goes_around_a_spine_that_fails() {
    for cca in [CcaName::Fixed, CcaName::Hpcc, CcaName::Dcqcn] {
        let whole = time(&same_in_all_tiers(&all_reduce(&clos(), cca, "")));
        for changes in ["200 down 10\n", "200 down 10\n300 up 10\n", "200 down 8 10\n200 down 9 11\n250 up 8 10\n"] {
            let outcome = same_in_all_tiers(&all_reduce(&clos(), cca, changes));
            let took = time(&outcome);
            println!("{cca:?}, {changes:?}: {took:?} instead of {whole:?}, {:?}", outcome.totals);
            assert!(took >= whole, "{cca:?}, {changes:?}: {took:?}, and {whole:?} without a failure");
        }
    }
}

/// A leaf fails: nobody behind it can be reached before it is back. Its hosts go on then, at the latest when the
/// time-outs that have doubled come due.
#[test]
fn a_collective_waits_for_a_leaf_that_comes_back() {
    for cca in [CcaName::Fixed, CcaName::Hpcc, CcaName::Dcqcn] {
        let whole = time(&same_in_all_tiers(&all_reduce(&clos(), cca, "")));
        for (back, most) in [(250, 1), (5_000, 2), (30_000, 8)] {
            let changes = format!("200 down 8\n{back} up 8\n");
            let outcome = same_in_all_tiers(&all_reduce(&clos(), cca, &changes));
            let took = time(&outcome);
            println!("{cca:?}, back at {back} us: {took:?} instead of {whole:?}, {:?}", outcome.totals);
            assert!(outcome.totals.drops > 0, "the leaf was in use");
            assert!(took > Span(back * US), "{took:?}: before the leaf is back");
            let latest = Span(back * US + most * TIMEOUT) + whole + whole;
            assert!(took < latest, "{took:?}: the last time-out is over before {latest:?}");
        }
    }
}

/// GPU 0 of both servers meet at leaf 0 of the rail fabric only; over NVLink and another rail nothing is forwarded.
#[test]
fn a_collective_on_rails_survives_a_leaf() {
    let topology = rail();
    let nodes: Vec<&str> = topology.split_whitespace().take(5).collect();
    // GPUs, then NVSwitches, then leaves: the header says how many there are of the first two.
    let leaf = 8 + nodes[2].parse::<u32>().expect("NVSwitches");
    let whole = time(&same_in_all_tiers(&all_reduce(&topology, CcaName::Hpcc, "")));
    let changes = format!("20 down {leaf}\n6000 up {leaf}\n");
    let outcome = same_in_all_tiers(&all_reduce(&topology, CcaName::Hpcc, &changes));
    println!("{:?} instead of {whole:?}, {:?}", time(&outcome), outcome.totals);
    assert!(time(&outcome) > Span(6_000 * US));
}

/// It does not come back: flows are given up after 255 time-outs, which keeps the collective from its end.
#[test]
fn a_collective_without_its_leaf_ends_and_says_so() {
    let scenario = all_reduce(&clos(), CcaName::Hpcc, "200 down 8\n");
    for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
        let outcome = tiered(&scenario, tier);
        assert!(outcome.totals.flows_given_up > 0, "{tier:?}: {:?}", outcome.totals);
        assert!(matches!(&outcome.ending, Ending::Waiting(_)), "{:?}", outcome.ending);
        assert_eq!(explain(&outcome), ExitStatus::Stalled);
    }
}

/// The same at the command line, from files alone.
#[test]
fn the_command_line_runs_a_switch_that_fails() {
    let folder = empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("failures"));
    let scenario = "[fabric]\nkind = 'clos'\nleaves = 2\nhosts-per-leaf = 4\nspines = 2\n[[job]]\nkind = 'file'\n\
                    file = 'ring.goal'\n[models]\nlink-events = 'changes.txt'\n";
    let goal: String = (0..8)
        .map(|rank| {
            let (next, last) = ((rank + 1) % 8, (rank + 7) % 8);
            format!("rank {rank} {{\ns: send 1000000b to {next}\nr: recv 1000000b from {last}\n}}\n")
        })
        .collect();
    let write = |name: &str, text: &str| fs::write(folder.join(name), text).expect("a file");
    write("scenario.toml", scenario);
    write("ring.goal", &format!("num_ranks 8\n{goal}"));
    let said = |changes: &str| -> Said {
        write("changes.txt", changes);
        wormhole_in(&folder, "run scenario.toml --out out").output().expect("wormhole runs").into()
    };
    let _ = said("20 down 10\n40 up 10\n").succeeds();
    let _ = said("20 down 8\n40 up 8\n").succeeds();
    said("20 down 8\n")
        .tells(ExitStatus::Stalled as i32, "host 0 has given up 1000000 bytes to host 1 after too many time-outs");
    said("20 down 99\n20 down 8 9\n").tells(3, "changes.txt:1: error: no link ends at this node (found `99`)");
    said("20 down 8 9\n").tells(3, "changes.txt:1: error: no link joins these nodes (found `8 9`)");
}

// Bursts of loss.

/// Hosts 0 and 1 over switch 2.
const PAIR: &str = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
/// 100 packets at line rate: 8.5 us, and 4.2 us for the last of them and its acknowledgement.
const BURST: &str = "1\n0 1 3 100 100000 0\n";

fn pair(changes: &str, profile: Profile) -> Scenario {
    Files { topology: PAIR, flows: Some(BURST), config: "CC_MODE 0\nHAS_WIN 0\n", changes }.with(profile)
}

/// Frames are lost in the midst of a flow: the next one that arrives is refused, and all go again from there. The
/// time-out is not needed.
#[test]
fn a_burst_lost_in_the_middle_is_asked_for() {
    for profile in [Profile::Ps, Profile::Ns3] {
        let whole = same_in_all_tiers(&pair("", profile)).flows.in_memory()[0].completion.fct;
        let outcome = same_in_all_tiers(&pair("4 down 0 2\n4.5 up 0 2\n", profile));
        assert!(outcome.totals.drops > 1 && outcome.totals.timeouts == 0, "{:?}", outcome.totals);
        let fct = outcome.flows.in_memory()[0].completion.fct;
        assert!(fct > whole && fct < whole + Span(10 * US), "{profile:?}: {fct:?} instead of {whole:?}");
    }
}

/// The last frames are lost: nothing arrives that could be refused. Only the time-out helps, which ns-3 does not have.
#[test]
fn a_burst_lost_at_the_end_needs_the_time_out() {
    let changes = "9 down 1 2\n9.5 up 1 2\n";
    let outcome = same_in_all_tiers(&pair(changes, Profile::Ps));
    assert!(outcome.totals.drops > 0 && outcome.totals.timeouts == 1, "{:?}", outcome.totals);
    let fct = outcome.flows.in_memory()[0].completion.fct;
    assert!(fct > Span(TIMEOUT) && fct < Span(TIMEOUT + 40 * US), "{fct:?}");

    for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
        let outcome = tiered(&pair(changes, Profile::Ns3), tier);
        assert!(matches!(&outcome.ending, Ending::Stalled(flows) if flows.len() == 1), "{:?}", outcome.ending);
        assert_eq!(explain(&outcome), ExitStatus::Stalled);
    }
}

/// The link is cut at every moment of a flow in turn. Each cut is survived.
#[test]
fn a_cut_at_any_moment_is_survived() {
    let mut with_timeout = 0;
    for tenths in (0..150).step_by(3) {
        for link in ["0 2", "1 2"] {
            let at = |tenths: u32| format!("{}.{}", tenths / 10, tenths % 10);
            let changes = format!("{} down {link}\n{} up {link}\n", at(tenths), at(tenths + 2));
            let outcome = same_in_all_tiers(&pair(&changes, Profile::Ps));
            assert_eq!((&outcome.ending, outcome.totals.flows_given_up), (&Ending::Done, 0), "{changes}");
            let most = Span(outcome.totals.timeouts * TIMEOUT + 100 * US);
            assert!(
                outcome.flows.in_memory()[0].completion.fct < most,
                "{changes}: {:?}",
                outcome.flows.in_memory()[0].completion
            );
            with_timeout += u64::from(outcome.totals.timeouts > 0);
        }
    }
    assert!(with_timeout > 0, "no cut has needed the time-out");
}

/// Back to the start of a chunk, as ns-3's `L2_BACK_TO_ZERO`: a flow need not end where a chunk does.
#[test]
fn a_flow_that_goes_back_to_its_chunk_ends_within_one() {
    for bytes in [1, 3_999, 4_000, 4_001, 100_001] {
        for changes in ["", "4 down 0 2\n4.5 up 0 2\n"] {
            let flows = format!("1\n0 1 3 100 {bytes} 0\n");
            let config = "CC_MODE 0\nHAS_WIN 0\nL2_BACK_TO_ZERO 1\n";
            let files = Files { topology: PAIR, flows: Some(&flows), config, changes };
            let outcome = same_in_all_tiers(&files.with(Profile::Ps));
            assert_eq!((&outcome.ending, outcome.totals.flows_given_up), (&Ending::Done, 0), "{bytes}, {changes}");
        }
    }
}

/// In ns-3 a sender that went back twice may believe that less is sent than was acknowledged: what is in flight wraps.
/// Found by the swarm of worlds, seed 462.
#[test]
fn a_sender_that_went_back_twice_can_be_accelerated() {
    let topology = "5 2 6\n3 4\n0 3 33333333333bps 14128ns 0.02\n1 4 100Gbps 1471ns 0\n2 4 10Gbps 1ms 0\n\
                    3 4 2880Gbps 1484ns 0\n3 4 1Mbps 999ps 0.02\n3 4 7Gbps 999ps 0.02\n";
    let flows = Some("3\n2 1 3 100 1 0\n0 1 3 100 999998 0\n0 1 3 100 999998 0\n");
    let config =
        "RATE_AI 1000Mb/s\nKMIN_MAP 1 100000000000 100\nKMAX_MAP 1 100000000000 400\nPMAX_MAP 1 100000000000 0.2\n";
    let options = Options { profile: Profile::Ns3, cca: Some(CcaName::Hpcc), ..Options::PLAIN };
    let scenario = Files { topology, flows, config, changes: "" }.load(options);
    let plain = tiered(&scenario, Tier::Off);
    assert_eq!(shown(&tiered(&scenario, Tier::Exact)), shown(&plain));
    let bounded = tiered(&scenario, Tier::Bounded);
    assert_eq!(bounded.flows.len(), plain.flows.len(), "{:?} and {:?}", bounded.ending, plain.ending);
}

/// A link that goes up and down all the time lets some through.
#[test]
fn a_link_that_flaps_delays_flows() {
    let changes: String =
        (1..100).map(|i| format!("{} {} 0 2\n", i * 10, if i % 2 == 1 { "down" } else { "up" })).collect();
    let files =
        Files { topology: PAIR, flows: Some("1\n0 1 3 100 3000000 0\n"), config: "CC_MODE 1\n", changes: &changes };
    let outcome = same_in_all_tiers(&files.with(Profile::Ps));
    assert_eq!(outcome.ending, Ending::Done);
    assert!(outcome.totals.drops > 0 && outcome.end > SimTime(480 * US), "{:?}, {:?}", outcome.end, outcome.totals);
}

/// A lossy link loses data and acknowledgements by chance; all arrives in the end.
#[test]
fn chance_losses_are_repeated() {
    for loss in ["0.0001", "0.01", "0.2"] {
        let topology = format!("3 1 2\n2\n0 2 100Gbps 1us {loss}\n1 2 100Gbps 1us 0\n");
        let files = Files { topology: &topology, flows: Some("1\n0 1 3 100 300000 0\n"), config: "", changes: "" };
        let outcome = same_in_all_tiers(&files.with(Profile::Ps));
        assert_eq!((&outcome.ending, outcome.totals.flows_given_up), (&Ending::Done, 0), "{loss}");
    }
    // A link that loses everything: the flow is given up, and the exit code says so.
    let topology = "3 1 2\n2\n0 2 100Gbps 1us 1\n1 2 100Gbps 1us 0\n";
    let dead = Files { topology, flows: Some(BURST), config: "", changes: "" }.with(Profile::Ps);
    let outcome = same_in_all_tiers(&dead);
    assert_eq!((&outcome.ending, outcome.totals.flows_given_up), (&Ending::Done, 1));
    assert_eq!(explain(&outcome), ExitStatus::Stalled);
}

// Pauses.

/// Hosts 0 to 3 at switch 6, hosts 4 and 5 at switch 7; host 5 is slow.
const SLOW: &str = "8 2 7\n6 7\n0 6 100Gbps 1us 0\n1 6 100Gbps 1us 0\n2 6 100Gbps 1us 0\n3 6 100Gbps 1us 0\n\
                    4 7 100Gbps 1us 0\n5 7 1Gbps 1us 0\n6 7 100Gbps 1us 0\n";

/// Pauses spread from a slow receiver over both switches to the senders, and hold up a flow that has nothing to do
/// with it. Nothing is lost, and nothing stays paused.
#[test]
fn a_slow_receiver_holds_up_its_neighbours() {
    let victim = "3 4 3 100 1000000 0\n";
    let storm: String = (0..3).map(|src| format!("{src} 5 3 100 1000000 0\n")).collect();
    let scenario = |flows: &str, count: u32| {
        let flows = format!("{count}\n{flows}");
        let config = "CC_MODE 0\nHAS_WIN 0\nBUFFER_SIZE 1\n";
        Files { topology: SLOW, flows: Some(&flows), config, changes: "" }.with(Profile::Ps)
    };
    let alone = same_in_all_tiers(&scenario(victim, 1)).flows.in_memory()[0].completion.fct;
    let storming = scenario(&format!("{storm}{victim}"), 4);
    let outcome = same_in_all_tiers(&storming);
    assert_eq!((&outcome.ending, outcome.totals.drops), (&Ending::Done, 0));
    let fct = outcome.flows.in_memory().iter().find(|flow| flow.src.0 == 3).expect("the victim").completion.fct;
    println!("{fct:?} instead of {alone:?}, {:?}", outcome.totals);
    assert!(fct > alone + alone, "the victim is not held up: {fct:?} instead of {alone:?}");
    let Run { log, outcome } = run(&storming);
    for host in 0..4 {
        let port = outcome.ports.iter().position(|port| port.info.node.0 == host).expect("a port");
        let seen: Vec<bool> = log.pfc.iter().filter(|pfc| pfc.port.index() == port).map(|pfc| pfc.pause).collect();
        assert!(seen.len() > 1 && seen.last() == Some(&false), "host {host}: {} PFC frames", seen.len());
    }
}

/// With congestion control the senders are slowed down instead.
#[test]
fn congestion_control_spares_the_neighbours_of_a_slow_receiver() {
    let flows = "4\n0 5 3 100 200000 0\n1 5 3 100 200000 0\n2 5 3 100 200000 0\n3 4 3 100 1000000 0\n";
    for cca in [CcaName::Dcqcn, CcaName::Hpcc, CcaName::Dctcp] {
        let files = Files { topology: SLOW, flows: Some(flows), config: "", changes: "" };
        let outcome = same_in_all_tiers(&files.load(Options { cca: Some(cca), ..Options::PLAIN }));
        assert_eq!((&outcome.ending, outcome.totals.drops, outcome.totals.pauses), (&Ending::Done, 0, 0), "{cca:?}");
    }
}

/// Five switches in a ring wait for each other for ever, in every tier and from files.
#[test]
fn a_deadlock_is_told_in_every_tier() {
    let (topology, flows) =
        (case_text("c21_pfc_deadlock_ring", "topology.txt"), case_text("c21_pfc_deadlock_ring", "flow.txt"));
    let config = "CC_MODE 0\nHAS_WIN 0\nBUFFER_SIZE 1\n";
    for profile in [Profile::Ps, Profile::Ns3] {
        let files = Files { topology: &topology, flows: Some(&flows), config, changes: "" };
        let plain = tiered(&files.with(profile), Tier::Off);
        for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
            let outcome = tiered(&files.with(profile), tier);
            let Ending::Deadlock(queues) = &outcome.ending else { panic!("{tier:?}: {:?}", outcome.ending) };
            assert!(queues.len() >= 5 && queues.iter().all(|queue| queue.bytes > 0), "{tier:?}: {queues:?}");
            assert_eq!((explain(&outcome), shown(&outcome)), (ExitStatus::Deadlock, shown(&plain)));
        }
        // A ring link that fails breaks the circle: what waited for it is lost, sent again, and arrives.
        if profile == Profile::Ps {
            let broken = Files { changes: "20000 down 5 6\n20010 up 5 6\n", ..files };
            let outcome = tiered(&broken.with(profile), Tier::Off);
            println!("{:?}, {:?}", outcome.ending.name(), outcome.totals);
        }
    }
    let folder = data("cases").join("c21_pfc_deadlock_ring");
    let out = empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("failures-deadlock"));
    fs::write(out.join("config.txt"), config).expect("a file");
    let arguments =
        format!("run --topology {0}/topology.txt --flows {0}/flow.txt --config config.txt --out out", folder.display());
    let said: Said = wormhole_in(&out, &arguments).output().expect("wormhole runs").into();
    said.tells(ExitStatus::Deadlock as i32, "PFC deadlock");
}

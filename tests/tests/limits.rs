//! The ends of ranges: what lies inside is right, by closed forms, and what lies outside is refused with one message.

use std::fs;
use std::path::Path;
use wormhole::ending::{ExitStatus, explain};
use wormhole::load::{Texts, load_texts};
use wormhole::scenario::{Options, Profile, Scenario};
use wormhole::simulate::{Ending, Outcome, simulate};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::units::{PS_PER_S, PS_PER_US};
use wormhole_kernel::{
    BitRate, Error, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, NodeId, NodeKind, SimTime, Span, timing::LinkTiming,
};
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig, WindowRule};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};
use wormhole_tests::{Said, empty_folder, findings, load_text, refusals, usable, wormhole_in};

/// A window without end at line rate: nothing but links decides when packets arrive.
const UNLIMITED: &str = "CC_MODE 0\nHAS_WIN 0\n";
const G100: u64 = 100_000_000_000;
/// Payload and wire bytes of a full packet, and wire bytes of an acknowledgement.
const MTU: u64 = 1_000;
const FULL: u32 = 1_048;
const ACK: u32 = 60;

/// Hosts 0 to `hosts` - 1 around one switch.
fn star(hosts: usize, rate: &str, delay: &str) -> String {
    let rows: String = (0..hosts).map(|host| format!("{host} {hosts} {rate} {delay} 0\n")).collect();
    format!("{} 1 {hosts}\n{hosts}\n{rows}", hosts + 1)
}

/// One flow from host 0 to host 1.
fn one_flow(bytes: u64, start: &str) -> String {
    format!("1\n0 1 3 100 {bytes} {start}\n")
}

fn with_tier(topology: &str, flows: &str, config: &str, tier: Tier) -> Scenario {
    let texts = Texts {
        topology: ("topology.txt", topology),
        flows: Some(("flow.txt", flows)),
        config: Some(("config.txt", config)),
        link_events: None,
    };
    let acceleration = Acceleration { tier, detector: Detector::CYCLE };
    usable(load_texts(&texts, &Options { acceleration, ..Options::PLAIN }))
}

fn run(scenario: &Scenario) -> Outcome {
    simulate(scenario, &mut ()).unwrap_or_else(|refused| panic!("refused: {refused:?}"))
}

/// FCT of the only flow, which must end.
fn only_fct(outcome: &Outcome) -> Span {
    assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::Done, 1));
    outcome.flows.in_memory()[0].completion.fct
}

fn on_wire(bytes: u32, rate: u64) -> u128 {
    u128::from(PsTiming.serialise(bytes, BitRate(rate)).0)
}

/// FCT of a lone flow over two links alike: all its packets one after the other, the last one once more over the
/// second link, and its acknowledgement back.
fn closed_form(bytes: u64, rate: u64, delay: u64) -> u128 {
    let (full, rest) = (bytes / MTU, (bytes % MTU) as u32);
    let last = if rest > 0 { rest + 48 } else { FULL };
    let others = u128::from(if rest > 0 { full } else { full - 1 });
    // A short last packet waits at the switch for the one before it, and its acknowledgement for that one's.
    let data = if others > 0 {
        (others + 1) * on_wire(FULL, rate) + on_wire(last.max(ACK), rate)
    } else {
        2 * on_wire(last, rate)
    };
    data + 2 * on_wire(ACK, rate) + 4 * u128::from(delay)
}

// Time.

#[test]
fn a_flow_takes_as_long_at_the_end_of_time_as_at_its_beginning() {
    let topology = star(2, "100Gbps", "1us");
    let fct = |start: &str| {
        let outcome = run(&usable(load_text(&topology, &one_flow(1_000_000, start), UNLIMITED)));
        (only_fct(&outcome), outcome.flows.in_memory()[0].completion.start)
    };
    let (want, zero) = fct("0");
    assert_eq!((u128::from(want.0), zero), (closed_form(1_000_000, G100, PS_PER_US), SimTime::ZERO));
    // 2^63 ps and one before; 2^53 ps, where a double runs out of picoseconds; a second before the end.
    for (start, ps) in [
        ("9223372.036854775808", 1 << 63),
        ("9223372.036854775807", (1 << 63) - 1),
        ("9007.199254740993", (1 << 53) + 1),
        ("18446743.073709551615", u64::MAX - PS_PER_S),
    ] {
        assert_eq!(fct(start), (want, SimTime(ps)), "{start}");
    }
}

#[test]
fn what_would_happen_after_the_end_of_time_does_not() {
    let topology = star(2, "100Gbps", "1us");
    // The flow of a megabyte takes 88 us. It starts at the end, before it but too late to end, and just in time.
    for (start, ends) in [
        ("18446744.073709551615", false),
        ("18446744.073709551614", false),
        ("18446744.073709500000", false),
        ("18446744.073600000000", true),
    ] {
        for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
            let outcome = run(&with_tier(&topology, &one_flow(1_000_000, start), UNLIMITED, tier));
            let want = if ends { Ending::Done } else { Ending::OutOfTime };
            assert_eq!((outcome.ending, outcome.flows.len()), (want, usize::from(ends)), "{start}, {tier:?}");
        }
    }
    let late = load_text(&topology, &one_flow(1, "18446744.0737095517"), UNLIMITED);
    assert_eq!(findings(&late), ["flow.txt:2: error: too large (found `18446744.0737095517`)"]);
}

#[test]
fn a_stop_time_is_the_first_instant_that_does_not_happen() {
    let topology = star(2, "100Gbps", "1us");
    let fct = closed_form(1_000_000, G100, PS_PER_US);
    let ended = |stop: u128, tier| {
        let config = format!("{UNLIMITED}SIMULATOR_STOP_TIME {stop}ps\n");
        let outcome = run(&with_tier(&topology, &one_flow(1_000_000, "0"), &config, tier));
        let want = if outcome.flows.is_empty() { Ending::StopTime } else { Ending::Done };
        assert_eq!(outcome.ending, want);
        assert!(u128::from(outcome.end.0) < stop.max(1), "{:?}, stop at {stop}", outcome.end);
        outcome.flows.len()
    };
    for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
        let stops = [0, 1, 1_000_000, fct - 1, fct, fct + 1, 1 << 63, u64::MAX.into()];
        assert_eq!(stops.map(|stop| ended(stop, tier)), [0, 0, 0, 0, 0, 1, 1, 1], "{tier:?}");
    }
}

// Bytes.

/// A flow that has no end is one that a stop time ends. Its ideal is as long as time.
#[test]
fn flows_of_half_and_all_of_64_bits_run() {
    let topology = star(2, "1600Gbps", "1us");
    for bytes in [1 << 32, (1 << 32) + 1, 1 << 63, u64::MAX] {
        for tier in [Tier::Off, Tier::Exact, Tier::Bounded] {
            let config = format!("{UNLIMITED}SIMULATOR_STOP_TIME 100us\n");
            let scenario = with_tier(&topology, &one_flow(bytes, "0"), &config, tier);
            let outcome = run(&scenario);
            assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::StopTime, 0), "{bytes} bytes");
            // The sender's port never rests.
            let frames = (100 * PS_PER_US).div_ceil(on_wire(FULL, 1_600_000_000_000) as u64);
            assert_eq!(outcome.ports[0].stats.frames, frames, "{bytes} bytes, {tier:?}");
        }
    }
}

/// Acceleration comes to the end of time, 213 days, at once.
#[test]
fn flows_that_outlast_time_are_told() {
    let topology = star(2, "1600Gbps", "1us");
    for tier in [Tier::Exact, Tier::Bounded] {
        let outcome = run(&with_tier(&topology, &one_flow(1 << 63, "0"), UNLIMITED, tier));
        assert_eq!((outcome.ending, outcome.flows.len()), (Ending::OutOfTime, 0), "{tier:?}");
    }
}

#[test]
fn flows_of_5_gib_take_what_they_must() {
    for (rate, text) in [(G100, "100Gbps"), (1_600_000_000_000, "1.6Tbps"), (1_000_000, "1Mbps")] {
        let topology = star(2, text, "1us");
        for tier in [Tier::Exact, Tier::Bounded] {
            let outcome = run(&with_tier(&topology, &one_flow(5 << 30, "0"), UNLIMITED, tier));
            let want = closed_form(5 << 30, rate, PS_PER_US);
            assert_eq!(u128::from(only_fct(&outcome).0), want, "{text}, {tier:?}");
            assert_eq!(outcome.flows.in_memory()[0].completion.bytes, 5 << 30);
            assert!(outcome.totals.events < 1_000_000, "{} events", outcome.totals.events);
        }
    }
}

#[test]
fn profile_ns3_refuses_flows_that_ns3_cannot_carry() {
    let topology = star(2, "100Gbps", "1us");
    let load = |bytes: u64| {
        let flows = one_flow(bytes, "0");
        let texts = Texts {
            topology: ("topology.txt", &topology),
            flows: Some(("flow.txt", &flows)),
            config: None,
            link_events: None,
        };
        findings(&load_texts(&texts, &Options { profile: Profile::Ns3, ..Options::PLAIN }))
    };
    assert!(load(u32::MAX.into()).is_empty());
    let found = load(1 << 32);
    assert!(found.len() == 1 && found[0].contains("a flow of 4 GiB or more"), "{found:?}");
}

// Rates and delays.

#[test]
fn the_slowest_and_the_fastest_links_take_what_they_must() {
    for rate in [1, 1_000, 1_000_000, 999_999_937, G100, 1_600_000_000_000, 2_880_000_000_000, u64::MAX] {
        let topology = star(2, &format!("{rate}bps"), "1us");
        for bytes in [1, 999, 1_000, 1_001, 10_000] {
            let want = closed_form(bytes, rate, PS_PER_US);
            for tier in [Tier::Off, Tier::Exact] {
                let outcome = run(&with_tier(&topology, &one_flow(bytes, "0"), UNLIMITED, tier));
                assert_eq!(u128::from(only_fct(&outcome).0), want, "{bytes} bytes at {rate} bit/s, {tier:?}");
            }
        }
    }
}

#[test]
fn delays_of_nothing_and_of_days_take_what_they_must() {
    for delay in [0, 1, PS_PER_US, PS_PER_S, 100_000 * PS_PER_S] {
        let topology = star(2, "100Gbps", &format!("{delay}ps"));
        for bytes in [1, 10_000, 1_000_000] {
            let want = closed_form(bytes, G100, delay);
            for tier in [Tier::Off, Tier::Exact] {
                let outcome = run(&with_tier(&topology, &one_flow(bytes, "0"), UNLIMITED, tier));
                assert_eq!(u128::from(only_fct(&outcome).0), want, "{bytes} bytes, delay {delay} ps, {tier:?}");
                assert_eq!(outcome.totals.timeouts, 0);
            }
        }
    }
}

/// Sums of delays are longer than time: the flow cannot end, and nothing overflows.
#[test]
fn delays_of_months_run_out_of_time() {
    let topology = star(2, "100Gbps", "10000000s");
    for config in ["CC_MODE 1", "CC_MODE 3", "CC_MODE 7", "CC_MODE 8", "CC_MODE 9", UNLIMITED] {
        let outcome = run(&with_tier(&topology, &one_flow(10_000, "0"), config, Tier::Exact));
        assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::OutOfTime, 0), "{config}");
    }
}

/// Every congestion control survives rates and delays far from those it was made for.
#[test]
fn congestion_controls_end_on_odd_links() {
    for mode in [0, 1, 3, 7, 8, 9] {
        for (rate, delay) in [("1kbps", "1us"), ("1kbps", "0s"), ("1.6Tbps", "0s"), ("100Gbps", "1s"), ("1kbps", "1s")]
        {
            let scenario = usable(load_text(
                &star(3, rate, delay),
                "2\n0 2 3 100 2000 0\n1 2 3 100 2000 0\n",
                &format!("CC_MODE {mode}"),
            ));
            let outcome = run(&scenario);
            let is_done = (&outcome.ending, outcome.flows.len()) == (&Ending::Done, 2);
            assert!(
                is_done && outcome.totals.flows_given_up == 0,
                "CC_MODE {mode}, {rate}, {delay}: {:?}",
                outcome.ending
            );
        }
    }
}

// Numbers of things.

/// Source ports have 16 bits and begin anew; queue pairs do not depend on them.
#[test]
fn a_pair_of_hosts_may_have_more_queue_pairs_than_ports() {
    let topology = star(2, "100Gbps", "1us");
    for flows in [65_536, 65_537] {
        let rows: String = (0..flows).map(|_| "0 1 3 100 1 0\n").collect();
        for tier in [Tier::Off, Tier::Exact] {
            let outcome = run(&with_tier(&topology, &format!("{flows}\n{rows}"), UNLIMITED, tier));
            assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::Done, flows));
            // Acknowledgements, longer than packets of a byte, follow each other from the first one on.
            let last = outcome.flows.in_memory().iter().map(|flow| flow.completion.fct.0).max().expect("flows");
            let want = 2 * on_wire(49, G100) + (flows as u128 + 1) * on_wire(ACK, G100) + 4 * u128::from(PS_PER_US);
            assert_eq!(u128::from(last), want, "{flows} flows");
            assert_eq!(outcome.ports[0].stats.frames, flows as u64, "every packet once");
        }
    }
}

#[test]
fn a_million_flows_end() {
    let (flows, hosts) = (1_000_000, 100);
    let row = |i: usize| {
        let (src, step) = (i % hosts, 1 + i / hosts % (hosts - 1));
        format!("{src} {} 3 100 1000 {}e-9\n", (src + step) % hosts, i * 10)
    };
    let rows: String = (0..flows).map(row).collect();
    let outcome = run(&with_tier(&star(hosts, "100Gbps", "1us"), &format!("{flows}\n{rows}"), UNLIMITED, Tier::Exact));
    assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::Done, flows));
    assert_eq!(outcome.totals.drops, 0);
    assert!(outcome.flows.in_memory().iter().all(|flow| flow.completion.fct >= flow.ideal));
    println!("{flows} flows, at most {:.0} MB of memory in this process", wormhole::cpu::peak_rss_mb());
}

/// 4,000 ports in use at once: every host sends to the next, and none is in another's way.
#[test]
fn a_switch_of_4000_ports_carries_a_permutation() {
    let hosts = 4_000;
    let rows: String = (0..hosts).map(|src| format!("{src} {} 3 100 10000 0\n", (src + 1) % hosts)).collect();
    let outcome = run(&with_tier(&star(hosts, "100Gbps", "1us"), &format!("{hosts}\n{rows}"), UNLIMITED, Tier::Off));
    assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::Done, hosts));
    // Acknowledgements take turns with data: at most one frame a hop is in the way.
    let ideal = closed_form(10_000, G100, PS_PER_US);
    let most = ideal + 10 * on_wire(ACK, G100) + 4 * on_wire(FULL, G100);
    assert!(outcome.flows.in_memory().iter().all(|flow| (ideal..=most).contains(&flow.completion.fct.0.into())));
    assert_eq!(outcome.totals.drops, 0);
}

/// No table has a field of 16 bits for ports.
#[test]
fn a_switch_may_have_more_ports_than_16_bits_count() {
    let hosts = 65_540;
    let flows = format!("2\n0 {} 3 100 1000 0\n{} 1 3 100 1000 0\n", hosts - 1, hosts - 2);
    let outcome = run(&with_tier(&star(hosts, "100Gbps", "1us"), &flows, UNLIMITED, Tier::Off));
    assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::Done, 2));
    assert!(
        outcome.flows.in_memory().iter().all(|f| u128::from(f.completion.fct.0) == closed_form(1_000, G100, PS_PER_US))
    );
}

/// A row of switches between hosts 0 and 1.
fn row(switches: usize) -> String {
    let ids: Vec<String> = (2..switches + 2).map(|id| id.to_string()).collect();
    let inner: String = (2..switches + 1).map(|id| format!("{id} {} 100Gbps 1us 0\n", id + 1)).collect();
    let (count, last) = (switches + 2, switches + 1);
    format!(
        "{count} {switches} {}\n{}\n0 2 100Gbps 1us 0\n{inner}{last} 1 100Gbps 1us 0\n",
        switches + 1,
        ids.join(" ")
    )
}

#[test]
fn paths_have_at_most_63_switches() {
    let scenario = |switches| usable(load_text(&row(switches), &one_flow(1_000, "0"), UNLIMITED));
    let links = 64;
    let want = links * (on_wire(FULL, G100) + on_wire(ACK, G100) + 2 * u128::from(PS_PER_US));
    assert_eq!(u128::from(only_fct(&run(&scenario(63))).0), want);
    let refused = refusals(&scenario(64));
    assert_eq!(refused[0].error, Error::PathTooLong { switches: 64, limit: 63 });
}

// At the kernel's own surface.

type Plain<'k> = Kernel<'k, Ps<'k, Ecmp>>;

/// A kernel of two hosts and a switch with such links, handed to a test.
fn with_kernel(rate: u64, delay: u64, limits: &Limits, test: impl FnOnce(Result<Plain<'_>, Error>)) {
    let nodes = [NodeKind::Host, NodeKind::Host, NodeKind::Switch];
    let link = |host| LinkSpec { a: NodeId(host), b: NodeId(2), rate: BitRate(rate), delay: Span(delay), loss: 0 };
    let links = [link(0), link(1)];
    let ccas = [AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Unlimited)))];
    let models = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let mut memory = vec![0; Plain::words(FabricSize::of(&nodes, &links), limits, &models)];
    test(Kernel::new(&mut memory, &nodes, &links, models, limits, ()));
}

fn flow(bytes: u64, start: u64) -> FlowSpec {
    FlowSpec::new(NodeId(0), NodeId(1), bytes, SimTime(start))
}

#[test]
fn the_kernel_refuses_links_without_a_rate() {
    with_kernel(0, 0, &Limits::default(), |kernel| assert_eq!(kernel.err(), Some(Error::ZeroRate { link: 0 })));
}

/// Steps to any time are legal, and a flow beyond the end of time is told by what is still pending there.
#[test]
fn the_kernel_runs_to_the_end_of_time() {
    for at in [0, 1, 1 << 63, u64::MAX - 1] {
        with_kernel(G100, PS_PER_US, &Limits::default(), |kernel| {
            let mut kernel = kernel.expect("a kernel");
            kernel.run_until(SimTime(at)).expect("nothing to run out of");
            kernel.add_flow(&flow(u64::MAX, at)).expect("a flow of any size");
            kernel.run_until(SimTime(at)).expect("room");
            assert_eq!((kernel.unfinished_flows(), kernel.poll_completion()), (1, None), "at {at}");
            let next = kernel.next_event_time().expect("the first frame is on its way");
            assert!(next >= SimTime(at));
        });
    }
    with_kernel(G100, PS_PER_US, &Limits::default(), |kernel| {
        let mut kernel = kernel.expect("a kernel");
        kernel.add_flow(&flow(1, u64::MAX)).expect("a flow at any time");
        assert_eq!(kernel.run_until(SimTime::MAX), Ok(wormhole_kernel::kernel::Step::Idle));
        assert_eq!((kernel.next_event_time(), kernel.queued_flows()), (Some(SimTime::MAX), 1));
    });
}

/// A limit that is too small is named, what came before it holds, and what does not need it goes on.
#[test]
fn the_kernel_stays_usable_at_its_limits() {
    let limits = Limits { queued_flows: 2, active_flows: 1, packets: 64, outputs: 2, inputs: 0, snapshot_words: 0 };
    with_kernel(G100, PS_PER_US, &limits, |kernel| {
        let mut kernel = kernel.expect("a kernel");
        let full = |error: Error, name: &str| matches!(error, Error::Capacity(fault) if fault.what == name);
        kernel.add_flow(&flow(1_000, 0)).expect("room");
        kernel.add_flow(&flow(1_000, 50_000_000)).expect("room");
        assert!(full(kernel.add_flow(&flow(1, 0)).expect_err("two are queued"), "queued_flows"));
        let down = kernel.set_link(SimTime::ZERO, wormhole_kernel::LinkId(0), false);
        assert!(full(down.expect_err("no inputs"), "inputs"));
        kernel.run_until(SimTime(100_000_000)).expect("one flow after the other");
        assert!(kernel.poll_completion().is_some() && kernel.poll_completion().is_some());
        // Two at once are one too many; the one that is there ends all the same.
        kernel.add_flow(&flow(1_000, 100_000_000)).expect("room");
        kernel.add_flow(&flow(1_000, 100_000_000)).expect("room");
        let fault = kernel.run_until(SimTime::MAX).expect_err("one flow at once");
        assert_eq!((fault.what, fault.limit), ("active_flows", 1));
        assert!(kernel.queued_flows() > 0 && kernel.next_event_time().is_some());
    });
}

/// What has ended before a run runs out of something is among its results.
#[test]
fn what_ended_before_a_limit_is_told() {
    let flows = "3\n0 2 3 100 1 0\n0 2 3 100 90000 0.001\n1 2 3 100 90000 0.001\n";
    let (topology, config) = (star(3, "100Gbps", "1us"), UNLIMITED);
    let texts = Texts {
        topology: ("topology.txt", &topology),
        flows: Some(("flow.txt", flows)),
        config: Some(("config.txt", config)),
        link_events: None,
    };
    let outcome = run(&usable(load_texts(&texts, &Options { max_packets: 40, ..Options::PLAIN })));
    assert_eq!(outcome.ending.name(), "out_of_packets");
    assert_eq!((outcome.flows.len(), outcome.totals.flows_finished), (1, 1));
    assert_eq!(explain(&outcome), ExitStatus::OutOfLimits);
}

// At the command line.

/// What `run` says of these files.
fn said(name: &str, topology: &str, flows: &str, config: &str) -> Said {
    let folder = empty_folder(Path::new(env!("CARGO_TARGET_TMPDIR")).join("limits").join(name));
    for (name, text) in [("t.txt", topology), ("f.txt", flows), ("c.txt", config)] {
        fs::write(folder.join(name), text).expect("a file");
    }
    let arguments = "run --topology t.txt --flows f.txt --config c.txt --out out --accel exact";
    wormhole_in(&folder, arguments).output().expect("wormhole runs").into()
}

/// Each is refused with exit code 3 and a line that names the file, its line and the token.
#[test]
fn what_is_out_of_range_is_refused_with_its_place() {
    let good = (star(2, "100Gbps", "1us"), one_flow(1_000, "0"), String::new());
    let topology = |rate: &str, delay: &str| (star(2, rate, delay), good.1.clone(), good.2.clone());
    let flows = |row: &str| (good.0.clone(), format!("1\n{row}\n"), good.2.clone());
    let config = |text: &str| (good.0.clone(), good.1.clone(), text.to_owned());
    let nodes =
        |header: &str| (format!("{header}\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"), good.1.clone(), String::new());
    let cases = [
        ("rate-0", topology("0bps", "1us"), "t.txt:3: error: a rate must not be 0 (found `0bps`)"),
        (
            "rate-large",
            topology("18446744073709551616bps", "1us"),
            "t.txt:3: error: too large (found `18446744073709551616bps`)",
        ),
        ("rate-negative", topology("-1bps", "1us"), "t.txt:3: error: must not be negative (found `-1bps`)"),
        (
            "delay-large",
            topology("1bps", "18446744.0737095517s"),
            "t.txt:3: error: too large (found `18446744.0737095517s`)",
        ),
        ("delay-negative", topology("1bps", "-1ps"), "t.txt:3: error: must not be negative (found `-1ps`)"),
        ("bytes-large", flows("0 1 3 100 18446744073709551616 0"), "f.txt:2: error: bytes must be a whole number"),
        ("bytes-0", flows("0 1 3 100 0 0"), "f.txt:2: error: flow 1 has no bytes (found `0`)"),
        ("priority", flows("0 1 8 100 1 0"), "f.txt:2: error: a priority is 0 to 7 (found `8`)"),
        ("port", flows("0 1 3 65536 1 0"), "f.txt:2: error: a destination port must be a whole number"),
        ("start-large", flows("0 1 3 100 1 18446744.0737095517"), "f.txt:2: error: too large"),
        (
            "buffer",
            config("BUFFER_SIZE 4096\n"),
            "c.txt:1: error: a switch has a buffer of 1 to 4095 MiB (found `4096`)",
        ),
        ("payload", config("PACKET_PAYLOAD_SIZE 1048577\n"), "c.txt:1: error: a payload is 1 to 1048576 bytes"),
        ("payload-0", config("PACKET_PAYLOAD_SIZE 0\n"), "c.txt:1: error: a payload is 1 to 1048576 bytes (found `0`)"),
        ("nodes", nodes("16777217 1 2"), "t.txt:1: error: a topology has 1 to 16777216 nodes (found `16777217`)"),
        ("nodes-64", nodes("18446744073709551616 1 2"), "t.txt:1: error: nodes must be a whole number"),
        ("switches", nodes("3 4 2"), "t.txt:1: error: more switches than the 3 nodes there are (found `4`)"),
        ("links", nodes("3 1 18446744073709551615"), "t.txt:1: error: "),
    ];
    for (name, (topology, flows, config), want) in cases {
        said(name, &topology, &flows, &config).tells(ExitStatus::BadInput as i32, want);
    }
}

#[test]
fn what_runs_out_is_told_with_its_exit_code() {
    let topology = star(2, "100Gbps", "1us");
    let out_of_time = said("time", &topology, &one_flow(1 << 63, "0"), UNLIMITED);
    out_of_time.tells(
        ExitStatus::OutOfLimits as i32,
        "out of time: simulated time ends after 2^64 ps, which is 213 days; 0 of 1 flows have ended",
    );
    let too_long = said("path", &row(64), &one_flow(1, "0"), UNLIMITED);
    too_long.tells(ExitStatus::BadInput as i32, "the path has 64 switches");
}

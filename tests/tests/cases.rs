//! Small inputs with a known answer, and inputs that are wrong, odd or extreme: a test per folder of
//! `tests/data/cases`, named after it. Where a case names no configuration there is none: profile `ps`, DCQCN.

use std::collections::BTreeSet;
use wormhole::ending::{ExitStatus, explain};
use wormhole::input::diagnostics::Diagnostics;
use wormhole::input::topology::Topology;
use wormhole::load::{Loaded, Texts, load_texts};
use wormhole::outputs::fct_rows;
use wormhole::scenario::{Options, Profile, Scenario};
use wormhole::simulate::{Ending, Refusal, simulate_observed};
use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::units::PS_PER_US;
use wormhole_kernel::{BitRate, Error, NodeId, NodeKind, Observer, PortId, SimTime, Span, Transport};
use wormhole_tests::{
    Run, case_text, findings, flawless, load_case, load_configured, load_text, refusals, run, usable,
};

/// A link of 1 us, in picoseconds.
const LINK_DELAY: u64 = PS_PER_US;

/// Runs a case in which there is nothing to find, and asserts what holds of every good run.
fn good(case: &str) -> (Scenario, Run) {
    good_of(flawless(load_case(case)))
}

/// Runs a case under a configuration, likewise.
fn good_configured(case: &str, config: &str) -> (Scenario, Run) {
    good_of(flawless(load_configured(case, config)))
}

fn good_of(scenario: Scenario) -> (Scenario, Run) {
    let run = run(&scenario);
    run.assert_done(&scenario);
    assert_eq!(explain(&run.outcome), ExitStatus::Done);
    (scenario, run)
}

/// Asserts that an input is refused with exactly these findings, which is what exit code 3 stands for.
fn refused(loaded: Loaded, want: &[&str]) {
    assert_eq!(findings(&loaded), want);
    assert!(loaded.scenario.is_none(), "errors, and yet there is a scenario");
    assert_eq!(ExitStatus::BadInput as u8, 3);
}

/// Time that an acknowledgement takes back over two links of 1 us.
fn ack_flight(rate: BitRate) -> u64 {
    2 * (LINK_DELAY + serialisation(Transport::ack_bytes(0), rate))
}

/// Picoseconds that a frame takes on the wire, for rates at which that is a whole number.
fn serialisation(bytes: u32, rate: BitRate) -> u64 {
    let picobits = u64::from(bytes) * 8 * 1_000_000_000_000;
    assert_eq!(picobits % rate.0, 0, "{bytes} bytes at {rate:?}");
    picobits / rate.0
}

/// Asserts when the last data byte of the only flow, 0 to 1 over one switch, has arrived; and that its FCT is this
/// and the way of the last acknowledgement.
fn assert_last_byte(run: &Run, at: u64, ack: u64) {
    assert_eq!(run.host(1).last_data, SimTime(at), "last data byte");
    let done = run.outcome.flows.in_memory()[0].completion;
    assert_eq!((done.start + done.fct).0, at + ack, "{done:?}");
    assert_eq!(run.host(0).last_ack, SimTime(at + ack), "last acknowledgement");
}

/// FCT in picoseconds of each flow, in the scenario's order.
fn fcts(run: &Run) -> Vec<u64> {
    let mut fcts: Vec<(u64, u64)> =
        run.outcome.flows.in_memory().iter().map(|r| (r.completion.token, r.completion.fct.0)).collect();
    fcts.sort_unstable();
    fcts.into_iter().map(|(_, fct)| fct).collect()
}

#[test]
fn c01_one_flow() {
    let (_, run) = good("c01_one_flow");
    assert_last_byte(&run, 85_923_840, ack_flight(BitRate::from_gbps(100)));
    assert_eq!((run.host(1).data_frames, run.host(1).last_data_bytes, run.host(1).payload), (1_000, 1_048, 1_000_000));
    assert_eq!(run.outcome.flows.in_memory()[0].ns3_ideal_ns, 88_000);
    // Alone, a flow takes exactly its ideal time.
    assert_eq!(run.outcome.flows.in_memory()[0].completion.fct, run.outcome.flows.in_memory()[0].ideal);
}

#[test]
fn c02_zero_bytes() {
    refused(load_case("c02_zero_bytes"), &["flow.txt:2: error: flow 1 has no bytes (found `0`)"]);
}

#[test]
fn c03_tiny_4_bytes() {
    let (_, run) = good("c03_tiny_4_bytes");
    let host = run.host(1);
    assert_eq!((host.data_frames, host.last_data_bytes, host.payload), (1, 52, 4));
    let rate = BitRate::from_gbps(100);
    assert_last_byte(&run, 2 * (LINK_DELAY + serialisation(52, rate)), ack_flight(rate));
    let rows: Vec<_> =
        fct_rows(&run.outcome).map(|row| row.expect("memory")).map(|row| (row.src, row.dst, row.bytes)).collect();
    assert_eq!(rows, [(0, 1, 4)]);
}

#[test]
fn c04_odd_size_4490() {
    let (_, run) = good("c04_odd_size_4490");
    let host = run.host(1);
    assert_eq!((host.data_frames, host.last_data_bytes, host.payload), (5, 490 + 48, 4_490));
    // The last packet waits at the switch for the fourth, which ends 5 full packets after the start.
    let rate = BitRate::from_gbps(100);
    let last = 5 * serialisation(1_048, rate) + serialisation(538, rate) + 2 * LINK_DELAY;
    assert_last_byte(&run, last, ack_flight(rate));
    // ns-3's estimate is more than the flow takes; the ideal of `fct.csv` is not (`assert_done` checks that).
    let (fct, ideal) = (run.outcome.flows.in_memory()[0].completion.fct, run.outcome.flows.in_memory()[0].ideal);
    assert_eq!((run.outcome.flows.in_memory()[0].ns3_ideal_ns, fct), (4_538, ideal));
    assert!(fct < Span::from_ns(4_538));
}

#[test]
fn c05_src_eq_dst() {
    let want = "flow.txt:2: error: flow 1: source equals destination (found `0`)";
    refused(load_case("c05_src_eq_dst"), &[want]);
}

#[test]
fn c06_5gib() {
    let (_, run) = good("c06_5GiB");
    let bytes = 5 << 30;
    assert_eq!((run.host(1).payload, run.outcome.flows.in_memory()[0].completion.bytes), (bytes, bytes));
    // All bytes at line rate, two links' delay, and the last full packet once more, over the second link.
    let rate = BitRate::from_gbps(100);
    let last = 450_112_576_000 + 2 * LINK_DELAY + serialisation(1_048, rate);
    assert_last_byte(&run, last, ack_flight(rate));
}

#[test]
fn c08_unsorted_starts() {
    let case = "c08_unsorted_starts";
    let loaded = load_case(case);
    let found = findings(&loaded);
    assert!(found.len() == 1 && found[0].contains("warning") && found[0].contains("they are sorted"), "{found:?}");
    let scenario = usable(loaded);
    let unsorted = run(&scenario);
    unsorted.assert_done(&scenario);
    let rows = "3\n1 2 3 100 10000 0.001\n0 1 3 100 10000 0.0015\n0 2 3 100 10000 0.002\n";
    let sorted = flawless(load_text(&case_text(case, "topology.txt"), rows, ""));
    assert_eq!(scenario.flows, sorted.flows);
    let starts: Vec<u64> = scenario.flows.iter().map(|flow| flow.start.as_ns()).collect();
    assert_eq!(starts, [1_000_000, 1_500_000, 2_000_000]);
    let sorted = run(&sorted);
    assert_eq!((fcts(&unsorted), &unsorted.log), (fcts(&sorted), &sorted.log));
    for record in unsorted.outcome.flows.in_memory() {
        assert_eq!(record.completion.start, scenario.flows[record.completion.token as usize].start);
    }
}

#[test]
fn c10_tabs_no_newline() {
    let (scenario, run) = good("c10_tabs_no_newline");
    assert_eq!(scenario.links.iter().map(|link| link.delay.as_ns()).collect::<Vec<_>>(), [3_330; 2]);
    let last = 1_000_000_000 + 6 * serialisation(1_048, BitRate::from_gbps(100)) + 2 * 3_330_000;
    assert_eq!(run.host(1).last_data, SimTime(last));
}

#[test]
fn c11_units() {
    let text = case_text("c11_units", "topology.txt");
    let mut found = Diagnostics::of("t");
    let topology = Topology::parse(&text, &mut found).expect("a topology");
    assert!(found.all().is_empty(), "{:?}", found.all());
    let rates: Vec<u64> = topology.links.iter().map(|link| link.rate.0 / 1_000_000_000).collect();
    assert_eq!(rates, [25, 100, 100, 400, 100, 100]);
    assert!(topology.links.iter().all(|link| link.rate.0 % 1_000_000_000 == 0));
    let delays: Vec<Span> = topology.links.iter().map(|link| link.delay).collect();
    assert_eq!(delays, [Span::from_ns(1_000); 6]);

    // An unknown unit: the token is named.
    Topology::parse(&text.replace("100Gb/s", "100Gb/h").replace("1000ns", "1000nz"), &mut found);
    let lines: Vec<(usize, &str)> = found.all().iter().map(|d| (d.line, d.token.as_str())).collect();
    assert_eq!(lines, [(5, "100Gb/h"), (5, "1000nz")]);
    assert!(found.has_errors());
}

#[test]
fn c12_bad_ids() {
    let want = [
        "topology.txt:4: error: no such node: nodes are 0 to 2 (found `9`)",
        "flow.txt:2: error: flow 1: no such node: nodes are 0 to 2 (found `5`)",
        "flow.txt:3: error: flow 2: this node is a switch (found `2`)",
    ];
    refused(load_case("c12_bad_ids"), &want);
}

#[test]
fn c13_parallel_links() {
    let (_, run) = good("c13_parallel_links");
    let parallel = run.ports(8, 9);
    let bytes: Vec<u64> = parallel.iter().map(|&port| run.sent(port)).collect();
    println!("bytes on the links from 8 to 9: {bytes:?}");
    assert!(bytes.len() == 4 && bytes.iter().all(|&b| b > 0), "{bytes:?}");
    // 64 flows of 2000 packets: on these links there is nothing else in this direction, and each packet once.
    assert_eq!(run.outcome.totals.drops, 0);
    assert_eq!(bytes.iter().sum::<u64>(), 64 * 2_000 * 1_048);
}

#[test]
fn c15_odd_speeds() {
    for (name, mode) in [("dcqcn", 1), ("hpcc", 3), ("timely", 7), ("dctcp", 8)] {
        let (scenario, run) = good_configured("c15_odd_speeds", &format!("CC_MODE {mode}"));
        assert_eq!((scenario.cca_name(), run.outcome.totals.drops), (name, 0));
    }
    // A table that lacks speeds gets one finding, which lists them all.
    let table = ["KMIN_MAP", "KMAX_MAP", "PMAX_MAP"].map(|key| format!("{key} 1 100000000000 1\n")).concat();
    let found = findings(&load_configured("c15_odd_speeds", &table));
    let missing = "10000000000 40000000000 800000000000 2880000000000";
    assert!(found.len() == 1 && found[0].contains(missing), "{found:?}");
}

/// Data bytes that each port has sent in each millisecond.
#[derive(Default)]
struct PerMillisecond(Vec<Vec<u64>>);

impl PerMillisecond {
    fn at(&self, port: PortId, millisecond: usize) -> u64 {
        self.0.get(millisecond).and_then(|ports| ports.get(port.index())).copied().unwrap_or(0)
    }
}

impl Observer for PerMillisecond {
    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        let millisecond = (time.0 / (1_000 * PS_PER_US)) as usize;
        let slots = self.0.len().max(millisecond + 1);
        self.0.resize_with(slots, Vec::new);
        let ports = &mut self.0[millisecond];
        ports.resize(ports.len().max(port.index() + 1), 0);
        if frame.kind() == PacketKind::Data {
            ports[port.index()] += u64::from(frame.bytes);
        }
    }
}

/// The estimate itself is inside the congestion control. What it does shows in the rates: an estimate that is
/// negative, infinite or wrapped lets them collapse, or lets their sum stay above the link's.
#[test]
fn c17_int_wrap() {
    let scenario = flawless(load_configured("c17_int_wrap", "CC_MODE 3"));
    let mut rates = PerMillisecond::default();
    let outcome = simulate_observed(&scenario, None, &mut rates, &mut ()).expect("a good scenario");
    assert_eq!((&outcome.ending, outcome.flows.len()), (&Ending::Done, 3));
    assert_eq!((scenario.cca_name(), outcome.totals.drops), ("hpcc", 0));
    assert!(outcome.end > SimTime::from_ns(16_800_000), "telemetry of 24 bits wraps at 16.8 ms: {:?}", outcome.end);
    // One port each, numbered by node: hosts 0 and 1 send.
    let millisecond = 400_000_000_000 / 8 / 1_000;
    for ms in 0..26 {
        let sent = rates.at(PortId(0), ms) + rates.at(PortId(1), ms);
        println!("{ms} ms: hosts have sent {:.4} of the link's rate", sent as f64 / millisecond as f64);
        // HPCC aims at 95 %, whether one sends or both do.
        assert!(sent <= millisecond, "{ms} ms: {sent} bytes");
        assert!(sent * 10 >= millisecond * 8, "{ms} ms: {sent} bytes");
    }
    // The bytes with their headers at line rate take 27.3 ms; the last flow starts late, at 40 ms, and is short.
    let fct =
        |token: u64| outcome.flows.in_memory().iter().find(|r| r.completion.token == token).unwrap().completion.fct;
    assert!(fct(0) < Span::from_ns(40_000_000), "{:?}", fct(0));
    assert!(fct(2) < Span::from_ns(1_000_000), "{:?}", fct(2));
}

#[test]
fn c18_incast_255() {
    let (_, unlimited) = good_configured("c18_incast_255", "CC_MODE 1\nHAS_WIN 0");
    println!("no window: {:?}", unlimited.outcome.totals);
    assert!(unlimited.outcome.totals.pauses > 0);
    assert_eq!(unlimited.outcome.totals.drops, 0);
    assert!(unlimited.log.pfc.iter().all(|pfc| pfc.priority == 3));

    let (_, window) = good_configured("c18_incast_255", "CC_MODE 1\nHAS_WIN 1");
    println!("window of a BDP: {:?}", window.outcome.totals);
    assert_eq!((window.outcome.totals.pauses, window.outcome.totals.drops), (0, 0));
    // 255 windows of 52 kB, at most, wait before the receiver.
    let waiting = window.outcome.ports[window.ports(257, 256)[0].index()].stats.max_queue;
    assert!(waiting > 1_000_000 && waiting < 32 << 20, "{waiting}");
    assert_eq!(window.outcome.ports.len(), 2 * 257);
}

#[test]
fn c19_incast_over_buffer() {
    let (_, run) = good_configured("c19_incast_over_buffer", "BUFFER_SIZE 1");
    let totals = run.outcome.totals;
    println!("{totals:?}");
    // With enough headroom nothing is lost; what is lost is reported at its port. Each flow finishes either way.
    assert_eq!(run.outcome.ports.iter().map(|port| port.stats.drops).sum::<u64>(), totals.drops);
    assert!(totals.drops > 0 || totals.timeouts == 0, "time-outs without loss: {totals:?}");
    assert_eq!(run.outcome.flows.len(), 1_000);
}

#[test]
fn c20_pfc_two_qps() {
    // In 32 MiB, DCQCN slows a host down before its first pause; a small buffer or no control at all pauses both.
    for config in ["CC_MODE 1\nHAS_WIN 0\nBUFFER_SIZE 1", "CC_MODE 0\nHAS_WIN 0", "CC_MODE 0\nHAS_WIN 0\nBUFFER_SIZE 1"]
    {
        let (_, run) = good_configured("c20_pfc_two_qps", config);
        println!("{config:?}: {:?}", run.outcome.totals);
        assert_eq!(run.outcome.totals.drops, 0);
        assert!(run.log.pfc.iter().all(|pfc| pfc.priority == 3), "a pause of another priority");
        for host in [0, 1] {
            assert_pauses_end(&run, run.ports_of(host)[0]);
        }
    }
    let (_, default) = good("c20_pfc_two_qps");
    println!("default: {:?}", default.outcome.totals);
    assert_eq!(default.outcome.totals.drops, 0);
    let paused: BTreeSet<u32> = default.log.pfc.iter().map(|pfc| pfc.port.0).collect();
    paused.into_iter().for_each(|port| assert_pauses_end(&default, PortId(port)));
}

/// Asserts that a port was paused, that PAUSE and RESUME take turns, and that the last is a RESUME.
fn assert_pauses_end(run: &Run, port: PortId) {
    let seen: Vec<bool> = run.log.pfc.iter().filter(|pfc| pfc.port == port).map(|pfc| pfc.pause).collect();
    assert!(!seen.is_empty() && seen.len().is_multiple_of(2), "{port:?}: {} PFC frames", seen.len());
    assert!(seen.chunks(2).all(|pair| pair == [true, false]), "{port:?}: PAUSE and RESUME do not take turns");
}

#[test]
fn c21_pfc_deadlock_ring() {
    let case = "c21_pfc_deadlock_ring";
    let run = run(&flawless(load_configured(case, "CC_MODE 0\nHAS_WIN 0\nBUFFER_SIZE 1")));
    let Ending::Deadlock(queues) = &run.outcome.ending else { panic!("ended with {:?}", run.outcome.ending) };
    // The five clockwise ports of the ring wait for each other.
    let ring: BTreeSet<u32> = (5..10).map(|node| run.ports(node, 5 + (node - 4) % 5)[0].0).collect();
    let paused: BTreeSet<u32> = queues.iter().map(|queue| queue.port.0).collect();
    assert!(ring.is_subset(&paused), "paused {paused:?}, ring {ring:?}");
    for queue in queues {
        assert!(queue.priority == 3 && queue.bytes > 0 && queue.since <= run.outcome.end, "{queue:?}");
    }
    assert_eq!((explain(&run.outcome), ExitStatus::Deadlock as u8), (ExitStatus::Deadlock, 5));

    // A congestion control keeps queues short of PFC: with it, all flows end.
    let (_, run) = good_configured(case, "CC_MODE 3\nBUFFER_SIZE 1");
    assert_eq!(run.outcome.flows.len(), 10);
}

#[test]
fn c23_link_down() {
    let (scenario, run) = good("c23_link_down");
    let down = SimTime(500 * PS_PER_US);
    assert_eq!(scenario.link_events.len(), 1);
    assert_eq!(run.outcome.flows.in_memory().iter().map(|r| r.completion.bytes).sum::<u64>(), 8 * 10_000_000);
    // Until the link dies it is in use, and what is on its way then is lost.
    for port in run.ports(2, 3).into_iter().chain(run.ports(3, 2)) {
        let log = run.log.port(port);
        let last = log.last_transmit;
        assert!(last > SimTime::ZERO && last <= down, "{port:?} sends at {last:?}");
        assert!(log.last_data <= down && log.last_ack <= down, "{port:?} receives: {log:?}");
    }
    println!("{:?}", run.outcome.totals);
    assert!(run.outcome.totals.drops > 0, "the link was in use, yet nothing was lost");
    let detour = run.ports(2, 4)[0];
    assert!(run.log.port(detour).last_transmit > down);
    // Bytes lost are sent again, and arrive at least once.
    assert!(run.host(1).payload >= 8 * 10_000_000);
}

#[test]
fn c24_unreachable() {
    let refused = refusals(&flawless(load_case("c24_unreachable")));
    assert_eq!(refused, [Refusal { flow: Some(0), error: Error::NoPath { src: NodeId(0), dst: NodeId(2) } }]);
    assert_eq!(refused[0].error.to_string(), "no path from 0 to 2");
}

#[test]
fn c26_no_switch_mesh() {
    let case = "c26_no_switch_mesh";
    let scenario = flawless(load_case(case));
    assert!(scenario.nodes.iter().all(|kind| *kind == NodeKind::Host));
    let refused = refusals(&scenario);
    assert_eq!(refused, [Refusal { flow: Some(1), error: Error::NoPath { src: NodeId(0), dst: NodeId(2) } }]);
    assert_eq!(refused[0].error.to_string(), "no path from 0 to 2");
    // Without the second flow the direct link does: 1000 packets at 400 Gb/s and 25 ns.
    let scenario = flawless(load_text(&case_text(case, "topology.txt"), "1\n0 1 3 100 1000000 0\n", ""));
    let run = run(&scenario);
    run.assert_done(&scenario);
    let direct = run.log.port(run.ports(1, 0)[0]);
    let last = 1_000 * serialisation(1_048, BitRate::from_gbps(400)) + 25_000;
    assert_eq!((direct.payload, direct.last_data), (1_000_000, SimTime(last)));
}

#[test]
fn c27_nvlink_vs_nic() {
    let (scenario, run) = good("c27_nvlink_vs_nic");
    assert_eq!(scenario.nodes[4], NodeKind::NvSwitch);
    assert_eq!([scenario.nodes[5], scenario.nodes[6]], [NodeKind::Switch; 2]);
    for host in 0..4 {
        for nic in [5, 6] {
            let ports = [run.ports(host, nic), run.ports(nic, host)].concat();
            assert_eq!(ports.iter().map(|&port| run.sent(port)).collect::<Vec<_>>(), [0; 2], "{host} and {nic}");
        }
    }
    assert_eq!(run.log.port(run.ports(1, 4)[0]).payload, 16 * 4_000_000);
}

/// Switches of a fat-tree that have no neighbour next to a host.
fn cores(scenario: &Scenario) -> Vec<u32> {
    let near = |inner: &BTreeSet<u32>| -> BTreeSet<u32> {
        let links = scenario.links.iter().flat_map(|link| [(link.a.0, link.b.0), (link.b.0, link.a.0)]);
        links.filter(|(a, _)| inner.contains(a)).map(|(_, b)| b).collect()
    };
    let is_host = |node: &u32| scenario.nodes[*node as usize] == NodeKind::Host;
    let all = 0..scenario.nodes.len() as u32;
    let hosts: BTreeSet<u32> = all.clone().filter(is_host).collect();
    let edges = near(&hosts);
    let aggregation = near(&edges);
    all.filter(|node| !hosts.contains(node) && !edges.contains(node) && !aggregation.contains(node)).collect()
}

#[test]
fn c28_ecmp_polarisation() {
    let (scenario, run) = good("c28_ecmp_polarisation");
    let bytes = |core: &u32| run.ports_of(*core).iter().map(|&port| run.sent(port)).sum::<u64>();
    let cores = cores(&scenario);
    let carried: Vec<u64> = cores.iter().map(bytes).collect();
    println!("bytes sent by the cores {cores:?}: {carried:?}");
    assert_eq!(carried.len(), 4);
    let all: u64 = carried.iter().sum();
    assert!(carried.iter().all(|bytes| bytes * 10 >= all), "{carried:?}");
}

/// What this takes in memory is the subject of `memory.rs`: it needs a process of its own.
#[test]
fn c30_star_4004() {
    let (scenario, run) = good("c30_star_4004");
    assert_eq!((scenario.nodes.len(), run.host(4_002).data_frames), (4_004, 2));
    assert_eq!(run.outcome.flows.in_memory()[0].completion.fct, run.outcome.flows.in_memory()[0].ideal);
}

#[test]
fn c31_stop_time() {
    let loaded = load_case("c31_stop_time");
    let found = findings(&loaded);
    let tokens: Vec<(usize, &str)> = loaded.found.all().iter().map(|d| (d.line, d.token.as_str())).collect();
    assert_eq!(tokens, [(1, "40000000000000.00"), (4, "NO_SUCH_KEY")], "{found:?}");
    assert!(!loaded.found.has_errors() && found.iter().all(|line| line.contains(": warning: ")), "{found:?}");
    let scenario = usable(loaded);
    assert!(scenario.stop >= SimTime::from_ns(1 << 53), "{:?}", scenario.stop);
    // What the other keys say holds: DCQCN, and the round trip of the flow's own path.
    assert_eq!((scenario.cca_name(), scenario.flows[0].base_rtt), ("dcqcn", None));
    let run = run(&scenario);
    run.assert_done(&scenario);
    assert_eq!(run.outcome.end, scenario.flows[0].start + run.outcome.flows.in_memory()[0].completion.fct);
    assert!(run.outcome.end < SimTime::from_ns(10_000), "{:?}", run.outcome.end);
}

#[test]
fn c32_ps_rounding() {
    let (_, run) = good("c32_ps_rounding");
    assert_last_byte(&run, 20_960_000_000 + 20_960 + 2_000_000, ack_flight(BitRate::from_gbps(400)));
    assert_eq!(run.host(1).payload, 1_000_000_000);
}

// The whole kind of a fault, not only the instance that a case shows.

/// Numbers that name no node of three: too large by one, by far, for 32 and for 64 bits, and no numbers at all.
const NO_NODES: [&str; 6] = ["3", "4294967295", "4294967296", "18446744073709551616", "-1", "x"];

/// Two hosts and a switch, one flow, one link change: every place of a node's id holds `@` in turn.
#[test]
fn c12_ids_are_checked_wherever_there_is_one() {
    let good = ["3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n", "1\n0 1 3 100 1000 0\n", "", "5 down 0 2\n"];
    let texts = |texts: [&str; 4]| {
        let [topology, flows, config, changes] = texts;
        let texts = Texts {
            topology: ("topology.txt", topology),
            flows: Some(("flow.txt", flows)),
            config: Some(("config.txt", config)),
            link_events: Some(("events.txt", changes)),
        };
        load_texts(&texts, &Options::PLAIN)
    };
    flawless(texts(good));
    let places = [
        ("topology.txt:2", 0, "3 1 2\n@\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
        ("topology.txt:3", 0, "3 1 2\n2\n@ 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
        ("topology.txt:4", 0, "3 1 2\n2\n0 2 100Gbps 1us 0\n1 @ 100Gbps 1us 0\n"),
        ("flow.txt:2", 1, "1\n@ 1 3 100 1000 0\n"),
        ("flow.txt:2", 1, "1\n0 @ 3 100 1000 0\n"),
        ("events.txt:1", 3, "5 down @ 2\n"),
        ("events.txt:1", 3, "5 down 0 @\n"),
        ("events.txt:1", 3, "5 down @\n"),
        ("config.txt", 2, "LINK_DOWN 5 @ 2\n"),
        ("config.txt", 2, "LINK_DOWN 5 0 @\n"),
    ];
    for (place, file, text) in places {
        for id in NO_NODES {
            let with_id = text.replace('@', id);
            let mut all = good;
            all[file] = &with_id;
            let loaded = texts(all);
            let found = findings(&loaded);
            assert!(loaded.scenario.is_none() && !found.is_empty(), "{with_id:?} is taken");
            let (first, token) = (&found[0], found[0].contains(id) || file == 2);
            assert!(first.starts_with(place) && first.contains(": error: ") && token, "{with_id:?}: {found:?}");
        }
    }
}

/// Every field of a rate or a time, in every unit it may have, and with one that it may not have.
#[test]
fn c11_units_are_read_wherever_there_is_one() {
    let topology = |rate: &str, delay: &str| format!("3 1 2\n2\n0 2 {rate} {delay} 0\n1 2 100Gbps 1us 0\n");
    let flows = |start: &str| format!("1\n0 1 3 100 1000 {start}\n");
    let load =
        |rate: &str, delay: &str, start: &str, config: &str| load_text(&topology(rate, delay), &flows(start), config);
    for rate in
        ["100Gbps", "100Gb/s", "100000Mbps", "0.1Tbps", "0.1Tb/s", "1e8kbps", "1e8Kb/s", "100000000000bps", "1e11"]
    {
        let scenario = flawless(load(rate, "1us", "0", ""));
        assert_eq!(scenario.links[0].rate, BitRate::from_gbps(100), "{rate}");
        for key in ["RATE_AI", "RATE_HAI", "MIN_RATE", "DCTCP_RATE_AI"] {
            flawless(load("100Gbps", "1us", "0", &format!("{key} {rate}\n")));
        }
    }
    for time in ["1us", "0.001ms", "1000ns", "1000000ps", "1e-6s", "0.000001"] {
        let scenario = flawless(load("100Gbps", time, "0", &format!("SIMULATOR_STOP_TIME {time}\n")));
        assert_eq!((scenario.links[0].delay, scenario.stop), (Span(PS_PER_US), SimTime(PS_PER_US - 1)), "{time}");
    }
    assert_eq!(flawless(load("100Gbps", "1us", "0.000001", "")).flows[0].start, SimTime(PS_PER_US));
    let refused = |loaded: Loaded, token: &str| {
        let found: Vec<&str> = loaded.found.all().iter().map(|d| d.token.as_str()).collect();
        assert!(loaded.found.has_errors() && found == [token], "{token}: {found:?}");
    };
    for rate in ["100GBps", "100Gbit", "100G", "100gbps", "100us", "Gbps", "1e99Gbps", "nan", "inf", "0x10bps"] {
        refused(load(rate, "1us", "0", ""), rate);
        refused(load("100Gbps", "1us", "0", &format!("RATE_AI {rate}\n")), rate);
    }
    for time in ["1m", "1h", "1µs", "1US", "1Gbps", "us", "nan", "-1us", "1e20s"] {
        refused(load("100Gbps", time, "0", ""), time);
        refused(load("100Gbps", "1us", time, ""), time);
    }
    // Microseconds that have no unit in their file, and a start that must be plain seconds.
    for key in ["ALPHA_RESUME_INTERVAL", "RATE_DECREASE_INTERVAL", "RP_TIMER"] {
        flawless(load("100Gbps", "1us", "0", &format!("{key} 55.5\n")));
        refused(load("100Gbps", "1us", "0", &format!("{key} 55us\n")), "55us");
    }
    refused(load("100Gbps", "1us", "1us", ""), "1us");
}

/// Every key that is a number, at the least and the greatest it may be, under every congestion control: nothing
/// overflows, nothing hangs, and all flows end.
#[test]
fn c17_numbers_do_not_wrap_at_their_ends() {
    let max32 = u32::MAX.to_string();
    let max64 = u64::MAX.to_string();
    let most_us = (u64::MAX / PS_PER_US).to_string();
    let least_and_most = [
        ("MI_THRESH", ["0", &max32]),
        ("INT_MULTI", ["1", &max32]),
        ("FAST_RECOVERY_TIMES", ["0", &max32]),
        ("L2_CHUNK_SIZE", ["0", &max64]),
        ("L2_ACK_INTERVAL", ["0", &max64]),
        ("RATE_AI", ["0", &max64]),
        ("RATE_HAI", ["0", &max64]),
        ("DCTCP_RATE_AI", ["0", &max64]),
        ("MIN_RATE", ["1", &max64]),
        ("RP_TIMER", ["1", &most_us]),
        ("ALPHA_RESUME_INTERVAL", ["1", &most_us]),
        ("RATE_DECREASE_INTERVAL", ["1", &most_us]),
        ("EWMA_GAIN", ["0", "1"]),
        ("U_TARGET", ["1e-300", "1e300"]),
        ("PACKET_PAYLOAD_SIZE", ["1", "1048576"]),
        ("BUFFER_SIZE", ["1", "4095"]),
    ];
    let topology = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n";
    let flows = "2\n0 2 3 100 30000 0\n1 2 3 100 30000 0\n";
    for (key, ends) in least_and_most {
        for value in ends {
            for mode in [0, 1, 3, 7, 8, 9] {
                for profile in [Profile::Ps, Profile::Ns3] {
                    // In ns-3 the last byte of a flow is not acknowledged then.
                    if (profile, key) == (Profile::Ns3, "L2_ACK_INTERVAL") {
                        continue;
                    }
                    let config = format!("CC_MODE {mode}\n{key} {value}\n");
                    let texts = Texts {
                        topology: ("topology.txt", topology),
                        flows: Some(("flow.txt", flows)),
                        config: Some(("config.txt", &config)),
                        link_events: None,
                    };
                    let scenario = usable(load_texts(&texts, &Options { profile, ..Options::PLAIN }));
                    let run = run(&scenario);
                    assert_eq!(run.outcome.ending, Ending::Done, "{config}{profile:?}");
                    run.assert_done(&scenario);
                }
            }
        }
    }
}

/// No bytes, wherever a flow stands in its file and however they are written.
#[test]
fn c02_no_bytes_are_refused_in_any_row() {
    for zero in ["0", "00", "-0", "0.0", "0x0", ""] {
        for row in 1..=3 {
            let rows: String =
                (1..=3).map(|at| format!("0 1 3 100 {} 0\n", if at == row { zero } else { "5" })).collect();
            let topology = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
            let loaded = load_text(topology, &format!("3\n{rows}"), "");
            let found = findings(&loaded);
            let place = format!("flow.txt:{}: error: ", row + 1);
            assert!(loaded.scenario.is_none() && found[0].starts_with(&place), "{zero:?} in row {row}: {found:?}");
        }
    }
}

/// A lone flow of any small size takes its ideal time exactly, under every congestion control whose window holds it.
/// But for a last packet shorter than the acknowledgement that is before its own: that is waited for.
#[test]
fn c03_and_c04_any_size_takes_at_least_its_ideal_time() {
    let topology = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
    for mode in [0, 1, 3, 7, 8, 9] {
        for bytes in [1, 2, 3, 4, 999, 1_000, 1_001, 1_999, 2_000, 2_001, 4_490, 65_535, 65_536, 99_999] {
            let scenario =
                flawless(load_text(topology, &format!("1\n0 1 3 100 {bytes} 0\n"), &format!("CC_MODE {mode}\n")));
            let run = run(&scenario);
            run.assert_done(&scenario);
            let (fct, ideal) =
                (run.outcome.flows.in_memory()[0].completion.fct, run.outcome.flows.in_memory()[0].ideal);
            let waits = bytes > 1_000 && (1..12).contains(&(bytes % 1_000));
            assert!(bytes > 4_490 || waits || fct == ideal, "CC_MODE {mode}, {bytes} bytes: {fct:?}, ideal {ideal:?}");
            assert_eq!(run.host(1).payload, bytes);
        }
    }
}

/// Rows of a flow file in any order mean the same.
#[test]
fn c08_any_order_of_rows_means_the_same() {
    let case = "c08_unsorted_starts";
    let rows = ["1 2 3 100 10000 0.001", "0 1 3 100 10000 0.0015", "0 2 3 100 10000 0.002"];
    let orders = [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]];
    let run_in = |order: [usize; 3]| {
        let text = format!("3\n{}\n", order.map(|row| rows[row]).join("\n"));
        let scenario = usable(load_text(&case_text(case, "topology.txt"), &text, ""));
        let run = run(&scenario);
        run.assert_done(&scenario);
        (scenario.flows, fcts(&run), run.log)
    };
    let sorted = run_in(orders[0]);
    orders[1..].iter().for_each(|&order| assert_eq!(run_in(order), sorted, "{order:?}"));
}

/// Ends of lines, blanks and marks of editors in every file.
#[test]
fn c10_blanks_mean_nothing() {
    let (topology, flows) = ("3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n", "1\n0 1 3 100 10000 0\n");
    let config = "CC_MODE 3\n";
    let plain = flawless(load_text(topology, flows, config));
    let dressings: [fn(&str) -> String; 5] = [
        |text| text.replace('\n', "\r\n"),
        |text| text.replace(' ', "\t \t"),
        |text| text.replace('\n', " \t\n\n"),
        |text| format!("\n  {}", text.trim_end()),
        |text| text.replace('\n', " \n "),
    ];
    for dress in dressings {
        let scenario = flawless(load_text(&dress(topology), &dress(flows), &dress(config)));
        assert_eq!((&scenario.links, &scenario.flows), (&plain.links, &plain.flows), "{:?}", dress(flows));
        assert_eq!(scenario.cca_name(), "hpcc");
    }
}

/// Flows of a pair spread over any number of parallel links, and over those only that are up.
#[test]
fn c13_parallel_links_are_all_used() {
    for count in [2, 3, 8] {
        let parallel = "2 3 100Gbps 1us 0\n".repeat(count);
        let topology = format!("4 2 {}\n2 3\n0 2 400Gbps 1us 0\n1 3 400Gbps 1us 0\n{parallel}", count + 2);
        let rows: String = (0..64 * count).map(|i| format!("0 1 3 {i} 1000 0\n")).collect();
        let scenario = flawless(load_text(&topology, &format!("{}\n{rows}", 64 * count), "CC_MODE 0\n"));
        let run = run(&scenario);
        run.assert_done(&scenario);
        let bytes: Vec<u64> = run.ports(2, 3).iter().map(|&port| run.sent(port)).collect();
        // ACKs of the other direction are not among them; each of 64 flows a link, by chance, and no link idle.
        assert_eq!((bytes.len(), bytes.iter().sum::<u64>()), (count, 64 * count as u64 * 1_048));
        assert!(bytes.iter().all(|&bytes| bytes >= 32 * 1_048), "{bytes:?}");
    }
}

/// A small buffer and a large incast under every congestion control: what is lost is told, and all flows end.
#[test]
fn c19_incasts_end_under_every_congestion_control() {
    let flows: String = (0..40).map(|src| format!("{src} 40 3 100 60000 0\n")).collect();
    let links: String = (0..41).map(|host| format!("{host} 41 100Gbps 1us 0\n")).collect();
    let topology = format!("42 1 41\n41\n{links}");
    for mode in [0, 1, 3, 7, 8, 9] {
        for window in ["", "HAS_WIN 0\n"] {
            let config = format!("CC_MODE {mode}\nBUFFER_SIZE 1\n{window}");
            let scenario = flawless(load_text(&topology, &format!("40\n{flows}"), &config));
            let run = run(&scenario);
            run.assert_done(&scenario);
            assert_eq!(run.outcome.totals.drops, 0, "{config}: headroom suffices");
        }
    }
}

/// Pauses are of the priority that fills a buffer, whichever it is.
#[test]
fn c20_pauses_are_of_the_priority_that_needs_them() {
    for priority in 1..8 {
        let flows: String = (0..8).map(|src| format!("{src} 8 {priority} 100 300000 0\n")).collect();
        let links: String = (0..9).map(|host| format!("{host} 9 100Gbps 1us 0\n")).collect();
        let text = format!("10 1 9\n9\n{links}");
        let scenario = flawless(load_text(&text, &format!("8\n{flows}"), "CC_MODE 0\nHAS_WIN 0\nBUFFER_SIZE 1\n"));
        let run = run(&scenario);
        run.assert_done(&scenario);
        assert!(run.outcome.totals.pauses > 0 && run.outcome.totals.drops == 0, "{:?}", run.outcome.totals);
        assert!(run.log.pfc.iter().all(|pfc| pfc.priority == priority), "priority {priority}");
    }
}

/// A path that is lost for good in mid-flow: profile `ps` gives the flow up, ns-3 would wait for ever. Both say so.
#[test]
fn c24_a_host_that_becomes_unreachable_is_told() {
    for (change, profile) in ["20 down 1 2\n", "20 down 0 2\n", "20 down 2\n"]
        .into_iter()
        .flat_map(|c| [(c, Profile::Ps), (c, Profile::Ns3)])
    {
        let texts = Texts {
            topology: ("topology.txt", "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n"),
            flows: Some(("flow.txt", "1\n0 1 3 100 1000000 0\n")),
            config: None,
            link_events: Some(("events.txt", change)),
        };
        let scenario = flawless(load_texts(&texts, &Options { profile, ..Options::PLAIN }));
        let run = run(&scenario);
        match profile {
            Profile::Ps => assert_eq!((&run.outcome.ending, run.outcome.totals.flows_given_up), (&Ending::Done, 1)),
            Profile::Ns3 => assert!(matches!(&run.outcome.ending, Ending::Stalled(flows) if flows.len() == 1)),
        }
        assert_eq!(explain(&run.outcome), ExitStatus::Stalled, "{change:?}, {profile:?}");
    }
}

/// Numbers of switches that are none: an empty line, no line at all, and more blanks.
#[test]
fn c26_no_switches_may_be_written_in_any_way() {
    for text in ["2 0 1\n\n0 1 100Gbps 1us 0\n", "2 0 1\n0 1 100Gbps 1us 0\n", "2 0 1\n  \n\n0 1 100Gbps 1us 0\n"] {
        let scenario = flawless(load_text(text, "1\n0 1 3 100 1000 0\n", ""));
        let run = run(&scenario);
        run.assert_done(&scenario);
        assert_eq!(scenario.nodes, [NodeKind::Host; 2], "{text:?}");
    }
}

/// Times to stop at that no clock has.
#[test]
fn c31_stop_times_saturate_or_are_refused() {
    let case = "c31_stop_time";
    let load = |stop: &str| {
        let config = format!("SIMULATOR_STOP_TIME {stop}\n");
        load_text(&case_text(case, "topology.txt"), &case_text(case, "flow.txt"), &config)
    };
    for stop in ["4e13", "1e300", "18446744.08", "9223372036.854775808"] {
        let loaded = load(stop);
        let found = findings(&loaded);
        assert!(found.len() == 1 && found[0].contains("warning: later than simulated time"), "{stop}: {found:?}");
        let scenario = usable(loaded);
        run(&scenario).assert_done(&scenario);
    }
    for stop in ["-1", "nan", "inf", "1e", "0x10", "soon"] {
        let found = findings(&load(stop));
        let named = found.iter().any(|line| line.contains("error") && line.ends_with(&format!("(found `{stop}`)")));
        assert!(named, "{stop}: {found:?}");
    }
}

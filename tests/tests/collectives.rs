//! Collectives on a star against closed forms: the time of rings to the picosecond, and of every algorithm the bytes on
//! each host's port and a bound from them.

use wormhole::load::{Texts, load_texts};
use wormhole::memo::{Memo, MemoOptions};
use wormhole::scenario::{CcaName, Options, Scenario};
use wormhole::simulate::{Ending, Outcome, simulate_memoised};
use wormhole::topo::build;
use wormhole::workload::collective::{AllReduce, AllToAll, CollectiveOptions};
use wormhole::workload::report::CollectiveReport;
use wormhole::workload::task::CollectiveKind;
use wormhole_kernel::accel::Tier;
use wormhole_kernel::{BitRate, SimTime, Span};
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig, WindowRule};
use wormhole_models::topology::{HostLinks, Star};
use wormhole_tests::{collective, flawless, run};

/// Rate of every link, in bytes a second: a byte takes 80 ps.
const RATE: u64 = 12_500_000_000;
const BYTE: u64 = 80;
/// Payload of a full packet.
const MTU: u64 = 1_000;
/// A full packet and an acknowledgement on a link, in picoseconds.
const FULL: u64 = (MTU + 48) * BYTE;
const ACK: u64 = 60 * BYTE;
const US: u64 = 1_000_000;
/// Hosts of the tests of all algorithms.
const HOSTS: u64 = 8;

/// Hosts around a switch, which nothing throttles: the window is unlimited. Messages are acknowledged at their ends
/// only, so that acknowledgements take nothing from data, and there is no time-out that a long message could miss.
fn star(hosts: u64, delay: u64) -> Scenario {
    let links = HostLinks { rates: &[BitRate(8 * RATE)], delay: Span(delay) };
    let topology = build(&Star { hosts: hosts as u32, host: links }).expect("a star");
    let mut text = Vec::new();
    wormhole::input::topology::write_topology(&topology, &mut text).expect("memory");
    let text = String::from_utf8(text).expect("text");
    let texts = Texts { topology: ("topology", &text), flows: None, config: None, link_events: None };
    let options = Options { cca: Some(CcaName::Fixed), max_packets: 1 << 20, max_flows: 1 << 14, ..Options::PLAIN };
    let mut scenario = flawless(load_texts(&texts, &options));
    scenario.cca = AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Unlimited)));
    scenario.transport.ack_interval = u64::MAX;
    scenario.transport.chunk = 0;
    scenario.transport.timeout = None;
    scenario
}

/// What came of the only collective of a run.
fn only(outcome: &Outcome) -> &CollectiveReport {
    assert_eq!(outcome.ending, Ending::Done);
    let [report] = &outcome.jobs[0].collectives[..] else { panic!("one collective") };
    let bandwidth = report.bus_bandwidth() * 1e9;
    assert!(bandwidth <= RATE as f64, "{report:?}: {bandwidth} B/s on links of {RATE} B/s");
    assert_eq!((report.start, report.start + report.time), (SimTime::ZERO, outcome.jobs[0].end));
    report
}

/// A ring's all-reduce with the exact tier and memoisation.
fn ring(mut scenario: Scenario, hosts: u64, bytes: u64) -> Outcome {
    scenario.acceleration.tier = Tier::Exact;
    scenario.jobs = vec![collective(hosts, CollectiveKind::AllReduce, bytes, CollectiveOptions::default())];
    let options = MemoOptions { keys: None, check: 0, limit_words: 1 << 18 };
    let mut memo = Memo::open(options, None, Tier::Exact).0.expect("a memo");
    simulate_memoised(&scenario, &mut memo, &mut ()).expect("the kernel takes the scenario")
}

/// Steps of a ring's all-reduce.
fn steps(hosts: u64) -> u64 {
    2 * (hosts - 1)
}

/// A step sends one n-th of the bytes over two links, and the acknowledgement of the last packet back over two. Data
/// and acknowledgements never meet: a host's data is all sent when the acknowledgement of what it got leaves.
#[test]
fn ring_all_reduce_takes_two_n_minus_two_steps() {
    for (hosts, packets) in [(8, 1), (8, 1_000), (64, 1), (64, 50), (512, 2)] {
        let outcome = ring(star(hosts, US), hosts, hosts * packets * MTU);
        let step = (packets + 1) * FULL + 2 * ACK + 4 * US;
        assert_eq!(only(&outcome).time, Span(steps(hosts) * step), "{hosts} hosts, {packets} packets");
        assert_eq!(outcome.flows.len() as u64, steps(hosts) * hosts);
        assert!(outcome.flows.in_memory().iter().all(|flow| flow.completion.fct == Span(step)));
    }
}

/// With every packet acknowledged, a port carries an acknowledgement with each packet once the first one has come: it
/// has crossed two links by then, and so have their delays passed.
#[test]
fn ring_all_reduce_shares_its_ports_with_acknowledgements() {
    for (hosts, packets) in [(8, 1_000), (64, 200)] {
        let mut scenario = star(hosts, US);
        scenario.transport.ack_interval = 1;
        let outcome = ring(scenario, hosts, hosts * packets * MTU);
        let before = (2 * FULL + 2 * US).div_ceil(FULL);
        let step = (packets + 1) * FULL + (packets - before) * ACK + 2 * ACK + 4 * US;
        let (want, got) = ((steps(hosts) * step) as f64, only(&outcome).time.0 as f64);
        assert!((got / want - 1.0).abs() < 0.01, "{hosts} hosts, {packets} packets: {got} instead of {want}");
    }
}

/// A collective of eight, and what its algorithm makes of it.
struct Case {
    kind: CollectiveKind,
    how: CollectiveOptions,
    /// Payload that each host sends and receives, in eighths of the size.
    sent: [u64; HOSTS as usize],
    received: [u64; HOSTS as usize],
    /// How much longer than the busiest port's bytes it may take, in per cent: see where it is chosen.
    most: u64,
}

/// Size of the collectives: an eighth takes 84 us.
const BYTES: u64 = 8_000_000;

impl Case {
    fn new(kind: CollectiveKind, all_reduce: AllReduce, eighths: u64) -> Case {
        let how = CollectiveOptions { all_reduce, ..CollectiveOptions::default() };
        // A step of a ring takes 84 us, what its message waits for in the fabric is less than 1 us.
        Case { kind, how, sent: [eighths; HOSTS as usize], received: [eighths; HOSTS as usize], most: 2 }
    }

    /// Checks the bytes on every port, and that the time is between the bound and a little more.
    fn check(&self) {
        let what = format!("{} {:?}", self.kind.name(), self.how);
        let mut scenario = star(HOSTS, US / 10);
        scenario.jobs = vec![collective(HOSTS, self.kind, BYTES, self.how)];
        let run = run(&scenario);
        let switch = HOSTS as u32;
        let arrived = |from: u32, to: u32| run.log.port(run.ports(from, to)[0]).payload;
        let eighths = |eighths: [u64; HOSTS as usize]| eighths.map(|of_host| of_host * BYTES / HOSTS);
        let hosts: [u32; HOSTS as usize] = std::array::from_fn(|host| host as u32);
        assert_eq!(hosts.map(|host| arrived(switch, host)), eighths(self.sent), "sent: {what}");
        assert_eq!(hosts.map(|host| arrived(host, switch)), eighths(self.received), "received: {what}");
        let busiest = self.sent.iter().chain(&self.received).max().expect("hosts") * BYTES / HOSTS;
        // Parts of packets cost more headers.
        let least = busiest / MTU * FULL;
        let time = only(&run.outcome).time.0;
        println!("{what}: {:.2} % above the bound", (time as f64 / least as f64 - 1.0) * 100.0);
        assert!(least <= time && time <= least + least * self.most / 100, "{time} ps, at least {least}: {what}");
    }
}

#[test]
fn rings_send_each_part_past_every_member() {
    Case::new(CollectiveKind::AllReduce, AllReduce::Ring, 2 * (HOSTS - 1)).check();
    Case::new(CollectiveKind::ReduceScatter, AllReduce::Ring, HOSTS - 1).check();
    Case::new(CollectiveKind::AllGather, AllReduce::Ring, HOSTS - 1).check();
}

/// A half, a quarter, an eighth of the bytes one way, and the same back.
#[test]
fn halving_and_doubling_sends_the_bytes_of_a_ring() {
    Case::new(CollectiveKind::AllReduce, AllReduce::HalvingDoubling, 2 * (HOSTS - 1)).check();
    Case::new(CollectiveKind::ReduceScatter, AllReduce::HalvingDoubling, HOSTS - 1).check();
    Case::new(CollectiveKind::AllGather, AllReduce::HalvingDoubling, HOSTS - 1).check();
}

/// An inner node of one tree sends half of the bytes to its parent and to each of its two children, and another half as
/// a leaf of the other tree. The roots have one child and no parent: they are the first and the last member.
#[test]
fn double_tree_sends_twice_the_bytes_from_inner_nodes() {
    let ends = HOSTS;
    let inner = 2 * HOSTS;
    let each = [ends, inner, inner, inner, inner, inner, inner, ends];
    let case = Case::new(CollectiveKind::AllReduce, AllReduce::DoubleTree, 0);
    let how = CollectiveOptions { chunk_bytes: 10_000, ..case.how };
    // Time in which a port waits for chunks: 10 % of the bound when this was written.
    Case { how, sent: each, received: each, most: 15, ..case }.check();
}

#[test]
fn all_to_all_sends_a_part_to_every_other() {
    for all_to_all in [AllToAll::Direct, AllToAll::Pairwise] {
        let case = Case::new(CollectiveKind::AllToAll, AllReduce::Ring, HOSTS - 1);
        Case { how: CollectiveOptions { all_to_all, ..case.how }, ..case }.check();
    }
}

/// Chunks run along the chain: the last member gets the first one six chunks later than the second member does. Four
/// channels keep the ports busy while the end of a chunk is acknowledged.
#[test]
fn broadcast_sends_all_bytes_along_the_chain() {
    let case = Case::new(CollectiveKind::Broadcast, AllReduce::Ring, HOSTS);
    let how = CollectiveOptions { channels: 4, chunk_bytes: 20_000, ..case.how };
    let (mut sent, mut received) = (case.sent, case.received);
    sent[HOSTS as usize - 1] = 0;
    received[0] = 0;
    Case { how, sent, received, most: 10, ..case }.check();
}

/// The size of an all-gather is that of its result: each rank brings one n-th. That of a reduce-scatter and of an
/// all-to-all is what each rank brings.
#[test]
fn sizes_mean_what_they_mean_in_nccl_tests() {
    for kind in [CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll] {
        let mut scenario = star(HOSTS, US);
        scenario.jobs = vec![collective(HOSTS, kind, 8 * 12_345, CollectiveOptions::default())];
        let run = run(&scenario);
        assert_eq!(only(&run.outcome).bytes, 8 * 12_345);
        assert_eq!(run.outcome.flows.len() as u64, HOSTS * (HOSTS - 1), "{kind:?}");
        assert!(run.outcome.flows.in_memory().iter().all(|flow| flow.completion.bytes == 12_345), "{kind:?}");
    }
}

/// A barrier sends nothing and takes no time if all come at once.
#[test]
fn barrier_of_ranks_in_step_takes_no_time() {
    let mut scenario = star(HOSTS, US);
    scenario.jobs = vec![collective(HOSTS, CollectiveKind::Barrier, 1, CollectiveOptions::default())];
    let run = run(&scenario);
    assert_eq!((only(&run.outcome).time, run.outcome.flows.len()), (Span::ZERO, 0));
}

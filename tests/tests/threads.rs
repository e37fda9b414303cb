//! A run on several threads has the results of one, to the byte.

use std::fmt::Write;
use wormhole::scenario::{Profile, Scenario};
use wormhole::simulate::{Outcome, simulate};
use wormhole_kernel::Completion;
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
    for flow in &outcome.flows {
        // Not the number that its kernel gave it: another kernel gave another.
        let Completion { token, start, fct, bytes, mean_rtt, gave_up, .. } = flow.completion;
        let done = (token, start, fct, bytes, mean_rtt, gave_up);
        writeln!(text, "{:?} {:?} {done:?}", flow.number, flow.ideal).expect("memory");
    }
    for port in &outcome.ports {
        writeln!(text, "{:?} {:?}", port.info, port.stats).expect("memory");
    }
    for row in &outcome.pfc {
        writeln!(text, "{row:?}").expect("memory");
    }
    text
}

fn with_threads(scenario: &Scenario, threads: usize) -> Outcome {
    let scenario = Scenario { threads, ..scenario.clone() };
    simulate(&scenario, &mut ()).expect("it is accepted")
}

#[test]
fn any_number_of_threads_gives_the_same() {
    let (mut cut, mut paused, mut flows) = (0, 0, 0);
    for_all_seeds(150, inputs, |inputs| {
        let loaded = load_text(&inputs.topology, &inputs.flows, &inputs.config);
        let scenario = Scenario { profile: Profile::Ps, ..usable(loaded) };
        let one = with_threads(&scenario, 1);
        for threads in [2, 3, 8] {
            let several = with_threads(&scenario, threads);
            cut += u64::from(several.threads > 1);
            assert!(told(&one) == told(&several), "{threads} threads:\n{}\n{}", told(&one), told(&several));
        }
        paused += one.totals.pauses;
        flows += one.flows.len();
    });
    println!("{flows} flows, {paused} pauses; {cut} runs in shards");
    assert!(cut > 100 && paused > 0, "{cut} runs in shards, {paused} pauses");
}

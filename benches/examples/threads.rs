//! What several threads gain: elapsed times of plain runs with one kernel and with several, turn by turn.
//!
//! `cargo run --release -p wormhole-benches --example threads -- [--turns N] [--threads N]...`
//!
//! Rows are Markdown. Times are medians. The results of all runs of a workload are compared, too.

use clap::Parser;
use std::time::Duration;
use wormhole::scenario::Scenario;
use wormhole::simulate::Outcome;
use wormhole_benches::{rails, run, stars};

/// Compares runs on several threads with those on one.
#[derive(Parser)]
struct Wanted {
    /// Runs of each kind.
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u32).range(1..))]
    turns: u32,
    /// Numbers of threads.
    #[arg(long, default_values_t = [1, 2])]
    threads: Vec<usize>,
}

fn main() {
    let wanted = Wanted::parse();
    println!("| workload | threads | wall s | processor s | times as fast | M packet-hops/s |");
    println!("|---|---:|---:|---:|---:|---:|");
    let workloads =
        [("8 rails of 16 on a fat-tree, HPCC", rails(10_000_000)), ("8 stars of 16, HPCC", stars(8, 10_000_000))];
    for (name, scenario) in workloads {
        compare(name, &scenario, &wanted);
    }
}

fn compare(name: &str, scenario: &Scenario, wanted: &Wanted) {
    let kinds: Vec<Option<usize>> = [None].into_iter().chain(wanted.threads.iter().copied().map(Some)).collect();
    let mut runs: Vec<Vec<Outcome>> = kinds.iter().map(|_| Vec::new()).collect();
    for _ in 0..wanted.turns {
        for (threads, runs) in kinds.iter().zip(&mut runs) {
            runs.push(run(&Scenario { threads: *threads, ..scenario.clone() }));
        }
    }
    let one = median(&runs[0], |outcome| outcome.wall);
    for (threads, of_kind) in kinds.iter().zip(&runs) {
        assert!(of_kind.iter().all(|outcome| fcts(outcome) == fcts(&runs[0][0])), "{name}: other results");
        let (wall, cpu) = (median(of_kind, |outcome| outcome.wall), median(of_kind, |outcome| outcome.cpu));
        let threads = threads.map_or("one kernel".to_owned(), |threads| threads.to_string());
        let (ratio, hops) = (one.as_secs_f64() / wall.as_secs_f64(), of_kind[0].totals.packet_hops as f64);
        let (wall, cpu, speed) = (wall.as_secs_f64(), cpu.as_secs_f64(), hops / wall.as_secs_f64() / 1e6);
        println!("| {name} | {threads} | {wall:.3} | {cpu:.3} | {ratio:.2} | {speed:.2} |");
    }
}

fn median(runs: &[Outcome], time: impl Fn(&Outcome) -> Duration) -> Duration {
    let mut times: Vec<Duration> = runs.iter().map(time).collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn fcts(outcome: &Outcome) -> Vec<(u64, u64)> {
    outcome.flows.in_memory().iter().map(|flow| (flow.completion.token, flow.completion.fct.0)).collect()
}

//! What several threads gain: elapsed times of plain runs with one kernel and with several, turn by turn.
//!
//! `cargo run --release -p wormhole-benches --example threads -- [--turns N] [--threads N]...`
//!
//! Rows are Markdown. Times are medians, and so is how many times as fast runs are: each is compared with that of one
//! kernel in its turn. The last column compares the fastest runs, which others on the machine have hindered least. The
//! results of all runs of a workload are compared, too.

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
    println!("| workload | threads | wall s | least | processor s | times as fast | fastest runs |");
    println!("|---|---:|---:|---:|---:|---:|---:|");
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
    for (threads, of_kind) in kinds.iter().zip(&runs) {
        assert!(of_kind.iter().all(|outcome| fcts(outcome) == fcts(&runs[0][0])), "{name}: other results");
        let seconds = |time: fn(&Outcome) -> Duration| of_kind.iter().map(move |outcome| time(outcome).as_secs_f64());
        let (walls, cpus) = (sorted(seconds(|outcome| outcome.wall)), sorted(seconds(|outcome| outcome.cpu)));
        let one = || runs[0].iter().map(|outcome| outcome.wall.as_secs_f64());
        let gains = sorted(one().zip(seconds(|outcome| outcome.wall)).map(|(one, of)| one / of));
        let gain_of_fastest = sorted(one())[0] / walls[0];
        let (median, threads) = (of_kind.len() / 2, threads.map_or("one kernel".to_owned(), |n| n.to_string()));
        let (wall, least, cpu, gain) = (walls[median], walls[0], cpus[median], gains[median]);
        println!("| {name} | {threads} | {wall:.3} | {least:.3} | {cpu:.3} | {gain:.2} | {gain_of_fastest:.2} |");
    }
}

fn sorted(values: impl Iterator<Item = f64>) -> Vec<f64> {
    let mut values: Vec<f64> = values.collect();
    values.sort_unstable_by(f64::total_cmp);
    values
}

fn fcts(outcome: &Outcome) -> Vec<(u64, u64)> {
    outcome.flows.in_memory().iter().map(|flow| (flow.completion.token, flow.completion.fct.0)).collect()
}

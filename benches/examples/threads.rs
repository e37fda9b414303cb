//! What several threads gain: elapsed times of plain runs with one kernel and with several, turn by turn.
//!
//! `cargo run --release -p wormhole-benches --example threads -- [--turns N] [--threads N]...`
//!
//! Rows are Markdown. Times are medians, and so is how many times as fast runs are: each is compared with that of one
//! kernel in its turn. The last column compares the fastest runs, which others on the machine have hindered least. The
//! results of all runs of a workload are compared, too.

use clap::Parser;
use wormhole::scenario::Scenario;
use wormhole::simulate::Outcome;
use wormhole_benches::{median, rails, run, stars};

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
        let (of_one, walls) = (|| runs[0].iter().map(wall), || of_kind.iter().map(wall));
        let (fastest, gain) = (least(walls()), median(of_one().zip(walls()).map(|(one, of)| one / of)));
        let (wall, cpu) = (median(walls()), median(of_kind.iter().map(|outcome| outcome.cpu.as_secs_f64())));
        let gain_of_fastest = least(of_one()) / fastest;
        let threads = threads.map_or("one kernel".to_owned(), |threads| threads.to_string());
        println!("| {name} | {threads} | {wall:.3} | {fastest:.3} | {cpu:.3} | {gain:.2} | {gain_of_fastest:.2} |");
    }
}

/// How long a run took, in seconds.
fn wall(outcome: &Outcome) -> f64 {
    outcome.wall.as_secs_f64()
}

fn least(values: impl Iterator<Item = f64>) -> f64 {
    values.fold(f64::INFINITY, f64::min)
}

fn fcts(outcome: &Outcome) -> Vec<(u64, u64)> {
    outcome.flows.in_memory().iter().map(|flow| (flow.completion.token, flow.completion.fct.0)).collect()
}

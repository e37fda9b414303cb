//! How costs grow: with the number of GPUs of a training job, and with the flows of a partition.
//!
//! `cargo run --release -p wormhole-benches --example scaling -- gpus [SCENARIO]...`
//! `cargo run --release -p wormhole-benches --example scaling -- flows [FLOWS]...`
//!
//! Rows are Markdown. Scenarios are best named from small to large: memory is the most that the process has had so far.

use clap::Parser;
use std::process::ExitCode;
use std::time::Instant;
use wormhole::cpu::peak_rss_mb;
use wormhole::memo::{Memo, MemoOptions};
use wormhole::scenario::Scenario;
use wormhole::simulate::{Outcome, simulate_memoised};
use wormhole_benches::incasts;
use wormhole_kernel::accel::{Acceleration, Tier};

/// Prints a scaling curve.
#[derive(Parser)]
enum Wanted {
    /// One iteration of embedded scenarios of dense models, by their GPUs.
    Gpus {
        #[arg(default_values = [
            "gpt-7b-64", "gpt-13b-128", "gpt-22b-256", "gpt-175b-1024", "gpt-1t-4096", "gpt-1t-16384",
        ])]
        scenarios: Vec<String>,
    },
    /// Rounds of an incast, which is one partition, by its flows.
    Flows {
        #[arg(default_values_t = [2, 8, 32, 128, 512, 2_000])]
        flows: Vec<usize>,
        /// Rounds of an incast; all are like the first.
        #[arg(long, default_value_t = 5)]
        rounds: u64,
    },
}

fn main() -> ExitCode {
    let rows = match Wanted::parse() {
        Wanted::Gpus { scenarios } => gpus(&scenarios),
        Wanted::Flows { flows, rounds } => {
            println!("| flows | plain ns an event | event ratio | CPU, times plain | hits |");
            println!("|---|---|---|---|---|");
            flows.iter().try_for_each(|&flows| incast(flows, rounds))
        }
    };
    rows.map_or_else(|code| code, |()| ExitCode::SUCCESS)
}

fn gpus(scenarios: &[String]) -> Result<(), ExitCode> {
    println!("| scenario | ranks | flows | load s | set-up s | run CPU s | us a flow | events executed | peak MB |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for name in scenarios {
        let begun = Instant::now();
        let (scenario, mut memo) = wormhole::cli::open_run(&[name])?;
        let load = begun.elapsed().as_secs_f64();
        let run = simulate_memoised(&scenario, &mut memo, &mut ()).map_err(|_| ExitCode::FAILURE)?;
        let (ranks, cpu) = (scenario.jobs.iter().map(|job| job.hosts.len()).sum::<usize>(), run.cpu.as_secs_f64());
        println!(
            "| {name} | {ranks} | {} | {load:.2} | {:.2} | {cpu:.2} | {:.1} | {} | {:.0} |",
            run.flows.len(),
            run.setup.as_secs_f64(),
            cpu * 1e6 / run.flows.len() as f64,
            run.totals.events,
            peak_rss_mb()
        );
    }
    Ok(())
}

/// All events, then tier exact with a memo.
fn incast(flows: usize, rounds: u64) -> Result<(), ExitCode> {
    let scenario = incasts(flows, rounds);
    let (plain, fast) = (run(&scenario, Tier::Off)?, run(&scenario, Tier::Exact)?);
    let (plain_s, fast_s) = (plain.cpu.as_secs_f64(), fast.cpu.as_secs_f64());
    let ended = |run: &Outcome| run.flows.in_memory().iter().map(|flow| flow.completion).collect::<Vec<_>>();
    if ended(&plain) != ended(&fast) {
        eprintln!("{flows} flows: results differ");
        return Err(ExitCode::FAILURE);
    }
    println!(
        "| {flows} | {:.0} | {:.1} | {:.2} | {} |",
        plain_s * 1e9 / plain.totals.events as f64,
        plain.totals.events as f64 / fast.totals.events as f64,
        fast_s / plain_s,
        fast.memo.counts.hits,
    );
    Ok(())
}

fn run(scenario: &Scenario, tier: Tier) -> Result<Outcome, ExitCode> {
    let acceleration = Acceleration { tier, ..scenario.acceleration };
    let scenario = Scenario { acceleration, ..scenario.clone() };
    let options = MemoOptions { keys: None, check: 0, limit_words: 1 << 24 };
    let (memo, _) = Memo::open(options, None, tier);
    let mut memo = memo.ok_or(ExitCode::FAILURE)?;
    simulate_memoised(&scenario, &mut memo, &mut ()).map_err(|_| ExitCode::FAILURE)
}

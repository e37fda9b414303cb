//! What acceleration gains and errs when less and less of a workload comes again.
//!
//! `cargo run --release -p wormhole-benches --example churn_curve -- [OPTIONS] [CHURN]...`
//!
//! Rows are Markdown. Plain and accelerated runs take turns in one process, and ratios of processor time are medians of
//! those of neighbours, so that a noisy machine has little say.

use clap::{Parser, ValueEnum};
use std::time::Duration;
use wormhole::memo::{Memo, MemoKeys, MemoOptions};
use wormhole::scenario::Scenario;
use wormhole::simulate::{Outcome, simulate_memoised};
use wormhole::verify::{RunFacts, compare};
use wormhole_benches::tenants::Tenants;
use wormhole_benches::{median, tenants_on_fat_tree};
use wormhole_kernel::accel::{Acceleration, Tier};

/// Columns of errors.
const ERRORS: &str = "error mean | p99 | spread";

/// Prints the curve.
#[derive(Parser)]
struct Wanted {
    /// What may be skipped.
    #[arg(long, value_enum, default_value = "bounded")]
    tier: WantedTier,
    /// How alike partitions must be to share a record.
    #[arg(long, value_enum)]
    keys: Option<MemoKeys>,
    /// Rounds of each tenant.
    #[arg(long, default_value_t = 100)]
    rounds: u32,
    /// Pairs of runs for each row.
    #[arg(long, default_value_t = 3)]
    runs: usize,
    /// Percentages of rounds that do not come again.
    #[arg(default_values_t = [0, 10, 25, 50, 75, 90, 100])]
    churn: Vec<u32>,
}

#[derive(Clone, Copy, ValueEnum)]
enum WantedTier {
    /// Nothing: what the noise of the machine is.
    Off,
    Exact,
    Bounded,
}

fn main() {
    let wanted = Wanted::parse();
    let tier = match wanted.tier {
        WantedTier::Off => Tier::Off,
        WantedTier::Exact => Tier::Exact,
        WantedTier::Bounded => Tier::Bounded,
    };
    println!("| churn | plain events | event ratio | plain CPU s | CPU, times plain | look-ups | hits | {ERRORS} |");
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for &churn in &wanted.churn {
        let scenario = tenants_on_fat_tree(8, Tenants { hosts: 128, ranks: 8, rounds: wanted.rounds, churn, seed: 1 });
        row(churn, &scenario, (tier, wanted.keys), wanted.runs);
    }
}

/// What is skipped, and what records go by.
type How = (Tier, Option<MemoKeys>);

fn row(churn: u32, scenario: &Scenario, how: How, runs: usize) {
    let pair = |_| (run(scenario, (Tier::Off, None)), run(scenario, how));
    let pairs: Vec<(Outcome, Outcome)> = (0..runs).map(pair).collect();
    let seconds = |time: Duration| time.as_secs_f64().max(1e-9);
    let cpu = median(pairs.iter().map(|(plain, _)| seconds(plain.cpu)));
    let ratio = median(pairs.iter().map(|(plain, fast)| seconds(fast.cpu) / seconds(plain.cpu)));
    let (plain, fast) = &pairs[0];
    let errors = |other| compare(&RunFacts::of(plain), &RunFacts::of(other)).errors;
    // How far a plain run comes from itself if its flows start up to 2 ns late.
    let perturbed = run(&Scenario { perturbation: Some(1), ..scenario.clone() }, (Tier::Off, None));
    let spread = errors(&perturbed);
    let errors = errors(fast);
    println!(
        "| {churn} % | {} | {:.1} | {cpu:.2} | {ratio:.3} | {} | {} | {:.3} % | {:.3} % | {:.3} % |",
        plain.totals.events,
        plain.totals.events as f64 / fast.totals.events.max(1) as f64,
        fast.memo.counts.instances,
        fast.memo.counts.hits,
        errors.fct_error_mean * 100.0,
        errors.fct_error_p99 * 100.0,
        spread.fct_error_mean * 100.0,
    );
}

fn run(scenario: &Scenario, (tier, keys): How) -> Outcome {
    let acceleration = Acceleration { tier, ..scenario.acceleration };
    let scenario = Scenario { acceleration, ..scenario.clone() };
    let options = MemoOptions { keys, check: 0, limit_words: 1 << 24 };
    let (memo, found) = Memo::open(options, None, tier);
    let mut memo = memo.unwrap_or_else(|| panic!("{found:?}"));
    let outcome = simulate_memoised(&scenario, &mut memo, &mut ());
    outcome.unwrap_or_else(|refused| panic!("{refused:?}"))
}

//! The tables of the Wormhole paper, made anew: every embedded scenario under HPCC, DCQCN and TIMELY, accelerated, and
//! plain if that is asked for.
//!
//! `cargo run --release -p wormhole-benches --example paper_table -- [OPTIONS] [SCENARIO]...`
//!
//! Rows are Markdown, each made by a process of its own, whose memory it tells. Without `--plain` nothing is known of
//! errors and of ratios of time; the ratio of events is then that of events executed and skipped, as the kernel counts
//! them. With it, it is that of the plain run's events.

use clap::Parser;
use std::env;
use std::process::{Command, ExitCode};
use std::time::Duration;
use wormhole::cpu::peak_rss_mb;
use wormhole::scenario::Scenario;
use wormhole::scenario_file::embedded;
use wormhole::simulate::{Outcome, simulate, simulate_memoised};
use wormhole::verify::{RunFacts, compare};
use wormhole_kernel::accel::{Acceleration, Tier};

const CCAS: [&str; 3] = ["hpcc", "dcqcn", "timely"];

/// Columns of an accelerated run.
const COLUMNS: &str = "flows | packet-hops | events executed | event ratio | CPU s | wall s | M packet-hops/s | \
                       peak MB | patterns | distinct | hits | records kB";

/// Columns of its comparison with the plain run.
const COLUMNS_WITH_PLAIN: &str = "plain events | event ratio | plain CPU s | CPU ratio | wall ratio | \
                                  FCT error mean | p99 | max | iteration error";

/// Remakes the tables of the Wormhole paper.
#[derive(Parser)]
struct Wanted {
    /// Also simulates every event, and compares.
    #[arg(long)]
    plain: bool,
    /// A variant that all of the scenarios have.
    #[arg(long, value_name = "NAME")]
    variant: Option<String>,
    /// Only this congestion control; of one scenario, the row alone.
    #[arg(long)]
    cca: Option<String>,
    /// Embedded scenarios; all of up to 1,024 GPUs if none is named.
    scenarios: Vec<String>,
}

fn main() -> ExitCode {
    let wanted = Wanted::parse();
    if let (Some(cca), [name]) = (&wanted.cca, &wanted.scenarios[..]) {
        return row(name, cca, &wanted).map_or_else(|code| code, |()| ExitCode::SUCCESS);
    }
    let mut scenarios = wanted.scenarios.clone();
    if scenarios.is_empty() {
        // The larger ones take minutes.
        let all = embedded().map(|scenario| scenario.name.to_owned());
        scenarios = all.filter(|name| !name.starts_with("gpt-1t-")).collect();
    }
    let columns = if wanted.plain { COLUMNS_WITH_PLAIN } else { COLUMNS };
    println!("| scenario | CCA | {columns} |");
    println!("|---|---|{}", "---|".repeat(columns.split('|').count()));
    for name in &scenarios {
        for cca in CCAS.iter().filter(|cca| wanted.cca.as_deref().is_none_or(|only| only == **cca)) {
            if !row_of_its_own(name, cca, &wanted) {
                return ExitCode::FAILURE;
            }
        }
    }
    ExitCode::SUCCESS
}

/// Makes a row in a process of its own, with what else was asked for. Says whether it could.
fn row_of_its_own(name: &str, cca: &str, wanted: &Wanted) -> bool {
    let Ok(program) = env::current_exe() else { return false };
    let plain = wanted.plain.then_some("--plain");
    let variant = wanted.variant.iter().flat_map(|variant| ["--variant", variant]);
    let run = Command::new(program).args(plain).args(variant).args(["--cca", cca, name]).status();
    run.is_ok_and(|status| status.success())
}

fn row(name: &str, cca: &str, wanted: &Wanted) -> Result<(), ExitCode> {
    let mut arguments = vec![name, "--cca", cca];
    arguments.extend(wanted.variant.iter().flat_map(|variant| ["--variant", variant]));
    let (scenario, mut memo) = wormhole::cli::open_run(&arguments)?;
    let refused = |_| ExitCode::FAILURE;
    let accelerated = simulate_memoised(&scenario, &mut memo, &mut ()).map_err(refused)?;
    let plain = if wanted.plain { Some(plain_run(&scenario).map_err(refused)?) } else { None };
    let variant = wanted.variant.as_ref().map_or(String::new(), |variant| format!(" {variant}"));
    let figures = match plain {
        Some(plain) => compared(&plain, &accelerated),
        None => alone(&accelerated),
    };
    println!("| {name}{variant} | {cca} | {} |", figures.join(" | "));
    Ok(())
}

fn alone(run: &Outcome) -> Vec<String> {
    let counts = &run.memo.counts;
    vec![
        run.flows.len().to_string(),
        run.totals.packet_hops.to_string(),
        run.totals.events.to_string(),
        format!("{:.0}", run.event_ratio()),
        format!("{:.2}", run.cpu.as_secs_f64()),
        format!("{:.2}", run.wall.as_secs_f64()),
        format!("{:.0}", run.totals.packet_hops as f64 / 1e6 / run.cpu.as_secs_f64()),
        format!("{:.0}", peak_rss_mb()),
        counts.instances.to_string(),
        counts.distinct.to_string(),
        counts.hits.to_string(),
        format!("{:.1}", run.memo.bytes as f64 / 1e3),
    ]
}

fn plain_run(scenario: &Scenario) -> Result<Outcome, Vec<wormhole::simulate::Refusal>> {
    let acceleration = Acceleration { tier: Tier::Off, ..scenario.acceleration };
    simulate(&Scenario { acceleration, ..scenario.clone() }, &mut ())
}

fn compared(plain: &Outcome, accelerated: &Outcome) -> Vec<String> {
    let e = compare(&RunFacts::of(plain), &RunFacts::of(accelerated)).errors;
    let seconds = |time: Duration| time.as_secs_f64().max(1e-9);
    let percent = |error: f64| format!("{:.4} %", error * 100.0);
    vec![
        plain.totals.events.to_string(),
        format!("{:.0}", plain.totals.events as f64 / accelerated.totals.events.max(1) as f64),
        format!("{:.0}", seconds(plain.cpu)),
        format!("{:.0}", seconds(plain.cpu) / seconds(accelerated.cpu)),
        format!("{:.0}", seconds(plain.wall) / seconds(accelerated.wall)),
        percent(e.fct_error_mean),
        percent(e.fct_error_p99),
        percent(e.fct_error_max),
        percent(e.iteration_error),
    ]
}

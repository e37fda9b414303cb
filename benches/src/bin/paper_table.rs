//! The tables of the Wormhole paper, made anew: every embedded scenario under HPCC, DCQCN and TIMELY, accelerated, and
//! plain if that is asked for.
//!
//! `cargo run --release -p wormhole-benches --bin paper_table -- [--plain] [--variant NAME] [SCENARIO]...`
//!
//! Rows are Markdown. Without `--plain` nothing is known of errors and of ratios of time; the ratio of events is then
//! that of events executed and skipped, as the kernel counts them.

use std::process::ExitCode;
use wormhole::scenario::Scenario;
use wormhole::scenario_file::embedded;
use wormhole::simulate::{Outcome, simulate, simulate_memoised};
use wormhole::verify::{RunFacts, compare};
use wormhole_kernel::accel::{Acceleration, Tier};

const CCAS: [&str; 3] = ["hpcc", "dcqcn", "timely"];

/// What the command line asks for.
#[derive(Default)]
struct Wanted {
    plain: bool,
    variant: Option<String>,
    scenarios: Vec<String>,
}

impl Wanted {
    fn of(arguments: impl Iterator<Item = String>) -> Wanted {
        let mut wanted = Wanted::default();
        let mut arguments = arguments;
        while let Some(argument) = arguments.next() {
            match argument.as_str() {
                "--plain" => wanted.plain = true,
                "--variant" => wanted.variant = arguments.next(),
                _ => wanted.scenarios.push(argument),
            }
        }
        if wanted.scenarios.is_empty() {
            wanted.scenarios = embedded().map(|scenario| scenario.name.to_owned()).collect();
        }
        wanted
    }
}

fn main() -> ExitCode {
    let wanted = Wanted::of(std::env::args().skip(1));
    println!(
        "| scenario | CCA | flows | events executed | event ratio | CPU s | CPU ratio | wall ratio | FCT error mean | p99 | \
         max | iteration error | instances | distinct | hits |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|");
    for name in &wanted.scenarios {
        for cca in CCAS {
            if let Err(code) = row(name, cca, &wanted) {
                return code;
            }
        }
    }
    ExitCode::SUCCESS
}

fn row(name: &str, cca: &str, wanted: &Wanted) -> Result<(), ExitCode> {
    let mut arguments = vec![name, "--cca", cca];
    arguments.extend(wanted.variant.iter().flat_map(|variant| ["--variant", variant]));
    let (scenario, mut memo) = wormhole::cli::open_run(&arguments)?;
    let refused = |_| ExitCode::FAILURE;
    let accelerated = simulate_memoised(&scenario, &mut memo, (), &mut |_| {}).map_err(refused)?;
    let plain = if wanted.plain { Some(plain_run(&scenario).map_err(refused)?) } else { None };
    let variant = wanted.variant.as_ref().map_or(String::new(), |variant| format!(" {variant}"));
    let counts = &accelerated.memo.counts;
    print!("| {name}{variant} | {cca} | {} | {} | ", accelerated.flows.len(), accelerated.totals.events);
    match plain {
        Some(plain) => print_comparison(&plain, &accelerated),
        None => print!("{:.0} | {:.2} | | | | | | ", accelerated.event_ratio(), accelerated.cpu.as_secs_f64()),
    }
    println!("| {} | {} | {} |", counts.instances, counts.distinct, counts.hits);
    Ok(())
}

fn plain_run(scenario: &Scenario) -> Result<Outcome, Vec<wormhole::simulate::Refusal>> {
    let acceleration = Acceleration { tier: Tier::Off, ..scenario.acceleration };
    simulate(&Scenario { acceleration, ..scenario.clone() }, (), &mut |_| {})
}

fn print_comparison(plain: &Outcome, accelerated: &Outcome) {
    let e = compare(&RunFacts::of(plain), &RunFacts::of(accelerated)).errors;
    let ratio = |a: f64, b: f64| a / b.max(1e-9);
    let (events, cpu) = (plain.totals.events as f64, accelerated.cpu.as_secs_f64());
    let percent = |error: f64| format!("{:.4} %", error * 100.0);
    print!(
        "{:.0} | {cpu:.2} | {:.0} | {:.0} | {} | {} | {} | {} ",
        ratio(events, accelerated.totals.events as f64),
        ratio(plain.cpu.as_secs_f64(), cpu),
        ratio(plain.wall.as_secs_f64(), accelerated.wall.as_secs_f64()),
        percent(e.fct_error_mean),
        percent(e.fct_error_p99),
        percent(e.fct_error_max),
        percent(e.iteration_error),
    );
}

//! `report.html`: a run for people, in one file that needs nothing else.
//!
//! Pictures are SVG in the page, and beside each is a table of its figures. There is no script in it. Its size does not
//! grow with the run: flows become distributions, time becomes bins, large tiers of the fabric become boxes.

mod distributions;
mod fabric_map;
mod format;
mod skipped;
mod svg;
mod table;
mod timeline;
mod verification;

use crate::ending;
use crate::input::counted;
use crate::outputs::Summary;
use crate::scenario::Scenario;
use crate::simulate::{Ending, Outcome};
use crate::verify::Report;
use format::{count, large, short, time};
use maud::{DOCTYPE, Markup, PreEscaped, html};
use std::io::{self, Write};
use table::Table;
use wormhole_kernel::NodeKind;

const STYLE: &str = include_str!("style.css");

/// Writes the report of a run that has ended; with `verified`, of the run without acceleration and of what the others
/// have changed.
///
/// # Errors
/// Those of `out`, and those of the file that flows are in.
pub fn write_report(
    out: &mut impl Write,
    scenario: &Scenario,
    outcome: &Outcome,
    summary: &Summary,
    verified: Option<&Report>,
) -> io::Result<()> {
    writeln!(out, "{}", page(scenario, outcome, summary, verified)?.into_string())
}

fn page(scenario: &Scenario, outcome: &Outcome, summary: &Summary, verified: Option<&Report>) -> io::Result<Markup> {
    let title = title(scenario, verified.is_some());
    let distributions = distributions::section(outcome)?;
    Ok(html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                title { (title) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                header {
                    h1 { (title) }
                    p { (fabric(scenario)) }
                    p { (models(summary)) }
                }
                main {
                    (ending(outcome, summary))
                    (headline(outcome, summary))
                    @if let Some(report) = verified { (verification::section(report)) }
                    (timeline::sections(&outcome.jobs))
                    (distributions)
                    (fabric_map::section(scenario, outcome))
                    @if verified.is_none() {
                        (skipped::section(outcome, summary))
                        (unverified(summary))
                    }
                    (all_figures(summary))
                }
                footer { p { "wormhole " (env!("CARGO_PKG_VERSION")) } }
            }
        }
    })
}

/// Jobs by name, as far as there is room; else what is listed.
fn title(scenario: &Scenario, is_verification: bool) -> String {
    let names: Vec<&str> = scenario.jobs.iter().map(|job| job.name.as_str()).collect();
    let what = match names.as_slice() {
        [] => counted(scenario.flows.len(), "listed flow"),
        [one] => (*one).to_owned(),
        [one, other] => format!("{one} and {other}"),
        [first, rest @ ..] => format!("{first} and {} more jobs", rest.len()),
    };
    if is_verification { format!("Verification of {what}") } else { what }
}

fn fabric(scenario: &Scenario) -> String {
    let of = |kind| scenario.nodes.iter().filter(|node| **node == kind).count();
    let nodes = [(NodeKind::Host, "host"), (NodeKind::Switch, "switch"), (NodeKind::NvSwitch, "NVSwitch")];
    let nodes = nodes.into_iter().map(|(kind, name)| (of(kind), name)).filter(|(number, _)| *number > 0);
    let parts: Vec<String> = nodes.chain([(scenario.links.len(), "link")]).map(|(n, name)| counted(n, name)).collect();
    parts.join(", ")
}

fn models(summary: &Summary) -> String {
    let Summary { profile, cca, accel, seed, .. } = summary;
    format!("profile {profile}, congestion control {cca}, acceleration {accel}, seed {seed}")
}

/// How the run ended; why, if it is not done.
fn ending(outcome: &Outcome, summary: &Summary) -> Markup {
    let (_, lines) = ending::describe(outcome);
    let class = if outcome.ending == Ending::Done && lines.is_empty() { "ending good" } else { "ending bad" };
    html! {
        div class=(class) {
            p { "Ending: " strong { (summary.ending) } }
            @for line in &lines { p { (line) } }
        }
    }
}

/// The figures that are asked for first.
fn headline(outcome: &Outcome, summary: &Summary) -> Markup {
    let start = outcome.skips.time.start().min(outcome.end);
    let simulated = outcome.end.since(start).0 as f64 / 1e3;
    let mut figures: Vec<(String, String, String)> = Vec::new();
    let mut figure = |name: &str, value: String, more: String| figures.push((name.to_owned(), value, more));
    if let Some(job) = summary.jobs.iter().max_by(|a, b| a.iteration_ns.total_cmp(&b.iteration_ns)) {
        let exposed =
            format!("{} of it exposed communication", format::percent(job.exposed_ns / job.iteration_ns.max(1.0)));
        figure(if summary.jobs.len() == 1 { "iteration" } else { "longest job" }, time(job.iteration_ns), exposed);
    }
    figure("simulated time", time(simulated), "from the first start to the end".into());
    let given_up = format!("of {}; {} given up", count(summary.flows as u64), count(summary.flows_given_up));
    figure("flows finished", count(summary.flows_finished), given_up);
    figure("mean FCT", time(summary.mean_fct_ns), format!("greatest {}", time(summary.max_fct_ns)));
    figure(
        "packet-hops",
        large(summary.packet_hops as f64),
        format!("{} events executed", large(summary.events_executed as f64)),
    );
    let skipped = format!("{} events skipped", large(summary.events_skipped as f64));
    figure("event ratio", short(summary.event_ratio), skipped);
    let fabric = format!("{} drops, {} time-outs", large(summary.drops as f64), large(summary.timeouts as f64));
    figure("ECN marks", large(summary.ecn_marks as f64), format!("{} pauses, {fabric}", large(summary.pauses as f64)));
    let memory = format!("{} elapsed, {} MB of memory", time(summary.wall_s * 1e9), short(summary.peak_rss_mb));
    figure("processor time", time(summary.cpu_s * 1e9), memory);
    html! {
        dl.headline {
            @for (name, value, more) in &figures {
                div { dt { (name) } dd.value { (value) } dd.more { (more) } }
            }
        }
    }
}

/// That errors were not measured, where there may be some.
fn unverified(summary: &Summary) -> Markup {
    html! {
        section #error {
            h2 { "Error of acceleration" }
            @match summary.accel {
                "off" => p { "None: every event was executed." },
                "exact" => p {
                    "None is expected: what was skipped was proven to repeat. "
                    (count(summary.contested)) " events were put back in an order that was a guess; while there are "
                    "none, "
                    "the run equals one without acceleration."
                },
                _ => p {
                    "Not measured in this run. " code { "wormhole verify" } " with the same arguments runs the "
                    "scenario "
                    "with and without acceleration, and its report has the errors."
                },
            }
        }
    }
}

/// `summary.json`, key by key.
fn all_figures(summary: &Summary) -> Markup {
    let mut table = Table::new("The keys of summary.json", "key").numbers("value");
    // What is made of plain numbers and words has a value.
    if let Ok(serde_json::Value::Object(keys)) = serde_json::to_value(summary) {
        for (key, value) in keys.into_iter().filter(|(_, value)| !value.is_array()) {
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            table.row([key, text]);
        }
    }
    html! { section #figures { h2 { "All figures" } (table.markup()) } }
}

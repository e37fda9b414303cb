//! What `verify` has found: errors of each tier against the run without acceleration.

use super::format::{count, short};
use super::svg::{Axis, Frame, WIDTH, picture, px};
use super::table::Table;
use crate::verify::{Errors, Report, TierReport};
use maud::{Markup, html};

/// An error that is shown: its name, and where it stands.
type Measure = (&'static str, fn(&Errors) -> f64);

const MEASURES: [Measure; 10] = [
    ("FCT, mean", |e| e.fct_error_mean),
    ("FCT, median", |e| e.fct_error_p50),
    ("FCT, 99th percentile", |e| e.fct_error_p99),
    ("FCT, greatest", |e| e.fct_error_max),
    ("FCTs sorted, mean", |e| e.sorted_fct_error_mean),
    ("last completion", |e| e.last_completion_error),
    ("iteration", |e| e.iteration_error),
    ("collectives, mean", |e| e.collective_error_mean),
    ("collectives, greatest", |e| e.collective_error_max),
    ("round trips, NRMSE", |e| e.rtt_nrmse),
];

/// Errors below this are drawn as none: the axis is logarithmic.
const LEAST: f64 = 1e-7;

/// A set of errors: of a tier, or of the ensemble.
struct Series<'r> {
    /// For the heading of a column.
    short: String,
    name: String,
    errors: &'r Errors,
}

impl Series<'_> {
    fn of_tier(tier: &TierReport) -> Series<'_> {
        Series { short: tier.tier.into(), name: format!("tier {}", tier.tier), errors: &tier.errors }
    }
}

/// The section.
pub(super) fn section(report: &Report) -> Markup {
    let mut series: Vec<Series<'_>> = report.tiers.iter().map(Series::of_tier).collect();
    if let Some(ensemble) = &report.ensemble {
        let name = format!("plain, starts ±1 ns: the worst of {} runs", ensemble.runs);
        series.push(Series { short: "starts ±1 ns".into(), name, errors: &ensemble.spread });
    }
    let faults = report.faults();
    html! {
        section #verification {
            h2 { "What acceleration changes" }
            p { (count(report.chosen.flows_compared as u64)) " of " (count(report.flows as u64))
                " flows finish in both runs and are compared with those of the run without acceleration. "
                @if report.chosen.fct_identical {
                    "With " code { (report.chosen.tier) } " all FCTs are the same, bit for bit. "
                }
                "All other sections are about the run without acceleration." }
            @for fault in &faults { p.fault { (fault) } }
            div.beside {
                figure {
                    (dots(&series))
                    ul.legend {
                        @for (number, of) in series.iter().enumerate() {
                            li {
                                svg.swatch viewBox="-7 -7 14 14" aria-hidden="true" { (dot(number, 0.0, 0.0)) }
                                (of.name)
                            }
                        }
                    }
                    figcaption { "Errors relative to the run without acceleration." }
                }
                (errors(&series))
            }
            (work(report))
        }
    }
}

/// A row for each measure, a dot in it for each series.
fn dots(series: &[Series<'_>]) -> Markup {
    const ROW: f64 = 24.0;
    let bottom = 8.0 + ROW * MEASURES.len() as f64;
    let frame = Frame { left: 150.0, right: WIDTH - 24.0, top: 8.0, bottom };
    let x = Axis::log((LEAST, 1.0), (frame.left + 60.0, frame.right));
    let at = |error: f64| if error > LEAST { x.at(error) } else { frame.left + 14.0 };
    let label = |error: f64| match error.log10().round().abs() as usize {
        0 => "1".to_owned(),
        power => format!("10⁻{}", ["⁰", "¹", "²", "³", "⁴", "⁵", "⁶", "⁷", "⁸", "⁹"][power.min(9)]),
    };
    let names: Vec<&str> = series.iter().map(|of| of.name.as_str()).collect();
    let description = format!(
        "For each of {} kinds of error a row with a dot for each of: {}. The axis is logarithmic; dots at its left end \
         mean no error. The table beside it has the figures.",
        MEASURES.len(),
        names.join(", ")
    );
    picture(
        "errors",
        "Errors by tier",
        &description,
        bottom + 46.0,
        &html! {
            (frame.bottom_axis(&x, "error, relative", label))
            text.tick x=(px(frame.left + 14.0)) y=(px(bottom + 16.0)) text-anchor="middle" { "none" }
            @for (row, (name, measure)) in MEASURES.iter().enumerate() {
                @let y = 8.0 + ROW * (row as f64 + 0.5);
                line.grid x1=(px(frame.left)) x2=(px(frame.right)) y1=(px(y)) y2=(px(y)) {}
                text.tick x=(px(frame.left - 8.0)) y=(px(y + 4.0)) text-anchor="end" { (name) }
                @for (number, of) in series.iter().enumerate() { (dot(number, at(measure(of.errors)), y)) }
            }
        },
    )
}

/// The mark of a series: another form and another colour for each.
fn dot(number: usize, x: f64, y: f64) -> Markup {
    let (class, path) = match number {
        0 => ("c0", format!("M{} {}h10v10h-10z", px(x - 5.0), px(y - 5.0))),
        1 => ("c2", format!("M{} {}l7 12h-14z", px(x), px(y - 7.0))),
        _ => ("c4", format!("M{} {}l7 7l-7 7l-7 -7z", px(x), px(y - 7.0))),
    };
    html! { path class=(class) d=(path) {} }
}

fn errors(series: &[Series<'_>]) -> Markup {
    let mut table = Table::new("Errors in %", "error");
    for of in series {
        table = table.numbers(of.short.clone());
    }
    for (name, measure) in MEASURES {
        let cells = series.iter().map(|of| format!("{:.4}", measure(of.errors) * 100.0));
        table.row([name.to_owned()].into_iter().chain(cells));
    }
    table.markup()
}

/// What each tier saves.
fn work(report: &Report) -> Markup {
    let mut table = Table::new("Work of the runs", "run")
        .numbers("events executed")
        .numbers("events skipped")
        .numbers("event ratio")
        .numbers("memo hits")
        .numbers("processor time, ratio")
        .numbers("elapsed time, ratio")
        .words("FCTs identical");
    let none = || "–".to_owned();
    table.row(["plain".into(), count(report.events_plain), none(), none(), none(), none(), none(), none()]);
    for tier in &report.tiers {
        table.row([
            tier.tier.to_owned(),
            count(tier.events_executed),
            count(tier.events_skipped),
            short(tier.event_ratio),
            count(tier.memo_hits),
            short(tier.cpu_ratio),
            short(tier.wall_ratio),
            if tier.fct_identical { "yes".into() } else { "no".into() },
        ]);
    }
    table.markup()
}

//! What acceleration and memoisation have saved.

use super::format::{Unit, count, large, percent, short, time};
use super::svg::{Axis, Frame, WIDTH, block, legend, line, picture, px};
use super::table::Table;
use crate::outputs::{SkipLog, Summary};
use crate::simulate::Outcome;
use crate::time_bins::TimeBins;
use maud::{Markup, html};
use wormhole_kernel::Span;
use wormhole_kernel::accel::SkippedBy;

/// The colours of [`SkipLog::KINDS`].
const CLASSES: [&str; 3] = ["c0", "c4", "c2"];

fn name(by: SkippedBy) -> &'static str {
    match by {
        SkippedBy::Exact => "exact: proven to repeat",
        SkippedBy::Bounded => "bounded: steady, within an error bound",
        SkippedBy::Memo => "memo: known from a record or a like partition",
    }
}

/// The section.
pub(super) fn section(outcome: &Outcome, summary: &Summary) -> Markup {
    let is_skipped = !outcome.skips.time.bins().is_empty();
    html! {
        section #skipped {
            h2 { "What was skipped" }
            p { "Acceleration takes partitions, flows and ports that nothing else influences for now, out of the "
                "simulation: "
                "this run may skip " code { (summary.accel) } ". Of its "
                (large((summary.events_executed + summary.events_skipped) as f64)) " events "
                (large(summary.events_executed as f64)) " were executed." }
            @if is_skipped {
                div.beside {
                    figure {
                        (partitions(outcome))
                        (legend(CLASSES.map(String::from).into_iter().zip(SkipLog::KINDS.map(name))))
                        figcaption { "Partitions that were not simulated, over the run, by why not." }
                    }
                    div { (times(&outcome.skips.time)) (acceleration(summary)) }
                }
            } @else {
                p { "No stretch was skipped." }
                (acceleration(summary))
            }
            div.beside {
                figure { (work(summary)) figcaption { "Events, and look-ups of partitions in the memo." } }
                (memo(summary))
            }
        }
    }
}

/// Partitions at rest over time, stacked by why they rest.
fn partitions(outcome: &Outcome) -> Markup {
    const HEIGHT: f64 = 260.0;
    let frame = Frame { left: 64.0, right: WIDTH - 24.0, top: 14.0, bottom: HEIGHT - 48.0 };
    let bins = &outcome.skips.time;
    let width = bins.width().0 as f64;
    let stacked: Vec<[f64; 3]> = bins.bins().iter().map(|bin| stack(bin, width)).collect();
    let most = stacked.iter().map(|heights| heights[2]).fold(0.0, f64::max);
    let end = outcome.end.since(bins.start().min(outcome.end)).0 as f64 / 1e3;
    let unit = Unit::of_time(end);
    let x = Axis::linear((0.0, end), frame.across());
    let y = Axis::linear((0.0, most.max(1.0)), frame.up());
    let description = format!(
        "Partitions that are skipped at once, over {} from the first start to the end, stacked by tier; at most {}.",
        time(end),
        short(most)
    );
    let area = |kind: usize| {
        let steps = stacked.iter().enumerate().flat_map(|(bin, heights)| {
            let height = y.at(heights[kind]);
            [bin, bin + 1].map(|edge| (x.at(edge as f64 * width / 1e3), height))
        });
        let last = x.at(stacked.len() as f64 * width / 1e3);
        line(std::iter::once((frame.left, frame.bottom)).chain(steps).chain([(last, frame.bottom)])) + "z"
    };
    picture(
        "skipped-over-time",
        "Partitions skipped",
        &description,
        HEIGHT,
        &html! {
            (frame.bottom_axis(&x, &format!("time since the first start, {}", unit.name), |ns| unit.short(ns)))
            (frame.left_axis(&y, "partitions", large))
            // The whole stack first; what lies lower covers it.
            @for kind in (0..3).rev() { path class=(CLASSES[kind]) d=(area(kind)) {} }
        },
    )
}

/// Partitions of a bin, each kind on top of those before.
fn stack(bin: &[Span; 3], width: f64) -> [f64; 3] {
    let mut height = 0.0;
    bin.map(|time| {
        height += time.0 as f64 / width;
        height
    })
}

fn times(bins: &TimeBins<3>) -> Markup {
    let sums: [u64; 3] = std::array::from_fn(|kind| bins.bins().iter().map(|bin| bin[kind].0).sum());
    let all = sums.iter().sum::<u64>() as f64 / 1e3;
    let unit = Unit::of_time(all);
    let mut table = Table::new(format!("Time skipped, summed over partitions, in {}", unit.name), "why")
        .numbers("time")
        .numbers("share");
    for (by, ps) in SkipLog::KINDS.into_iter().zip(sums) {
        let ns = ps as f64 / 1e3;
        table.row([name(by).to_owned(), unit.aligned(ns), percent(ns / all.max(1e-3))]);
    }
    table.markup()
}

/// Bars of events, and of memo look-ups.
fn work(summary: &Summary) -> Markup {
    let events = [("executed", summary.events_executed as f64, "c1"), ("skipped", summary.events_skipped as f64, "c0")];
    let memo = [
        ("hits", summary.memo_hits as f64, "c0"),
        ("followers", summary.memo_followers as f64, "c4"),
        ("misses", summary.memo_misses as f64, "c1"),
        ("refused", summary.memo_refused as f64, "c3"),
        ("not kept", summary.memo_unkept as f64, "c3"),
    ];
    let height = 24.0 * (events.len() + memo.len()) as f64 + 62.0;
    let description = format!(
        "Bars: {} events executed, {} skipped; {} memo hits, {} misses. The tables beside have all figures.",
        large(events[0].1),
        large(events[1].1),
        large(memo[0].1),
        large(memo[2].1)
    );
    picture(
        "work",
        "Events and memo look-ups",
        &description,
        height,
        &html! {
            (bars("events", 18.0, &events))
            (bars("memo look-ups", 24.0 * events.len() as f64 + 48.0, &memo))
        },
    )
}

/// A heading, and bars below it that share a scale.
fn bars(heading: &str, top: f64, bars: &[(&str, f64, &str)]) -> Markup {
    let most = bars.iter().map(|(_, value, _)| *value).fold(1.0, f64::max);
    let x = Axis::linear((0.0, most), (104.0, WIDTH - 88.0));
    html! {
        text.tier x="0" y=(px(top)) { (heading) }
        @for (row, (name, value, class)) in bars.iter().enumerate() {
            @let y = top + 10.0 + 24.0 * row as f64;
            @let end = x.at(*value);
            text.tick x="96" y=(px(y + 12.0)) text-anchor="end" { (name) }
            path class=(class) d=({
                let mut path = String::new();
                block(&mut path, 104.0, y, end - 104.0, 16.0);
                path
            }) {}
            text.tick x=(px(end + 6.0)) y=(px(y + 12.0)) { (large(*value)) }
        }
    }
}

fn acceleration(summary: &Summary) -> Markup {
    let mut table = Table::new("Acceleration", "what").numbers("value");
    let rows = [
        ("events executed", count(summary.events_executed)),
        ("events skipped", count(summary.events_skipped)),
        ("event ratio", short(summary.event_ratio)),
        ("most partitions at once", count(summary.partitions_max.into())),
        ("partitions woken", count(summary.wakes)),
        ("of these before their time", count(summary.skip_backs)),
        ("woken by a switch's buffer or PFC", count(summary.buffer_couplings)),
        ("events whose order was a guess", count(summary.contested)),
    ];
    rows.into_iter().for_each(|(what, value)| table.row([what.to_owned(), value]));
    table.markup()
}

fn memo(summary: &Summary) -> Markup {
    let mut table = Table::new("Memo", "what").numbers("value");
    let rows = [
        ("hits", count(summary.memo_hits)),
        ("misses", count(summary.memo_misses)),
        ("followers of a like partition", count(summary.memo_followers)),
        ("records refused", count(summary.memo_refused)),
        ("stretches not kept", count(summary.memo_unkept)),
        ("hits checked", count(summary.memo_checked)),
        ("patterns met", count(summary.pattern_instances)),
        ("of these new", count(summary.distinct_patterns)),
        ("records in memory, bytes", count(summary.memo_bytes)),
    ];
    rows.into_iter().for_each(|(what, value)| table.row([what.to_owned(), value]));
    table.markup()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_stacked_in_partitions() {
        assert_eq!(stack(&[Span(500), Span(0), Span(2_000)], 1_000.0), [0.5, 0.5, 2.5]);
    }
}

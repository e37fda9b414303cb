//! How long flows took, and how much longer than they had to: distributions by flow size.

use super::format::{Unit, count, percent, short, time};
use super::svg::{Axis, Frame, WIDTH, line, line_legend, picture};
use super::table::Table;
use crate::simulate::Outcome;
use maud::{Markup, html};
use std::collections::BTreeMap;
use wormhole_kernel::FlowEnd;

/// Most classes of sizes: as many as there are line styles.
const MOST_CLASSES: usize = 6;
/// Points of a curve, at most one more.
const POINTS: usize = 200;

/// Flows of about one size, and their FCTs in nanoseconds and slowdowns, each in order.
struct Class {
    name: String,
    fcts: Vec<f64>,
    slowdowns: Vec<f64>,
}

/// The section; nothing if no flow has finished.
pub(super) fn section(outcome: &Outcome) -> Markup {
    let classes = classes(outcome);
    if classes.is_empty() {
        return html! {};
    }
    let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
    html! {
        section #flows {
            h2 { "Flows" }
            p { "A flow completion time (FCT) runs from a flow's start to its last acknowledgement. The slowdown is "
                "the FCT "
                "over the least time its path allows: the flow alone, at line rate." }
            div.beside {
                figure {
                    (curves("fct-cdf", "Flow completion times", "FCT", &classes, |class| &class.fcts, time))
                    (line_legend(&names))
                    figcaption { "Share of flows that took no longer, by size of the flow." }
                }
                (fct_table(&classes))
            }
            div.beside {
                figure {
                    (curves("slowdown-cdf", "Slowdowns", "slowdown", &classes, |class| &class.slowdowns, short))
                    (line_legend(&names))
                    figcaption { "Share of flows that were slowed down no more." }
                }
                (slowdown_table(&classes))
            }
        }
    }
}

/// Finished flows by size: those of each size if there are few sizes, else by decades.
fn classes(outcome: &Outcome) -> Vec<Class> {
    let finished = || outcome.flows.iter().filter(|flow| flow.completion.end() == FlowEnd::Done);
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    finished().for_each(|flow| *sizes.entry(flow.completion.bytes).or_default() += 1);
    let class_of = grouping(&sizes.keys().copied().collect::<Vec<_>>());
    let mut classes: BTreeMap<u64, Class> = BTreeMap::new();
    for flow in finished() {
        let (least, name) = class_of(flow.completion.bytes);
        let class = classes.entry(least).or_insert_with(|| Class { name, fcts: Vec::new(), slowdowns: Vec::new() });
        class.fcts.push(flow.completion.fct.0 as f64 / 1e3);
        class.slowdowns.push(flow.completion.fct.0 as f64 / flow.ideal.0.max(1) as f64);
    }
    let mut classes: Vec<Class> = classes.into_values().collect();
    for class in &mut classes {
        class.fcts.sort_by(f64::total_cmp);
        class.slowdowns.sort_by(f64::total_cmp);
    }
    classes
}

/// Gives for a size its class: a number by which classes are in order, and a name. `sizes` are in order.
fn grouping(sizes: &[u64]) -> impl Fn(u64) -> (u64, String) + use<> {
    let few = sizes.len() <= MOST_CLASSES;
    let decade = |bytes: u64| bytes.max(1).ilog10();
    let (first, last) = (sizes.first().map_or(0, |s| decade(*s)), sizes.last().map_or(0, |s| decade(*s)));
    let decades = (last - first + 1).div_ceil(MOST_CLASSES as u32);
    move |bytes| {
        let unit = |bytes: u64| super::format::bytes(bytes as f64);
        if few {
            return (bytes, format!("{}\u{202f}B", count(bytes)));
        }
        let from = first + (decade(bytes) - first) / decades * decades;
        (from.into(), format!("{} to {}", unit(10u64.pow(from)), unit(10u64.saturating_pow(from + decades))))
    }
}

/// Cumulative distributions, a curve for each class.
fn curves(
    id: &str,
    name: &str,
    of: &str,
    classes: &[Class],
    values: impl Fn(&Class) -> &Vec<f64>,
    label: impl Fn(f64) -> String,
) -> Markup {
    const HEIGHT: f64 = 320.0;
    let frame = Frame { left: 64.0, right: WIDTH - 24.0, top: 14.0, bottom: HEIGHT - 48.0 };
    let all = || classes.iter().flat_map(|class| [values(class)[0], values(class)[values(class).len() - 1]]);
    let (least, most) = (all().fold(f64::INFINITY, f64::min), all().fold(0.0, f64::max));
    let x = Axis::log((least, most), frame.across());
    let y = Axis::linear((0.0, 1.0), frame.up());
    let description = format!(
        "Cumulative distribution of the {of} of finished flows, from {} to {}; a curve for each of {} sizes. The table \
         beside it has its percentiles.",
        label(least),
        label(most),
        classes.len()
    );
    picture(
        id,
        name,
        &description,
        HEIGHT,
        &html! {
            (frame.bottom_axis(&x, of, &label))
            (frame.left_axis(&y, "share of flows", percent))
            @for (number, class) in classes.iter().enumerate() {
                path class=(format!("line l{number}")) d=(curve(values(class), &x, &y)) {}
            }
        },
    )
}

/// The steps of a cumulative distribution of values in order; of many values, only some.
fn curve(values: &[f64], x: &Axis, y: &Axis) -> String {
    let (count, steps) = (values.len(), values.len().min(POINTS));
    let points = (1..=steps).flat_map(|step| {
        let (before, upto) = (count * (step - 1) / steps, count * step / steps);
        let at = x.at(values[upto - 1]);
        [before, upto].map(|rank| (at, y.at(rank as f64 / count as f64)))
    });
    line(points)
}

/// By nearest rank: the least value that at least this share does not exceed.
fn percentile(values: &[f64], share: f64) -> f64 {
    values[((values.len() as f64 * share).ceil() as usize).clamp(1, values.len()) - 1]
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

/// Percentiles that are shown.
const SHARES: [(&str, f64); 6] =
    [("least", 0.0), ("median", 0.5), ("90 %", 0.9), ("99 %", 0.99), ("99.9 %", 0.999), ("greatest", 1.0)];

fn fct_table(classes: &[Class]) -> Markup {
    let unit = Unit::of_time(classes.iter().map(|class| percentile(&class.fcts, 0.5)).fold(0.0, f64::max));
    let caption = format!("FCT in {}, by size of the flow", unit.name);
    distribution(caption, classes, |class| &class.fcts, |value| unit.aligned(value))
}

fn slowdown_table(classes: &[Class]) -> Markup {
    let caption = "Slowdown, by size of the flow".to_owned();
    distribution(caption, classes, |class| &class.slowdowns, |value| format!("{value:.3}"))
}

/// A column for each class.
fn distribution(
    caption: String,
    classes: &[Class],
    values: impl Fn(&Class) -> &Vec<f64>,
    cell: impl Fn(f64) -> String,
) -> Markup {
    let mut table = Table::new(caption, "size");
    for class in classes {
        table = table.numbers(class.name.clone());
    }
    let mut row = |heading: &str, of: &dyn Fn(&[f64]) -> String| {
        let cells = classes.iter().map(|class| of(values(class)));
        table.row([heading.to_owned()].into_iter().chain(cells));
    };
    row("flows", &|values| count(values.len() as u64));
    row("mean", &|values| cell(mean(values)));
    for (heading, share) in SHARES {
        row(heading, &|values| cell(percentile(values, share)));
    }
    table.markup()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_sizes_are_told_apart_and_many_are_grouped() {
        let class = grouping(&[64_000, 1_000_000]);
        assert_eq!((class(64_000).1, class(1_000_000).0), ("64\u{202f}000\u{202f}B".into(), 1_000_000));
        let sizes: Vec<u64> = (1..=100).map(|k| k * 1_000).collect();
        let class = grouping(&sizes);
        assert_eq!(class(9_999), (3, "1\u{202f}kB to 10\u{202f}kB".into()));
        assert_eq!(class(100_000).1, "100\u{202f}kB to 1\u{202f}MB");
        let class = grouping(&(0..12).map(|power| 10u64.pow(power)).collect::<Vec<_>>());
        let of_all: std::collections::BTreeSet<u64> = (0..12).map(|power| class(10u64.pow(power)).0).collect();
        assert_eq!(of_all.len(), MOST_CLASSES);
    }

    #[test]
    fn percentiles_are_by_nearest_rank() {
        let values: Vec<f64> = (1..=10).map(f64::from).collect();
        assert_eq!([0.0, 0.5, 0.9, 0.99, 1.0].map(|share| percentile(&values, share)), [1.0, 5.0, 9.0, 10.0, 10.0]);
    }

    #[test]
    fn a_curve_reaches_from_none_to_all_in_few_points() {
        let (x, y) = (Axis::log((1.0, 1e6), (0.0, 600.0)), Axis::linear((0.0, 1.0), (100.0, 0.0)));
        let values: Vec<f64> = (1..=100_000).map(f64::from).collect();
        let path = curve(&values, &x, &y);
        assert!(path.matches(['M', 'L']).count() == 2 * POINTS && path.ends_with(" 0"), "{path}");
        assert_eq!(curve(&[1.0], &x, &y), "M0 100L0 0");
    }
}

//! How long flows took, and how much longer than they had to: distributions by flow size.

use super::format::{Unit, count, percent, short, time};
use super::svg::{Axis, Frame, WIDTH, line, line_legend, picture};
use super::table::Table;
use crate::simulate::{FlowRecord, Outcome};
use maud::{Markup, html};
use std::collections::BTreeMap;
use std::io;
use wormhole_kernel::FlowEnd;

/// Most classes of sizes: as many as there are line styles.
const MOST_CLASSES: usize = 6;
/// Points of a curve, at most one more.
const POINTS: usize = 200;

/// Flows of about one size, and their FCTs in nanoseconds and slowdowns.
struct Class {
    name: String,
    fcts: Distribution,
    slowdowns: Distribution,
}

/// What is shown of values: there may be millions of them, and they are in memory only while this is found out.
struct Distribution {
    count: usize,
    mean: f64,
    /// The percentiles of [`SHARES`].
    percentiles: [f64; SHARES.len()],
    /// Steps of the cumulative distribution: the share before and after, and a value.
    steps: Vec<([f64; 2], f64)>,
}

impl Distribution {
    /// Of at least one value.
    fn of(mut values: Vec<f64>) -> Distribution {
        values.sort_by(f64::total_cmp);
        let (count, steps) = (values.len(), values.len().min(POINTS));
        let step = |step| {
            let ranks = [count * (step - 1) / steps, count * step / steps];
            (ranks.map(|rank| rank as f64 / count as f64), values[ranks[1] - 1])
        };
        Distribution {
            count,
            mean: mean(&values),
            percentiles: SHARES.map(|(_, share)| percentile(&values, share)),
            steps: (1..=steps).map(step).collect(),
        }
    }

    fn least(&self) -> f64 {
        self.percentiles[0]
    }

    fn median(&self) -> f64 {
        self.percentiles[1]
    }

    fn greatest(&self) -> f64 {
        self.percentiles[SHARES.len() - 1]
    }
}

/// The section; nothing if no flow has finished.
///
/// # Errors
/// Those of the file that flows are in.
pub(super) fn section(outcome: &Outcome) -> io::Result<Markup> {
    let classes = classes(outcome)?;
    Ok(if classes.is_empty() {
        html! {}
    } else {
        shown(&classes)
    })
}

fn shown(classes: &[Class]) -> Markup {
    let names: Vec<String> = classes.iter().map(|class| class.name.clone()).collect();
    html! {
        section #flows {
            h2 { "Flows" }
            p { "A flow completion time (FCT) runs from a flow's start to its last acknowledgement. The slowdown is "
                "the FCT "
                "over the least time its path allows: the flow alone, at line rate." }
            div.beside {
                figure {
                    (curves("fct-cdf", "Flow completion times", "FCT", classes, |class| &class.fcts, time))
                    (line_legend(&names))
                    figcaption { "Share of flows that took no longer, by size of the flow." }
                }
                (fct_table(classes))
            }
            div.beside {
                figure {
                    (curves("slowdown-cdf", "Slowdowns", "slowdown", classes, |class| &class.slowdowns, short))
                    (line_legend(&names))
                    figcaption { "Share of flows that were slowed down no more." }
                }
                (slowdown_table(classes))
            }
        }
    }
}

/// Finished flows by size: those of each size if there are few sizes, else by decades.
fn classes(outcome: &Outcome) -> io::Result<Vec<Class>> {
    let mut sizes: BTreeMap<u64, usize> = BTreeMap::new();
    each_finished(outcome, |flow| *sizes.entry(flow.completion.bytes).or_default() += 1)?;
    let class_of = grouping(&sizes.keys().copied().collect::<Vec<_>>());
    let distributions = |value: fn(&FlowRecord) -> f64| -> io::Result<Vec<(String, Distribution)>> {
        let mut classes: BTreeMap<u64, (String, Vec<f64>)> = BTreeMap::new();
        each_finished(outcome, |flow| {
            let (least, name) = class_of(flow.completion.bytes);
            classes.entry(least).or_insert_with(|| (name, Vec::new())).1.push(value(flow));
        })?;
        Ok(classes.into_values().map(|(name, values)| (name, Distribution::of(values))).collect())
    };
    let fcts = distributions(|flow| flow.completion.fct.0 as f64 / 1e3)?;
    let slowdowns = distributions(|flow| flow.completion.fct.0 as f64 / flow.ideal.0.max(1) as f64)?;
    let class = |((name, fcts), (_, slowdowns))| Class { name, fcts, slowdowns };
    Ok(fcts.into_iter().zip(slowdowns).map(class).collect())
}

fn each_finished(outcome: &Outcome, mut visit: impl FnMut(&FlowRecord)) -> io::Result<()> {
    for flow in outcome.flows.iter() {
        let flow = flow?;
        if flow.completion.end() == FlowEnd::Done {
            visit(&flow);
        }
    }
    Ok(())
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
    values: impl Fn(&Class) -> &Distribution,
    label: impl Fn(f64) -> String,
) -> Markup {
    const HEIGHT: f64 = 320.0;
    let frame = Frame { left: 64.0, right: WIDTH - 24.0, top: 14.0, bottom: HEIGHT - 48.0 };
    let all = || classes.iter().map(&values);
    let least = all().map(Distribution::least).fold(f64::INFINITY, f64::min);
    let most = all().map(Distribution::greatest).fold(0.0, f64::max);
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

/// The steps of a cumulative distribution.
fn curve(values: &Distribution, x: &Axis, y: &Axis) -> String {
    line(values.steps.iter().flat_map(|(shares, value)| shares.map(|share| (x.at(*value), y.at(share)))))
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
    let unit = Unit::of_time(classes.iter().map(|class| class.fcts.median()).fold(0.0, f64::max));
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
    values: impl Fn(&Class) -> &Distribution,
    cell: impl Fn(f64) -> String,
) -> Markup {
    let mut table = Table::new(caption, "size");
    for class in classes {
        table = table.numbers(class.name.clone());
    }
    let mut row = |heading: &str, of: &dyn Fn(&Distribution) -> String| {
        let cells = classes.iter().map(|class| of(values(class)));
        table.row([heading.to_owned()].into_iter().chain(cells));
    };
    row("flows", &|values| count(values.count as u64));
    row("mean", &|values| cell(values.mean));
    for (place, (heading, _)) in SHARES.iter().enumerate() {
        row(heading, &|values| cell(values.percentiles[place]));
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
        let values = Distribution::of((1..=100_000).rev().map(f64::from).collect());
        let path = curve(&values, &x, &y);
        assert!(path.matches(['M', 'L']).count() == 2 * POINTS && path.ends_with(" 0"), "{path}");
        assert_eq!(curve(&Distribution::of(vec![1.0]), &x, &y), "M0 100L0 0");
    }
}

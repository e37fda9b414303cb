//! Jobs: what each rank did when, and the collectives.

use super::format::{Unit, bytes, count, percent_aligned, time};
use super::svg::{Axis, Frame, WIDTH, block, legend, picture, px};
use super::table::Table;
use crate::outputs::JobSummary;
use crate::workload::activity::{Course, Doing};
use crate::workload::report::{CollectiveReport, JobReport, collectives_by_kind};
use maud::{Markup, html};
use wormhole_kernel::Span;

/// The colours of [`Doing::ALL`].
const CLASSES: [&str; 4] = ["c0", "c1", "c2", "none"];

/// What the table and the legend call them.
const NAMES: [&str; 4] =
    ["only computing", "computing, messages under way: overlapped", "only messages: exposed", "neither: idle"];

/// A section for each job.
pub(super) fn sections(jobs: &[JobReport]) -> Markup {
    html! {
        @for (number, job) in jobs.iter().enumerate() { (section(number, job)) }
    }
}

fn section(number: usize, job: &JobReport) -> Markup {
    let summary = JobSummary::new(job);
    html! {
        section id=(format!("job-{number}")) {
            h2 { "Job " (job.name) }
            p { (job.description) ". From its start to its end it took " strong { (time(summary.iteration_ns)) } "." }
            div.beside {
                @if !job.courses.is_empty() {
                    figure {
                        (rows(number, job))
                        (legend(CLASSES.map(String::from).into_iter().zip(NAMES)))
                        figcaption {
                            "What ranks do when. "
                            @if job.courses.len() < job.ranks.len() {
                                (job.courses.len()) " of " (count(job.ranks.len() as u64))
                                " ranks are drawn, at even distances. "
                            }
                            "Where a rank does several things within " (time(width(job).0 as f64 / 1e3))
                            ", heights are shares of it."
                        }
                    }
                }
                (ranks(job, &summary))
            }
            (collectives(job))
        }
    }
}

fn width(job: &JobReport) -> Span {
    job.courses.iter().map(|(_, course)| course.width()).max().unwrap_or(Span::ZERO)
}

/// A row for each rank.
fn rows(number: usize, job: &JobReport) -> Markup {
    let count = job.courses.len();
    let row = (400.0 / count as f64).clamp(8.0, 22.0);
    let labelled = (12.0 / row).ceil() as usize;
    let bottom = 8.0 + row * count as f64;
    let frame = Frame { left: 64.0, right: WIDTH - 24.0, top: 8.0, bottom };
    let unit = Unit::of_time(job.time().0 as f64 / 1e3);
    let x = Axis::linear((0.0, job.time().0 as f64 / 1e3), frame.across());
    let description = format!(
        "A row for each of {count} ranks over the {} of the job: stretches in which the rank computes, computes while \
         messages are under way, only communicates, or is idle. The table beside it has the sums.",
        time(job.time().0 as f64 / 1e3)
    );
    picture(
        &format!("timeline-{number}"),
        &format!("Timeline of the ranks of {}", job.name),
        &description,
        bottom + 46.0,
        &html! {
            (frame.bottom_axis(&x, &format!("time since the job's start, {}", unit.name), |ns| unit.short(ns)))
            @for (place, (rank, course)) in job.courses.iter().enumerate() {
                @let top = frame.top + row * place as f64 + 0.5;
                @if place % labelled == 0 {
                    text.tick x=(px(frame.left - 8.0)) y=(px(top + row / 2.0 + 3.5)) text-anchor="end" { (rank) }
                }
                g.crisp {
                    rect.none x=(px(frame.left)) y=(px(top)) width=(px(frame.right - frame.left))
                        height=(px(row - 1.0)) {}
                    @for (class, path) in CLASSES.iter().zip(paths(course, &x, top, row - 1.0)) {
                        @if !path.is_empty() && *class != "none" { path class=(class) d=(path) {} }
                    }
                }
            }
            text.name transform=(format!("translate(14 {}) rotate(-90)", px((frame.top + bottom) / 2.0)))
                text-anchor="middle" { "rank" }
        },
    )
}

/// Path data of a row, for each of [`Doing::ALL`]. Equal neighbours become one block.
fn paths(course: &Course, x: &Axis, top: f64, height: f64) -> [String; 4] {
    let mut paths: [String; 4] = Default::default();
    let (bins, width) = (course.bins(), course.width().0 as f64 / 1e3);
    let mut from = 0;
    while from < bins.len() {
        let shares = shares(&bins[from]);
        let mut to = from + 1;
        while to < bins.len() && self::shares(&bins[to]) == shares {
            to += 1;
        }
        let (left, right) = (x.at(from as f64 * width), x.at(to as f64 * width));
        let mut bottom = top + height;
        for (path, share) in paths.iter_mut().zip(shares) {
            if share > 0 {
                let part = height * f64::from(share) / f64::from(STEPS);
                bottom -= part;
                block(path, left, bottom, right - left, part);
            }
        }
        from = to;
    }
    paths
}

/// Steps of a share's height.
const STEPS: u8 = 24;

/// Shares of a bin in whole steps; what is idle takes the rest.
fn shares(bin: &[Span; 4]) -> [u8; 4] {
    let sum: u64 = bin.iter().map(|time| time.0).sum();
    bin.map(|time| (time.0 as f64 / sum.max(1) as f64 * f64::from(STEPS)).round() as u8)
}

/// What ranks have done with their time: the mean, and each rank that is drawn.
fn ranks(job: &JobReport, summary: &JobSummary) -> Markup {
    let unit = Unit::of_time(summary.iteration_ns);
    let mut table = Table::new(format!("What ranks did with their time, in {}", unit.name), "rank");
    for doing in Doing::ALL {
        table = table.numbers(doing.name());
    }
    table = table.numbers("exposed, %");
    let of = |times: [f64; 4]| {
        let share = times[2] / times.iter().sum::<f64>().max(1.0);
        times.map(|ns| unit.aligned(ns)).into_iter().chain([percent_aligned(share)])
    };
    let means = [summary.computing_ns, summary.overlapped_ns, summary.exposed_ns, summary.idle_ns];
    table.row([format!("mean of {}", job.ranks.len())].into_iter().chain(of(means)));
    for (rank, _) in &job.courses {
        let activity = &job.ranks[*rank as usize];
        let times = Doing::ALL.map(|doing| activity.time(doing).0 as f64 / 1e3);
        table.row([rank.to_string()].into_iter().chain(of(times)));
    }
    table.markup()
}

/// Collectives, those of one kind, size and number of members in a row.
fn collectives(job: &JobReport) -> Markup {
    let groups = collectives_by_kind(job);
    let longest = job.collectives.iter().map(|c| c.time.0 as f64 / 1e3).fold(0.0, f64::max);
    let unit = Unit::of_time(longest);
    let mut table = Table::new(format!("Collectives: times in {}, bandwidths in GB/s", unit.name), "collective")
        .numbers("size")
        .numbers("ranks")
        .numbers("count")
        .numbers("time, mean")
        .numbers("longest")
        .numbers("algbw")
        .numbers("busbw");
    for ((kind, size, members), of_kind) in &groups {
        let mean = |value: &dyn Fn(&CollectiveReport) -> f64| {
            of_kind.iter().map(|c| value(c)).sum::<f64>() / of_kind.len().max(1) as f64
        };
        let ns = |c: &CollectiveReport| c.time.0 as f64 / 1e3;
        table.row([
            kind.name().to_owned(),
            bytes(*size as f64),
            count(u64::from(*members)),
            count(of_kind.len() as u64),
            unit.aligned(mean(&ns)),
            unit.aligned(of_kind.iter().map(|c| ns(c)).fold(0.0, f64::max)),
            format!("{:.3}", mean(&|c| c.algorithm_bandwidth())),
            format!("{:.3}", mean(&|c| c.bus_bandwidth())),
        ]);
    }
    html! { @if !groups.is_empty() { (table.markup()) } }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::SimTime;

    #[test]
    fn equal_neighbours_become_one_block_and_shares_are_stacked() {
        let mut course = Course::from(SimTime::ZERO);
        // Three bins of 1 ns of computing, then one that is half of it and half exposed.
        course.add(0, SimTime(0), SimTime(3_500));
        course.add(2, SimTime(3_500), SimTime(4_000));
        let x = Axis::linear((0.0, 4.0), (0.0, 400.0));
        let [computing, overlapped, exposed, idle] = paths(&course, &x, 0.0, 10.0);
        assert_eq!(computing, "M0 0h300v10H0zM300 5h100v5H300z");
        assert_eq!((exposed.as_str(), overlapped.len() + idle.len()), ("M300 0h100v5H300z", 0));
    }
}

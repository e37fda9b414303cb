//! Results for people.

use crate::input::counted;
use crate::outputs::{JobSummary, Summary};
use crate::scenario::tier_name;
use crate::simulate::Outcome;
use crate::workload::report::{CollectiveReport, JobReport, collectives_by_kind};
use wormhole_kernel::accel::Tier;

/// A few lines that sum a run up.
pub fn summary(s: &Summary) -> String {
    let mut rows = vec![
        ("profile, congestion control", format!("{}, {}", s.profile, s.cca)),
        ("flows finished", format!("{} of {}", s.flows_finished, s.flows)),
        ("simulated time", format!("{:.3} us", s.sim_time_ns as f64 / 1e3)),
        ("FCT mean, max", format!("{:.3} us, {:.3} us", s.mean_fct_ns / 1e3, s.max_fct_ns / 1e3)),
        ("packet-hops", s.packet_hops.to_string()),
        ("events executed", s.events_executed.to_string()),
        ("drops, ECN marks, pauses", format!("{}, {}, {}", s.drops, s.ecn_marks, s.pauses)),
        ("processor time", format!("{:.3} s ({:.1} M packet-hops/s)", s.cpu_s, s.packet_hops_per_cpu_s / 1e6)),
        ("peak memory", format!("{:.1} MB", s.peak_rss_mb)),
    ];
    if let (Some(load), Some(outputs)) = (s.load_s, s.outputs_s) {
        let Summary { setup_s, wall_s, .. } = s;
        let phases = format!("{load:.3} s, {setup_s:.3} s, {wall_s:.3} s, {outputs:.3} s");
        rows.push(("load, set-up, run, outputs", phases));
    }
    if s.accel != tier_name(Tier::Off) {
        rows.extend([
            ("event ratio", format!("{:.2} ({} events skipped)", s.event_ratio, s.events_skipped)),
            ("time skipped, exact", format!("{:.3} us, summed over partitions", s.time_exact_ns as f64 / 1e3)),
            ("time skipped, bounded", format!("{:.3} us, summed over partitions", s.time_bounded_ns as f64 / 1e3)),
            ("memo hits, misses", format!("{}, {}", s.memo_hits, s.memo_misses)),
            ("time skipped, memo", format!("{:.3} us, summed over partitions", s.time_memo_ns as f64 / 1e3)),
        ]);
    }
    rows.iter().map(|(name, value)| format!("{name:<28} {value}\n")).collect()
}

/// What came of jobs: their times, and their collectives, those of one kind and size in a row.
pub fn jobs(outcome: &Outcome) -> String {
    outcome.jobs.iter().map(job).collect()
}

fn job(job: &JobReport) -> String {
    let time = |ns: f64| if ns < 1e6 { format!("{:.3} us", ns / 1e3) } else { format!("{:.3} ms", ns / 1e6) };
    let s = JobSummary::new(job);
    let mut text = format!("\n{}: iteration {}, {}\n", s.name, time(s.iteration_ns), counted(s.ranks, "rank"));
    let parts = [
        ("computing", s.computing_ns),
        ("overlapped", s.overlapped_ns),
        ("exposed communication", s.exposed_ns),
        ("idle", s.idle_ns),
    ];
    let parts = parts.map(|(name, ns)| format!("{name} {}", time(ns)));
    text += &format!("a rank on average: {}\n", parts.join(", "));
    let rows = collectives_by_kind(job);
    if !rows.is_empty() {
        text += &format!(
            "{:<16} {:>14} {:>6} {:>8} {:>12} {:>12} {:>10} {:>10}\n",
            "collective", "size B", "ranks", "count", "time us", "longest us", "algbw GB/s", "busbw GB/s"
        );
    }
    for ((kind, bytes, members), of_kind) in rows {
        let us = |c: &&CollectiveReport| c.time.0 as f64 / 1e6;
        let mean = |value: &dyn Fn(&&CollectiveReport) -> f64| {
            of_kind.iter().map(value).sum::<f64>() / of_kind.len().max(1) as f64
        };
        text += &format!(
            "{:<16} {bytes:>14} {members:>6} {:>8} {:>12.3} {:>12.3} {:>10.3} {:>10.3}\n",
            kind.name(),
            of_kind.len(),
            mean(&us),
            of_kind.iter().map(us).fold(0.0, f64::max),
            mean(&|c| c.algorithm_bandwidth()),
            mean(&|c| c.bus_bandwidth()),
        );
    }
    text
}

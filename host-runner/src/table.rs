//! Results for people.

use crate::outputs::Summary;
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use wormhole_kernel::accel::Tier;

/// A few lines that sum a run up.
pub fn summary(scenario: &Scenario, outcome: &Outcome) -> String {
    let s = Summary::new(scenario, outcome);
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
    if scenario.acceleration.tier != Tier::Off {
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

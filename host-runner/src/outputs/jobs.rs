//! `collectives.csv` and `ranks.csv`: what came of jobs.

use super::rows::{Cell, Kind, Rows};
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use crate::workload::activity::Doing;
use crate::workload::report::{CollectiveReport, JobReport};
use crate::workload::task::CollectiveKind;
use wormhole_kernel::Span;

/// The table of `collectives.csv`: a row per collective, in order of their ends, job by job.
///
/// The columns from `size` on are those of nccl-tests, whose elements here are bytes: `count` equals `size`.
/// `time_us` runs from the first message sent to the end of the last member; `algbw` and `busbw` are in GB/s.
pub fn collectives_table(outcome: &Outcome) -> Rows<'_> {
    const COLUMNS: [(&str, Kind); 15] = [
        ("job", Kind::Text),
        ("group", Kind::Text),
        ("ranks", Kind::Count),
        ("number", Kind::Count),
        ("start_ns", Kind::Number),
        ("operation", Kind::Text),
        ("size", Kind::Count),
        ("count", Kind::Count),
        ("type", Kind::Text),
        ("redop", Kind::Text),
        ("root", Kind::Number),
        ("time_us", Kind::Number),
        ("algbw", Kind::Number),
        ("busbw", Kind::Number),
        ("wrong", Kind::Count),
    ];
    let of_jobs = outcome.jobs.iter().flat_map(|job| job.collectives.iter().map(move |c| (job, c)));
    let row = |(job, collective): (&JobReport, &CollectiveReport)| {
        let CollectiveReport { group, members, which, kind, bytes, start, .. } = collective;
        let (redop, root) = match kind {
            CollectiveKind::AllReduce | CollectiveKind::ReduceScatter => ("sum", -1.0),
            CollectiveKind::Broadcast => ("none", 0.0),
            CollectiveKind::AllGather | CollectiveKind::AllToAll | CollectiveKind::Barrier => ("none", -1.0),
        };
        vec![
            job.name.as_str().into(),
            group.as_str().into(),
            (*members).into(),
            (*which).into(),
            Span(start.0).into(),
            kind.name().into(),
            (*bytes).into(),
            (*bytes).into(),
            "uint8".into(),
            redop.into(),
            Cell::Number(root, 0),
            Cell::Number(collective.time.0 as f64 / 1e6, 3),
            Cell::Number(collective.algorithm_bandwidth(), 3),
            Cell::Number(collective.bus_bandwidth(), 3),
            0u64.into(),
        ]
    };
    Rows::new(&COLUMNS, of_jobs.map(row))
}

/// The table of `ranks.csv`: a row per rank with what it has done with its time, in nanoseconds.
///
/// `computing_ns`: it computes, and no message from it or to it is under way. `overlapped_ns`: both. `exposed_ns`: only
/// messages. `idle_ns`: neither. They add up to the job's time.
pub fn ranks_table<'o>(scenario: &'o Scenario, outcome: &'o Outcome) -> Rows<'o> {
    const COLUMNS: [(&str, Kind); 7] = [
        ("job", Kind::Text),
        ("rank", Kind::Count),
        ("host", Kind::Count),
        ("computing_ns", Kind::Number),
        ("overlapped_ns", Kind::Number),
        ("exposed_ns", Kind::Number),
        ("idle_ns", Kind::Number),
    ];
    let rows = scenario.jobs.iter().zip(&outcome.jobs).flat_map(|(placed, job)| {
        (0u32..).zip(&job.ranks).zip(&placed.hosts).map(|((rank, activity), host)| {
            let who = [job.name.as_str().into(), rank.into(), host.0.into()];
            who.into_iter().chain(Doing::ALL.map(|doing| activity.time(doing).into())).collect()
        })
    });
    Rows::new(&COLUMNS, rows)
}

//! `collectives.csv` and `ranks.csv`: what came of jobs.

use super::fct::nanoseconds;
use crate::scenario::Scenario;
use crate::simulate::Outcome;
use crate::workload::report::CollectiveReport;
use crate::workload::task::CollectiveKind;
use std::io::{self, Write};
use wormhole_kernel::Span;

/// Writes `collectives.csv`: a row per collective, in order of their ends, job by job.
///
/// The columns from `size` on are those of nccl-tests, whose elements here are bytes: `count` equals `size`.
/// `time_us` runs from the first message sent to the end of the last member; `algbw` and `busbw` are in GB/s.
///
/// # Errors
/// Those of `out`.
pub fn write_collectives_csv(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "job,group,ranks,number,start_ns,operation,size,count,type,redop,root,time_us,algbw,busbw,wrong")?;
    for (job, collective) in outcome.jobs.iter().flat_map(|job| job.collectives.iter().map(move |c| (job, c))) {
        let CollectiveReport { group, members, which, kind, bytes, start, .. } = collective;
        let (redop, root) = match kind {
            CollectiveKind::AllReduce | CollectiveKind::ReduceScatter => ("sum", -1),
            CollectiveKind::Broadcast => ("none", 0),
            CollectiveKind::AllGather | CollectiveKind::AllToAll | CollectiveKind::Barrier => ("none", -1),
        };
        let (name, start) = (&job.name, nanoseconds(Span(start.0)));
        let time = collective.time.0 as f64 / 1e6;
        let (algorithm, bus) = (collective.algorithm_bandwidth(), collective.bus_bandwidth());
        write!(out, "{name},{group},{members},{which},{start},{},{bytes},{bytes},uint8,{redop},{root},", kind.name())?;
        writeln!(out, "{time:.3},{algorithm:.3},{bus:.3},0")?;
    }
    Ok(())
}

/// Writes `ranks.csv`: a row per rank with what it has done with its time, in nanoseconds.
///
/// `computing_ns`: it computes, and no message from it or to it is under way. `overlapped_ns`: both. `exposed_ns`: only
/// messages. `idle_ns`: neither. They add up to the job's time.
///
/// # Errors
/// Those of `out`.
pub fn write_ranks_csv(out: &mut impl Write, scenario: &Scenario, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "job,rank,host,computing_ns,overlapped_ns,exposed_ns,idle_ns")?;
    for (placed, job) in scenario.jobs.iter().zip(&outcome.jobs) {
        for (rank, (activity, host)) in job.ranks.iter().zip(&placed.hosts).enumerate() {
            let times = [activity.computed, activity.overlapped, activity.exposed, activity.idle].map(nanoseconds);
            writeln!(out, "{},{rank},{},{}", job.name, host.0, times.join(","))?;
        }
    }
    Ok(())
}

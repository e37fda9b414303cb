//! What came of a job.

use super::activity::{Activity, Course};
use super::engine::{CollectiveRecord, Engine, PlacedJob};
use super::task::{CollectiveKind, Rank};
use std::collections::BTreeMap;
use wormhole_kernel::{SimTime, Span};

/// See the module.
#[derive(Clone, Debug)]
pub struct JobReport {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub description: String,
    /// When it began.
    pub start: SimTime,
    /// When its last task ended, or the run did.
    pub end: SimTime,
    /// Its collectives, in order of their ends.
    pub collectives: Vec<CollectiveReport>,
    /// What each rank has done with its time.
    pub ranks: Vec<Activity>,
    /// The courses of some ranks, at even distances.
    pub courses: Vec<(Rank, Course)>,
}

/// What came of a collective, in the terms of nccl-tests.
#[derive(Clone, PartialEq, Debug)]
pub struct CollectiveReport {
    /// Name of its group.
    pub group: String,
    /// Members of it.
    pub members: u32,
    /// The how-manieth of the group, from 0.
    pub which: u32,
    /// Which one.
    pub kind: CollectiveKind,
    /// Size in bytes, see [`Call`](super::task::Call).
    pub bytes: u64,
    /// When its first message was sent.
    pub start: SimTime,
    /// From then until its last member had ended it.
    pub time: Span,
}

impl JobReport {
    /// Of the `index`-th job.
    pub fn new(index: u32, placed: &PlacedJob, engine: &Engine) -> JobReport {
        let (start, end) = engine.span(index);
        let groups = engine.groups(index);
        let report = |record: &CollectiveRecord| {
            let group = &groups[record.call.group as usize];
            CollectiveReport {
                group: group.name.clone(),
                members: group.ranks.len() as u32,
                which: record.which,
                kind: record.call.kind,
                bytes: record.call.bytes,
                start: record.start,
                time: record.end.since(record.start),
            }
        };
        JobReport {
            name: placed.name.clone(),
            description: placed.job.description.clone(),
            start,
            end,
            collectives: engine.collectives().iter().filter(|record| record.job == index).map(report).collect(),
            ranks: engine.activities(index).collect(),
            courses: engine.courses(index).collect(),
        }
    }

    /// From its start to its end: the iteration.
    pub fn time(&self) -> Span {
        self.end.since(self.start)
    }
}

/// A job's collectives by kind, size and number of members.
pub(crate) fn collectives_by_kind(job: &JobReport) -> BTreeMap<(CollectiveKind, u64, u32), Vec<&CollectiveReport>> {
    let mut groups: BTreeMap<_, Vec<&CollectiveReport>> = BTreeMap::new();
    for collective in &job.collectives {
        groups.entry((collective.kind, collective.bytes, collective.members)).or_default().push(collective);
    }
    groups
}

impl CollectiveReport {
    /// Size over time, in GB/s; 0 if it took none.
    pub fn algorithm_bandwidth(&self) -> f64 {
        if self.time == Span::ZERO { 0.0 } else { self.bytes as f64 * 1e3 / self.time.0 as f64 }
    }

    /// The rate at which the hardware's links carried it, in GB/s: what nccl-tests calls the bus bandwidth. It does not
    /// depend on the number of members, and no link is slower.
    pub fn bus_bandwidth(&self) -> f64 {
        let n = self.members as f64;
        let share = match self.kind {
            CollectiveKind::AllReduce => 2.0 * (n - 1.0) / n,
            CollectiveKind::ReduceScatter | CollectiveKind::AllGather | CollectiveKind::AllToAll => (n - 1.0) / n,
            CollectiveKind::Broadcast | CollectiveKind::Barrier => 1.0,
        };
        self.algorithm_bandwidth() * share
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bandwidths_are_those_of_nccl_tests() {
        let report = |kind, members| CollectiveReport {
            group: String::new(),
            members,
            which: 0,
            kind,
            bytes: 1_000_000_000,
            start: SimTime::ZERO,
            time: Span::from_us(100_000),
        };
        assert_eq!(report(CollectiveKind::AllReduce, 8).algorithm_bandwidth(), 10.0);
        assert_eq!(report(CollectiveKind::AllReduce, 8).bus_bandwidth(), 17.5);
        for kind in [CollectiveKind::AllGather, CollectiveKind::ReduceScatter, CollectiveKind::AllToAll] {
            assert_eq!(report(kind, 4).bus_bandwidth(), 7.5);
        }
        assert_eq!(report(CollectiveKind::Broadcast, 4).bus_bandwidth(), 10.0);
        let none = CollectiveReport { time: Span::ZERO, ..report(CollectiveKind::Barrier, 4) };
        assert_eq!(none.bus_bandwidth(), 0.0);
    }
}

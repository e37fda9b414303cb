//! Jobs of a scenario: what they are, and on which hosts they run.

use crate::input::diagnostics::Diagnostics;
use crate::input::{self, counted, decode, units};
use crate::workload::collective::{AllReduce, AllToAll, CollectiveOptions};
use crate::workload::engine::PlacedJob;
use crate::workload::formats::{self, chakra};
use crate::workload::task::Job;
use crate::workload::training::{Kind, TrainingKeys};
use clap::{Args, Subcommand, ValueEnum};
use std::collections::HashSet;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use wormhole_kernel::model::ConfigHash;
use wormhole_kernel::{NodeId, SimTime};

/// A job as a scenario describes it.
#[derive(Clone, Debug)]
pub struct JobSource {
    /// What it is.
    pub kind: JobKind,
    /// The scenario file, and the line there; for messages.
    pub file: String,
    /// From 1; 0 if it is not in a file.
    pub line: usize,
}

/// The kinds of jobs, with their options.
#[derive(Subcommand, Clone, Debug)]
pub enum JobKind {
    /// Training of a dense model.
    Gpt(TrainingJob),
    /// Training of a model with experts.
    Moe(TrainingJob),
    /// A workload in a file: of SimAI or AICB, GOAL, a connection matrix of htsim, or Chakra traces.
    File(FileJob),
}

/// A job that is generated.
#[derive(Args, Clone, Debug)]
pub struct TrainingJob {
    #[command(flatten)]
    common: JobOptions,
    #[command(flatten)]
    keys: TrainingKeys,
}

/// A job in a file.
#[derive(Args, Clone, Debug)]
pub struct FileJob {
    #[command(flatten)]
    common: JobOptions,
    /// The file; of Chakra traces, which are PREFIX.0.et, PREFIX.1.et and so on, the prefix.
    #[arg(long, value_name = "FILE")]
    file: PathBuf,
    /// Chakra: communicator groups, JSON such as {"1": [0, 1]}.
    #[arg(long, value_name = "FILE")]
    groups: Option<PathBuf>,
}

impl FileJob {
    /// A file with the usual options.
    pub fn new(file: PathBuf, groups: Option<PathBuf>) -> FileJob {
        FileJob { common: JobOptions::default(), file, groups }
    }
}

/// What every job may say.
#[derive(Args, Clone, Default, Debug)]
pub struct JobOptions {
    /// What it is called in tables.
    #[arg(long)]
    name: Option<String>,
    /// When it begins, such as 5ms.
    #[arg(long, value_name = "TIME", value_parser = units::time, default_value = "0s")]
    start: u64,
    /// Which of the hosts that no job before has taken it runs on; if it is not given, it needs the whole fabric.
    #[arg(long, value_enum, conflicts_with = "hosts")]
    placement: Option<Placement>,
    /// The hosts of its ranks, such as 0-63,128; jobs may share hosts.
    #[arg(long, value_name = "LIST", value_parser = host_list)]
    hosts: Option<HostList>,
    /// How all-reduces are done.
    #[arg(long, value_enum, default_value = "ring")]
    all_reduce: AllReduce,
    /// How all-to-alls are done.
    #[arg(long, value_enum, default_value = "direct")]
    all_to_all: AllToAll,
    /// Rings or trees side by side, with connections of their own.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u32).range(1..=256))]
    channels: u32,
    /// Most bytes of one message of a collective. Without it, a step of a ring is one message, and trees and
    /// broadcasts have messages of 4 MiB.
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u64).range(1..))]
    chunk: Option<u64>,
}

/// Which free hosts a job takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub enum Placement {
    /// The first ones.
    Packed,
    /// As far apart as they are, at even distances.
    Spread,
    /// By chance, from the seed.
    Random,
}

/// Ranges of hosts, in order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HostList(Vec<RangeInclusive<u32>>);

fn host_list(text: &str) -> Result<HostList, String> {
    let range = |part: &str| {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let number =
            |text: &str| text.trim().parse::<u32>().map_err(|_| format!("`{part}` is no host or range of hosts"));
        let (first, last) = (number(first)?, number(last)?);
        if first > last { Err(format!("`{part}` runs backwards")) } else { Ok(first..=last) }
    };
    text.split(',').map(range).collect::<Result<_, _>>().map(HostList)
}

impl JobOptions {
    fn collectives(&self) -> CollectiveOptions {
        CollectiveOptions {
            all_reduce: self.all_reduce,
            all_to_all: self.all_to_all,
            channels: self.channels,
            chunk_bytes: self.chunk.unwrap_or(u64::MAX),
        }
    }
}

impl JobSource {
    fn common(&self) -> &JobOptions {
        match &self.kind {
            JobKind::Gpt(job) | JobKind::Moe(job) => &job.common,
            JobKind::File(job) => &job.common,
        }
    }

    /// The job itself. What is wrong goes to `found`.
    fn job(&self, hosts: usize, found: &mut Diagnostics) -> Option<Job> {
        let mut training = |job: &TrainingJob, kind| match job.keys.training(kind) {
            Ok(training) => Some(training.job()),
            Err(faults) => {
                let fault = |message| Diagnostics::fault(self.file.clone(), self.line, message);
                faults.into_iter().for_each(|message| found.extend(fault(message)));
                None
            }
        };
        match &self.kind {
            JobKind::Gpt(job) => training(job, Kind::Gpt),
            JobKind::Moe(job) => training(job, Kind::Moe),
            JobKind::File(job) => read_workload(&job.file, job.groups.as_deref(), hosts as u32, found),
        }
    }
}

/// Reads a workload of any format.
fn read_workload(path: &Path, groups: Option<&Path>, hosts: u32, found: &mut Diagnostics) -> Option<Job> {
    let traces = chakra_traces(path);
    if !traces.is_empty() {
        return read_chakra(&traces, groups, found);
    }
    let text = decode(input::read(path, found)?);
    let mut own = Diagnostics::of(path.display().to_string());
    let job = formats::parse(&text, hosts, &mut own);
    found.extend(own);
    job
}

/// The files PREFIX.0.et, PREFIX.1.et and so on.
fn chakra_traces(prefix: &Path) -> Vec<PathBuf> {
    let name = |rank: u32| PathBuf::from(format!("{}.{rank}.et", prefix.display()));
    (0..).map(name).take_while(|path| path.is_file()).collect()
}

fn read_chakra(traces: &[PathBuf], groups: Option<&Path>, found: &mut Diagnostics) -> Option<Job> {
    let named = |path: &PathBuf, found: &mut Diagnostics| Some((path.display().to_string(), input::read(path, found)?));
    let files: Vec<Option<(String, Vec<u8>)>> = traces.iter().map(|path| named(path, found)).collect();
    let files: Vec<(String, Vec<u8>)> = files.into_iter().collect::<Option<_>>()?;
    let groups = match groups {
        Some(path) => Some((path.display().to_string(), decode(input::read(path, found)?))),
        None => None,
    };
    let files: Vec<(&str, &[u8])> = files.iter().map(|(name, bytes)| (name.as_str(), bytes.as_slice())).collect();
    let groups = groups.as_ref().map(|(name, text)| (name.as_str(), text.as_str()));
    chakra::parse(&files, groups, found)
}

/// Puts jobs on hosts. What is wrong goes to `found`.
pub fn place(sources: &[JobSource], hosts: &[NodeId], seed: u64, found: &mut Diagnostics) -> Vec<PlacedJob> {
    let mut taken = HashSet::new();
    let mut placed = Vec::new();
    for (index, source) in sources.iter().enumerate() {
        let Some(job) = source.job(hosts.len(), found) else { continue };
        let common = source.common();
        let free: Vec<NodeId> = hosts.iter().copied().filter(|host| !taken.contains(host)).collect();
        match choose(common, job.ranks() as usize, hosts, &free, seed) {
            Ok(hosts) => {
                taken.extend(hosts.iter().copied());
                let name = common.name.clone().unwrap_or_else(|| format!("job {index}"));
                let (start, collectives) = (SimTime(common.start), common.collectives());
                placed.push(PlacedJob { name, job, hosts, start, collectives });
            }
            Err(message) => found.extend(Diagnostics::fault(source.file.clone(), source.line, message)),
        }
    }
    placed
}

/// The hosts of a job's ranks.
fn choose(
    options: &JobOptions,
    ranks: usize,
    hosts: &[NodeId],
    free: &[NodeId],
    seed: u64,
) -> Result<Vec<NodeId>, String> {
    if let Some(HostList(ranges)) = &options.hosts {
        return listed(ranges, ranks, hosts);
    }
    let Some(placement) = options.placement else {
        let message = || {
            let (ranks, hosts) = (counted(ranks, "rank"), counted(hosts.len(), "host"));
            format!("the job has {ranks}, the fabric {hosts}; give it a placement to run on a part of it")
        };
        return if ranks == hosts.len() { Ok(hosts.to_vec()) } else { Err(message()) };
    };
    if ranks > free.len() {
        return Err(format!("the job has {}, but only {} left", counted(ranks, "rank"), counted(free.len(), "host")));
    }
    Ok(match placement {
        Placement::Packed => free[..ranks].to_vec(),
        Placement::Spread => (0..ranks).map(|rank| free[rank * free.len() / ranks]).collect(),
        Placement::Random => {
            let mut order = free.to_vec();
            order.sort_by_cached_key(|host| ConfigHash::new().with(seed).with(host.0.into()).finish());
            order.truncate(ranks);
            order
        }
    })
}

fn listed(ranges: &[RangeInclusive<u32>], ranks: usize, hosts: &[NodeId]) -> Result<Vec<NodeId>, String> {
    let count: u64 = ranges.iter().map(|range| (range.end() - range.start()) as u64 + 1).sum();
    if count != ranks as u64 {
        return Err(format!("the job has {}, the list {count} hosts", counted(ranks, "rank")));
    }
    let host = |id: u32| {
        let known = hosts.contains(&NodeId(id));
        if known { Ok(NodeId(id)) } else { Err(format!("node {id} is no host")) }
    };
    ranges.iter().flat_map(Clone::clone).map(host).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(placement: Option<Placement>, list: Option<&str>) -> JobOptions {
        let hosts = list.map(|list| host_list(list).expect(list));
        JobOptions { placement, hosts, channels: 1, ..JobOptions::default() }
    }

    fn ids(ids: impl IntoIterator<Item = u32>) -> Vec<NodeId> {
        ids.into_iter().map(NodeId).collect()
    }

    #[test]
    fn jobs_take_free_hosts_as_they_are_asked_to() {
        let (hosts, free) = (ids(0..8), ids(2..8));
        let chosen = |placement, ranks| choose(&options(Some(placement), None), ranks, &hosts, &free, 1);
        assert_eq!(chosen(Placement::Packed, 3), Ok(ids([2, 3, 4])));
        assert_eq!(chosen(Placement::Spread, 3), Ok(ids([2, 4, 6])));
        let random = chosen(Placement::Random, 6).expect("room");
        assert_ne!(random, free);
        assert_eq!(random.iter().collect::<HashSet<_>>(), free.iter().collect(), "all, in another order");
        assert_eq!(chosen(Placement::Packed, 7), Err("the job has 7 ranks, but only 6 hosts left".into()));
    }

    #[test]
    fn without_a_placement_a_job_needs_the_whole_fabric() {
        let hosts = ids(0..8);
        assert_eq!(choose(&options(None, None), 8, &hosts, &hosts, 1), Ok(hosts.clone()));
        let message = choose(&options(None, None), 64, &hosts, &hosts, 1).expect_err("too few");
        assert!(message.starts_with("the job has 64 ranks, the fabric 8 hosts"), "{message}");
    }

    #[test]
    fn hosts_may_be_listed() {
        let hosts = ids(0..8);
        let listed = |list, ranks| choose(&options(None, Some(list)), ranks, &hosts, &[], 1);
        assert_eq!(listed("5,0-2", 4), Ok(ids([5, 0, 1, 2])));
        assert_eq!(listed("0-2", 4), Err("the job has 4 ranks, the list 3 hosts".into()));
        assert_eq!(listed("6-8", 3), Err("node 8 is no host".into()));
        for bad in ["", "a", "3-1", "1-"] {
            assert!(host_list(bad).is_err(), "{bad}");
        }
    }
}

//! `wormhole sweep`: many runs of a scenario with other values of its keys, and one table of what came of them.

mod folder;
mod join;
pub(crate) mod plan;
mod progress;
mod record;
mod run;
mod shard;

use crate::cli::tell;
use crate::ending::ExitStatus;
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use crate::interrupt;
use crate::memo::SharedStore;
use clap::{Args, Subcommand};
use folder::{Manifest, SweepFolder};
use join::{join, ranges};
use plan::{Plan, PlanText};
use rayon::iter::{IntoParallelRefIterator, ParallelIterator};
use run::Run;
use shard::Shard;
use std::collections::HashMap;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Arguments of the command.
#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub(crate) struct SweepCommand {
    #[command(subcommand)]
    join: Option<JoinCommand>,
    #[command(flatten)]
    sweep: Option<SweepArgs>,
}

#[derive(Subcommand, Debug)]
enum JoinCommand {
    /// Make one table of the shards of a sweep.
    Join {
        /// Folder for the tables; it is made if it is not there.
        #[arg(value_name = "OUT")]
        out: PathBuf,
        /// The folders of all shards.
        #[arg(required = true, value_name = "DIR")]
        folders: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
struct SweepArgs {
    /// What to run: a TOML file with a scenario and [grid] or [[point]].
    #[arg(value_name = "SWEEP.toml")]
    plan: PathBuf,
    /// Folder for results; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "wormhole-sweep")]
    out: PathBuf,
    /// Points that run at the same time, each with memory of its own; default: as many as there are processors.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..))]
    jobs: Option<u16>,
    /// Run one part of N only, I from 1: points I-1, I-1+N, I-1+2N and so on. Each part has a folder of its own.
    #[arg(long, value_name = "I/N", default_value_t = Shard::WHOLE)]
    shard: Shard,
    /// Go on with the sweep that is in the folder: points that have been run are not run again.
    #[arg(long)]
    resume: bool,
    /// Most memory for memo records of a point, in MB; replaces what the scenario says.
    #[arg(long, value_name = "MB", value_parser = clap::value_parser!(u32).range(1..))]
    memo_limit: Option<u32>,
}

impl SweepCommand {
    /// Does it.
    ///
    /// # Errors
    /// Those of the file system.
    pub(crate) fn execute(&self) -> io::Result<ExitStatus> {
        match (&self.join, &self.sweep) {
            (Some(JoinCommand::Join { out, folders }), _) => join(out, folders),
            (None, Some(args)) => args.sweep(),
            // clap demands one of them.
            (None, None) => Ok(ExitStatus::BadInput),
        }
    }
}

impl SweepArgs {
    fn sweep(&self) -> io::Result<ExitStatus> {
        let mut found = Diagnostics::default();
        let text = PlanText::read(&self.plan, &mut found);
        let plan = text.as_ref().and_then(|text| text.plan(&mut found));
        tell(&found);
        let Some(plan) = plan else { return Ok(ExitStatus::BadInput) };
        let options: Vec<String> = self.memo_limit.iter().map(|limit| format!("--memo-limit={limit}")).collect();
        let refuse = |why: &str| {
            eprintln!("{}: error: {why}", self.out.display());
            Ok(ExitStatus::BadInput)
        };
        let manifest = Manifest::new(&plan, &options, self.shard);
        let folder = match SweepFolder::prepare(&self.out, manifest, self.resume)? {
            Ok(folder) => folder,
            Err(why) => return refuse(&why),
        };
        let threads = rayon::ThreadPoolBuilder::new().num_threads(self.jobs.unwrap_or(0).into());
        let pool = threads.build().map_err(io::Error::other)?;
        if !pool.install(|| check(&plan, &options)) {
            return Ok(ExitStatus::BadInput);
        }
        let Some(_lock) = folder.begin()? else { return refuse("another process runs the sweep there") };
        interrupt::listen()?;
        let status = pool.install(|| Run::new(&plan, &options, &folder).all())?;
        folder.write_tables()?;
        self.report(&folder)?;
        Ok(status)
    }

    fn report(&self, folder: &SweepFolder) -> io::Result<()> {
        let records = folder.records(folder.manifest.own_points())?;
        let mut endings: Vec<&str> = records.iter().map(|record| record.ending.as_str()).collect();
        endings.sort_unstable();
        let told = endings.chunk_by(|a, b| a == b).map(|same| format!("{} {}", same.len(), same[0]));
        let (told, points) = (told.collect::<Vec<_>>().join(", "), folder.manifest.own_points().count());
        let mut out = io::stdout();
        writeln!(out, "{} of {}: {told}", records.len(), counted(points, "point"))?;
        writeln!(out, "the tables are in {}", self.out.display())
    }
}

/// Whether all points can be run. Tells what is wrong or odd about them, each finding once.
fn check(plan: &Plan<'_>, options: &[String]) -> bool {
    let numbers: Vec<usize> = (0..plan.points.len()).collect();
    let of_point = |number: &usize| {
        let (loaded, mut found) = plan.load(*number, options);
        if let Some((_, args)) = loaded {
            found.extend(args.memo_shared(SharedStore::new(Path::new(""), *number)).1);
        }
        found
    };
    let all: Vec<Diagnostics> = numbers.par_iter().map(of_point).collect();
    let (mut lines, mut points) = (Vec::new(), HashMap::<String, Vec<usize>>::new());
    for (number, found) in all.iter().enumerate() {
        for line in found.all().iter().map(ToString::to_string) {
            let of_line = points.entry(line.clone()).or_insert_with(|| {
                lines.push(line);
                Vec::new()
            });
            of_line.push(number);
        }
    }
    for line in lines {
        let mut points = points.remove(&line).unwrap_or_default();
        points.dedup();
        match points.len() {
            count if count == numbers.len() => eprintln!("{line}"),
            count => eprintln!("{line} [{}: {}]", if count == 1 { "point" } else { "points" }, ranges(&points)),
        }
    }
    !all.iter().any(Diagnostics::has_errors)
}

//! `wormhole workload`: looking at training jobs before they are simulated.

use super::training::{Description, Kind, TrainingKeys};
use crate::ending::ExitStatus;
use clap::{Args, Subcommand};
use serde::Serialize;
use std::io::{self, Write};
use std::path::PathBuf;

/// Describe a training job, and write it down for a scenario.
#[derive(Subcommand, Debug)]
pub(crate) enum WorkloadCommand {
    /// A dense GPT model.
    Gpt(TrainingArgs),
    /// A model with experts.
    Moe(TrainingArgs),
}

#[derive(Args, Debug)]
pub(crate) struct TrainingArgs {
    #[command(flatten)]
    keys: TrainingKeys,
    /// Also write the job to this file, as a part of a scenario.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
}

/// A scenario file with nothing but jobs.
#[derive(Serialize)]
struct Fragment {
    job: [JobKeys; 1],
}

#[derive(Serialize)]
struct JobKeys {
    kind: Kind,
    #[serde(flatten)]
    keys: TrainingKeys,
}

impl WorkloadCommand {
    /// Does it.
    ///
    /// # Errors
    /// Those of writing.
    pub(crate) fn execute(&self) -> io::Result<ExitStatus> {
        match self {
            WorkloadCommand::Gpt(args) => args.execute(Kind::Gpt),
            WorkloadCommand::Moe(args) => args.execute(Kind::Moe),
        }
    }
}

impl TrainingArgs {
    fn execute(&self, kind: Kind) -> io::Result<ExitStatus> {
        let training = match self.keys.training(kind) {
            Ok(training) => training,
            Err(faults) => {
                faults.iter().for_each(|fault| eprintln!("error: {fault}"));
                return Ok(ExitStatus::BadInput);
            }
        };
        write!(io::stdout().lock(), "{}", Description(&training))?;
        if let Some(path) = &self.out {
            std::fs::write(path, fragment(kind, self.keys.complete(&training))?)?;
        }
        Ok(ExitStatus::Done)
    }
}

/// A job as a part of a scenario file.
fn fragment(kind: Kind, keys: TrainingKeys) -> io::Result<String> {
    toml::to_string(&Fragment { job: [JobKeys { kind, keys }] }).map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser, Debug)]
    struct Line {
        #[command(subcommand)]
        command: WorkloadCommand,
    }

    fn keys(options: &str) -> TrainingKeys {
        let line = Line::try_parse_from(format!("wormhole {options}").split_whitespace()).expect(options);
        let (WorkloadCommand::Gpt(args) | WorkloadCommand::Moe(args)) = line.command;
        args.keys
    }

    #[test]
    fn options_left_out_are_keys_left_out() {
        assert_eq!(keys("gpt"), TrainingKeys::default());
        let some = keys("moe --model 8x22b --tp 8 --pp 2 --gpus 128 --ep 8 --schedule gpipe --flops 989e12 --overlap");
        assert_eq!((some.gpus, some.ep, some.flops, some.overlap), (Some(128), 8, 989e12, true));
    }

    #[test]
    fn a_fragment_holds_the_job() {
        let keys = keys("gpt --tp 8 --pp 2 --dp 8 --schedule interleaved --micro-batches 4");
        let training = keys.training(Kind::Gpt).expect("a valid job");
        let text = fragment(Kind::Gpt, keys.complete(&training)).expect("text");
        assert!(text.starts_with("[[job]]\nkind = \"gpt\"\nmodel = \"13b\"\ngpus = 128\ntp = 8\n"), "{text}");
        assert!(text.contains("\nschedule = \"interleaved\"\nvirtual-stages = 2\nsequence = 2048\n"), "{text}");
        let mut read: toml::Table = text.parse().expect("a table");
        let mut job = read.remove("job").and_then(|jobs| jobs.as_array()?.first()?.as_table().cloned()).expect("a job");
        job.remove("kind");
        let again: TrainingKeys = job.try_into().expect("keys");
        assert_eq!(again.training(Kind::Gpt), Ok(training));
    }
}

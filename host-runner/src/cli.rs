//! Commands and exit codes.

use crate::ending::{ExitStatus, explain};
use crate::load::{Files, Loaded, load_files};
use crate::outputs::{EventTrace, PfcLog, Summary, fct_rows, write_fct_csv, write_links_csv, write_pfc};
use crate::progress::ProgressLine;
use crate::reference;
use crate::scenario::{CcaName, DEFAULT_MAX_PACKETS, Options, Profile, Routing, Scenario};
use crate::simulate::{Outcome, Refusal, simulate};
use crate::{demo, table};
use clap::{Args, Parser, Subcommand};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// Packet-level simulator of the networks that train large models.
#[derive(Parser, Debug)]
#[command(name = "wormhole", version, about, after_help = ExitStatus::HELP)]
pub struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Simulate a scenario and write its results.
    Run(RunArgs),
    /// Simulate an embedded example: 16 GPUs on a fat-tree, a ring all-reduce step and an incast.
    Demo,
    /// Repeat runs of the real ns-3 in profile `ns3` and compare, flow by flow, nanosecond by nanosecond.
    Reference {
        /// Folders that hold runs (topology.txt, flow.txt, config.txt, fct.txt), at any depth.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
    },
}

#[derive(Args, Debug)]
struct RunArgs {
    /// Topology file.
    #[arg(long, value_name = "FILE")]
    topology: PathBuf,
    /// Flow file.
    #[arg(long, value_name = "FILE")]
    flows: PathBuf,
    /// Configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File of link changes: rows of `time_us down|up a b`.
    #[arg(long, value_name = "FILE")]
    link_events: Option<PathBuf>,
    /// Model family.
    #[arg(long, value_enum, default_value = "ps")]
    profile: Profile,
    /// Congestion control; overrides CC_MODE.
    #[arg(long, value_enum)]
    cca: Option<CcaName>,
    /// Routing (profile ps).
    #[arg(long, value_enum, default_value = "ecmp")]
    routing: Routing,
    /// Seed of everything random (profile ps).
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Folder for results; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "wormhole-out")]
    out: PathBuf,
    /// Also write a trace of every packet event to this file.
    #[arg(long, value_name = "FILE")]
    events: Option<PathBuf>,
    /// Most frames in the fabric at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_PACKETS)]
    max_packets: usize,
}

/// Executes a command and says how it went.
pub fn execute(cli: Cli) -> ExitCode {
    let status = match cli.command {
        Command::Run(args) => run(&args),
        Command::Demo => demo::run(),
        Command::Reference { folders } => compare(&folders),
    };
    match status {
        Ok(status) => status.into(),
        // Whoever reads our output has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => ExitStatus::Done.into(),
        Err(error) => {
            eprintln!("wormhole: {error}");
            ExitStatus::Io.into()
        }
    }
}

fn run(args: &RunArgs) -> io::Result<ExitStatus> {
    let files = Files {
        topology: args.topology.clone(),
        flows: args.flows.clone(),
        config: args.config.clone(),
        link_events: args.link_events.clone(),
    };
    let options = Options {
        profile: args.profile,
        seed: args.seed,
        cca: args.cca,
        routing: args.routing,
        max_packets: args.max_packets,
    };
    let Loaded { scenario, description, found } = load_files(&files, &options);
    for finding in found.all() {
        eprintln!("{finding}");
    }
    let Some(scenario) = scenario else { return Ok(ExitStatus::BadInput) };
    eprintln!("{description}");
    std::fs::create_dir_all(&args.out)?;
    let mut pfc = PfcLog::default();
    let outcome = match simulate_with_trace(&scenario, &mut pfc, args.events.as_deref())? {
        Ok(outcome) => outcome,
        Err(refused) => return Ok(report_refusals(&args.flows, &refused)),
    };
    write_results(&args.out, &scenario, &outcome, &pfc)?;
    let mut out = io::stdout();
    write!(out, "{}", table::summary(&scenario, &outcome))?;
    writeln!(out, "results are in {}", args.out.display())?;
    Ok(explain(&outcome))
}

/// Simulates, with a progress line on a terminal and a trace if a file is given.
fn simulate_with_trace(
    scenario: &Scenario,
    pfc: &mut PfcLog,
    trace: Option<&Path>,
) -> io::Result<Result<Outcome, Vec<Refusal>>> {
    let progress = ProgressLine::new(scenario.flows.len() as u64);
    let mut tell = |p| progress.tell(p);
    let Some(path) = trace else { return Ok(simulate(scenario, pfc, &mut tell)) };
    let mut trace = EventTrace::new(File::create(path)?);
    let outcome = simulate(scenario, (pfc, &mut trace), &mut tell);
    trace.finish()?;
    Ok(outcome)
}

fn report_refusals(flows: &Path, refused: &[Refusal]) -> ExitStatus {
    for Refusal { flow, error } in refused {
        match flow {
            Some(index) => eprintln!("{}: error: {error} (flow {})", flows.display(), index + 1),
            None => eprintln!("wormhole: {error}"),
        }
    }
    ExitStatus::BadInput
}

fn write_results(folder: &Path, scenario: &Scenario, outcome: &Outcome, pfc: &PfcLog) -> io::Result<()> {
    let write = |name: &str, fill: &dyn Fn(&mut BufWriter<File>) -> io::Result<()>| {
        let mut out = BufWriter::new(File::create(folder.join(name))?);
        fill(&mut out)?;
        out.flush()
    };
    write("fct.csv", &|out| write_fct_csv(out, scenario, outcome))?;
    write("fct.txt", &|out| fct_rows(scenario, outcome).try_for_each(|row| writeln!(out, "{row}")))?;
    write("links.csv", &|out| write_links_csv(out, scenario, outcome))?;
    write("pfc.txt", &|out| write_pfc(out, scenario, pfc))?;
    write("summary.json", &|out| {
        serde_json::to_writer_pretty(&mut *out, &Summary::new(scenario, outcome))?;
        writeln!(out)
    })
}

fn compare(folders: &[PathBuf]) -> io::Result<ExitStatus> {
    let (mut out, mut equal, mut all) = (io::stdout(), 0, 0);
    for folder in folders {
        for run in reference::find_runs(folder)? {
            let comparison = reference::compare(&run);
            writeln!(out, "{comparison}")?;
            all += 1;
            equal += (comparison.verdict == reference::Verdict::Equal) as usize;
        }
    }
    writeln!(out, "{equal} of {all} runs equal ns-3")?;
    Ok(if equal == all && all > 0 { ExitStatus::Done } else { ExitStatus::Differs })
}

//! Commands and exit codes.

use crate::args::{InputArgs, MemoArgs, ReferenceTier, ScenarioArgs, fraction};
use crate::cosim::CosimCommand;
use crate::disk::replace_with;
use crate::ending::{ExitStatus, explain, out_of};
use crate::fcg::{NoGraph, flow_graph};
use crate::input::diagnostics::Diagnostics;
use crate::input::units;
use crate::load::{Files, Loaded};
use crate::memo::{Memo, MemoCommand};
use crate::outputs::{ResultFolder, Summary};
use crate::plugin::PluginCommand;
use crate::progress::ProgressLine;
use crate::recording::{Recording, RecordingArgs};
use crate::running::Running;
use crate::scenario::{Options, Scenario};
use crate::scenario_file::ScenarioFile;
use crate::simulate::{Outcome, Refusal, simulate_memoised, simulate_observed};
use crate::sweep::SweepCommand;
use crate::topo::TopoCommand;
use crate::verify::{Report, Verification, at_tier, verify};
use crate::workload::command::WorkloadCommand;
use crate::{check, demo, interrupt, reference, report, scenario_file, table};
use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use std::ffi::OsString;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;
use wormhole_kernel::SimTime;
use wormhole_kernel::accel::Tier;

/// The examples below a command's help: what follows `wormhole`, a line each.
macro_rules! examples {
    ($($line:literal),+ $(,)?) => { concat!("Examples:", $("\n  wormhole ", $line),+) };
}

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
    #[command(after_help = examples!(
        "run gpt-7b-64 --out iteration",
        "run gpt-7b-64 --variant 100g --cca dcqcn --memo records.whm",
        "run --topology topology.txt --flows flows.txt --config config.txt --profile ns3 --accel exact",
    ))]
    Run(RunArgs),
    /// Read a scenario as `run` does, and tell everything that is wrong with it or looks odd; nothing is simulated.
    ///
    /// Every fault of every file is told, with file, line, token and what was expected. Exit code 0 if it can be run.
    #[command(after_help = examples!(
        "check gpt-7b-64",
        "check --topology topology.txt --flows flows.txt --config config.txt",
    ))]
    Check(ScenarioArgs),
    /// Simulate a scenario with and without acceleration, and tell what acceleration saves and what it changes.
    ///
    /// All events are executed first; then the exact tier runs, and if it is chosen the bounded one. Flows are
    /// compared one by one. Results that differ where they must not give exit code 8.
    #[command(after_help = examples!(
        "verify --topology topology.txt --flows flows.txt --ensemble 3 --max-error 0.01",
    ))]
    Verify(VerifyArgs),
    /// Simulate an embedded example: 16 GPUs on a fat-tree, a ring all-reduce step and an incast.
    Demo,
    /// Repeat runs of the real ns-3 in profile `ns3` and compare, flow by flow, nanosecond by nanosecond.
    Reference {
        /// Folders that hold runs (topology.txt, flow.txt, config.txt, fct.txt), at any depth.
        #[arg(required = true)]
        folders: Vec<PathBuf>,
        /// What may be skipped.
        #[arg(long, value_enum, default_value = "off")]
        accel: ReferenceTier,
        #[command(flatten)]
        memo: MemoArgs,
    },
    /// Run a scenario again and again with other values of its keys, and make one table of the results.
    ///
    /// A point that does not end well, or that the kernel refuses, has its ending in its row; the others are run all
    /// the same, and the exit code is 0. What is wrong with the inputs of any point is told before the first one runs.
    Sweep(SweepCommand),
    /// Look after memo files: what runs with --memo have kept.
    #[command(subcommand)]
    Memo(MemoCommand),
    /// Look at model plugins.
    #[command(subcommand)]
    Plugin(PluginCommand),
    /// Describe training jobs, and write them down for scenarios.
    #[command(subcommand)]
    Workload(WorkloadCommand),
    /// List the embedded scenarios, or print one.
    Scenarios {
        /// Prints the text of this one.
        name: Option<String>,
    },
    /// Print the flow conflict graph at an instant: flows with their sending rates, and which of them share links.
    #[command(after_help = examples!(
        "fcg --topology topology.txt --flows flows.txt --config config.txt --at 2.00005s",
    ))]
    Fcg(FcgArgs),
    /// Print a script that completes commands in a shell.
    #[command(after_help = examples!("completions bash"))]
    Completions {
        /// For which shell.
        shell: Shell,
    },
    /// Write the topology of a usual fabric, by its parameters.
    Topo(TopoCommand),
    /// Simulate a fabric whose hosts are ports of other programs: Ethernet frames come in at one and leave by another.
    #[command(subcommand)]
    Cosim(CosimCommand),
}

#[derive(Args, Debug)]
struct RunArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Folder for results; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "wormhole-out", help_heading = "Outputs")]
    out: PathBuf,
    /// Also write the tables of results as Parquet: fct.parquet and so on.
    #[arg(long, help_heading = "Outputs")]
    parquet: bool,
    #[command(flatten)]
    recording: RecordingArgs,
}

#[derive(Args, Debug)]
struct VerifyArgs {
    #[command(flatten)]
    scenario: ScenarioArgs,
    /// Folder for verify.json and report.html; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "wormhole-out", help_heading = "Outputs")]
    out: PathBuf,
    /// Also make K runs without acceleration in which every flow starts up to 1 ns sooner or later, by chance from
    /// the seed, and tell how far from the plain run they come: an error within that spread is not one of the
    /// acceleration.
    #[arg(long, value_name = "K", default_value_t = 0)]
    ensemble: u32,
    /// Exit code 8 if the mean FCT error of the chosen tier is greater, as a fraction such as 0.01.
    #[arg(long, value_name = "FRACTION", value_parser = fraction)]
    max_error: Option<f64>,
}

#[derive(Args, Debug)]
struct FcgArgs {
    #[command(flatten)]
    input: InputArgs,
    /// Simulated time, such as 2.000005s or 5us.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    at: SimTime,
    /// For people, or for Graphviz.
    #[arg(long, value_enum, default_value = "text")]
    format: GraphFormat,
}

/// How a graph is written.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum GraphFormat {
    /// A line for each flow and each edge.
    Text,
    /// The language of Graphviz.
    Dot,
}

fn instant(text: &str) -> Result<SimTime, String> {
    units::time(text).map(SimTime)
}

impl Cli {
    /// Understands a command line. What a scenario file says goes before what is typed, which so replaces it.
    ///
    /// # Errors
    /// What to end with: clap has told what is wrong, or the findings about the scenario file have been.
    pub fn from_arguments(arguments: Vec<OsString>) -> Result<Cli, ExitCode> {
        let parse = |arguments: &[OsString]| {
            let matches = Cli::command().args_override_self(true).try_get_matches_from(arguments);
            matches.and_then(|matches| Cli::from_arg_matches(&matches)).map_err(|error| {
                // There is nowhere left to say that this cannot be said.
                let _ = error.print();
                ExitCode::from(error.exit_code() as u8)
            })
        };
        let mut typed = parse(&arguments)?;
        let Some((name, variant)) = typed.command.input().and_then(|input| input.scenario()) else { return Ok(typed) };
        let mut found = Diagnostics::of(name);
        let file = ScenarioFile::load(name, variant, &run_command(), &mut found);
        tell(&found);
        let Some(file) = file else { return Err(ExitStatus::BadInput.into()) };
        if !file.arguments.is_empty() {
            typed = parse(&with_file(&arguments, &file))?;
        }
        if let Some(input) = typed.command.input() {
            input.set_file(file);
        }
        Ok(typed)
    }
}

impl Command {
    /// What it simulates, if it does.
    fn input(&mut self) -> Option<&mut InputArgs> {
        match self {
            Command::Run(RunArgs { scenario, .. }) | Command::Verify(VerifyArgs { scenario, .. }) => {
                Some(&mut scenario.input)
            }
            Command::Check(scenario) => Some(&mut scenario.input),
            Command::Fcg(FcgArgs { input, .. }) => Some(input),
            Command::Cosim(command) => Some(command.input()),
            _ => None,
        }
    }
}

/// The command that a command line names, and how many words do that. They come before all arguments, as there are no
/// options of all commands.
fn named_command<'c>(all: &'c clap::Command, arguments: &[OsString]) -> (&'c clap::Command, usize) {
    let mut named = (all, 1);
    while let Some(command) = arguments.get(named.1).and_then(|name| named.0.find_subcommand(name)) {
        named = (command, named.1 + 1);
    }
    named
}

/// A command line with the arguments of a scenario file before those that are typed: the later ones count.
fn with_file(typed: &[OsString], file: &ScenarioFile) -> Vec<OsString> {
    let all = Cli::command();
    let (own, names) = named_command(&all, typed);
    let of_file = file.arguments.iter().filter(|argument| has_option(own, argument)).map(OsString::from);
    typed[..names].iter().cloned().chain(of_file).chain(typed[names..].iter().cloned()).collect()
}

/// A scenario file and further options of `wormhole run` as arguments; what the file says of outputs is left out.
///
/// # Errors
/// That clap does not understand them.
pub(crate) fn scenario_arguments(file: ScenarioFile, options: &[String]) -> Result<ScenarioArgs, clap::Error> {
    // `check` takes what `run` takes, but for outputs.
    let typed = ["wormhole", "check", &file.name].map(OsString::from).into_iter();
    let words = with_file(&typed.chain(options.iter().map(OsString::from)).collect::<Vec<_>>(), &file);
    let matches = Cli::command().args_override_self(true).try_get_matches_from(words)?;
    match Cli::from_arg_matches(&matches)?.command {
        Command::Check(mut scenario) => {
            scenario.input.set_file(file);
            Ok(scenario)
        }
        _ => Err(clap::Error::new(clap::error::ErrorKind::InvalidSubcommand)),
    }
}

/// The command whose options scenario files may name.
pub(crate) fn run_command() -> clap::Command {
    let all = Cli::command();
    all.find_subcommand("run").cloned().unwrap_or(all)
}

/// Whether a command has the option of an argument.
fn has_option(command: &clap::Command, argument: &str) -> bool {
    let option = argument.trim_start_matches('-').split('=').next();
    command.get_arguments().any(|known| known.get_long() == option)
}

/// Executes a command and says how it went.
pub fn execute(cli: Cli) -> ExitCode {
    let status = match cli.command {
        Command::Run(args) => run(&args),
        Command::Check(args) => run_check(&args),
        Command::Demo => demo::run(),
        Command::Verify(args) => run_verify(&args),
        Command::Reference { folders, accel, memo } => compare(&folders, accel, &memo),
        Command::Sweep(command) => command.execute(),
        Command::Memo(command) => command.execute(),
        Command::Plugin(command) => command.execute(),
        Command::Workload(command) => command.execute(),
        Command::Scenarios { name } => scenario_file::list(name.as_deref()),
        Command::Fcg(args) => run_fcg(&args),
        Command::Completions { shell } => {
            clap_complete::generate(shell, &mut Cli::command(), "wormhole", &mut io::stdout());
            Ok(ExitStatus::Done)
        }
        Command::Topo(command) => command.execute(),
        Command::Cosim(command) => command.execute(),
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

/// The scenario and the memo of `wormhole run`, from its arguments: a scenario, and options.
///
/// # Errors
/// Those that [`execute`] would end with. What is wrong has been told on standard error.
pub fn open_run(arguments: &[&str]) -> Result<(Scenario, Memo), ExitCode> {
    let words = ["wormhole", "run"].iter().chain(arguments).map(OsString::from).collect();
    match Cli::from_arguments(words)?.command {
        Command::Run(args) => Ok(open(&args.scenario, &args.scenario.input.files())?),
        _ => Err(ExitStatus::BadInput.into()),
    }
}

/// Reads a scenario; tells on standard error what was found and what the files were taken for.
fn load(input: &InputArgs, files: &Files, options: &Options) -> Result<Scenario, ExitStatus> {
    let Loaded { scenario, description, found } = input.load(files, options).map_err(|(status, found)| {
        tell(&found);
        status
    })?;
    tell(&found);
    if scenario.is_some() {
        eprintln!("{description}");
    }
    scenario.ok_or(ExitStatus::BadInput)
}

/// Tells findings on standard error.
pub(crate) fn tell(found: &Diagnostics) {
    found.all().iter().for_each(|finding| eprintln!("{finding}"));
}

/// Scenario and memo of a command; tells on standard error what is odd about them.
pub(crate) fn open(args: &ScenarioArgs, files: &Files) -> Result<(Scenario, Memo), ExitStatus> {
    let scenario = load(&args.input, files, &args.options())?;
    let (memo, found) = args.memo();
    tell(&found);
    Ok((scenario, memo.ok_or(ExitStatus::BadInput)?))
}

/// Extends the memo file, if there is one, and tells what is odd. The status is [`ExitStatus::Done`] unless a record
/// has proved wrong.
pub(crate) fn finish(memo: Memo) -> io::Result<ExitStatus> {
    let found = memo.finish()?;
    tell(&found);
    Ok(if found.has_errors() { ExitStatus::ErrorBound } else { ExitStatus::Done })
}

fn run(args: &RunArgs) -> io::Result<ExitStatus> {
    let begun = Instant::now();
    let (scenario, mut memo) = match open(&args.scenario, &args.scenario.input.files()) {
        Ok(opened) => opened,
        Err(status) => return Ok(status),
    };
    let load = begun.elapsed();
    interrupt::listen()?;
    let mut recording = match args.recording.start(&scenario)? {
        Ok(recording) => recording,
        Err(status) => return Ok(status),
    };
    let folder = ResultFolder::create(&args.out, args.parquet, load)?;
    let outcome = simulate_recorded(&scenario, &mut memo, &folder, &mut recording)?;
    recording.finish()?;
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(refused) => return Ok(report_refusals(args.scenario.input.flows(), &refused)),
    };
    let summary = folder.complete(&scenario, &outcome)?;
    let records = finish(memo)?;
    let mut out = io::stdout();
    write!(out, "{}", table::summary(&summary))?;
    write!(out, "{}", table::jobs(&outcome))?;
    writeln!(out, "results are in {}", args.out.display())?;
    Ok(explain(&outcome).unless(records))
}

fn run_check(args: &ScenarioArgs) -> io::Result<ExitStatus> {
    let scenario = match open(args, &args.input.files()) {
        Ok((scenario, _)) => scenario,
        Err(status) => return Ok(status),
    };
    let refused = check::refusals(&scenario);
    if !refused.is_empty() {
        return Ok(report_refusals(args.input.flows(), &refused));
    }
    tell(&check::oddities(&scenario));
    write!(io::stdout(), "{}", check::describe(&scenario))?;
    Ok(ExitStatus::Done)
}

/// Simulates while results so far go to the folder, and what is asked for is recorded.
fn simulate_recorded(
    scenario: &Scenario,
    memo: &mut Memo,
    folder: &ResultFolder,
    recording: &mut Recording,
) -> io::Result<Result<Outcome, Vec<Refusal>>> {
    let is_recorded = !recording.is_empty();
    let (mut observer, trace) = recording.split();
    let mut running = Running::new(scenario, folder, trace)?;
    // Without recordings nothing is observed, which is faster.
    let outcome = if is_recorded {
        simulate_observed(scenario, Some(memo), &mut observer, &mut running)
    } else {
        simulate_memoised(scenario, memo, &mut running)
    };
    running.end()?;
    Ok(outcome)
}

pub(crate) fn report_refusals(flows: &Path, refused: &[Refusal]) -> ExitStatus {
    for Refusal { flow, error } in refused {
        match flow {
            Some(index) => eprintln!("{}: error: {error} (flow {})", flows.display(), index + 1),
            None => eprintln!("wormhole: {error}"),
        }
    }
    ExitStatus::BadInput
}

fn run_verify(args: &VerifyArgs) -> io::Result<ExitStatus> {
    let (scenario, mut memo) = match open(&args.scenario, &args.scenario.input.files()) {
        Ok(opened) => opened,
        Err(status) => return Ok(status),
    };
    std::fs::create_dir_all(&args.out)?;
    let mut run = |scenario: &Scenario| simulate_memoised(scenario, &mut memo, &mut ProgressLine::new());
    let Verification { plain, report } = match verify(&scenario, args.ensemble, args.max_error, &mut run) {
        Ok(verification) => verification,
        Err(refused) => return Ok(report_refusals(args.scenario.input.flows(), &refused)),
    };
    // Then runs differ for another reason than acceleration.
    if let Some(fault) = scenario.plugins.fault() {
        eprintln!("{fault}");
        return Ok(ExitStatus::Plugin);
    }
    let path = args.out.join("verify.json");
    write_report(&path, &report)?;
    replace_with(&args.out.join("report.html"), |out| {
        let scenario = at_tier(&scenario, Tier::Off);
        report::write_report(out, &scenario, &plain, &Summary::new(&scenario, &plain), Some(&report))
    })?;
    let records = finish(memo)?;
    let mut out = io::stdout();
    write!(out, "{report}")?;
    writeln!(out, "the figures are in {}", path.display())?;
    let faults = report.faults();
    faults.iter().for_each(|fault| eprintln!("{fault}"));
    Ok(if faults.is_empty() { explain(&plain).unless(records) } else { ExitStatus::ErrorBound })
}

fn write_report(path: &Path, report: &Report) -> io::Result<()> {
    let mut out = BufWriter::new(File::create(path)?);
    serde_json::to_writer_pretty(&mut out, report)?;
    writeln!(out)?;
    out.flush()
}

fn compare(folders: &[PathBuf], accel: ReferenceTier, memo: &MemoArgs) -> io::Result<ExitStatus> {
    let options = Options { acceleration: accel.acceleration(), ..reference::NS3 };
    let (memo, found) = memo.open(options.acceleration.tier);
    tell(&found);
    let Some(mut memo) = memo else { return Ok(ExitStatus::BadInput) };
    let mut simulate = |scenario: &Scenario| simulate_memoised(scenario, &mut memo, &mut ());
    let (mut out, mut equal, mut all) = (io::stdout(), 0, 0);
    for folder in folders {
        for run in reference::find_runs(folder)? {
            let comparison = reference::compare_with(&run, &options, &mut simulate);
            writeln!(out, "{comparison}")?;
            all += 1;
            equal += (comparison.verdict == reference::Verdict::Equal) as usize;
        }
    }
    writeln!(out, "{equal} of {all} runs equal ns-3")?;
    let records = finish(memo)?;
    Ok(if equal == all && all > 0 { records } else { ExitStatus::Differs })
}

fn run_fcg(args: &FcgArgs) -> io::Result<ExitStatus> {
    let scenario = match load(&args.input, &args.input.files(), &args.input.options()) {
        Ok(scenario) => scenario,
        Err(status) => return Ok(status),
    };
    let graph = match flow_graph(&scenario, args.at) {
        Ok(graph) => graph,
        Err(NoGraph::Refused(refused)) => return Ok(report_refusals(args.input.flows(), &refused)),
        Err(NoGraph::OutOf(fault)) => return Ok(out_of(&fault)),
        Err(NoGraph::Plugin(fault)) => {
            eprintln!("{fault}");
            return Ok(ExitStatus::Plugin);
        }
    };
    let mut out = io::stdout();
    match args.format {
        GraphFormat::Text => write!(out, "{graph}")?,
        GraphFormat::Dot => write!(out, "{}", graph.dot())?,
    }
    Ok(ExitStatus::Done)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(line: &str) -> Result<Command, clap::error::ErrorKind> {
        Cli::try_parse_from(line.split_whitespace()).map(|cli| cli.command).map_err(|error| error.kind())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn verify_takes_what_run_takes_and_its_own() {
        let line = "wormhole verify --topology t --flows f --profile ns3 --accel exact";
        let Ok(Command::Verify(args)) = parse(line) else { panic!("{line}") };
        assert_eq!((args.ensemble, args.max_error, args.out), (0, None, "wormhole-out".into()));
        assert_eq!(args.scenario.options().acceleration.tier, Tier::Exact);
        let Ok(Command::Verify(args)) = parse(&format!("{line} --ensemble 8 --max-error 0.01 --out o")) else {
            panic!("{line}")
        };
        assert_eq!((args.ensemble, args.max_error, args.out), (8, Some(0.01), "o".into()));
        assert!(parse(&format!("{line} --max-error -1")).is_err());
        assert!(parse(&format!("{line} --ensemble x")).is_err());
    }

    #[test]
    fn a_sweep_is_a_file_or_a_joining_of_folders() {
        for good in ["sweep s.toml", "sweep s.toml --out o --jobs 3 --shard 2/3 --resume", "sweep join o a b"] {
            assert!(matches!(parse(&format!("wormhole {good}")), Ok(Command::Sweep(_))), "{good}");
        }
        for bad in ["sweep", "sweep join", "sweep join o", "sweep s.toml --jobs 0", "sweep s.toml --shard 0/1"] {
            assert!(parse(&format!("wormhole {bad}")).is_err(), "{bad}");
        }
    }

    #[test]
    fn reference_runs_are_not_accelerated_unless_asked_and_never_with_an_error() {
        let tier = |line: &str| match parse(line) {
            Ok(Command::Reference { accel, .. }) => Ok(accel.acceleration().tier),
            Ok(other) => panic!("{other:?}"),
            Err(kind) => Err(kind),
        };
        assert_eq!(tier("wormhole reference folder"), Ok(Tier::Off));
        assert_eq!(tier("wormhole reference folder --accel exact"), Ok(Tier::Exact));
        assert_eq!(tier("wormhole reference folder --accel bounded"), Err(clap::error::ErrorKind::InvalidValue));
    }
}

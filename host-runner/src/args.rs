//! Arguments that commands share.

use crate::input::diagnostics::Diagnostics;
use crate::jobs::{FileJob, JobKind, JobSource};
use crate::load::{Files, Loaded, Source, load_files};
use crate::memo::{Memo, MemoKeys, MemoOptions, SharedStore};
use crate::plugin::{CcaChoice, NoPlugins, PluginSpec, Plugins};
use crate::scenario::{DEFAULT_MAX_FLOWS, DEFAULT_MAX_PACKETS, Options, Profile, Routing};
use crate::scenario_file::ScenarioFile;
use clap::{Args, ValueEnum, ValueHint};
use std::path::{Path, PathBuf};
use wormhole_kernel::Span;
use wormhole_kernel::accel::{Acceleration, Detector, Tier};

/// What is simulated, and how it is accelerated.
#[derive(Args, Debug)]
pub(crate) struct ScenarioArgs {
    #[command(flatten)]
    pub(crate) input: InputArgs,
    #[command(flatten)]
    accel: AccelArgs,
    #[command(flatten)]
    memo: MemoArgs,
    /// Threads to simulate with. What comes of it does not depend on their number. Default: one, with one kernel.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(1..=64))]
    threads: Option<u16>,
}

impl ScenarioArgs {
    /// The choices that are not in input files, without plugins.
    pub(crate) fn options(&self) -> Options {
        Options {
            acceleration: self.accel.acceleration(),
            threads: self.threads.map(usize::from),
            ..self.input.options()
        }
    }

    /// What is memoised; `None` if it cannot be as it is asked for: the findings say why.
    pub(crate) fn memo(&self) -> (Option<Memo>, Diagnostics) {
        self.memo.open(self.accel.acceleration().tier)
    }

    /// As [`memo`](Self::memo), but records are kept in a store that runs share.
    pub(crate) fn memo_shared(&self, store: SharedStore) -> (Option<Memo>, Diagnostics) {
        match &self.memo.memo {
            Some(path) => {
                let mut found = Diagnostics::of("--memo");
                found.error(0, &path.display().to_string(), "these runs share a store of their own: name no memo file");
                (None, found)
            }
            None => Memo::sharing(self.memo.options(), store, self.accel.acceleration().tier),
        }
    }
}

/// What is simulated.
#[derive(Args, Debug)]
pub(crate) struct InputArgs {
    /// Scenario: the name of an embedded one (see `wormhole scenarios`) or a TOML file.
    #[arg(value_name = "SCENARIO", required_unless_present = "topology")]
    scenario: Option<String>,
    /// A variant of the scenario.
    #[arg(long, value_name = "NAME", requires = "scenario")]
    variant: Option<String>,
    /// What the scenario says.
    #[arg(skip)]
    file: Option<ScenarioFile>,
    /// Topology file.
    #[arg(long, value_name = "FILE")]
    topology: Option<PathBuf>,
    /// Flow file.
    #[arg(long, value_name = "FILE")]
    flows: Option<PathBuf>,
    /// Workload of all hosts, in a file: of SimAI or AICB, GOAL, a connection matrix of htsim, or the prefix of Chakra
    /// traces.
    #[arg(long, value_name = "FILE")]
    workload: Option<PathBuf>,
    /// Of a Chakra workload: communicator groups, JSON such as {"1": [0, 1]}.
    #[arg(long, value_name = "FILE", requires = "workload")]
    groups: Option<PathBuf>,
    #[command(flatten)]
    models: ModelArgs,
}

/// How the fabric and its hosts behave.
#[derive(Args, Debug)]
#[command(next_help_heading = "Models")]
struct ModelArgs {
    /// Configuration file.
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// File of link changes: rows of `time_us down|up a b` (links between two nodes) or `time_us down|up a` (all links
    /// of a node).
    #[arg(long, value_name = "FILE")]
    link_events: Option<PathBuf>,
    /// Model family.
    #[arg(long, value_enum, default_value = "ps")]
    profile: Profile,
    /// Congestion control, overrides CC_MODE: dcqcn, hpcc, timely, dctcp, swift, fixed (a window at line rate), or the
    /// name of a plugin's.
    #[arg(long, value_name = "NAME", value_parser = CcaChoice::parse)]
    cca: Option<CcaChoice>,
    /// Shared object with a model: a congestion control, a marker or a buffer manager, which is used in place of the
    /// usual one. May be given several times.
    #[arg(long, value_name = "FILE[:KEY=VALUE,...]", value_parser = PluginSpec::parse, value_hint = ValueHint::AnyPath)]
    plugin: Vec<PluginSpec>,
    /// Routing (profile ps).
    #[arg(long, value_enum, default_value = "ecmp")]
    routing: Routing,
    /// Seed of everything random (profile ps).
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Most frames in the fabric at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_PACKETS)]
    max_packets: usize,
    /// Most flows of jobs at once.
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_FLOWS)]
    max_flows: usize,
    /// Granularity of rates as of hardware registers, in bit/s (HPCC, profile ps); 0: none.
    #[arg(long, value_name = "BPS", default_value_t = 0)]
    rate_quantum: u64,
}

impl InputArgs {
    /// The scenario and the variant that are asked for.
    pub(crate) fn scenario(&self) -> Option<(&str, Option<&str>)> {
        self.scenario.as_deref().map(|scenario| (scenario, self.variant.as_deref()))
    }

    /// Takes up what the scenario says beside options.
    pub(crate) fn set_file(&mut self, file: ScenarioFile) {
        self.file = Some(file);
    }

    /// The input files.
    pub(crate) fn files(&self) -> Files {
        let (fabric, mut jobs, config) = match &self.file {
            Some(file) => (file.fabric.clone(), file.jobs.clone(), file.config.clone()),
            None => (None, Vec::new(), None),
        };
        let file = |path: &PathBuf| FileJob::new(path.clone(), self.groups.clone());
        let workload = self.workload.as_ref().map(file);
        jobs.extend(workload.map(|job| JobSource { kind: JobKind::File(job), file: "--workload".into(), line: 0 }));
        let given = self.topology.clone().map(Source::File);
        Files {
            // Without any, an empty text: that it is no topology will be told.
            topology: given.or(fabric).unwrap_or(Source::Text { name: "[fabric]".into(), text: String::new() }),
            flows: self.flows.clone(),
            config: self.models.config.clone().map(Source::File).or(config),
            link_events: self.models.link_events.clone(),
            jobs,
            is_open: false,
        }
    }

    /// What a refused flow is told to be in.
    pub(crate) fn flows(&self) -> &Path {
        self.flows.as_deref().unwrap_or(Path::new("flows"))
    }

    /// Reads files and loads the plugins.
    ///
    /// # Errors
    /// [`NoPlugins`].
    pub(crate) fn load(&self, files: &Files, options: &Options) -> Result<Loaded, NoPlugins> {
        let plugins = self.plugins()?;
        Ok(load_files(files, &Options { plugins, ..*options }))
    }

    fn plugins(&self) -> Result<Plugins, NoPlugins> {
        Plugins::load(&self.models.plugin, self.models.cca.as_ref())
    }

    /// The choices that are not in input files, without plugins; every event is executed.
    pub(crate) fn options(&self) -> Options {
        let models = &self.models;
        Options {
            profile: models.profile,
            seed: models.seed,
            cca: match models.cca {
                Some(CcaChoice::Own(name)) => Some(name),
                _ => None,
            },
            routing: models.routing,
            max_packets: models.max_packets,
            max_flows: models.max_flows,
            rate_quantum: models.rate_quantum,
            ..Options::PLAIN
        }
    }
}

/// How to accelerate.
#[derive(Args, Debug)]
#[command(next_help_heading = "Acceleration")]
struct AccelArgs {
    /// What may be skipped.
    #[arg(long, value_enum, default_value = "bounded")]
    accel: TierName,
    /// How steady states are recognised (tier bounded).
    #[arg(long, value_enum, default_value = "cycle")]
    detector: DetectorName,
    /// Largest relative range of a steady rate, in percent: above 0, at most 100; default 2 (cycle) or 5 (paper).
    #[arg(long, value_name = "PERCENT", value_parser = parts_per_million)]
    theta: Option<u32>,
    /// Window of the detector, at least 1. Detector cycle: the shortest one, in microseconds, default 18.
    /// Detector paper: l, the number of samples, one every microsecond, default 2000.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    window: Option<u32>,
}

/// A [`Tier`] as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum TierName {
    /// Nothing: every event is executed.
    Off,
    /// What is proven to repeat: the results are those of `off`, bit for bit.
    Exact,
    /// Also steady states, with an error that is bounded by measurement.
    Bounded,
}

/// A [`Detector`] as an argument.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum DetectorName {
    /// By goodput, over a window that grows to a cycle of the congestion control, with a test for drift.
    Cycle,
    /// By the sending rate over a fixed window, as in the Wormhole paper.
    Paper,
}

impl AccelArgs {
    fn acceleration(&self) -> Acceleration {
        let tier = match self.accel {
            TierName::Off => Tier::Off,
            TierName::Exact => Tier::Exact,
            TierName::Bounded => Tier::Bounded,
        };
        Acceleration { tier, detector: self.detector() }
    }

    /// The detector; what the user leaves open has the kernel's defaults.
    fn detector(&self) -> Detector {
        let default = match self.detector {
            DetectorName::Cycle => Detector::CYCLE,
            DetectorName::Paper => Detector::PAPER,
        };
        match default {
            Detector::Cycle { theta, window } => Detector::Cycle {
                theta: self.theta.unwrap_or(theta),
                window: self.window.map_or(window, |us| Span::from_us(us.into())),
            },
            Detector::Paper { theta, samples, interval } => Detector::Paper {
                theta: self.theta.unwrap_or(theta),
                samples: self.window.unwrap_or(samples),
                interval,
            },
        }
    }
}

/// Share of hits that are checked, in percent, unless the user says otherwise.
const DEFAULT_CHECK: &str = if cfg!(debug_assertions) { "10" } else { "0" };

/// What to memoise.
#[derive(Args, Debug)]
#[command(next_help_heading = "Acceleration")]
pub(crate) struct MemoArgs {
    /// Memo file: its records are used, and new ones are added to it. It is made if it is not there.
    #[arg(long, value_name = "FILE")]
    memo: Option<PathBuf>,
    /// How alike partitions must be to share a record; default: exact with --accel exact, quantised with bounded.
    #[arg(long, value_enum, value_name = "KEYS")]
    memo_keys: Option<MemoKeys>,
    /// Most memory for records, in MB.
    #[arg(long, value_name = "MB", default_value_t = 64, value_parser = clap::value_parser!(u32).range(1..))]
    memo_limit: u32,
    /// Share of hits that are simulated all the same and compared with their records, in percent (exact keys).
    #[arg(long, value_name = "PERCENT", default_value = DEFAULT_CHECK, value_parser = share)]
    memo_check: u32,
}

impl MemoArgs {
    /// For runs of up to this tier.
    pub(crate) fn open(&self, tier: Tier) -> (Option<Memo>, Diagnostics) {
        Memo::open(self.options(), self.memo.as_deref(), tier)
    }

    fn options(&self) -> MemoOptions {
        let limit_words = self.memo_limit as usize * (1_000_000 / size_of::<u64>());
        MemoOptions { keys: self.memo_keys, check: self.memo_check, limit_words }
    }
}

/// The tiers that equal ns-3, or else it is a fault.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum ReferenceTier {
    /// Every event is executed.
    Off,
    /// What is proven to repeat is skipped.
    Exact,
}

impl ReferenceTier {
    /// An acceleration of this tier.
    pub(crate) fn acceleration(self) -> Acceleration {
        let tier = match self {
            ReferenceTier::Off => Tier::Off,
            ReferenceTier::Exact => Tier::Exact,
        };
        Acceleration { tier, ..Acceleration::default() }
    }
}

/// A share in percent, above 0 and at most 100, in parts per million.
fn parts_per_million(text: &str) -> Result<u32, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    // Not a number is in no range.
    if !(percent > 0.0 && percent <= 100.0) {
        return Err("it must be above 0 and at most 100".into());
    }
    match (percent * 1e4).round() as u32 {
        0 => Err("the least is 0.0001".into()),
        parts => Ok(parts),
    }
}

/// A share in percent, from 0 to 100, in parts per million.
fn share(text: &str) -> Result<u32, String> {
    let percent: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    // Not a number is in no range.
    if (0.0..=100.0).contains(&percent) {
        Ok((percent * 1e4).round() as u32)
    } else {
        Err("it must be 0 to 100".into())
    }
}

/// A share as a fraction, 0 or more.
pub(crate) fn fraction(text: &str) -> Result<f64, String> {
    let fraction: f64 = text.parse().map_err(|_| "not a number".to_owned())?;
    if fraction.is_finite() && fraction >= 0.0 { Ok(fraction) } else { Err("it must be 0 or more".into()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Parser, error::ErrorKind};

    #[derive(Parser, Debug)]
    struct Line {
        #[command(flatten)]
        args: ScenarioArgs,
    }

    fn parse(options: &str) -> Result<Options, ErrorKind> {
        let words = "wormhole --topology t --flows f".split(' ').chain(options.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args.options()).map_err(|error| error.kind())
    }

    fn acceleration(options: &str) -> (Tier, Detector) {
        let Acceleration { tier, detector } = parse(options).expect(options).acceleration;
        (tier, detector)
    }

    #[test]
    fn acceleration_is_bounded_by_default_and_has_the_kernels_defaults() {
        assert_eq!(acceleration(""), (Tier::Bounded, Detector::CYCLE));
        assert_eq!(acceleration("--accel off"), (Tier::Off, Detector::CYCLE));
        assert_eq!(acceleration("--accel exact"), (Tier::Exact, Detector::CYCLE));
        assert_eq!(acceleration("--detector paper"), (Tier::Bounded, Detector::PAPER));
        assert_eq!(parse("").expect("options").rate_quantum, 0);
        assert_eq!(parse("--rate-quantum 1000000").expect("options").rate_quantum, 1_000_000);
    }

    /// The help text states them; it cannot be made of constants.
    #[test]
    fn help_states_the_kernels_defaults() {
        assert_eq!(Detector::CYCLE, Detector::Cycle { theta: 20_000, window: Span::from_us(18) });
        let interval = Span::from_us(1);
        assert_eq!(Detector::PAPER, Detector::Paper { theta: 50_000, samples: 2_000, interval });
    }

    #[test]
    fn theta_and_window_go_to_the_detector() {
        let cycle = |theta, us| (Tier::Bounded, Detector::Cycle { theta, window: Span::from_us(us) });
        assert_eq!(acceleration("--theta 0.5 --window 100"), cycle(5_000, 100));
        assert_eq!(acceleration("--theta 100"), cycle(1_000_000, 18));
        assert_eq!(acceleration("--theta 0.0001 --window 1"), cycle(1, 1));
        let interval = Span::from_us(1);
        let paper = |theta, samples| (Tier::Bounded, Detector::Paper { theta, samples, interval });
        assert_eq!(acceleration("--detector paper --theta 7.25"), paper(72_500, 2_000));
        assert_eq!(acceleration("--detector paper --window 4294967295"), paper(50_000, u32::MAX));
    }

    #[test]
    fn values_out_of_range_are_refused() {
        for theta in ["0", "100.1", "nan", "inf", "x", "0.00001"] {
            assert_eq!(parse(&format!("--theta {theta}")).err(), Some(ErrorKind::ValueValidation), "{theta}");
        }
        for window in ["0", "1.5", "4294967296"] {
            assert_eq!(parse(&format!("--window {window}")).err(), Some(ErrorKind::ValueValidation), "{window}");
        }
        assert_eq!(parse("--accel most").err(), Some(ErrorKind::InvalidValue));
        assert_eq!(parse("--detector none").err(), Some(ErrorKind::InvalidValue));
    }

    fn memo(options: &str) -> Result<MemoOptions, ErrorKind> {
        let words = "wormhole --topology t --flows f".split(' ').chain(options.split_whitespace());
        Line::try_parse_from(words).map(|line| line.args.memo.options()).map_err(|error| error.kind())
    }

    #[test]
    fn memoisation_has_limits_and_checks() {
        let debug = cfg!(debug_assertions);
        let check = if debug { 100_000 } else { 0 };
        assert_eq!(memo(""), Ok(MemoOptions { keys: None, check, limit_words: 8_000_000 }));
        let keys = Some(MemoKeys::Exact);
        let options = "--memo-keys exact --memo-limit 1 --memo-check 2.5";
        assert_eq!(memo(options), Ok(MemoOptions { keys, check: 25_000, limit_words: 125_000 }));
        assert_eq!(memo("--memo-check 100").map(|memo| memo.check), Ok(1_000_000));
        for check in ["-1", "100.1", "nan", "x"] {
            assert_eq!(memo(&format!("--memo-check={check}")), Err(ErrorKind::ValueValidation), "{check}");
        }
        assert_eq!(memo("--memo-limit 0"), Err(ErrorKind::ValueValidation));
        assert_eq!(memo("--memo-keys some"), Err(ErrorKind::InvalidValue));
    }

    #[test]
    fn fractions_are_finite_and_not_negative() {
        assert_eq!((fraction("0"), fraction("0.01"), fraction("2")), (Ok(0.0), Ok(0.01), Ok(2.0)));
        assert!(["-1", "nan", "inf", "1%"].iter().all(|text| fraction(text).is_err()));
    }
}

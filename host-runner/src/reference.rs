//! Comparing runs with those of the real ns-3.

use crate::input::diagnostics::Diagnostics;
use crate::input::fct::{self, FctRow};
use crate::load::{Files, Source, load_files};
use crate::outputs::{fct_rows, write_pfc};
use crate::scenario::{Options, Profile, Scenario};
use crate::simulate::{Outcome, Refusal, simulate};
use std::fmt;
use std::path::{Path, PathBuf};
use wormhole_kernel::accel::Tier;

/// Options of a run that shall equal ns-3's, every packet simulated.
pub const NS3: Options = Options { profile: Profile::Ns3, ..Options::PLAIN };

/// How a run compares.
#[derive(Clone, PartialEq, Debug)]
pub enum Verdict {
    /// `fct.txt` is the same, byte for byte, and so is `pfc.txt` where there is one.
    Equal,
    /// The first difference.
    Differs(String),
    /// The run could not be made.
    Unusable(String),
}

/// A run compared with its reference.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// The folder's name.
    pub name: String,
    /// How it compares.
    pub verdict: Verdict,
    /// Flows in the reference.
    pub flows: usize,
    /// Frames put on a wire.
    pub packet_hops: u64,
    /// Processor time of the run, seconds.
    pub cpu_s: f64,
    /// [`Outcome::event_ratio`](crate::simulate::Outcome::event_ratio) of an accelerated run.
    pub event_ratio: Option<f64>,
}

impl fmt::Display for Comparison {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match &self.verdict {
            Verdict::Equal => "equal",
            Verdict::Differs(how) => &format!("DIFFERS: {how}"),
            Verdict::Unusable(why) => &format!("UNUSABLE: {why}"),
        };
        let speed = if self.cpu_s > 0.0 { self.packet_hops as f64 / self.cpu_s / 1e6 } else { 0.0 };
        let Comparison { name, flows, packet_hops, cpu_s, .. } = self;
        write!(f, "{name:<28} {flows:>5} flows {packet_hops:>9} packet-hops {cpu_s:>8.3} s {speed:>6.1} M/s  ")?;
        if let Some(ratio) = self.event_ratio {
            write!(f, "event ratio {ratio:>8.2}  ")?;
        }
        f.write_str(verdict)
    }
}

/// The folders below `folder` (or itself) that hold a reference run: inputs and an `fct.txt`. Sorted by path.
///
/// # Errors
/// Those of reading folders.
pub fn find_runs(folder: &Path) -> std::io::Result<Vec<PathBuf>> {
    let mut runs = Vec::new();
    let is_run = ["topology.txt", "flow.txt", "config.txt", "fct.txt"].iter().all(|f| folder.join(f).is_file());
    if is_run {
        runs.push(folder.to_owned());
    }
    for entry in std::fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            runs.extend(find_runs(&path)?);
        }
    }
    runs.sort();
    Ok(runs)
}

/// Makes a run: [`simulate`], perhaps with memoisation.
pub type Runner<'r> = dyn FnMut(&Scenario) -> Result<Outcome, Vec<Refusal>> + 'r;

/// Makes the run of a folder and compares. `options` are [`NS3`], perhaps with an acceleration.
pub fn compare(folder: &Path, options: &Options) -> Comparison {
    compare_with(folder, options, &mut |scenario| simulate(scenario, &mut ()))
}

/// As [`compare`], with runs of the caller's making.
pub fn compare_with(folder: &Path, options: &Options, simulate: &mut Runner<'_>) -> Comparison {
    let name = folder.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
    let mut comparison =
        Comparison { name, verdict: Verdict::Equal, flows: 0, packet_hops: 0, cpu_s: 0.0, event_ratio: None };
    comparison.verdict = run(folder, options, simulate, &mut comparison).unwrap_or_else(Verdict::Unusable);
    comparison
}

fn run(
    folder: &Path,
    options: &Options,
    simulate: &mut Runner<'_>,
    comparison: &mut Comparison,
) -> Result<Verdict, String> {
    let file = |name: &str| folder.join(name);
    let files = Files {
        topology: Source::File(file("topology.txt")),
        flows: Some(file("flow.txt")),
        config: Some(Source::File(file("config.txt"))),
        link_events: None,
        jobs: Vec::new(),
        is_open: false,
    };
    let loaded = load_files(&files, options);
    let Some(scenario) = loaded.scenario else {
        return Err(loaded.found.all().first().map_or_else(String::new, |d| d.to_string()));
    };
    let reference = std::fs::read_to_string(file("fct.txt")).map_err(|e| e.to_string())?;
    let mut found = Diagnostics::of("fct.txt");
    let want = fct::parse(&reference, &mut found);
    if found.has_errors() {
        return Err(found.all()[0].to_string());
    }
    comparison.flows = want.len();
    let outcome = simulate(&scenario).map_err(|refused| refused[0].error.to_string())?;
    comparison.packet_hops = outcome.totals.packet_hops;
    comparison.cpu_s = outcome.cpu.as_secs_f64();
    comparison.event_ratio = (options.acceleration.tier != Tier::Off).then(|| outcome.event_ratio());
    let got: Vec<FctRow> = fct_rows(&outcome).collect::<Result<_, _>>().map_err(|e| e.to_string())?;
    if let Some(difference) = first_difference(&want, &got) {
        return Ok(Verdict::Differs(difference));
    }
    let Ok(want_pfc) = std::fs::read_to_string(file("pfc.txt")) else { return Ok(Verdict::Equal) };
    let mut got_pfc = Vec::new();
    write_pfc(&mut got_pfc, &scenario, &outcome.pfc).map_err(|e| e.to_string())?;
    let got_pfc = String::from_utf8_lossy(&got_pfc);
    let lines = want_pfc.lines().zip(got_pfc.lines()).position(|(w, g)| w != g);
    Ok(match lines {
        Some(line) => Verdict::Differs(format!("pfc.txt, line {}", line + 1)),
        None if want_pfc.lines().count() != got_pfc.lines().count() => {
            let (w, g) = (want_pfc.lines().count(), got_pfc.lines().count());
            Verdict::Differs(format!("pfc.txt has {w} lines, here {g}"))
        }
        None => Verdict::Equal,
    })
}

fn first_difference(want: &[FctRow], got: &[FctRow]) -> Option<String> {
    let at = want.iter().zip(got).position(|(w, g)| w != g);
    match at {
        Some(at) => {
            let same = want.iter().zip(got).filter(|(w, g)| w == g).count();
            Some(format!("row {}: ns-3 has `{}`, here `{}`; {same} rows equal", at + 1, want[at], got[at]))
        }
        None if want.len() != got.len() => Some(format!("ns-3 finished {} flows, here {}", want.len(), got.len())),
        None => None,
    }
}

//! The embedded example: `wormhole demo`.

use crate::ending::{ExitStatus, explain};
use crate::load::{Texts, load_texts};
use crate::outputs::Summary;
use crate::progress::ProgressLine;
use crate::scenario::{CcaName, Options};
use crate::simulate::{Outcome, simulate};
use crate::table;
use std::io::{self, Write};

const TOPOLOGY: &str = include_str!("demo/topology.txt");
const FLOWS: &str = include_str!("demo/flows.txt");

/// The demo under HPCC in profile `ps`, packet by packet.
const OPTIONS: Options = Options { cca: Some(CcaName::Hpcc), ..Options::PLAIN };

/// Runs the demo and prints a table of its flows.
///
/// # Errors
/// Those of standard output.
pub fn run() -> io::Result<ExitStatus> {
    let (topology, flows) = (("demo topology", TOPOLOGY), ("demo flows", FLOWS));
    let loaded = load_texts(&Texts { topology, flows: Some(flows), config: None, link_events: None }, &OPTIONS);
    let Some(scenario) = loaded.scenario else {
        loaded.found.all().iter().for_each(|f| eprintln!("{f}"));
        return Ok(ExitStatus::BadInput);
    };
    let mut out = io::stdout();
    writeln!(out, "{}\n", loaded.description)?;
    let mut progress = ProgressLine::new();
    let outcome = match simulate(&scenario, &mut progress) {
        Ok(outcome) => outcome,
        Err(refused) => {
            refused.iter().for_each(|r| eprintln!("{}", r.error));
            return Ok(ExitStatus::BadInput);
        }
    };
    drop(progress);
    write_flows(&mut out, &outcome)?;
    write!(out, "\n{}", table::summary(&Summary::new(&scenario, &outcome)))?;
    Ok(explain(&outcome))
}

fn write_flows(out: &mut impl Write, outcome: &Outcome) -> io::Result<()> {
    writeln!(out, "{:>4} {:>4} {:>10} {:>12} {:>12} {:>9}", "from", "to", "bytes", "start us", "FCT us", "slowdown")?;
    for record in outcome.flows.in_memory() {
        let us = |ps: u64| ps as f64 / 1e6;
        writeln!(
            out,
            "{:>4} {:>4} {:>10} {:>12.3} {:>12.3} {:>9.3}",
            record.src.0,
            record.dst.0,
            record.completion.bytes,
            us(record.completion.start.0),
            us(record.completion.fct.0),
            record.completion.fct.0 as f64 / record.ideal.0 as f64
        )?;
    }
    Ok(())
}

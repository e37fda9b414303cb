//! `wormhole cosim`: a fabric whose hosts are ports of other programs, or of hardware.

mod addresses;
mod bridge;
#[cfg(test)]
mod bridge_tests;
mod device;
pub(crate) mod frame;
mod lateness;
mod pacer;
pub(crate) mod simbricks;
mod simulation;
mod tap;

use crate::args::{InputArgs, ScenarioArgs};
use crate::capture::Capture;
use crate::cli::{finish, open, report_refusals};
use crate::ending::{ExitStatus, explain};
use crate::input::units;
use crate::load::Files;
use crate::outputs::ResultFolder;
use crate::scenario::Scenario;
use crate::simulate::{Ending, simulate_driven};
use crate::table;
use crate::traffic::Halt;
use addresses::Addresses;
use bridge::{Bridge, Counts};
use clap::{Args, Subcommand};
use frame::Mac;
use simbricks::SimbricksArgs;
use simulation::{Driven, Losses, Simulation};
use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;
use tap::TapArgs;
use wormhole_kernel::{NodeId, NodeKind, SimTime, Span};

/// With what a fabric is joined.
#[derive(Subcommand, Debug)]
pub(crate) enum CosimCommand {
    /// Join hosts with other simulators by SimBricks' Ethernet protocol.
    Simbricks(SimbricksArgs),
    /// Join hosts with network interfaces of this machine, in real time.
    Tap(TapArgs),
}

impl CosimCommand {
    /// What is simulated.
    pub(crate) fn input(&mut self) -> &mut InputArgs {
        match self {
            CosimCommand::Simbricks(args) => &mut args.cosim.scenario.input,
            CosimCommand::Tap(args) => &mut args.cosim.scenario.input,
        }
    }

    /// Executes the command.
    ///
    /// # Errors
    /// Those of files, and of standard output.
    pub(crate) fn execute(&self) -> io::Result<ExitStatus> {
        match self {
            CosimCommand::Simbricks(args) => args.execute(),
            CosimCommand::Tap(args) => args.execute(),
        }
    }
}

/// What all kinds of co-simulation are told.
#[derive(Args, Debug)]
pub(crate) struct CosimArgs {
    #[command(flatten)]
    pub(crate) scenario: ScenarioArgs,
    /// The host that an Ethernet address is behind, such as 3=02:00:00:00:00:03; may be given several times. Other
    /// addresses are learned from the frames that come in, and until then frames to them go to all external ports.
    #[arg(long, value_name = "HOST=ADDRESS", value_parser = address)]
    mac: Vec<(u32, Mac)>,
    /// Simulated time at which to end, such as 2ms.
    #[arg(long, value_name = "TIME", value_parser = instant)]
    until: Option<SimTime>,
    /// Folder for results; it is made if it is not there.
    #[arg(long, value_name = "DIR", default_value = "wormhole-out", help_heading = "Outputs")]
    out: PathBuf,
    /// Write the frames at external ports to this pcap file, in nanoseconds: each as it comes in and as it leaves.
    #[arg(long, value_name = "FILE", help_heading = "Outputs")]
    pcap: Option<PathBuf>,
}

/// Why a co-simulation ends before its time, if it is not for the simulation's sake.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// The other program has broken the protocol, or is gone.
    #[error("{0}")]
    Peer(String),
    /// Something of the system does not work.
    #[error("{0}: {1}")]
    Io(String, io::Error),
    /// Real time was not kept.
    #[error("a frame would leave {} us after its time; the hard limit is {} us", us(*late), us(*limit))]
    Late {
        /// How late it is.
        late: Span,
        /// How late it may be.
        limit: Span,
    },
}

/// A span in microseconds.
fn us(span: Span) -> f64 {
    span.0 as f64 / 1e6
}

impl Fault {
    /// Says on standard error what it is.
    fn tell(&self) -> ExitStatus {
        eprintln!("wormhole: {self}");
        match self {
            Fault::Peer(_) => ExitStatus::Peer,
            Fault::Io(..) => ExitStatus::Io,
            Fault::Late { .. } => ExitStatus::Late,
        }
    }
}

/// What ends the work on a bridge early.
pub(crate) enum Break {
    /// The simulation.
    Halt(Halt),
    /// What it is joined with.
    Fault(Fault),
}

impl From<Halt> for Break {
    fn from(halt: Halt) -> Break {
        Break::Halt(halt)
    }
}

impl From<Fault> for Break {
    fn from(fault: Fault) -> Break {
        Break::Fault(fault)
    }
}

fn instant(text: &str) -> Result<SimTime, String> {
    units::time(text).map(SimTime)
}

fn address(text: &str) -> Result<(u32, Mac), String> {
    let (host, mac) = text.split_once('=').ok_or("expected HOST=ADDRESS")?;
    let host = host.parse().map_err(|_| format!("`{host}` is not the number of a host"))?;
    Ok((host, mac.parse()?))
}

/// Builds the scenario's fabric, with external ports at these hosts. `join` joins them with the others, then `work`
/// runs it all through a bridge. Writes results, and says how it ended.
///
/// # Errors
/// Those of files, and of standard output.
pub(crate) fn run<J>(
    args: &CosimArgs,
    ports: &[u32],
    join: impl FnOnce() -> Result<J, Fault>,
    work: impl FnOnce(J, &mut Bridge<'_>) -> Result<(), Break>,
) -> io::Result<ExitStatus> {
    let begun = Instant::now();
    let files = Files { is_open: true, ..args.scenario.input.files() };
    let (scenario, mut memo) = match open(&args.scenario, &files) {
        Ok(opened) => opened,
        Err(status) => return Ok(status),
    };
    let (hosts, addresses) = match external_ports(&scenario, ports, &args.mac) {
        Ok(external) => external,
        Err(message) => {
            eprintln!("wormhole: {message}");
            return Ok(ExitStatus::BadInput);
        }
    };
    let folder = ResultFolder::create(&args.out, false, begun.elapsed())?;
    let capture = args.pcap.as_deref().map(Capture::create).transpose()?;
    let joined = match join() {
        Ok(joined) => joined,
        Err(fault) => return Ok(fault.tell()),
    };
    let until = args.until.unwrap_or(SimTime::MAX).min(scenario.stop);
    let (mut counts, mut fault, mut captured) = (Counts::default(), None, Ok(()));
    let losses = Losses::default();
    let driver = Driven {
        losses: losses.clone(),
        work: |simulation: &mut dyn Simulation| {
            let mut bridge = Bridge::new(simulation, &hosts, addresses, capture, until);
            let worked = work(joined, &mut bridge);
            counts = bridge.counts();
            captured = bridge.finish();
            match worked {
                Ok(()) => Ok(()),
                Err(Break::Halt(halt)) => Err(halt),
                Err(Break::Fault(found)) => {
                    fault = Some(found);
                    Ok(())
                }
            }
        },
    };
    let outcome = match simulate_driven(&scenario, Some(&mut memo), &mut { losses }, driver) {
        Ok(outcome) => outcome,
        Err(refused) => return Ok(report_refusals(args.scenario.input.flows(), &refused)),
    };
    captured?;
    let summary = folder.complete(&scenario, &outcome)?;
    let records = finish(memo)?;
    let mut out = io::stdout();
    write!(out, "{}{}", table::summary(&summary), table::jobs(&outcome))?;
    writeln!(out, "{counts}\nresults are in {}", args.out.display())?;
    // Flows that have not ended are no surprise here: others say when it is over.
    let ended = if outcome.ending == Ending::StopTime { ExitStatus::Done } else { explain(&outcome) };
    Ok(match fault {
        None => ended.unless(records),
        Some(fault) => fault.tell(),
    })
}

/// The hosts of external ports, and the addresses known to be behind them.
///
/// # Errors
/// What is wrong with a port or an address.
fn external_ports(scenario: &Scenario, ports: &[u32], macs: &[(u32, Mac)]) -> Result<(Vec<NodeId>, Addresses), String> {
    for (index, &port) in ports.iter().enumerate() {
        if scenario.nodes.get(port as usize) != Some(&NodeKind::Host) {
            return Err(format!("external port at node {port}: there is no such host"));
        }
        if ports[..index].contains(&port) {
            return Err(format!("host {port} is two external ports"));
        }
    }
    let mut given = Vec::new();
    for &(host, mac) in macs {
        let Some(port) = ports.iter().position(|&port| port == host) else {
            return Err(format!("address {mac}: host {host} is no external port"));
        };
        if mac.is_group() {
            return Err(format!("address {mac} of host {host} names several hosts"));
        }
        given.push((mac, port));
    }
    Ok((ports.iter().copied().map(NodeId).collect(), Addresses::given(given)))
}

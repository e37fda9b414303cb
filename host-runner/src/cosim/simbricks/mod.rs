//! SimBricks' Ethernet protocol: each external port is one end of a link to another simulator.
//!
//! `docs/co-simulation.md` says how it is used. The layers, from the bottom up: memory that is shared (`shm`), what is
//! said first (`intro`), the rings (`ring`), how a connection comes to be (`connect`), the other side (`peer`), and
//! keeping time with all of them (`session`).

mod connect;
#[cfg(fuzzing)]
pub(crate) mod fuzzing;
mod intro;
mod layout;
mod peer;
mod ring;
mod session;
mod shm;

use super::{CosimArgs, run};
use crate::ending::ExitStatus;
use crate::input::units;
use clap::builder::ValueParser;
use clap::error::ErrorKind;
use clap::{Arg, ArgAction, ArgMatches, Args, FromArgMatches, ValueEnum, value_parser};
use connect::{Side, connect_all};
use intro::SyncMode;
use peer::{Pace, Peer};
use session::Session;
use std::io;
use std::path::PathBuf;
use std::time::Duration;
use wormhole_kernel::Span;

/// Options of `wormhole cosim simbricks`.
#[derive(Args, Debug)]
pub(crate) struct SimbricksArgs {
    #[command(flatten)]
    pub(super) cosim: CosimArgs,
    #[command(flatten)]
    links: Links,
    /// Time that a frame takes from an external port to the peer, which is the lookahead of both.
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "500ns", help_heading = "SimBricks")]
    link_latency: Span,
    /// Longest simulated time between two messages to a peer; at most the latency, which is the default.
    #[arg(long, value_name = "TIME", value_parser = duration, help_heading = "SimBricks")]
    sync_interval: Option<Span>,
    /// Whether simulated time is kept together with the peers.
    #[arg(long, value_enum, default_value = "optional", help_heading = "SimBricks")]
    sync: SyncMode,
    /// Longest wait for the peers to connect and introduce themselves, in seconds.
    #[arg(long, value_name = "SECONDS", default_value_t = 60, help_heading = "SimBricks")]
    timeout: u32,
    /// What peers are told in the end.
    #[arg(long, value_enum, default_value = "terminate", help_heading = "SimBricks")]
    farewell: Farewell,
}

/// What peers are told in the end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Farewell {
    /// That it is over.
    Terminate,
    /// Nothing: the networks that come with SimBricks abort when they are told.
    None,
}

/// Which host is joined with what. The first port goes with the first socket, and so on.
#[derive(Debug)]
struct Links {
    sides: Vec<Side>,
    ports: Vec<u32>,
}

impl Links {
    fn options() -> [Arg; 4] {
        let option = |name: &'static str, value: &'static str, parser: ValueParser, help: &'static str| {
            let arg = Arg::new(name).long(name).value_name(value).value_parser(parser).help(help);
            arg.action(ArgAction::Append).help_heading("SimBricks")
        };
        let path = || value_parser!(PathBuf);
        [
            option("listen", "SOCKET", path(), "Make this Unix socket, and let the peer connect to it"),
            option("connect", "SOCKET", path(), "Connect to the peer's Unix socket"),
            option("port", "HOST", value_parser!(u32).into(), "The host of the fabric that the peer stands for"),
            option("shm", "FILE", path(), "Shared memory of a --listen, made as a file; default: without a name"),
        ]
    }

    /// Sockets in the order in which they are given, whichever of the two options names them.
    fn sides(matches: &ArgMatches) -> Vec<Side> {
        let given = |name: &str| {
            let indices = matches.indices_of(name).into_iter().flatten();
            let paths = matches.get_many::<PathBuf>(name).into_iter().flatten().cloned();
            indices.zip(paths).collect::<Vec<_>>()
        };
        let mut memories = given("shm").into_iter().map(|(_, path)| path);
        let listen = |(at, socket)| (at, Side::Listen { socket, memory: memories.next() });
        let mut sides: Vec<(usize, Side)> = given("listen").into_iter().map(listen).collect();
        sides.extend(given("connect").into_iter().map(|(at, socket)| (at, Side::Connect { socket })));
        sides.sort_by_key(|(at, _)| *at);
        sides.into_iter().map(|(_, side)| side).collect()
    }
}

impl Args for Links {
    fn augment_args(command: clap::Command) -> clap::Command {
        command.args(Links::options())
    }

    fn augment_args_for_update(command: clap::Command) -> clap::Command {
        Links::augment_args(command)
    }
}

impl FromArgMatches for Links {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Links, clap::Error> {
        let sides = Links::sides(matches);
        let ports: Vec<u32> = matches.get_many("port").into_iter().flatten().copied().collect();
        let fault = |message: String| Err(clap::Error::raw(ErrorKind::WrongNumberOfValues, message + "\n"));
        if sides.is_empty() || sides.len() != ports.len() {
            return fault(format!(
                "each --listen or --connect takes one --port, and there must be some (found {} and {})",
                sides.len(),
                ports.len()
            ));
        }
        let (memories, listeners) = (
            matches.get_many::<PathBuf>("shm").map_or(0, |files| files.len()),
            sides.iter().filter(|side| matches!(side, Side::Listen { .. })).count(),
        );
        if memories > listeners {
            return fault(format!("--shm goes with a --listen (found {memories} and {listeners})"));
        }
        Ok(Links { sides, ports })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Links::from_arg_matches(matches)?;
        Ok(())
    }
}

fn duration(text: &str) -> Result<Span, String> {
    match units::time(text)? {
        0 => Err("it must be above 0".into()),
        picoseconds => Ok(Span(picoseconds)),
    }
}

impl SimbricksArgs {
    /// Runs the co-simulation.
    ///
    /// # Errors
    /// Those of files, and of standard output.
    pub(super) fn execute(&self) -> io::Result<ExitStatus> {
        let latency = self.link_latency;
        let interval = self.sync_interval.unwrap_or(latency);
        if interval > latency {
            eprintln!("wormhole: --sync-interval: above the latency two simulators would wait for each other for ever");
            return Ok(ExitStatus::BadInput);
        }
        let patience = Duration::from_secs(self.timeout.into());
        let join = || {
            let connections = connect_all(&self.links.sides, self.sync, patience)?;
            let pace = Pace { latency, interval };
            let peer = |(port, connection)| Peer::new(format!("port {port}"), connection, pace);
            let peers: Vec<Peer> = self.links.ports.iter().zip(connections).map(peer).collect();
            for peer in &peers {
                let how = if peer.is_synchronised() { "time is kept together" } else { "no synchronisation" };
                eprintln!("{}: connected, {how}", peer.name());
            }
            Ok(peers)
        };
        run(&self.cosim, &self.links.ports, join, |peers, bridge| {
            let mut session = Session::new(bridge, peers);
            let ran = session.run();
            if self.farewell == Farewell::Terminate {
                // Who has broken the protocol is not waited for.
                session.take_leave(if ran.is_ok() { patience } else { Duration::ZERO });
            }
            session.report();
            ran
        })
    }
}

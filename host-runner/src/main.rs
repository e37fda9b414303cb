//! The command line of Wormhole.

use clap::Parser;
use std::process::ExitCode;
use wormhole::cli::{Cli, execute};

fn main() -> ExitCode {
    execute(Cli::parse())
}

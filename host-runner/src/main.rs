//! The command line of Wormhole.

use std::process::ExitCode;
use wormhole::cli::{Cli, execute};

fn main() -> ExitCode {
    Cli::from_arguments(std::env::args_os().collect()).map_or_else(|code| code, execute)
}

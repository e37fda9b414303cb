//! `wormhole plugin`: what a plugin is, and whether it keeps to what models must keep to.

use super::{Loaded, PluginSpec, check, load};
use crate::ending::ExitStatus;
use clap::Subcommand;
use std::io::{self, Write};
use wormhole_models::kit::Verdict;
use wormhole_models::plugin::{Functions, Info};

/// Commands about plugins.
#[derive(Subcommand, Debug)]
pub(crate) enum PluginCommand {
    /// Try whether a plugin keeps to what models must keep to: a line for each thing that is tried.
    ///
    /// It is driven with random inputs from fixed seeds, then simulated with and without acceleration.
    Check {
        /// The shared object, perhaps with parameters.
        #[arg(value_name = "FILE[:KEY=VALUE,...]", value_parser = PluginSpec::parse)]
        plugin: PluginSpec,
    },
    /// Print what a plugin says of itself.
    Info {
        /// The shared object, perhaps with parameters.
        #[arg(value_name = "FILE[:KEY=VALUE,...]", value_parser = PluginSpec::parse)]
        plugin: PluginSpec,
    },
}

impl PluginCommand {
    /// Executes the command.
    ///
    /// # Errors
    /// Those of standard output.
    pub(crate) fn execute(&self) -> io::Result<ExitStatus> {
        let (PluginCommand::Check { plugin } | PluginCommand::Info { plugin }) = self;
        let loaded = match load::load(plugin) {
            Ok(loaded) => loaded,
            Err(found) => {
                found.all().iter().for_each(|finding| eprintln!("{finding}"));
                return Ok(ExitStatus::Plugin);
            }
        };
        match self {
            PluginCommand::Check { .. } => run_checks(loaded),
            PluginCommand::Info { .. } => print_info(loaded),
        }
    }
}

fn run_checks(loaded: Loaded) -> io::Result<ExitStatus> {
    let mut out = io::stdout();
    let (mut passed, mut failed) = (0, 0);
    check::checks(loaded, &mut |check| {
        passed += usize::from(check.verdict == Verdict::Passed);
        failed += usize::from(matches!(check.verdict, Verdict::Failed(_)));
        writeln!(out, "{check}")
    })?;
    writeln!(out, "{}: {passed} passed, {failed} failed", loaded.file)?;
    Ok(if failed == 0 { ExitStatus::Done } else { ExitStatus::Plugin })
}

fn print_info(loaded: Loaded) -> io::Result<ExitStatus> {
    let mut out = io::stdout();
    let plugin = loaded.plugin;
    let Info { kind, name, model_version, config_hash, struct_size, config_size, state_size, .. } = *plugin.info();
    let yes = |there: bool| if there { "yes" } else { "no" };
    writeln!(out, "file            {}", loaded.file)?;
    writeln!(out, "kind            {}", kind.name())?;
    writeln!(out, "name            {name}")?;
    writeln!(out, "model version   {model_version}")?;
    writeln!(out, "compiled-in     {config_hash:016x}")?;
    writeln!(out, "configuration   {:016x}", plugin.id().config)?;
    writeln!(out, "descriptor      {struct_size} bytes")?;
    writeln!(out, "parameters      {config_size} bytes")?;
    match plugin.functions() {
        Functions::Cca(functions) => {
            writeln!(out, "state           {state_size} bytes a flow")?;
            writeln!(out, "telemetry       {}", yes(functions.needs_telemetry != 0))?;
            writeln!(out, "header          {} bytes", functions.header_bytes)?;
            writeln!(out, "accelerated     {}", yes(functions.relative.is_some()))?;
        }
        Functions::Marker(_) => writeln!(out, "state           {state_size} bytes a port")?,
        Functions::Buffers(functions) => {
            let (port, queue) = (functions.port_state_size, functions.queue_state_size);
            writeln!(out, "states          {state_size} bytes a switch, {port} a port, {queue} a queue")?;
            writeln!(out, "accelerated     {}", yes(functions.is_calm.is_some()))?;
        }
    }
    Ok(ExitStatus::Done)
}

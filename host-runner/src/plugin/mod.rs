//! Model plugins: shared objects with a congestion control, a marker or a buffer manager (`--plugin`).
//!
//! The interface is `models/include/wormhole_plugin.h`; `wormhole_models::plugin` makes models of what is loaded here.

mod check;
mod command;
mod load;

pub(crate) use command::PluginCommand;

use crate::ending::ExitStatus;
use crate::input::diagnostics::Diagnostics;
use crate::scenario::CcaName;
use clap::ValueEnum;
use std::ffi::CString;
use std::path::PathBuf;
use wormhole_models::plugin::{Foreign, ForeignBuffers, ForeignCca, ForeignMarker, Kind, MAX_NAME};

/// A plugin as the user names it: `FILE` or `FILE:KEY=VALUE,...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PluginSpec {
    /// The shared object.
    pub file: PathBuf,
    /// Parameters in place of the plugin's own, in this order.
    pub settings: Vec<(CString, i64)>,
}

impl PluginSpec {
    /// Understands an argument.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<PluginSpec, String> {
        // A file's name may have a colon; parameters have an equals sign.
        let (file, settings) = match text.rsplit_once(':') {
            Some((file, settings)) if settings.contains('=') => (file, settings),
            _ => (text, ""),
        };
        if file.is_empty() {
            return Err("expected FILE or FILE:KEY=VALUE,...".into());
        }
        let settings = settings.split(',').filter(|_| !settings.is_empty()).map(setting).collect::<Result<_, _>>()?;
        Ok(PluginSpec { file: file.into(), settings })
    }
}

fn setting(text: &str) -> Result<(CString, i64), String> {
    let (key, value) = text.split_once('=').ok_or(format!("`{text}`: expected KEY=VALUE"))?;
    let value = value.parse().map_err(|_| format!("`{text}`: the value is a whole number of 64 bits"))?;
    let key = CString::new(key).ok().filter(|key| !key.is_empty());
    Ok((key.ok_or(format!("`{text}`: expected KEY=VALUE"))?, value))
}

/// A loaded plugin. It stays loaded for ever.
#[derive(Clone, Copy, Debug)]
pub struct Loaded {
    /// Its file, as the user named it.
    pub file: &'static str,
    /// The plugin.
    pub plugin: &'static Foreign,
}

/// The plugins of a scenario, at most one of a kind.
#[derive(Clone, Copy, Debug)]
pub struct Plugins {
    cca: Option<Loaded>,
    marker: Option<Loaded>,
    buffers: Option<Loaded>,
}

/// Why plugins cannot be used: what to end with, and what to tell.
pub type NoPlugins = (ExitStatus, Diagnostics);

impl Plugins {
    /// None at all.
    pub const NONE: Plugins = Plugins { cca: None, marker: None, buffers: None };

    /// Loads plugins. `cca` is the congestion control that the user names, if any.
    ///
    /// # Errors
    /// The first file that is not a plugin, two of a kind, or a name that is not that of the plugin.
    pub(crate) fn load(specs: &[PluginSpec], cca: Option<&CcaChoice>) -> Result<Plugins, NoPlugins> {
        let mut plugins = Plugins::NONE;
        for spec in specs {
            let loaded = load::load(spec).map_err(|found| (ExitStatus::Plugin, found))?;
            plugins.add(loaded).map_err(|found| (ExitStatus::Plugin, found))?;
        }
        match cca.and_then(|cca| plugins.contradiction(cca)) {
            Some((name, message)) => {
                let mut found = Diagnostics::of("--cca");
                found.error(0, &name, message);
                Err((ExitStatus::BadInput, found))
            }
            None => Ok(plugins),
        }
    }

    /// What is wrong with a name beside these plugins, if anything.
    fn contradiction(&self, cca: &CcaChoice) -> Option<(String, String)> {
        let loaded = self.cca.map(|loaded| loaded.plugin.info().name);
        let own = |name: &CcaName| name.to_possible_value().map(|value| value.get_name().to_owned());
        match (cca, loaded) {
            (CcaChoice::OfPlugin(name), Some(loaded)) if name == loaded => None,
            (CcaChoice::OfPlugin(name), _) => {
                let mut names: Vec<String> = CcaName::value_variants().iter().filter_map(own).collect();
                names.extend(loaded.map(str::to_owned));
                Some((name.clone(), format!("no such congestion control; there are {}", names.join(", "))))
            }
            (CcaChoice::Own(name), Some(loaded)) => {
                Some((own(name)?, format!("the plugin {loaded} is a congestion control, too")))
            }
            (CcaChoice::Own(_), None) => None,
        }
    }

    fn add(&mut self, loaded: Loaded) -> Result<(), Diagnostics> {
        let kind = loaded.plugin.info().kind;
        let place = match kind {
            Kind::Cca => &mut self.cca,
            Kind::Marker => &mut self.marker,
            Kind::Buffers => &mut self.buffers,
        };
        match place.replace(loaded) {
            None => Ok(()),
            Some(other) => {
                let message = format!("a second plugin of kind {}; {} is one already", kind.name(), other.file);
                Err(Diagnostics::fault(loaded.file, 0, message))
            }
        }
    }

    /// The congestion control.
    pub fn cca(&self) -> Option<ForeignCca> {
        self.cca.and_then(|loaded| ForeignCca::new(loaded.plugin))
    }

    /// The marker, with this seed.
    pub fn marker(&self, seed: u64) -> Option<ForeignMarker> {
        self.marker.and_then(|loaded| ForeignMarker::new(loaded.plugin, seed))
    }

    /// The buffer manager.
    pub fn buffers(&self) -> Option<ForeignBuffers> {
        self.buffers.and_then(|loaded| ForeignBuffers::new(loaded.plugin))
    }

    /// Whether there is a marker or a buffer manager.
    pub fn concern_switches(&self) -> bool {
        self.marker.is_some() || self.buffers.is_some()
    }

    /// The first output that a plugin may not give, in a sentence that names the file.
    pub fn fault(&self) -> Option<String> {
        let all = [self.cca, self.marker, self.buffers];
        all.into_iter().flatten().find_map(|Loaded { file, plugin }| {
            plugin.fault().map(|fault| format!("{file}: error: plugin {}: {fault}", plugin.info().name))
        })
    }
}

/// A congestion control as an argument: one of this crate's, or the name of a plugin's.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum CcaChoice {
    Own(CcaName),
    OfPlugin(String),
}

impl CcaChoice {
    pub(crate) fn parse(text: &str) -> Result<CcaChoice, String> {
        let is_name = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || "-_".contains(c);
        match CcaName::from_str(text, false) {
            Ok(own) => Ok(CcaChoice::Own(own)),
            Err(_) if !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_name) => {
                Ok(CcaChoice::OfPlugin(text.to_owned()))
            }
            Err(_) => Err("no name of a congestion control".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plugins_are_named_with_their_parameters() {
        let spec = |file: &str, settings: &[(&str, i64)]| {
            let settings = settings.iter().map(|(key, value)| (CString::new(*key).expect("a key"), *value)).collect();
            Ok(PluginSpec { file: file.into(), settings })
        };
        assert_eq!(PluginSpec::parse("a.so"), spec("a.so", &[]));
        assert_eq!(PluginSpec::parse("d:x/a.so"), spec("d:x/a.so", &[]));
        assert_eq!(PluginSpec::parse("a:b.so:k=1,long_key=-2"), spec("a:b.so", &[("k", 1), ("long_key", -2)]));
        for bad in ["", ":k=1", "a.so:k=", "a.so:k=1.5", "a.so:=1", "a.so:k=1,", "a.so:k=9223372036854775808"] {
            assert!(PluginSpec::parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn names_are_those_of_models_or_plugins() {
        assert_eq!(CcaChoice::parse("hpcc"), Ok(CcaChoice::Own(CcaName::Hpcc)));
        assert_eq!(CcaChoice::parse("my-cca_2"), Ok(CcaChoice::OfPlugin("my-cca_2".into())));
        for bad in ["", "My", "a b", "ä", &"x".repeat(33)] {
            assert!(CcaChoice::parse(bad).is_err(), "{bad}");
        }
    }
}

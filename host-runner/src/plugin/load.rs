//! Loading a shared object. It is never unloaded: models point into it.

// A foreign interface: each block says why it is sound.
#![allow(unsafe_code)]

use super::{Loaded, PluginSpec};
use crate::input::diagnostics::Diagnostics;
use crate::scenario::CcaName;
use clap::ValueEnum;
use libloading::{Library, Symbol};
use std::error::Error as _;
use std::ffi::CStr;
use std::mem::ManuallyDrop;
use wormhole_kernel::model::ConfigHash;
use wormhole_models::plugin::abi::Head;
use wormhole_models::plugin::{Descriptor, Foreign, Kind};

/// Loads a plugin and sets its parameters.
///
/// # Errors
/// What is wrong with it, under the file's name.
pub(super) fn load(spec: &PluginSpec) -> Result<Loaded, Diagnostics> {
    let file: &'static str = spec.file.display().to_string().leak();
    let fault = |message: String| Diagnostics::fault(file, 0, message);
    let (descriptor, build) = open(spec).map_err(fault)?;
    let settings: Vec<(&CStr, i64)> = spec.settings.iter().map(|(key, value)| (key.as_c_str(), *value)).collect();
    let config = vec![0; Foreign::config_words(&descriptor.info)].leak();
    let plugin = Foreign::new(descriptor, &settings, config, build).map_err(|(index, error)| {
        let (key, value) = settings.get(index).copied().unwrap_or_default();
        let mut found = Diagnostics::of(file);
        found.error(0, &format!("{}={value}", key.to_string_lossy()), error.to_string());
        found
    })?;
    Ok(Loaded { file, plugin: Box::leak(Box::new(plugin)) })
}

/// The system's own words, where there are some.
fn cause(error: &libloading::Error) -> String {
    error.source().map_or_else(|| error.to_string(), ToString::to_string)
}

/// The descriptor of a shared object, and a hash of its file: another build may behave otherwise.
fn open(spec: &PluginSpec) -> Result<(Descriptor, u64), String> {
    let unreadable = |error: std::io::Error| format!("cannot be read: {error}");
    let bytes = std::fs::read(&spec.file).map_err(unreadable)?;
    // A bare name would be looked for in the system's folders.
    let path = spec.file.canonicalize().map_err(unreadable)?;
    // SAFETY: what the object does as it is loaded is up to whoever names it; nothing here is left half-done for it.
    let library = unsafe { Library::new(path) }.map_err(|error| format!("no shared object: {}", cause(&error)))?;
    let library = ManuallyDrop::new(library);
    // SAFETY: the header gives the symbol this type.
    let symbol: Result<Symbol<'_, unsafe extern "C" fn() -> *const Head>, _> =
        unsafe { library.get(c"wormhole_plugin") };
    let entry = symbol.map_err(|_| "no plugin: it does not export `wormhole_plugin`".to_owned())?;
    // SAFETY: as above; it takes nothing.
    let head = unsafe { entry() };
    // SAFETY: the header asks of plugins what `read` asks of us, and the object stays loaded.
    let descriptor = unsafe { Descriptor::read(head) }.map_err(|unfit| unfit.to_string())?;
    if descriptor.info.kind == Kind::Cca && CcaName::from_str(descriptor.info.name, false).is_ok() {
        return Err(format!("name is {}, expected one that no model of Wormhole has", descriptor.info.name));
    }
    let build = bytes.iter().fold(ConfigHash::new(), |hash, byte| hash.with(u64::from(*byte)));
    Ok((descriptor, build.finish()))
}

//! A plugin with its parameters: what the models of all kinds hold.

use super::abi::{BAD_VALUE, OK, UNKNOWN_KEY};
use super::descriptor::{Functions, Info};
use super::fault::{Call, Fault, Faults, Wrong};
use core::ffi::{CStr, c_void};
use core::fmt;
use wormhole_kernel::model::{ConfigHash, ModelId};

/// A plugin and its parameters. It is shared by the models made of it and outlives them.
#[derive(Debug)]
pub struct Foreign {
    info: Info,
    functions: Functions,
    id: ModelId,
    config: &'static [u64],
    pub(super) faults: Faults,
}

/// Why parameters cannot be set.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum ConfigureError {
    /// There is no such key.
    UnknownKey,
    /// The key does not take the value.
    BadValue,
    /// `configure` returned something else.
    Status(i32),
    /// There is less memory than the plugin's parameters take, in words.
    Memory(usize),
}

impl fmt::Display for ConfigureError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConfigureError::UnknownKey => write!(f, "the plugin has no such parameter"),
            ConfigureError::BadValue => write!(f, "the plugin does not take this value"),
            ConfigureError::Status(status) => write!(f, "configure returned {status}, expected 0, 1 or 2"),
            ConfigureError::Memory(words) => write!(f, "the parameters take {words} words"),
        }
    }
}

impl core::error::Error for ConfigureError {}

impl Foreign {
    /// A plugin with the parameters `settings` in place of the defaults. `config` is where they are kept: zero words,
    /// at least [`config_words`](Self::config_words). `build` tells builds of the plugin apart: records of another are
    /// not used.
    ///
    /// # Errors
    /// [`ConfigureError`], with the index of the setting it is about.
    pub fn new(
        descriptor: super::Descriptor,
        settings: &[(&CStr, i64)],
        config: &'static mut [u64],
        build: u64,
    ) -> Result<Foreign, (usize, ConfigureError)> {
        let super::Descriptor { info, functions } = descriptor;
        let words = Self::config_words(&info);
        if config.len() < words {
            return Err((0, ConfigureError::Memory(words)));
        }
        let at: *mut c_void = config.as_mut_ptr().cast();
        if let Some(defaults) = info.defaults {
            // SAFETY: the function is the plugin's own (`Descriptor::read`), the memory is as large as it asks for.
            unsafe { defaults(at) };
        }
        let mut hash = ConfigHash::new().with(info.config_hash).with(build);
        for (index, (key, value)) in settings.iter().enumerate() {
            let status = match info.configure {
                // SAFETY: as above; the key ends with a zero byte.
                Some(configure) => unsafe { configure(at, key.as_ptr(), *value) },
                None => UNKNOWN_KEY,
            };
            match status {
                OK => {}
                UNKNOWN_KEY => return Err((index, ConfigureError::UnknownKey)),
                BAD_VALUE => return Err((index, ConfigureError::BadValue)),
                other => return Err((index, ConfigureError::Status(other))),
            }
            hash = key.to_bytes().iter().fold(hash, |hash, byte| hash.with(u64::from(*byte))).with(*value as u64);
        }
        let id = ModelId { name: info.name, version: info.model_version, config: hash.finish() };
        Ok(Foreign { info, functions, id, config, faults: Faults::default() })
    }

    /// Words that the parameters of a plugin take.
    pub fn config_words(info: &Info) -> usize {
        info.config_size.div_ceil(8) as usize
    }

    /// What the plugin says of itself.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// Its functions.
    pub fn functions(&self) -> &Functions {
        &self.functions
    }

    /// Name, version and configuration of the model.
    pub fn id(&self) -> ModelId {
        self.id
    }

    /// The first output that cannot be, if there has been one.
    pub fn fault(&self) -> Option<Fault> {
        self.faults.first()
    }

    /// Forgets the fault.
    pub fn forget_fault(&self) {
        self.faults.forget();
    }

    pub(super) fn config(&self) -> *const c_void {
        self.config.as_ptr().cast()
    }

    /// A verdict; `otherwise` if it is none.
    #[inline(always)]
    pub(super) fn verdict(&self, call: Call, value: i32, otherwise: bool) -> bool {
        match value {
            0 => false,
            1 => true,
            _ => {
                self.faults.note(call, Wrong::Verdict, value as i64 as u64);
                otherwise
            }
        }
    }
}

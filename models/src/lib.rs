#![no_std]
#![doc = include_str!("../README.md")]

#[cfg(any(feature = "alloc", feature = "kit", test))]
extern crate alloc;

pub mod any;
pub mod buffer;
pub mod cca;
pub mod ecn;
mod hash;
#[cfg(any(feature = "kit", test))]
pub mod kit;
pub mod loss;
mod mrg32k3a;
pub mod nic;
#[cfg(feature = "plugin")]
pub mod plugin;
pub mod profile;
pub mod router;
pub mod scheduler;
pub mod telemetry;
pub mod timing;
pub mod topology;

/// The programs in the document are compiled and run.
#[cfg(all(doctest, feature = "alloc", feature = "kit"))]
#[doc = include_str!("../docs/writing-a-model.md")]
mod writing_a_model {}

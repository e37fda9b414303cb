#![no_std]
#![doc = include_str!("../README.md")]

#[cfg(feature = "alloc")]
extern crate alloc;

pub mod buffer;
pub mod cca;
pub mod ecn;
mod hash;
pub mod loss;
mod mrg32k3a;
pub mod nic;
pub mod profile;
pub mod router;
pub mod scheduler;
pub mod telemetry;
pub mod timing;
pub mod topology;

//! Models behind a C interface: congestion controls, markers and buffer managers of shared objects.
//!
//! `include/wormhole_plugin.h` is the interface, [`abi`] the same in Rust; a test compares them field by field. Whoever
//! has loaded a shared object hands its descriptor to [`Descriptor::read`] and gets functions that are there, sizes
//! that fit and a name that is one. [`Foreign`] adds parameters; [`ForeignCca`], [`ForeignMarker`] and
//! [`ForeignBuffers`] are models like any other.
//!
//! What comes out of a plugin is looked at before the kernel sees it. What cannot be is replaced by the least harmful
//! value and noted as a [`Fault`]; the caller asks for it ([`Foreign::fault`]) and ends the run.
//!
//! | output | beyond it |
//! |---|---|
//! | window and rate of 0 | a fault; 1 is taken |
//! | rate above that of the line | the line's is taken |
//! | a timer that is not there, below 1 ns or above 1000 s | a fault; it is not set |
//! | a verdict other than 0 and 1 | a fault; 0 is taken (`resumes`: 1) |
//! | bytes behind a state that are not as they were | a fault; they are put right |
//!
//! What a switch and its queues hold is counted here, not asked for. A function that does not return, or that writes to
//! memory that is not its own, is out of reach.

// A foreign interface: each block says why it is sound.
#![allow(unsafe_code)]

pub mod abi;
mod buffers;
mod cca;
mod descriptor;
mod fault;
mod foreign;
mod marker;
mod slot;
#[cfg(test)]
mod tests;

pub use buffers::{ForeignBuffers, ForeignPort, ForeignQueue, ForeignSwitch};
pub use cca::{ForeignCca, ForeignCcaState};
pub use descriptor::{Descriptor, Functions, Info, Kind, Unfit};
pub use fault::{Call, Fault, Wrong};
pub use foreign::{ConfigureError, Foreign};
pub use marker::{ForeignMarker, ForeignMarkerPort};

/// Longest name, in bytes.
pub const MAX_NAME: usize = 32;
/// Most bytes of parameters.
pub const MAX_CONFIG: u32 = 4_096;
/// Most bytes that a congestion control adds to packets.
pub const MAX_HEADER: u32 = 256;
/// Most bytes of a flow's state.
pub const MAX_CCA_STATE: u32 = 128;
/// Most bytes of a marker's state per port.
pub const MAX_MARKER_STATE: u32 = 32;
/// Most bytes of a switch's state.
pub const MAX_SWITCH_STATE: u32 = 64;
/// Most bytes of a port's state.
pub const MAX_PORT_STATE: u32 = 32;
/// Most bytes of a queue's state.
pub const MAX_QUEUE_STATE: u32 = 32;

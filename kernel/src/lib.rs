#![no_std]
#![doc = include_str!("../README.md")]

pub mod accel;
pub mod buffer;
pub mod cca;
pub mod error;
pub mod event;
pub mod fabric;
pub mod flow;
mod host;
pub mod ids;
pub mod input;
pub mod kernel;
mod lane;
pub mod limits;
mod link;
mod log;
pub mod marker;
pub mod memo;
pub mod memory;
pub mod model;
pub mod models;
pub mod nic;
pub mod observer;
pub mod packet;
mod port;
pub mod qp;
pub mod queue;
mod ring;
pub mod router;
pub mod scheduler;
mod switch;
pub mod timing;
pub mod transport;
pub mod units;

pub use error::{CapacityError, Error};
pub use fabric::{Fabric, FabricSize, LinkSpec, NodeKind};
pub use flow::{Completion, FlowEnd, FlowSpec};
pub use ids::{FlowId, LinkId, NodeId, PartitionId, PortId, QpId};
pub use input::ExternalFrame;
pub use kernel::{Kernel, PausedQueue, Step, Totals};
pub use limits::Limits;
pub use models::{ModelSet, Models};
pub use observer::Observer;
pub use port::PortStats;
pub use transport::Transport;
pub use units::{BitRate, SimTime, Span};

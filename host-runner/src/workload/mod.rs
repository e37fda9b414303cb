//! Training workloads: what ranks compute and send, and in which order.

pub mod activity;
pub mod collective;
pub(crate) mod command;
pub mod engine;
pub mod formats;
mod graph;
mod instance;
pub mod messages;
pub mod report;
pub mod task;
pub mod training;

#![doc = include_str!("../README.md")]

mod args;
mod capture;
mod check;
pub mod cli;
mod cosim;
pub mod cpu;
pub mod demo;
mod disk;
pub mod ending;
pub mod fcg;
#[cfg(fuzzing)]
pub mod fuzzing;
pub mod ideal;
pub mod input;
mod interrupt;
pub mod jobs;
pub mod load;
pub mod memo;
pub mod ns3_setup;
pub mod outputs;
mod parallel;
pub mod plugin;
pub mod progress;
mod recording;
pub mod reference;
pub mod report;
mod running;
pub mod scenario;
pub mod scenario_file;
pub mod simulate;
mod sweep;
pub mod table;
pub mod time_bins;
pub mod topo;
mod traffic;
pub mod verify;
pub mod workload;

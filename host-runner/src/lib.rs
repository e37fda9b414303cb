#![doc = include_str!("../README.md")]

mod args;
pub mod cli;
mod cosim;
pub mod cpu;
pub mod demo;
pub mod ending;
pub mod fcg;
pub mod ideal;
pub mod input;
pub mod jobs;
pub mod load;
pub mod memo;
pub mod ns3_setup;
pub mod outputs;
pub mod progress;
pub mod reference;
pub mod scenario;
pub mod scenario_file;
pub mod simulate;
pub mod table;
pub mod topo;
mod traffic;
pub mod verify;
pub mod workload;

//! Input and output formats. Parsers report every fault of a file at once and go on after each.

pub mod config;
pub mod diagnostics;
pub mod fct;
pub mod flows;
pub mod link_events;
mod tokens;
pub mod topology;
pub mod units;

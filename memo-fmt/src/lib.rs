#![no_std]
#![doc = include_str!("../README.md")]

mod error;
mod header;

pub use error::FormatError;
pub use header::{FORMAT_VERSION, HEADER_MAX, Header, MAGIC, read_header, write_header};

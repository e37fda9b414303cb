#![no_std]
#![doc = include_str!("../README.md")]

mod checksum;
mod error;
mod header;
mod record;
mod store;
mod words;

pub use error::FormatError;
pub use header::{FORMAT_VERSION, HEADER_MAX, Header, MAGIC, read_header, write_header};
pub use record::{Reader, Record, WORDS_MAX, record_len, write_record};
pub use store::Store;
pub use words::Words;

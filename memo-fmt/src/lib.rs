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

/// The program in the document is compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../docs/memo-in-your-program.md")]
mod memo_in_your_program {}

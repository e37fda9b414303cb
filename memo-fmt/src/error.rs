//! What can be wrong with a memo file.

use core::fmt;

/// Why bytes were not read, or not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes do not begin with the magic: this is no memo file, or a transfer as text has damaged it.
    NotAMemoFile,
    /// The bytes end within the header or within a record.
    Truncated,
    /// The checksum does not fit the bytes.
    Corrupt,
    /// The header is sound, but of another format version than this crate's.
    UnsupportedVersion {
        /// The format version of the header.
        found: u16,
    },
    /// The checksum fits, but the payload is not what the format version says: a faulty writer.
    Malformed,
    /// The caller's buffer is too short. Nothing was written.
    BufferTooSmall {
        /// The length needed, in bytes.
        need: usize,
    },
    /// Key and value together have more than [`WORDS_MAX`](crate::WORDS_MAX) words. Nothing was written.
    RecordTooLong {
        /// Words of the key and of the value together.
        words: usize,
    },
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::NotAMemoFile => write!(f, "not a memo file"),
            FormatError::Truncated => write!(f, "the memo file ends within its header or a record"),
            FormatError::Corrupt => write!(f, "the memo file is corrupt: a checksum differs"),
            FormatError::UnsupportedVersion { found } => {
                write!(f, "memo file of format version {found}; this program knows version {}", crate::FORMAT_VERSION)
            }
            FormatError::Malformed => write!(f, "the memo file does not follow its format version"),
            FormatError::BufferTooSmall { need } => write!(f, "the buffer is too short: {need} bytes are needed"),
            FormatError::RecordTooLong { words } => {
                write!(f, "a record of {words} words is too long: at most {} are kept", crate::WORDS_MAX)
            }
        }
    }
}

impl core::error::Error for FormatError {}

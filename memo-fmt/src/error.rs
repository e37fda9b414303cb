//! What can be wrong with a memo file.

use core::fmt;

/// Why bytes were not read, or not written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum FormatError {
    /// The bytes do not begin with the magic: this is no memo file, or a transfer as text has damaged it.
    NotAMemoFile,
    /// The bytes end before the header does.
    Truncated,
    /// The checksum does not fit the bytes.
    Corrupt,
    /// The header is sound, but of a format version this crate does not know.
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
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            FormatError::NotAMemoFile => write!(f, "not a memo file"),
            FormatError::Truncated => write!(f, "the memo file ends within its header"),
            FormatError::Corrupt => write!(f, "the header of the memo file is corrupt: its checksum differs"),
            FormatError::UnsupportedVersion { found } => {
                write!(f, "memo file of format version {found}; this program knows version {}", crate::FORMAT_VERSION)
            }
            FormatError::Malformed => write!(f, "the header of the memo file does not follow its format version"),
            FormatError::BufferTooSmall { need } => write!(f, "the buffer is too short: {need} bytes are needed"),
        }
    }
}

impl core::error::Error for FormatError {}

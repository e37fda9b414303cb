//! Memory shared with another program, as words that are only touched by atomic operations.
//!
//! The other program may write to it at any time, whatever the protocol says. So nothing here is a `&[u8]`: no read is
//! taken to give the same value twice.

// A mapping is a pointer and a length; to use it as a slice of atomics takes a word of honour, once.
#![allow(unsafe_code)]

use memmap2::{MmapOptions, MmapRaw};
use rustix::fs::{FileType, MemfdFlags, SealFlags, fcntl_add_seals, fstat, ftruncate, memfd_create};
use std::fs::{File, OpenOptions};
use std::io;
use std::path::Path;
pub(super) use std::sync::atomic::AtomicU64;

/// Bytes of a word.
pub(super) const WORD: usize = size_of::<AtomicU64>();

/// See the module.
pub(super) struct Shm {
    map: MmapRaw,
}

impl Shm {
    /// Maps the first `length` bytes of a file, which must have them.
    ///
    /// # Errors
    /// Those of the system; `InvalidData` if this is no plain file, or too short.
    pub(super) fn map(file: &File, length: usize) -> io::Result<Shm> {
        let stat = fstat(file)?;
        if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the shared memory is not a plain file"));
        }
        if u64::try_from(stat.st_size).unwrap_or(0) < length as u64 {
            let message = format!("the shared memory has {} bytes, the rings need {length}", stat.st_size);
            return Err(io::Error::new(io::ErrorKind::InvalidData, message));
        }
        Ok(Shm { map: MmapOptions::new().len(length).map_raw(file)? })
    }

    /// All of it, in words.
    pub(super) fn words(&self) -> &[AtomicU64] {
        let (start, bytes) = (self.map.as_mut_ptr().cast::<AtomicU64>(), self.map.len());
        // SAFETY:
        // 1. The mapping has `bytes` bytes, is readable and writable, and lasts as long as `self`.
        // 2. It begins at a page, so words are aligned; any bytes are a valid word.
        // 3. This process makes no other reference to it than this one, to atomics, which may be aliased. What other
        //    processes write is, to this one, like what another thread writes by atomic operations.
        // 4. A page that has been cut off the file since it was mapped cannot be read: the system then ends this
        //    process by SIGBUS, which is no undefined behaviour. `keep_length` prevents it where it can.
        unsafe { std::slice::from_raw_parts(start, bytes / WORD) }
    }
}

/// A new file of `length` zero bytes: at `path`, where none may be, or without a name.
///
/// # Errors
/// Those of the system.
pub(super) fn create(path: Option<&Path>, length: usize) -> io::Result<File> {
    let file = match path {
        Some(path) => OpenOptions::new().read(true).write(true).create_new(true).open(path)?,
        None => File::from(memfd_create("wormhole", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?),
    };
    ftruncate(&file, length as u64)?;
    keep_length(&file);
    Ok(file)
}

/// Sees to it that nobody can shorten the file. Only files without a name can be protected; any other is left as it is.
pub(super) fn keep_length(file: &File) {
    let _ = fcntl_add_seals(file, SealFlags::SHRINK);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::Ordering::Relaxed;

    #[test]
    fn two_mappings_are_one_memory() {
        let file = create(None, 4_096).expect("a file");
        let (one, two) = (Shm::map(&file, 4_096).expect("a mapping"), Shm::map(&file, 64).expect("a mapping"));
        assert_eq!((one.words().len(), two.words().len()), (512, 8));
        one.words()[7].store(0x1234, Relaxed);
        assert_eq!(two.words()[7].load(Relaxed), 0x1234);
    }

    #[test]
    fn a_file_without_a_name_cannot_be_shortened() {
        let file = create(None, 4_096).expect("a file");
        assert!(file.set_len(64).is_err());
        assert!(file.set_len(8_192).is_ok());
    }

    #[test]
    fn what_is_too_short_or_no_file_is_refused() {
        let file = create(None, 4_096).expect("a file");
        let kind = |mapped: io::Result<Shm>| mapped.map(|_| ()).map_err(|error| error.kind());
        assert_eq!(kind(Shm::map(&file, 4_097)), Err(io::ErrorKind::InvalidData));
        let device = OpenOptions::new().read(true).write(true).open("/dev/zero").expect("a device");
        assert_eq!(kind(Shm::map(&device, 64)), Err(io::ErrorKind::InvalidData));
    }
}

//! The memo file of a run: read at its start, extended at its end.

use super::records::{Records, header_bytes, header_of};
use super::store::RunStore;
use crate::disk::open_locked;
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use std::collections::HashSet;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use wormhole_memo_fmt::{FormatError, Header};

/// A memo file, as read when it was opened, and what shall be added to it.
#[derive(Debug)]
pub struct MemoFile {
    /// What is extended.
    path: PathBuf,
    /// What was read. Empty if the file is not there.
    bytes: Vec<u8>,
    /// Of the file, or of the first run if the file has none.
    header: Option<Header>,
    /// Whether this program knows the format.
    usable: bool,
    /// Bytes of records that a run may add.
    room: usize,
    /// New records, packed.
    fresh: Vec<Box<[u8]>>,
    /// New records that are not written for want of memory.
    left_out: u64,
    /// Runs with other models than the file's.
    strangers: u64,
}

impl MemoFile {
    /// Reads a file, or makes do without if it is not there. `None` if what is there is no memo file: the findings
    /// say so.
    pub fn open(path: &Path, limit_words: usize, found: &mut Diagnostics) -> Option<MemoFile> {
        MemoFile::open_apart(path, path, limit_words, found)
    }

    /// As [`open`](Self::open), but what is new goes to a file of its own.
    pub(crate) fn open_apart(path: &Path, own: &Path, limit_words: usize, found: &mut Diagnostics) -> Option<MemoFile> {
        let bytes = match std::fs::read(path) {
            Ok(bytes) => bytes,
            Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
            Err(error) => {
                found.error(0, "", format!("cannot be read: {error}"));
                return None;
            }
        };
        let (header, usable) = match header_of(&bytes) {
            Ok(header) => (header, true),
            Err(fault @ FormatError::UnsupportedVersion { .. }) => {
                found.warning(0, "", format!("{fault}; it is not used and stays as it is"));
                (None, false)
            }
            Err(fault) => {
                found.error(0, "", fault.to_string());
                return None;
            }
        };
        if usable {
            tell_of_damage(&bytes, found);
        }
        let room = limit_words * 8;
        let path = own.to_owned();
        Some(MemoFile { path, bytes, header, usable, room, fresh: Vec::new(), left_out: 0, strangers: 0 })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Puts the file's records into the store of a run with this header, and has it note new ones. A file of other
    /// models is left alone.
    pub(crate) fn load(&mut self, header: Header, store: &mut RunStore<'_>) {
        if !self.usable {
            return;
        }
        if *self.header.get_or_insert(header) != header {
            self.strangers += 1;
            return;
        }
        // There are none in a file that is to be made.
        if let Ok(records) = Records::of(&self.bytes) {
            records.for_each(|(_, record)| store.load(&record));
        }
        store.note_new(self.room);
    }

    /// Takes over what a run has noted.
    pub(crate) fn note(&mut self, store: RunStore<'_>) {
        let notes = store.into_notes();
        self.fresh.extend(notes.records);
        self.left_out += notes.left_out;
    }

    /// Adds the new records, and says what was not as it should be.
    ///
    /// # Errors
    /// Those of reading and writing, with the file's name.
    pub(crate) fn finish(self, found: &mut Diagnostics) -> io::Result<()> {
        if self.strangers > 0 {
            found.warning(0, "", "made with other models; it is not used and stays as it is");
        }
        if self.left_out > 0 {
            let records = counted(self.left_out as usize, "new record");
            found.warning(0, "", format!("{records} not added: more than --memo-limit allows"));
        }
        // A file that is missing or empty is made even if there is nothing to put into it.
        let made = matches!(header_of(&self.bytes), Ok(Some(_)));
        let Some(header) = self.header.filter(|_| !made || !self.fresh.is_empty()) else { return Ok(()) };
        let extended = extend(&self.path, &header, &self.fresh, found);
        let name = self.path.display();
        extended.map_err(|error| io::Error::new(error.kind(), format!("{name}: cannot be extended: {error}")))
    }
}

/// Warns of bytes that are not read.
fn tell_of_damage(bytes: &[u8], found: &mut Diagnostics) {
    let (sound, fault) = match Records::of(bytes) {
        Ok(mut records) => {
            records.by_ref().for_each(drop);
            (records.sound_len(), records.fault())
        }
        // Not even a header.
        Err(fault) => (0, Some(fault)),
    };
    if let Some(fault) = fault.filter(|_| sound < bytes.len()) {
        let dropped = counted(bytes.len() - sound, "byte");
        found.warning(0, "", format!("{dropped} dropped from byte {sound} on: {fault}"));
    }
}

/// Adds records to a file, which may have changed since it was read: it is read again under a lock. What it has
/// already is not written again, and what is unsound behind its records is cut.
fn extend(path: &Path, header: &Header, fresh: &[Box<[u8]>], found: &mut Diagnostics) -> io::Result<()> {
    let mut file = open_locked(path, true)?;
    let mut bytes = Vec::new();
    file.read_to_end(&mut bytes)?;
    let (sound, mut known, mut added) = match header_of(&bytes) {
        Ok(Some(there)) if there == *header => {
            let mut records = Records::of(&bytes).map_err(io::Error::other)?;
            let known: HashSet<&[u8]> = records.by_ref().map(|(bytes, _)| bytes).collect();
            (records.sound_len(), known, Vec::new())
        }
        Ok(None) => (0, HashSet::new(), header_bytes(header)),
        Ok(Some(_)) | Err(_) => {
            found.warning(0, "", "replaced by another file during the run; it is not extended");
            return Ok(());
        }
    };
    for record in fresh {
        if known.insert(record) {
            added.extend_from_slice(record);
        }
    }
    if added.is_empty() {
        return Ok(());
    }
    file.set_len(sound as u64)?;
    file.seek(SeekFrom::Start(sound as u64))?;
    file.write_all(&added)?;
    file.sync_all()
}

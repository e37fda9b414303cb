//! The records of a memo file, each with its bytes.

use std::collections::HashSet;
use wormhole_memo_fmt::{FormatError, HEADER_MAX, Header, Reader, Record, write_header};

/// Goes through a file's sound records.
pub(crate) struct Records<'b> {
    bytes: &'b [u8],
    reader: Reader<'b>,
    /// What is wrong with the bytes behind the last sound record.
    fault: Option<FormatError>,
}

impl<'b> Records<'b> {
    /// Of a whole file.
    ///
    /// # Errors
    /// What is wrong with the header.
    pub(crate) fn of(bytes: &'b [u8]) -> Result<Records<'b>, FormatError> {
        Ok(Records { bytes, reader: Reader::new(bytes)?, fault: None })
    }

    /// The file's header.
    pub(crate) fn header(&self) -> Header {
        *self.reader.header()
    }

    /// Length of the header and the records so far: where the next one begins.
    pub(crate) fn sound_len(&self) -> usize {
        self.reader.sound_len()
    }

    /// What ended the records before the file's end.
    pub(crate) fn fault(&self) -> Option<FormatError> {
        self.fault
    }
}

impl<'b> Iterator for Records<'b> {
    type Item = (&'b [u8], Record<'b>);

    fn next(&mut self) -> Option<Self::Item> {
        let start = self.sound_len();
        match self.reader.next()? {
            Ok(record) => Some((&self.bytes[start..self.sound_len()], record)),
            Err(fault) => {
                self.fault = Some(fault);
                None
            }
        }
    }
}

/// The header of a file; `None` if there is nothing in it but perhaps the beginning of one, as a run leaves it that is
/// stopped while it makes the file.
///
/// # Errors
/// What is wrong with the header.
pub(crate) fn header_of(bytes: &[u8]) -> Result<Option<Header>, FormatError> {
    match Records::of(bytes) {
        Ok(records) => Ok(Some(records.header())),
        Err(FormatError::Truncated) if bytes.len() < HEADER_MAX => Ok(None),
        Err(fault) => Err(fault),
    }
}

/// The bytes of a header.
///
/// # Panics
/// If it is of a format version that is not written.
pub(crate) fn header_bytes(header: &Header) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_MAX];
    let length = write_header(header, &mut bytes).expect("the version written here, and room for it");
    bytes.truncate(length);
    bytes
}

/// Of records in order, those that no later one replaces, and of these at most the last `keep`.
pub(crate) fn latest<'b>(records: &[(&'b [u8], Record<'b>)], keep: usize) -> Vec<&'b [u8]> {
    let mut keys: HashSet<Vec<u64>> = HashSet::new();
    let newest_first = records.iter().rev().filter(|(_, record)| keys.insert(record.key().collect()));
    let mut kept: Vec<&[u8]> = newest_first.map(|(bytes, _)| *bytes).take(keep).collect();
    kept.reverse();
    kept
}

/// A file of a header and records.
pub(crate) fn file_bytes(header: &Header, records: &[&[u8]]) -> Vec<u8> {
    [header_bytes(header), records.concat()].concat()
}

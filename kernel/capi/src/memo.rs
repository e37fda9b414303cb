//! Memo bytes in and out: files of `memo-fmt`, the same that `wormhole --memo` reads and writes.

use crate::status::WhStatus;
use wormhole_kernel::memo::KERNEL_VERSION;
use wormhole_memo_fmt::{FORMAT_VERSION, HEADER_MAX, Header, Reader, Store, record_len, write_header, write_record};

/// The header for a simulation with these models.
pub(crate) fn header(models: u64) -> Header {
    Header { format_version: FORMAT_VERSION, kernel_version: KERNEL_VERSION, models }
}

/// Bytes of all records and their header.
///
/// # Errors
/// None that can happen.
pub(crate) fn length(header: &Header, store: &Store<'_>) -> Result<usize, WhStatus> {
    let head = write_header(header, &mut [0; HEADER_MAX])?;
    Ok(store.records().fold(head, |sum, (key, value)| sum + record_len(key, value)))
}

/// Writes them, oldest first.
///
/// # Errors
/// [`WhStatus::BufferTooShort`] if `out` is shorter than [`length`] says.
pub(crate) fn export(header: &Header, store: &Store<'_>, out: &mut [u8]) -> Result<(), WhStatus> {
    let mut at = write_header(header, out)?;
    for (key, value) in store.records() {
        at += write_record(key, value, &mut out[at..])?;
    }
    Ok(())
}

/// Takes records over; gives how many. Those that are too large for the store are left out.
///
/// # Errors
/// [`WhStatus::NotAMemo`], [`WhStatus::MemoOfOthers`]; [`WhStatus::MemoDamaged`] with what came before the damage.
pub(crate) fn import(header: &Header, store: &mut Store<'_>, bytes: &[u8], taken: &mut usize) -> Result<(), WhStatus> {
    let reader = Reader::new(bytes)?;
    if reader.header() != header {
        return Err(WhStatus::MemoOfOthers);
    }
    for record in reader {
        *taken += usize::from(store.load(&record?));
    }
    Ok(())
}

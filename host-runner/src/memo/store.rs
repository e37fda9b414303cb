//! The store of one run: records in memory, and those of them that no file has yet.

use wormhole_kernel::memo::MemoStore;
use wormhole_memo_fmt::{Record, Store, record_len, write_record};

/// A bounded store that notes what is put into it.
pub(crate) struct RunStore<'w> {
    store: Store<'w>,
    /// `None` unless there is a file to write to.
    notes: Option<Notes>,
}

/// New records, packed as in a file.
#[derive(Default)]
pub(crate) struct Notes {
    /// In the order they came.
    pub(crate) records: Vec<Box<[u8]>>,
    /// Bytes that further ones may take: a run that outgrows its store must not outgrow the memory.
    room: usize,
    /// Those that no room was left for.
    pub(crate) left_out: u64,
}

impl<'w> RunStore<'w> {
    /// An empty store in so much memory, which MUST be zero.
    pub(crate) fn new(words: &'w mut [u64]) -> RunStore<'w> {
        RunStore { store: Store::new(words), notes: None }
    }

    /// Takes a record from a file.
    pub(crate) fn load(&mut self, record: &Record<'_>) {
        // One that does not fit is simulated again if it is needed.
        self.store.load(record);
    }

    /// From now on new records are noted, up to so many bytes.
    pub(crate) fn note_new(&mut self, room: usize) {
        self.notes = Some(Notes { room, ..Notes::default() });
    }

    /// What was noted.
    pub(crate) fn into_notes(self) -> Notes {
        self.notes.unwrap_or_default()
    }

    /// As [`find`](MemoStore::find), for who only looks: it does not keep the record from being forgotten.
    pub(crate) fn peek(&self, key: &[u64]) -> Option<&[u64]> {
        self.store.peek(key)
    }

    /// The records in memory, in bytes as of a file.
    pub(crate) fn bytes(&self) -> u64 {
        self.store.records().map(|(key, value)| record_len(key, value) as u64).sum()
    }
}

impl MemoStore for RunStore<'_> {
    fn find(&mut self, key: &[u64]) -> Option<&[u64]> {
        self.store.find(key)
    }

    fn insert(&mut self, key: &[u64], value: &[u64]) {
        self.store.insert(key, value);
        if let Some(notes) = &mut self.notes {
            notes.add(key, value);
        }
    }
}

impl Notes {
    fn add(&mut self, key: &[u64], value: &[u64]) {
        match packed(key, value, self.room) {
            Some(record) => {
                self.room -= record.len();
                self.records.push(record);
            }
            None => self.left_out += 1,
        }
    }
}

/// A record as it is in a file; `None` if it takes more room, or is longer than records may be.
fn packed(key: &[u64], value: &[u64], room: usize) -> Option<Box<[u8]>> {
    let length = Some(record_len(key, value)).filter(|length| *length <= room)?;
    let mut bytes = vec![0; length].into_boxed_slice();
    write_record(key, value, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_records_are_noted_as_long_as_there_is_room() {
        let mut words = vec![0; 10_000];
        let mut store = RunStore::new(&mut words);
        store.insert(&[9], &[9]);
        let length = record_len(&[1, 2], &[3]);
        store.note_new(2 * length);
        for last in [2, 3, 4] {
            store.insert(&[1, last], &[3]);
        }
        assert_eq!(store.find(&[1, 4]), Some(&[3][..]), "what is not noted is still in memory");
        assert_eq!(store.bytes(), 3 * length as u64 + record_len(&[9], &[9]) as u64);
        let notes = store.into_notes();
        assert_eq!((notes.records.len(), notes.left_out), (2, 1));
        assert_eq!(Some(notes.records[0].clone()), packed(&[1, 2], &[3], length));
        assert!(packed(&[1, 2], &[3], length - 1).is_none());
    }
}

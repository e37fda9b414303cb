//! Memo files: sound records are found again, in the same bytes; a store in bounded memory gives back what it keeps.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use wormhole_kernel::memo::MemoStore;
use wormhole_memo_fmt::{Reader, Store, record_len, write_header, write_record};

/// A file written again from its header and records; the bytes that are not sound are left out.
fn rewritten(reader: &mut Reader<'_>) -> Vec<u8> {
    let mut bytes = vec![0; wormhole_memo_fmt::HEADER_MAX];
    let length = write_header(reader.header(), &mut bytes).expect("the version that was read");
    bytes.truncate(length);
    for record in reader.by_ref().map_while(Result::ok) {
        let (key, value): (Vec<u64>, Vec<u64>) = (record.key().collect(), record.value().collect());
        let start = bytes.len();
        bytes.resize(start + record_len(&key, &value), 0);
        let length = write_record(&key, &value, &mut bytes[start..]).expect("what was read can be written");
        bytes.truncate(start + length);
    }
    bytes
}

/// Puts records into a store of so many words.
fn check_store(file: &[u8], words: usize) {
    let mut memory = vec![0; words];
    let mut store = Store::new(&mut memory);
    let Ok(reader) = Reader::new(file) else { return };
    for record in reader.map_while(Result::ok) {
        let (key, value): (Vec<u64>, Vec<u64>) = (record.key().collect(), record.value().collect());
        let is_kept = store.load(&record);
        assert_eq!(store.find(&key), is_kept.then_some(&value[..]));
        assert!(store.used_words() <= words);
    }
    assert_eq!(store.records().count(), store.len());
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    let words = bytes.int_in_range(0..=4_096).unwrap_or_default();
    let file = bytes.take_rest();
    wormhole::fuzzing::memo(file);
    check_store(file, words);
    let Ok(mut reader) = Reader::new(file) else { return };
    let once = rewritten(&mut reader);
    let mut again = Reader::new(&once).expect("what was written is read");
    assert_eq!(rewritten(&mut again), once);
    assert_eq!(again.sound_len(), once.len());
});

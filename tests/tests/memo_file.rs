//! The memo file and the memo store from outside: damage, lies, other versions, kept files, models of the store.

use proptest::prelude::*;
use std::collections::{HashMap, HashSet, VecDeque};
use std::path::Path;
use wormhole_kernel::memo::MemoStore;
use wormhole_memo_fmt::{
    FORMAT_VERSION, FormatError, HEADER_MAX, Header, Reader, Store, WORDS_MAX, record_len, write_header, write_record,
};
use wormhole_tests::Rng;

/// A key and a value.
type Pair = (Vec<u64>, Vec<u64>);

const HEADER: Header = Header { format_version: FORMAT_VERSION, kernel_version: 300, models: 0x0123_4567_89ab_cdef };

/// Words of a store in which all samples have room.
const ROOMY: usize = 4_096;

/// Records with every form of packed words, and with empty parts. The kept file has them: they never change.
fn samples() -> Vec<Pair> {
    let floats = [1.0, -0.5, 12.5e9, 0.1, f64::INFINITY].map(f64::to_bits);
    vec![
        (vec![1, 0, 0xde, 0xdf, 0xffff, 3 << 32 | 7, u64::MAX], vec![0; 9]),
        (vec![], vec![2]),
        ([&[4, 2 << 32 | 0x1234][..], &floats].concat(), vec![]),
        (vec![0; 700], vec![u64::MAX, 0, 0, 0, u64::MAX - 1, 1 << 63, 0x0102_0304_0506_0708]),
        ((0..60).map(|bit| 3 << bit).collect(), (0..20).map(|n| n * 0x0001_0001_0000_0101).collect()),
    ]
}

fn record_of((key, value): &Pair) -> Vec<u8> {
    let mut bytes = vec![0; record_len(key, value)];
    assert_eq!(write_record(key, value, &mut bytes), Ok(bytes.len()));
    bytes
}

fn header_of(header: &Header) -> Vec<u8> {
    let mut bytes = vec![0; HEADER_MAX];
    let length = write_header(header, &mut bytes).expect("the longest header has room");
    bytes.truncate(length);
    bytes
}

fn file_of(records: &[Pair]) -> Vec<u8> {
    records.iter().map(record_of).fold(header_of(&HEADER), |file, record| [file, record].concat())
}

/// Where the header ends, and each record.
fn ends_of(records: &[Pair]) -> Vec<usize> {
    let mut ends = vec![header_of(&HEADER).len()];
    for (key, value) in records {
        ends.push(ends[ends.len() - 1] + record_len(key, value));
    }
    ends
}

/// What a reader makes of a file whose header is sound.
struct Read {
    records: Vec<Pair>,
    error: Option<FormatError>,
    sound: usize,
}

/// Reads a file, and loads what it yields into a store, which must then hold just that.
fn read(bytes: &[u8]) -> Result<Read, FormatError> {
    let mut reader = Reader::new(bytes)?;
    let mut words = vec![0; ROOMY];
    let mut store = Store::new(&mut words);
    let mut read = Read { records: vec![], error: None, sound: reader.sound_len() };
    while let Some(item) = reader.next() {
        match item {
            Ok(record) => {
                assert!(read.error.is_none(), "a record after {:?}", read.error);
                assert_eq!(reader.sound_len(), read.sound + record.len());
                read.sound = reader.sound_len();
                assert!(record.key().count_words() + record.value().count_words() <= WORDS_MAX);
                let pair: Pair = (record.key().collect(), record.value().collect());
                assert_eq!((record.key().count_words(), record.value().count_words()), (pair.0.len(), pair.1.len()));
                if store.load(&record) {
                    assert_eq!(store.find(&pair.0), Some(&pair.1[..]));
                } else {
                    assert!(pair.0.len() + pair.1.len() + 2 > ROOMY - ROOMY / 16, "not loaded: {pair:x?}");
                }
                read.records.push(pair);
            }
            Err(error) => read.error = Some(error),
        }
    }
    assert!(reader.next().is_none() && reader.sound_len() == read.sound);
    Ok(read)
}

/// CRC-32 bit by bit, independent of the crate's.
fn crc(bytes: &[u8]) -> u32 {
    !bytes.iter().fold(!0u32, |crc, byte| {
        (0..8).fold(crc ^ *byte as u32, |crc, _| if crc & 1 == 1 { crc >> 1 ^ 0xedb8_8320 } else { crc >> 1 })
    })
}

/// A record frame with a right checksum around any payload.
fn framed(payload: &[u8]) -> Vec<u8> {
    let mut frame = [&(payload.len() as u32).to_le_bytes()[..], payload].concat();
    frame.extend(crc(&frame).to_le_bytes());
    frame
}

/// A file with one record of this payload.
fn file_with(payload: &[u8]) -> Vec<u8> {
    [header_of(&HEADER), framed(payload)].concat()
}

fn varint(mut number: u64) -> Vec<u8> {
    let mut bytes = vec![];
    while number > 0x7f {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
    bytes
}

/// The payload of a record without a value, whose key is `packed` and said to have `words` words.
fn keyed(words: u64, packed: &[u8]) -> Vec<u8> {
    [&varint(words), &[0][..], &varint(packed.len() as u64), packed, &[0]].concat()
}

fn kept(name: &str) -> Vec<u8> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("data/memo").join(name);
    std::fs::read(&path).unwrap_or_else(|error| panic!("{name}: {error}"))
}

#[test]
fn what_was_written_is_read() {
    let file = file_of(&samples());
    let read = read(&file).expect("the header is sound");
    assert_eq!(read.records, samples());
    assert_eq!((read.error, read.sound), (None, file.len()));
    assert_eq!(*Reader::new(&file).expect("the header is sound").header(), HEADER);
}

#[test]
fn a_cut_at_every_byte_drops_the_torn_record_and_no_other() {
    let (file, ends) = (file_of(&samples()), ends_of(&samples()));
    for cut in 0..=file.len() {
        let whole = ends.iter().filter(|end| **end <= cut).count();
        match read(&file[..cut]) {
            Err(error) => assert!(error == FormatError::Truncated && whole == 0, "cut at {cut}: {error:?}"),
            Ok(read) => {
                let torn = !ends.contains(&cut);
                assert_eq!(read.records, samples()[..whole - 1], "cut at {cut}");
                assert_eq!(read.error, torn.then_some(FormatError::Truncated), "cut at {cut}");
                assert_eq!(read.sound, ends[whole - 1], "cut at {cut}");
            }
        }
    }
}

#[test]
fn every_flipped_bit_is_found_and_ends_the_reading() {
    let (file, ends) = (file_of(&samples()), ends_of(&samples()));
    for bit in 0..file.len() * 8 {
        let mut damaged = file.clone();
        damaged[bit / 8] ^= 1 << (bit % 8);
        let before = ends.iter().filter(|end| **end <= bit / 8).count();
        match read(&damaged) {
            Err(_) => assert_eq!(before, 0, "bit {bit}"),
            Ok(read) => {
                assert_eq!(read.records, samples()[..before - 1], "bit {bit}");
                assert!(matches!(read.error, Some(FormatError::Corrupt | FormatError::Truncated)), "bit {bit}");
                assert_eq!(read.sound, ends[before - 1], "bit {bit}");
            }
        }
    }
}

#[test]
fn a_cut_file_can_be_appended_to() {
    let (file, ends) = (file_of(&samples()), ends_of(&samples()));
    let torn = &file[..ends[2] + 5];
    let sound = read(torn).expect("the header is sound").sound;
    let mended = [&torn[..sound], &record_of(&samples()[4])].concat();
    let read = read(&mended).expect("the header is sound");
    assert_eq!(read.records, [&samples()[..2], &samples()[4..]].concat());
    assert_eq!(read.error, None);
}

#[test]
fn zeros_after_the_records_are_no_records() {
    // What some file systems leave after a crash.
    let file = [file_of(&samples()), vec![0; 4_096]].concat();
    let read = read(&file).expect("the header is sound");
    assert_eq!((read.records, read.error), (samples(), Some(FormatError::Corrupt)));
}

#[test]
fn the_last_record_of_a_key_holds() {
    let earlier = [(vec![1, 2], vec![3; 5]), (vec![8], vec![9])];
    let later = [(vec![1, 2], vec![4; 7])];
    // Merged: the header, the records of one file, those of the other.
    let merged = [file_of(&earlier), file_of(&later).split_off(ends_of(&[])[0])].concat();
    let mut words = [0; 256];
    let mut store = Store::new(&mut words);
    for record in Reader::new(&merged).expect("the header is sound") {
        assert!(store.load(&record.expect("the records are sound")));
    }
    let records: Vec<Pair> = store.records().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    assert_eq!(records, [earlier[1].clone(), later[0].clone()]);
    assert_eq!((store.len(), store.used_words(), store.evictions()), (2, 4 + 2 + 2 + 7, 0));
}

#[test]
fn counts_that_lie_are_malformed() {
    assert_eq!(read(&file_with(&keyed(3, &[1, 2, 3]))).expect("the header is sound").error, None);
    let lies = [
        keyed(2, &[1, 2, 3]),
        keyed(4, &[1, 2, 3]),
        keyed(0, &[0xdf, 0xff]),
        keyed(u32::MAX as u64, &[1]),
        keyed(u32::MAX as u64 + 1, &[1]),
        // Forms that are cut off.
        keyed(1, &[0xdf]),
        keyed(1, &[0xef, 1, 2, 3, 4, 5, 6, 7]),
        keyed(1, &[0xf7, 1]),
        // Varints that do not end.
        vec![0x80; 40],
        vec![0xff; 40],
        [&keyed(3, &[1, 2, 3])[..5], &[0xff; 12]].concat(),
    ];
    for payload in lies {
        let read = read(&file_with(&payload)).expect("the header is sound");
        assert_eq!((read.records, read.error), (vec![], Some(FormatError::Malformed)), "{payload:x?}");
        assert_eq!(read.sound, ends_of(&[])[0]);
    }
}

/// Two bytes in the file are up to 256 words in memory.
#[test]
fn words_of_a_record_are_bounded() {
    let zeros = |runs: usize| [0xdf, 0xff].repeat(runs);
    let most = file_with(&keyed(WORDS_MAX as u64, &zeros(WORDS_MAX / 256)));
    let mut reader = Reader::new(&most).expect("the header is sound");
    let record = reader.next().expect("a record").expect("as large as may be");
    assert_eq!(record.key().count_words(), WORDS_MAX);
    let mut words = [0; 256];
    assert!(!Store::new(&mut words).load(&record));

    let more = file_with(&keyed(WORDS_MAX as u64 + 1, &[&zeros(WORDS_MAX / 256)[..], &[0]].concat()));
    assert_eq!(read(&more).expect("the header is sound").error, Some(FormatError::Malformed));
    let key = vec![0; WORDS_MAX];
    let error = FormatError::RecordTooLong { words: WORDS_MAX + 1 };
    assert_eq!(write_record(&key, &[0], &mut []), Err(error));
    let need = record_len(&key, &[]);
    assert_eq!(write_record(&key, &[], &mut []), Err(FormatError::BufferTooSmall { need }));
}

#[test]
fn the_kept_file_of_version_1_is_read_and_written_as_ever() {
    let bytes = kept("v1.memo");
    assert_eq!(*Reader::new(&bytes).expect("the header is sound").header(), HEADER);
    let read = read(&bytes).expect("the header is sound");
    assert_eq!((read.records, read.error), (samples(), None));
    assert!(file_of(&samples()) == bytes, "the same records have other bytes");
}

#[test]
fn files_of_other_versions_are_told_apart_from_damage() {
    assert_eq!(Reader::new(&kept("v0.memo")).err(), Some(FormatError::UnsupportedVersion { found: 0 }));
    for found in [2, 3, u16::MAX] {
        let mut header = [&header_of(&HEADER)[..8], &found.to_le_bytes(), &[3, 0, 1, 2, 3]].concat();
        header.extend(crc(&header).to_le_bytes());
        let newer = [header, vec![0xff; 50]].concat();
        assert_eq!(Reader::new(&newer).err(), Some(FormatError::UnsupportedVersion { found }));
    }
}

/// How many words a record takes in a store beyond its own.
const LEAD: usize = 2;

/// So many cases a test. A failure names its seed or its input, and needs nothing else to be repeated.
fn cases(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// Few keys, so that they come again; of various lengths.
fn key_of(rng: &mut Rng, keys: u64) -> Vec<u64> {
    let n = rng.below(keys);
    vec![n; 1 + n as usize % 9]
}

fn value_of(rng: &mut Rng, longest: u64) -> Vec<u64> {
    let first = rng.next();
    (0..rng.below(longest + 1)).map(|n| first ^ n).collect()
}

/// Everything the store says of itself follows from its records, and each of them is as it was last inserted.
fn check_store(store: &Store<'_>, last: &HashMap<Vec<u64>, Vec<u64>>) {
    let records: Vec<Pair> = store.records().map(|(key, value)| (key.to_vec(), value.to_vec())).collect();
    for (key, value) in &records {
        assert_eq!(last.get(key), Some(value), "key {key:?}");
    }
    let keys: HashSet<_> = records.iter().map(|(key, _)| key).collect();
    assert_eq!(keys.len(), records.len(), "a key is there twice");
    assert_eq!(store.len(), records.len());
    assert_eq!(store.is_empty(), records.is_empty());
    let used: usize = records.iter().map(|(key, value)| LEAD + key.len() + value.len()).sum();
    assert_eq!(store.used_words(), used);
}

/// Random operations on a store of `words` words; gives its evictions.
fn run_store(rng: &mut Rng, words: usize, keys: u64, longest: u64) -> u64 {
    let mut memory = vec![0; words];
    let mut store = Store::new(&mut memory);
    let mut last: HashMap<Vec<u64>, Vec<u64>> = HashMap::new();
    for _ in 0..400 {
        let there: Vec<Vec<u64>> = store.records().map(|(key, _)| key.to_vec()).collect();
        let key = key_of(rng, keys);
        if rng.below(2) == 0 {
            let found = store.find(&key).map(<[u64]>::to_vec);
            assert_eq!(found.as_ref(), last.get(&key).filter(|_| there.contains(&key)));
            continue;
        }
        let (value, before) = (value_of(rng, longest), store.evictions());
        let kept = if rng.below(2) == 0 {
            let file = file_of(&[(key.clone(), value.clone())]);
            let record = Reader::new(&file).expect("a header").next().expect("a record").expect("it is sound");
            store.load(&record)
        } else {
            store.insert(&key, &value);
            store.records().any(|(other, _)| other == key)
        };
        let log = words - words / 16;
        assert_eq!(kept, words >= 32 && LEAD + key.len() + value.len() <= log);
        let replaced = there.contains(&key) as usize;
        // What was there is still there, but for the replaced one and those evicted.
        let evicted = there.len() - replaced + kept as usize - store.len();
        assert_eq!(store.evictions() - before, evicted as u64);
        if kept {
            assert_eq!(store.records().last(), Some((&key[..], &value[..])));
        }
        last.insert(key, value);
        check_store(&store, &last);
    }
    store.evictions()
}

/// The policy on records of one size: a queue whose oldest one goes, or comes to its end once more if it was found.
struct Clock {
    /// A key, or none if it has been replaced since; and whether it has been found.
    queue: VecDeque<(Option<u64>, bool)>,
    places: usize,
    most: usize,
}

impl Clock {
    fn position(&self, key: u64) -> Option<usize> {
        self.queue.iter().position(|(other, _)| *other == Some(key))
    }

    fn keys(&self) -> Vec<u64> {
        self.queue.iter().filter_map(|(key, _)| *key).collect()
    }

    fn find(&mut self, key: u64) -> bool {
        self.position(key).map(|at| self.queue[at].1 = true).is_some()
    }

    fn insert(&mut self, key: u64) {
        if let Some(at) = self.position(key) {
            self.queue[at].0 = None;
        }
        while self.queue.len() == self.places || self.keys().len() == self.most {
            match self.queue.pop_front() {
                Some((Some(found), true)) => self.queue.push_back((Some(found), false)),
                _ => continue,
            }
        }
        self.queue.push_back((Some(key), false));
    }
}

proptest! {
    #![proptest_config(cases(3_000))]

    #[test]
    fn any_bytes_are_read_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
        let _ = read(&bytes);
        let read = read(&[header_of(&HEADER), bytes.clone()].concat()).expect("the header is sound");
        prop_assert!(read.records.is_empty());
        prop_assert_eq!(read.error.is_none(), bytes.is_empty());
    }

    #[test]
    fn any_payload_with_a_right_checksum_is_read_without_panic(payload in prop::collection::vec(any::<u8>(), 0..200)) {
        let _ = read(&file_with(&payload)).expect("the header is sound");
    }

    /// Sound payloads with a few other bytes in them get further than random ones.
    #[test]
    fn any_change_with_a_right_checksum_is_read_without_panic(seed in any::<u64>()) {
        let mut rng = Rng(seed);
        let record = record_of(&samples()[rng.below(5) as usize]);
        let mut payload = record[4..record.len() - 4].to_vec();
        for _ in 0..rng.between(1, 4) {
            let at = rng.below(payload.len() as u64) as usize;
            payload[at] = rng.next() as u8;
        }
        let read = read(&file_with(&payload)).expect("the header is sound");
        prop_assert!(matches!(read.error, None | Some(FormatError::Malformed)));
        prop_assert_eq!(read.records.len(), read.error.is_none() as usize);
        // What is read is also written, perhaps in other forms, and read again.
        for pair in read.records {
            prop_assert_eq!(&self::read(&file_of(std::slice::from_ref(&pair))).expect("a header").records, &[pair]);
        }
    }

    #[test]
    fn any_words_come_back(pair in (any_words(), any_words())) {
        let pairs = [pair];
        prop_assert_eq!(&read(&file_of(&pairs)).expect("the header is sound").records, &pairs);
    }
}

fn any_words() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(any_word(), 0..60)
}

/// Words of every length, with zeros among them.
fn any_word() -> impl Strategy<Value = u64> {
    prop_oneof![
        Just(0),
        0..300u64,
        (any::<u64>(), 0..64u32).prop_map(|(word, bits)| word >> bits),
        (any::<u64>(), 0..64u32).prop_map(|(word, bits)| word << bits),
        (0..9u64, 0..70_000u64).prop_map(|(upper, lower)| upper << 32 | lower),
    ]
}

proptest! {
    #![proptest_config(cases(300))]

    #[test]
    fn a_store_never_gives_a_wrong_record(seed in any::<u64>()) {
        let mut rng = Rng(seed);
        // From nothing at all to a few dozen records.
        let words = rng.pick(&[0, 1, 15, 31, 32, 33, 64, 100, 333, 600]) as usize;
        run_store(&mut rng, words, 40, 30);
    }

    #[test]
    fn a_roomy_store_forgets_nothing(seed in any::<u64>()) {
        // 400 operations with up to 2 + 9 + 30 words each.
        prop_assert_eq!(run_store(&mut Rng(seed), 20_000, 40, 30), 0);
    }

    #[test]
    fn the_oldest_goes_unless_it_was_found(seed in any::<u64>()) {
        let mut rng = Rng(seed);
        let (words, value) = (rng.between(64, 700) as usize, vec![7; rng.between(0, 40) as usize]);
        let (index, size) = (words / 16, LEAD + 1 + value.len());
        let mut clock = Clock {
            queue: VecDeque::new(),
            places: (words - index) / size,
            most: index - index.div_ceil(4),
        };
        let mut memory = vec![0; words];
        let mut store = Store::new(&mut memory);
        for _ in 0..600 {
            let key = rng.below(2 * clock.places.min(clock.most) as u64 + 1);
            if rng.below(3) == 0 {
                prop_assert_eq!(store.find(&[key]).is_some(), clock.find(key));
            } else {
                store.insert(&[key], &value);
                clock.insert(key);
            }
            prop_assert_eq!(store.records().map(|(key, _)| key[0]).collect::<Vec<_>>(), clock.keys());
        }
    }
}

#[test]
fn a_record_too_large_for_the_store_leaves_no_old_value_behind() {
    let mut words = [0; 64];
    let mut store = Store::new(&mut words);
    store.insert(&[1], &[2]);
    store.insert(&[3], &[4]);
    store.insert(&[1], &[0; 64]);
    assert_eq!(store.len(), 1);
    assert_eq!(store.find(&[1]), None);
    assert_eq!(store.find(&[3]), Some(&[4][..]));
}

#[test]
fn memory_is_not_touched_before_records_come() {
    let mut words = vec![0; 1 << 20];
    let mut store = Store::new(&mut words);
    for n in 1..=100 {
        store.insert(&[n], &[n; 9]);
    }
    let used = store.used_words() + store.len();
    assert_eq!(words.iter().filter(|word| **word != 0).count(), used);
}

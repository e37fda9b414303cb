//! The memo store and the memo file: look-ups, insertion with and without eviction, packing and unpacking.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use wormhole_kernel::memo::MemoStore;
use wormhole_memo_fmt::{FORMAT_VERSION, Header, Reader, Store, record_len, write_header, write_record};

/// Records in a store that is looked up.
const RECORDS: u64 = 1_000;

/// Words of a key; its value has half as many. From a partition of two flows to one of a few hundred.
const KEY_WORDS: [usize; 3] = [64, 512, 4_096];

/// Words as states have them: out of 8, 4 zeros, 2 small numbers, 1 pair of numbers of 32 bits, 1 with many bits.
fn words(n: u64, count: usize) -> Vec<u64> {
    let mut state = n;
    let mut word = || {
        state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let random = (state ^ state >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        match random >> 61 {
            0..=3 => 0,
            4..=5 => random & 0xffff,
            6 => (random & 0xff) << 32 | random >> 8 & 0xff,
            _ => random,
        }
    };
    // The first word alone makes keys differ.
    std::iter::once(n).chain(std::iter::repeat_with(&mut word)).take(count).collect()
}

/// Memory for so many records with keys of `key_words`, and for the index.
fn memory(records: u64, key_words: usize) -> Vec<u64> {
    vec![0; records as usize * (2 + key_words * 3 / 2) * 17 / 16 + 64]
}

fn find(criterion: &mut Criterion, key_words: usize) {
    let mut memory = memory(RECORDS, key_words);
    let mut store = Store::new(&mut memory);
    let keys: Vec<Vec<u64>> = (0..2 * RECORDS).map(|n| words(n, key_words)).collect();
    for (n, key) in (0..RECORDS).zip(&keys) {
        store.insert(key, &words(n, key_words / 2));
    }
    let mut group = criterion.benchmark_group("memo_find");
    for (name, keys) in ["hit", "miss"].into_iter().zip(keys.chunks(RECORDS as usize)) {
        let mut turn = keys.iter().cycle();
        group.bench_function(BenchmarkId::new(name, key_words), |bencher| {
            bencher.iter(|| store.find(turn.next().expect("it never ends")).map(<[u64]>::len))
        });
    }
}

/// Each insertion into a full store has one record evicted.
fn insert(criterion: &mut Criterion, key_words: usize) {
    let mut memory = memory(RECORDS, key_words);
    let mut store = Store::new(&mut memory);
    let (mut key, value) = (words(0, key_words), words(1, key_words / 2));
    criterion.benchmark_group("memo_insert").bench_function(BenchmarkId::new("full", key_words), |bencher| {
        bencher.iter(|| {
            key[0] += 1;
            store.insert(&key, &value);
        })
    });
}

fn pack(criterion: &mut Criterion, key_words: usize) {
    let (key, value) = (words(0, key_words), words(1, key_words / 2));
    let mut bytes = vec![0; record_len(&key, &value)];
    let mut group = criterion.benchmark_group("memo_pack");
    group.throughput(Throughput::Elements((key.len() + value.len()) as u64));
    group.bench_function(BenchmarkId::from_parameter(key_words), |bencher| {
        bencher.iter(|| write_record(black_box(&key), &value, &mut bytes))
    });
}

/// Reading one record of a file, with all its checks, and loading it into a store.
fn unpack(criterion: &mut Criterion, key_words: usize) {
    let (key, value) = (words(0, key_words), words(1, key_words / 2));
    let header = Header { format_version: FORMAT_VERSION, kernel_version: 1, models: 1 };
    let mut file = vec![0; wormhole_memo_fmt::HEADER_MAX + record_len(&key, &value)];
    let mut length = write_header(&header, &mut file).expect("the header has room");
    length += write_record(&key, &value, &mut file[length..]).expect("the record has room");
    let mut memory = memory(4, key_words);
    let mut store = Store::new(&mut memory);
    let reader = Reader::new(&file[..length]).expect("the header is sound");
    let mut group = criterion.benchmark_group("memo_unpack");
    group.throughput(Throughput::Elements((key.len() + value.len()) as u64));
    group.bench_function(BenchmarkId::new("read", key_words), |bencher| {
        bencher.iter(|| black_box(reader.clone()).next().is_some_and(|record| record.is_ok()))
    });
    group.bench_function(BenchmarkId::new("read and load", key_words), |bencher| {
        bencher.iter(|| store.load(&black_box(reader.clone()).next().expect("a record").expect("it is sound")))
    });
}

fn memo_store(criterion: &mut Criterion) {
    for key_words in KEY_WORDS {
        find(criterion, key_words);
        insert(criterion, key_words);
        pack(criterion, key_words);
        unpack(criterion, key_words);
    }
}

criterion_group!(benches, memo_store);
criterion_main!(benches);

//! The pending-event set: one pop and one push, at a steady number of pending events.

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use wormhole_kernel::Span;
use wormhole_kernel::event::{Clock, EventKey, TimerId};
use wormhole_kernel::memory::Carver;
use wormhole_kernel::queue::{EventQueue, Heap4, Wheel};

/// What the kernel tells a queue about a fabric of 1 us links at 100 Gb/s.
const HORIZON: Span = Span(1 << 21);

/// Delays as a fabric of 100 Gb/s links has them.
struct Delays(u64);

impl Delays {
    /// Out of 16: 8 arrivals over a link, 4 ends of transmission, 3 paced departures, 1 far timer.
    fn next(&mut self) -> Span {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        match self.0 & 15 {
            0..=7 => Span(1_083_840),
            8..=11 => Span(83_840),
            12..=14 => Span((self.0 >> 8) % 8_000_000),
            _ => Span::from_us(50 + (self.0 >> 8) % 250),
        }
    }
}

/// A std heap keeps keys and timers in its entries. Unlike the kernel's queues it cannot move or cancel.
type StdHeap = BinaryHeap<Reverse<(EventKey, u32)>>;

fn kernel_queue<'a, Q: EventQueue<'a>>(criterion: &mut Criterion, name: &str, memory: &'a mut [u64], pending: usize) {
    let mut queue = Q::carve(&mut Carver::new(memory), pending, HORIZON).expect("memory for the queue");
    let (mut clock, mut delays) = (Clock::default(), Delays(1));
    for timer in 0..pending as u32 {
        queue.schedule(TimerId(timer), clock.issue(delays.next()));
    }
    criterion.benchmark_group("event_queue").bench_function(BenchmarkId::new(name, pending), |bencher| {
        bencher.iter(|| {
            let (key, timer) = queue.pop().expect("as many as before");
            clock.advance(key);
            queue.schedule(timer, clock.issue(delays.next()));
        })
    });
}

fn std_heap(criterion: &mut Criterion, pending: usize) {
    let (mut queue, mut clock, mut delays) = (StdHeap::new(), Clock::default(), Delays(1));
    for timer in 0..pending as u32 {
        queue.push(Reverse((clock.issue(delays.next()), timer)));
    }
    criterion.benchmark_group("event_queue").bench_function(BenchmarkId::new("BinaryHeap", pending), |bencher| {
        bencher.iter(|| {
            let Reverse((key, timer)) = queue.pop().expect("as many as before");
            clock.advance(key);
            queue.push(Reverse((clock.issue(delays.next()), timer)));
        })
    });
}

fn event_queue(criterion: &mut Criterion) {
    for pending in [1_000, 100_000] {
        kernel_queue::<Wheel<'_>>(criterion, "Wheel", &mut vec![0; Wheel::words(pending)], pending);
        kernel_queue::<Heap4<'_>>(criterion, "Heap4", &mut vec![0; Heap4::words(pending)], pending);
        std_heap(criterion, pending);
    }
}

criterion_group!(benches, event_queue);
criterion_main!(benches);

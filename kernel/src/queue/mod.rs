//! The pending-event set.
//!
//! Who depends on this trait: the kernel's event loop, once per event. Two implementations:
//! [`Wheel`] (constant time for the nanosecond-scale future of a network, the default) and [`Heap4`]
//! (a 4-ary heap, for tiny memories, and to check the wheel against).

mod heap4;
mod wheel;

pub use heap4::Heap4;
pub use wheel::Wheel;

use crate::error::CapacityError;
use crate::event::{EventKey, TimerId};
use crate::memory::Carver;
use crate::units::Span;

/// A set of timers, each pending at most once, popped in key order.
///
/// An implementation MUST pop in ascending [`EventKey`] order; keys are unique, so the order is total. Its
/// caller never schedules before the last popped key.
pub trait EventQueue<'a>: Sized {
    /// Words of memory a queue of `timers` timers takes.
    fn words(timers: usize) -> usize;

    /// Makes an empty queue for `timers` timers from zeroed memory. `horizon` is how far ahead most events lie.
    ///
    /// # Errors
    /// [`CapacityError`] if the memory is too short.
    fn carve(carver: &mut Carver<'a>, timers: usize, horizon: Span) -> Result<Self, CapacityError>;

    /// Makes `timer` due at `key`; replaces what was pending for it.
    fn schedule(&mut self, timer: TimerId, key: EventKey);

    /// Makes `timer` not pending; says whether it was.
    fn cancel(&mut self, timer: TimerId) -> bool;

    /// When `timer` is due, if it is pending.
    fn pending(&self, timer: TimerId) -> Option<EventKey>;

    /// When the earliest timer is due.
    fn peek(&self) -> Option<EventKey>;

    /// Takes the earliest timer out.
    fn pop(&mut self) -> Option<(EventKey, TimerId)>;

    /// Number of pending timers.
    fn len(&self) -> usize;

    /// Whether nothing is pending.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Clock;

    /// A tiny xorshift: the kernel has no random numbers of its own.
    struct Rng(u64);
    impl Rng {
        fn below(&mut self, n: u64) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0 % n
        }
    }

    const TIMERS: usize = 64;

    /// An interpreter takes minutes for so many.
    const STEPS: u64 = if cfg!(miri) { 300 } else { 4_000 };

    /// Runs random operations against both queues and a sorted list; all three must agree.
    fn agree(seed: u64, delays: &[u64]) {
        let mut memory = [const { [0u64; 4_000] }; 2];
        assert!(Wheel::words(TIMERS) <= 4_000 && Heap4::words(TIMERS) <= 4_000);
        let [a, b] = &mut memory;
        let mut wheel = Wheel::carve(&mut Carver::new(a), TIMERS, Span(1_000_000)).unwrap();
        let mut heap = Heap4::carve(&mut Carver::new(b), TIMERS, Span(1_000_000)).unwrap();
        let mut model: heapless::Vec<(EventKey, u32), TIMERS> = heapless::Vec::new();
        let mut clock = Clock::default();
        let mut rng = Rng(seed);
        for step in 0..STEPS {
            let timer = TimerId(rng.below(TIMERS as u64) as u32);
            match rng.below(5) {
                0 | 1 => {
                    let range = delays[rng.below(delays.len() as u64) as usize];
                    let key = clock.issue(Span(rng.below(range + 1)));
                    wheel.schedule(timer, key);
                    heap.schedule(timer, key);
                    model.retain(|e| e.1 != timer.0);
                    model.push((key, timer.0)).unwrap();
                }
                2 => {
                    let there = model.iter().any(|e| e.1 == timer.0);
                    model.retain(|e| e.1 != timer.0);
                    assert_eq!((wheel.cancel(timer), heap.cancel(timer)), (there, there), "seed {seed} step {step}");
                }
                _ => {
                    let want = model.iter().min().copied();
                    let due = want.map(|e| e.0);
                    assert_eq!((wheel.peek(), heap.peek()), (due, due), "seed {seed} step {step}");
                    let popped = want.map(|(key, timer)| (key, TimerId(timer)));
                    assert_eq!((wheel.pop(), heap.pop()), (popped, popped), "seed {seed} step {step}");
                    if let Some((key, timer)) = want {
                        model.retain(|e| e.1 != timer);
                        clock.advance(key);
                    }
                }
            }
            assert_eq!((wheel.len(), heap.len()), (model.len(), model.len()), "seed {seed} step {step}");
            let pending = model.iter().find(|e| e.1 == timer.0).map(|e| e.0);
            assert_eq!((wheel.pending(timer), heap.pending(timer)), (pending, pending));
        }
    }

    #[test]
    fn both_queues_equal_a_sorted_list() {
        let seeds = if cfg!(miri) { 1..2 } else { 1..40 };
        for seed in seeds {
            agree(seed, &[1_000, 1_000_000]);
            agree(seed, &[0, 3, 1_000]);
            agree(seed, &[100_000, 1_000_000_000, 1_000_000_000_000]);
        }
    }
}

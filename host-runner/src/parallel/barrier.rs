//! Where threads that work in step wait for each other: mostly for so short a time that sleeping would take longer.

use super::sync::{AtomicBool, AtomicUsize, Ordering, spin_loop, yield_now};

/// Looks at the barrier before a thread lets others have its processor: some microseconds.
const SPINS: u32 = 1_000;

/// One of the threads will never come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// A barrier for a number of threads, again and again, that can break.
pub(super) struct Barrier {
    threads: usize,
    arrived: AtomicUsize,
    /// How often all have been here.
    turn: AtomicUsize,
    is_broken: AtomicBool,
}

impl Barrier {
    pub(super) fn new(threads: usize) -> Barrier {
        Barrier { threads, arrived: AtomicUsize::new(0), turn: AtomicUsize::new(0), is_broken: AtomicBool::new(false) }
    }

    /// Waits until all threads are here. What each of them has done before, all see afterwards.
    ///
    /// # Errors
    /// [`Broken`] if one of them has panicked.
    pub(super) fn wait(&self) -> Result<(), Broken> {
        // It stays as it is until this thread has arrived, too.
        let turn = self.turn.load(Ordering::Relaxed);
        if self.arrived.fetch_add(1, Ordering::AcqRel) + 1 == self.threads {
            self.arrived.store(0, Ordering::Relaxed);
            self.turn.store(turn.wrapping_add(1), Ordering::Release);
        }
        let mut looks = 0;
        while self.turn.load(Ordering::Acquire) == turn {
            if self.is_broken.load(Ordering::Relaxed) {
                return Err(Broken);
            }
            if looks < SPINS {
                looks += 1;
                spin_loop();
            } else {
                yield_now();
            }
        }
        Ok(())
    }

    /// Breaks the barrier if the thread that has this panics.
    pub(super) fn breaks_in_a_panic(&self) -> impl Drop + '_ {
        Breaker(self)
    }
}

struct Breaker<'b>(&'b Barrier);

impl Drop for Breaker<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() {
            self.0.is_broken.store(true, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::atomic::AtomicU64;

    #[test]
    fn nobody_is_a_turn_ahead() {
        const THREADS: u64 = 3;
        let (barrier, sum) = (&Barrier::new(THREADS as usize), &AtomicU64::new(0));
        std::thread::scope(|scope| {
            for _ in 0..THREADS {
                scope.spawn(move || {
                    for turn in 1..=1_000 {
                        sum.fetch_add(1, Ordering::Relaxed);
                        barrier.wait().unwrap();
                        assert_eq!(sum.load(Ordering::Relaxed), turn * THREADS);
                        barrier.wait().unwrap();
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_of_one_thread_lets_the_others_go() {
        let barrier = &Barrier::new(2);
        let waited = std::thread::scope(|scope| {
            let waits = scope.spawn(|| barrier.wait());
            let panics = scope.spawn(|| {
                let _breaker = barrier.breaks_in_a_panic();
                panic!("as a model might");
            });
            assert!(panics.join().is_err());
            waits.join().unwrap()
        });
        assert_eq!(waited, Err(Broken));
    }
}

//! How far each of several threads has come, for others to wait for: mostly for so short a time that sleeping would
//! take longer.

use super::sync::{AtomicBool, AtomicUsize, Ordering, spin_loop, yield_now};

/// Looks at a thread's milestones before one that waits lets others have its processor: some microseconds.
const SPINS: u32 = 1_000;

/// One of the threads will not come any further.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Broken;

/// Milestones that each of several threads passes one after the other.
pub(super) struct Milestones {
    passed: Vec<Passed>,
    is_broken: AtomicBool,
}

/// Those of one thread, in cache lines that no other thread writes to.
#[repr(align(128))]
struct Passed(AtomicUsize);

impl Milestones {
    pub(super) fn new(threads: usize) -> Milestones {
        let passed = (0..threads).map(|_| Passed(AtomicUsize::new(0))).collect();
        Milestones { passed, is_broken: AtomicBool::new(false) }
    }

    /// This thread passes its next milestone. Who waits for that sees all that it has done before.
    pub(super) fn pass(&self, thread: usize) {
        self.passed[thread].0.fetch_add(1, Ordering::Release);
    }

    /// Waits until every thread has passed so many.
    ///
    /// # Errors
    /// [`Broken`] if one of them has panicked.
    pub(super) fn wait(&self, count: usize) -> Result<(), Broken> {
        self.passed.iter().try_for_each(|passed| self.wait_for(passed, count))
    }

    fn wait_for(&self, passed: &Passed, count: usize) -> Result<(), Broken> {
        let mut looks = 0;
        while passed.0.load(Ordering::Acquire) < count {
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

    /// Nobody waits any more if the thread that has this panics.
    pub(super) fn breaks_in_a_panic(&self) -> impl Drop + '_ {
        Breaker(self)
    }
}

struct Breaker<'m>(&'m Milestones);

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
    use std::sync::atomic::AtomicUsize as Count;

    #[test]
    fn nobody_goes_on_before_the_others_have_passed() {
        const THREADS: usize = 3;
        let (milestones, passed) = (&Milestones::new(THREADS), &[const { Count::new(0) }; THREADS]);
        std::thread::scope(|scope| {
            for thread in 0..THREADS {
                scope.spawn(move || {
                    for count in 1..=1_000 {
                        passed[thread].store(count, Ordering::Relaxed);
                        milestones.pass(thread);
                        // One more than the others may be known to have.
                        milestones.wait(count - 1).unwrap();
                        passed.iter().for_each(|of| assert!(of.load(Ordering::Relaxed) >= count - 1));
                    }
                });
            }
        });
    }

    #[test]
    fn a_panic_of_one_thread_lets_the_others_go() {
        let milestones = &Milestones::new(2);
        let waited = std::thread::scope(|scope| {
            let waits = scope.spawn(|| {
                milestones.pass(0);
                milestones.wait(1)
            });
            let panics = scope.spawn(|| {
                let _breaker = milestones.breaks_in_a_panic();
                panic!("as a model might");
            });
            assert!(panics.join().is_err());
            waits.join().unwrap()
        });
        assert_eq!(waited, Err(Broken));
    }
}

//! An allocator that counts what a thread allocates. A test that wants it names it as its global allocator.

// A global allocator is `unsafe` by its trait; this one only counts and hands on to the system's.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// What a thread has allocated while it was counted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Allocated {
    /// Calls that asked for memory.
    pub calls: u64,
    /// Bytes not given back yet; below 0 if more was given back than taken.
    pub live: i64,
    /// Most bytes at once.
    pub peak: i64,
}

thread_local! {
    /// `None` while nothing is counted. Per thread: the harness allocates in its own.
    static COUNTED: Cell<Option<Allocated>> = const { Cell::new(None) };
}

/// See the module.
pub struct Counting;

impl Counting {
    fn count(calls: u64, bytes: i64) {
        // While a thread ends its variables are gone: nothing is counted then.
        let _ = COUNTED.try_with(|counted| {
            counted.set(counted.get().map(|sum| {
                let live = sum.live + bytes;
                Allocated { calls: sum.calls + calls, live, peak: sum.peak.max(live) }
            }))
        });
    }
}

// SAFETY: every call is handed to the system allocator as it came; the counter itself does not allocate.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        Counting::count(1, layout.size() as i64);
        // SAFETY: the caller keeps the contract, which is the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        Counting::count(1, layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        Counting::count(1, size as i64 - layout.size() as i64);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        Counting::count(0, -(layout.size() as i64));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }
}

/// What this thread allocates while `run` runs, if [`Counting`] is the allocator; and what `run` gives.
pub fn allocated<T>(run: impl FnOnce() -> T) -> (T, Allocated) {
    COUNTED.set(Some(Allocated::default()));
    let result = run();
    (result, COUNTED.take().unwrap_or_default())
}

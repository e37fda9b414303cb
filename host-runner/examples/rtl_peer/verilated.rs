//! The queue in RTL: the shared library that `build.sh` makes, loaded and called.
//!
//! The only `unsafe` code of this example is here. What it relies on is that the library is the one that `build.sh` has
//! made of this folder: its functions are called by the signatures in `wrapper.cpp`.
#![allow(unsafe_code)]

use crate::axis::{EcnQueue, Offer, Pins};
use libloading::{Error, Library};
use std::ffi::c_void;
use std::path::Path;
use std::ptr::NonNull;

type New = unsafe extern "C" fn(threshold: u32) -> Option<NonNull<c_void>>;
type Run = unsafe extern "C" fn(
    rtl: NonNull<c_void>,
    cycles: usize,
    offers: *const Offer,
    offer_count: usize,
    ready: *const u8,
    pins: *mut Pins,
) -> usize;
type Free = unsafe extern "C" fn(rtl: NonNull<c_void>);

/// A queue under Verilator.
pub(crate) struct Verilated {
    rtl: NonNull<c_void>,
    run: Run,
    free: Free,
    /// Holds the code of the functions.
    _library: Library,
}

impl Verilated {
    /// Loads the library, and makes a queue. `threshold` is in beats: while more wait, frames that come in are marked.
    ///
    /// # Errors
    /// If the library is not there, or is not one of these.
    ///
    /// # Panics
    /// If there is no memory for the queue.
    pub(crate) fn load(library: &Path, threshold: u32) -> Result<Verilated, Error> {
        // SAFETY: loading runs the library's initialisers: those of Verilator's run time, which only fill its tables.
        let library = unsafe { Library::new(library) }?;
        // SAFETY: the types are the signatures in `wrapper.cpp`. The library is kept for as long as they are used.
        let (new, run, free) = unsafe {
            (*library.get::<New>(b"rtl_new")?, *library.get::<Run>(b"rtl_run")?, *library.get::<Free>(b"rtl_free")?)
        };
        // SAFETY: it may be called at any time; it gives a queue of its own, or null.
        let rtl = unsafe { new(threshold) }.expect("memory for the queue");
        Ok(Verilated { rtl, run, free, _library: library })
    }
}

impl EcnQueue for Verilated {
    fn run(&mut self, offers: &[Offer], ready: &[u8], pins: &mut [Pins]) -> usize {
        assert_eq!(ready.len(), pins.len(), "a byte of `ready` and the pins for every cycle");
        // SAFETY: the queue is alive and ours alone. The function reads `offers.len()` offers and a byte a cycle, and
        // writes the pins of so many cycles: both slices have as many, and it keeps no pointer.
        unsafe { (self.run)(self.rtl, ready.len(), offers.as_ptr(), offers.len(), ready.as_ptr(), pins.as_mut_ptr()) }
    }
}

impl Drop for Verilated {
    fn drop(&mut self) {
        // SAFETY: the queue is alive, and nobody calls it any more.
        unsafe { (self.free)(self.rtl) }
    }
}

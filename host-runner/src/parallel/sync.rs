//! What milestones are made of. The tests with loom have a module of that name, with loom's own.

pub(super) use std::hint::spin_loop;
pub(super) use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use std::thread::yield_now;

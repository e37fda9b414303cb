//! What milestones are made of, as loom has it.

pub(super) use loom::hint::spin_loop;
pub(super) use loom::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
pub(super) use loom::thread::yield_now;

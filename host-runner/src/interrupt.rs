//! Ctrl-C and the wish of a batch system to end: the run ends in order, with what it has.

use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

static WISHED: AtomicBool = AtomicBool::new(false);

/// From now on SIGINT, SIGTERM and SIGHUP are noted instead of ending the process. A second one ends it.
///
/// # Errors
/// The system does not let signals be caught, or they are caught already.
pub(crate) fn listen() -> io::Result<()> {
    let note = || {
        if WISHED.swap(true, Ordering::Relaxed) {
            std::process::exit(i32::from(crate::ending::ExitStatus::Interrupted as u8));
        }
        eprintln!("ending; what is done is being written (once more: at once, without)");
    };
    ctrlc::set_handler(note).map_err(io::Error::other)
}

/// Whether the process was asked to end.
pub(crate) fn is_wished() -> bool {
    WISHED.load(Ordering::Relaxed)
}

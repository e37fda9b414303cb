//! What a plugin gave that it may not give: the first time is noted.

use super::abi::{MAX_TIMER_PS, MIN_TIMER_PS};
use core::fmt;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::Relaxed};

/// Numbered names, by one macro: the number stands for the name in [`Faults`].
macro_rules! numbered {
    ($(#[$doc:meta])* $name:ident { $($(#[$about:meta])* $item:ident = $text:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, Debug)]
        pub enum $name {
            $($(#[$about])* $item,)*
        }

        impl $name {
            const ALL: &'static [$name] = &[$($name::$item,)*];

            /// Its name in the header.
            pub fn name(self) -> &'static str {
                match self { $($name::$item => $text,)* }
            }
        }
    };
}

numbered! {
    /// A function of a plugin.
    #[allow(missing_docs)] // Named as in the header.
    Call {
        Start = "start",
        OnAck = "on_ack",
        OnTimer = "on_timer",
        OnTimeout = "on_timeout",
        Relative = "relative",
        Absolute = "absolute",
        Marks = "marks",
        StartPort = "start_port",
        AddPort = "add_port",
        Admit = "admit",
        Pauses = "pauses",
        Release = "release",
        Resumes = "resumes",
        IsCalm = "is_calm",
        Replace = "replace",
    }
}

numbered! {
    /// What is wrong with an output.
    Wrong {
        /// A window of 0.
        Window = "window_bytes",
        /// A rate of 0.
        Rate = "rate_bps",
        /// A timer too soon or too late.
        Timer = "timer_ps",
        /// A timer that there is not.
        Timers = "timers_set",
        /// A timer of a flow that only starts.
        EarlyTimers = "timers_set",
        /// A verdict that is neither 0 nor 1.
        Verdict = "return value",
        /// Bytes behind the state were written; the value is the first one's offset.
        Overrun = "byte",
    }
}

/// An output that cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Fault {
    /// The function.
    pub call: Call,
    /// What of it.
    pub wrong: Wrong,
    /// The value.
    pub value: u64,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (call, value) = (self.call.name(), self.value);
        match self.wrong {
            Wrong::Window | Wrong::Rate => {
                write!(f, "{call} gave {} {value}, expected at least 1", self.wrong.name())
            }
            Wrong::Timer => write!(f, "{call} gave timer_ps {value}, expected {MIN_TIMER_PS} to {MAX_TIMER_PS}"),
            Wrong::Timers => write!(f, "{call} gave timers_set {value:#x}, expected bits 0 to 2"),
            Wrong::EarlyTimers => {
                write!(f, "{call} gave timers_set {value:#x}, expected 0: only later calls set timers")
            }
            Wrong::Verdict => write!(f, "{call} returned {}, expected 0 or 1", value as i64),
            Wrong::Overrun => write!(f, "{call} wrote byte {value} of a state that is shorter"),
        }
    }
}

/// The first fault of a plugin.
#[derive(Debug, Default)]
pub(super) struct Faults {
    /// 0 if there is none, else the numbers of the call and of what is wrong, and 1.
    what: AtomicU32,
    value: AtomicU64,
}

/// More than there are kinds of wrong outputs.
const RADIX: u32 = 256;

impl Faults {
    #[cold]
    pub(super) fn note(&self, call: Call, wrong: Wrong, value: u64) {
        if self.what.load(Relaxed) == 0 {
            self.value.store(value, Relaxed);
            self.what.store(1 + call as u32 * RADIX + wrong as u32, Relaxed);
        }
    }

    pub(super) fn first(&self) -> Option<Fault> {
        let what = self.what.load(Relaxed).checked_sub(1)?;
        let call = *Call::ALL.get((what / RADIX) as usize)?;
        let wrong = *Wrong::ALL.get((what % RADIX) as usize)?;
        Some(Fault { call, wrong, value: self.value.load(Relaxed) })
    }

    pub(super) fn forget(&self) {
        self.what.store(0, Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn the_first_fault_stays() {
        let faults = Faults::default();
        assert_eq!(faults.first(), None);
        faults.note(Call::Replace, Wrong::Overrun, 40);
        faults.note(Call::OnAck, Wrong::Rate, 0);
        let first = faults.first().expect("there is one");
        assert_eq!(first, Fault { call: Call::Replace, wrong: Wrong::Overrun, value: 40 });
        assert_eq!(first.to_string(), "replace wrote byte 40 of a state that is shorter");
        faults.forget();
        faults.note(Call::Start, Wrong::Window, 0);
        assert_eq!(faults.first().expect("there is one").to_string(), "start gave window_bytes 0, expected at least 1");
    }
}

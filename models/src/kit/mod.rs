//! The conformance kit: what models must keep to, tried on any of them with random inputs from fixed seeds.
//!
//! [`CcaKit`] tries a congestion control, [`MarkerKit`] a marker, [`BuffersKit`] a buffer manager. Each gives a list of
//! [`Check`]s. A model in Rust is tried by a test that [asserts](assert_passed) that all of them pass; `wormhole plugin
//! check` tries a plugin and prints them.

pub(crate) mod buffers;
pub(crate) mod cca;
pub(crate) mod marker;

pub use buffers::BuffersKit;
pub use cca::{CcaKit, MAX_TIMER, MIN_TIMER};
pub use marker::MarkerKit;

use alloc::string::String;
use core::fmt;

/// One thing that was tried.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Check {
    /// What a model must keep to, in a few words.
    pub name: &'static str,
    /// How it went.
    pub verdict: Verdict,
}

/// How a check went.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Verdict {
    /// The model keeps to it.
    Passed,
    /// There is nothing to try, and why.
    NotApplicable(&'static str),
    /// It does not; where it was seen first.
    Failed(Difference),
}

/// Two things that should be equal.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Calls before this one.
    pub step: usize,
    /// What the model was given.
    pub input: String,
    /// What came of it.
    pub found: String,
    /// What should have come of it.
    pub expected: String,
}

/// An output that a wrapper has put right: see [`Misstep::what`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Misstep {
    /// It wrote behind its state; else a value is out of bounds.
    pub is_overrun: bool,
    /// In words.
    pub what: String,
}

/// Gives the misstep since it was last asked, if there was one.
pub type Missteps<'f> = dyn Fn() -> Option<Misstep> + 'f;

/// What the checks of models are called that cannot write behind their state.
const IN_RUST: Verdict = Verdict::NotApplicable("the model is not foreign code");

impl Check {
    fn new(name: &'static str, result: Result<(), Difference>) -> Check {
        Check { name, verdict: result.map_or_else(Verdict::Failed, |()| Verdict::Passed) }
    }
}

impl fmt::Display for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.verdict {
            Verdict::Passed => write!(f, "{}: pass", self.name),
            Verdict::NotApplicable(why) => write!(f, "{}: not applicable: {why}", self.name),
            Verdict::Failed(difference) => write!(f, "{}: FAIL {difference}", self.name),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { step, input, found, expected } = self;
        write!(f, "at step {step}\n  input:    {input}\n  found:    {found}\n  expected: {expected}")
    }
}

/// Nothing, unless a check has failed.
///
/// # Panics
/// With what has failed.
pub fn assert_passed(checks: &[Check]) {
    for check in checks {
        assert!(!matches!(check.verdict, Verdict::Failed(_)), "{check}");
    }
}

/// xorshift64* (Vigna 2016).
#[derive(Clone, Debug)]
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> 11) % end
    }
}

/// What a wrapper is expected to have put right.
const NOTHING_PUT_RIGHT: &str = "nothing that must be put right";

/// The bytes of a state, shown as words of eight bytes.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Bytes<'s>(&'s [u8]);

impl fmt::Debug for Bytes<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.chunks(8).enumerate().try_for_each(|(i, word)| {
            let bytes = word.iter().rev();
            bytes.fold(f.write_str(if i == 0 { "" } else { " " }), |done, byte| done.and(write!(f, "{byte:02x}")))
        })
    }
}

/// Fails with what differs.
fn same<T: PartialEq + fmt::Debug>(
    step: usize,
    input: &dyn fmt::Display,
    found: &T,
    expected: &T,
) -> Result<(), Difference> {
    if found == expected {
        return Ok(());
    }
    let text = |thing: &dyn fmt::Debug| alloc::format!("{thing:?}");
    Err(Difference { step, input: alloc::format!("{input}"), found: text(found), expected: text(expected) })
}

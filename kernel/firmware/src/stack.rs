//! How much stack is used: what lies below is painted at the start, and looked at in the end.

// Reads and writes memory that no variable owns.
#![allow(unsafe_code)]

use core::ptr::{addr_of, read_volatile, with_exposed_provenance, with_exposed_provenance_mut, write_volatile};

unsafe extern "C" {
    /// Where static data ends and the room for the stack begins.
    static __euninit: u32;
    /// Where the stack begins and that room ends.
    static _stack_start: u32;
}

const PAINT: u32 = 0x5741_4c4c;
/// More than the frame of [`paint`] takes.
const MARGIN: usize = 256;
const WORD: usize = size_of::<u32>();

/// The addresses of the room for the stack.
fn room() -> (usize, usize) {
    (addr_of!(__euninit).addr(), addr_of!(_stack_start).addr())
}

/// Bytes of the room for the stack.
pub(crate) fn size() -> usize {
    let (bottom, top) = room();
    top - bottom
}

/// Paints what is not in use yet.
#[inline(never)]
pub(crate) fn paint() {
    let here = 0u32;
    let (bottom, _) = room();
    for address in (bottom..addr_of!(here).addr() - MARGIN).step_by(WORD) {
        // SAFETY: the linker gives nothing a place there, and the stack has not grown down to it.
        unsafe { write_volatile(with_exposed_provenance_mut(address), PAINT) };
    }
}

/// Most bytes that have been in use at once. Equals [`size`] if the stack may have run into static data.
pub(crate) fn most_used() -> usize {
    let (bottom, top) = room();
    let painted = (bottom..top).step_by(WORD).take_while(|&address| {
        // SAFETY: a word of the stack's room, aligned as its bottom is. Read as it is, whoever owns it.
        unsafe { read_volatile(with_exposed_provenance::<u32>(address)) == PAINT }
    });
    size() - WORD * painted.count()
}

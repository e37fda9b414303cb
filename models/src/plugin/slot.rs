//! The memory of a foreign state: words, of which the plugin has the first bytes and nobody the others.

use super::fault::{Call, Faults, Wrong};
use bytemuck::{Pod, Zeroable};
use core::ffi::c_void;

/// What the bytes that are nobody's hold. Not zero: an overrun is often one with zeros.
pub(super) const GUARD: u8 = 0xa5;

/// Words, the last two of which are always nobody's. What is nobody's holds `G`.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(super) struct Slot<const WORDS: usize, const G: u8 = GUARD>([u64; WORDS]);

/// Words of a slot for states of up to so many bytes.
pub(super) const fn slot_words(most: u32) -> usize {
    most.div_ceil(8) as usize + 2
}

impl<const WORDS: usize, const G: u8> Slot<WORDS, G> {
    /// More bytes than any slot has.
    const UNTOUCHED: [u8; 256] = [G; 256];

    /// A state of so many zero bytes, no more than there is room for.
    pub(super) fn new(size: u32) -> Self {
        let mut slot = Slot([0; WORDS]);
        slot.rest(size).fill(G);
        slot
    }

    fn rest(&mut self, size: u32) -> &mut [u8] {
        let bytes = bytemuck::cast_slice_mut(&mut self.0);
        let size = bytes.len().min(size as usize);
        &mut bytes[size..]
    }

    /// The state, for a plugin to read.
    pub(super) fn read(&self) -> *const c_void {
        self.0.as_ptr().cast()
    }

    /// The state, for a plugin to change.
    pub(super) fn write(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    /// Whether a plugin has kept to its bytes; if not, notes it and puts the others right.
    #[inline(always)]
    pub(super) fn check(&mut self, size: u32, call: Call, faults: &Faults) {
        const { assert!(8 * WORDS <= Self::UNTOUCHED.len()) };
        let rest = self.rest(size);
        if *rest != Self::UNTOUCHED[..rest.len()] {
            let at = rest.iter().position(|byte| *byte != G).unwrap_or(0);
            faults.note(call, Wrong::Overrun, u64::from(size) + at as u64);
            rest.fill(G);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_behind_the_state_is_noticed_and_undone() {
        let faults = Faults::default();
        let clean: Slot<4> = Slot::new(13);
        let mut slot = clean;
        bytemuck::cast_slice_mut::<u64, u8>(&mut slot.0)[12] = 9;
        slot.check(13, Call::OnAck, &faults);
        assert_eq!(faults.first(), None);
        bytemuck::cast_slice_mut::<u64, u8>(&mut slot.0)[14] = 0;
        slot.check(13, Call::OnAck, &faults);
        assert_eq!(faults.first().map(|fault| (fault.wrong, fault.value)), Some((Wrong::Overrun, 14)));
        assert_eq!(slot.0[2..], clean.0[2..]);
    }
}

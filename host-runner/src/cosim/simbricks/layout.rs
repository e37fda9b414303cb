//! Where a ring of slots is in the shared memory.

/// Bytes of a slot before the payload of its packet.
pub(super) const SLOT_HEADER: usize = 64;

/// Where a ring is in the shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Layout {
    /// Byte of its first slot.
    pub(super) offset: usize,
    /// Bytes of a slot.
    pub(super) slot: usize,
    /// Slots.
    pub(super) slots: usize,
}

impl Layout {
    /// Bytes of the shared memory up to the end of this ring. `None`: more than there can be.
    pub(super) fn end(self) -> Option<usize> {
        self.slot.checked_mul(self.slots)?.checked_add(self.offset)
    }

    /// The most bytes of a packet.
    pub(super) fn longest_packet(self) -> usize {
        self.slot - SLOT_HEADER
    }
}

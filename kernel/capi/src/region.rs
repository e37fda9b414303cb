//! Laying things out in one piece of caller memory, front to back.
//!
//! Parts never overlap, and what refers to another part was placed after it. Nothing that is placed needs to be
//! dropped: all of it is plain data and references into the same memory.
#![allow(unsafe_code, reason = "values are placed in memory of the caller")]

use crate::constants::WH_ALIGNMENT;
use crate::status::WhStatus;

/// Memory of which the front is given away.
pub(crate) struct Region {
    next: *mut u8,
    left: usize,
}

/// Bytes that `count` values take, or `None` if no memory is so large.
pub(crate) fn bytes_for<T>(count: usize) -> Option<usize> {
    count.checked_mul(size_of::<T>())?.checked_next_multiple_of(WH_ALIGNMENT)
}

impl Region {
    /// All of `memory`.
    ///
    /// # Safety
    /// It is aligned to [`WH_ALIGNMENT`], `bytes` of it are initialised and writable, and while anything that is placed
    /// in it is in use, nobody else touches them and they stay where they are.
    pub(crate) unsafe fn new(memory: *mut u8, bytes: usize) -> Region {
        Region { next: memory, left: bytes }
    }

    fn take<T>(&mut self, count: usize) -> Result<*mut T, WhStatus> {
        const { assert!(align_of::<T>() <= WH_ALIGNMENT) };
        let bytes = bytes_for::<T>(count).filter(|&bytes| bytes <= self.left).ok_or(WhStatus::OutOfMemory)?;
        let place = self.next;
        // SAFETY: so much is left of the region.
        self.next = unsafe { place.add(bytes) };
        self.left -= bytes;
        Ok(place.cast())
    }

    /// Room for a value that is not made yet.
    pub(crate) fn reserve<T>(&mut self) -> Result<*mut T, WhStatus> {
        self.take(1)
    }

    /// Places a value.
    pub(crate) fn place<T>(&mut self, value: T) -> Result<*mut T, WhStatus> {
        let place = self.take::<T>(1)?;
        // SAFETY: `take` gives aligned room for it.
        unsafe { place.write(value) };
        Ok(place)
    }

    /// Places as many values as there are.
    ///
    /// # Errors
    /// Those of a value, and [`WhStatus::OutOfMemory`].
    pub(crate) fn place_all<T: Copy>(
        &mut self,
        count: usize,
        value: impl Fn(usize) -> Result<T, WhStatus>,
    ) -> Result<&'static mut [T], WhStatus> {
        let first = self.take::<T>(count)?;
        for index in 0..count {
            let value = value(index)?;
            // SAFETY: `take` gives aligned room for `count` values.
            unsafe { first.add(index).write(value) };
        }
        // SAFETY: all of them have been written, and nobody else has this part of the memory. It lasts as long as it is
        // used: that is what `new` asks for.
        Ok(unsafe { core::slice::from_raw_parts_mut(first, count) })
    }

    /// Words as they are.
    pub(crate) fn words(&mut self, count: usize) -> Result<&'static mut [u64], WhStatus> {
        let first = self.take::<u64>(count)?;
        // SAFETY: as above; the memory is initialised, and every bit pattern is a number.
        Ok(unsafe { core::slice::from_raw_parts_mut(first, count) })
    }
}

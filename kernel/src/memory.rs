//! Arenas carved from one slice of caller memory.
//!
//! The kernel never allocates. The caller hands over **zeroed** 8-byte words, once; every table is a typed
//! view of a part of them, and all-zero is each table's empty state. On a host `vec![0u64; words]` serves:
//! the pages of a large zeroed vector are only backed by real memory once they are touched, so generous
//! limits cost little. That is also why nothing is cleared here.

use crate::error::CapacityError;
use bytemuck::Pod;

/// Hands out typed parts of a slice of words, front to back.
pub struct Carver<'a> {
    words: &'a mut [u64],
}

/// Words of a cache line. Tables begin at one, so that items of a line's size take one line, not two. Microcontrollers
/// have little memory and no cache before it.
const LINE_WORDS: usize = if cfg!(target_pointer_width = "64") { 8 } else { 1 };

/// How many words a table of `n` items of type `T` takes at most: its alignment is not known beforehand.
pub const fn words_for<T>(n: usize) -> usize {
    (size_of::<T>() * n).div_ceil(8) + LINE_WORDS - 1
}

impl<'a> Carver<'a> {
    /// Starts carving `words`.
    pub fn new(words: &'a mut [u64]) -> Carver<'a> {
        Carver { words }
    }

    /// The next `n` items, as the caller left them: all bits zero.
    ///
    /// # Errors
    /// [`CapacityError`] `memory` if the words run out.
    ///
    /// # Panics
    /// If `T` needs more than 8-byte alignment: no table of this crate does.
    pub fn take<T: Pod>(&mut self, n: usize) -> Result<&'a mut [T], CapacityError> {
        const { assert!(align_of::<T>() <= 8) };
        let words = core::mem::take(&mut self.words);
        let before = words.as_ptr().addr() / 8 % LINE_WORDS;
        let skip = (LINE_WORDS - before) % LINE_WORDS;
        let size = (size_of::<T>() * n).div_ceil(8);
        let Some((head, rest)) = words.split_at_mut_checked(skip + size) else {
            return Err(CapacityError { what: "memory", limit: skip + size });
        };
        self.words = rest;
        let head = &mut head[skip..];
        let bytes = &mut bytemuck::cast_slice_mut::<u64, u8>(head)[..size_of::<T>() * n];
        Ok(bytemuck::cast_slice_mut(bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn carves_typed_parts_and_reports_the_end() {
        let mut words = [0u64; 24];
        let mut carver = Carver::new(&mut words);
        let a: &mut [u32] = carver.take(3).unwrap();
        assert_eq!(a, [0, 0, 0]);
        let b: &mut [u64] = carver.take(2).unwrap();
        assert_eq!(b, [0, 0]);
        assert_eq!(b.as_ptr().addr() % 64, 0);
        assert_eq!(carver.take::<u64>(16).unwrap_err().what, "memory");
    }
}

//! Memory for the states of partitions: blocks of words of any length, from one slice.

use crate::error::CapacityError;
use crate::memory::{Carver, words_for};
use bytemuck::{Pod, Zeroable};

/// A piece of the arena; all zero is no piece.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
pub(crate) struct Block {
    at: u32,
    len: u32,
}

impl Block {
    pub(crate) const NONE: Block = Block { at: 0, len: 0 };

    pub(crate) fn is_none(self) -> bool {
        self == Block::NONE
    }
}

/// Sizes are told apart exactly below this one, and above it by so many steps an octave.
const EXACT: usize = 1 << EXACT_BITS;
const EXACT_BITS: u32 = 4;
const STEP_BITS: u32 = 2;
/// Classes of sizes; the last one has all that are larger.
const CLASSES: usize = 64;
/// Free blocks of a block's own class that are looked at: the smaller ones of it do not do.
const LOOKED_AT: usize = 8;

/// Blocks lie one after the other. Each is led by a word that tells its length and whether it is in use. Free ones are
/// in lists by their size, the one freed last in front; its second word is the next one. Free neighbours are joined
/// when there is cause to hope for much of it: then all blocks are walked through.
pub(crate) struct Arena<'a> {
    words: &'a mut [u64],
    /// Beyond this word nothing has ever been given out.
    used: usize,
    /// First free block of each class: one more than where it is, or 0.
    free: &'a mut [u32],
    /// Which classes have one.
    has_free: u64,
    /// Words that have been given back or cut off since neighbours were joined.
    freed: usize,
}

const IN_USE: u64 = 1 << 63;

/// A block has its head, and when it is free a link.
const LEAST: usize = 2;

/// The class of blocks of `size` words, with their heads.
fn class(size: usize) -> usize {
    if size < EXACT {
        return size;
    }
    let octave = size.ilog2();
    let step = size >> (octave - STEP_BITS) & ((1 << STEP_BITS) - 1);
    (EXACT + (((octave - EXACT_BITS) as usize) << STEP_BITS) + step).min(CLASSES - 1)
}

impl<'a> Arena<'a> {
    /// No memory at all.
    pub(crate) fn empty() -> Arena<'a> {
        Arena { words: &mut [], used: 0, free: &mut [], has_free: 0, freed: 0 }
    }

    pub(crate) const fn words(words: usize) -> usize {
        words_for::<u64>(words) + if words > 0 { words_for::<u32>(CLASSES) } else { 0 }
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, words: usize) -> Result<Self, CapacityError> {
        // Blocks are named by 32-bit numbers.
        let words = if words > u32::MAX as usize { u32::MAX as usize } else { words };
        let free = carver.take(if words > 0 { CLASSES } else { 0 })?;
        Ok(Arena { words: carver.take(words)?, free, ..Arena::empty() })
    }

    /// Another block with the same words and room for so many more behind them, if there is room.
    pub(crate) fn copy(&mut self, block: Block, more: usize) -> Option<Block> {
        let words = self.get(block).len();
        let copy = self.alloc(words + more)?;
        let [to, from] = self.several([copy, block]);
        to[..words].copy_from_slice(from);
        Some(copy)
    }

    /// A block of `len` words with anything in it, if there is room.
    pub(crate) fn alloc(&mut self, len: usize) -> Option<Block> {
        let size = (len + 1).max(LEAST);
        if let Some(at) = self.reuse(size) {
            return Some(self.take(at, len));
        }
        let is_short = self.words.len() - self.used < size;
        if self.freed > self.used / 2 || is_short && self.freed >= size {
            self.join_neighbours();
            if let Some(at) = self.reuse(size) {
                return Some(self.take(at, len));
            }
        }
        if self.words.len() - self.used < size {
            return None;
        }
        let at = self.used;
        self.used += size;
        self.words[at] = size as u64;
        Some(self.take(at, len))
    }

    fn take(&mut self, at: usize, len: usize) -> Block {
        self.words[at] |= IN_USE;
        Block { at: (at + 1) as u32, len: len as u32 }
    }

    /// Takes a free block of that size out of its list, cut off from a larger one if need be.
    fn reuse(&mut self, size: usize) -> Option<usize> {
        if self.has_free == 0 {
            return None;
        }
        let own = class(size);
        let larger = self.has_free & !((2u64 << own).wrapping_sub(1));
        let larger = Some(larger.trailing_zeros() as usize).filter(|class| *class < CLASSES && own + 1 < CLASSES);
        let at = self.first_fit(own, size).or_else(|| self.first_fit(larger?, size))?;
        self.cut(at, size);
        Some(at)
    }

    /// Takes the first block of a class that is large enough off the list, of those that are looked at.
    fn first_fit(&mut self, class: usize, size: usize) -> Option<usize> {
        let (mut before, mut next) = (None, self.free[class]);
        for _ in 0..LOOKED_AT {
            let at = next.checked_sub(1)? as usize;
            let after = self.words[at + 1] as u32;
            if self.words[at] as usize >= size {
                match before {
                    None => self.free[class] = after,
                    Some(before) => self.words[before + 1] = u64::from(after),
                }
                if self.free[class] == 0 {
                    self.has_free &= !(1 << class);
                }
                return Some(at);
            }
            (before, next) = (Some(at), after);
        }
        None
    }

    /// Leaves a block `size` words, if what is cut off makes a block.
    fn cut(&mut self, at: usize, size: usize) {
        let rest = (self.words[at] & !IN_USE) as usize - size;
        if rest >= LEAST {
            self.words[at] = self.words[at] & IN_USE | size as u64;
            self.freed += rest;
            self.list(at + size, rest);
        }
    }

    /// Puts a free block on its list; the last one of all is not needed as a block.
    fn list(&mut self, at: usize, size: usize) {
        if at + size == self.used {
            self.used = at;
            return;
        }
        let class = class(size);
        self.words[at] = size as u64;
        self.words[at + 1] = u64::from(core::mem::replace(&mut self.free[class], at as u32 + 1));
        self.has_free |= 1 << class;
    }

    /// Joins all free neighbours, and lists what is free anew.
    fn join_neighbours(&mut self) {
        self.free.fill(0);
        (self.has_free, self.freed) = (0, 0);
        let (mut at, mut free_from) = (0, None);
        while at < self.used {
            let head = self.words[at];
            if head & IN_USE == 0 {
                free_from.get_or_insert(at);
            } else if let Some(from) = free_from.take() {
                self.list(from, at - from);
            }
            at += (head & !IN_USE) as usize;
        }
        self.used = free_from.unwrap_or(self.used);
    }

    /// Gives back what a block has beyond `len` words.
    pub(crate) fn shorten(&mut self, block: &mut Block, len: usize) {
        if len > 0 && len < block.len as usize {
            self.cut(block.at as usize - 1, (len + 1).max(LEAST));
            block.len = len as u32;
        }
    }

    /// Gives a block back, and forgets it.
    pub(crate) fn free(&mut self, block: &mut Block) {
        let block = core::mem::take(block);
        if !block.is_none() {
            let at = block.at as usize - 1;
            let size = (self.words[at] & !IN_USE) as usize;
            self.freed += size;
            self.list(at, size);
        }
    }

    pub(crate) fn get(&self, block: Block) -> &[u64] {
        &self.words[block.at as usize..(block.at + block.len) as usize]
    }

    /// Several blocks at once.
    ///
    /// # Panics
    /// If two of them are the same: blocks do not overlap otherwise.
    pub(crate) fn several<const N: usize>(&mut self, blocks: [Block; N]) -> [&mut [u64]; N] {
        let ranges = blocks.map(|block| block.at as usize..(block.at + block.len) as usize);
        self.words.get_disjoint_mut(ranges).expect("blocks do not overlap")
    }

    pub(crate) fn get_mut(&mut self, block: Block) -> &mut [u64] {
        &mut self.words[block.at as usize..(block.at + block.len) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_do_not_overlap_and_are_used_again() {
        let mut words = [0u64; 400];
        let mut arena = Arena::carve(&mut Carver::new(&mut words), 300).unwrap();
        let mut blocks: heapless::Vec<(Block, u64), 32> = heapless::Vec::new();
        let mut state = 7u64;
        // An interpreter is slow.
        let steps = if cfg!(miri) { 1_000 } else { 5_000u64 };
        for step in 0..steps {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let pick = (state >> 33) as usize;
            if blocks.is_full() || pick.is_multiple_of(3) && !blocks.is_empty() {
                let (mut block, mark) = blocks.swap_remove(pick % blocks.len());
                assert!(arena.get(block).iter().all(|w| *w == mark), "step {step}");
                arena.free(&mut block);
                assert!(block.is_none());
            } else if let Some(block) = arena.alloc(1 + pick % 40) {
                arena.get_mut(block).fill(step);
                blocks.push((block, step)).unwrap();
            }
        }
        for (mut block, _) in blocks {
            arena.free(&mut block);
        }
        assert!(arena.alloc(299).is_some() && arena.alloc(1).is_none());
    }

    #[test]
    fn classes_are_in_order_and_share_no_size() {
        let classes: heapless::Vec<usize, 5_000> = (0..5_000).map(class).collect();
        assert!(classes.is_sorted() && classes[..EXACT].iter().enumerate().all(|(size, class)| size == *class));
        assert_eq!((class(16), class(19), class(20), class(usize::MAX)), (16, 16, 17, CLASSES - 1));
    }
}

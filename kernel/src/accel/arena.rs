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

/// Blocks lie one after the other. Each is led by a word that tells its length and whether it is in use; free
/// neighbours are joined as a search passes them.
pub(crate) struct Arena<'a> {
    words: &'a mut [u64],
    /// Beyond this word nothing has ever been given out.
    used: usize,
    /// Before this word there is nothing free.
    first_free: usize,
}

const IN_USE: u64 = 1 << 63;

impl<'a> Arena<'a> {
    /// No memory at all.
    pub(crate) fn empty() -> Arena<'a> {
        Arena { words: &mut [], used: 0, first_free: 0 }
    }

    pub(crate) const fn words(words: usize) -> usize {
        words_for::<u64>(words)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, words: usize) -> Result<Self, CapacityError> {
        // Blocks are named by 32-bit numbers.
        let words = if words > u32::MAX as usize { u32::MAX as usize } else { words };
        Ok(Arena { words: carver.take(words)?, used: 0, first_free: 0 })
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
        let mut at = self.first_free;
        let mut passed_free = false;
        while at < self.used {
            let head = self.words[at];
            let size = (head & !IN_USE) as usize;
            if head & IN_USE == 0 {
                let size = self.join_free(at, size);
                if at + size == self.used {
                    self.used = at;
                    break;
                }
                if size == len + 1 || size > len + 2 {
                    self.split(at, size, len + 1);
                    return Some(self.take(at, len, passed_free));
                }
                passed_free = true;
                at += size;
            } else {
                at += size;
            }
        }
        if self.words.len() - self.used < len + 1 {
            return None;
        }
        let at = self.used;
        self.used += len + 1;
        Some(self.take(at, len, passed_free))
    }

    fn take(&mut self, at: usize, len: usize, passed_free: bool) -> Block {
        self.words[at] = IN_USE | (len + 1) as u64;
        if !passed_free {
            self.first_free = at + len + 1;
        }
        Block { at: (at + 1) as u32, len: len as u32 }
    }

    /// Joins the free block at `at` with those that follow; gives its size.
    fn join_free(&mut self, at: usize, mut size: usize) -> usize {
        while at + size < self.used && self.words[at + size] & IN_USE == 0 {
            size += self.words[at + size] as usize;
        }
        self.words[at] = size as u64;
        size
    }

    /// Cuts a free block of `size` words after `keep`.
    fn split(&mut self, at: usize, size: usize, keep: usize) {
        if size > keep {
            self.words[at + keep] = (size - keep) as u64;
        }
    }

    /// Gives back what a block has beyond `len` words.
    pub(crate) fn shorten(&mut self, block: &mut Block, len: usize) {
        // A free block has a word at least, its own length.
        if len > 0 && len < block.len as usize {
            let head = block.at as usize - 1;
            self.words[head] = IN_USE | (len as u64 + 1);
            self.words[head + len + 1] = u64::from(block.len) - len as u64;
            self.first_free = self.first_free.min(head + len + 1);
            block.len = len as u32;
        }
    }

    /// Gives a block back, and forgets it.
    pub(crate) fn free(&mut self, block: &mut Block) {
        let Block { at, len } = core::mem::take(block);
        if len != 0 {
            let at = at as usize - 1;
            self.words[at] = len as u64 + 1;
            self.first_free = self.first_free.min(at);
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
}

//! A bounded first-in first-out queue of outputs.

use crate::error::CapacityError;
use crate::memory::{Carver, words_for};
use bytemuck::Pod;

pub(crate) struct Ring<'a, T> {
    items: &'a mut [T],
    first: usize,
    len: usize,
}

impl<'a, T: Pod> Ring<'a, T> {
    pub(crate) const fn words(items: usize) -> usize {
        words_for::<T>(items)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, items: usize) -> Result<Self, CapacityError> {
        Ok(Ring { items: carver.take(items)?, first: 0, len: 0 })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn is_full(&self) -> bool {
        self.len == self.items.len()
    }

    pub(crate) fn capacity(&self) -> usize {
        self.items.len()
    }

    /// How many more items fit.
    pub(crate) fn room(&self) -> usize {
        self.items.len() - self.len
    }

    /// # Panics
    /// If the ring is full: the event loop checks before every event.
    pub(crate) fn push(&mut self, item: T) {
        assert!(!self.is_full());
        let at = (self.first + self.len) % self.items.len();
        self.items[at] = item;
        self.len += 1;
    }

    pub(crate) fn pop(&mut self) -> Option<T> {
        if self.is_empty() {
            return None;
        }
        let item = self.items[self.first];
        self.first = (self.first + 1) % self.items.len();
        self.len -= 1;
        Some(item)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_around_the_end() {
        let mut words = [0u64; 10];
        let mut ring = Ring::<u64>::carve(&mut Carver::new(&mut words), 3).unwrap();
        let mut next = 0;
        for i in 0..10 {
            ring.push(i);
            if ring.is_full() {
                while let Some(item) = ring.pop() {
                    assert_eq!(item, next);
                    next += 1;
                }
            }
        }
        assert_eq!((next, ring.pop(), ring.pop()), (9, Some(9), None));
    }
}

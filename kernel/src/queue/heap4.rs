//! A 4-ary heap with positions, so that a timer can be moved or cancelled.
//!
//! Four children share a cache line and a half, and the tree is half as deep as a binary one.

use super::EventQueue;
use crate::error::CapacityError;
use crate::event::{EventKey, TimerId};
use crate::memory::{Carver, words_for};
use crate::units::Span;
use bytemuck::{Pod, Zeroable};

const ARITY: usize = 4;

/// A pending timer with its key, kept together so that comparing touches nothing else.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Pod, Zeroable)]
pub(super) struct Pending {
    pub(super) key: EventKey,
    pub(super) timer: u32,
    pad: u32,
}

impl Pending {
    pub(super) fn new(key: EventKey, timer: TimerId) -> Pending {
        Pending { key, timer: timer.0, pad: 0 }
    }
}

/// See the module.
pub struct Heap4<'a> {
    heap: &'a mut [Pending],
    /// Per timer, its position in the heap plus one; 0 if not pending.
    position: &'a mut [u32],
    len: usize,
}

impl Heap4<'_> {
    pub(super) fn first(&self) -> Option<&Pending> {
        self.heap[..self.len].first()
    }

    fn place(&mut self, at: usize, item: Pending) {
        self.heap[at] = item;
        self.position[item.timer as usize] = at as u32 + 1;
    }

    fn sift_up(&mut self, mut at: usize, item: Pending) {
        while at > 0 {
            let parent = (at - 1) / ARITY;
            if self.heap[parent].key < item.key {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, item);
    }

    fn sift_down(&mut self, mut at: usize, item: Pending) {
        loop {
            let first = at * ARITY + 1;
            let children = first..(first + ARITY).min(self.len);
            let Some(least) = children.min_by_key(|&c| self.heap[c].key) else { break };
            if item.key < self.heap[least].key {
                break;
            }
            self.place(at, self.heap[least]);
            at = least;
        }
        self.place(at, item);
    }

    fn remove_at(&mut self, at: usize) {
        self.position[self.heap[at].timer as usize] = 0;
        self.len -= 1;
        if at == self.len {
            return;
        }
        let last = self.heap[self.len];
        if at > 0 && last.key < self.heap[(at - 1) / ARITY].key {
            self.sift_up(at, last);
        } else {
            self.sift_down(at, last);
        }
    }
}

impl<'a> EventQueue<'a> for Heap4<'a> {
    fn words(timers: usize) -> usize {
        words_for::<Pending>(timers) + words_for::<u32>(timers)
    }

    fn carve(carver: &mut Carver<'a>, timers: usize, _horizon: Span) -> Result<Self, CapacityError> {
        Ok(Heap4 { heap: carver.take(timers)?, position: carver.take(timers)?, len: 0 })
    }

    fn schedule(&mut self, timer: TimerId, key: EventKey) {
        self.cancel(timer);
        self.len += 1;
        self.sift_up(self.len - 1, Pending::new(key, timer));
    }

    fn cancel(&mut self, timer: TimerId) -> bool {
        match self.position[timer.0 as usize] {
            0 => false,
            at => {
                self.remove_at(at as usize - 1);
                true
            }
        }
    }

    fn pending(&self, timer: TimerId) -> Option<EventKey> {
        match self.position[timer.0 as usize] {
            0 => None,
            at => Some(self.heap[at as usize - 1].key),
        }
    }

    fn peek(&self) -> Option<EventKey> {
        self.first().map(|p| p.key)
    }

    fn pop(&mut self) -> Option<(EventKey, TimerId)> {
        let first = *self.first()?;
        self.remove_at(0);
        Some((first.key, TimerId(first.timer)))
    }

    fn len(&self) -> usize {
        self.len
    }
}

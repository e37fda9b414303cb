//! A timing wheel whose near future is sorted one bucket at a time.
//!
//! Buckets are lists threaded through the timers' own nodes, unsorted, so scheduling is a few stores. When the
//! bucket before it is used up, the few timers of the next one are sorted into `current`, and so is whatever is
//! scheduled for a time before its end. What lies beyond the wheel waits in a heap and joins its bucket when that comes
//! up, so a bucket width that fits badly costs time, never order.

use super::EventQueue;
use super::heap4::{Heap4, Pending};
use crate::error::CapacityError;
use crate::event::{EventKey, TimerId};
use crate::memory::{Carver, words_for};
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// Buckets of the wheel: one summary word of 64 bits over 64 words.
const BUCKETS: usize = 64 * 64;

/// Where a node is.
const IDLE: u32 = 0;
const IN_BUCKET: u32 = 1;
const IN_CURRENT: u32 = 2;
const IN_FAR: u32 = 3;

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Node {
    key: EventKey,
    /// Neighbours in the bucket's list, plus one; 0 at its ends.
    next: u32,
    prev: u32,
    place: u32,
    pad: u32,
}

/// See the module.
pub struct Wheel<'a> {
    nodes: &'a mut [Node],
    /// First node of each bucket, plus one.
    heads: &'a mut [u32],
    /// A bit per non-empty bucket, and one per non-zero word of those.
    occupied: &'a mut [u64],
    summary: u64,
    /// A bucket spans `2^shift` picoseconds.
    shift: u32,
    /// Number (time / width) of the bucket that `current` holds.
    base: u64,
    /// The pending timers of bucket `base`, ascending from `head`.
    current: &'a mut [Pending],
    head: usize,
    tail: usize,
    far: Heap4<'a>,
    len: usize,
}

impl Wheel<'_> {
    #[inline(always)]
    fn bucket_of(&self, at: SimTime) -> u64 {
        at.0 >> self.shift
    }

    #[inline(always)]
    fn insert_in_bucket(&mut self, timer: u32, key: EventKey, bucket: u64) {
        let slot = bucket as usize % BUCKETS;
        let next = self.heads[slot];
        self.nodes[timer as usize] = Node { key, next, prev: 0, place: IN_BUCKET, pad: 0 };
        if next == 0 {
            self.occupied[slot / 64] |= 1 << (slot % 64);
            self.summary |= 1 << (slot / 64);
        } else {
            self.nodes[next as usize - 1].prev = timer + 1;
        }
        self.heads[slot] = timer + 1;
    }

    fn mark_empty(&mut self, slot: usize) {
        self.occupied[slot / 64] &= !(1 << (slot % 64));
        if self.occupied[slot / 64] == 0 {
            self.summary &= !(1 << (slot / 64));
        }
    }

    fn remove_from_bucket(&mut self, timer: u32) {
        let node = self.nodes[timer as usize];
        if node.next != 0 {
            self.nodes[node.next as usize - 1].prev = node.prev;
        }
        if node.prev != 0 {
            self.nodes[node.prev as usize - 1].next = node.next;
            return;
        }
        let slot = self.bucket_of(node.key.at) as usize % BUCKETS;
        self.heads[slot] = node.next;
        if node.next == 0 {
            self.mark_empty(slot);
        }
    }

    /// Keeps `current` sorted, by timer where partitions that were moved in time have the same key. New timers are
    /// nearly always the latest: an append.
    fn insert_in_current(&mut self, timer: u32, key: EventKey) {
        if self.tail == self.current.len() {
            self.current.copy_within(self.head..self.tail, 0);
            self.tail -= self.head;
            self.head = 0;
        }
        let pending = Pending::new(key, TimerId(timer));
        let mut at = self.tail;
        if at > self.head && self.current[at - 1] > pending {
            at = self.head + self.current[self.head..self.tail].partition_point(|p| *p < pending);
            self.current.copy_within(at..self.tail, at + 1);
        }
        self.current[at] = pending;
        self.tail += 1;
        let node = &mut self.nodes[timer as usize];
        node.key = key;
        node.place = IN_CURRENT;
    }

    fn remove_from_current(&mut self, timer: u32, key: EventKey) {
        let pending = &self.current[self.head..self.tail];
        let first = pending.partition_point(|p| p.key < key);
        // Keys are unique but for those of partitions that were moved in time: two may have the same.
        let same = pending[first..].iter().position(|p| p.timer == timer).unwrap_or(0);
        let at = self.head + first + same;
        self.current.copy_within(at + 1..self.tail, at);
        self.tail -= 1;
    }

    /// Number of the first non-empty bucket at or after `base`.
    #[inline(always)]
    fn next_bucket(&self) -> Option<u64> {
        if self.summary == 0 {
            return None;
        }
        let start = self.base as usize % BUCKETS;
        let (word, bit) = (start / 64, start % 64);
        let here = self.occupied[word] & (u64::MAX << bit);
        let slot = if here != 0 {
            word * 64 + here.trailing_zeros() as usize
        } else {
            // Words after this one, then around to the earlier ones (and this one's low bits).
            let after = self.summary & u64::MAX.checked_shl(word as u32 + 1).unwrap_or(0);
            let word = if after != 0 { after } else { self.summary }.trailing_zeros() as usize;
            word * 64 + self.occupied[word].trailing_zeros() as usize
        };
        Some(self.base + (slot.wrapping_sub(start) % BUCKETS) as u64)
    }

    /// The bucket that holds the earliest timers once `current` is used up.
    #[inline(always)]
    fn earliest_bucket(&self) -> Option<u64> {
        let far = self.far.first().map(|p| self.bucket_of(p.key.at));
        match (self.next_bucket(), far) {
            (Some(near), Some(far)) => Some(near.min(far)),
            (near, far) => near.or(far),
        }
    }

    /// Sorts `bucket` into `current`.
    fn open(&mut self, bucket: u64) {
        self.base = bucket;
        self.head = 0;
        self.tail = 0;
        let slot = bucket as usize % BUCKETS;
        let mut next = self.heads[slot];
        if next != 0 {
            self.heads[slot] = 0;
            self.mark_empty(slot);
        }
        while next != 0 {
            let node = &mut self.nodes[next as usize - 1];
            node.place = IN_CURRENT;
            self.current[self.tail] = Pending::new(node.key, TimerId(next - 1));
            self.tail += 1;
            next = node.next;
        }
        while let Some(first) = self.far.first().filter(|p| p.key.at.0 >> self.shift == bucket) {
            self.nodes[first.timer as usize].place = IN_CURRENT;
            self.current[self.tail] = *first;
            self.tail += 1;
            self.far.pop();
        }
        if self.tail > 1 {
            self.current[..self.tail].sort_unstable();
        }
    }

    fn earliest_in(&self, bucket: u64) -> Option<EventKey> {
        let far = self.far.first().map(|p| p.key);
        let mut next = self.heads[bucket as usize % BUCKETS];
        let mut least = far.filter(|k| self.bucket_of(k.at) == bucket);
        while next != 0 {
            let node = &self.nodes[next as usize - 1];
            least = Some(least.map_or(node.key, |l| l.min(node.key)));
            next = node.next;
        }
        least
    }
}

impl<'a> EventQueue<'a> for Wheel<'a> {
    fn words(timers: usize) -> usize {
        words_for::<Node>(timers)
            + words_for::<u32>(BUCKETS)
            + words_for::<u64>(BUCKETS / 64)
            + words_for::<Pending>(timers)
            + Heap4::words(timers)
    }

    fn carve(carver: &mut Carver<'a>, timers: usize, horizon: Span) -> Result<Self, CapacityError> {
        // Half the wheel covers the horizon: what is scheduled that far ahead fits at any phase.
        let width = (2 * (horizon.0.min(u64::MAX / 4)) / BUCKETS as u64).max(1);
        Ok(Wheel {
            nodes: carver.take(timers)?,
            heads: carver.take(BUCKETS)?,
            occupied: carver.take(BUCKETS / 64)?,
            summary: 0,
            shift: width.next_power_of_two().trailing_zeros(),
            base: 0,
            current: carver.take(timers)?,
            head: 0,
            tail: 0,
            far: Heap4::carve(carver, timers, horizon)?,
            len: 0,
        })
    }

    #[inline(always)]
    fn schedule(&mut self, timer: TimerId, key: EventKey) {
        if self.nodes[timer.0 as usize].place != IDLE {
            self.cancel(timer);
        }
        self.len += 1;
        let bucket = self.bucket_of(key.at);
        if bucket <= self.base {
            self.insert_in_current(timer.0, key);
        } else if bucket - self.base < BUCKETS as u64 {
            self.insert_in_bucket(timer.0, key, bucket);
        } else {
            self.nodes[timer.0 as usize].place = IN_FAR;
            self.far.schedule(timer, key);
        }
    }

    fn cancel(&mut self, timer: TimerId) -> bool {
        let node = &mut self.nodes[timer.0 as usize];
        let (place, key) = (node.place, node.key);
        node.place = IDLE;
        match place {
            IDLE => return false,
            IN_BUCKET => self.remove_from_bucket(timer.0),
            IN_CURRENT => self.remove_from_current(timer.0, key),
            _ => {
                self.far.cancel(timer);
            }
        }
        self.len -= 1;
        true
    }

    fn pending(&self, timer: TimerId) -> Option<EventKey> {
        let node = &self.nodes[timer.0 as usize];
        match node.place {
            IDLE => None,
            IN_FAR => self.far.pending(timer),
            _ => Some(node.key),
        }
    }

    fn peek(&self) -> Option<EventKey> {
        if self.head < self.tail {
            return Some(self.current[self.head].key);
        }
        self.earliest_in(self.earliest_bucket()?)
    }

    #[inline(always)]
    fn pop(&mut self) -> Option<(EventKey, TimerId)> {
        if self.head == self.tail {
            let bucket = self.earliest_bucket()?;
            self.open(bucket);
        }
        let first = self.current[self.head];
        self.head += 1;
        self.nodes[first.timer as usize].place = IDLE;
        self.len -= 1;
        // Who takes one asks at once when the next is due.
        if self.head == self.tail
            && let Some(bucket) = self.next_bucket()
            && self.far.first().is_none_or(|far| self.bucket_of(far.key.at) > bucket)
        {
            self.open(bucket);
        }
        Some((first.key, TimerId(first.timer)))
    }

    fn len(&self) -> usize {
        self.len
    }
}

//! Records in memory: bounded, and open to look-ups.

use wormhole_kernel::memo::MemoStore;

/// Of so many words of memory one is for the index.
const INDEX_SHARE: usize = 16;

/// Words that lead a record in the log.
const HEAD: usize = 2;

/// What leads a record in the log.
#[derive(Clone, Copy)]
struct Head {
    key: u32,
    value: u32,
    tag: u32,
    state: State,
}

/// What is to become of a record once it is the oldest.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    /// It goes.
    Unused,
    /// It has been found since it was last the newest: it moves to the front.
    Found,
    /// Another one has replaced it: it is only waiting for its place to be used again.
    Replaced,
}

impl Head {
    fn read(log: &[u64], at: usize) -> Head {
        let (lengths, word) = (log[at], log[at + 1]);
        let state = match word as u32 {
            0 => State::Unused,
            1 => State::Found,
            _ => State::Replaced,
        };
        Head { key: lengths as u32, value: (lengths >> 32) as u32, tag: (word >> 32) as u32, state }
    }

    fn write(self, log: &mut [u64], at: usize) {
        log[at] = self.key as u64 | (self.value as u64) << 32;
        log[at + 1] = self.state as u64 | (self.tag as u64) << 32;
    }

    /// Words of the whole record.
    fn size(self) -> usize {
        HEAD + self.key as usize + self.value as usize
    }
}

/// Records in caller memory, for look-ups during a simulation.
///
/// The memory is a circular log of records and an index over it. When room is needed the oldest record goes, unless it
/// has been found since it was last the newest: then it becomes the newest once more. So records that are in use stay,
/// whatever else comes by.
///
/// A record takes its words and two more. A sixteenth of the memory is for the index, which has room for three records
/// in 64 words of memory. Less than 32 words of memory keep nothing.
pub struct Store<'a> {
    /// Open addressing with linear probing; zero, or a tag in the upper half and a place in the log, plus one.
    index: &'a mut [u64],
    log: &'a mut [u64],
    /// Where the oldest record is.
    oldest: usize,
    /// Where the next one goes.
    next: usize,
    /// Where the older records end, if the newer ones begin again before them.
    wrap: Option<usize>,
    /// Records that can be found, and their words with what leads them.
    live: usize,
    used: usize,
    evictions: u64,
}

impl<'a> Store<'a> {
    /// An empty store in `words`, which MUST be zero.
    ///
    /// Nothing is cleared or scanned here: on a host, pages of a large zeroed vector stay untouched until records come.
    /// Of more than 2^32 words the rest is not used.
    pub fn new(words: &'a mut [u64]) -> Store<'a> {
        let usable = words.len().min(u32::MAX as usize);
        let (index, log) = words[..usable].split_at_mut(usable / INDEX_SHARE);
        Store { index, log, oldest: 0, next: 0, wrap: None, live: 0, used: 0, evictions: 0 }
    }

    /// Keeps a record of a file; one with the same key is replaced. False if it is too large for the store.
    pub fn load(&mut self, record: &crate::Record<'_>) -> bool {
        self.put(record.key(), record.value())
    }

    /// Keys and values, oldest first.
    pub fn records(&self) -> impl Iterator<Item = (&[u64], &[u64])> {
        let (mut at, mut left) = (self.oldest, self.live);
        core::iter::from_fn(move || {
            while left > 0 {
                let (here, head) = (at, Head::read(self.log, at));
                at = self.after(here, head);
                if head.state != State::Replaced {
                    left -= 1;
                    return Some((self.key(here), self.value(here)));
                }
            }
            None
        })
    }

    /// The value of the record with this key, if there is one. It does not count as found.
    pub fn peek(&self, key: &[u64]) -> Option<&[u64]> {
        self.slot_of(key).map(|slot| self.value(place_of(self.index[slot])))
    }

    /// Records in the store.
    pub fn len(&self) -> usize {
        self.live
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.live == 0
    }

    /// Words of memory its records take, with the two that lead each.
    pub fn used_words(&self) -> usize {
        self.used
    }

    /// Records that went because others needed the room.
    pub fn evictions(&self) -> u64 {
        self.evictions
    }

    /// Most records the index has room for: with a quarter of it empty, probes stay short and end.
    fn most_records(&self) -> usize {
        self.index.len() - self.index.len().div_ceil(4)
    }

    fn key(&self, at: usize) -> &[u64] {
        let head = Head::read(self.log, at);
        &self.log[at + HEAD..][..head.key as usize]
    }

    fn value(&self, at: usize) -> &[u64] {
        let head = Head::read(self.log, at);
        &self.log[at + HEAD + head.key as usize..][..head.value as usize]
    }

    /// Where the record after the one at `at` is.
    fn after(&self, at: usize, head: Head) -> usize {
        let after = at + head.size();
        if Some(after) == self.wrap { 0 } else { after }
    }

    /// Keeps a record; false, and none of that key is left, if it is too large.
    fn put<W: ExactSizeIterator<Item = u64> + Clone>(&mut self, key: W, value: W) -> bool {
        let tag = tag_of(key.clone());
        if let Some(slot) = self.slot(tag, |at| self.key(at).iter().copied().eq(key.clone())) {
            self.replace(slot);
        }
        let size = HEAD + key.len() + value.len();
        if size > self.log.len() || self.most_records() == 0 {
            return false;
        }
        let at = loop {
            match self.room(size) {
                Some(at) if self.live < self.most_records() => break at,
                _ => self.retire_oldest(),
            }
        };
        let head = Head { key: key.len() as u32, value: value.len() as u32, tag, state: State::Unused };
        head.write(self.log, at);
        for (place, word) in self.log[at + HEAD..].iter_mut().zip(key.chain(value)) {
            *place = word;
        }
        self.append(at, size);
        self.link(tag, at);
        self.live += 1;
        self.used += size;
        true
    }

    /// Where `size` words have room at the front, if anywhere.
    fn room(&self, size: usize) -> Option<usize> {
        let until = if self.wrap.is_some() { self.oldest } else { self.log.len() };
        if size <= until - self.next {
            Some(self.next)
        } else {
            (self.wrap.is_none() && size <= self.oldest).then_some(0)
        }
    }

    /// Takes `size` words at `at`, where there is room, for the newest record.
    fn append(&mut self, at: usize, size: usize) {
        if at < self.next {
            self.wrap = Some(self.next);
        }
        self.next = at + size;
    }

    /// Takes the oldest record from the back of the log. If it has been found it comes to the front, else it is gone.
    fn retire_oldest(&mut self) {
        let (at, head) = (self.oldest, Head::read(self.log, self.oldest));
        self.oldest = self.after(at, head);
        if self.oldest < at {
            self.wrap = None;
        }
        if self.wrap.is_none() && self.oldest == self.next {
            // The log is empty: it begins anew.
            (self.oldest, self.next) = (0, 0);
        }
        match head.state {
            State::Replaced => {}
            State::Unused => {
                if let Some(slot) = self.slot(head.tag, |place| place == at) {
                    self.unlink(slot);
                }
                self.forget(head);
                self.evictions += 1;
            }
            State::Found => self.promote(at, head),
        }
    }

    /// Moves the record at `from`, which has just left the back, to the front.
    fn promote(&mut self, from: usize, head: Head) {
        // Its own place is free by now, so there is room.
        let Some(to) = self.room(head.size()) else { return };
        self.log.copy_within(from..from + head.size(), to);
        Head { state: State::Unused, ..head }.write(self.log, to);
        self.append(to, head.size());
        if let Some(slot) = self.slot(head.tag, |place| place == from) {
            self.index[slot] = entry(head.tag, to);
        }
    }

    /// Another value comes for the key of the record in `slot`: it can no longer be found.
    fn replace(&mut self, slot: usize) {
        let at = place_of(self.index[slot]);
        let head = Head::read(self.log, at);
        Head { state: State::Replaced, ..head }.write(self.log, at);
        self.unlink(slot);
        self.forget(head);
    }

    /// A record is no more.
    fn forget(&mut self, head: Head) {
        self.live -= 1;
        self.used -= head.size();
    }

    /// The slot of the record with this tag whose place in the log is the one.
    fn slot(&self, tag: u32, is_it: impl Fn(usize) -> bool) -> Option<usize> {
        if self.live == 0 {
            return None;
        }
        let mut slot = self.home(tag);
        while self.index[slot] != 0 {
            if tag_in(self.index[slot]) == tag && is_it(place_of(self.index[slot])) {
                return Some(slot);
            }
            slot = self.following(slot);
        }
        None
    }

    fn slot_of(&self, key: &[u64]) -> Option<usize> {
        self.slot(tag_of(key.iter().copied()), |at| self.key(at) == key)
    }

    /// Puts a record into the index that is not in it.
    fn link(&mut self, tag: u32, at: usize) {
        let mut slot = self.home(tag);
        while self.index[slot] != 0 {
            slot = self.following(slot);
        }
        self.index[slot] = entry(tag, at);
    }

    /// Empties a slot. Entries behind it move up, or a probe for them would end in the hole.
    fn unlink(&mut self, slot: usize) {
        let (mut hole, mut probe) = (slot, self.following(slot));
        while self.index[probe] != 0 {
            let home = self.home(tag_in(self.index[probe]));
            // Not to before its home: probes begin there.
            if self.distance(home, probe) >= self.distance(hole, probe) {
                self.index[hole] = self.index[probe];
                hole = probe;
            }
            probe = self.following(probe);
        }
        self.index[hole] = 0;
    }

    /// Where probes for a tag begin.
    fn home(&self, tag: u32) -> usize {
        ((tag as u64 * self.index.len() as u64) >> 32) as usize
    }

    fn following(&self, slot: usize) -> usize {
        if slot + 1 == self.index.len() { 0 } else { slot + 1 }
    }

    /// Steps a probe takes between two slots.
    fn distance(&self, from: usize, to: usize) -> usize {
        if to >= from { to - from } else { to + self.index.len() - from }
    }
}

impl MemoStore for Store<'_> {
    fn find(&mut self, key: &[u64]) -> Option<&[u64]> {
        let at = place_of(self.index[self.slot_of(key)?]);
        Head { state: State::Found, ..Head::read(self.log, at) }.write(self.log, at);
        Some(self.value(at))
    }

    fn insert(&mut self, key: &[u64], value: &[u64]) {
        self.put(key.iter().copied(), value.iter().copied());
    }
}

fn entry(tag: u32, at: usize) -> u64 {
    (tag as u64) << 32 | (at as u64 + 1)
}

fn tag_in(entry: u64) -> u32 {
    (entry >> 32) as u32
}

fn place_of(entry: u64) -> usize {
    entry as u32 as usize - 1
}

/// Part of a hash over a key: says where in the index to look, never that two keys are equal.
fn tag_of(key: impl Iterator<Item = u64>) -> u32 {
    let hash = key.fold(1u64, |hash, word| (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    (hash >> 32) as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Two words whose tag is the same for every `n`.
    fn colliding(n: u64) -> [u64; 2] {
        let after_first = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
        let key = [n ^ 1u64.rotate_left(23), after_first.rotate_left(23) ^ 42];
        assert_eq!(tag_of(key.into_iter()), tag_of([1u64.rotate_left(23), 42].into_iter()));
        key
    }

    #[test]
    fn keys_of_one_tag_are_told_apart() {
        let mut words = [0; 640];
        let mut store = Store::new(&mut words);
        for n in 0..25 {
            store.insert(&colliding(n), &[n; 3]);
        }
        for n in 0..25 {
            assert_eq!(store.find(&colliding(n)), Some(&[n; 3][..]));
        }
        assert_eq!(store.find(&colliding(25)), None);
        // Deleting from the midst of a long probe must not cut off those behind.
        for n in (0..25).step_by(3) {
            store.insert(&colliding(n), &[100; 4]);
            for other in 0..25 {
                let replaced = other <= n && other % 3 == 0;
                let value = if replaced { &[100; 4][..] } else { &[other; 3][..] };
                assert_eq!(store.find(&colliding(other)), Some(value), "{other} after {n}");
            }
        }
        assert_eq!((store.len(), store.evictions()), (25, 0));
    }

    #[test]
    fn a_probe_goes_round_the_end_of_the_index() {
        let mut words = [0; 128];
        let mut store = Store::new(&mut words);
        let at_the_end = |n: &u64| store.home(tag_of([*n].into_iter())) + 1 == store.index.len();
        let mut keys = (0..).filter(at_the_end);
        let keys = [(); 4].map(|()| keys.next().unwrap());
        for key in keys {
            store.insert(&[key], &[key, key]);
        }
        store.insert(&[keys[0]], &[7]);
        assert_eq!(store.find(&[keys[0]]), Some(&[7][..]));
        for key in &keys[1..] {
            assert_eq!(store.find(&[*key]), Some(&[*key, *key][..]));
        }
        assert!(store.index[0] != 0);
    }

    /// The only record has been found, and what comes next leaves no room for both.
    #[test]
    fn a_lone_record_that_was_found_makes_room_in_the_end() {
        let mut words = [0; 64];
        let mut store = Store::new(&mut words);
        for round in 1..20 {
            store.insert(&[round], &[round; 37]);
            assert_eq!(store.find(&[round]), Some(&[round; 37][..]));
            assert_eq!((store.len(), store.used_words(), store.evictions()), (1, 40, round - 1));
        }
    }
}

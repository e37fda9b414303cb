//! Events: what may be pending, and the total order in which it happens.
//!
//! An event is a *timer* that comes due. Every port, queue pair and the fabric itself owns four timers, and a
//! timer has at most one pending expiry. So the number of pending events is bounded by the number of entities,
//! the event queue can never overflow, and cancelling is a plain operation instead of a tombstone.

use crate::ids::{FlowId, PortId, QpId};
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};
use core::cmp::Ordering;
use core::hint::select_unpredictable;

/// Timers each owner has.
pub const TIMERS_PER_OWNER: usize = 4;

/// Congestion-control timers of a queue pair; its fourth timer is the kernel's own.
pub const CCA_TIMERS: usize = 3;

/// When an event happens: simulated time, then first scheduled first served.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
pub struct EventKey {
    /// Simulated time.
    pub at: SimTime,
    /// Rank among the events of the same instant.
    pub tie: Tie,
}

// Keys are compared several times an event: as one wide integer that takes no branch.
impl PartialOrd for EventKey {
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn partial_cmp(&self, other: &EventKey) -> Option<Ordering> {
        Some(self.cmp(other))
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn lt(&self, other: &EventKey) -> bool {
        self.wide() < other.wide()
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn le(&self, other: &EventKey) -> bool {
        self.wide() <= other.wide()
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn gt(&self, other: &EventKey) -> bool {
        self.wide() > other.wide()
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn ge(&self, other: &EventKey) -> bool {
        self.wide() >= other.wide()
    }
}

impl Ord for EventKey {
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn cmp(&self, other: &EventKey) -> Ordering {
        self.wide().cmp(&other.wide())
    }
}

impl EventKey {
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn wide(&self) -> u128 {
        (self.at.0 as u128) << 64 | self.tie.0 as u128
    }

    /// After all else of an instant; of several, the one of the elder flow first.
    pub(crate) fn at_end_of(at: SimTime, elder: FlowId) -> EventKey {
        EventKey { at, tie: Tie::last(elder) }
    }

    /// Later than every event.
    pub const NEVER: EventKey = EventKey { at: SimTime::MAX, tie: Tie::LAST };
}

/// Rank of an event among those of the same instant: first scheduled, first served.
///
/// Of two events for one instant the one with the longer delay was scheduled earlier; two with the same delay
/// were scheduled in the same instant, so a counter that restarts with every instant tells them apart. The
/// order is that of a global sequence number, but it holds nothing absolute: a partition that is moved in
/// time keeps its ties as they are.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Pod, Zeroable)]
pub struct Tie(pub u64);

impl Tie {
    /// After every event of the instant.
    pub const LAST: Tie = Tie(u64::MAX);

    /// Bits of the per-instant counter: 67 million schedulings in one instant keep their order.
    const COUNTER_BITS: u32 = 26;
    /// Delays from here on (0.27 s) count as equal; only flow starts, link events and the slowest links are that
    /// early.
    const MAX_DELAY: u64 = (1 << (64 - Self::COUNTER_BITS)) - 1;

    /// Whether the order of ties is that of delays for this delay and all shorter ones.
    pub(crate) fn tells_apart(delay: Span) -> bool {
        delay.0 < Self::MAX_DELAY
    }

    /// The delay, if it can be told.
    pub(crate) fn delay(self) -> Option<Span> {
        let delay = self.least_delay();
        Tie::tells_apart(delay).then_some(delay)
    }

    /// The delay; of one that cannot be told, the least such.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn least_delay(self) -> Span {
        Span(Self::MAX_DELAY - (self.0 >> Self::COUNTER_BITS))
    }

    pub(crate) fn same_delay(self, other: Tie) -> bool {
        self.0 >> Self::COUNTER_BITS == other.0 >> Self::COUNTER_BITS
    }

    const COUNT: u64 = (1 << Self::COUNTER_BITS) - 1;

    /// Its place among those of its instant and delay.
    pub(crate) fn count(self) -> u64 {
        self.0 & Self::COUNT
    }

    /// The same at another place.
    pub(crate) fn with_count(self, count: u64) -> Tie {
        Tie(self.0 & !Self::COUNT | count.min(Self::COUNT))
    }

    /// For the check of a deadline: before what is issued for that instant, by flow.
    pub(crate) fn of_deadline(flow: FlowId) -> Tie {
        Tie(u64::from(flow.0) & Self::COUNT)
    }

    /// After what is issued in that instant itself, unless that is 33 million things.
    fn last(elder: FlowId) -> Tie {
        let upper = (Self::COUNT >> 1) + 1;
        Tie(Self::MAX_DELAY << Self::COUNTER_BITS | upper | u64::from(elder.0) & (Self::COUNT >> 1))
    }

    /// Of what was scheduled that long before, as the `count`th of its instant.
    pub(crate) fn after(delay: Span, count: u64) -> Tie {
        let earliness = Self::MAX_DELAY - delay.0.min(Self::MAX_DELAY);
        Tie(earliness << Self::COUNTER_BITS | count.min((1 << Self::COUNTER_BITS) - 1))
    }
}

/// A place among what is scheduled in one instant, while not all of that is known (see `shard`): which event of the
/// shard's window has scheduled it, and as its how-manieth.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    pub(crate) event: usize,
    nth: u64,
}

impl Place {
    /// Marks a count as provisional.
    const PROVISIONAL: u64 = 1 << (Tie::COUNTER_BITS - 1);
    /// An event that schedules more takes the places of the next one, too.
    const NTH_BITS: u32 = 3;
    /// Events that can be told apart.
    pub(crate) const EVENTS: usize = 1 << (Tie::COUNTER_BITS - 1 - Self::NTH_BITS);

    /// The provisional place of a tie, unless it is final.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn of(tie: Tie) -> Option<Place> {
        let count = tie.count();
        let event = (count & !Self::PROVISIONAL) >> Self::NTH_BITS;
        let place = Place { event: event as usize, nth: count & ((1 << Self::NTH_BITS) - 1) };
        (count & Self::PROVISIONAL != 0).then_some(place)
    }

    /// The final place, for an event of this rank in its instant.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn settled(self, rank: u32) -> u64 {
        u64::from(rank) << Self::NTH_BITS | self.nth
    }

    /// The provisional count if the `first` event had the number 0.
    pub(crate) fn since(self, first: usize) -> u64 {
        Self::first_of(self.event - first) + self.nth
    }

    /// The count of the first thing that an event schedules.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn first_of(event: usize) -> u64 {
        Self::PROVISIONAL | (event as u64) << Self::NTH_BITS
    }

    /// How many events have places below `count`.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn events_below(count: u64) -> usize {
        ((count - Self::PROVISIONAL) as usize).div_ceil(1 << Self::NTH_BITS)
    }

    /// The first count of the event after the one whose `count` is.
    pub(crate) fn next_event(count: u64) -> u64 {
        Self::first_of(((count - Self::PROVISIONAL) >> Self::NTH_BITS) as usize + 1)
    }
}

/// The kernel's clock, and the issuer of event keys.
#[derive(Clone, Copy, Debug, Default)]
pub struct Clock {
    /// Key of the event being executed.
    current: EventKey,
    issued: u64,
}

impl Clock {
    /// Before anything of that instant has happened.
    pub(crate) fn beginning_of(at: SimTime) -> Clock {
        Clock { current: EventKey { at, tie: Tie::default() }, issued: 0 }
    }

    /// Present simulated time.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn now(&self) -> SimTime {
        self.current.at
    }

    /// Key of the event being executed.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn current(&self) -> EventKey {
        self.current
    }

    /// Moves on to `key`, not before now. A command given after the events of an instant may add to that instant.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn advance(&mut self, key: EventKey) {
        debug_assert!(key.at >= self.current.at, "time runs backwards: {:?} after {:?}", key, self.current);
        self.issued = select_unpredictable(key.at == self.current.at, self.issued, 0);
        self.current = key;
    }

    /// The key of something scheduled now for `delay` later.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn issue(&mut self, delay: Span) -> EventKey {
        let tie = Tie::after(delay, self.issued);
        self.issued += 1;
        EventKey { at: self.now() + delay, tie }
    }

    /// The keys of two things scheduled now, one after the other.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn issue_two(&mut self, first: Span, second: Span) -> (EventKey, EventKey) {
        let (now, issued) = (self.now(), self.issued);
        self.issued = issued + 2;
        let key = |delay, count| EventKey { at: now + delay, tie: Tie::after(delay, count) };
        (key(first, issued), key(second, issued + 1))
    }

    /// As [`advance`](Self::advance), but what is issued is numbered from `place` on.
    pub(crate) fn advance_at(&mut self, key: EventKey, place: u64) {
        self.advance(key);
        self.issued = place;
    }

    /// The next number.
    pub(crate) fn place(&self) -> u64 {
        self.issued
    }

    /// Goes on numbering from `place`.
    pub(crate) fn skip_to(&mut self, place: u64) {
        self.issued = place;
    }

    /// What is issued from now on in this instant comes after place `count`.
    pub(crate) fn pass(&mut self, count: u64) {
        self.issued = self.issued.max(count + 1);
    }

    /// The key of something scheduled at `issued`, a time at or before now, for `at`.
    pub fn issue_as_of(&mut self, issued: SimTime, at: SimTime) -> EventKey {
        let tie = Tie::after(at.since(issued), self.issued);
        self.issued += 1;
        EventKey { at, tie }
    }
}

/// Names a timer: its owner and which of the owner's four.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub struct TimerId(pub u32);

/// What a timer that comes due stands for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Event {
    /// The oldest frame of this port's own lane reaches the peer.
    Arrive(PortId),
    /// The port has put the last bit of a frame on the wire, and something waits for that (when it is not in a lane).
    TxDone(PortId),
    /// A queue pair of this host port may be due by its pacing.
    Wake(PortId),
    /// The partition that this port is in is to be woken.
    Unpark(PortId),
    /// A congestion-control timer of a queue pair.
    Cca(QpId, usize),
    /// The queue pair's own timer: the retransmission timeout.
    Qp(QpId),
    /// The next batch of flows starts.
    Start,
    /// The flows that have started open.
    Open,
    /// The next scheduled command from outside: a link change or a frame.
    Input,
}

/// Maps timers to entities: owners are the ports, then the queue pairs, then the fabric.
#[derive(Clone, Copy, Debug)]
pub struct TimerMap {
    ports: u32,
    qps: u32,
}

impl TimerMap {
    /// The map for so many ports and queue pairs.
    pub const fn new(ports: usize, qps: usize) -> TimerMap {
        TimerMap { ports: ports as u32, qps: qps as u32 }
    }

    /// Number of timers in all.
    pub const fn len(&self) -> usize {
        (self.ports as usize + self.qps as usize + 1) * TIMERS_PER_OWNER
    }

    /// Whether there are none: never, the fabric has its own.
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// The timer of an event.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn timer(&self, event: Event) -> TimerId {
        let (owner, slot) = match event {
            Event::Arrive(p) => (p.0, 0),
            Event::TxDone(p) => (p.0, 1),
            Event::Wake(p) => (p.0, 2),
            Event::Unpark(p) => (p.0, 3),
            Event::Cca(q, slot) => (self.ports + q.0, slot as u32),
            Event::Qp(q) => (self.ports + q.0, CCA_TIMERS as u32),
            Event::Start => (self.ports + self.qps, 0),
            Event::Input => (self.ports + self.qps, 1),
            Event::Open => (self.ports + self.qps, 2),
        };
        TimerId(owner * TIMERS_PER_OWNER as u32 + slot)
    }

    /// The event of a timer.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn event(&self, timer: TimerId) -> Event {
        let (owner, slot) = (timer.0 / TIMERS_PER_OWNER as u32, timer.0 % TIMERS_PER_OWNER as u32);
        if owner < self.ports {
            match slot {
                0 => Event::Arrive(PortId(owner)),
                1 => Event::TxDone(PortId(owner)),
                2 => Event::Wake(PortId(owner)),
                _ => Event::Unpark(PortId(owner)),
            }
        } else if owner < self.ports + self.qps {
            let qp = QpId(owner - self.ports);
            if slot == CCA_TIMERS as u32 { Event::Qp(qp) } else { Event::Cca(qp, slot as usize) }
        } else {
            match slot {
                0 => Event::Start,
                1 => Event::Input,
                _ => Event::Open,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ties_follow_the_order_of_scheduling() {
        let mut clock = Clock::default();
        let early = clock.issue(Span(100));
        let also_early = clock.issue(Span(100));
        clock.advance(EventKey { at: SimTime(40), tie: Tie(0) });
        let late = clock.issue(Span(60));
        assert!(early < also_early && also_early < late);
        assert_eq!((early.at, late.at), (SimTime(100), SimTime(100)));
    }

    #[test]
    fn ties_do_not_depend_on_absolute_time() {
        let ties = |start| {
            let mut clock = Clock::default();
            clock.advance(EventKey { at: SimTime(start), tie: Tie(0) });
            [clock.issue(Span(5)).tie, clock.issue(Span(5)).tie, clock.issue(Span(9)).tie]
        };
        assert_eq!(ties(0), ties(1 << 50));
    }

    #[test]
    fn very_long_delays_still_come_first() {
        let mut clock = Clock::default();
        let ages_ago = clock.issue(Span(u64::MAX / 2));
        clock.advance(EventKey { at: SimTime(u64::MAX / 2 - 7), tie: Tie(0) });
        assert!(ages_ago < clock.issue(Span(7)));
    }

    #[test]
    fn places_name_events_and_come_after_final_ones() {
        let place = Place::of(Tie::after(Span(5), Place::first_of(7) + 3)).unwrap();
        assert_eq!((place.event, place.settled(2)), (7, 2 * 8 + 3));
        assert_eq!(Place::of(Tie::after(Span(5), place.settled(2))), None);
        // An event that schedules nothing takes no place, one that schedules nine things takes those of two.
        let first = Place::first_of(7);
        assert_eq!([0, 1, 8, 9].map(|issued| Place::events_below(first + issued)), [7, 8, 8, 9]);
        assert_eq!([0, 1, 7].map(|issued| Place::next_event(first + issued)), [Place::first_of(8); 3]);
    }

    #[test]
    fn timers_and_events_are_one_to_one() {
        let map = TimerMap::new(3, 2);
        let events = [
            Event::Arrive(PortId(2)),
            Event::TxDone(PortId(0)),
            Event::Wake(PortId(1)),
            Event::Unpark(PortId(0)),
            Event::Cca(QpId(1), 2),
            Event::Qp(QpId(0)),
            Event::Start,
            Event::Input,
            Event::Open,
        ];
        for event in events {
            let timer = map.timer(event);
            assert!((timer.0 as usize) < map.len());
            assert_eq!(map.event(timer), event);
        }
    }
}

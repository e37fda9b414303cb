//! Shards: one fabric simulated by several kernels, each at the nodes it owns, with the results of one.
//!
//! Every shard is a kernel over the whole fabric and has all flows. It lets happen what happens at its own nodes. A
//! frame that it puts on a wire to a node of another shard departs; the other shard receives it. What a frame takes
//! across such a wire at least is the *lookahead*: so far all shards may run without having heard of each other
//! (conservative parallel simulation, as Unison does it). They do so in two *windows*, each of half the lookahead: a
//! shard that has ended one goes on with the next while the others still simulate theirs.
//!
//! # Order
//! The order of events is that of one kernel, to the last tie. Of two events of one instant and delay the one goes
//! first that was scheduled first, and within a window no shard knows what the others schedule in the same instant. So
//! places in it are *provisional*: they name the event that scheduled, by its number in the shard's log. Among what a
//! shard has scheduled itself that order is the final one. When all have ended a window, [`rank_events`] brings the
//! logs of all shards into one order, instant by instant, and every shard [keeps the ranks](Kernel::keep_ranks). They
//! are looked up when something of its own meets a frame from another shard in one instant, with the same delay, and
//! for whatever other shards are told. So nothing walks over what is pending.
//!
//! # Calling order
//! 1. In each kernel: [`add_flow`](Kernel::add_flow) for all flows, in the same order; then
//!    [`become_shard`](Kernel::become_shard). Link changes, frames from outside and acceleration are not for shards,
//!    nor links that lose frames, nor models whose state is of the whole fabric, as ns-3's coins are.
//! 2. [`run_window`](Kernel::run_window) in each, to the same end, and [`close_window`](Kernel::close_window), which
//!    hands over what has been done.
//! 3. [`rank_events`] over the logs of a window, [`keep_ranks`](Kernel::keep_ranks) in each shard, and
//!    [`receive`](Kernel::receive) for what has departed to it, in order of [arrival](Departure::arrival).
//! 4. Back to 2.
//!
//! A shard takes step 3 of each window before it begins the next but one. So a window must end no later than a
//! lookahead after the first event that may happen in the one before it.
//!
//! A receiver does not hear that a sender has got its last acknowledgement. Who counts a drop or a time-out in any
//! shard must run one kernel instead: packets that are sent twice may reach a receiver that should know of the end.

use crate::error::CapacityError;
use crate::event::{EventKey, Place, Tie, TimerId};
use crate::ids::{NodeId, PacketId, PortId, QpId};
use crate::kernel::{Kernel, Step};
use crate::memory::{Carver, words_for};
use crate::models::Models;
use crate::observer::Observer;
use crate::packet::{Packet, PacketList, PacketPool};
use crate::queue::EventQueue;
use crate::telemetry::{IntHop, MAX_INT_HOPS, Telemetry};
use crate::units::SimTime;
use bytemuck::{Pod, Zeroable};

/// What a window of a shard may hold.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ShardLimits {
    /// Events. No more than [`ShardLimits::MOST_EVENTS`] are used.
    pub events: usize,
    /// Frames that depart.
    pub departures: usize,
}

impl ShardLimits {
    /// Events of a window that can be told apart, after as many of the one before it and of earlier ones.
    pub const MOST_EVENTS: usize = Place::EVENTS / 3;

    fn events(&self) -> usize {
        self.events.min(Self::MOST_EVENTS)
    }
}

/// A frame on its way to another shard.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Departure {
    frame: Packet,
    /// As many as the frame has; the others mean nothing.
    hops: [IntHop; MAX_INT_HOPS],
}

impl Departure {
    /// The port it arrives at.
    pub fn ingress(&self) -> PortId {
        self.frame.ingress()
    }

    /// When it arrives there.
    pub fn at(&self) -> SimTime {
        self.frame.arrival.at
    }

    /// Its arrival, given the ranks of the shard that it comes from, as [`rank_events`] has them.
    pub fn arrival(&self, ranks: &[u32]) -> Arrival<'_> {
        let EventKey { at, tie } = self.frame.arrival;
        Arrival { key: EventKey { at, tie: settled(tie, ranks) }, departure: self }
    }
}

/// A frame that comes from another shard.
#[derive(Clone, Copy, Debug)]
pub struct Arrival<'d> {
    /// When it reaches the other end of its wire, and its rank in that instant.
    pub key: EventKey,
    departure: &'d Departure,
}

/// What a shard does in a window.
pub struct Window<'a> {
    log: Log<'a, EventKey>,
    departures: Log<'a, Departure>,
}

impl<'a> Window<'a> {
    /// Words of zeroed memory that a window takes.
    pub fn words(limits: &ShardLimits) -> usize {
        words_for::<EventKey>(limits.events()) + words_for::<Departure>(limits.departures)
    }

    /// A window in which nothing has happened. `words` MUST be zero.
    ///
    /// # Errors
    /// [`CapacityError`] `memory` if there are too few words.
    pub fn new(words: &'a mut [u64], limits: &ShardLimits) -> Result<Window<'a>, CapacityError> {
        Window::carve(&mut Carver::new(words), limits)
    }

    fn carve(carver: &mut Carver<'a>, limits: &ShardLimits) -> Result<Window<'a>, CapacityError> {
        Ok(Window {
            log: Log::carve(carver, limits.events(), "window_events")?,
            departures: Log::carve(carver, limits.departures, "window_departures")?,
        })
    }

    /// The events that have scheduled anything, in their order.
    pub fn log(&self) -> &[EventKey] {
        self.log.items()
    }

    /// What has departed, in order of departure.
    pub fn departures(&self) -> &[Departure] {
        self.departures.items()
    }

    fn clear(&mut self) {
        (self.log.len, self.departures.len) = (0, 0);
    }
}

/// What a kernel keeps as a shard.
pub(crate) struct Shard<'a> {
    /// Per node: whether another shard owns it.
    foreign: &'a mut [u8],
    window: Window<'a>,
    /// Ranks of the events of earlier windows.
    ranks: Log<'a, u32>,
    /// Events of windows that have ended and whose ranks are not known yet: numbers of events go on from there.
    unranked: usize,
    /// Frames that have come from other shards, first to last, and when the first of them arrives.
    imports: PacketList,
    pub(crate) next_import: EventKey,
}

impl Shard<'_> {
    /// A key with its final place, if it was scheduled in a window that is over.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn settled(&self, key: EventKey) -> EventKey {
        EventKey { tie: settled(key.tie, self.ranks.items()), ..key }
    }

    /// A tie as others know it: places are final, but for those of events without a rank, which count from the first
    /// of these.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn told(&self, tie: Tie) -> Tie {
        match Place::of(tie) {
            Some(place) if place.event >= self.ranks.len => tie.with_count(place.since(self.ranks.len)),
            _ => settled(tie, self.ranks.items()),
        }
    }
}

/// Where the next event comes from.
enum Source {
    Lane(usize),
    Timer,
    Import,
}

/// A list of bounded length.
struct Log<'a, T> {
    items: &'a mut [T],
    len: usize,
    what: &'static str,
}

impl<'a, T: Pod> Log<'a, T> {
    fn carve(carver: &mut Carver<'a>, limit: usize, what: &'static str) -> Result<Log<'a, T>, CapacityError> {
        Ok(Log { items: carver.take(limit)?, len: 0, what })
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn push(&mut self, item: T) -> Result<(), CapacityError> {
        *self.add()? = item;
        Ok(())
    }

    /// Adds an item, which is what was there before.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn add(&mut self) -> Result<&mut T, CapacityError> {
        let limit = self.items.len();
        let slot = self.items.get_mut(self.len).ok_or(CapacityError { what: self.what, limit })?;
        self.len += 1;
        Ok(slot)
    }

    fn items(&self) -> &[T] {
        &self.items[..self.len]
    }
}

/// Ranks the events of a window: per shard and event of its log, the event's number among all of its instant.
///
/// `logs` are the [logs](Window::log) of all shards. For each of them `ranks` has a list, in which the ranks of the
/// shard's window before come first, unless there was none that had no ranks when this one began; then there is room
/// for those of this window. Takes 32 KiB of the stack.
///
/// # Panics
/// If a list of ranks is shorter than its log.
pub fn rank_events(logs: &[&[EventKey]], ranks: &mut [&mut [u32]]) {
    let shared = &SharedInstants::of(logs);
    let never = EventKey::NEVER.at;
    let [next, known] = [[0; MOST_SHARDS]; 2];
    let mut heads = Heads { logs, next, known, at: [never; MOST_SHARDS], ties: [Tie::LAST; MOST_SHARDS] };
    for (shard, log) in logs.iter().enumerate() {
        heads.known[shard] = ranks[shard].len() - log.len();
        heads.rank_alone(shard, never, shared, ranks[shard]);
    }
    loop {
        let (first, now, others) = heads.earliest();
        if now == never {
            return;
        }
        if now < others {
            heads.rank_alone(first, now, shared, ranks[first]);
            continue;
        }
        heads.rank_together(now, ranks);
        for (shard, ranks) in ranks.iter_mut().enumerate().take(logs.len()) {
            if heads.at[shard] == now {
                heads.rank_alone(shard, never, shared, ranks);
            }
        }
    }
}

/// Instants in which several shards have events. A few in which only one has any may pass for such.
struct SharedInstants {
    /// A bit for each hash of an instant.
    several: [u64; Self::WORDS],
}

impl SharedInstants {
    /// In windows that fit into a processor's caches one instant in fifty is taken for another.
    const BITS: u32 = 17;
    const WORDS: usize = 1 << (Self::BITS - u64::BITS.ilog2());

    fn of(logs: &[&[EventKey]]) -> SharedInstants {
        let mut instants = SharedInstants { several: [0; Self::WORDS] };
        let mut any = [0; Self::WORDS];
        for (shard, log) in logs.iter().enumerate() {
            for key in log.iter().filter(|_| shard > 0) {
                let (word, bit) = Self::place(key.at);
                instants.several[word] |= any[word] & bit;
            }
            for key in log.iter().filter(|_| shard + 1 < logs.len()) {
                let (word, bit) = Self::place(key.at);
                any[word] |= bit;
            }
        }
        instants
    }

    fn may_have(&self, at: SimTime) -> bool {
        let (word, bit) = Self::place(at);
        self.several[word] & bit != 0
    }

    /// Its word and bit: the upper bits of a product with the golden ratio.
    fn place(at: SimTime) -> (usize, u64) {
        let hash = at.0.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> (u64::BITS - Self::BITS);
        (hash as usize % Self::WORDS, 1 << (hash / Self::WORDS as u64))
    }
}

/// How far each shard's log has been ranked.
struct Heads<'l> {
    logs: &'l [&'l [EventKey]],
    next: [usize; MOST_SHARDS],
    /// How many ranks each has from the window before.
    known: [usize; MOST_SHARDS],
    /// When the next event of each shard happens.
    at: [SimTime; MOST_SHARDS],
    /// Its tie, while the events of its instant are ranked.
    ties: [Tie; MOST_SHARDS],
}

impl Heads<'_> {
    /// The shard whose event is next, when that is, and when the next one of any other shard is.
    fn earliest(&self) -> (usize, SimTime, SimTime) {
        let (mut first, mut now, mut others) = (0, self.at[0], EventKey::NEVER.at);
        for shard in 1..self.logs.len() {
            let at = self.at[shard];
            if at < now {
                (first, now, others) = (shard, at, now);
            } else {
                others = others.min(at);
            }
        }
        (first, now, others)
    }

    /// Ranks what a shard does, until it does something in an instant that it may share and that is not its `own`.
    fn rank_alone(&mut self, shard: usize, own: SimTime, shared: &SharedInstants, ranks: &mut [u32]) {
        let log = self.logs[shard];
        let (mut next, mut now, mut rank) = (self.next[shard], EventKey::NEVER.at, 0);
        let ranks = &mut ranks[self.known[shard]..];
        while let Some(key) = log.get(next).filter(|key| !shared.may_have(key.at) || key.at == own) {
            rank = if key.at == now { rank + 1 } else { 0 };
            now = key.at;
            ranks[next] = rank;
            next += 1;
        }
        self.next[shard] = next;
        self.at[shard] = log.get(next).map_or(EventKey::NEVER.at, |key| key.at);
    }

    /// Ranks what all shards do in an instant.
    fn rank_together(&mut self, now: SimTime, ranks: &mut [&mut [u32]]) {
        let shards = self.logs.len();
        (0..shards).for_each(|shard| self.ties[shard] = self.next_tie(shard, now, ranks[shard]));
        for rank in 0.. {
            let least = self.ties[..shards].iter().min().copied().unwrap_or(Tie::LAST);
            if least == Tie::LAST {
                return;
            }
            // What happens in every shard has the same key in all of them: it is one event.
            for shard in 0..shards {
                if self.ties[shard] == least {
                    ranks[shard][self.known[shard] + self.next[shard]] = rank;
                    self.next[shard] += 1;
                    self.ties[shard] = self.next_tie(shard, now, ranks[shard]);
                }
            }
        }
    }

    /// The tie of a shard's next event, if it is in this instant.
    fn next_tie(&self, shard: usize, now: SimTime, ranks: &[u32]) -> Tie {
        let key = self.logs[shard].get(self.next[shard]).filter(|key| key.at == now);
        key.map_or(Tie::LAST, |key| settled(key.tie, ranks))
    }
}

/// When the first frame of a list arrives.
fn first_arrival(frames: &PacketList, packets: &PacketPool<'_>) -> EventKey {
    frames.head().map_or(EventKey::NEVER, |id| packets.get(id).arrival)
}

/// Shards of one fabric at most.
pub const MOST_SHARDS: usize = 64;

/// A tie with its final place, given the ranks of the shard that issued it. One that has it already stays as it is, and
/// so does one of an event without a rank yet.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn settled(tie: Tie, ranks: &[u32]) -> Tie {
    match Place::of(tie).and_then(|place| Some(place.settled(*ranks.get(place.event)?))) {
        Some(count) => tie.with_count(count),
        None => tie,
    }
}

impl<'a, M: Models, O: Observer> Kernel<'a, M, O> {
    /// Words of zeroed memory that a shard takes besides those of its kernel, in a fabric of so many nodes.
    pub fn shard_words(nodes: usize, limits: &ShardLimits) -> usize {
        words_for::<u8>(nodes) + words_for::<u32>(2 * limits.events()) + Window::words(limits)
    }

    /// From now on leaves to other kernels what happens at nodes that are not its own. `words` MUST be zero.
    ///
    /// # Errors
    /// [`CapacityError`] `memory` if there are too few words.
    pub fn become_shard(
        &mut self,
        words: &'a mut [u64],
        limits: &ShardLimits,
        owns: impl Fn(NodeId) -> bool,
    ) -> Result<(), CapacityError> {
        let carver = &mut Carver::new(words);
        let foreign: &mut [u8] = carver.take(self.fabric.node_count())?;
        for (node, foreign) in (0..).map(NodeId).zip(foreign.iter_mut()) {
            *foreign = u8::from(!owns(node));
        }
        for port in self.fabric.ports() {
            let crosses = owns(self.fabric.port(port).node) && !owns(self.fabric.neighbour(port));
            self.ports[port.index()].crosses = u8::from(crosses);
        }
        self.shard = Some(Shard {
            foreign,
            ranks: Log::carve(carver, 2 * limits.events(), "window_events")?,
            window: Window::carve(carver, limits)?,
            unranked: 0,
            imports: PacketList::EMPTY,
            next_import: EventKey::NEVER,
        });
        Ok(())
    }

    /// Lets everything before `end` happen at the nodes of this shard. [`Step::OutputFull`] interrupts it: it goes on
    /// when it is called again. Else it returns [`Step::Reached`].
    ///
    /// # Errors
    /// [`CapacityError`] if a limit of the kernel or of the shard is reached: the shard is of no use any more.
    pub fn run_window(&mut self, end: SimTime) -> Result<Step, CapacityError> {
        loop {
            if self.interrupted
                && let Some(stop) = self.interruption()
            {
                return stop;
            }
            let Some(shard) = &self.shard else { return Ok(Step::Reached) };
            let (next, source) = self.next_in(shard);
            if next.at >= end {
                return Ok(Step::Reached);
            }
            let first = Place::first_of(shard.ranks.len + shard.unranked + shard.window.log.len);
            self.clock.advance_at(next, first);
            match source {
                Source::Lane(lane) => self.execute(Some(lane)),
                Source::Timer => self.execute(None),
                Source::Import => self.import_arrives(),
            }
            self.log_event(next)?;
        }
    }

    /// As [`next_due`](Self::next_due), among all that a shard has.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn next_in(&self, shard: &Shard<'_>) -> (EventKey, Source) {
        let (lane, due) = self.lanes.first();
        let (next, source) =
            if due < self.next_timer { (due, Source::Lane(lane)) } else { (self.next_timer, Source::Timer) };
        let import = shard.next_import;
        let is_first = import.at <= next.at && import < shard.settled(next);
        if is_first { (import, Source::Import) } else { (next, source) }
    }

    /// The first frame from another shard arrives.
    fn import_arrives(&mut self) {
        self.totals.events += 1;
        let Some(shard) = &mut self.shard else { return };
        let Some(id) = shard.imports.pop(&self.packets) else { return };
        shard.next_import = first_arrival(&shard.imports, &self.packets);
        self.frame_arrives(id);
    }

    /// Writes an event down, as often as what it has scheduled takes places: not at all if it has scheduled nothing.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn log_event(&mut self, key: EventKey) -> Result<(), CapacityError> {
        let Some(shard) = &mut self.shard else { return Ok(()) };
        let used = Place::events_below(self.clock.place()) - shard.ranks.len - shard.unranked;
        while shard.window.log.len < used {
            let tie = shard.told(key.tie);
            shard.window.log.push(EventKey { tie, ..key })?;
        }
        Ok(())
    }

    /// Ends a window: `done` is what has been done in it from now on. What it was before is of no use any more, and the
    /// next window is written there.
    pub fn close_window(&mut self, done: &mut Window<'a>) {
        let Some(shard) = &mut self.shard else { return };
        core::mem::swap(&mut shard.window, done);
        shard.window.clear();
        shard.unranked += done.log.len;
    }

    /// What the first of the windows without ranks has scheduled has its final place now.
    ///
    /// # Panics
    /// If there are more ranks than such windows have events.
    pub fn keep_ranks(&mut self, ranks: &[u32]) {
        let Some(shard) = &mut self.shard else { return };
        assert!(ranks.len() <= shard.unranked, "ranks of events that there were not");
        let known = shard.ranks.len;
        shard.ranks.items[known..][..ranks.len()].copy_from_slice(ranks);
        shard.ranks.len += ranks.len();
        shard.unranked -= ranks.len();
        if shard.ranks.len > shard.window.log.items.len() {
            self.forget_ranks();
        }
    }

    /// Before there are more ranks than places for them, all that is pending gets its final place, or one that counts
    /// from the first event without a rank.
    #[cold]
    fn forget_ranks(&mut self) {
        let Some(shard) = &mut self.shard else { return };
        for port in self.ports.iter_mut() {
            port.idle_from.tie = shard.told(port.idle_from.tie);
            let first = port.lane.head().unwrap_or(PacketId::NONE);
            self.packets.change_from(first, |packet| packet.arrival.tie = shard.told(packet.arrival.tie));
        }
        self.lanes.change_ties(&mut self.packets, self.ports, |tie| shard.told(tie));
        for timer in (0..self.timers.len() as u32).map(TimerId) {
            if let Some(key) = self.events.pending(timer) {
                self.events.schedule(timer, EventKey { tie: shard.told(key.tie), ..key });
            }
        }
        self.next_timer = self.events.peek().unwrap_or(EventKey::NEVER);
        shard.ranks.len = 0;
    }

    /// Takes frames in that have departed to this shard, in the order of their keys. None MUST be before the end of the
    /// last window that has been simulated.
    ///
    /// # Errors
    /// [`CapacityError`] `packets`.
    pub fn receive(&mut self, arrivals: &[Arrival<'_>]) -> Result<(), CapacityError> {
        let mut last = None;
        for Arrival { key, departure: Departure { frame, hops, .. } } in arrivals {
            if self.packets.available() == 0 {
                return Err(CapacityError { what: "packets", limit: self.packets.capacity() });
            }
            let id = self.new_frame(Packet { arrival: *key, ..*frame });
            for (number, hop) in (0..frame.int_hops).zip(hops) {
                self.headers.set(id, number, self.models.telemetry.record(hop));
            }
            self.count_frame(frame, 1);
            let Some(shard) = &mut self.shard else { continue };
            shard.imports.insert(&mut self.packets, last, id);
            last = Some(id);
        }
        if let Some(shard) = &mut self.shard {
            shard.next_import = first_arrival(&shard.imports, &self.packets);
        }
        Ok(())
    }

    /// A frame leaves for another shard.
    pub(crate) fn depart(&mut self, id: PacketId) {
        let frame = *self.packets.get(id);
        if let Some(shard) = &mut self.shard {
            let arrival = EventKey { tie: shard.told(frame.arrival.tie), ..frame.arrival };
            match shard.window.departures.add() {
                Ok(departure) => {
                    departure.frame = Packet { arrival, ..frame };
                    self.headers.read(&self.models.telemetry, id, &frame, &mut departure.hops);
                }
                Err(fault) => self.fail(fault),
            }
        }
        self.count_frame(&frame, u32::MAX);
        self.packets.remove(id);
    }

    /// Counts a frame that comes (1) or goes (-1, wrapping).
    fn count_frame(&mut self, frame: &Packet, by: u32) {
        self.on_wire = self.on_wire.wrapping_add_signed(by as i32 as isize);
        if frame.qp != QpId::NONE.0 {
            let frames = &mut self.qps.slots[frame.qp as usize].frames;
            *frames = frames.wrapping_add(by);
        }
        if frame.is_pfc() {
            self.pfc_frames = self.pfc_frames.wrapping_add(by);
        }
    }

    /// Whether another shard owns a node.
    pub(crate) fn is_foreign(&self, node: NodeId) -> bool {
        self.shard.as_ref().is_some_and(|shard| shard.foreign[node.index()] != 0)
    }

    /// Whether something of this shard's own that is due in the present instant, and whose key is not below that of the
    /// present event, is still to come.
    #[cold]
    pub(crate) fn is_to_come(&self, own: EventKey) -> bool {
        let present = self.clock.current();
        let settled = || self.shard.as_ref().map_or(own, |shard| shard.settled(own));
        // Only a frame from another shard has a place that is final when places of its instant and delay are not.
        Place::of(present.tie).is_some() || settled() > present
    }

    /// What every shard does next in an event that happens in all of them has the same place in each, whatever they
    /// have done in it so far.
    pub(crate) fn begin_common_step(&mut self) {
        if self.shard.is_some() {
            self.clock.skip_to(Place::next_event(self.clock.place()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::Span;

    /// What the event before the `nth` in its shard's log has scheduled for `at`, after `delay`.
    fn scheduled(at: u64, delay: u64, event: usize, nth: u64) -> EventKey {
        let tie = Tie::after(Span(delay), Place::first_of(event) + nth);
        EventKey { at: SimTime(at), tie }
    }

    /// Something of an earlier window.
    fn known(at: u64, delay: u64, count: u64) -> EventKey {
        EventKey { at: SimTime(at), tie: Tie::after(Span(delay), count) }
    }

    type Ranks = heapless::Vec<u32, 8>;

    fn ranks(logs: &[&[EventKey]]) -> heapless::Vec<Ranks, 4> {
        ranks_after(&[&[][..]; 4][..logs.len()], logs)
    }

    /// The ranks of events after a window whose events had the `first` ones.
    fn ranks_after(first: &[&[u32]], logs: &[&[EventKey]]) -> heapless::Vec<Ranks, 4> {
        let list = |(first, log): (&&[u32], &&[EventKey])| -> Ranks {
            first.iter().copied().chain(core::iter::repeat_n(0, log.len())).collect()
        };
        let mut lists: heapless::Vec<Ranks, 4> = first.iter().zip(logs).map(list).collect();
        let mut slices: heapless::Vec<&mut [u32], 4> = lists.iter_mut().map(|list| &mut list[..]).collect();
        rank_events(logs, &mut slices);
        slices.iter().zip(first).map(|(ranks, first)| Ranks::from_slice(&ranks[first.len()..]).unwrap()).collect()
    }

    #[test]
    fn events_that_are_alone_in_their_instant_are_numbered_from_0() {
        let logs: [&[EventKey]; 2] =
            [&[known(5, 9, 0), known(5, 9, 1), known(8, 3, 0)], &[known(6, 9, 4), known(9, 9, 0)]];
        assert_eq!(ranks(&logs), [&[0, 1, 0][..], &[0, 0]]);
    }

    #[test]
    fn events_of_one_instant_are_ranked_by_delay_and_then_by_the_rank_of_what_scheduled_them() {
        // At 10 the first event of the second shard comes first. So what it has scheduled for 14 comes first there,
        // too, but for what was scheduled earlier.
        let first = [known(10, 7, 1), known(14, 20, 0), scheduled(14, 4, 0, 0), scheduled(14, 4, 0, 1)];
        let second = [known(10, 7, 0), scheduled(14, 4, 0, 1)];
        assert_eq!(ranks(&[&first, &second]), [&[1, 0, 2, 3][..], &[0, 1]]);
    }

    #[test]
    fn what_an_event_of_the_window_before_has_scheduled_has_its_rank() {
        // Of the window before, the second event of the first shard was the third of its instant, and the first of the
        // second shard the second.
        let first = [scheduled(14, 4, 1, 0), scheduled(17, 3, 2, 0)];
        let second = [scheduled(14, 4, 0, 7), scheduled(17, 3, 1, 0)];
        assert_eq!(ranks_after(&[&[0, 2], &[1]], &[&first, &second]), [&[1, 1][..], &[0, 0]]);
    }

    #[test]
    fn what_happens_in_every_shard_is_one_event() {
        let start = known(10, 50, 0);
        let logs: [&[EventKey]; 3] =
            [&[start, start, known(10, 7, 2)], &[start, start], &[start, start, known(10, 7, 1)]];
        assert_eq!(ranks(&logs), [&[0, 1, 3][..], &[0, 1], &[0, 1, 2]]);
    }

    #[test]
    fn ties_that_are_settled_keep_their_delays_and_stay() {
        let key = scheduled(14, 4, 2, 5);
        let tie = settled(key.tie, &[9, 9, 3]);
        assert_eq!((tie.delay(), tie.count()), (Some(Span(4)), 3 * 8 + 5));
        assert_eq!(settled(tie, &[]), tie);
    }
}

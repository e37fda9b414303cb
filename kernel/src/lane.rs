//! Lanes: what comes due after a constant delay, first in, first out.
//!
//! All frames that take the same time from the start of their transmission to their arrival share a lane, whatever
//! their link, and so do all transmissions of the same length. Whatever enters a lane comes due after everything in
//! it, so a lane is a list, and only its head can be the next event. Traffic needs a handful of lanes: a size of data
//! packets and a size of ACKs on one kind of link make four. What finds no lane goes to the event queue instead, so
//! the number of lanes is a matter of speed only.
//!
//! The lists are threaded through the frames and ports themselves. Lanes are kept in order of falling delay: of two
//! heads due at the same instant, the one with the longer delay was scheduled first. So the next event is the first of
//! the earliest heads, and finding it compares one word a lane.
//!
//! The end of a transmission matters only if something waits for it. If something does when it begins, its port enters
//! the lane at the tail. If something comes to wait later, the port goes to where it would be by then: that is close to
//! the tail of the time when it began. If it is not, the end takes a timer.

use crate::event::{EventKey, Tie};
use crate::ids::{FlowId, PacketId, PortId};
use crate::packet::{Packet, PacketList, PacketPool};
use crate::port::{IN_LANE, Port};
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};
use core::hint::select_unpredictable;

/// Lanes in all. Finding the earliest head looks at each one in use. Microcontrollers have little memory for them, and
/// few kinds of links.
const LANES: usize = if cfg!(target_pointer_width = "64") { 16 } else { 8 };

/// Most ports that are passed on the way to the place of one in its lane.
const MOST_STEPS: usize = 16;

const NONE: u32 = u32::MAX;

/// What is due. Lanes know this of their heads: which event is next nobody can guess, but then at once what it is,
/// without a look at its frame and port.
#[repr(transparent)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
pub(crate) struct Due(u8);

impl Due {
    /// The arrival of any frame.
    pub(crate) const FRAME: Due = Due(0);
    const TX_DONE: u8 = 1;
    const FLOW: u8 = 2;
    const HOST: u8 = 4;
    const ACK: u8 = 8;

    /// The arrival of a flow's data at a switch or host.
    pub(crate) const fn data(at_host: bool) -> Due {
        Due(Due::FLOW | if at_host { Due::HOST } else { 0 })
    }

    /// The arrival of an ACK at a switch or host.
    pub(crate) const fn ack(at_host: bool) -> Due {
        Due(Due::ACK | Due::data(at_host).0)
    }

    /// The end of a transmission of a switch or host.
    pub(crate) const fn tx_done(at_host: bool) -> Due {
        Due(Due::TX_DONE | if at_host { Due::HOST } else { 0 })
    }

    #[inline(always)]
    pub(crate) fn is_tx_done(self) -> bool {
        self.0 & Due::TX_DONE != 0
    }

    /// Whether it is the arrival of data or an ACK.
    #[inline(always)]
    pub(crate) fn is_of_flow(self) -> bool {
        self.0 & Due::FLOW != 0
    }

    #[inline(always)]
    pub(crate) fn is_at_host(self) -> bool {
        self.0 & Due::HOST != 0
    }

    #[inline(always)]
    pub(crate) fn is_ack(self) -> bool {
        self.0 & Due::ACK != 0
    }
}

/// The head of an empty lane.
const NEVER: (EventKey, Due) = (EventKey::NEVER, Due::FRAME);

/// What a lane holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum LaneKind {
    /// Frames on wires, due when they arrive.
    Arrival,
    /// Ports that are sending, due when they are done.
    TxDone,
}

#[derive(Clone, Copy)]
struct Lane {
    kind: LaneKind,
    delay: Span,
    head: u32,
    tail: u32,
}

/// The earlier of two heads, each a lane and when it is due; the first if they are due at once. Which one it is nobody
/// can guess, nor can the branch predictor.
#[cfg_attr(target_pointer_width = "64", inline(always))]
fn earlier(first: (usize, SimTime), second: (usize, SimTime)) -> (usize, SimTime) {
    let is_second = second.1 < first.1;
    (select_unpredictable(is_second, second.0, first.0), select_unpredictable(is_second, second.1, first.1))
}

/// See the module.
pub(crate) struct Lanes {
    /// When each lane's head is due; apart from the rest, so that the search touches few cache lines.
    at: [SimTime; LANES],
    tie: [Tie; LANES],
    /// What it is; anything in an empty lane.
    due: [Due; LANES],
    lanes: [Lane; LANES],
    /// Lanes in use; the rest are empty.
    used: usize,
    /// The lane whose head is due first, and when. It is looked for as soon as a head changes, long before anybody
    /// asks: what is next cannot be guessed, so it should be known early.
    first: (usize, EventKey),
}

impl Lanes {
    pub(crate) const EMPTY: Lanes = Lanes {
        at: [SimTime::MAX; LANES],
        tie: [Tie::LAST; LANES],
        due: [Due::FRAME; LANES],
        lanes: [Lane { kind: LaneKind::Arrival, delay: Span::MAX, head: NONE, tail: NONE }; LANES],
        used: 0,
        first: (0, EventKey::NEVER),
    };

    /// The lane whose head is due first, and when.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn first(&self) -> (usize, EventKey) {
        self.first
    }

    /// Looks for the first of all heads.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn find_first(&mut self) {
        let (mut lane, mut least) = self.first_of_four(0);
        let mut four = 4;
        while four < self.used {
            (lane, least) = earlier((lane, least), self.first_of_four(four));
            four += 4;
        }
        self.first = (lane, EventKey { at: least, tie: self.tie[lane % LANES] });
    }

    /// The first of four lanes from `first` on: a knock-out, as two comparisons at a time take less than one by one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn first_of_four(&self, first: usize) -> (usize, SimTime) {
        let head = |nth: usize| ((first + nth) % LANES, self.at[(first + nth) % LANES]);
        earlier(earlier(head(0), head(1)), earlier(head(2), head(3)))
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn set_head(&mut self, lane: usize, (key, due): (EventKey, Due)) {
        self.at[lane] = key.at;
        self.tie[lane] = key.tie;
        self.due[lane] = due;
        self.find_first();
    }

    /// What the head of a lane is.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn due(&self, lane: usize) -> Due {
        self.due[lane]
    }

    /// The lane that the last one like it went to, if it is of this kind and delay still.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn hinted(&self, hint: u8, kind: LaneKind, delay: Span) -> Option<usize> {
        let hint = hint as usize % LANES;
        let lane = &self.lanes[hint];
        (lane.delay == delay && lane.kind == kind).then_some(hint)
    }

    /// A lane of this kind and delay. `hint` tells where the last one like it was, and is kept up to date.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn find_by(&mut self, hint: &mut u8, kind: LaneKind, delay: Span) -> Option<usize> {
        self.hinted(*hint, kind, delay).or_else(|| self.find_anew(hint, kind, delay))
    }

    #[cold]
    fn find_anew(&mut self, hint: &mut u8, kind: LaneKind, delay: Span) -> Option<usize> {
        let lane = self.find(kind, delay)?;
        *hint = lane as u8;
        Some(lane)
    }

    /// A lane of this kind and delay.
    pub(crate) fn find(&mut self, kind: LaneKind, delay: Span) -> Option<usize> {
        if !Tie::tells_apart(delay) {
            return None;
        }
        let same_delay = self.lanes[..self.used].iter().position(|l| l.delay == delay);
        if let Some(lane) = same_delay {
            // Two lanes of one delay would need more than their order to tell which of two heads goes first.
            return (self.lanes[lane].kind == kind).then_some(lane);
        }
        if self.used == LANES {
            let empty = self.lanes.iter().position(|l| l.head == NONE)?;
            self.used -= 1;
            self.rotate(empty, self.used);
        }
        let lane = self.lanes[..self.used].partition_point(|l| l.delay > delay);
        self.rotate(self.used, lane);
        self.used += 1;
        self.lanes[lane] = Lane { kind, delay, head: NONE, tail: NONE };
        self.find_first();
        Some(lane)
    }

    /// Moves the lane at `from` to `to`; those in between move up by one.
    fn rotate(&mut self, from: usize, to: usize) {
        if from < to {
            self.at[from..=to].rotate_left(1);
            self.tie[from..=to].rotate_left(1);
            self.due[from..=to].rotate_left(1);
            self.lanes[from..=to].rotate_left(1);
        } else {
            self.at[to..=from].rotate_right(1);
            self.tie[to..=from].rotate_right(1);
            self.due[to..=from].rotate_right(1);
            self.lanes[to..=from].rotate_right(1);
        }
    }

    /// Appends to a lane; gives the tail to link the new one to, unless the lane was empty.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    fn append(&mut self, lane: usize, id: u32, head: (EventKey, Due)) -> Option<u32> {
        let state = &mut self.lanes[lane];
        let tail = core::mem::replace(&mut state.tail, id);
        if state.head == NONE {
            state.head = id;
            self.set_head(lane, head);
            return None;
        }
        Some(tail)
    }

    /// Appends a frame; gives the one to link it to, unless the lane was empty.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn push_frame(&mut self, lane: usize, packet: &mut Packet, id: PacketId) -> Option<PacketId> {
        packet.next = NONE;
        self.append(lane, id.0, packet.head()).map(PacketId)
    }

    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn pop_frame(&mut self, lane: usize, packets: &PacketPool<'_>) -> PacketId {
        let id = PacketId(self.lanes[lane].head);
        let next = packets.get(id).next;
        self.lanes[lane].head = next;
        let head = if next == NONE { NEVER } else { packets.get(PacketId(next)).head() };
        self.set_head(lane, head);
        id
    }

    /// A transmission begins. If something waits for its end, its port enters the lane; if not, it only keeps in mind
    /// where it would be. Gives the port to link it to, if there is one.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn begin(&mut self, lane: usize, state: &mut Port, port: PortId, waits: bool) -> Option<PortId> {
        state.done_lane = lane as u8;
        if !waits {
            let Lane { head, tail, .. } = self.lanes[lane];
            state.next_done = select_unpredictable(head == NONE, NONE, tail);
            return None;
        }
        state.awaits_done = IN_LANE;
        state.next_done = NONE;
        self.append(lane, port.0, state.head()).map(PortId)
    }

    /// Puts a port whose transmission is under way into its lane. Its place is not far from the tail that the lane had
    /// when it began. Gives whether it was found: if too many others have come between, it is not looked for further.
    pub(crate) fn insert_port(&mut self, lane: usize, ports: &mut [Port], port: PortId) -> bool {
        let Port { idle_from: key, next_done: tail_then, .. } = ports[port.index()];
        let is_not_later = |port: &&Port| port.idle_from <= key;
        // It is in the lane still, not again: what has begun later ends later.
        let is_there = |port: &&Port| port.awaits_done == IN_LANE && port.idle_from.tie.same_delay(key.tie);
        let then = ports.get(tail_then as usize).filter(is_there).filter(is_not_later);
        let (mut before, mut next) = then.map_or((NONE, self.lanes[lane].head), |port| (tail_then, port.next_done));
        let mut steps = 0;
        while let Some(other) = ports.get(next as usize).filter(is_not_later) {
            if steps == MOST_STEPS {
                return false;
            }
            steps += 1;
            (before, next) = (next, other.next_done);
        }
        if next == NONE {
            self.lanes[lane].tail = port.0;
        }
        let state = &mut ports[port.index()];
        state.awaits_done = IN_LANE;
        state.next_done = next;
        let head = state.head();
        match ports.get_mut(before as usize) {
            Some(before) => before.next_done = port.0,
            None => {
                self.lanes[lane].head = port.0;
                self.set_head(lane, head);
            }
        }
        true
    }

    /// Takes the first port out.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn pop_port(&mut self, lane: usize, ports: &mut [Port]) -> PortId {
        let port = PortId(self.lanes[lane].head);
        let next = ports[port.index()].next_done;
        let head = ports.get(next as usize).map_or(NEVER, Port::head);
        self.lanes[lane].head = next;
        self.set_head(lane, head);
        port
    }

    /// Moves the frames for which `is_cut` says so from all lanes to `taken`; there are `most` at most.
    pub(crate) fn cut(
        &mut self,
        packets: &mut PacketPool<'_>,
        is_cut: impl Fn(&Packet) -> bool,
        most: usize,
        taken: &mut PacketList,
    ) {
        let list = &mut (packets, |_: &Packet| None);
        let is_cut = |packets: &PacketPool<'_>, id| is_cut(packets.get(PacketId(id)));
        self.unlink(
            LaneKind::Arrival,
            list,
            |list, id| is_cut(list.0, id),
            most,
            |list, id| {
                taken.push(list.0, PacketId(id));
            },
        );
    }

    /// Takes the ports for which `is_cut` says so out of all lanes; there are `most` at most.
    pub(crate) fn cut_ports(&mut self, ports: &mut [Port], is_cut: impl Fn(&Port) -> bool, most: usize) {
        let list = &mut (ports, |_: &Port| None);
        self.unlink(LaneKind::TxDone, list, |list, id| is_cut(&list.0[id as usize]), most, |_, _| {});
    }

    /// Takes out of the lanes of a kind what `is_cut` says, and hands it over, until it has found `most`.
    fn unlink<L: LaneList>(
        &mut self,
        kind: LaneKind,
        list: &mut L,
        is_cut: impl Fn(&L, u32) -> bool,
        most: usize,
        mut hand_over: impl FnMut(&mut L, u32),
    ) {
        let mut left = most;
        for lane in 0..self.used {
            if self.lanes[lane].kind != kind {
                continue;
            }
            let (mut before, mut next) = (NONE, self.lanes[lane].head);
            while next != NONE && left > 0 {
                let (id, after) = (next, list.next(next));
                next = after;
                if !is_cut(list, id) {
                    before = id;
                    continue;
                }
                match before {
                    NONE => self.lanes[lane].head = after,
                    _ => list.set_next(before, after),
                }
                if after == NONE {
                    self.lanes[lane].tail = before;
                }
                hand_over(list, id);
                left -= 1;
            }
            let head = self.lanes[lane].head;
            self.set_head(lane, if head == NONE { NEVER } else { list.head(head) });
        }
    }

    /// Calls `visit` with the frames in lanes until it says that this was the last one it wanted.
    pub(crate) fn each_frame(&self, packets: &PacketPool<'_>, mut visit: impl FnMut(PacketId, &Packet) -> bool) {
        for lane in self.lanes[..self.used].iter().filter(|l| l.kind == LaneKind::Arrival) {
            let mut next = lane.head;
            while next != NONE {
                let packet = packets.get(PacketId(next));
                if visit(PacketId(next), packet) {
                    return;
                }
                next = packet.next;
            }
        }
    }

    /// Puts a frame back into its lane, if there is one. `elder` tells the seniority of the partition of a frame.
    pub(crate) fn merge_frame(
        &mut self,
        packets: &mut PacketPool<'_>,
        id: PacketId,
        merge: &mut Merge,
        elder: impl Fn(&Packet) -> Option<FlowId>,
    ) -> bool {
        let delay = packets.get(id).arrival.tie.delay();
        let lane = delay.and_then(|delay| self.find(LaneKind::Arrival, delay));
        let Some(lane) = lane else { return false };
        self.merge(lane, &mut (packets, elder), id.0, merge);
        true
    }

    /// Puts a port that is sending back into its lane, if there is one.
    pub(crate) fn merge_port(
        &mut self,
        ports: &mut [Port],
        port: PortId,
        merge: &mut Merge,
        elder: impl Fn(&Port) -> Option<FlowId>,
    ) -> bool {
        let delay = ports[port.index()].idle_from.tie.delay();
        let lane = delay.and_then(|delay| self.find(LaneKind::TxDone, delay));
        let Some(lane) = lane else { return false };
        ports[port.index()].awaits_done = IN_LANE;
        self.merge(lane, &mut (ports, elder), port.0, merge);
        true
    }

    /// Inserts by time; of one time, partitions that are in step go by their elders.
    fn merge(&mut self, lane: usize, list: &mut impl LaneList, id: u32, merge: &mut Merge) {
        let (key, elder) = (list.due(id), list.elder(id));
        let state = &mut self.lanes[lane];
        let mut before = merge.last(lane, state);
        let mut next = if before == NONE { state.head } else { list.next(before) };
        while next != NONE {
            let (at, other) = (list.due(next).at, list.elder(next));
            merge.contested += u64::from(at == key.at);
            if at > key.at || at == key.at && elder < other {
                break;
            }
            before = next;
            next = list.next(next);
        }
        list.set_next(id, next);
        if before == NONE {
            state.head = id;
        } else {
            list.set_next(before, id);
        }
        if next == NONE {
            state.tail = id;
        }
        merge.put(lane, state, id);
        merge.number(list, before, id);
        let head = list.head(self.lanes[lane].head);
        self.set_head(lane, head);
    }
}

/// What kernels that share a fabric need (see `shard`).
impl Lanes {
    /// Gives all frames in lanes other ties that leave them in their order. Ports MUST have theirs.
    pub(crate) fn change_ties(&mut self, packets: &mut PacketPool<'_>, ports: &[Port], changed: impl Fn(Tie) -> Tie) {
        for (lane, tie) in self.lanes[..self.used].iter().zip(&mut self.tie) {
            if lane.kind == LaneKind::TxDone {
                *tie = ports.get(lane.head as usize).map_or(Tie::LAST, |port| port.idle_from.tie);
                continue;
            }
            packets.change_from(PacketId(lane.head), |packet| packet.arrival.tie = changed(packet.arrival.tie));
            *tie = if lane.head == NONE { Tie::LAST } else { packets.get(PacketId(lane.head)).arrival.tie };
        }
        self.find_first();
    }
}

/// What lanes are lists of.
trait LaneList {
    fn head(&self, id: u32) -> (EventKey, Due);
    fn due(&self, id: u32) -> EventKey {
        self.head(id).0
    }
    fn set_tie(&mut self, id: u32, tie: Tie);
    fn next(&self, id: u32) -> u32;
    fn set_next(&mut self, id: u32, next: u32);
    fn elder(&self, id: u32) -> Option<FlowId>;
}

impl<E: Fn(&Packet) -> Option<FlowId>> LaneList for (&mut PacketPool<'_>, E) {
    fn head(&self, id: u32) -> (EventKey, Due) {
        self.0.get(PacketId(id)).head()
    }
    fn set_tie(&mut self, id: u32, tie: Tie) {
        self.0.get_mut(PacketId(id)).arrival.tie = tie;
    }
    fn next(&self, id: u32) -> u32 {
        self.0.get(PacketId(id)).next
    }
    fn set_next(&mut self, id: u32, next: u32) {
        self.0.get_mut(PacketId(id)).next = next;
    }
    fn elder(&self, id: u32) -> Option<FlowId> {
        (self.1)(self.0.get(PacketId(id)))
    }
}

impl<E: Fn(&Port) -> Option<FlowId>> LaneList for (&mut [Port], E) {
    fn head(&self, id: u32) -> (EventKey, Due) {
        self.0[id as usize].head()
    }
    fn set_tie(&mut self, id: u32, tie: Tie) {
        self.0[id as usize].idle_from.tie = tie;
    }
    fn next(&self, id: u32) -> u32 {
        self.0[id as usize].next_done
    }
    fn set_next(&mut self, id: u32, next: u32) {
        self.0[id as usize].next_done = next;
    }
    fn elder(&self, id: u32) -> Option<FlowId> {
        (self.1)(&self.0[id as usize])
    }
}

/// Where things that are put back in order of time went last, lane by lane.
pub(crate) struct Merge {
    last: [(LaneKind, Span, u32); LANES],
    highest: u64,
    contested: u64,
}

impl Default for Merge {
    fn default() -> Merge {
        Merge { last: [(LaneKind::Arrival, Span::MAX, NONE); LANES], highest: 0, contested: 0 }
    }
}

impl Merge {
    /// How often something of another partition was due at the very instant, after the same delay.
    pub(crate) fn contested(&self) -> u64 {
        self.contested
    }

    /// Highest place among those of one instant and delay that was given.
    pub(crate) fn highest(&self) -> u64 {
        self.highest
    }

    /// What was put into this lane last. Lanes move as new ones come up: then it is not known any more.
    fn last(&self, lane: usize, state: &Lane) -> u32 {
        let (kind, delay, last) = self.last[lane];
        if (kind, delay) == (state.kind, state.delay) { last } else { NONE }
    }

    fn put(&mut self, lane: usize, state: &Lane, id: u32) {
        self.last[lane] = (state.kind, state.delay, id);
    }

    /// Sees to it that places rise along the list about a newcomer.
    fn number(&mut self, list: &mut impl LaneList, before: u32, id: u32) {
        let at = list.due(id).at;
        let mut next = id;
        let mut least = if before != NONE && list.due(before).at == at { list.due(before).tie.count() + 1 } else { 0 };
        while next != NONE && list.due(next).at == at && (list.due(next).tie.count() < least || next == id) {
            let tie = list.due(next).tie;
            let count = tie.count().max(least);
            list.set_tie(next, tie.with_count(count));
            self.highest = self.highest.max(count);
            least = count + 1;
            next = list.next(next);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::Clock;
    use crate::memory::Carver;

    fn send(lanes: &mut Lanes, packets: &mut PacketPool<'_>, clock: &mut Clock, delay: u64, ingress: u32) -> bool {
        let arrival = clock.issue(Span(delay));
        let Some(lane) = lanes.find(LaneKind::Arrival, Span(delay)) else { return false };
        let id = packets.insert(Packet { arrival, ingress, ..Packet::default() });
        if let Some(before) = lanes.push_frame(lane, packets.get_mut(id), id) {
            packets.get_mut(before).next = id.0;
        }
        true
    }

    #[test]
    fn heads_come_out_in_order_over_all_lanes() {
        let mut words = [0u64; 512];
        let mut packets = PacketPool::carve(&mut Carver::new(&mut words), 60).unwrap();
        let (mut lanes, mut clock) = (Lanes::EMPTY, Clock::default());
        for round in 0..10 {
            for delay in [300, 100, 200, 100] {
                assert!(send(&mut lanes, &mut packets, &mut clock, delay, round));
            }
            clock.advance(EventKey { at: SimTime(round as u64 * 3), tie: Tie(0) });
        }
        let mut taken = PacketList::EMPTY;
        lanes.cut(&mut packets, |p| p.ingress() == PortId(4), usize::MAX, &mut taken);
        assert_eq!(core::iter::from_fn(|| taken.pop(&packets)).count(), 4);
        let mut last = EventKey::default();
        for _ in 0..36 {
            let (lane, due) = lanes.first();
            assert!(due > last && due != EventKey::NEVER);
            assert_eq!(packets.get(lanes.pop_frame(lane, &packets)).arrival, due);
            last = due;
        }
        assert_eq!(lanes.first().1, EventKey::NEVER);
    }

    /// Ports that begin to send one after the other; something waits already for those of which `waits` says so.
    fn begin(lanes: &mut Lanes, ports: &mut [Port], waits: impl Fn(usize) -> bool) -> usize {
        let (time, mut clock) = (Span(100), Clock::default());
        let lane = lanes.find(LaneKind::TxDone, time).unwrap();
        for nth in 0..ports.len() {
            clock.advance(EventKey { at: SimTime(nth as u64 / 2), tie: Tie(nth as u64) });
            ports[nth].idle_from = clock.issue(time);
            if let Some(before) = lanes.begin(lane, &mut ports[nth], PortId(nth as u32), waits(nth)) {
                ports[before.index()].next_done = nth as u32;
            }
        }
        lane
    }

    #[test]
    fn ports_come_out_in_order_whenever_something_comes_to_wait() {
        let (mut lanes, mut ports) = (Lanes::EMPTY, [Port::zeroed(); 41]);
        let lane = begin(&mut lanes, &mut ports, |nth| nth % 3 == 0);
        for later in (0..41).map(|nth| nth * 17 % 41).filter(|nth| nth % 3 == 1) {
            assert!(lanes.insert_port(lane, &mut ports, PortId(later)));
        }
        for nth in (0..41).filter(|nth| nth % 3 != 2) {
            assert_eq!(lanes.first().1, ports[nth as usize].idle_from);
            assert_eq!(lanes.pop_port(lane, &mut ports), PortId(nth));
        }
        assert_eq!(lanes.first().1, EventKey::NEVER);
    }

    #[test]
    fn places_that_are_far_are_not_looked_for() {
        let (mut lanes, mut ports) = (Lanes::EMPTY, [Port::zeroed(); 41]);
        let lane = begin(&mut lanes, &mut ports, |_| false);
        let found = (0..41).filter(|nth| lanes.insert_port(lane, &mut ports, PortId(*nth))).count();
        assert_eq!((found, ports[40].awaits_done), (MOST_STEPS + 1, 0));
    }

    #[test]
    fn delays_that_ties_do_not_tell_apart_have_no_lane() {
        let (mut lanes, second) = (Lanes::EMPTY, Span(1_000_000_000_000));
        assert_eq!(lanes.find(LaneKind::Arrival, second), None);
    }

    #[test]
    fn lanes_run_out_and_empty_ones_are_used_again() {
        let mut words = [0u64; 512];
        let mut packets = PacketPool::carve(&mut Carver::new(&mut words), 60).unwrap();
        let (mut lanes, mut clock) = (Lanes::EMPTY, Clock::default());
        for delay in 1..=LANES as u64 {
            assert!(send(&mut lanes, &mut packets, &mut clock, delay, 0));
        }
        assert!(!send(&mut lanes, &mut packets, &mut clock, 99, 0));
        let (lane, _) = lanes.first();
        lanes.pop_frame(lane, &packets);
        assert!(send(&mut lanes, &mut packets, &mut clock, 99, 0));
    }
}

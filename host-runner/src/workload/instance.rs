//! A collective under way.

use super::collective::{Algorithm, Hop, Member};
use super::task::{Call, TaskId};
use wormhole_kernel::SimTime;

/// A lane of a member: its messages go one after the other.
#[derive(Clone, Copy, Default)]
struct Lane {
    /// Messages that have arrived.
    arrived: u32,
    /// The next one is under way, or waits in one of the lists below.
    busy: bool,
}

#[derive(Clone, Default)]
struct MemberState {
    /// Its task, once it has joined.
    task: Option<TaskId>,
    /// Messages it has yet to send, and those yet to arrive.
    outgoing: u64,
    incoming: u64,
    /// Lanes, as (member, lane), whose next message waits for this member: for it to join, ...
    for_joining: Vec<(Member, u32)>,
    /// ... or for a message to arrive at it; these are its own lanes.
    for_arrivals: Vec<u32>,
}

/// A message that may go.
pub(super) struct Ready {
    pub(super) from: Member,
    pub(super) to: Member,
    pub(super) lane: u32,
    pub(super) index: u32,
    pub(super) bytes: u64,
}

/// What has come of a step.
#[derive(Default)]
pub(super) struct Effects {
    /// Messages to send.
    pub(super) ready: Vec<Ready>,
    /// Tasks that have ended, with the member whose they are.
    pub(super) ended: Vec<(Member, TaskId)>,
}

/// See the module.
pub(super) struct Instance {
    pub(super) call: Call,
    /// When its first message went, or its first member came.
    pub(super) start: Option<SimTime>,
    algorithm: Box<dyn Algorithm>,
    lanes: Vec<Lane>,
    members: Vec<MemberState>,
    joined: u32,
    left: u32,
}

impl Instance {
    pub(super) fn new(call: Call, members: u32, algorithm: Box<dyn Algorithm>) -> Instance {
        let lanes = algorithm.lanes();
        let mut states = vec![MemberState::default(); members as usize];
        for member in 0..members {
            for lane in 0..lanes {
                let hops = (0..).map_while(|index| algorithm.hop(member, lane, index));
                for hop in hops {
                    states[member as usize].outgoing += 1;
                    states[hop.to as usize].incoming += 1;
                }
            }
        }
        let lanes = vec![Lane::default(); members as usize * lanes as usize];
        Instance { call, start: None, algorithm, lanes, members: states, joined: 0, left: 0 }
    }

    /// Whether all members have ended it.
    pub(super) fn is_over(&self) -> bool {
        self.left as usize == self.members.len()
    }

    /// Members that have not joined.
    pub(super) fn absent(&self) -> impl Iterator<Item = Member> + '_ {
        (0..).zip(&self.members).filter(|(_, state)| state.task.is_none()).map(|(member, _)| member)
    }

    /// A member joins.
    pub(super) fn join(&mut self, member: Member, task: TaskId, effects: &mut Effects) {
        self.joined += 1;
        let state = &mut self.members[member as usize];
        state.task = Some(task);
        let waiting = std::mem::take(&mut state.for_joining);
        for lane in 0..self.algorithm.lanes() {
            self.advance(member, lane, effects);
        }
        for (from, lane) in waiting {
            self.lane(from, lane).busy = false;
            self.advance(from, lane, effects);
        }
        self.end_members(member, effects);
    }

    /// A message of a lane has arrived.
    pub(super) fn deliver(&mut self, from: Member, lane: u32, to: Member, effects: &mut Effects) {
        self.arrive(from, lane, to, effects);
        self.advance(from, lane, effects);
        self.end_member(from, effects);
        self.end_member(to, effects);
    }

    fn lane(&mut self, member: Member, lane: u32) -> &mut Lane {
        &mut self.lanes[member as usize * self.algorithm.lanes() as usize + lane as usize]
    }

    fn arrive(&mut self, from: Member, lane: u32, to: Member, effects: &mut Effects) {
        let state = self.lane(from, lane);
        state.arrived += 1;
        state.busy = false;
        self.members[from as usize].outgoing -= 1;
        let receiver = &mut self.members[to as usize];
        receiver.incoming -= 1;
        for lane in std::mem::take(&mut receiver.for_arrivals) {
            self.lane(to, lane).busy = false;
            self.advance(to, lane, effects);
        }
    }

    /// Sends the next message of a lane if it may go, or notes what it waits for. Messages without bytes arrive at
    /// once.
    fn advance(&mut self, member: Member, lane: u32, effects: &mut Effects) {
        loop {
            let state = *self.lane(member, lane);
            if state.busy || self.members[member as usize].task.is_none() {
                return;
            }
            let Some(hop) = self.algorithm.hop(member, lane, state.arrived) else { return };
            self.lane(member, lane).busy = true;
            if !self.may_go(member, lane, &hop) {
                return;
            }
            if hop.bytes > 0 {
                let index = state.arrived;
                effects.ready.push(Ready { from: member, to: hop.to, lane, index, bytes: hop.bytes });
                return;
            }
            self.arrive(member, lane, hop.to, effects);
            self.end_member(hop.to, effects);
        }
    }

    fn may_go(&mut self, member: Member, lane: u32, hop: &Hop) -> bool {
        if self.members[hop.to as usize].task.is_none() {
            self.members[hop.to as usize].for_joining.push((member, lane));
            return false;
        }
        let lanes = self.algorithm.lanes() as usize;
        let arrived = |from: Member, lane: u32| self.lanes[from as usize * lanes + lane as usize].arrived;
        let waits = hop.needs.iter().flatten().any(|need| arrived(need.from, need.lane) <= need.index);
        if waits {
            self.members[member as usize].for_arrivals.push(lane);
        }
        !waits
    }

    /// Ends what may have ended because a member has joined: the member, or with the last one all that sent nothing.
    fn end_members(&mut self, joined: Member, effects: &mut Effects) {
        if self.joined as usize == self.members.len() {
            (0..self.joined).for_each(|member| self.end_member(member, effects));
        } else {
            self.end_member(joined, effects);
        }
    }

    /// A member's part is over when it has sent and got all; of a barrier, when all have come.
    fn end_member(&mut self, member: Member, effects: &mut Effects) {
        let all_here = self.joined as usize == self.members.len();
        let state = &mut self.members[member as usize];
        let waits = self.algorithm.lanes() == 0 && !all_here;
        if state.outgoing == 0
            && state.incoming == 0
            && !waits
            && let Some(task) = state.task
        {
            // Once only.
            state.outgoing = u64::MAX;
            self.left += 1;
            effects.ended.push((member, task));
        }
    }
}

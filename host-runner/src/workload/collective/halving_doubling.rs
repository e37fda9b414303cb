//! Recursive halving and doubling: each step exchanges with a partner twice as near, then twice as far.

use super::super::task::CollectiveKind;
use super::{Algorithm, Hop, Member, Need, Pipeline};
use std::ops::Range;

/// A lane is a channel. Members beyond the greatest power of two give their buffer to a partner before, and get the
/// result after (Rabenseifner 2004, section 4).
pub(super) struct HalvingDoubling {
    members: u32,
    pipeline: Pipeline,
    /// 2 to the power of this many take part in the exchange.
    levels: u32,
    reduces: bool,
    gathers: bool,
}

impl HalvingDoubling {
    pub(super) fn new(kind: CollectiveKind, members: u32, pipeline: Pipeline) -> HalvingDoubling {
        HalvingDoubling {
            members,
            pipeline,
            levels: members.ilog2(),
            reduces: kind != CollectiveKind::AllGather,
            gathers: kind != CollectiveKind::ReduceScatter,
        }
    }

    fn core(&self) -> u32 {
        1 << self.levels
    }

    /// The part of `bytes` that a member holds after so many halvings.
    fn held(&self, bytes: u64, member: Member, halvings: u32) -> u64 {
        let mut held: Range<u64> = 0..bytes;
        for level in 0..halvings {
            let middle = held.start + (held.end - held.start) / 2;
            let upper = member >> (self.levels - 1 - level) & 1 == 1;
            held = if upper { middle..held.end } else { held.start..middle };
        }
        held.end - held.start
    }

    /// Steps of the exchange.
    fn steps(&self) -> u32 {
        self.levels * (self.reduces as u32 + self.gathers as u32)
    }

    /// With how many halvings behind it a step begins, and whether it halves.
    fn level(&self, step: u32) -> (u32, bool) {
        match step {
            _ if self.reduces && step < self.levels => (step, true),
            _ if self.reduces => (2 * self.levels - step, false),
            _ => (self.levels - step, false),
        }
    }

    /// With whom a step exchanges.
    fn partner(&self, member: Member, step: u32) -> Member {
        let (level, halves) = self.level(step);
        let after = if halves { level + 1 } else { level };
        member ^ 1 << (self.levels - after)
    }
}

impl Algorithm for HalvingDoubling {
    fn lanes(&self) -> u32 {
        self.pipeline.channels
    }

    fn hop(&self, member: Member, lane: u32, index: u32) -> Option<Hop> {
        let (core, steps) = (self.core(), self.steps());
        let bytes = self.pipeline.round(lane, 0, 1);
        if member >= core {
            return (index == 0).then_some(Hop { to: member - core, bytes, needs: [None; 2] });
        }
        let extra = member + core < self.members;
        let before = |index: u32| match index {
            0 => extra.then_some(Need { from: member + core, lane, index: 0 }),
            _ => Some(Need { from: self.partner(member, index - 1), lane, index: index - 1 }),
        };
        if index < steps {
            let to = self.partner(member, index);
            let bytes = match self.level(index) {
                (level, true) => self.held(bytes, to, level + 1),
                (level, false) => self.held(bytes, member, level),
            };
            return Some(Hop { to, bytes, needs: [before(index), None] });
        }
        let last = index == steps && extra;
        last.then(|| Hop { to: member + core, bytes, needs: [before(index), None] })
    }
}

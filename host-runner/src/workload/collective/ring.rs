//! Rings: all-reduce, reduce-scatter and all-gather.

use super::super::task::CollectiveKind;
use super::{Algorithm, Hop, Member, Need, Pipeline, length, share};

/// Every member passes a part on to the next one in each step. A lane is a channel.
pub(super) struct Ring {
    members: u32,
    pipeline: Pipeline,
    rounds: u32,
    /// Steps in which parts are summed up, and steps in which sums are passed on.
    reduces: u32,
    gathers: u32,
}

impl Ring {
    pub(super) fn new(kind: CollectiveKind, members: u32, pipeline: Pipeline) -> Ring {
        let steps = members - 1;
        let (reduces, gathers) = match kind {
            CollectiveKind::ReduceScatter => (steps, 0),
            CollectiveKind::AllGather => (0, steps),
            _ => (steps, steps),
        };
        Ring { members, pipeline, rounds: pipeline.rounds(members), reduces, gathers }
    }

    /// Which part a member passes on in a step. It ends the reducing steps with the part after its own number, and
    /// begins gathering with that one; if nothing is reduced, with its own.
    pub(super) fn part(&self, member: Member, step: u32) -> u32 {
        let first = if step < self.reduces || self.reduces == 0 { member } else { member + 1 };
        let passed = if step < self.reduces { step } else { step - self.reduces };
        (first + self.members - passed % self.members) % self.members
    }
}

impl Algorithm for Ring {
    fn lanes(&self) -> u32 {
        self.pipeline.channels
    }

    fn hop(&self, member: Member, lane: u32, index: u32) -> Option<Hop> {
        let steps = self.reduces + self.gathers;
        if steps == 0 || index / steps >= self.rounds {
            return None;
        }
        let (round, step) = (index / steps, index % steps);
        let from = (member + self.members - 1) % self.members;
        let need = (step > 0).then(|| Need { from, lane, index: index - 1 });
        let all = self.pipeline.round(lane, round, self.rounds);
        let bytes = length(share(all, self.part(member, step), self.members));
        Some(Hop { to: (member + 1) % self.members, bytes, needs: [need, None] })
    }
}

//! Broadcast: chunks run along the chain of members, from the first one on.

use super::{Algorithm, Hop, Member, Need, Pipeline};

/// A lane is a channel.
pub(super) struct Broadcast {
    members: u32,
    pipeline: Pipeline,
    rounds: u32,
}

impl Broadcast {
    pub(super) fn new(members: u32, pipeline: Pipeline) -> Broadcast {
        Broadcast { members, pipeline, rounds: pipeline.rounds(1) }
    }
}

impl Algorithm for Broadcast {
    fn lanes(&self) -> u32 {
        self.pipeline.channels
    }

    fn hop(&self, member: Member, lane: u32, index: u32) -> Option<Hop> {
        if member + 1 == self.members || index >= self.rounds {
            return None;
        }
        let need = (member > 0).then(|| Need { from: member - 1, lane, index });
        Some(Hop { to: member + 1, bytes: self.pipeline.round(lane, index, self.rounds), needs: [need, None] })
    }
}

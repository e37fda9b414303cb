//! All-to-all: everyone sends a part to everyone else.

use super::{Algorithm, AllToAll, Hop, Member, length, share};

/// Each member sends to the one behind it first, then to the next, and so on, or to all at once.
pub(super) struct Exchange {
    members: u32,
    bytes: u64,
    channels: u32,
    how: AllToAll,
}

impl Exchange {
    pub(super) fn new(members: u32, bytes: u64, channels: u32, how: AllToAll) -> Exchange {
        Exchange { members, bytes, channels, how }
    }
}

impl Algorithm for Exchange {
    fn lanes(&self) -> u32 {
        match self.how {
            AllToAll::Direct => self.channels * (self.members - 1),
            AllToAll::Pairwise => self.channels,
        }
    }

    fn hop(&self, member: Member, lane: u32, index: u32) -> Option<Hop> {
        let others = self.members - 1;
        let (distance, channel) = match self.how {
            AllToAll::Direct if index == 0 => (lane % others, lane / others),
            AllToAll::Pairwise if index < others => (index, lane),
            _ => return None,
        };
        let to = (member + 1 + distance) % self.members;
        let part = length(share(self.bytes, to, self.members));
        Some(Hop { to, bytes: length(share(part, channel, self.channels)), needs: [None; 2] })
    }
}

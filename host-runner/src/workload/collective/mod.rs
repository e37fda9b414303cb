//! Collectives as messages: who sends what to whom, and what must have arrived before.
//!
//! Every member of a group sends on lanes. The messages of a lane go one after the other, each when the one before it
//! has been acknowledged. A message may also need up to two messages from others to have arrived. So a collective is
//! known by a function, and lies nowhere in memory.

mod all_to_all;
mod broadcast;
mod double_tree;
mod halving_doubling;
mod ring;

use super::task::CollectiveKind;
use std::ops::Range;

/// A member of a group: its position in it, from 0.
pub type Member = u32;

/// One message of a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hop {
    /// To whom.
    pub to: Member,
    /// Payload bytes; if 0, nothing is sent and the message has arrived as soon as it might go.
    pub bytes: u64,
    /// Messages that must have arrived at the sender: it passes on what they bring.
    pub needs: [Option<Need>; 2],
}

/// A message that another one needs.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Need {
    /// Who sends it.
    pub from: Member,
    /// On which of its lanes.
    pub lane: u32,
    /// Which one of that lane.
    pub index: u32,
}

/// How a collective is done.
pub trait Algorithm: Send {
    /// Lanes of each member.
    fn lanes(&self) -> u32;

    /// The `index`-th message of a lane, `None` after its last one.
    fn hop(&self, member: Member, lane: u32, index: u32) -> Option<Hop>;
}

/// How all-reduces are done. Reduce-scatters and all-gathers go over a ring, or by halving and doubling if that is
/// chosen and the group is a power of two; trees have none.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum AllReduce {
    /// Around a ring, n - 1 steps to reduce and n - 1 to gather: the least bytes (Patarasuk and Yuan 2009).
    #[default]
    Ring,
    /// Recursive halving, then doubling: the fewest steps (Rabenseifner 2004).
    HalvingDoubling,
    /// Up and down two trees at once, each with half of the bytes (Sanders et al. 2009).
    DoubleTree,
}

/// How all-to-alls are done.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, clap::ValueEnum)]
pub enum AllToAll {
    /// To all at once.
    #[default]
    Direct,
    /// To one after the other, each member beginning behind itself.
    Pairwise,
}

/// What NCCL leaves to its user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveOptions {
    /// How all-reduces are done.
    pub all_reduce: AllReduce,
    /// How all-to-alls are done.
    pub all_to_all: AllToAll,
    /// Rings or trees side by side, each with its own connections and its share of the bytes. At least 1.
    pub channels: u32,
    /// Most bytes of one message of a ring, a tree or a broadcast; what is more follows in further rounds. At least 1.
    pub chunk_bytes: u64,
}

impl Default for CollectiveOptions {
    /// One ring; a ring's step is one message. Trees and broadcasts, which live on chunks, get 4 MiB.
    fn default() -> CollectiveOptions {
        CollectiveOptions {
            all_reduce: AllReduce::Ring,
            all_to_all: AllToAll::Direct,
            channels: 1,
            chunk_bytes: u64::MAX,
        }
    }
}

/// Chunks of trees and broadcasts, unless a size is given.
const PIPELINE_CHUNK: u64 = 4 << 20;

impl CollectiveOptions {
    /// The algorithm for a collective of `bytes` (as of [`Call`](super::task::Call)) among `members`.
    pub fn algorithm(&self, kind: CollectiveKind, members: u32, bytes: u64) -> Box<dyn Algorithm> {
        let pipeline = Pipeline { bytes, channels: self.channels.max(1), chunk: self.chunk_bytes.max(1) };
        let fine = Pipeline { chunk: pipeline.chunk.min(PIPELINE_CHUNK), ..pipeline };
        let doubling = self.all_reduce == AllReduce::HalvingDoubling;
        match kind {
            CollectiveKind::Barrier => Box::new(Nothing),
            CollectiveKind::Broadcast => Box::new(broadcast::Broadcast::new(members, fine)),
            CollectiveKind::AllToAll => {
                Box::new(all_to_all::Exchange::new(members, bytes, pipeline.channels, self.all_to_all))
            }
            CollectiveKind::AllReduce if self.all_reduce == AllReduce::DoubleTree => {
                Box::new(double_tree::DoubleTree::new(members, fine))
            }
            _ if doubling && (kind == CollectiveKind::AllReduce || members.is_power_of_two()) => {
                Box::new(halving_doubling::HalvingDoubling::new(kind, members, pipeline))
            }
            _ => Box::new(ring::Ring::new(kind, members, pipeline)),
        }
    }
}

/// No messages at all.
struct Nothing;

impl Algorithm for Nothing {
    fn lanes(&self) -> u32 {
        0
    }

    fn hop(&self, _: Member, _: u32, _: u32) -> Option<Hop> {
        None
    }
}

/// Bytes that are shared out to channels and go in chunks.
#[derive(Clone, Copy)]
struct Pipeline {
    bytes: u64,
    channels: u32,
    chunk: u64,
}

impl Pipeline {
    /// Rounds of a channel, if a round moves `messages` chunks; at least one.
    fn rounds(&self, messages: u32) -> u32 {
        let most = self.bytes.div_ceil(self.channels as u64);
        let rounds = most.div_ceil(self.chunk.saturating_mul(messages.max(1) as u64));
        u32::try_from(rounds).unwrap_or(u32::MAX).max(1)
    }

    /// What one round of a channel moves, of so many.
    fn round(&self, channel: u32, round: u32, rounds: u32) -> u64 {
        let channel = share(self.bytes, channel, self.channels);
        length(share(channel.end - channel.start, round, rounds))
    }
}

/// The `part`-th of `parts` nearly equal parts of `bytes`.
fn share(bytes: u64, part: u32, parts: u32) -> Range<u64> {
    let border = |part: u32| (bytes as u128 * part as u128 / parts as u128) as u64;
    border(part)..border(part + 1)
}

fn length(range: Range<u64>) -> u64 {
    range.end - range.start
}

#[cfg(test)]
mod tests;

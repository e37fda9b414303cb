//! Which priority an egress port serves next.

use crate::model::ModelId;

/// Priorities (802.1p classes) of a port.
pub const PRIORITIES: usize = 8;

/// The priority whose queue PFC never pauses: PFC frames themselves travel in it.
pub const CONTROL_PRIORITY: u8 = 0;

/// An egress scheduler over the eight priority queues of a port.
///
/// Who depends on it: switch ports, once a packet-hop.
pub trait EgressScheduler {
    /// Part of every memo key.
    fn id(&self) -> ModelId;

    /// The priority to serve next, among the set bits of `ready` (bit p: priority p has a frame and is not
    /// paused; never 0). `last` is the scheduler's own byte of state per port, initially 0.
    fn select(&self, last: &mut u8, ready: u8) -> u8;

    /// One state for all that choose alike as long as no other priorities than the set bits of `priorities` have
    /// frames. Control frames do not count.
    fn canonical(&self, last: u8, priorities: u8) -> u8;
}

//! Messages of a workload, and names for them that no run changes.

use wormhole_kernel::NodeId;

/// What a message is, whenever it is sent: equal in every run of a workload.
///
/// From the top: 8 bits job, 1 bit (0: of a collective). Of a collective: 23 bits group, 32 which one of the group,
/// 20 member, 20 lane, 24 index. Else: 23 bits rank, 32 task.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub struct MessageName(pub u128);

impl MessageName {
    /// Flows of a list are named by their number.
    pub fn of_list(flow: usize) -> MessageName {
        MessageName(flow as u128)
    }

    /// Whether it is that of a listed flow.
    pub fn is_of_list(self) -> bool {
        self.0 >> 120 == 0
    }

    pub(super) fn of_collective(job: u32, group: u32, which: u32, member: u32, lane: u32, index: u32) -> MessageName {
        let high = Self::high(job, false, group, which);
        MessageName(high | (member as u128) << 44 | (lane as u128) << 24 | index as u128)
    }

    pub(super) fn of_task(job: u32, rank: u32, task: u32) -> MessageName {
        MessageName(Self::high(job, true, rank, task))
    }

    /// Jobs count from 1, so that no name is that of a listed flow.
    fn high(job: u32, is_task: bool, whose: u32, which: u32) -> u128 {
        (job as u128 + 1) << 120 | (is_task as u128) << 119 | (whose as u128) << 96 | (which as u128) << 64
    }
}

/// A message that is to be sent now.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Message {
    /// Its name. First, so that messages are ordered by it.
    pub name: MessageName,
    /// Comes back with its delivery.
    pub id: u32,
    /// From which host.
    pub src: NodeId,
    /// To which.
    pub dst: NodeId,
    /// Payload bytes, at least 1.
    pub bytes: u64,
    /// Messages of one connection take the same way: what ECMP hashes beside the hosts.
    pub src_port: u16,
}

//! Commands from outside that wait for their time: link changes and external frames.

use crate::error::CapacityError;
use crate::ids::{LinkId, NodeId};
use crate::memory::{Carver, words_for};
use crate::units::SimTime;
use bytemuck::{Pod, Zeroable};

/// A frame that enters or leaves the simulation at a host.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub struct ExternalFrame {
    /// On the way out: when its last bit arrived. On the way in: ignored.
    pub at: SimTime,
    /// The caller's name for it; the simulator does not look at it and carries no content.
    pub token: u64,
    /// The host it enters at.
    pub src: NodeId,
    /// The host it leaves at.
    pub dst: NodeId,
    /// Bytes on the wire, all headers included.
    pub bytes: u32,
    /// UDP ports or whatever tells its flow apart: what ECMP hashes besides the hosts.
    pub src_port: u16,
    /// See `src_port`.
    pub dst_port: u16,
    /// Priority (802.1p class), below 8.
    pub priority: u8,
    /// 1 if a switch has set the ECN mark. On the way in: 1 if it comes with one, which it keeps.
    pub marked: u8,
    /// Zero.
    pub pad: [u8; 6],
}

impl ExternalFrame {
    /// A frame at priority 3.
    pub fn new(src: NodeId, dst: NodeId, bytes: u32, token: u64) -> ExternalFrame {
        ExternalFrame { token, src, dst, bytes, priority: 3, ..ExternalFrame::zeroed() }
    }
}

/// What to do.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Command {
    Link { link: LinkId, up: bool },
    Frame(ExternalFrame),
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Input {
    at: SimTime,
    /// [`LinkId::NONE`] for a frame.
    link: LinkId,
    up: u32,
    frame: ExternalFrame,
}

/// Commands by time; of one time, first given first.
pub(crate) struct Inputs<'a> {
    items: &'a mut [Input],
    len: usize,
}

impl<'a> Inputs<'a> {
    pub(crate) const fn words(inputs: usize) -> usize {
        words_for::<Input>(inputs)
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, inputs: usize) -> Result<Self, CapacityError> {
        Ok(Inputs { items: carver.take(inputs)?, len: 0 })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.len == 0
    }

    pub(crate) fn first_time(&self) -> Option<SimTime> {
        self.items[..self.len].first().map(|i| i.at)
    }

    pub(crate) fn push(&mut self, at: SimTime, command: Command) -> Result<(), CapacityError> {
        if self.len == self.items.len() {
            return Err(CapacityError { what: "inputs", limit: self.items.len() });
        }
        let place = self.items[..self.len].partition_point(|i| i.at <= at);
        self.items.copy_within(place..self.len, place + 1);
        self.items[place] = match command {
            Command::Link { link, up } => Input { at, link, up: up as u32, frame: ExternalFrame::zeroed() },
            Command::Frame(frame) => Input { at, link: LinkId::NONE, up: 0, frame },
        };
        self.len += 1;
        Ok(())
    }

    /// The first command, if it is due by `now`.
    pub(crate) fn pop_due(&mut self, now: SimTime) -> Option<Command> {
        let first = *self.items[..self.len].first().filter(|i| i.at <= now)?;
        self.items.copy_within(1..self.len, 0);
        self.len -= 1;
        Some(if first.link.is_none() {
            Command::Frame(first.frame)
        } else {
            Command::Link { link: first.link, up: first.up != 0 }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_out_by_time_then_by_order() {
        let mut words = [0u64; 40];
        let mut inputs = Inputs::carve(&mut Carver::new(&mut words), 4).unwrap();
        for (at, link) in [(5, 0), (2, 1), (5, 2), (2, 3)] {
            inputs.push(SimTime(at), Command::Link { link: LinkId(link), up: false }).unwrap();
        }
        assert!(inputs.push(SimTime(0), Command::Link { link: LinkId(9), up: true }).is_err());
        let mut order = heapless::Vec::<u32, 4>::new();
        assert_eq!(inputs.first_time(), Some(SimTime(2)));
        for now in [1, 2, 5] {
            while let Some(Command::Link { link, .. }) = inputs.pop_due(SimTime(now)) {
                order.push(link.0).unwrap();
            }
        }
        assert_eq!(order, [1, 3, 0, 2]);
    }
}

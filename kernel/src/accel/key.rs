//! Keys: a partition as a labelled graph of flows and ports, written down in canonical order.
//!
//! Equal keys are an explicit isomorphism. A key holds the models as one hash over their names, versions and
//! configurations; the ports with their links and buffers; the flows with their class, their parameters, the bytes they
//! have left and the ports on their ways; and the whole state as a snapshot tells it. A coarse key has a few rounded
//! figures in place of the state. What chance had a hand in is in no record, so seeds are in no key.

use super::arena::{Arena, Block};
use super::partition::{for_each_port, for_each_qp};
use super::snapshot::{counts, state};
use super::value::Writer;
use super::{Tier, mix};
use crate::buffer::BufferManager;
use crate::cca::CongestionControl;
use crate::ids::{PartitionId, QpId};
use crate::kernel::{BufferPort, Kernel};
use crate::marker::Marker;
use crate::memo::Precision;
use crate::model::ModelId;
use crate::models::Models;
use crate::nic::Nic;
use crate::observer::Observer;
use crate::scheduler::EgressScheduler;
use crate::telemetry::Telemetry;
use crate::timing::LinkTiming;

/// Precision, models, detector, and the numbers of flows and ports.
const KEY_HEADER: usize = 4;
/// Added to the precision: sizes are left out.
const OPEN_ENDED: u64 = 2;
/// Where the bytes left stand in the description of a flow; in a coarse key the first of three figures.
const FLOW_SIZE: usize = 6;

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Words that a port takes in a key, but for its queue in a coarse one.
    const KEY_PORT_WORDS: usize = 3 + size_of::<BufferPort<M>>().div_ceil(8);

    /// A hash over what models are, with their versions and configurations.
    pub fn memo_models(&self) -> u64 {
        let models = &self.models;
        let parts = [
            models.telemetry.id(),
            models.buffers.id(),
            models.scheduler.id(),
            models.marker.id(),
            models.nic.id(),
            models.transport.id(),
        ];
        let ccas = models.ccas.iter().map(|cca| cca.id());
        let start = mix_bytes(u64::from(crate::memo::KERNEL_VERSION), M::Timing::NAME.as_bytes());
        parts.into_iter().chain(ccas).fold(start, |hash, id| {
            let ModelId { name, version, config } = id;
            mix(mix(mix_bytes(hash, name.as_bytes()), u64::from(version)), config)
        })
    }

    /// Calls `visit` with the key of a partition that is not parked, if it has one.
    pub(crate) fn visit_key(&mut self, id: PartitionId, precision: Precision, visit: &mut impl FnMut(&[u64])) {
        if self.partitions.get(id).qps == 0 {
            return;
        }
        // Members are put into another order.
        self.forget_motion(id);
        let Some(mut start) = self.label(id).and_then(|()| self.capture(id)) else { return };
        if let Some(mut key) = self.write_key(id, start, precision) {
            visit(self.arena.get(key));
            self.arena.free(&mut key);
        }
        self.arena.free(&mut start);
    }

    /// The key of a partition whose exact state is `start`. `None` if there is none: a link loses frames by chance, or
    /// there is no room.
    pub(super) fn write_key(&mut self, id: PartitionId, start: Block, precision: Precision) -> Option<Block> {
        let mut edges = 0;
        for_each_qp!(self, id, qp, {
            self.each_port(qp, &mut |_, _, _| edges += 1);
        });
        let (qps, ports) = counts(self.arena.get(start));
        let most = KEY_HEADER
            + ports * (1 + Self::KEY_PORT_WORDS)
            + qps * (FLOW_SIZE + 4)
            + edges
            + self.arena.get(start)[3] as usize;
        let mut block = self.arena.alloc(most)?;
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        let [key, start] = arena.several([block, start]);
        let writer = &mut Writer { words: key, at: 0 };
        let filled = self.fill_key(id, writer, start, precision);
        let words = writer.at;
        self.arena = arena;
        if filled.is_none() {
            self.arena.free(&mut block);
            return None;
        }
        self.arena.shorten(&mut block, words);
        Some(block)
    }

    fn fill_key(&mut self, id: PartitionId, key: &mut Writer<'_>, start: &[u64], precision: Precision) -> Option<()> {
        // What was skipped within a bound is in the records of a bounded tier.
        let detector = match self.acceleration.tier {
            Tier::Bounded => self.acceleration.detector.hash(),
            Tier::Off | Tier::Exact => 0,
        };
        key.put_all([precision as u64, self.models_hash, detector, start[0]]);
        for_each_port!(self, id, port, {
            let info = self.fabric.port(port);
            if info.loss != 0 {
                return None;
            }
            let state = &self.ports[port.index()];
            key.put_all([info.rate.0, info.delay.0, u64::from(state.is_at_host()) << 8 | u64::from(state.priorities)]);
            let bytes = bytemuck::bytes_of(&self.buffer_ports[port.index()]);
            key.put_all(bytes.chunks(8).map(|chunk| {
                let mut word = [0; 8];
                word[..chunk.len()].copy_from_slice(chunk);
                u64::from_le_bytes(word)
            }));
        });
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                self.describe_flow(qp, key, precision);
            }
        });
        match precision {
            Precision::Exact => key.put_all(state(start)[1..].iter().copied()),
            Precision::Quantised => self.describe_queues(id, key),
        }
        Some(())
    }

    /// What a flow is, and the way it takes.
    fn describe_flow(&mut self, qp: QpId, key: &mut Writer<'_>, precision: Precision) {
        let slot = &self.qps.slots[qp.index()];
        let class = u64::from(slot.priority) << 16 | u64::from(slot.cca) << 8 | u64::from(slot.telemetry);
        key.put_all([class, u64::from(slot.header), slot.base_rtt.0, slot.bdp, slot.line_rate.0, slot.timeout.0]);
        match precision {
            Precision::Exact => key.put(slot.size.wrapping_sub(slot.snd_una)),
            Precision::Quantised => key.put_all(self.coarse_state(qp)),
        }
        let at = key.at;
        key.put(0);
        self.each_port(qp, &mut |kernel, port, is_data| {
            key.words[at] += if is_data { 1 } else { 1 << 32 };
            key.put(u64::from(kernel.ports[port.index()].local));
        });
    }

    /// Makes a key one of partitions whose flows may have any number of bytes left.
    pub(super) fn leave_sizes_out(key: &mut [u64]) {
        let coarse = key[0] == Precision::Quantised as u64;
        let (qps, ports) = ((key[3] >> 32) as usize, key[3] as u32 as usize);
        key[0] += OPEN_ENDED;
        let mut at = KEY_HEADER + ports * Self::KEY_PORT_WORDS;
        for _ in 0..qps {
            key[at + FLOW_SIZE] = 0;
            let edges_at = at + FLOW_SIZE + if coarse { 3 } else { 1 };
            let edges = key[edges_at];
            at = edges_at + 1 + (edges as u32) as usize + (edges >> 32) as usize;
        }
    }

    /// A flow's state in coarse steps: bytes left to 0.1 %, which is how far its end may be off; rate to about 0.8 %,
    /// window and bytes under way to 3 %.
    pub(super) fn coarse_state(&self, qp: QpId) -> [u64; 3] {
        let slot = &self.qps.slots[qp.index()];
        let left = coarse(slot.size.wrapping_sub(slot.snd_una), 10);
        let pace = coarse(slot.control.rate.0, 7);
        let window = coarse(slot.control.window, 5) << 32 | coarse(slot.in_flight(), 5);
        [left, pace, window]
    }

    /// Queues of ports, in steps of about 3 %.
    fn describe_queues(&self, id: PartitionId, key: &mut Writer<'_>) {
        for_each_port!(self, id, port, {
            key.put(coarse(self.ports[port.index()].backlog, 5));
        });
    }
}

/// The leading `bits` of a number after its first, and their place: steps of 2^-`bits`.
fn coarse(value: u64, bits: u32) -> u64 {
    let shift = value.checked_ilog2().unwrap_or(0).saturating_sub(bits);
    u64::from(shift) << 16 | value >> shift
}

fn mix_bytes(hash: u64, bytes: &[u8]) -> u64 {
    bytes.iter().fold(mix(hash, bytes.len() as u64), |hash, byte| mix(hash, u64::from(*byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn coarse_figures_keep_their_leading_bits_and_their_place() {
        let place = |shift: u64, leading: u64| shift << 16 | leading;
        assert_eq!([0, 1, 1_000, 2_047].map(|value| coarse(value, 10)), [0, 1, 1_000, 2_047]);
        assert_eq!([2_048, 2_049, 2_050].map(|value| coarse(value, 10)), [1_024, 1_024, 1_025].map(|l| place(1, l)));
        assert_eq!([4_096, 1 << 40].map(|value| coarse(value, 5)), [place(7, 32), place(35, 32)]);
        assert_eq!(coarse(u64::MAX, 7), place(56, 255));
    }

    #[test]
    fn all_of_a_name_counts() {
        let names: [&[u8]; 7] = [b"", b"a", b"b", b"\0", b"ab", b"ba", b"aa"];
        let hashes = names.map(|name| mix_bytes(1, name));
        for (i, hash) in hashes.iter().enumerate() {
            assert!(!hashes[..i].contains(hash) && *hash != mix_bytes(2, names[i]));
        }
    }
}

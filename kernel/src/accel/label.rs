//! Canonical labelling: the members of a partition in an order that does not depend on their ids.
//!
//! A partition is a graph: flows, ports, and an edge for each hop of a flow's data or acknowledgements. Colours are
//! refined until they tell apart all they can; if some are still alike, one of them is singled out and refinement goes
//! on (greedily, without going back). Colours are hashes: two members of one colour that are not alike only lead to
//! another order, which costs a miss. Whether two partitions are alike is told by their whole keys, never by this.
//!
//! The partition's lists are put into that order: members are numbered by it from then on.

use super::arena::Arena;
use super::mix;
use super::partition::{for_each_port, for_each_qp};
use crate::ids::{PartitionId, PortId, QpId};
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::sort::sort_by_key;

/// Rounds of refinement at most: beyond, the order of the lists decides, which may cost misses.
const ROUNDS: u32 = 64;
/// Marks the one that is singled out.
const SINGLED_OUT: u64 = 0x5851_f42d_4c95_7f2d;

/// Work space: a colour per member and what its neighbours add, then pairs to be sorted.
struct Colours<'w> {
    qps: &'w mut [u64],
    ports: &'w mut [u64],
    sums: &'w mut [u64],
    /// A colour, and a place in the list with an id.
    sorted: &'w mut [[u64; 2]],
}

impl<'w> Colours<'w> {
    const fn words(qps: usize, ports: usize) -> usize {
        qps + 2 * ports + 2 * if qps > ports { qps } else { ports }
    }

    fn carve(words: &'w mut [u64], qps: usize, ports: usize) -> Colours<'w> {
        let (qp_colours, rest) = words.split_at_mut(qps);
        let (port_colours, rest) = rest.split_at_mut(ports);
        let (sums, rest) = rest.split_at_mut(ports);
        let pairs = bytemuck::cast_slice_mut(&mut rest[..2 * qps.max(ports)]);
        Colours { qps: qp_colours, ports: port_colours, sums, sorted: pairs }
    }
}

/// How many different first words a sorted list of pairs has.
fn distinct(sorted: &[[u64; 2]]) -> usize {
    sorted.chunk_by(|a, b| a[0] == b[0]).count()
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Puts the lists of an active partition into canonical order. `None` if there is no room to find it.
    pub(super) fn label(&mut self, id: PartitionId) -> Option<()> {
        let (qps, ports) = (self.number_qps(id), self.number_ports(id));
        let mut block = self.arena.alloc(Colours::words(qps, ports))?;
        let mut arena = core::mem::replace(&mut self.arena, Arena::empty());
        self.order(id, &mut Colours::carve(arena.get_mut(block), qps, ports));
        self.arena = arena;
        self.arena.free(&mut block);
        Some(())
    }

    fn order(&mut self, id: PartitionId, colours: &mut Colours<'_>) {
        self.seed(id, colours);
        let mut told_apart = 0;
        for _ in 0..ROUNDS {
            self.refine(id, colours);
            let qps = self.sort_qps(id, colours);
            if qps == colours.qps.len() {
                break;
            }
            if qps <= told_apart {
                single_out(colours);
            }
            told_apart = qps;
        }
        // Once more: what was told apart last tells its ports apart.
        self.refine(id, colours);
        self.sort_qps(id, colours);
        self.thread_qps(id, colours);
        self.sort_ports(id, colours);
        self.thread_ports(id, colours);
    }

    /// First colours: what members are in themselves, in coarse steps, so that partitions that are nearly alike come
    /// into one order.
    fn seed(&mut self, id: PartitionId, colours: &mut Colours<'_>) {
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                colours.qps[self.qps.slots[qp.index()].local as usize] = self.coarse_state(qp).into_iter().fold(2, mix);
            }
        });
        for_each_port!(self, id, port, {
            let info = self.fabric.port(port);
            colours.ports[self.ports[port.index()].local as usize] = mix(mix(1, info.rate.0), info.delay.0);
        });
        self.rank_senders(id, colours);
    }

    /// Which of the ports that are sending is done first, which second, and so on: their order is part of the state.
    fn rank_senders(&mut self, id: PartitionId, colours: &mut Colours<'_>) {
        let (now, mut senders) = (self.clock.current(), 0);
        for_each_port!(self, id, port, {
            if self.ports[port.index()].idle_from > now {
                colours.sorted[senders] = [u64::from(port.0), senders as u64];
                senders += 1;
            }
        });
        let ports = &*self.ports;
        let senders = &mut colours.sorted[..senders];
        // Of partitions that were moved in time, two may have the same: then the order is that of the list.
        sort_by_key(senders, |[port, place]| (ports[*port as usize].idle_from, *place));
        for (rank, [port, _]) in senders.iter().enumerate() {
            let colour = &mut colours.ports[ports[*port as usize].local as usize];
            *colour = mix(*colour, rank as u64);
        }
    }

    /// Every port's colour takes in those of its flows, then every flow's those of its ports, in order of hops.
    fn refine(&mut self, id: PartitionId, colours: &mut Colours<'_>) {
        colours.sums.fill(0);
        for_each_qp!(self, id, qp, {
            let slot = self.qps.slots[qp.index()];
            if slot.is_open() {
                let (mut hop, colour) = (0, colours.qps[slot.local as usize]);
                self.each_port(qp, &mut |kernel, port, is_data| {
                    let sum = &mut colours.sums[kernel.ports[port.index()].local as usize];
                    *sum = sum.wrapping_add(mix(mix(colour, hop), u64::from(is_data)));
                    hop += 1;
                });
            }
        });
        colours.ports.iter_mut().zip(&*colours.sums).for_each(|(colour, sum)| *colour = mix(*colour, *sum));
        for_each_qp!(self, id, qp, {
            let slot = self.qps.slots[qp.index()];
            if slot.is_open() {
                let mut colour = colours.qps[slot.local as usize];
                self.each_port(qp, &mut |kernel, port, _| {
                    colour = mix(colour, colours.ports[kernel.ports[port.index()].local as usize]);
                });
                colours.qps[slot.local as usize] = colour;
            }
        });
        for_each_port!(self, id, port, {
            self.take_places(port, colours);
        });
    }

    /// The order of a NIC's queue is part of the state.
    fn take_places(&self, port: PortId, colours: &mut Colours<'_>) {
        let nic = &self.nics[port.index()];
        let mut qp = nic.first();
        for place in 0..nic.len() as u64 {
            if let Some(colour) = colours.qps.get_mut(self.qps.slots[qp.index()].local as usize) {
                *colour = mix(*colour, place);
            }
            qp = nic.next(self.qps.slots, qp);
        }
    }

    /// Sorts the flows by colour. Gives the number of colours.
    fn sort_qps(&self, id: PartitionId, colours: &mut Colours<'_>) -> usize {
        for_each_qp!(self, id, qp, {
            let local = self.qps.slots[qp.index()].local as usize;
            if let Some(colour) = colours.qps.get(local) {
                colours.sorted[local] = [*colour, u64::from(qp.0) | (local as u64) << 32];
            }
        });
        let sorted = &mut colours.sorted[..colours.qps.len()];
        // Of one colour, the order is that of the list.
        sort_by_key(sorted, |pair| *pair);
        distinct(sorted)
    }

    fn sort_ports(&self, id: PartitionId, colours: &mut Colours<'_>) {
        for_each_port!(self, id, port, {
            let local = self.ports[port.index()].local as usize;
            colours.sorted[local] = [colours.ports[local], u64::from(port.0) | (local as u64) << 32];
        });
        sort_by_key(&mut colours.sorted[..colours.ports.len()], |pair| *pair);
    }

    fn thread_qps(&mut self, id: PartitionId, colours: &Colours<'_>) {
        for [_, member] in &colours.sorted[..colours.qps.len()] {
            self.move_to_end(id, QpId(*member as u32));
        }
    }

    fn thread_ports(&mut self, id: PartitionId, colours: &Colours<'_>) {
        self.relist_ports(id, colours.sorted[..colours.ports.len()].iter().map(|[_, member]| PortId(*member as u32)));
    }
}

/// The first flow of the first colour that several have gets a colour of its own.
fn single_out(colours: &mut Colours<'_>) {
    let sorted = &colours.sorted[..colours.qps.len()];
    if let Some([[_, member], ..]) = sorted.chunk_by(|a, b| a[0] == b[0]).find(|alike| alike.len() > 1) {
        let colour = &mut colours.qps[(member >> 32) as usize];
        *colour = mix(*colour, SINGLED_OUT);
    }
}

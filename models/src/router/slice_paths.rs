//! Distance fields in caller memory: a fixed number of them. The one that was computed longest ago makes room.

use super::distance::{PathMemory, UNREACHED, forwards, live_ports};
use super::{EcmpHash, EcmpIn, SprayIn};
use wormhole_kernel::CapacityError;
use wormhole_kernel::fabric::{Fabric, FabricSize};
use wormhole_kernel::ids::{NodeId, PortId};
use wormhole_kernel::memory::{Carver, words_for};

/// Distances from the switches asked for last.
pub struct SlicePaths<'a> {
    /// Per node: one more than the number of its field, or 0.
    places: &'a mut [u32],
    /// Per field: its switch.
    owners: &'a mut [NodeId],
    /// One after the other, each with an entry per node.
    fields: &'a mut [u16],
    /// The field to be used next.
    next: usize,
    /// Fields in use.
    used: usize,
}

impl<'a> SlicePaths<'a> {
    /// Words for `fields` fields and the ports of a node.
    const fn words(size: FabricSize, fields: usize) -> usize {
        words_for::<u32>(size.nodes)
            + words_for::<NodeId>(fields)
            + words_for::<u16>(fields * size.nodes)
            + words_for::<PortId>(size.links)
    }

    fn carve(
        carver: &mut Carver<'a>,
        size: FabricSize,
        fields: usize,
    ) -> Result<(SlicePaths<'a>, &'a mut [PortId]), CapacityError> {
        let fields = fields.max(1);
        let paths = SlicePaths {
            places: carver.take(size.nodes)?,
            owners: carver.take(fields)?,
            fields: carver.take(fields * size.nodes)?,
            next: 0,
            used: 0,
        };
        // No node has more ports than there are links.
        Ok((paths, carver.take(size.links)?))
    }

    /// A field for `switch`; if all are in use the eldest goes.
    fn claim(&mut self, switch: NodeId) -> usize {
        let place = self.next;
        if self.used < self.owners.len() {
            self.used += 1;
        } else {
            self.places[self.owners[place].index()] = 0;
        }
        self.owners[place] = switch;
        self.places[switch.index()] = place as u32 + 1;
        self.next = if place + 1 == self.owners.len() { 0 } else { place + 1 };
        place
    }
}

impl<'a> PathMemory for SlicePaths<'a> {
    type Ports = &'a mut [PortId];

    fn field(&mut self, fabric: &Fabric<'_>, switch: NodeId) -> &[u16] {
        let nodes = self.places.len();
        let known = self.places[switch.index()];
        let place = if known != 0 { known as usize - 1 } else { self.claim(switch) };
        let field = &mut self.fields[place * nodes..][..nodes];
        if known == 0 {
            compute(fabric, switch, field);
        }
        field
    }

    fn clear(&mut self) {
        for owner in &self.owners[..self.used] {
            self.places[owner.index()] = 0;
        }
        (self.next, self.used) = (0, 0);
    }

    fn room<'p>(ports: &'p mut &'a mut [PortId], count: usize) -> &'p mut [PortId] {
        &mut ports[..count]
    }
}

/// Breadth first, a pass over all nodes for each distance: there is no memory for a queue.
fn compute(fabric: &Fabric<'_>, switch: NodeId, field: &mut [u16]) {
    field.fill(UNREACHED);
    field[switch.index()] = 0;
    for hops in 0..UNREACHED - 1 {
        let mut has_more = false;
        for node in (0..field.len() as u32).map(NodeId) {
            if field[node.index()] != hops {
                continue;
            }
            for neighbour in live_ports(fabric, node).map(|p| fabric.neighbour(p)) {
                if forwards(fabric, neighbour) && field[neighbour.index()] == UNREACHED {
                    field[neighbour.index()] = hops + 1;
                    has_more = true;
                }
            }
        }
        if !has_more {
            break;
        }
    }
}

impl<'a> EcmpIn<SlicePaths<'a>> {
    /// Words of zeroed memory a router takes that keeps `fields` distance fields.
    pub const fn words(size: FabricSize, fields: usize) -> usize {
        SlicePaths::words(size, if fields == 0 { 1 } else { fields })
    }

    /// A router that hashes like this, in caller memory. `fields` is how many distance fields it keeps, at least 1: as
    /// many as there are switches with hosts are enough; with fewer, some are computed again and again.
    ///
    /// # Errors
    /// [`CapacityError`] if the memory is too short.
    pub fn carve(
        carver: &mut Carver<'a>,
        hash: EcmpHash,
        size: FabricSize,
        fields: usize,
    ) -> Result<Self, CapacityError> {
        let (paths, ports) = SlicePaths::carve(carver, size, fields)?;
        Ok(EcmpIn::over(hash, paths, ports))
    }
}

impl<'a> SprayIn<SlicePaths<'a>> {
    /// A router with this salt, in as much caller memory as [`EcmpIn`] takes.
    ///
    /// # Errors
    /// [`CapacityError`] if the memory is too short.
    pub fn carve(carver: &mut Carver<'a>, salt: u64, size: FabricSize, fields: usize) -> Result<Self, CapacityError> {
        let paths = EcmpIn::carve(carver, EcmpHash::Salted(salt), size, fields)?;
        Ok(SprayIn::over(salt, paths))
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::router::Ecmp;
    use alloc::vec;
    use alloc::vec::Vec;
    use wormhole_kernel::fabric::{LinkSpec, NodeKind};
    use wormhole_kernel::router::{RouteKey, Router};
    use wormhole_kernel::units::{BitRate, Span};

    /// Random fabrics of hosts, switches and NVSwitches, not all of them connected, with parallel links.
    #[test]
    fn routes_are_those_of_the_router_on_the_heap() {
        let mut state = 1u64;
        let mut below = |end: u64| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 33) % end
        };
        for round in 0..200 {
            let kinds: Vec<NodeKind> = (0..2 + below(12))
                .map(|_| [NodeKind::Host, NodeKind::Switch, NodeKind::Switch, NodeKind::NvSwitch][below(4) as usize])
                .collect();
            let nodes = kinds.len() as u64;
            let links: Vec<LinkSpec> = (0..1 + below(3 * nodes))
                .map(|_| {
                    let a = below(nodes);
                    let b = (a + 1 + below(nodes - 1)) % nodes;
                    let (a, b) = (NodeId(a as u32), NodeId(b as u32));
                    LinkSpec { a, b, rate: BitRate::from_gbps(100), delay: Span::ZERO, loss: 0 }
                })
                .collect();
            let size = FabricSize::of(&kinds, &links);
            let mut words = vec![0; Fabric::words(size)];
            let fabric = Fabric::carve(&mut Carver::new(&mut words), &kinds, &links).expect("a sound fabric");
            let hash = [EcmpHash::Ns3, EcmpHash::Salted(round), EcmpHash::Destination][round as usize % 3];
            let fields = below(4) as usize;
            let mut memory = vec![0; EcmpIn::words(size, fields)];
            let mut router = EcmpIn::carve(&mut Carver::new(&mut memory), hash, size, fields).expect("memory");
            let mut heap = Ecmp::new(hash);
            for pass in 0..2 {
                for (node, dst) in
                    (0..nodes as u32).flat_map(|n| (0..nodes as u32).map(move |d| (NodeId(n), NodeId(d))))
                {
                    if node == dst || !fabric.is_host(dst) {
                        continue;
                    }
                    let key = RouteKey { src: NodeId(0), dst, src_port: below(9) as u16, dst_port: 100, packet: 0 };
                    let (here, there) = (router.egress(&fabric, node, &key), heap.egress(&fabric, node, &key));
                    assert_eq!(here, there, "round {round}, pass {pass}: {node:?} to {dst:?} of {kinds:?}, {links:?}");
                }
                router.links_changed(&fabric);
            }
        }
    }
}

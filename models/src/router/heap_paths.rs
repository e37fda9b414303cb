//! Distance fields on the heap, as many as are asked for, and the ways that follow from them.
//!
//! Hosts on the same switches are reached by the same ways, and a flow asks for its way several times: so the ports
//! of a switch towards another one are kept once they have been found. In a fabric of 65,536 hosts finding them looks
//! at hundreds of ports a hop.

use super::distance::{PathMemory, UNREACHED, direct_hops, forwards, live_ports, prefer_nvswitch, sort};
use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
use hashbrown::HashMap;
use wormhole_kernel::fabric::Fabric;
use wormhole_kernel::ids::{NodeId, PortId};

/// Distances from switches, by switch.
type Fields = HashMap<NodeId, Box<[u16]>>;

/// By switch and switch to be reached.
type Ways = HashMap<(NodeId, NodeId), Way>;

/// See the module.
#[derive(Default)]
pub struct HeapPaths {
    fields: Fields,
    ways: Ways,
    /// Per node, as far as it is known: whether it is an island.
    islands: Vec<Option<bool>>,
}

/// How a node reaches a switch.
struct Way {
    /// Hops from the next node on.
    hops: u16,
    /// In order; none if there is no way.
    ports: Box<[PortId]>,
}

fn field<'f>(fields: &'f mut Fields, fabric: &Fabric<'_>, switch: NodeId) -> &'f [u16] {
    fields.entry(switch).or_insert_with(|| {
        let mut field = vec![UNREACHED; fabric.node_count()].into_boxed_slice();
        let mut queue = VecDeque::from([switch]);
        field[switch.index()] = 0;
        while let Some(node) = queue.pop_front() {
            let next = field[node.index()] + 1;
            for neighbour in live_ports(fabric, node).map(|p| fabric.neighbour(p)) {
                if forwards(fabric, neighbour) && field[neighbour.index()] == UNREACHED {
                    field[neighbour.index()] = next;
                    queue.push_back(neighbour);
                }
            }
        }
        field
    })
}

/// Whether a switch knows hosts only, as an NVSwitch does: hosts forward nothing, so none but they can reach it.
fn is_island(islands: &mut Vec<Option<bool>>, fabric: &Fabric<'_>, switch: NodeId) -> bool {
    islands.resize(fabric.node_count(), None);
    let find = || !live_ports(fabric, switch).any(|p| forwards(fabric, fabric.neighbour(p)));
    *islands[switch.index()].get_or_insert_with(find)
}

fn way<'w>(ways: &'w mut Ways, fields: &mut Fields, fabric: &Fabric<'_>, node: NodeId, switch: NodeId) -> &'w Way {
    ways.entry((node, switch)).or_insert_with(|| {
        let field = field(fields, fabric, switch);
        let hops = |port: &PortId| field[fabric.neighbour(*port).index()];
        let onward = || live_ports(fabric, node).filter(|&p| forwards(fabric, fabric.neighbour(p)));
        let least = onward().map(|p| hops(&p)).min().unwrap_or(UNREACHED);
        let mut ports: Box<[PortId]> = onward().filter(|p| least != UNREACHED && hops(p) == least).collect();
        sort(fabric, &mut ports);
        Way { hops: least, ports }
    })
}

/// The nearest next hops so far.
struct Nearest<'f> {
    found: &'f mut [PortId],
    count: usize,
    hops: u16,
    is_sorted: bool,
}

impl Nearest<'_> {
    /// Ports in order, from behind which it is so many hops.
    fn add(&mut self, hops: u16, ports: &[PortId]) {
        if hops < self.hops {
            (self.count, self.hops, self.is_sorted) = (0, hops, true);
        }
        // Those of several switches that a host is attached to are often the same.
        if hops == UNREACHED || hops > self.hops || self.found[..self.count] == *ports {
            return;
        }
        if self.count == 0 {
            self.found[..ports.len()].copy_from_slice(ports);
            self.count = ports.len();
            return;
        }
        self.is_sorted = false;
        for port in ports {
            if !self.found[..self.count].contains(port) {
                self.found[self.count] = *port;
                self.count += 1;
            }
        }
    }
}

impl PathMemory for HeapPaths {
    /// Kept for its memory.
    type Ports = Vec<PortId>;

    fn field(&mut self, fabric: &Fabric<'_>, switch: NodeId) -> &[u16] {
        field(&mut self.fields, fabric, switch)
    }

    fn clear(&mut self) {
        self.fields.clear();
        self.ways.clear();
        self.islands.clear();
    }

    fn room(ports: &mut Vec<PortId>, count: usize) -> &mut [PortId] {
        ports.resize(count, PortId::NONE);
        ports
    }

    fn next_hops<'f>(
        &'f mut self,
        fabric: &Fabric<'_>,
        node: NodeId,
        dst: NodeId,
        found: &'f mut [PortId],
    ) -> &'f [PortId] {
        let direct = direct_hops(fabric, node, dst, found);
        if direct > 0 {
            return &mut found[..direct];
        }
        let HeapPaths { fields, ways, islands } = self;
        let mut nearest = Nearest { found, count: 0, hops: UNREACHED, is_sorted: true };
        let last = live_ports(fabric, dst).map(|p| fabric.neighbour(p)).filter(|&n| forwards(fabric, n));
        if fabric.is_host(node) {
            // Hosts are many, and their ports few.
            for switch in last {
                let is_island = is_island(islands, fabric, switch);
                for port in live_ports(fabric, node) {
                    match fabric.neighbour(port) {
                        next if next == switch => nearest.add(0, &[port]),
                        next if is_island || !forwards(fabric, next) => {}
                        next => nearest.add(field(fields, fabric, switch)[next.index()], &[port]),
                    }
                }
            }
        } else {
            let mut last = last.filter(|&switch| !is_island(islands, fabric, switch));
            let (first, second) = (last.next(), last.next());
            if let (Some(only), None) = (first, second) {
                return &way(ways, fields, fabric, node, only).ports;
            }
            for switch in first.into_iter().chain(second).chain(last) {
                let Way { hops, ports } = way(ways, fields, fabric, node, switch);
                nearest.add(*hops, ports);
            }
        }
        let Nearest { found, count, hops, is_sorted } = nearest;
        let found = prefer_nvswitch(fabric, hops == 0, &mut found[..count]);
        if !is_sorted {
            sort(fabric, found);
        }
        found
    }
}

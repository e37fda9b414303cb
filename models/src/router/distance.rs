//! Hop distances in a fabric, computed when asked for and kept until links change.
//!
//! Hosts forward nothing. So the distance of a node from a host follows from its distances from the switches that
//! host is attached to, and one field per *switch* is enough, however many hosts hang on it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use hashbrown::HashMap;
use wormhole_kernel::fabric::{Fabric, NodeKind};
use wormhole_kernel::ids::{NodeId, PortId};

const UNREACHED: u16 = u16::MAX;

/// Distances from switches, by switch.
#[derive(Default)]
pub(super) struct Distances {
    fields: HashMap<NodeId, Box<[u16]>>,
}

/// Whether a node forwards.
fn forwards(fabric: &Fabric<'_>, node: NodeId) -> bool {
    !fabric.is_host(node)
}

/// The ports of `node` with a link that is up.
fn live_ports(fabric: &Fabric<'_>, node: NodeId) -> impl DoubleEndedIterator<Item = PortId> {
    fabric.ports_of(node).filter(|&p| fabric.port(p).is_up())
}

impl Distances {
    pub(super) fn clear(&mut self) {
        self.fields.clear();
    }

    /// Hops from every node to `switch` over switches.
    fn field(&mut self, fabric: &Fabric<'_>, switch: NodeId) -> &[u16] {
        self.fields.entry(switch).or_insert_with(|| {
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

    /// Hops from switch `node` to host `dst`.
    fn hops_to(&mut self, fabric: &Fabric<'_>, node: NodeId, dst: NodeId) -> u16 {
        let mut least = UNREACHED;
        for port in live_ports(fabric, dst) {
            let attached = fabric.neighbour(port);
            if forwards(fabric, attached) {
                let hops = self.field(fabric, attached)[node.index()];
                least = least.min(hops.saturating_add(1));
            }
        }
        least
    }

    /// The ports of `node` that lie on a shortest path to host `dst`, neighbours in descending order (ns-3's, see
    /// NS3-MODEL section 3), parallel links in the order they are listed. Calls `found` for each.
    pub(super) fn next_hops(&mut self, fabric: &Fabric<'_>, node: NodeId, dst: NodeId, mut found: impl FnMut(PortId)) {
        let direct = |p: &PortId| fabric.neighbour(*p) == dst;
        if live_ports(fabric, node).any(|p| direct(&p)) {
            return live_ports(fabric, node).filter(direct).for_each(found);
        }
        // Two passes: the least distance of a neighbour, then the neighbours that have it.
        let mut least = UNREACHED;
        let mut through_server = false;
        for port in live_ports(fabric, node) {
            let neighbour = fabric.neighbour(port);
            if forwards(fabric, neighbour) {
                let hops = self.hops_to(fabric, neighbour, dst);
                least = least.min(hops);
                // Inside a server the NVSwitch is the way, whatever else is as near.
                through_server |= hops == 1 && is_nvswitch(fabric, neighbour);
            }
        }
        if least == UNREACHED {
            return;
        }
        let mut wanted: alloc::vec::Vec<PortId> = live_ports(fabric, node)
            .filter(|&p| {
                let neighbour = fabric.neighbour(p);
                forwards(fabric, neighbour)
                    && self.hops_to(fabric, neighbour, dst) == least
                    && (!through_server || is_nvswitch(fabric, neighbour))
            })
            .collect();
        wanted.sort_by_key(|&p| core::cmp::Reverse(fabric.neighbour(p)));
        wanted.into_iter().for_each(&mut found);
    }
}

fn is_nvswitch(fabric: &Fabric<'_>, node: NodeId) -> bool {
    fabric.kind(node) == Some(NodeKind::NvSwitch)
}

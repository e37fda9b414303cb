//! Hop distances in a fabric, computed when asked for and kept until links change.
//!
//! Hosts forward nothing. So the distance of a node from a host follows from its distances from the switches that
//! host is attached to, and one field per *switch* is enough, however many hosts hang on it.

use alloc::boxed::Box;
use alloc::collections::VecDeque;
use alloc::vec;
use alloc::vec::Vec;
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

    /// Puts the ports of `node` that lie on a shortest path to host `dst` into `found`: neighbours in descending order
    /// (ns-3's, see its `CalculateRoute`), parallel links in the order they are listed.
    pub(super) fn next_hops(&mut self, fabric: &Fabric<'_>, node: NodeId, dst: NodeId, found: &mut Vec<PortId>) {
        found.clear();
        found.extend(live_ports(fabric, node).filter(|&p| fabric.neighbour(p) == dst));
        if !found.is_empty() {
            return;
        }
        let mut least = UNREACHED;
        for port in live_ports(fabric, node).filter(|&p| forwards(fabric, fabric.neighbour(p))) {
            let hops = self.hops_to(fabric, fabric.neighbour(port), dst);
            if hops < least {
                found.clear();
                least = hops;
            }
            if hops == least && hops != UNREACHED {
                found.push(port);
            }
        }
        // Inside a server the NVSwitch is the way, whatever else is as near.
        if least == 1 && found.iter().any(|&p| is_nvswitch(fabric, fabric.neighbour(p))) {
            found.retain(|&p| is_nvswitch(fabric, fabric.neighbour(p)));
        }
        // Ports are unique, so the order is total; and this sort allocates nothing.
        found.sort_unstable_by_key(|&p| (core::cmp::Reverse(fabric.neighbour(p)), p));
    }
}

fn is_nvswitch(fabric: &Fabric<'_>, node: NodeId) -> bool {
    fabric.kind(node) == Some(NodeKind::NvSwitch)
}

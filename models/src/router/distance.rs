//! Hop distances in a fabric, computed when asked for and kept until links change.
//!
//! Hosts forward nothing. So the distance of a node from a host follows from its distances from the switches that
//! host is attached to, and one field per *switch* is enough, however many hosts hang on it.

use wormhole_kernel::fabric::{Fabric, NodeKind};
use wormhole_kernel::ids::{NodeId, PortId};

/// The distance of what cannot be reached.
pub(super) const UNREACHED: u16 = u16::MAX;

/// Where distance fields are kept.
///
/// Who depends on it: [`EcmpIn`](super::EcmpIn) and [`SprayIn`](super::SprayIn), at every hop whose way is not known
/// yet.
pub trait PathMemory {
    /// Memory for the ports of one node.
    type Ports;

    /// Hops from every node to `switch` over switches and links that are up; `u16::MAX` where there is no way, and for
    /// hosts. Computed if it is not kept since the last [`clear`](Self::clear).
    fn field(&mut self, fabric: &Fabric<'_>, switch: NodeId) -> &[u16];

    /// Forgets every field: links have changed.
    fn clear(&mut self);

    /// The ports of `node` on a shortest path to host `dst`. `found` has room for all ports of the node. Neighbours are
    /// in descending order (ns-3's, see its `CalculateRoute`), parallel links in the order they are listed.
    fn next_hops<'f>(
        &'f mut self,
        fabric: &Fabric<'_>,
        node: NodeId,
        dst: NodeId,
        found: &'f mut [PortId],
    ) -> &'f [PortId]
    where
        Self: Sized,
    {
        next_hops(self, fabric, node, dst, found)
    }

    /// Room for `count` ports of a node.
    fn room(ports: &mut Self::Ports, count: usize) -> &mut [PortId];
}

/// Whether a node forwards.
pub(super) fn forwards(fabric: &Fabric<'_>, node: NodeId) -> bool {
    !fabric.is_host(node)
}

/// The ports of `node` with a link that is up.
pub(super) fn live_ports(fabric: &Fabric<'_>, node: NodeId) -> impl DoubleEndedIterator<Item = PortId> {
    fabric.ports_of(node).filter(|&p| fabric.port(p).is_up())
}

/// Hops from switch `node` to host `dst`.
fn hops_to<P: PathMemory>(paths: &mut P, fabric: &Fabric<'_>, node: NodeId, dst: NodeId) -> u16 {
    let mut least = UNREACHED;
    for port in live_ports(fabric, dst) {
        let attached = fabric.neighbour(port);
        if forwards(fabric, attached) {
            let hops = paths.field(fabric, attached)[node.index()];
            least = least.min(hops.saturating_add(1));
        }
    }
    least
}

/// [`PathMemory::next_hops`], from the fields alone.
fn next_hops<'f, P: PathMemory>(
    paths: &mut P,
    fabric: &Fabric<'_>,
    node: NodeId,
    dst: NodeId,
    found: &'f mut [PortId],
) -> &'f mut [PortId] {
    let direct = direct_hops(fabric, node, dst, found);
    if direct > 0 {
        return &mut found[..direct];
    }
    let (mut count, mut least) = (0, UNREACHED);
    for port in live_ports(fabric, node).filter(|&p| forwards(fabric, fabric.neighbour(p))) {
        let hops = hops_to(paths, fabric, fabric.neighbour(port), dst);
        if hops < least {
            count = 0;
            least = hops;
        }
        if hops == least && hops != UNREACHED {
            found[count] = port;
            count += 1;
        }
    }
    let found = prefer_nvswitch(fabric, least == 1, &mut found[..count]);
    sort(fabric, found);
    found
}

/// Puts the ports of `node` that lead to `dst` at once at the start of `found`; gives their number.
pub(super) fn direct_hops(fabric: &Fabric<'_>, node: NodeId, dst: NodeId, found: &mut [PortId]) -> usize {
    let mut count = 0;
    // A host has few ports, a switch many.
    for port in live_ports(fabric, dst).filter(|&p| fabric.neighbour(p) == node) {
        found[count] = fabric.port(port).peer;
        count += 1;
    }
    count
}

/// Inside a server (`is_last`: the next switch is the last one) the NVSwitch is the way, whatever else is as near.
pub(super) fn prefer_nvswitch<'f>(fabric: &Fabric<'_>, is_last: bool, found: &'f mut [PortId]) -> &'f mut [PortId] {
    let leads_to_nvswitch = |port: PortId| fabric.kind(fabric.neighbour(port)) == Some(NodeKind::NvSwitch);
    if is_last && found.iter().any(|&p| leads_to_nvswitch(p)) {
        return retain(found, leads_to_nvswitch);
    }
    found
}

/// Puts next hops in order. Ports are unique, so the order is total; and this sort allocates nothing.
pub(super) fn sort(fabric: &Fabric<'_>, found: &mut [PortId]) {
    found.sort_unstable_by_key(|&p| (core::cmp::Reverse(fabric.neighbour(p)), p));
}

/// Moves the ports to keep to the front, in their order, and gives that part.
fn retain(ports: &mut [PortId], keep: impl Fn(PortId) -> bool) -> &mut [PortId] {
    let mut kept = 0;
    for i in 0..ports.len() {
        if keep(ports[i]) {
            ports[kept] = ports[i];
            kept += 1;
        }
    }
    &mut ports[..kept]
}

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

/// Puts the ports of `node` that lie on a shortest path to host `dst` at the start of `found`, which has room for all
/// ports of the node, and gives that part: neighbours in descending order (ns-3's, see its `CalculateRoute`), parallel
/// links in the order they are listed.
pub(super) fn next_hops<'f, P: PathMemory>(
    paths: &mut P,
    fabric: &Fabric<'_>,
    node: NodeId,
    dst: NodeId,
    found: &'f mut [PortId],
) -> &'f mut [PortId] {
    let mut count = 0;
    for port in live_ports(fabric, node).filter(|&p| fabric.neighbour(p) == dst) {
        found[count] = port;
        count += 1;
    }
    if count > 0 {
        return &mut found[..count];
    }
    let mut least = UNREACHED;
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
    let mut found = &mut found[..count];
    // Inside a server the NVSwitch is the way, whatever else is as near.
    let leads_to_nvswitch = |port: PortId| fabric.kind(fabric.neighbour(port)) == Some(NodeKind::NvSwitch);
    if least == 1 && found.iter().any(|&p| leads_to_nvswitch(p)) {
        found = retain(found, |port, _| leads_to_nvswitch(port));
    }
    // Ports are unique, so the order is total; and this sort allocates nothing.
    found.sort_unstable_by_key(|&p| (core::cmp::Reverse(fabric.neighbour(p)), p));
    found
}

/// Moves the ports to keep to the front, in their order, and gives that part. `keep` is told a port and the next one.
pub(super) fn retain(ports: &mut [PortId], keep: impl Fn(PortId, Option<PortId>) -> bool) -> &mut [PortId] {
    let mut kept = 0;
    for i in 0..ports.len() {
        if keep(ports[i], ports.get(i + 1).copied()) {
            ports[kept] = ports[i];
            kept += 1;
        }
    }
    &mut ports[..kept]
}

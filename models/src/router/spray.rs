//! Packet spraying: every packet of a flow takes its own way among the shortest paths.

use super::distance::PathMemory;
use super::ecmp::EcmpIn;
#[cfg(feature = "alloc")]
use super::{Ecmp, EcmpHash, HeapPaths};
use crate::hash::mix;
use wormhole_kernel::fabric::Fabric;
use wormhole_kernel::ids::{NodeId, PortId};
use wormhole_kernel::model::ModelId;
use wormhole_kernel::router::{RouteKey, Router};

/// See the module. Its memory is on the heap.
#[cfg(feature = "alloc")]
pub type Spray = SprayIn<HeapPaths>;

/// See the module. The way follows from the flow, the packet number, the switch and a salt. `P` is its memory, as with
/// [`EcmpIn`].
pub struct SprayIn<P: PathMemory> {
    salt: u64,
    paths: EcmpIn<P>,
}

#[cfg(feature = "alloc")]
impl SprayIn<HeapPaths> {
    /// A router with this salt.
    pub fn new(salt: u64) -> Spray {
        SprayIn::over(salt, Ecmp::new(EcmpHash::Salted(salt)))
    }
}

impl<P: PathMemory> SprayIn<P> {
    /// A router with this salt, among these paths.
    pub(super) fn over(salt: u64, paths: EcmpIn<P>) -> SprayIn<P> {
        SprayIn { salt, paths }
    }
}

impl<P: PathMemory> Router for SprayIn<P> {
    const PER_FLOW: bool = false;

    fn id(&self) -> ModelId {
        ModelId { name: "spray", version: 1, config: self.salt }
    }

    fn egress(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> Option<PortId> {
        let flow = (key.src.0 as u64) << 32 | key.dst.0 as u64;
        let ports = (key.src_port as u64) << 16 | key.dst_port as u64;
        // A host stays with one NIC per flow: its queue pair lives there.
        let packet = if fabric.is_host(node) { 0 } else { key.packet };
        let hash = mix(mix(mix(self.salt ^ flow) ^ ports) ^ mix(packet) ^ (node.0 as u64) << 32);
        let hops = self.paths.next_hops(fabric, node, key.dst);
        if hops.is_empty() { None } else { Some(hops[(hash % hops.len() as u64) as usize]) }
    }

    fn choices(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey, each: &mut dyn FnMut(PortId)) {
        if fabric.is_host(node) {
            self.egress(fabric, node, key).into_iter().for_each(each);
        } else {
            self.paths.next_hops(fabric, node, key.dst).iter().copied().for_each(each);
        }
    }

    fn links_changed(&mut self, fabric: &Fabric<'_>) {
        self.paths.links_changed(fabric);
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use alloc::collections::BTreeSet;
    use wormhole_kernel::fabric::{FabricSize, LinkSpec, NodeKind};
    use wormhole_kernel::memory::Carver;
    use wormhole_kernel::units::{BitRate, Span};

    #[test]
    fn choices_are_what_packets_take() {
        // Host 0 has two NICs to switch 1, which has three ways to switch 2, which has one to host 3.
        let kinds = [NodeKind::Host, NodeKind::Switch, NodeKind::Switch, NodeKind::Host];
        let links = [(0, 1), (0, 1), (1, 2), (1, 2), (1, 2), (2, 3)].map(|(a, b)| {
            let (a, b) = (NodeId(a), NodeId(b));
            LinkSpec { a, b, rate: BitRate::from_gbps(100), delay: Span::from_us(1), loss: 0 }
        });
        let mut words = alloc::vec![0; Fabric::words(FabricSize::of(&kinds, &links))];
        let fabric = Fabric::carve(&mut Carver::new(&mut words), &kinds, &links).expect("a sound fabric");
        let mut router = Spray::new(7);
        for (node, count) in [(0, 1), (1, 3), (2, 1)] {
            let key = RouteKey { src: NodeId(0), dst: NodeId(3), src_port: 10_000, dst_port: 100, packet: 0 };
            let taken = |packet| router.egress(&fabric, NodeId(node), &RouteKey { packet, ..key });
            let taken: BTreeSet<PortId> = (0..100).filter_map(taken).collect();
            let mut choices = BTreeSet::new();
            router.choices(&fabric, NodeId(node), &key, &mut |port| assert!(choices.insert(port)));
            assert_eq!((choices.len(), choices), (count, taken), "at node {node}");
        }
    }
}

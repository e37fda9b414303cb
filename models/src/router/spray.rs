//! Packet spraying: every packet of a flow takes its own way among the shortest paths.

use super::EcmpHash;
use super::ecmp::Ecmp;
use crate::hash::mix;
use wormhole_kernel::fabric::Fabric;
use wormhole_kernel::ids::{NodeId, PortId};
use wormhole_kernel::model::ModelId;
use wormhole_kernel::router::{RouteKey, Router};

/// See the module. The way follows from the flow, the packet number, the switch and a salt.
pub struct Spray {
    salt: u64,
    paths: Ecmp,
}

impl Spray {
    /// A router with this salt.
    pub fn new(salt: u64) -> Spray {
        Spray { salt, paths: Ecmp::new(EcmpHash::Salted(salt)) }
    }
}

impl Router for Spray {
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

    fn links_changed(&mut self, fabric: &Fabric<'_>) {
        self.paths.links_changed(fabric);
    }
}

//! Equal-cost multi-path: a hash of the flow picks among the shortest paths at every hop.

use super::distance::Distances;
use crate::hash::{mix, murmur3};
use alloc::vec::Vec;
use wormhole_kernel::fabric::Fabric;
use wormhole_kernel::ids::{NodeId, PortId};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::router::{RouteKey, Router};

/// How switches hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum EcmpHash {
    /// MurmurHash3 of addresses and ports, seeded with the switch's id; of parallel links only the last one listed
    /// is used (ns-3 `SwitchNode::EcmpHash`, `third.cc`).
    Ns3,
    /// The same with a seed per switch that also depends on this salt, so that levels do not choose alike; parallel
    /// links are all used.
    Salted(u64),
}

/// Seed of ns-3's own hash, by which hosts choose among their NICs (`RdmaHw::GetNicIdxOfQp`).
const NS3_HOST_SEED: u32 = 0x8bad_f00d;

/// See the module.
pub struct Ecmp {
    hash: EcmpHash,
    distances: Distances,
    /// Next hops of the present question; kept for its memory.
    next_hops: Vec<PortId>,
}

impl Ecmp {
    /// A router that hashes like this.
    pub fn new(hash: EcmpHash) -> Ecmp {
        Ecmp { hash, distances: Distances::default(), next_hops: Vec::new() }
    }

    fn hash(&self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> u32 {
        let words = [address(key.src), address(key.dst), key.src_port as u32 | (key.dst_port as u32) << 16];
        let seed = match self.hash {
            EcmpHash::Ns3 if fabric.is_host(node) => NS3_HOST_SEED,
            EcmpHash::Ns3 => node.0,
            EcmpHash::Salted(salt) => mix(salt ^ mix(node.0 as u64)) as u32,
        };
        murmur3(words, seed)
    }

    /// The shortest-path ports of `node` towards `dst`.
    pub(super) fn next_hops(&mut self, fabric: &Fabric<'_>, node: NodeId, dst: NodeId) -> &[PortId] {
        let hops = &mut self.next_hops;
        self.distances.next_hops(fabric, node, dst, hops);
        if self.hash == EcmpHash::Ns3 {
            // Parallel links are neighbours in the list; keep the last of each run.
            hops.reverse();
            hops.dedup_by_key(|p| fabric.neighbour(*p));
            hops.reverse();
        }
        hops
    }
}

/// A node's IPv4 address in ns-3's numbering (`node_id_to_ip`).
fn address(node: NodeId) -> u32 {
    0x0b00_0001u32.wrapping_add((node.0 / 256) << 16).wrapping_add((node.0 % 256) << 8)
}

impl Router for Ecmp {
    const PER_FLOW: bool = true;

    fn id(&self) -> ModelId {
        let config = match self.hash {
            EcmpHash::Ns3 => ConfigHash::new().with(0),
            EcmpHash::Salted(salt) => ConfigHash::new().with(1).with(salt),
        };
        ModelId { name: "ecmp", version: 1, config: config.finish() }
    }

    fn egress(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> Option<PortId> {
        let hash = self.hash(fabric, node, key) as usize;
        let hops = self.next_hops(fabric, node, key.dst);
        if hops.is_empty() { None } else { Some(hops[hash % hops.len()]) }
    }

    fn links_changed(&mut self, _fabric: &Fabric<'_>) {
        self.distances.clear();
    }
}

//! Equal-cost multi-path: a hash of the flow picks among the shortest paths at every hop.

#[cfg(feature = "alloc")]
use super::HeapPaths;
use super::distance::{PathMemory, next_hops, retain};
use crate::hash::{mix, murmur3};
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

/// See the module. Its memory is on the heap.
#[cfg(feature = "alloc")]
pub type Ecmp = EcmpIn<HeapPaths>;

/// See the module. `P` is its memory: [`HeapPaths`](super::HeapPaths) or [`SlicePaths`](super::SlicePaths).
pub struct EcmpIn<P: PathMemory> {
    hash: EcmpHash,
    paths: P,
    /// Next hops of the present question.
    ports: P::Ports,
}

#[cfg(feature = "alloc")]
impl EcmpIn<HeapPaths> {
    /// A router that hashes like this.
    pub fn new(hash: EcmpHash) -> Ecmp {
        EcmpIn::over(hash, HeapPaths::default(), alloc::vec::Vec::new())
    }
}

impl<P: PathMemory> EcmpIn<P> {
    /// A router that hashes like this, in this memory.
    pub(super) fn over(hash: EcmpHash, paths: P, ports: P::Ports) -> EcmpIn<P> {
        EcmpIn { hash, paths, ports }
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
        let room = P::room(&mut self.ports, fabric.ports_of(node).len());
        let hops = next_hops(&mut self.paths, fabric, node, dst, room);
        if self.hash != EcmpHash::Ns3 {
            return hops;
        }
        // Parallel links are neighbours in the list; keep the last of each run.
        retain(hops, |port, next| next.is_none_or(|next| fabric.neighbour(next) != fabric.neighbour(port)))
    }
}

/// A node's IPv4 address in ns-3's numbering (`node_id_to_ip`).
fn address(node: NodeId) -> u32 {
    0x0b00_0001u32.wrapping_add((node.0 / 256) << 16).wrapping_add((node.0 % 256) << 8)
}

impl<P: PathMemory> Router for EcmpIn<P> {
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
        self.paths.clear();
    }
}

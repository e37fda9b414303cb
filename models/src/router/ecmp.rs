//! Equal-cost multi-path: a hash of the flow, or its destination, picks among the shortest paths at every hop.

#[cfg(feature = "alloc")]
use super::HeapPaths;
use super::distance::{PathMemory, live_ports};
use crate::hash::{mix, murmur3};
use wormhole_kernel::fabric::{Fabric, NodeKind};
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
    /// No hash: the place of the destination at its switch picks, and a tier higher that switch's place at the next
    /// one. That is routing modulo k by destinations (Zahavi et al. 2010, "Optimized InfiniBand fat-tree routing for
    /// shift all-to-all communication patterns"), and what operators of Ethernet fabrics call path pinning: in a
    /// fat-tree flows to different hosts of a switch share no link that is not oversubscribed.
    Destination,
}

/// Seed of ns-3's own hash, by which hosts choose among their NICs (`RdmaHw::GetNicIdxOfQp`).
const NS3_HOST_SEED: u32 = 0x8bad_f00d;

/// See the module. Its memory is on the heap.
#[cfg(feature = "alloc")]
pub type Ecmp = EcmpIn<HeapPaths>;

/// See the module. `P` is its memory: `HeapPaths` or [`SlicePaths`](super::SlicePaths).
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

    /// The shortest-path ports of `node` towards `dst`.
    pub(super) fn next_hops(&mut self, fabric: &Fabric<'_>, node: NodeId, dst: NodeId) -> &[PortId] {
        let room = P::room(&mut self.ports, fabric.ports_of(node).len());
        self.paths.next_hops(fabric, node, dst, room)
    }
}

/// Of parallel links, which are neighbours in the list, the last one of each run.
fn last_of_parallel(fabric: &Fabric<'_>, hops: &[PortId]) -> impl Iterator<Item = PortId> {
    hops.chunk_by(|&a, &b| fabric.neighbour(a) == fabric.neighbour(b)).filter_map(|run| run.last().copied())
}

/// The number that picks among the next hops of `node`.
fn pick(hash: EcmpHash, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> u32 {
    let seed = match hash {
        EcmpHash::Ns3 if fabric.is_host(node) => NS3_HOST_SEED,
        EcmpHash::Ns3 => node.0,
        EcmpHash::Salted(salt) => mix(salt ^ mix(node.0 as u64)) as u32,
        EcmpHash::Destination => return place(fabric, key.dst, tier(fabric, node)),
    };
    murmur3([address(key.src), address(key.dst), key.src_port as u32 | (key.dst_port as u32) << 16], seed)
}

/// Tiers that are told apart.
const TIERS: u32 = 3;

/// How many switches are between a node and the nearest host: 0 for hosts and the switches they are attached to.
fn tier(fabric: &Fabric<'_>, node: NodeId) -> u32 {
    fn knows_host(fabric: &Fabric<'_>, node: NodeId, below: u32) -> bool {
        let mut neighbours = live_ports(fabric, node).map(|p| fabric.neighbour(p));
        neighbours.any(|n| if below == 0 { fabric.is_host(n) } else { knows_host(fabric, n, below - 1) })
    }
    (0..TIERS).find(|&below| fabric.is_host(node) || knows_host(fabric, node, below)).unwrap_or(TIERS)
}

/// The number of the port by which the switch of tier `tier` above a host leads down to it, from the first one that is
/// above it.
fn place(fabric: &Fabric<'_>, host: NodeId, tier: u32) -> u32 {
    let (mut node, mut place) = (host, 0);
    for _ in 0..=tier {
        let leads_up = |port: &PortId| fabric.kind(fabric.neighbour(*port)) == Some(NodeKind::Switch);
        let Some(up) = live_ports(fabric, node).find(leads_up) else { break };
        place = fabric.local_number(fabric.port(up).peer);
        node = fabric.neighbour(up);
    }
    place
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
            EcmpHash::Destination => ConfigHash::new().with(2),
        };
        ModelId { name: "ecmp", version: 1, config: config.finish() }
    }

    fn egress(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> Option<PortId> {
        let hash = self.hash;
        let hops = self.next_hops(fabric, node, key.dst);
        let pick = |count: usize| if count > 1 { pick(hash, fabric, node, key) as usize % count } else { 0 };
        match hash {
            EcmpHash::Ns3 => last_of_parallel(fabric, hops).nth(pick(last_of_parallel(fabric, hops).count())),
            EcmpHash::Salted(_) | EcmpHash::Destination => hops.get(pick(hops.len())).copied(),
        }
    }

    fn links_changed(&mut self, _fabric: &Fabric<'_>) {
        self.paths.clear();
    }
}

#[cfg(all(test, feature = "alloc"))]
mod tests {
    use super::*;
    use crate::topology::{FabricPlan, FatTree, Rail};
    use alloc::collections::BTreeSet;
    use alloc::vec::Vec;
    use wormhole_kernel::memory::Carver;

    /// The egress ports of a flow after its NIC.
    fn path(router: &mut Ecmp, fabric: &Fabric<'_>, src: u32, dst: u32) -> Vec<PortId> {
        let key = RouteKey { src: NodeId(src), dst: NodeId(dst), src_port: 10_000, dst_port: 100, packet: 0 };
        let (mut node, mut path) = (NodeId(src), Vec::new());
        while node != NodeId(dst) {
            let port = router.egress(fabric, node, &key).expect("a path");
            path.push(port);
            node = fabric.neighbour(port);
        }
        path
    }

    /// Whether no two flows of a shift of hosts share a link, for all shifts by a multiple of `step`.
    fn is_free_of_collisions(plan: &impl FabricPlan, step: usize, hash: EcmpHash) -> bool {
        let (hosts, size) = (plan.counts().hosts as u32, plan.size());
        let kinds: Vec<NodeKind> = (0..size.nodes as u32).map(|id| plan.node(NodeId(id))).collect();
        let mut links = Vec::new();
        plan.each_link(&mut |link| links.push(link));
        let mut words = alloc::vec![0; Fabric::words(size)];
        let fabric = Fabric::carve(&mut Carver::new(&mut words), &kinds, &links).expect("a sound fabric");
        let mut router = Ecmp::new(hash);
        (step as u32..hosts).step_by(step).all(|shift| {
            let mut taken = BTreeSet::new();
            let mut paths = (0..hosts).map(|src| path(&mut router, &fabric, src, (src + shift) % hosts));
            paths.all(|path| path.into_iter().all(|port| taken.insert(port)))
        })
    }

    #[test]
    fn flows_to_different_hosts_do_not_collide_if_the_destination_picks() {
        let rail = Rail { servers: 12, servers_per_leaf: 4, spines: 4, ..Rail::default() };
        let destination = EcmpHash::Destination;
        assert!(is_free_of_collisions(&rail, 8, destination) && !is_free_of_collisions(&rail, 8, EcmpHash::Salted(1)));
        for k in [4, 8] {
            let tree = FatTree { k, ..FatTree::default() };
            assert!(is_free_of_collisions(&tree, 1, destination), "k = {k}");
            assert!(!is_free_of_collisions(&tree, 1, EcmpHash::Salted(1)), "k = {k}");
        }
    }
}

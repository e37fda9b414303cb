//! What tests ask of a fabric.

extern crate std;

use super::FabricPlan;
use std::collections::VecDeque;
use std::vec;
use std::vec::Vec;
use wormhole_kernel::fabric::{LinkSpec, NodeKind};
use wormhole_kernel::ids::NodeId;

/// A rate in bit/s.
pub(super) fn gbps(rate: u128) -> u128 {
    rate * 1_000_000_000
}

/// The nodes and links of a plan.
pub(super) struct Built {
    kinds: Vec<NodeKind>,
    links: Vec<LinkSpec>,
    /// Of each node, with repetitions if links are parallel, ascending.
    neighbours: Vec<Vec<u32>>,
}

impl Built {
    /// Builds a plan, which must be possible and as large as it says.
    pub(super) fn of(plan: &impl FabricPlan) -> Built {
        assert_eq!(plan.check(), Ok(()));
        let size = plan.size();
        let kinds: Vec<NodeKind> = (0..size.nodes as u32).map(|id| plan.node(NodeId(id))).collect();
        let mut links = Vec::new();
        plan.each_link(&mut |link| links.push(link));
        assert_eq!(links.len(), size.links);
        let mut neighbours = vec![Vec::new(); size.nodes];
        for link in &links {
            assert!(link.rate.0 > 0 && link.a < link.b, "{link:?}");
            neighbours[link.a.index()].push(link.b.0);
            neighbours[link.b.index()].push(link.a.0);
        }
        neighbours.iter_mut().for_each(|n| n.sort_unstable());
        let built = Built { kinds, links, neighbours };
        let counts = plan.counts();
        let kinds = [NodeKind::Host, NodeKind::NvSwitch, NodeKind::Switch].map(|kind| built.count(kind) as u64);
        assert_eq!(kinds, [counts.hosts, counts.nvswitches, counts.switches]);
        built
    }

    /// Number of nodes of a kind.
    pub(super) fn count(&self, kind: NodeKind) -> usize {
        self.kinds.iter().filter(|k| **k == kind).count()
    }

    /// Number of links of a node.
    pub(super) fn ports(&self, node: u32) -> usize {
        self.neighbours[node as usize].len()
    }

    /// The nodes at the other ends of a node's links, ascending, each once.
    pub(super) fn neighbours(&self, node: u32) -> Vec<u32> {
        let mut neighbours = self.neighbours[node as usize].clone();
        neighbours.dedup();
        neighbours
    }

    /// Links of a shortest path, on which no host forwards.
    pub(super) fn hops(&self, from: u32, to: u32) -> Option<u32> {
        self.hops_from(from)[to as usize]
    }

    fn hops_from(&self, from: u32) -> Vec<Option<u32>> {
        let mut hops = vec![None; self.kinds.len()];
        let mut queue = VecDeque::from([(from, 0)]);
        hops[from as usize] = Some(0);
        while let Some((node, far)) = queue.pop_front() {
            if self.kinds[node as usize] == NodeKind::Host && node != from {
                continue;
            }
            for &next in &self.neighbours[node as usize] {
                if hops[next as usize].is_none() {
                    hops[next as usize] = Some(far + 1);
                    queue.push_back((next, far + 1));
                }
            }
        }
        hops
    }

    /// Every host reaches every other one.
    pub(super) fn assert_connected(&self) {
        let hosts = self.count(NodeKind::Host);
        for host in 0..hosts {
            assert!(self.hops_from(host as u32)[..hosts].iter().all(Option::is_some), "from host {host}");
        }
    }

    /// The minimum cut of the network between the halves of the hosts, in bit/s: the least of all cuts, one by one.
    pub(super) fn minimum_cut(&self) -> u128 {
        let hosts = self.count(NodeKind::Host);
        let first_switch = hosts + self.count(NodeKind::NvSwitch);
        let network: Vec<(usize, usize, u128)> = self
            .links
            .iter()
            .filter(|link| self.kinds[link.b.index()] == NodeKind::Switch)
            .map(|link| (link.a.index(), link.b.index(), link.rate.0 as u128))
            .collect();
        let cut = |sides: u32| {
            let side =
                |node: usize| if node < hosts { node < hosts / 2 } else { sides >> (node - first_switch) & 1 == 1 };
            network.iter().filter(|(a, b, _)| side(*a) != side(*b)).map(|(_, _, rate)| rate).sum()
        };
        (0..1 << self.count(NodeKind::Switch)).map(cut).min().expect("a cut")
    }
}

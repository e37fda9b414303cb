//! Which kernel simulates which node: shares of the traffic as equal as can be, and little of it between them.

use std::collections::BinaryHeap;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::{LinkSpec, Span};

/// How far from its share the weight of a shard may be, as a fraction of the share. All shards wait for the one with
/// the most, at each window.
const SLACK: f64 = 0.01;
/// A link with less delay is not cut: windows are half as long as that, and time is counted in picoseconds.
const LEAST_DELAY: Span = Span(2);
/// Times that nodes at the border are looked at again.
const PASSES: usize = 8;

/// Frames that nodes and links carry.
#[derive(Clone, Debug)]
pub(super) struct Weights {
    pub(super) nodes: Vec<u64>,
    pub(super) links: Vec<u64>,
}

impl Weights {
    /// So many frames leave by a port.
    pub(super) fn add(&mut self, port: &PortInfo, frames: u64) {
        self.nodes[port.node.index()] += frames;
        self.links[port.link.index()] += frames;
    }
}

/// Which kernel simulates which nodes.
#[derive(Clone, Debug)]
pub(super) struct Cut {
    /// Per node.
    pub(super) owners: Vec<u8>,
    /// Kernels in all.
    pub(super) kernels: usize,
    /// The least delay of a link between two of them. `None` if no traffic crosses.
    pub(super) lookahead: Option<Span>,
}

/// A link as seen from one of its ends.
#[derive(Clone, Copy)]
struct Edge {
    to: usize,
    weight: u64,
}

impl Cut {
    /// Cuts a fabric across its traffic. Links of less than [`LEAST_DELAY`] are not cut.
    pub(super) fn across(links: &[LinkSpec], weights: &Weights, shards: usize) -> Cut {
        let graph = Graph::new(links, weights);
        let mut owners = vec![0; graph.weights.len()];
        let all: Vec<usize> = (0..owners.len()).filter(|&node| graph.group[node] == node).collect();
        graph.split(all, 0, shards, &mut owners);
        let owners: Vec<u8> = graph.group.iter().map(|&leader| owners[leader]).collect();
        let crosses = |link: &&LinkSpec| owners[link.a.index()] != owners[link.b.index()];
        // If nothing can be cut all is in one shard, which hears of nobody for as long as it likes.
        let lookahead = links.iter().filter(crosses).map(|link| link.delay).min().unwrap_or(Span::MAX);
        Cut { owners, kernels: shards, lookahead: Some(lookahead) }
    }
}

/// Nodes, joined where a link that is not cut joins them, and the traffic between them.
struct Graph {
    /// Per node: the first node of its group.
    group: Vec<usize>,
    /// Per first node of a group: frames, at least 1.
    weights: Vec<u64>,
    edges: Vec<Vec<Edge>>,
}

impl Graph {
    fn new(links: &[LinkSpec], weights: &Weights) -> Graph {
        let mut group: Vec<usize> = (0..weights.nodes.len()).collect();
        for link in links.iter().filter(|link| link.delay < LEAST_DELAY) {
            join(&mut group, link.a.index(), link.b.index());
        }
        let group: Vec<usize> = (0..group.len()).map(|node| find(&mut group, node)).collect();
        let mut graph = Graph { weights: vec![0; group.len()], edges: vec![Vec::new(); group.len()], group };
        for (node, weight) in weights.nodes.iter().enumerate() {
            graph.weights[graph.group[node]] += 1 + weight;
        }
        for (link, &weight) in links.iter().zip(&weights.links) {
            let (a, b) = (graph.group[link.a.index()], graph.group[link.b.index()]);
            if a != b {
                graph.edges[a].push(Edge { to: b, weight });
                graph.edges[b].push(Edge { to: a, weight });
            }
        }
        graph
    }

    /// Shares `nodes` out among `count` shards, from number `first` on.
    fn split(&self, nodes: Vec<usize>, first: usize, count: usize, owners: &mut [u8]) {
        if count == 1 {
            nodes.iter().for_each(|&node| owners[node] = first as u8);
            return;
        }
        let half = count / 2;
        let total: u64 = nodes.iter().map(|&node| self.weights[node]).sum();
        let target = total as f64 * half as f64 / count as f64;
        let mut side = vec![None; self.weights.len()];
        nodes.iter().for_each(|&node| side[node] = Some(false));
        let mut weight = self.grow(&nodes, target, &mut side);
        self.refine(&nodes, target, &mut weight, &mut side);
        self.balance(&nodes, target, &mut weight, &mut side);
        self.refine(&nodes, target, &mut weight, &mut side);
        let (inside, outside) = nodes.into_iter().partition(|&node| side[node] == Some(true));
        self.split(inside, first, half, owners);
        self.split(outside, first + half, count - half, owners);
    }

    /// Takes nodes to one side, those next that most of their traffic ties to it, until it has its share.
    fn grow(&self, nodes: &[usize], target: f64, side: &mut [Option<bool>]) -> u64 {
        let (mut weight, mut border) = (0, BinaryHeap::new());
        for &start in nodes {
            border.push((i64::MIN, usize::MAX - start));
            while let Some((gain, node)) = border.pop() {
                let node = usize::MAX - node;
                let is_known = gain == i64::MIN || gain == self.gain(node, side);
                if side[node] != Some(false) || !is_known {
                    continue;
                }
                if weight as f64 + self.weights[node] as f64 / 2.0 > target {
                    return weight;
                }
                side[node] = Some(true);
                weight += self.weights[node];
                for edge in &self.edges[node] {
                    if side[edge.to] == Some(false) {
                        border.push((self.gain(edge.to, side), usize::MAX - edge.to));
                    }
                }
            }
        }
        weight
    }

    /// Moves nodes over if less traffic crosses then and both sides keep about their share.
    fn refine(&self, nodes: &[usize], target: f64, weight: &mut u64, side: &mut [Option<bool>]) {
        for _ in 0..PASSES {
            let mut moved = 0;
            for &node in nodes {
                let after = self.weight_after(node, *weight, side);
                let is_fair = excess(after, target) <= excess(*weight, target).max(target * SLACK);
                if self.gain_of_move(node, side) > 0 && is_fair {
                    *weight = after;
                    side[node] = side[node].map(|inside| !inside);
                    moved += 1;
                }
            }
            if moved == 0 {
                return;
            }
        }
    }

    /// Moves nodes over until both sides have about their share, of those that bring it nearer the one that lets the
    /// least traffic cross.
    fn balance(&self, nodes: &[usize], target: f64, weight: &mut u64, side: &mut [Option<bool>]) {
        while excess(*weight, target) > target * SLACK {
            let after = |node: usize| self.weight_after(node, *weight, side);
            let helps = |node: &&usize| excess(after(**node), target) < excess(*weight, target);
            let gain = |node: &&usize| (self.gain_of_move(**node, side), usize::MAX - **node);
            let Some(&node) = nodes.iter().filter(helps).max_by_key(gain) else { return };
            *weight = after(node);
            side[node] = side[node].map(|inside| !inside);
        }
    }

    /// What the side that grows weighs if a node changes sides.
    fn weight_after(&self, node: usize, weight: u64, side: &[Option<bool>]) -> u64 {
        if side[node] == Some(true) { weight - self.weights[node] } else { weight + self.weights[node] }
    }

    /// Traffic that no longer crosses if a node changes sides.
    fn gain_of_move(&self, node: usize, side: &[Option<bool>]) -> i64 {
        let gain = self.gain(node, side);
        if side[node] == Some(true) { -gain } else { gain }
    }

    /// Traffic of a node with the side that grows, less that with the other.
    fn gain(&self, node: usize, side: &[Option<bool>]) -> i64 {
        self.edges[node].iter().fold(0, |gain, edge| match side[edge.to] {
            Some(true) => gain + edge.weight as i64,
            Some(false) => gain - edge.weight as i64,
            None => gain,
        })
    }
}

/// How far a weight is from the one that is aimed at.
fn excess(weight: u64, target: f64) -> f64 {
    (weight as f64 - target).abs()
}

/// Joins the groups of two nodes.
pub(super) fn join(group: &mut [usize], a: usize, b: usize) {
    let (a, b) = (find(group, a), find(group, b));
    group[a.max(b)] = a.min(b);
}

/// The first node of a group.
pub(super) fn find(group: &mut [usize], node: usize) -> usize {
    let mut node = node;
    while group[node] != node {
        group[node] = group[group[node]];
        node = group[node];
    }
    node
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::{BitRate, NodeId};

    fn link(a: u32, b: u32, delay: u64) -> LinkSpec {
        LinkSpec { a: NodeId(a), b: NodeId(b), rate: BitRate::from_gbps(100), delay: Span(delay), loss: 0 }
    }

    #[test]
    fn two_stars_with_a_thin_link_are_cut_there() {
        let mut links: Vec<LinkSpec> = (1..4).map(|host| link(0, host, 1_000)).collect();
        links.extend((5..8).map(|host| link(4, host, 1_000)));
        links.push(link(0, 4, 7_000));
        let weights = Weights { nodes: vec![10; 8], links: vec![10, 10, 10, 10, 10, 10, 1] };
        let cut = Cut::across(&links, &weights, 2);
        assert_eq!(cut.lookahead, Some(Span(7_000)));
        assert_eq!(cut.owners[..4], [cut.owners[0]; 4]);
        assert_eq!(cut.owners[4..], [1 - cut.owners[0]; 4]);
    }

    #[test]
    fn shares_are_as_equal_as_nodes_allow() {
        // A hub that weighs as much as four of its eight hosts: the shares are 60 each.
        let links: Vec<LinkSpec> = (1..9).map(|host| link(0, host, 1_000)).collect();
        let nodes: Vec<u64> = (0..9).map(|node| if node == 0 { 39 } else { 9 }).collect();
        let cut = Cut::across(&links, &Weights { nodes: nodes.clone(), links: vec![9; 8] }, 2);
        let first: u64 = nodes.iter().zip(&cut.owners).filter(|(_, owner)| **owner == 0).map(|(w, _)| 1 + w).sum();
        assert_eq!(first, 60, "{:?}", cut.owners);
    }

    #[test]
    fn links_without_delay_are_not_cut_and_all_shards_have_work() {
        // A ring of 12, every third link without delay.
        let links: Vec<LinkSpec> = (0..12).map(|n| link(n, (n + 1) % 12, u64::from(n % 3) * 100)).collect();
        let weights = Weights { nodes: vec![5; 12], links: vec![5; 12] };
        for shards in [2, 3, 4] {
            let cut = Cut::across(&links, &weights, shards);
            let crossing = |link: &&LinkSpec| cut.owners[link.a.index()] != cut.owners[link.b.index()];
            let least = links.iter().filter(crossing).map(|link| link.delay).min();
            assert!(least > Some(Span::ZERO) && cut.lookahead == least, "{shards} shards: {cut:?}");
            for shard in 0..shards as u8 {
                let own = cut.owners.iter().filter(|&&owner| owner == shard).count();
                assert!(own >= 12 / shards - 1, "{shards} shards: {:?}", cut.owners);
            }
        }
    }
}

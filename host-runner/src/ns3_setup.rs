//! What ns-3's driver derives from a topology before a run (`third.cc`): round-trip times and bandwidth-delay
//! products of host pairs, and their maxima.
//!
//! It does so for every pair of hosts. Hosts that hang on the same switches by equal links are alike, so here one of
//! each kind stands for all: a star of thousands of hosts has one kind.

use std::collections::{HashMap, VecDeque};
use wormhole_kernel::{LinkSpec, NodeKind};

/// Round trip and bandwidth-delay product of a pair of hosts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct PairFacts {
    /// `2 * delay + txDelay`, in nanoseconds: payloads one way, no headers, no ACKs.
    pub rtt_ns: u64,
    /// In bytes.
    pub bdp: u64,
    /// Least rate on the path, bit/s.
    pub bandwidth: u64,
}

/// A link end as its node sees it; of parallel links ns-3 keeps the last.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Edge {
    to: u32,
    rate: u64,
    delay_ns: u64,
}

/// Sums along the path by which a search first reached a node.
#[derive(Clone, Copy, Debug)]
struct Reached {
    delay_ns: u64,
    tx_ns: u64,
    bandwidth: u64,
    /// When the search went on from this node: earlier ones reach their neighbours first.
    order: usize,
}

/// See the module.
#[derive(Clone, Debug)]
pub struct Ns3Setup {
    edges: Vec<Vec<Edge>>,
    is_host: Vec<bool>,
    mtu: u64,
    /// Kind of each host.
    kinds: Vec<usize>,
    /// Switches reached from a kind of host.
    searches: HashMap<usize, Vec<Option<Reached>>>,
    pairs: HashMap<(usize, usize), Option<PairFacts>>,
}

impl Ns3Setup {
    /// Prepares for a topology. `mtu` is `PACKET_PAYLOAD_SIZE`, in bytes.
    pub fn new(nodes: &[NodeKind], links: &[LinkSpec], mtu: u32) -> Ns3Setup {
        let is_host: Vec<bool> = nodes.iter().map(|k| *k == NodeKind::Host).collect();
        let mut maps = vec![HashMap::new(); nodes.len()];
        for link in links {
            for (from, to) in [(link.a, link.b), (link.b, link.a)] {
                let edge = Edge { to: to.0, rate: link.rate.0, delay_ns: link.delay.as_ns() };
                maps[from.index()].insert(to, edge);
            }
        }
        let order = |e: &Edge| (!is_host[e.to as usize], if is_host[e.to as usize] { e.to } else { u32::MAX - e.to });
        let edges: Vec<Vec<Edge>> = maps
            .into_iter()
            .map(|map| {
                let mut edges: Vec<Edge> = map.into_values().collect();
                edges.sort_by_key(order);
                edges
            })
            .collect();
        let mut known = HashMap::new();
        let kinds = edges
            .iter()
            .map(|e| {
                let next = known.len();
                *known.entry(e.clone()).or_insert(next)
            })
            .collect();
        Ns3Setup { edges, is_host, mtu: mtu as u64, kinds, searches: HashMap::new(), pairs: HashMap::new() }
    }

    /// Facts of the pair, or `None` if no path joins them.
    pub fn pair(&mut self, src: u32, dst: u32) -> Option<PairFacts> {
        if let Some(edge) = self.edges[dst as usize].iter().find(|e| e.to == src).copied() {
            return Some(self.facts(&self.step(None, &edge)));
        }
        let key = (self.kinds[src as usize], self.kinds[dst as usize]);
        if let Some(known) = self.pairs.get(&key) {
            return *known;
        }
        let root = key.1;
        if !self.searches.contains_key(&root) {
            let search = self.search(dst);
            self.searches.insert(root, search);
        }
        let reached = &self.searches[&root];
        let first = self.edges[src as usize]
            .iter()
            .filter_map(|e| Some((e, reached[e.to as usize].as_ref()?)))
            .min_by_key(|(_, r)| r.order);
        let facts = first.map(|(edge, reached)| self.facts(&self.step(Some(reached), edge)));
        self.pairs.insert(key, facts);
        facts
    }

    /// Greatest round-trip time and greatest bandwidth-delay product of all pairs (`maxRtt`, `maxBdp`).
    pub fn maxima(&mut self) -> PairFacts {
        // Of each kind of host two stand for all: pairs of the same kind count too.
        let mut samples: HashMap<usize, Vec<u32>> = HashMap::new();
        for host in (0..self.is_host.len() as u32).filter(|&n| self.is_host[n as usize]) {
            let of_kind = samples.entry(self.kinds[host as usize]).or_default();
            if of_kind.len() < 2 {
                of_kind.push(host);
            }
        }
        let hosts: Vec<u32> = samples.into_values().flatten().collect();
        let mut maxima = PairFacts::default();
        for &src in &hosts {
            for &dst in hosts.iter().filter(|&&d| d != src) {
                if let Some(facts) = self.pair(src, dst) {
                    maxima.rtt_ns = maxima.rtt_ns.max(facts.rtt_ns);
                    maxima.bdp = maxima.bdp.max(facts.bdp);
                }
            }
        }
        maxima
    }

    fn step(&self, from: Option<&Reached>, edge: &Edge) -> Reached {
        let start = Reached { delay_ns: 0, tx_ns: 0, bandwidth: u64::MAX, order: 0 };
        let from = from.unwrap_or(&start);
        Reached {
            delay_ns: from.delay_ns + edge.delay_ns,
            tx_ns: from.tx_ns + (self.mtu * 1_000_000_000 * 8) / edge.rate,
            bandwidth: from.bandwidth.min(edge.rate),
            order: 0,
        }
    }

    fn facts(&self, reached: &Reached) -> PairFacts {
        let rtt_ns = 2 * reached.delay_ns + reached.tx_ns;
        let bits = rtt_ns as u128 * reached.bandwidth as u128 / 1_000_000_000;
        PairFacts { rtt_ns, bdp: (bits / 8) as u64, bandwidth: reached.bandwidth }
    }

    /// Breadth-first search from a host; hosts are not gone on from (`CalculateRoute`).
    fn search(&self, root: u32) -> Vec<Option<Reached>> {
        let mut reached: Vec<Option<Reached>> = vec![None; self.edges.len()];
        let mut queue = VecDeque::from([(root, None)]);
        let mut order = 0;
        while let Some((node, at)) = queue.pop_front() {
            order += 1;
            if let Some(r) = &mut reached[node as usize] {
                r.order = order;
            }
            for edge in &self.edges[node as usize] {
                let to = edge.to as usize;
                if !self.is_host[to] && reached[to].is_none() {
                    // A link has one rate and delay, whichever end it is seen from.
                    let next = self.step(at.as_ref(), edge);
                    reached[to] = Some(next);
                    queue.push_back((edge.to, Some(next)));
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::{BitRate, NodeId, Span};

    fn star(hosts: u32, gbps: u64, delay_ns: u64) -> (Vec<NodeKind>, Vec<LinkSpec>) {
        let mut nodes = vec![NodeKind::Host; hosts as usize];
        nodes.push(NodeKind::Switch);
        let link = |a| LinkSpec {
            a: NodeId(a),
            b: NodeId(hosts),
            rate: BitRate::from_gbps(gbps),
            delay: Span::from_ns(delay_ns),
            loss: 0,
        };
        (nodes, (0..hosts).map(link).collect())
    }

    #[test]
    fn star_of_the_reference_runs() {
        let (nodes, links) = star(4, 100, 1_000);
        let mut setup = Ns3Setup::new(&nodes, &links, 1_000);
        let want = PairFacts { rtt_ns: 4_160, bdp: 52_000, bandwidth: 100_000_000_000 };
        assert_eq!(setup.pair(0, 3), Some(want));
        let maxima = setup.maxima();
        assert_eq!((maxima.rtt_ns, maxima.bdp), (4_160, 52_000));
    }

    #[test]
    fn unreachable_pairs_have_no_facts() {
        let (mut nodes, links) = star(2, 100, 1_000);
        nodes.push(NodeKind::Host);
        assert_eq!(Ns3Setup::new(&nodes, &links, 1_000).pair(0, 3), None);
    }
}

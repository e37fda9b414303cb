//! What ns-3's driver derives from a topology before a run (`third.cc`): round-trip times and bandwidth-delay
//! products of host pairs, and their maxima.
//!
//! It does so for every pair of hosts. Hosts that hang on the same switches by equal links are alike, so here one of
//! each kind stands for all: a star of thousands of hosts has one kind. Switches that know hosts only, such as the
//! NVSwitch of a server, lead no further: they make hosts different only to those that they share them with.

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
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
    /// Whether a node knows a switch.
    leads_further: Vec<bool>,
    mtu: u64,
    /// Kind of each host, by its switches that lead further.
    kinds: Vec<usize>,
    /// Those switches, as they are reached from a kind of host.
    searches: HashMap<usize, HashMap<u32, Reached>>,
    /// Of hosts that share no switch.
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
        let knows_switch = |e: &Vec<Edge>| e.iter().any(|next| !is_host[next.to as usize]);
        let leads_further: Vec<bool> = edges.iter().map(knows_switch).collect();
        let mut known = HashMap::new();
        let kinds = edges
            .iter()
            .map(|e| {
                let next = known.len();
                *known
                    .entry(e.iter().filter(|e| leads_further[e.to as usize]).copied().collect::<Vec<_>>())
                    .or_insert(next)
            })
            .collect();
        let (mtu, searches, pairs) = (mtu.into(), HashMap::new(), HashMap::new());
        Ns3Setup { edges, is_host, leads_further, mtu, kinds, searches, pairs }
    }

    /// Facts of the pair, or `None` if no path joins them.
    pub fn pair(&mut self, src: u32, dst: u32) -> Option<PairFacts> {
        let edge_to = |host: u32, to: u32| self.edges[host as usize].iter().find(|e| e.to == to);
        if let Some(edge) = edge_to(dst, src) {
            return Some(self.facts(&self.step(None, edge)));
        }
        // The search comes to the destination's own switches before all others.
        let shared = self.switches(dst).find_map(|down| Some((down, edge_to(src, down.to)?)));
        if let Some((down, up)) = shared {
            return Some(self.facts(&self.step(Some(&self.step(None, down)), up)));
        }
        let key = (self.kinds[src as usize], self.kinds[dst as usize]);
        if let Some(known) = self.pairs.get(&key) {
            return *known;
        }
        if !self.searches.contains_key(&key.1) {
            let search = self.search(dst);
            self.searches.insert(key.1, search);
        }
        let reached = &self.searches[&key.1];
        let first = self.switches(src).filter_map(|e| Some((e, reached.get(&e.to)?))).min_by_key(|(_, r)| r.order);
        let facts = first.map(|(edge, reached)| self.facts(&self.step(Some(reached), edge)));
        self.pairs.insert(key, facts);
        facts
    }

    /// Links of a node to switches.
    fn switches(&self, node: u32) -> impl Iterator<Item = &Edge> {
        self.edges[node as usize].iter().filter(|e| !self.is_host[e.to as usize])
    }

    /// Greatest round-trip time and greatest bandwidth-delay product of all pairs (`maxRtt`, `maxBdp`).
    pub fn maxima(&mut self) -> PairFacts {
        let mut maxima = PairFacts::default();
        for hosts in self.samples() {
            for &src in &hosts {
                for &dst in hosts.iter().filter(|&&d| d != src) {
                    if let Some(facts) = self.pair(src, dst) {
                        maxima.rtt_ns = maxima.rtt_ns.max(facts.rtt_ns);
                        maxima.bdp = maxima.bdp.max(facts.bdp);
                    }
                }
            }
        }
        maxima
    }

    /// Hosts whose pairs, in each set, stand for all: two of each kind, and at each switch that leads no further two of
    /// each kind by their links to it.
    fn samples(&self) -> Vec<Vec<u32>> {
        fn two_of_each<K: Eq + Hash>(hosts: impl Iterator<Item = (K, u32)>) -> Vec<u32> {
            let mut seen: HashMap<K, u32> = HashMap::new();
            hosts
                .filter_map(|(kind, host)| {
                    let count = seen.entry(kind).or_default();
                    *count += 1;
                    (*count <= 2).then_some(host)
                })
                .collect()
        }
        let nodes = || 0..self.is_host.len() as u32;
        let hosts = nodes().filter(|&n| self.is_host[n as usize]);
        let ends = nodes().filter(|&n| !self.is_host[n as usize] && !self.leads_further[n as usize]);
        let at_end = |end: u32| two_of_each(self.edges[end as usize].iter().map(|e| ((e.rate, e.delay_ns), e.to)));
        let all = two_of_each(hosts.map(|host| (self.kinds[host as usize], host)));
        std::iter::once(all).chain(ends.map(at_end)).collect()
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

    /// Breadth-first search from a host over the switches that lead further; hosts are not gone on from
    /// (`CalculateRoute`).
    fn search(&self, root: u32) -> HashMap<u32, Reached> {
        let mut reached: HashMap<u32, Reached> = HashMap::new();
        let mut queue = VecDeque::from([(root, None)]);
        let mut order = 0;
        while let Some((node, at)) = queue.pop_front() {
            order += 1;
            if let Some(r) = reached.get_mut(&node) {
                r.order = order;
            }
            for edge in self.switches(node).filter(|e| self.leads_further[e.to as usize]) {
                if let Entry::Vacant(new) = reached.entry(edge.to) {
                    // A link has one rate and delay, whichever end it is seen from.
                    let next = self.step(at.as_ref(), edge);
                    new.insert(next);
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
    use wormhole_models::topology::{FabricPlan, Rail};

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

    /// What ns-3 does for a pair: a search from its destination over all switches.
    fn by_search(setup: &Ns3Setup, src: u32, dst: u32) -> Option<PairFacts> {
        if let Some(edge) = setup.edges[dst as usize].iter().find(|e| e.to == src) {
            return Some(setup.facts(&setup.step(None, edge)));
        }
        let (mut reached, mut queue): (Vec<(u32, Reached)>, _) = (Vec::new(), VecDeque::from([(dst, None)]));
        while let Some((node, at)) = queue.pop_front() {
            for edge in setup.switches(node) {
                if reached.iter().all(|(known, _)| *known != edge.to) {
                    let next = setup.step(at.as_ref(), edge);
                    reached.push((edge.to, next));
                    queue.push_back((edge.to, Some(next)));
                }
            }
        }
        let edge_to = |to| setup.switches(src).find(|e| e.to == to);
        let first = reached.iter().find_map(|(switch, at)| Some((at, edge_to(*switch)?)));
        first.map(|(at, edge)| setup.facts(&setup.step(Some(at), edge)))
    }

    #[test]
    fn pairs_of_a_rail_fabric_are_those_of_a_search() {
        let plan = Rail { servers: 6, gpus_per_server: 2, servers_per_leaf: 2, spines: 2, ..Rail::default() };
        let nodes: Vec<NodeKind> = (0..plan.size().nodes as u32).map(|id| plan.node(NodeId(id))).collect();
        let mut links = Vec::new();
        plan.each_link(&mut |link| links.push(link));
        // Hosts 0 and 4 are joined directly, too, and a NIC of host 2 is slower.
        links.push(LinkSpec { a: NodeId(0), b: NodeId(4), ..links[0] });
        links[2].rate = BitRate::from_gbps(100);
        let mut setup = Ns3Setup::new(&nodes, &links, 1_000);
        let mut maxima = PairFacts::default();
        for (src, dst) in (0..12).flat_map(|src| (0..12).map(move |dst| (src, dst))).filter(|(src, dst)| src != dst) {
            let want = by_search(&setup, src, dst);
            assert_eq!(setup.pair(src, dst), want, "{src} to {dst}");
            let want = want.expect("a path");
            (maxima.rtt_ns, maxima.bdp) = (maxima.rtt_ns.max(want.rtt_ns), maxima.bdp.max(want.bdp));
        }
        let found = setup.maxima();
        assert_eq!((found.rtt_ns, found.bdp), (maxima.rtt_ns, maxima.bdp));
    }

    #[test]
    fn unreachable_pairs_have_no_facts() {
        let (mut nodes, links) = star(2, 100, 1_000);
        nodes.push(NodeKind::Host);
        assert_eq!(Ns3Setup::new(&nodes, &links, 1_000).pair(0, 3), None);
    }
}

//! A simulation as plain data: all that its input files and the command line say. It is written as files that
//! `wormhole run` reads, is read by the same code, and can be made smaller.

use crate::shrink::{Shrink, without_some};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::{self, Write};
use std::fs;
use std::path::Path;
use wormhole::input::topology::{Dialect, Topology, write_topology};
use wormhole::load::{Loaded, Texts, load_texts};
use wormhole::memo::{Memo, MemoKeys, MemoOptions};
use wormhole::scenario::{CcaName, Options, Profile, Routing, tier_name};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::{BitRate, LinkSpec, NodeId, NodeKind, Span};

/// A flow, as a row of a flow file. Times are in nanoseconds: profile ns3 knows no others.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Flow {
    /// Sending host.
    pub src: u32,
    /// Receiving host.
    pub dst: u32,
    /// Priority.
    pub priority: u8,
    /// UDP destination port.
    pub port: u16,
    /// Payload.
    pub bytes: u64,
    /// When it starts.
    pub start_ns: u64,
}

/// A link, or all links of a node, go down or come up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Change {
    /// When.
    pub at_ns: u64,
    /// Up, or down.
    pub up: bool,
    /// A node.
    pub a: u32,
    /// The links to this one only.
    pub b: Option<u32>,
}

/// See the module.
#[derive(Clone, PartialEq, Debug)]
pub struct World {
    /// Hosts and switches.
    pub nodes: Vec<NodeKind>,
    /// Between them.
    pub links: Vec<LinkSpec>,
    /// The traffic.
    pub flows: Vec<Flow>,
    /// Failures and repairs.
    pub changes: Vec<Change>,
    /// Keys of the configuration, and their values.
    pub config: BTreeMap<&'static str, String>,
    /// Model family.
    pub profile: Profile,
    /// Router.
    pub routing: Routing,
    /// Congestion control.
    pub cca: CcaName,
    /// Seed of what is random in the simulation.
    pub seed: u64,
    /// Most frames at once.
    pub max_packets: usize,
    /// Acceleration.
    pub acceleration: Acceleration,
    /// Memoisation.
    pub memo_keys: MemoKeys,
}

/// Frames that no small world runs out of.
pub const ENOUGH_PACKETS: usize = 1 << 16;
/// What links become as a world shrinks.
const PLAIN_RATE: BitRate = BitRate::from_gbps(100);
const PLAIN_DELAY: Span = Span::from_us(1);

impl World {
    /// A fabric without traffic and with default models.
    pub fn new(nodes: Vec<NodeKind>, links: Vec<LinkSpec>) -> World {
        World {
            nodes,
            links,
            flows: vec![],
            changes: vec![],
            config: BTreeMap::new(),
            profile: Profile::Ps,
            routing: Routing::Ecmp,
            cca: CcaName::Dcqcn,
            seed: 1,
            max_packets: ENOUGH_PACKETS,
            acceleration: Acceleration { tier: Tier::Exact, detector: Detector::CYCLE },
            memo_keys: MemoKeys::Off,
        }
    }

    /// Whether frames may be lost by chance or with a link.
    pub fn may_lose(&self) -> bool {
        !self.changes.is_empty() || self.links.iter().any(|link| link.loss > 0)
    }

    /// Whether queues could come to wait for each other in a circle: flows over all their shortest paths, as long as
    /// no link changes. Acknowledgements share queues with data.
    pub fn may_deadlock(&self) -> bool {
        !self.changes.is_empty() || has_circle(&self.hops_that_follow())
    }

    /// Of each directed link those that may come next on a flow's way.
    fn hops_that_follow(&self) -> BTreeMap<[u32; 2], BTreeSet<[u32; 2]>> {
        let ends = |link: &LinkSpec| [[link.a.0, link.b.0], [link.b.0, link.a.0]];
        let hops: BTreeSet<[u32; 2]> = self.links.iter().flat_map(ends).collect();
        let pairs: BTreeSet<[u32; 2]> =
            self.flows.iter().flat_map(|flow| [[flow.src, flow.dst], [flow.dst, flow.src]]).collect();
        let mut follow = BTreeMap::<_, BTreeSet<_>>::new();
        for [src, dst] in pairs {
            let distances = self.distances(dst);
            let nearer = |[from, to]: [u32; 2]| {
                let [from, to] = [from, to].map(|node| distances[node as usize]);
                from != u32::MAX && to.checked_add(1) == Some(from)
            };
            let (mut next, mut seen) = (vec![src], BTreeSet::new());
            while let Some(node) = next.pop().filter(|&node| node != dst) {
                for &hop in hops.iter().filter(|hop| hop[0] == node && nearer(**hop)) {
                    follow.entry(hop).or_default().extend(hops.iter().filter(|h| h[0] == hop[1] && nearer(**h)));
                    if seen.insert(hop) {
                        next.push(hop[1]);
                    }
                }
            }
        }
        follow
    }

    /// Hops of every node to a host; hosts do not forward.
    fn distances(&self, dst: u32) -> Vec<u32> {
        let mut distances = vec![u32::MAX; self.nodes.len()];
        distances[dst as usize] = 0;
        let mut next = VecDeque::from([dst]);
        while let Some(node) = next.pop_front() {
            if node != dst && self.nodes[node as usize] == NodeKind::Host {
                continue;
            }
            for other in self.links.iter().filter_map(|link| other_end(link, node)) {
                if distances[other as usize] == u32::MAX {
                    distances[other as usize] = distances[node as usize] + 1;
                    next.push_back(other);
                }
            }
        }
        distances
    }

    /// The world as `wormhole` reads it, with this tier.
    pub fn load(&self, tier: Tier) -> Loaded {
        let [topology, flows, config, changes] = [self.topology(), self.flow_rows(), self.config(), self.change_rows()];
        let texts = Texts {
            topology: ("topology.txt", &topology),
            flows: Some(("flows.txt", &flows)),
            config: Some(("config.txt", &config)),
            link_events: Some(("link-events.txt", &changes)),
        };
        let options = Options {
            profile: self.profile,
            routing: self.routing,
            cca: Some(self.cca),
            seed: self.seed,
            max_packets: self.max_packets,
            acceleration: Acceleration { tier, ..self.acceleration },
            ..Options::PLAIN
        };
        load_texts(&texts, &options)
    }

    /// An empty memo as the world asks for, if it asks for one that this tier can have.
    pub fn memo(&self, tier: Tier) -> Option<Memo> {
        let possible = tier != Tier::Off && !(tier == Tier::Exact && self.memo_keys == MemoKeys::Quantised);
        if self.memo_keys == MemoKeys::Off || !possible {
            return None;
        }
        Memo::open(MemoOptions { keys: Some(self.memo_keys), check: 0, limit_words: 1 << 18 }, None, tier).0
    }

    /// Writes the world into a folder, and gives the command that runs it there.
    ///
    /// # Panics
    /// If the folder cannot be written.
    pub fn write(&self, folder: &Path) -> String {
        fs::create_dir_all(folder).expect("a folder");
        let files = [
            ("topology.txt", self.topology()),
            ("flows.txt", self.flow_rows()),
            ("config.txt", self.config()),
            ("link-events.txt", self.change_rows()),
            ("scenario.toml", self.scenario()),
        ];
        files.iter().for_each(|(name, text)| fs::write(folder.join(name), text).expect("a file"));
        "wormhole run scenario.toml --flows flows.txt --out out".into()
    }

    fn topology(&self) -> String {
        let (nodes, links) = (self.nodes.clone(), self.links.clone());
        let topology = Topology { dialect: Dialect::Hpcc, nodes, links, gpus_per_server: None, gpu_type: None };
        let mut text = Vec::new();
        write_topology(&topology, &mut text).expect("memory");
        String::from_utf8(text).expect("text")
    }

    fn flow_rows(&self) -> String {
        let mut flows = self.flows.clone();
        flows.sort_by_key(|flow| flow.start_ns);
        let mut text = format!("{}\n", flows.len());
        for Flow { src, dst, priority, port, bytes, start_ns } in flows {
            let (s, ns) = (start_ns / 1_000_000_000, start_ns % 1_000_000_000);
            writeln!(text, "{src} {dst} {priority} {port} {bytes} {s}.{ns:09}").expect("memory");
        }
        text
    }

    fn change_rows(&self) -> String {
        let row = |change: &Change| {
            let Change { at_ns, up, a, b } = *change;
            let (time, what) = (format!("{}.{:03}", at_ns / 1_000, at_ns % 1_000), if up { "up" } else { "down" });
            format!("{time} {what} {a}{}\n", b.map_or(String::new(), |b| format!(" {b}")))
        };
        self.changes.iter().map(row).collect()
    }

    fn config(&self) -> String {
        self.config.iter().map(|(key, value)| format!("{key} {value}\n")).collect()
    }

    fn scenario(&self) -> String {
        let routing = if self.routing == Routing::Spray { "spray" } else { "ecmp" };
        let keys = match self.memo_keys {
            MemoKeys::Exact => "exact",
            MemoKeys::Quantised => "quantised",
            MemoKeys::Off => "off",
        };
        let (detector, theta, window) = match self.acceleration.detector {
            Detector::Cycle { theta, window } => ("cycle", theta, window.0 / 1_000_000),
            Detector::Paper { theta, samples, .. } => ("paper", theta, samples.into()),
        };
        let cca = format!("{:?}", self.cca).to_lowercase();
        format!(
            "# Made by a test.\n[fabric]\nfile = 'topology.txt'\n\n[models]\nconfig = 'config.txt'\n\
             link-events = 'link-events.txt'\nprofile = '{}'\nrouting = '{routing}'\ncca = '{cca}'\nseed = {}\n\
             max-packets = {}\n\n[acceleration]\naccel = '{}'\ndetector = '{detector}'\ntheta = {}\nwindow = {window}\n\
             memo-keys = '{keys}'\n",
            self.profile.name(),
            self.seed,
            self.max_packets,
            tier_name(self.acceleration.tier),
            f64::from(theta) / 1e4,
        )
    }

    /// Whether every flow has a path over switches, with all links up.
    fn is_connected(&self) -> bool {
        let mut known: BTreeMap<u32, Vec<u32>> = BTreeMap::new();
        let mut has_path = |flow: &Flow| {
            let distances = known.entry(flow.dst).or_insert_with(|| self.distances(flow.dst));
            distances[flow.src as usize] != u32::MAX
        };
        self.flows.iter().all(&mut has_path)
    }

    /// The world without a node; its links go too, or become those of `heir`.
    fn without_node(&self, gone: u32, heir: Option<u32>) -> Option<World> {
        let moved = |node: u32| match heir {
            Some(heir) if node == gone => Some(heir),
            None if node == gone => None,
            _ => Some(node),
        };
        let renamed = |node: u32| moved(node).map(|node| node - u32::from(node > gone));
        let mut world = self.clone();
        world.nodes.remove(gone as usize);
        let link =
            |link: &LinkSpec| Some(LinkSpec { a: NodeId(renamed(link.a.0)?), b: NodeId(renamed(link.b.0)?), ..*link });
        world.links = self.links.iter().filter_map(link).filter(|link| link.a != link.b).collect();
        let flow = |flow: &Flow| Some(Flow { src: renamed(flow.src)?, dst: renamed(flow.dst)?, ..*flow });
        world.flows = self.flows.iter().map(flow).collect::<Option<_>>()?;
        let change = |change: &Change| {
            let b = match change.b {
                Some(b) => Some(renamed(b)?),
                None => None,
            };
            Some(Change { a: renamed(change.a)?, b, ..*change })
        };
        world.changes = self.changes.iter().filter_map(change).collect();
        world.drop_void_changes();
        Some(world)
    }

    /// Takes out changes of links that are not there any more.
    fn drop_void_changes(&mut self) {
        let World { links, changes, .. } = self;
        changes.retain(|&Change { a, b, .. }| match b {
            Some(b) => links.iter().any(|link| other_end(link, a) == Some(b)),
            None => links.iter().any(|link| other_end(link, a).is_some()),
        });
    }

    fn fewer_nodes(&self) -> Vec<World> {
        let idle = |node: u32| self.flows.iter().all(|flow| flow.src != node && flow.dst != node);
        let all: Vec<u32> = (0..self.nodes.len() as u32).rev().filter(|&node| idle(node)).collect();
        let mut worlds: Vec<World> = vec![];
        // All at once that nobody needs, then each; a switch may leave its links to the next one.
        let without = |world: World, &node: &u32| world.without_node(node, None).unwrap_or(world);
        worlds.push(all.iter().filter(|&&n| self.nodes[n as usize] == NodeKind::Host).fold(self.clone(), without));
        worlds.extend(all.iter().filter_map(|&node| self.without_node(node, None)));
        let switches = |link: &&LinkSpec| [link.a, link.b].iter().all(|n| self.nodes[n.index()] != NodeKind::Host);
        worlds.extend(self.links.iter().filter(switches).filter_map(|l| self.without_node(l.b.0, Some(l.a.0))));
        worlds
    }

    fn fewer_links(&self) -> Vec<World> {
        let with = |links| {
            let mut world = World { links, ..self.clone() };
            world.drop_void_changes();
            world
        };
        without_some(&self.links).into_iter().map(with).collect()
    }

    /// Everything of a kind made plain, all at once and one by one.
    fn plainer(&self) -> Vec<World> {
        let mut worlds = vec![];
        let mut with = |change: &dyn Fn(&mut World)| {
            let mut world = self.clone();
            change(&mut world);
            worlds.push(world);
        };
        with(&|w| w.config.clear());
        self.config.keys().for_each(|&key| {
            with(&|w| {
                w.config.remove(key);
            });
        });
        with(&|w| w.profile = Profile::Ps);
        with(&|w| w.routing = Routing::Ecmp);
        with(&|w| w.memo_keys = MemoKeys::Off);
        with(&|w| w.acceleration.detector = Detector::CYCLE);
        with(&|w| w.max_packets = w.max_packets.max(ENOUGH_PACKETS));
        with(&|w| w.links.iter_mut().for_each(|link| link.loss = 0));
        with(&|w| w.links.iter_mut().for_each(|link| link.rate = PLAIN_RATE));
        with(&|w| w.links.iter_mut().for_each(|link| link.delay = PLAIN_DELAY));
        let Flow { src, dst, .. } = self.flows[0];
        with(&|w| w.flows.iter_mut().filter(|flow| flow.dst != src).for_each(|flow| flow.src = src));
        with(&|w| w.flows.iter_mut().filter(|flow| flow.src != dst).for_each(|flow| flow.dst = dst));
        with(&|w| w.flows.iter_mut().for_each(|flow| flow.start_ns = 0));
        with(&|w| w.flows.iter_mut().for_each(|flow| flow.priority = 3));
        with(&|w| w.flows.iter_mut().for_each(|flow| flow.port = 100));
        with(&|w| w.flows.iter_mut().for_each(|flow| flow.bytes = flow.bytes.div_ceil(2)));
        with(&|w| w.changes.iter_mut().for_each(|change| change.at_ns /= 2));
        for at in 0..self.links.len() {
            with(&|w| w.links[at] = LinkSpec { rate: PLAIN_RATE, delay: PLAIN_DELAY, loss: 0, ..w.links[at] });
        }
        for at in 0..self.flows.len() {
            with(&|w| w.flows[at].bytes = 1);
            with(&|w| w.flows[at].bytes = w.flows[at].bytes.div_ceil(2));
            with(&|w| w.flows[at].bytes = w.flows[at].bytes.max(2) - 1);
            with(&|w| w.flows[at].start_ns /= 2);
        }
        worlds
    }
}

/// Whether what follows what leads back to where it began: what is left once everything is taken away that nothing
/// follows.
fn has_circle(follow: &BTreeMap<[u32; 2], BTreeSet<[u32; 2]>>) -> bool {
    let mut left = follow.clone();
    loop {
        let ends: Vec<[u32; 2]> =
            left.iter().filter(|(_, next)| next.iter().all(|n| !left.contains_key(n))).map(|(hop, _)| *hop).collect();
        if ends.is_empty() {
            return !left.is_empty();
        }
        ends.iter().for_each(|hop| {
            left.remove(hop);
        });
    }
}

/// The other end of a link, if `node` is one of its ends.
fn other_end(link: &LinkSpec, node: u32) -> Option<u32> {
    match (link.a.0, link.b.0) {
        (a, b) if a == node => Some(b),
        (a, b) if b == node => Some(a),
        _ => None,
    }
}

impl Shrink for World {
    fn smaller(&self) -> Vec<World> {
        let flows = without_some(&self.flows).into_iter().filter(|flows| !flows.is_empty());
        let mut worlds: Vec<World> = flows.map(|flows| World { flows, ..self.clone() }).collect();
        worlds.extend(without_some(&self.changes).into_iter().map(|changes| World { changes, ..self.clone() }));
        worlds.extend(self.fewer_nodes());
        worlds.extend(self.fewer_links());
        worlds.extend(self.plainer());
        worlds.retain(|world| world != self && world.is_connected());
        worlds
    }
}

impl fmt::Display for World {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let World { profile, cca, routing, acceleration, .. } = self;
        let (hosts, flows) = (self.nodes.iter().filter(|k| **k == NodeKind::Host).count(), self.flows.len());
        let (switches, links, changes) = (self.nodes.len() - hosts, self.links.len(), self.changes.len());
        write!(
            f,
            "{hosts} hosts, {switches} switches, {links} links, {flows} flows, {changes} link changes, {profile:?}, \
             {routing:?}, {cca:?}, {:?}, {} packets, {:?}",
            acceleration.tier, self.max_packets, self.config
        )
    }
}

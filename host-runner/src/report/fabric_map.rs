//! The fabric, drawn by tiers: how busy its links were, and how long its queues got.
//!
//! Hosts are at the bottom, above them the switches by their distance from hosts, below them the NVSwitches. A tier of
//! many nodes is drawn as boxes of neighbours, so that the drawing stays small; a box and a line show the busiest that
//! is in them.

use super::format::{bytes, count, percent, percent_aligned};
use super::svg::{WIDTH, legend, picture, px};
use super::table::Table;
use crate::input::units::format_rate;
use crate::scenario::Scenario;
use crate::simulate::{Outcome, PortReport};
use maud::{Markup, html};
use std::collections::{BTreeMap, VecDeque};
use std::fmt::Write;
use wormhole_kernel::NodeKind;

/// Most boxes in a tier.
const MOST_BOXES: usize = 32;
/// Links in the table of the busiest.
const BUSIEST: usize = 12;

const LEFT: f64 = 104.0;
const BOX_HEIGHT: f64 = 20.0;
const TIER_HEIGHT: f64 = 96.0;

/// Nodes of one distance from hosts.
#[derive(Debug)]
struct Tier {
    /// What they are, in the plural.
    name: String,
    /// Neighbours that share a box, from left to right.
    boxes: Vec<Vec<usize>>,
}

/// Where a node's box is: which tier, which box in it.
type Place = (usize, usize);

/// A fabric by tiers, from the bottom up.
struct Layout {
    tiers: Vec<Tier>,
    places: Vec<Place>,
}

/// The section.
pub(super) fn section(scenario: &Scenario, outcome: &Outcome) -> Markup {
    let layout = Layout::of(scenario);
    let seconds = outcome.end.since(scenario.start().min(outcome.end)).0 as f64 / 1e12;
    let utilisation = |port: &PortReport| {
        let possible = port.info.rate.0 as f64 / 8.0 * seconds;
        if possible > 0.0 { port.stats.bytes as f64 / possible } else { 0.0 }
    };
    let queue = |port: &PortReport| port.stats.max_queue as f64;
    let busy = Heat::of_utilisation();
    let long = Heat::of_queues(outcome.ports.iter().map(queue).fold(0.0, f64::max));
    html! {
        section #fabric {
            h2 { "Fabric" }
            p { "Utilisation is the share of the time from the first start to the end that was spent sending; mean "
                "queues "
                "are over that time, too. "
                "Of the two directions of a link the busier one is drawn; of nodes and links that share a box or a "
                "line, the "
                "busiest." }
            div.columns {
                figure {
                    (layout.map("utilisation-map", "Link utilisation", outcome, &busy, &utilisation))
                    (busy.legend())
                    figcaption { "Utilisation of links, and of the busiest egress port of each node." }
                }
                figure {
                    (layout.map("queue-map", "Longest queues", outcome, &long, &queue))
                    (long.legend())
                    figcaption { "Most bytes that ever waited at an egress port. Hosts' own queues are not measured." }
                }
            }
            (directions(&layout, outcome, seconds, &utilisation))
            (busiest(outcome, &utilisation))
        }
    }
}

impl Layout {
    fn of(scenario: &Scenario) -> Layout {
        let distances = distances(scenario);
        let switches = distances.iter().flatten().copied().max().unwrap_or(0);
        let hosts_of_server = largest_server(scenario);
        let mut tiers = Vec::new();
        let mut places = vec![(0, 0); scenario.nodes.len()];
        let nodes_of = |distance: Option<usize>| -> Vec<usize> {
            (0..scenario.nodes.len()).filter(|node| distances[*node] == distance).collect()
        };
        let of_tiers = std::iter::once(("NVSwitches".to_owned(), nodes_of(None)))
            .chain((0..=switches).map(|distance| (tier_name(distance, switches), nodes_of(Some(distance)))));
        for (name, nodes) in of_tiers.filter(|(_, nodes)| !nodes.is_empty()) {
            let unit = if name == "hosts" { hosts_of_server } else { 1 };
            let size = box_size(nodes.len(), unit);
            let boxes: Vec<Vec<usize>> = nodes.chunks(size).map(<[usize]>::to_vec).collect();
            for (number, nodes) in boxes.iter().enumerate() {
                nodes.iter().for_each(|node| places[*node] = (tiers.len(), number));
            }
            tiers.push(Tier { name, boxes });
        }
        Layout { tiers, places }
    }

    fn height(&self) -> f64 {
        self.tiers.len() as f64 * TIER_HEIGHT - (TIER_HEIGHT - BOX_HEIGHT) + 40.0
    }

    /// Upper edge of a tier.
    fn top(&self, tier: usize) -> f64 {
        20.0 + (self.tiers.len() - 1 - tier) as f64 * TIER_HEIGHT
    }

    /// Left edge and width of a box.
    fn span(&self, (tier, number): Place) -> (f64, f64) {
        let room = WIDTH - LEFT - 8.0;
        let boxes = self.tiers[tier].boxes.len() as f64;
        let pitch = room / boxes;
        let width = (pitch - if pitch > 30.0 { 8.0 } else { 2.0 }).min(72.0);
        (LEFT + pitch * (number as f64 + 0.5) - width / 2.0, width)
    }

    fn map(&self, id: &str, name: &str, outcome: &Outcome, heat: &Heat, value: &dyn Fn(&PortReport) -> f64) -> Markup {
        let (mut of_boxes, mut of_lines) = (BTreeMap::<Place, f64>::new(), BTreeMap::<(Place, Place), f64>::new());
        for port in &outcome.ports {
            let (here, there) = (self.places[port.info.node.index()], self.places[port.neighbour.index()]);
            let value = value(port);
            let of_box = of_boxes.entry(here).or_default();
            *of_box = of_box.max(value);
            if here != there {
                let of_line = of_lines.entry((here.min(there), here.max(there))).or_default();
                *of_line = of_line.max(value);
            }
        }
        let mut lines = vec![String::new(); HEATS];
        for ((low, high), value) in &of_lines {
            self.line(&mut lines[heat.class(*value)], *low, *high);
        }
        let tiers: Vec<String> = self.tiers.iter().rev().map(|tier| tier.name.clone()).collect();
        let description = format!(
            "The fabric by tiers, from top to bottom: {}. Darker boxes and lines, lighter ones on a dark page, have \
             more. The tables below have the figures.",
            tiers.join(", ")
        );
        picture(
            id,
            name,
            &description,
            self.height(),
            &html! {
                @for (class, path) in lines.iter().enumerate().filter(|(_, path)| !path.is_empty()) {
                    path class=(format!("link s{class}")) d=(path) {}
                }
                @for (number, tier) in self.tiers.iter().enumerate() {
                    (self.boxes(number, tier, &|place| heat.class(of_boxes.get(&place).copied().unwrap_or(0.0))))
                }
            },
        )
    }

    fn line(&self, path: &mut String, low: Place, high: Place) {
        let middle = |place| {
            let (left, width) = self.span(place);
            left + width / 2.0
        };
        let (from, to) = (middle(low), middle(high));
        // A string takes everything.
        let _ = if low.0 == high.0 {
            let y = self.top(low.0);
            write!(path, "M{} {}Q{} {} {} {}", px(from), px(y), px((from + to) / 2.0), px(y - 28.0), px(to), px(y))
        } else {
            let (from_y, to_y) = (self.top(low.0), self.top(high.0) + BOX_HEIGHT);
            write!(path, "M{} {}L{} {}", px(from), px(from_y), px(to), px(to_y))
        };
    }

    fn boxes(&self, number: usize, tier: &Tier, class: &dyn Fn(Place) -> usize) -> Markup {
        let top = self.top(number);
        let nodes: usize = tier.boxes.iter().map(Vec::len).sum();
        let in_box = tier.boxes[0].len();
        let longest = tier.boxes.iter().map(|nodes| nodes[0].to_string().len()).max().unwrap_or(0);
        let is_labelled = longest as f64 * 6.2 + 2.0 <= self.span((number, 0)).1;
        html! {
            text.tier x="0" y=(px(top + 9.0)) { (tier.name) }
            text.tick x="0" y=(px(top + 23.0)) {
                (count(nodes as u64)) @if in_box > 1 { ", " (in_box) " a box" }
            }
            @for (place, nodes) in tier.boxes.iter().enumerate() {
                @let (left, width) = self.span((number, place));
                @let class = class((number, place));
                rect class=(format!("node h{class}")) x=(px(left)) y=(px(top)) width=(px(width)) height=(px(BOX_HEIGHT))
                    rx="2" {
                    title { (nodes_title(nodes)) }
                }
                @if is_labelled {
                    text class=(format!("label t{class}")) x=(px(left + width / 2.0)) y=(px(top + 14.0))
                        text-anchor="middle" { (nodes[0]) }
                }
            }
        }
    }
}

fn nodes_title(nodes: &[usize]) -> String {
    match nodes {
        [node] => format!("node {node}"),
        [first, .., last] => format!("nodes {first} to {last}"),
        [] => String::new(),
    }
}

/// How many nodes share a box: as few as can be, and whole servers.
fn box_size(nodes: usize, server: usize) -> usize {
    if nodes <= MOST_BOXES { 1 } else { server * nodes.div_ceil(MOST_BOXES * server).next_power_of_two() }
}

/// Most hosts at one NVSwitch; 1 without NVSwitches.
fn largest_server(scenario: &Scenario) -> usize {
    let mut hosts = vec![0; scenario.nodes.len()];
    for link in &scenario.links {
        for (node, other) in [(link.a, link.b), (link.b, link.a)] {
            let joins =
                scenario.nodes[node.index()] == NodeKind::NvSwitch && scenario.nodes[other.index()] == NodeKind::Host;
            hosts[node.index()] += usize::from(joins);
        }
    }
    hosts.into_iter().max().unwrap_or(0).max(1)
}

/// Links from each node to the nearest host; `None` for NVSwitches, 1 for switches that no host reaches.
fn distances(scenario: &Scenario) -> Vec<Option<usize>> {
    let kinds = &scenario.nodes;
    let mut neighbours = vec![Vec::new(); kinds.len()];
    for link in &scenario.links {
        neighbours[link.a.index()].push(link.b.index());
        neighbours[link.b.index()].push(link.a.index());
    }
    let is_host = |node: &usize| kinds[*node] == NodeKind::Host;
    let mut distances: Vec<Option<usize>> = (0..kinds.len()).map(|node| is_host(&node).then_some(0)).collect();
    let mut next: VecDeque<usize> = (0..kinds.len()).filter(is_host).collect();
    while let Some(node) = next.pop_front() {
        for &other in &neighbours[node] {
            if kinds[other] == NodeKind::Switch && distances[other].is_none() {
                distances[other] = distances[node].map(|distance| distance + 1);
                next.push_back(other);
            }
        }
    }
    let lone = |(kind, distance): (&NodeKind, Option<usize>)| distance.or((*kind == NodeKind::Switch).then_some(1));
    kinds.iter().zip(distances).map(lone).collect()
}

/// Of nodes at this distance from hosts, in a fabric with so many tiers of switches.
fn tier_name(distance: usize, switches: usize) -> String {
    match (distance, switches) {
        (0, _) => "hosts".into(),
        (1, 1) => "switches".into(),
        (1, 2) => "leaves".into(),
        (2, 2) => "spines".into(),
        (1, 3) => "edge".into(),
        (2, 3) => "aggregation".into(),
        (3, 3) => "core".into(),
        _ => format!("tier {distance}"),
    }
}

/// Classes of heat.
const HEATS: usize = 7;

/// Which values have which colour.
struct Heat {
    /// Greatest values of all classes but the last.
    bounds: [f64; HEATS - 1],
    words: [String; HEATS],
}

impl Heat {
    fn of_utilisation() -> Heat {
        let bounds = [0.01, 0.1, 0.25, 0.5, 0.75, 0.9];
        let word = |class: usize| match bounds.get(class) {
            Some(bound) => format!("up to {}", percent(*bound)),
            None => "more".into(),
        };
        Heat { bounds, words: std::array::from_fn(word) }
    }

    /// Every class reaches about twice as far as the one before it: to 1, 2, 5 times a power of ten.
    fn of_queues(longest: f64) -> Heat {
        let round = (0..).flat_map(|power| [1.0, 2.0, 5.0].map(|unit| unit * 10f64.powi(power)));
        let above = round.clone().position(|bound| bound >= longest).unwrap_or(0).max(HEATS - 2);
        let bounds: Vec<f64> = std::iter::once(0.0).chain(round.skip(above - (HEATS - 2)).take(HEATS - 1)).collect();
        let word = |class: usize| if class == 0 { "none".into() } else { format!("up to {}", bytes(bounds[class])) };
        Heat { bounds: std::array::from_fn(|class| bounds[class]), words: std::array::from_fn(word) }
    }

    fn class(&self, value: f64) -> usize {
        self.bounds.iter().filter(|bound| value > **bound).count()
    }

    fn legend(&self) -> Markup {
        legend((0..HEATS).map(|class| format!("node h{class}")).zip(self.words.iter().map(String::as_str)))
    }
}

/// What the links from one tier to another have done, a row for each direction.
fn directions(layout: &Layout, outcome: &Outcome, seconds: f64, utilisation: &dyn Fn(&PortReport) -> f64) -> Markup {
    let mut groups: BTreeMap<(usize, usize), Vec<&PortReport>> = BTreeMap::new();
    for port in &outcome.ports {
        let tier = |node: usize| layout.places[node].0;
        groups.entry((tier(port.info.node.index()), tier(port.neighbour.index()))).or_default().push(port);
    }
    let mut table = Table::new("Links by direction", "from, to")
        .numbers("links")
        .numbers("sent")
        .numbers("mean utilisation %")
        .numbers("busiest %")
        .numbers("longest queue")
        .numbers("mean queue")
        .numbers("ECN marks")
        .numbers("pauses")
        .numbers("drops");
    for ((from, to), ports) in &groups {
        let sum = |value: &dyn Fn(&PortReport) -> u64| ports.iter().map(|port| value(port)).sum::<u64>();
        let most = |value: &dyn Fn(&PortReport) -> f64| ports.iter().map(|port| value(port)).fold(0.0, f64::max);
        let shares: f64 = ports.iter().map(|port| utilisation(port)).sum();
        let waiting = sum(&|port| port.stats.queue_byte_ns) as f64 / (seconds * 1e9).max(1e-3);
        table.row([
            format!("{} → {}", layout.tiers[*from].name, layout.tiers[*to].name),
            count(ports.len() as u64),
            bytes(sum(&|port| port.stats.bytes) as f64),
            percent_aligned(shares / ports.len() as f64),
            percent_aligned(most(utilisation)),
            bytes(most(&|port| port.stats.max_queue as f64)),
            bytes(waiting / ports.len() as f64),
            count(sum(&|port| port.stats.marks)),
            count(sum(&|port| port.stats.pauses)),
            count(sum(&|port| port.stats.drops)),
        ]);
    }
    table.markup()
}

fn busiest(outcome: &Outcome, utilisation: &dyn Fn(&PortReport) -> f64) -> Markup {
    let mut ports: Vec<&PortReport> = outcome.ports.iter().filter(|port| port.stats.frames > 0).collect();
    ports.sort_by(|a, b| utilisation(b).total_cmp(&utilisation(a)));
    let caption = format!("The busiest of {} directions of links", count(outcome.ports.len() as u64));
    let mut table = Table::new(caption, "from node, to node")
        .words("rate")
        .numbers("utilisation %")
        .numbers("sent")
        .numbers("frames")
        .numbers("longest queue")
        .numbers("ECN marks")
        .numbers("pauses")
        .numbers("drops");
    for port in ports.iter().take(BUSIEST) {
        table.row([
            format!("{} → {}", port.info.node.0, port.neighbour.0),
            format_rate(port.info.rate.0),
            percent_aligned(utilisation(port)),
            bytes(port.stats.bytes as f64),
            count(port.stats.frames),
            bytes(port.stats.max_queue as f64),
            count(port.stats.marks),
            count(port.stats.pauses),
            count(port.stats.drops),
        ]);
    }
    table.markup()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn boxes_are_few_and_hold_whole_servers() {
        assert_eq!([1, 32, 33, 64, 1_024].map(|nodes| box_size(nodes, 1)), [1, 1, 2, 2, 32]);
        assert_eq!([16, 128, 1_024, 4_096].map(|nodes| box_size(nodes, 8)), [1, 8, 32, 128]);
    }

    #[test]
    fn heat_has_as_many_classes_as_colours() {
        let busy = Heat::of_utilisation();
        assert_eq!([0.0, 0.01, 0.011, 0.5, 0.95, 1.0].map(|value| busy.class(value)), [0, 0, 1, 3, 6, 6]);
        let queues = Heat::of_queues(64_000.0);
        let values = [0.0, 1.0, 2_000.0, 2_001.0, 50_000.0, 64_000.0];
        assert_eq!(values.map(|value| queues.class(value)), [0, 1, 1, 2, 5, 6]);
        assert_eq!((queues.words[6].as_str(), queues.bounds[5]), ("up to 100\u{202f}kB", 50_000.0));
        assert_eq!([0.0, 1.0, 3.0].map(|value| Heat::of_queues(3.0).class(value)), [0, 1, 3]);
    }
}

//! `wormhole check`: what the kernel would refuse of a scenario, and what is legal but looks odd.

use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use crate::input::units::{format_rate, format_time};
use crate::scenario::Scenario;
use crate::simulate::{Logs, Refusal, WithModels, add_inputs, kernel, limits, memory, with_models};
use std::collections::BTreeMap;
use wormhole_kernel::{LinkSpec, ModelSet, Models, NodeId, NodeKind, Observer, SimTime};

/// What the kernel refuses of the fabric, the listed flows and the link changes. Nothing is simulated.
pub(crate) fn refusals(scenario: &Scenario) -> Vec<Refusal> {
    with_models(scenario, SetUp(scenario)).err().unwrap_or_default()
}

/// Sets a kernel up as a run does.
struct SetUp<'s>(&'s Scenario);

impl WithModels for SetUp<'_> {
    type Output = Result<(), Vec<Refusal>>;

    fn with<M: Models, O: Observer>(self, models: ModelSet<'_, M>, observer: (Logs, O)) -> Self::Output {
        let SetUp(scenario) = self;
        let limits = limits(scenario);
        let mut memory = memory::<M, (Logs, O)>(scenario, &limits, &models);
        let mut kernel = kernel(scenario, &mut memory, models, &limits, observer)?;
        add_inputs(scenario, &mut kernel).map(|_| ())
    }
}

/// What is to be sent, for people: a line for the list and one for each job.
pub(crate) fn describe(scenario: &Scenario) -> String {
    let mut text = String::new();
    if let (Some(first), Some(last)) = (scenario.flows.first(), scenario.flows.last()) {
        let bytes: u128 = scenario.flows.iter().map(|flow| u128::from(flow.bytes)).sum();
        let (flows, first, last) =
            (counted(scenario.flows.len(), "flow"), format_time(first.start.0), format_time(last.start.0));
        text += &format!("listed: {flows} of {bytes} bytes in all, from {first} to {last}\n");
    }
    for placed in &scenario.jobs {
        let ranks = counted(placed.hosts.len(), "rank");
        text += &format!("{}: {ranks}, begins at {}\n", placed.name, format_time(placed.start.0));
    }
    let (profile, cca) = (scenario.profile.name(), scenario.cca_name());
    text + &format!("profile {profile}, congestion control {cca}: it can be run\n")
}

/// What is legal, but probably not meant.
pub(crate) fn oddities(scenario: &Scenario) -> Diagnostics {
    let mut found = Diagnostics::default();
    let hosts = (0..).map(NodeId).zip(&scenario.nodes);
    let hosts: Vec<NodeId> = hosts.filter(|(_, kind)| **kind == NodeKind::Host).map(|(node, _)| node).collect();
    without_links(scenario, &mut found);
    slow_paths(scenario, &hosts, &mut found);
    too_late(scenario, &mut found);
    found
}

/// A few of many, for a message.
fn some(names: &[String]) -> String {
    const SHOWN: usize = 8;
    let more = names.len().saturating_sub(SHOWN);
    let shown = names.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join(" ");
    if more > 0 { format!("{shown} and {more} more") } else { shown }
}

fn without_links(scenario: &Scenario, found: &mut Diagnostics) {
    let mut linked = vec![false; scenario.nodes.len()];
    for link in &scenario.links {
        linked[link.a.index()] = true;
        linked[link.b.index()] = true;
    }
    let lone: Vec<String> =
        (0..).zip(linked).filter(|(_, linked)| !linked).map(|(n, _): (u32, _)| n.to_string()).collect();
    if !lone.is_empty() {
        found.warning(0, &some(&lone), "nodes without a link: nothing gets there");
    }
}

/// Hosts whose fastest port is faster than anything that leads on to another host.
fn slow_paths(scenario: &Scenario, hosts: &[NodeId], found: &mut Diagnostics) {
    let widest = widest_paths(&scenario.links, scenario.nodes.len(), hosts);
    let mut fastest = vec![0; scenario.nodes.len()];
    for link in &scenario.links {
        for end in [link.a, link.b] {
            fastest[end.index()] = fastest[end.index()].max(link.rate.0);
        }
    }
    let mut narrowed: BTreeMap<(u64, u64), Vec<String>> = BTreeMap::new();
    for &host in hosts {
        let (fastest, widest) = (fastest[host.index()], widest[host.index()]);
        if widest > 0 && widest < fastest {
            narrowed.entry((fastest, widest)).or_default().push(host.0.to_string());
        }
    }
    for ((fastest, widest), hosts) in narrowed {
        let (fastest, widest) = (format_rate(fastest), format_rate(widest));
        let message =
            format!("hosts with a port of {fastest}, a rate that no flow can reach: no path is wider than {widest}");
        found.warning(0, &some(&hosts), message);
    }
}

/// For each host, the rate of the narrowest link of the widest path to some other host; 0 if there is no path.
///
/// Links are added by falling rate. The rate at which a host first shares a component with another one is that of the
/// widest path.
fn widest_paths(links: &[LinkSpec], nodes: usize, hosts: &[NodeId]) -> Vec<u64> {
    let mut links: Vec<&LinkSpec> = links.iter().collect();
    links.sort_by_key(|link| std::cmp::Reverse(link.rate.0));
    let mut parent: Vec<usize> = (0..nodes).collect();
    // Hosts of each component that are alone there.
    let mut alone: Vec<Option<NodeId>> = vec![None; nodes];
    let mut has_host = vec![false; nodes];
    for &host in hosts {
        (alone[host.index()], has_host[host.index()]) = (Some(host), true);
    }
    let mut widest = vec![0; nodes];
    for link in links {
        let (a, b) = (root(&mut parent, link.a.index()), root(&mut parent, link.b.index()));
        if a == b {
            continue;
        }
        parent[b] = a;
        let (left, right) = (alone[a].take(), alone[b].take());
        if has_host[a] && has_host[b] {
            left.into_iter().chain(right).for_each(|host| widest[host.index()] = link.rate.0);
        } else {
            alone[a] = left.or(right);
        }
        has_host[a] |= has_host[b];
    }
    widest
}

fn root(parent: &mut [usize], mut node: usize) -> usize {
    while parent[node] != node {
        parent[node] = parent[parent[node]];
        node = parent[node];
    }
    node
}

fn too_late(scenario: &Scenario, found: &mut Diagnostics) {
    // The scenario names the last picosecond in which something may happen.
    let stop = scenario.stop.0.saturating_add(1);
    let (is_late, stop) = (|at: SimTime| at.0 >= stop, format_time(stop));
    let late = scenario.flows.iter().filter(|flow| is_late(flow.start)).count();
    if late > 0 {
        let message = format!("{} would begin at or after the stop time, {stop}", counted(late, "flow"));
        found.warning(0, "", message);
    }
    for placed in scenario.jobs.iter().filter(|placed| is_late(placed.start)) {
        found.warning(0, &placed.name, format!("the job would begin at or after the stop time, {stop}"));
    }
    let late = scenario.link_events.iter().filter(|event| is_late(event.at)).count();
    if late > 0 {
        found.warning(0, "", format!("{} at or after the stop time, {stop}", counted(late, "link change")));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::scenario::Options;

    fn scenario(topology: &str, flows: &str, config: &str) -> Scenario {
        let texts = Texts {
            topology: ("topology", topology),
            flows: Some(("flows", flows)),
            config: Some(("config", config)),
            link_events: None,
        };
        load_texts(&texts, &Options::PLAIN).scenario.expect("a scenario")
    }

    fn said(scenario: &Scenario) -> Vec<String> {
        oddities(scenario).all().iter().map(|finding| finding.to_string()).collect()
    }

    #[test]
    fn a_sound_scenario_has_no_oddities() {
        let text = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 400Gbps 1us 0\n";
        let sound = scenario(&text.replace("400", "100"), "1\n0 1 3 100 1000 0\n", "");
        assert_eq!(said(&sound), [""; 0]);
        assert!(refusals(&sound).is_empty());
        assert!(describe(&sound).contains("1 flow of 1000 bytes"), "{}", describe(&sound));
    }

    #[test]
    fn ports_faster_than_every_path_are_odd() {
        // Host 2 cannot send on as fast as it may send; hosts 0 and 1 can, to each other.
        let fabric = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 400Gbps 1us 0\n";
        let lines = said(&scenario(fabric, "1\n0 1 3 100 1000 0\n", ""));
        let message =
            "warning: hosts with a port of 400Gbps, a rate that no flow can reach: no path is wider than 100Gbps";
        assert_eq!(lines, [format!("{message} (found `2`)")]);
    }

    #[test]
    fn a_path_is_as_wide_as_its_narrowest_link() {
        let spec = |a, b, gbps| LinkSpec {
            a: NodeId(a),
            b: NodeId(b),
            rate: wormhole_kernel::BitRate::from_gbps(gbps),
            delay: wormhole_kernel::Span(1),
            loss: 0,
        };
        // 0 -400- 3 -50- 4 -400- 1, and 3 -200- 4 beside; 2 -10- 4; 5 has no link.
        let links = [spec(0, 3, 400), spec(3, 4, 50), spec(3, 4, 200), spec(4, 1, 400), spec(2, 4, 10)];
        let hosts = [0, 1, 2, 5].map(NodeId);
        let widest = widest_paths(&links, 6, &hosts);
        assert_eq!([0, 1, 2, 5].map(|host| widest[host] / 1_000_000_000), [200, 200, 10, 0]);
    }

    #[test]
    fn what_comes_after_the_stop_time_is_odd() {
        let fabric = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 100Gbps 1us 0\n";
        let late = scenario(fabric, "2\n0 1 3 100 1000 0\n0 1 3 100 1000 2.5\n", "SIMULATOR_STOP_TIME 2.0");
        assert_eq!(said(&late), ["warning: 1 flow would begin at or after the stop time, 2000ms"]);
    }
}

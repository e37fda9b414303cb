//! The flow conflict graph at an instant, as the Wormhole paper has it: vertices are flows with their sending rates,
//! edges join flows that share links.

use crate::input::counted;
use crate::input::units::{format_rate, format_time};
use crate::scenario::Scenario;
use crate::simulate::{Ending, Logs, Refusal, WithModels, add_inputs, drive, kernel, limits, memory, with_models};
use crate::traffic::Traffic;
use std::collections::BTreeMap;
use std::fmt;
use std::ops::ControlFlow;
use wormhole_kernel::accel::{Acceleration, Tier};
use wormhole_kernel::kernel::ActiveFlow;
use wormhole_kernel::{CapacityError, Kernel, ModelSet, Models, Observer, PortId, SimTime};

/// Flows that are under way, and which of them share links.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FlowGraph {
    /// The instant.
    pub at: SimTime,
    /// The flows, by token.
    pub flows: Vec<ActiveFlow>,
    /// Pairs of tokens, the lower one first, and how many links both flows' data take, each direction counted by
    /// itself. Flows that share none are not there.
    pub edges: BTreeMap<(u64, u64), usize>,
}

/// Why there is no graph.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NoGraph {
    /// The kernel refuses the scenario.
    Refused(Vec<Refusal>),
    /// A capacity is used up before the instant.
    OutOf(CapacityError),
    /// A plugin has given what it may not.
    Plugin(String),
}

/// Executes every event of a scenario up to an instant, and gives the graph as of then.
///
/// A flow's links are those of its first packet: with routing that takes a path a packet, others may take more.
///
/// # Errors
/// [`NoGraph`].
pub fn flow_graph(scenario: &Scenario, at: SimTime) -> Result<FlowGraph, NoGraph> {
    let acceleration = Acceleration { tier: Tier::Off, ..scenario.acceleration };
    let stop = at.min(scenario.stop);
    let scenario = &Scenario { acceleration, stop, ..scenario.clone() };
    with_models(scenario, Until { scenario, at })
}

/// A run of a scenario to an instant.
struct Until<'s> {
    scenario: &'s Scenario,
    at: SimTime,
}

impl WithModels for Until<'_> {
    type Output = Result<FlowGraph, NoGraph>;

    fn with<M: Models, O: Observer>(self, models: ModelSet<'_, M>, observer: (Logs, O)) -> Self::Output {
        let Until { scenario, at } = self;
        let limits = limits(scenario);
        let mut memory = memory::<M, (Logs, O)>(scenario, &limits, &models);
        let mut kernel = kernel(scenario, &mut memory, models, &limits, observer).map_err(NoGraph::Refused)?;
        let mut traffic = add_inputs(scenario, &mut kernel).map_err(NoGraph::Refused)?;
        match drive(scenario, &mut kernel, &mut traffic, |_, _| ControlFlow::Continue(())).map_err(NoGraph::Refused)? {
            Ending::OutOf(fault) => Err(NoGraph::OutOf(fault)),
            Ending::Plugin(fault) => Err(NoGraph::Plugin(fault)),
            _ => Ok(graph(&traffic, at, &mut kernel)),
        }
    }
}

fn graph<M: Models, O: Observer>(traffic: &Traffic<'_>, at: SimTime, kernel: &mut Kernel<'_, M, O>) -> FlowGraph {
    let mut flows: Vec<ActiveFlow> = kernel.active_flows().collect();
    flows.sort_by_key(|flow| flow.token);
    let mut users: BTreeMap<PortId, Vec<u64>> = BTreeMap::new();
    for token in flows.iter().map(|flow| flow.token) {
        // A flow that a failed link has left without a path shares none.
        let path = traffic.flow(token).and_then(|flow| kernel.data_path(&flow).ok());
        for port in path.unwrap_or_default() {
            users.entry(port).or_default().push(token);
        }
    }
    let mut edges = BTreeMap::new();
    for tokens in users.values() {
        for (place, low) in tokens.iter().enumerate() {
            for high in &tokens[place + 1..] {
                *edges.entry((*low, *high)).or_insert(0) += 1;
            }
        }
    }
    FlowGraph { at, flows, edges }
}

impl FlowGraph {
    /// For the layout programs of Graphviz.
    pub fn dot(&self) -> String {
        let vertex = |flow: &ActiveFlow| {
            let ActiveFlow { token, src, dst, control, .. } = flow;
            format!("  {token} [label=\"{token}: {} -> {}\\n{}\"];\n", src.0, dst.0, format_rate(control.rate.0))
        };
        let edge = |((low, high), links): (&(u64, u64), &usize)| format!("  {low} -- {high} [label=\"{links}\"];\n");
        let vertices: String = self.flows.iter().map(vertex).collect();
        let edges: String = self.edges.iter().map(edge).collect();
        format!("graph fcg {{\n  label=\"{}\";\n{vertices}{edges}}}\n", self.heading())
    }

    fn heading(&self) -> String {
        let (flows, edges) = (counted(self.flows.len(), "flow"), counted(self.edges.len(), "edge"));
        format!("flow conflict graph at {}: {flows}, {edges}", format_time(self.at.0))
    }
}

/// For people: a heading, a line for each vertex, a line for each edge.
impl fmt::Display for FlowGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.heading())?;
        for flow in &self.flows {
            let ActiveFlow { token, src, dst, bytes, acked, control, .. } = flow;
            let rate = format_rate(control.rate.0);
            writeln!(f, "flow {token}: {} -> {}, {rate}, {acked} of {bytes} bytes acknowledged", src.0, dst.0)?;
        }
        for ((low, high), links) in &self.edges {
            writeln!(f, "edge {low} -- {high}: {} shared", counted(*links, "link"))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::load::{Texts, load_texts};
    use crate::scenario::Options;

    /// Hosts 0, 1 | switch 4 - switch 5 | hosts 2, 3. Flows 0 -> 2 and 1 -> 3 share the link between the switches,
    /// flow 2 -> 0 goes the other way, 0 -> 1 shares a NIC's link with the first, and starts last.
    const TOPOLOGY: &str = "6 2 5\n4 5\n0 4 100Gbps 1us 0\n1 4 100Gbps 1us 0\n2 5 100Gbps 1us 0\n\
                            3 5 100Gbps 1us 0\n4 5 100Gbps 1us 0\n";
    const FLOWS: &str = "4\n0 2 3 100 1000000 0\n1 3 3 101 1000000 0\n2 0 3 102 1000000 0\n\
                         0 1 3 103 1000000 0.00001\n";

    fn graph_at(us: u64) -> FlowGraph {
        let texts =
            Texts { topology: ("topology", TOPOLOGY), flows: Some(("flows", FLOWS)), config: None, link_events: None };
        let scenario = load_texts(&texts, &Options::PLAIN).scenario.expect("a scenario");
        flow_graph(&scenario, SimTime(us * 1_000_000)).expect("a graph")
    }

    #[test]
    fn flows_that_share_a_link_in_one_direction_are_joined() {
        let early = graph_at(5);
        assert_eq!(early.flows.iter().map(|flow| flow.token).collect::<Vec<_>>(), [0, 1, 2]);
        assert_eq!(early.edges, BTreeMap::from([((0, 1), 1)]));
        let late = graph_at(15);
        assert_eq!(late.flows.len(), 4);
        assert_eq!(late.edges, BTreeMap::from([((0, 1), 1), ((0, 3), 1)]));
    }

    #[test]
    fn before_the_first_start_and_after_the_last_end_there_is_nothing() {
        let over = graph_at(10_000);
        assert_eq!((over.flows.len(), over.edges.len()), (0, 0));
        assert_eq!(over.to_string(), "flow conflict graph at 10ms: 0 flows, 0 edges\n");
        assert_eq!(over.dot(), "graph fcg {\n  label=\"flow conflict graph at 10ms: 0 flows, 0 edges\";\n}\n");
    }

    #[test]
    fn flows_with_the_same_path_share_every_link() {
        let texts = Texts {
            topology: ("topology", TOPOLOGY),
            flows: Some(("flows", "2\n0 2 3 100 1000000 0\n0 2 3 101 1000000 0\n")),
            config: None,
            link_events: None,
        };
        let scenario = load_texts(&texts, &Options::PLAIN).scenario.expect("a scenario");
        let graph = flow_graph(&scenario, SimTime(1_000_000)).expect("a graph");
        assert_eq!(graph.edges, BTreeMap::from([((0, 1), 3)]));
        assert!(graph.to_string().ends_with("edge 0 -- 1: 3 links shared\n"), "{graph}");
        assert!(graph.dot().contains("\n  0 -- 1 [label=\"3\"];\n}"), "{}", graph.dot());
    }
}

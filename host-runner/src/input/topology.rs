//! Topologies in the text dialect of the HPCC simulator and its relatives.
//!
//! A stream of tokens; line ends do not matter, except that the number of fields on the first line tells the dialect:
//! three (HPCC), four (PowerTCP: `nodes switches tors links`) or six (SimAI: `nodes gpus_per_server nvswitches
//! switches links GPU_TYPE`). Then the ids of the switches (SimAI: NVSwitches first), then a row per link:
//! `a b rate delay loss`. What follows the counted rows is not read.

use super::diagnostics::Diagnostics;
use super::tokens::{Token, Tokens};
use super::units;
use wormhole_kernel::{BitRate, LinkSpec, NodeId, NodeKind, Span};
use wormhole_models::loss::loss_fraction;

/// More nodes than this are taken for a mistake.
const MAX_NODES: usize = 1 << 24;

/// Which header the file has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Three fields.
    Hpcc,
    /// Four fields.
    PowerTcp,
    /// Six fields.
    SimAi,
}

/// A fabric as described.
#[derive(Clone, PartialEq, Debug)]
pub struct Topology {
    /// Which header the file has.
    pub dialect: Dialect,
    /// What each node is.
    pub nodes: Vec<NodeKind>,
    /// The links, in order.
    pub links: Vec<LinkSpec>,
    /// SimAI: GPUs of a server.
    pub gpus_per_server: Option<u32>,
}

struct Header {
    dialect: Dialect,
    nodes: usize,
    nvswitches: usize,
    switches: usize,
    links: usize,
    gpus_per_server: Option<u32>,
}

impl Topology {
    /// Reads a topology; what is wrong with it goes to `found`. `None` if there is nothing to go on with.
    pub fn parse(text: &str, found: &mut Diagnostics) -> Option<Topology> {
        let mut tokens = Tokens::new(text);
        let header = header(&tokens.rest_of_line(), found)?;
        let nodes = node_kinds(&header, &mut tokens, found);
        let links = links(&header, &mut tokens, found);
        warn_of_more_rows(&mut tokens, found);
        Some(Topology { dialect: header.dialect, nodes, links, gpus_per_server: header.gpus_per_server })
    }

    /// One line for people: what was read.
    pub fn describe(&self) -> String {
        let count = |kind| self.nodes.iter().filter(|k| **k == kind).count();
        let (hosts, switches, links) = (count(NodeKind::Host), count(NodeKind::Switch), self.links.len());
        match self.dialect {
            Dialect::SimAi => {
                let nvswitches = count(NodeKind::NvSwitch);
                format!("SimAI topology: {hosts} GPUs, {nvswitches} NVSwitches, {switches} switches, {links} links")
            }
            Dialect::Hpcc => format!("HPCC topology: {hosts} hosts, {switches} switches, {links} links"),
            Dialect::PowerTcp => format!("PowerTCP topology: {hosts} hosts, {switches} switches, {links} links"),
        }
    }
}

fn header(fields: &[Token<'_>], found: &mut Diagnostics) -> Option<Header> {
    let line = fields.first().map_or(0, |t| t.line);
    let mut count = |index: usize, what: &str| fields[index].number::<usize>(what, found);
    let header = match fields.len() {
        3 => {
            let (nodes, switches, links) = (count(0, "nodes"), count(1, "switches"), count(2, "links"));
            Header {
                dialect: Dialect::Hpcc,
                nodes: nodes?,
                nvswitches: 0,
                switches: switches?,
                links: links?,
                gpus_per_server: None,
            }
        }
        4 => {
            let (nodes, switches, links) = (count(0, "nodes"), count(1, "switches"), count(3, "links"));
            Header {
                dialect: Dialect::PowerTcp,
                nodes: nodes?,
                nvswitches: 0,
                switches: switches?,
                links: links?,
                gpus_per_server: None,
            }
        }
        6 => {
            let (nodes, gpus) = (count(0, "nodes"), count(1, "GPUs per server"));
            let (nvswitches, switches, links) = (count(2, "NVSwitches"), count(3, "switches"), count(4, "links"));
            Header {
                dialect: Dialect::SimAi,
                nodes: nodes?,
                nvswitches: nvswitches?,
                switches: switches?,
                links: links?,
                gpus_per_server: gpus.and_then(|g| u32::try_from(g).ok()),
            }
        }
        _ => {
            let expected = "the first line must have 3 fields (nodes switches links), 4 (nodes switches tors links) \
                            or 6 (nodes gpus_per_server nvswitches switches links GPU_TYPE)";
            found.error(line, &fields.len().to_string(), expected);
            return None;
        }
    };
    if header.nodes > MAX_NODES {
        found.error(line, fields[0].text, format!("at most {MAX_NODES} nodes"));
        return None;
    }
    if header.switches.saturating_add(header.nvswitches) > header.nodes {
        found.error(line, "", format!("more switches than the {} nodes there are", header.nodes));
        return None;
    }
    Some(header)
}

/// A node id below `nodes`.
fn node(token: &Token<'_>, nodes: usize, found: &mut Diagnostics) -> Option<u32> {
    let range = || match nodes {
        0 => "there are no nodes".to_owned(),
        n => format!("no such node: nodes are 0 to {}", n - 1),
    };
    let id = token.text.parse::<u32>().ok().filter(|&id| (id as usize) < nodes);
    if id.is_none() {
        found.error(token.line, token.text, range());
    }
    id
}

fn node_kinds(header: &Header, tokens: &mut Tokens<'_>, found: &mut Diagnostics) -> Vec<NodeKind> {
    let mut kinds = vec![NodeKind::Host; header.nodes];
    for index in 0..header.nvswitches + header.switches {
        let kind = if index < header.nvswitches { NodeKind::NvSwitch } else { NodeKind::Switch };
        let Some(token) = tokens.next() else {
            found.error(tokens.line(), "", format!("{} switch ids declared, {index} found", header.switches));
            break;
        };
        if let Some(id) = node(&token, header.nodes, found) {
            if kinds[id as usize] != NodeKind::Host {
                found.error(token.line, token.text, "this switch is listed twice");
            }
            kinds[id as usize] = kind;
        }
    }
    kinds
}

fn links(header: &Header, tokens: &mut Tokens<'_>, found: &mut Diagnostics) -> Vec<LinkSpec> {
    let mut links = Vec::new();
    for index in 0..header.links {
        let Some([a, b, rate, delay, loss]) = tokens.row::<5>("link", found) else {
            if !found.has_errors() {
                found.error(tokens.line(), "", format!("{} links declared, {index} found", header.links));
            }
            break;
        };
        let (na, nb) = (node(&a, header.nodes, found), node(&b, header.nodes, found));
        if na.is_some() && na == nb {
            found.error(b.line, b.text, "a link needs two different ends");
        }
        let rate = rate.parse(units::rate, found);
        let delay = delay.parse(units::time, found);
        let loss = loss.parse(units::probability, found);
        if let (Some(a), Some(b), Some(rate), Some(delay), Some(loss)) = (na, nb, rate, delay, loss) {
            links.push(LinkSpec {
                a: NodeId(a),
                b: NodeId(b),
                rate: BitRate(rate),
                delay: Span(delay),
                loss: loss_fraction(loss),
            });
        }
    }
    links
}

/// Prose after the links is customary; what looks like another link probably should have been counted.
fn warn_of_more_rows(tokens: &mut Tokens<'_>, found: &mut Diagnostics) {
    let fields = tokens.rest_of_line();
    let Some(first) = fields.first() else { return };
    if fields.len() >= 5 && fields[..2].iter().all(|t| t.text.parse::<u32>().is_ok()) {
        found.warning(first.line, first.text, "more links follow than the first line declares; they are not read");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> (Option<Topology>, Vec<String>) {
        let mut found = Diagnostics::of("t");
        let topology = Topology::parse(text, &mut found);
        (topology, found.all().iter().map(|d| d.to_string()).collect())
    }

    const SMALL: &str = "3 1 2\n2\n0 2 100Gbps 1us 0\n1 2 25Gbps 0.001ms 0.5\n";

    #[test]
    fn three_headers_are_told_apart() {
        let (small, found) = parse(SMALL);
        let small = small.unwrap();
        assert!(found.is_empty(), "{found:?}");
        assert_eq!((small.dialect, small.links[1].rate), (Dialect::Hpcc, BitRate::from_gbps(25)));
        assert_eq!(small.links[1].loss, 1 << 63);
        let (tors, _) = parse("3 1 1 2\n2\n0 2 25000000000.0 1us 0\n1 2 1Gbps 1us 0");
        assert_eq!(tors.unwrap().dialect, Dialect::PowerTcp);
        let (simai, found) = parse("5 4 1 1 2 H100\n3 4 \n0 3 2880Gbps 0.000025ms 0\n0 4 400Gbps 0.0005ms 0");
        assert_eq!(found, Vec::<String>::new());
        let simai = simai.unwrap();
        assert_eq!(simai.describe(), "SimAI topology: 3 GPUs, 1 NVSwitches, 1 switches, 2 links");
        assert_eq!((simai.gpus_per_server, simai.nodes[3]), (Some(4), NodeKind::NvSwitch));
    }

    #[test]
    fn white_space_and_prose_do_not_matter() {
        let text =
            "3 1 2\r\n2 \r\n\r\n0\t2\t100Gbps\t3.33us\t0\n1 2\n100Gbps 3.33us 0\n\nlinks of 3.33us, see the wiki";
        let (topology, found) = parse(text);
        assert!(found.is_empty(), "{found:?}");
        assert_eq!(topology.unwrap().links[0].delay, Span(3_330_000));
        assert_eq!(parse("2 0 1\n\n0 1 400Gbps 25ns 0\n").1, Vec::<String>::new());
    }

    #[test]
    fn every_fault_is_named() {
        let (_, found) = parse("3 1 2\n2\n0 9 100Gbps 1us 0\n1 1 100G 1lightyear 2\n");
        let want = [
            "t:3: error: no such node: nodes are 0 to 2 (found `9`)",
            "t:4: error: a link needs two different ends (found `1`)",
            "t:4: error: a rate needs one of the units bps, kbps, Mbps, Gbps, Tbps (or b/s) (found `100G`)",
            "t:4: error: a time needs one of the units s, ms, us, ns, ps (found `1lightyear`)",
            "t:4: error: a probability lies between 0 and 1 (found `2`)",
        ];
        assert_eq!(found, want);
        assert!(parse("3 1 3\n2\n0 2 1Gbps 1us 0\n").1[0].contains("3 links declared, 1 found"));
        assert!(parse("3 1 1\n2\n0 2 1Gbps").1[0].contains("3 of 5 fields"));
        assert!(parse("3 1 1\n2\n0 2 1Gbps 1us 0\n1 2 1Gbps 1us 0").1[0].contains("warning"));
        assert!(parse("9 1\n").0.is_none());
        assert!(parse("4000000000 1 1\n2\n").0.is_none());
        assert!(parse("").0.is_none());
    }

    #[test]
    fn no_text_is_too_broken() {
        for end in 0..=SMALL.len() {
            parse(&SMALL[..end]);
        }
        for at in 0..SMALL.len() {
            for byte in [b'9', b'-', b' ', b'\n', b'x'] {
                let mut text = SMALL.as_bytes().to_vec();
                text[at] = byte;
                parse(std::str::from_utf8(&text).unwrap());
            }
        }
    }
}

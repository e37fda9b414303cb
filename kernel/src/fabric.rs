//! The fabric: nodes and links, as ports sorted by node.
//!
//! Both ends of a link are ports; a port sends to its peer. The ports of a node are contiguous and in the order
//! in which the links that make them are listed.

use crate::error::Error;
use crate::ids::{LinkId, NodeId, PortId};
use crate::memory::{Carver, words_for};
use crate::units::{BitRate, Span};
use bytemuck::{Pod, Zeroable};

/// What a node does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum NodeKind {
    /// Sends and receives; forwards nothing.
    Host,
    /// Forwards.
    Switch,
    /// A switch inside a server: forwards among its own hosts and is preferred by them.
    NvSwitch,
}

/// A full-duplex link, as the caller describes it.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct LinkSpec {
    /// One end.
    pub a: NodeId,
    /// The other end.
    pub b: NodeId,
    /// Rate of each direction.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
    /// Probability that a frame is lost, as a fraction of 2^64.
    pub loss: u64,
}

/// Which ports a fabric of `nodes` and `links` has room for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FabricSize {
    /// Number of nodes.
    pub nodes: usize,
    /// Number of links.
    pub links: usize,
}

impl FabricSize {
    /// The size of this fabric.
    pub const fn of(nodes: &[NodeKind], links: &[LinkSpec]) -> FabricSize {
        FabricSize { nodes: nodes.len(), links: links.len() }
    }
}

/// The unchanging part of a port.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct PortInfo {
    /// Rate of the link.
    pub rate: BitRate,
    /// Propagation delay of the link.
    pub delay: Span,
    /// Loss probability of the link, as a fraction of 2^64.
    pub loss: u64,
    /// The other end.
    pub peer: PortId,
    /// The node this port belongs to.
    pub node: NodeId,
    /// The link.
    pub link: LinkId,
    /// 1 while the link is up.
    up: u32,
}

impl PortInfo {
    /// A port of a link with this rate and delay that is in no fabric: what models are tested with.
    pub fn detached(rate: BitRate, delay: Span) -> PortInfo {
        PortInfo { rate, delay, loss: 0, peer: PortId::NONE, node: NodeId::NONE, link: LinkId::NONE, up: 1 }
    }

    /// Whether the link is up.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn is_up(&self) -> bool {
        self.up != 0
    }
}

#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Node {
    first_port: u32,
    kind: u32,
}

/// Nodes, ports and the state of links. Cheap to read, shared with routers and models.
pub struct Fabric<'a> {
    /// One more than there are nodes: the last one ends the last node's ports.
    nodes: &'a mut [Node],
    ports: &'a mut [PortInfo],
    /// First port of each link; the other is its peer.
    links: &'a mut [PortId],
}

impl<'a> Fabric<'a> {
    /// Words of memory a fabric takes.
    pub const fn words(size: FabricSize) -> usize {
        words_for::<Node>(size.nodes + 1) + words_for::<PortInfo>(2 * size.links) + words_for::<PortId>(size.links)
    }

    /// Lays the fabric out in memory.
    ///
    /// # Errors
    /// [`Error::BadLink`], [`Error::ZeroRate`], or [`Error::Capacity`] if the memory is too short.
    pub fn carve(carver: &mut Carver<'a>, kinds: &[NodeKind], specs: &[LinkSpec]) -> Result<Fabric<'a>, Error> {
        let nodes = carver.take::<Node>(kinds.len() + 1)?;
        let ports = carver.take::<PortInfo>(2 * specs.len())?;
        let links = carver.take::<PortId>(specs.len())?;
        for (link, spec) in specs.iter().enumerate() {
            let known = |n: NodeId| n.index() < kinds.len();
            if !known(spec.a) || !known(spec.b) || spec.a == spec.b {
                return Err(Error::BadLink { link });
            }
            if spec.rate.0 == 0 {
                return Err(Error::ZeroRate { link });
            }
            nodes[spec.a.index() + 1].first_port += 1;
            nodes[spec.b.index() + 1].first_port += 1;
        }
        for n in 0..kinds.len() {
            nodes[n].kind = kinds[n] as u32;
            nodes[n + 1].first_port += nodes[n].first_port;
        }
        for (link, spec) in specs.iter().enumerate() {
            let a = place(nodes, ports, spec.a, spec, link);
            let b = place(nodes, ports, spec.b, spec, link);
            links[link] = a;
            ports[a.index()].peer = b;
            ports[b.index()].peer = a;
        }
        Ok(Fabric { nodes, ports, links })
    }

    /// Number of nodes.
    pub fn node_count(&self) -> usize {
        self.nodes.len() - 1
    }

    /// Number of ports: two a link.
    pub fn port_count(&self) -> usize {
        self.ports.len()
    }

    /// Number of links.
    pub fn link_count(&self) -> usize {
        self.links.len()
    }

    /// What a node is, if it exists.
    pub fn kind(&self, node: NodeId) -> Option<NodeKind> {
        (node.index() < self.node_count()).then(|| match self.nodes[node.index()].kind {
            0 => NodeKind::Host,
            1 => NodeKind::Switch,
            _ => NodeKind::NvSwitch,
        })
    }

    /// Whether the node is a host.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn is_host(&self, node: NodeId) -> bool {
        self.nodes[node.index()].kind == NodeKind::Host as u32
    }

    /// A port.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn port(&self, port: PortId) -> &PortInfo {
        &self.ports[port.index()]
    }

    /// The ports of a node, ascending.
    pub fn ports_of(&self, node: NodeId) -> impl DoubleEndedIterator<Item = PortId> + ExactSizeIterator + use<> {
        (self.nodes[node.index()].first_port..self.nodes[node.index() + 1].first_port).map(PortId)
    }

    /// All ports.
    pub fn ports(&self) -> impl Iterator<Item = PortId> + use<> {
        (0..self.ports.len() as u32).map(PortId)
    }

    /// The two ports of a link.
    pub fn ends(&self, link: LinkId) -> [PortId; 2] {
        let a = self.links[link.index()];
        [a, self.port(a).peer]
    }

    /// The node at the other end of a port's link.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub fn neighbour(&self, port: PortId) -> NodeId {
        self.port(self.port(port).peer).node
    }

    /// Number of a port within its node, from 0.
    pub fn local_number(&self, port: PortId) -> u32 {
        port.0 - self.nodes[self.port(port).node.index()].first_port
    }

    /// Takes a link down or up.
    pub(crate) fn set_up(&mut self, link: LinkId, up: bool) {
        for port in self.ends(link) {
            self.ports[port.index()].up = up as u32;
        }
    }

    /// Rate of the first host's first link: what switch buffers take for the fabric's NIC rate.
    pub fn nic_rate(&self) -> BitRate {
        let host = (0..self.node_count() as u32).map(NodeId).find(|&n| self.is_host(n) && self.ports_of(n).len() > 0);
        host.map_or(BitRate(0), |h| self.port(PortId(self.nodes[h.index()].first_port)).rate)
    }
}

/// Makes the next port of `node`. A port without a rate is not placed yet.
fn place(nodes: &[Node], ports: &mut [PortInfo], node: NodeId, spec: &LinkSpec, link: usize) -> PortId {
    let (first, end) = (nodes[node.index()].first_port as usize, nodes[node.index() + 1].first_port as usize);
    let free = first + ports[first..end].partition_point(|p| p.rate.0 != 0);
    let link = LinkId(link as u32);
    let peer = PortId::NONE;
    ports[free] = PortInfo { rate: spec.rate, delay: spec.delay, loss: spec.loss, peer, node, link, up: 1 };
    PortId(free as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINK: LinkSpec = LinkSpec { a: NodeId(0), b: NodeId(2), rate: BitRate(1), delay: Span(0), loss: 0 };

    fn carve(kinds: &[NodeKind], links: &[LinkSpec], check: impl FnOnce(Result<Fabric<'_>, Error>)) {
        let mut words = [0u64; 256];
        check(Fabric::carve(&mut Carver::new(&mut words), kinds, links));
    }

    #[test]
    fn ports_are_numbered_in_link_order() {
        let kinds = [NodeKind::Host, NodeKind::Host, NodeKind::Switch];
        let links = [LinkSpec { a: NodeId(1), ..LINK }, LINK, LINK];
        carve(&kinds, &links, |fabric| {
            let fabric = fabric.unwrap();
            assert_eq!((fabric.node_count(), fabric.port_count()), (3, 6));
            let neighbours: heapless::Vec<_, 3> = fabric.ports_of(NodeId(2)).map(|p| fabric.neighbour(p)).collect();
            assert_eq!(neighbours, [NodeId(1), NodeId(0), NodeId(0)]);
            for port in fabric.ports() {
                assert_eq!(fabric.port(fabric.port(port).peer).peer, port);
            }
        });
    }

    #[test]
    fn bad_links_are_named() {
        let kinds = [NodeKind::Host; 3];
        carve(&kinds, &[LINK, LinkSpec { b: NodeId(9), ..LINK }], |fabric| {
            assert_eq!(fabric.err(), Some(Error::BadLink { link: 1 }));
        });
        carve(&kinds, &[LinkSpec { rate: BitRate(0), ..LINK }], |fabric| {
            assert_eq!(fabric.err(), Some(Error::ZeroRate { link: 0 }));
        });
    }
}

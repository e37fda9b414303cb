//! Which way a packet goes.

use crate::fabric::Fabric;
use crate::ids::{NodeId, PortId};
use crate::model::ModelId;

/// What identifies a packet's flow to a router: the fields switches hash.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RouteKey {
    /// Sender of this packet (the receiver of the flow, for an ACK).
    pub src: NodeId,
    /// Where this packet goes.
    pub dst: NodeId,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Packet number within the flow, for routers that spread packets.
    pub packet: u64,
}

impl RouteKey {
    /// The same for what comes back.
    pub(crate) fn reversed(self) -> RouteKey {
        RouteKey { src: self.dst, dst: self.src, src_port: self.dst_port, dst_port: self.src_port, ..self }
    }
}

/// Chooses egress ports.
///
/// Who depends on it: the kernel, once per hop and flow if [`PER_FLOW`](Self::PER_FLOW), else once per hop and
/// packet. The choice MUST be a pure function of the arguments and the links that are up.
pub trait Router {
    /// The choice does not depend on [`RouteKey::packet`]: the kernel may keep a flow's path.
    const PER_FLOW: bool;

    /// Name, version and configuration. Not part of memo keys: they hold the paths themselves.
    fn id(&self) -> ModelId;

    /// The port `node` sends the packet out of; `None` if no path is up.
    fn egress(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> Option<PortId>;

    /// Calls `each` with every port that [`egress`](Self::egress) may choose for some packet of this flow.
    fn choices(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey, each: &mut dyn FnMut(PortId)) {
        if let Some(port) = self.egress(fabric, node, key) {
            each(port);
        }
    }

    /// A link has gone down or come up.
    fn links_changed(&mut self, fabric: &Fabric<'_>);
}

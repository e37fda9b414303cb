//! Static tables: the caller says which way packets go. Needs no memory of its own.

use wormhole_kernel::fabric::Fabric;
use wormhole_kernel::ids::{NodeId, PortId};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::router::{RouteKey, Router};

/// A row: at `node`, packets for `dst` leave by the node's port number `port` (counted from 0 in the order of links).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Route {
    /// Where.
    pub node: NodeId,
    /// Whither.
    pub dst: NodeId,
    /// By which port.
    pub port: u32,
}

/// See the module. Rows are sorted by node and destination; of several for the same, flows are spread over those
/// whose link is up.
#[derive(Clone, Copy, Debug)]
pub struct TableRouter<'a> {
    rows: &'a [Route],
}

impl<'a> TableRouter<'a> {
    /// A router over rows sorted by node and destination. `None` if they are not sorted.
    pub fn new(rows: &'a [Route]) -> Option<TableRouter<'a>> {
        rows.is_sorted_by_key(|r| (r.node, r.dst)).then_some(TableRouter { rows })
    }

    fn rows(&self, node: NodeId, dst: NodeId) -> &'a [Route] {
        let first = self.rows.partition_point(|r| (r.node, r.dst) < (node, dst));
        let end = self.rows.partition_point(|r| (r.node, r.dst) <= (node, dst));
        &self.rows[first..end]
    }
}

impl Router for TableRouter<'_> {
    const PER_FLOW: bool = true;

    fn id(&self) -> ModelId {
        let config = self
            .rows
            .iter()
            .fold(ConfigHash::new(), |hash, r| hash.with(r.node.0 as u64).with(r.dst.0 as u64).with(r.port as u64));
        ModelId { name: "table", version: 1, config: config.finish() }
    }

    fn egress(&mut self, fabric: &Fabric<'_>, node: NodeId, key: &RouteKey) -> Option<PortId> {
        let rows = self.rows(node, key.dst);
        let port = |row: &Route| {
            let port = fabric.ports_of(node).nth(row.port as usize)?;
            fabric.port(port).is_up().then_some(port)
        };
        let up = rows.iter().filter_map(port).count();
        let flow = key.src_port as usize + key.dst_port as usize;
        rows.iter().filter_map(port).nth(flow.checked_rem(up)?)
    }

    fn links_changed(&mut self, _fabric: &Fabric<'_>) {}
}

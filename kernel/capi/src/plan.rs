//! Usual fabrics from structs.

use crate::constants::{WhNodeKind, WhPlanKind};
use crate::status::WhStatus;
use crate::structs::{WhLink, WhPlan};
use wormhole_kernel::{BitRate, NodeId, NodeKind, Span};
use wormhole_models::topology::{Clos, Dumbbell, FabricPlan, FatTree, HostLinks, LinkClass, Star, Trunk};

/// Parameters as the models have them by default.
pub(crate) fn defaults(kind: WhPlanKind, struct_size: u32) -> WhPlan {
    let (star, dumbbell, fat_tree, clos) = (Star::default(), Dumbbell::default(), FatTree::default(), Clos::default());
    let trunk = match kind {
        WhPlanKind::Clos => clos.spine,
        _ => dumbbell.bottleneck,
    };
    WhPlan {
        struct_size,
        kind: kind as u32,
        hosts: star.hosts,
        left: dumbbell.left,
        right: dumbbell.right,
        k: fat_tree.k,
        pods: clos.pods,
        leaves: clos.leaves,
        hosts_per_leaf: clos.hosts_per_leaf,
        spines: clos.spines,
        cores: clos.cores,
        trunk_links: trunk.links,
        host_rate_bps: star.host.rates[0].0,
        host_delay_ps: star.host.delay.0,
        trunk_rate_bps: trunk.class.rate.0,
        trunk_delay_ps: trunk.class.delay.0,
    }
}

/// Does something with a fabric that is possible.
///
/// # Errors
/// [`WhStatus::BadConstant`], [`WhStatus::ImpossiblePlan`], and those of `work`.
fn with<R>(plan: &WhPlan, work: impl FnOnce(&dyn FabricPlan) -> Result<R, WhStatus>) -> Result<R, WhStatus> {
    let rates = [BitRate(plan.host_rate_bps)];
    let host = HostLinks { rates: &rates, delay: Span(plan.host_delay_ps) };
    let class = LinkClass { rate: BitRate(plan.trunk_rate_bps), delay: Span(plan.trunk_delay_ps) };
    let trunk = Trunk { links: plan.trunk_links, class };
    let WhPlan { hosts, left, right, k, pods, leaves, hosts_per_leaf, spines, cores, .. } = *plan;
    let checked = |fabric: &dyn FabricPlan| {
        fabric.check()?;
        work(fabric)
    };
    match WhPlanKind::of(plan.kind)? {
        WhPlanKind::Star => checked(&Star { hosts, host }),
        WhPlanKind::Dumbbell => checked(&Dumbbell { left, right, host, bottleneck: trunk }),
        WhPlanKind::FatTree => checked(&FatTree { k, host, aggregation: class, core: class }),
        WhPlanKind::Clos => {
            checked(&Clos { pods, leaves, hosts_per_leaf, spines, cores, host, spine: trunk, core: trunk })
        }
    }
}

/// Numbers of nodes and links.
///
/// # Errors
/// As [`with`].
pub(crate) fn size(plan: &WhPlan) -> Result<(usize, usize), WhStatus> {
    with(plan, |fabric| Ok((fabric.size().nodes, fabric.size().links)))
}

/// Writes nodes and links down.
///
/// # Errors
/// As [`with`]; [`WhStatus::BufferTooShort`] if an array is too short.
pub(crate) fn build(plan: &WhPlan, nodes: &mut [u8], links: &mut [WhLink]) -> Result<(), WhStatus> {
    with(plan, |fabric| {
        let size = fabric.size();
        if nodes.len() < size.nodes || links.len() < size.links {
            return Err(WhStatus::BufferTooShort);
        }
        for (node, id) in nodes[..size.nodes].iter_mut().zip(0..) {
            *node = match fabric.node(NodeId(id)) {
                NodeKind::Host => WhNodeKind::Host,
                NodeKind::Switch => WhNodeKind::Switch,
                NodeKind::NvSwitch => WhNodeKind::NvSwitch,
            } as u8;
        }
        let mut places = links.iter_mut();
        fabric.each_link(&mut |link| {
            if let Some(place) = places.next() {
                let (rate_bps, delay_ps) = (link.rate.0, link.delay.0);
                *place = WhLink { a: link.a.0, b: link.b.0, rate_bps, delay_ps, loss: link.loss };
            }
        });
        Ok(())
    })
}

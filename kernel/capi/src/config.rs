//! A configuration: checked, measured, and made into models.

use crate::constants::{WH_MEMORY_IS_ZERO, WhNodeKind, WhProfile, WhRouting};
use crate::handle::WhKernel;
use crate::region::{Region, bytes_for};
use crate::simulation::Simulation;
use crate::status::WhStatus;
use crate::structs::{WhConfig, WhLink};
use wormhole_kernel::memory::Carver;
use wormhole_kernel::router::Router;
use wormhole_kernel::{
    BitRate, FabricSize, Kernel, Limits, LinkSpec, ModelSet, Models, NodeId, NodeKind, Span, Transport,
};
use wormhole_memo_fmt::Store;
use wormhole_models::cca::AnyCca;
use wormhole_models::ecn::{Ns3Coins, Thresholds};
use wormhole_models::profile::{BUFFER_BYTES, Ns3, Ps, THRESHOLDS};
use wormhole_models::router::{EcmpHash, EcmpIn, SlicePaths, SprayIn};
use wormhole_models::topology::MAX_NODES;

/// The routers of this interface keep their distances in caller memory.
pub(crate) type Ecmp<'a> = EcmpIn<SlicePaths<'a>>;
pub(crate) type Spray<'a> = SprayIn<SlicePaths<'a>>;

/// Things are numbered in 32 bits, timers several to a thing.
const MOST: usize = 1 << 26;
/// Words of memory for acceleration or records.
const MOST_WORDS: usize = 1 << 36;
/// A flow names its congestion control in 8 bits.
const MOST_CCAS: usize = 1 << 8;
const MOST_RATE: u64 = 1_000_000_000_000_000;
/// A thousand seconds.
const MOST_DELAY: u64 = 1_000_000_000_000_000;
/// Buffers count on frames below 16 KiB.
const MOST_MTU: u32 = 16_000;

/// A profile's defaults. Arrays are left empty.
pub(crate) fn defaults(profile: WhProfile, struct_size: u32) -> WhConfig {
    let limits = Limits::default();
    let transport = match profile {
        WhProfile::Ps => Transport::default(),
        WhProfile::Ns3 => Transport { timeout: None, ..Transport::default() },
    };
    WhConfig {
        struct_size,
        flags: 0,
        profile: profile as u32,
        routing: WhRouting::Ecmp as u32,
        seed: 1,
        nodes: core::ptr::null(),
        node_count: 0,
        links: core::ptr::null(),
        link_count: 0,
        ccas: core::ptr::null(),
        cca_count: 0,
        queued_flows: limits.queued_flows,
        active_flows: limits.active_flows,
        packets: limits.packets,
        outputs: limits.outputs,
        inputs: limits.inputs,
        snapshot_words: limits.snapshot_words,
        memo_words: 0,
        buffer_bytes: BUFFER_BYTES,
        ecn: 1,
        ecn_rate_bps: THRESHOLDS[0].rate.0,
        ecn_kmin_bytes: THRESHOLDS[0].kmin,
        ecn_kmax_bytes: THRESHOLDS[0].kmax,
        ecn_pmax: THRESHOLDS[0].pmax,
        mtu: transport.mtu,
        retries: transport.retries,
        timeout_ps: transport.timeout.map_or(0, |timeout| timeout.0),
        paced: u32::from(transport.paced),
        reserved: 0,
    }
}

/// What a kernel is made of.
pub(crate) struct Setup<'c> {
    config: &'c WhConfig,
    profile: WhProfile,
    routing: WhRouting,
    nodes: &'c [u8],
    links: &'c [WhLink],
}

/// The least and the most a number may be.
fn within(value: usize, least: usize, most: usize) -> Result<(), WhStatus> {
    if (least..=most).contains(&value) { Ok(()) } else { Err(WhStatus::BadLimit) }
}

fn flag(value: u32) -> Result<bool, WhStatus> {
    if value <= 1 { Ok(value == 1) } else { Err(WhStatus::BadParameter) }
}

fn require(holds: bool, status: WhStatus) -> Result<(), WhStatus> {
    if holds { Ok(()) } else { Err(status) }
}

impl<'c> Setup<'c> {
    /// Checks all but congestion controls.
    ///
    /// # Errors
    /// What is wrong first.
    pub(crate) fn new(config: &'c WhConfig, nodes: &'c [u8], links: &'c [WhLink]) -> Result<Setup<'c>, WhStatus> {
        let (profile, routing) = (WhProfile::of(config.profile)?, WhRouting::of(config.routing)?);
        require(config.flags & !WH_MEMORY_IS_ZERO == 0, WhStatus::BadConstant)?;
        require((profile, routing) != (WhProfile::Ns3, WhRouting::Spray), WhStatus::BadConstant)?;
        let node_counts = 1..=MAX_NODES as usize;
        require(node_counts.contains(&nodes.len()) && links.len() <= MOST, WhStatus::BadFabric)?;
        for limit in [config.queued_flows, config.active_flows, config.packets, config.outputs, config.inputs] {
            within(limit, 1, MOST)?;
        }
        within(config.snapshot_words, 0, MOST_WORDS)?;
        within(config.memo_words, 0, MOST_WORDS)?;
        within(config.cca_count, 1, MOST_CCAS)?;
        flag(config.ecn)?;
        flag(config.paced)?;
        let has_thresholds = config.ecn_rate_bps > 0
            && config.ecn_kmin_bytes <= config.ecn_kmax_bytes
            && (0.0..=1.0).contains(&config.ecn_pmax);
        let has_transport = (1..=MOST_MTU).contains(&config.mtu) && config.timeout_ps <= MOST_DELAY;
        require(has_thresholds && has_transport && config.reserved == 0, WhStatus::BadParameter)?;
        nodes.iter().try_for_each(|kind| WhNodeKind::of(*kind).map(|_| ()))?;
        Ok(Setup { config, profile, routing, nodes, links })
    }

    /// Whether the memory has to be cleared.
    pub(crate) fn clears(&self) -> bool {
        self.config.flags & WH_MEMORY_IS_ZERO == 0
    }

    fn size(&self) -> FabricSize {
        FabricSize { nodes: self.nodes.len(), links: self.links.len() }
    }

    fn node(&self, index: usize) -> Result<NodeKind, WhStatus> {
        Ok(match WhNodeKind::of(self.nodes[index])? {
            WhNodeKind::Host => NodeKind::Host,
            WhNodeKind::Switch => NodeKind::Switch,
            WhNodeKind::NvSwitch => NodeKind::NvSwitch,
        })
    }

    fn link(&self, index: usize) -> Result<LinkSpec, WhStatus> {
        let WhLink { a, b, rate_bps, delay_ps, loss } = self.links[index];
        require(rate_bps <= MOST_RATE && delay_ps <= MOST_DELAY, WhStatus::BadRate)?;
        Ok(LinkSpec { a: NodeId(a), b: NodeId(b), rate: BitRate(rate_bps), delay: Span(delay_ps), loss })
    }

    fn limits(&self) -> Limits {
        let WhConfig { queued_flows, active_flows, packets, outputs, inputs, snapshot_words, .. } = *self.config;
        Limits { queued_flows, active_flows, packets, outputs, inputs, snapshot_words }
    }

    fn thresholds(&self) -> Thresholds {
        Thresholds {
            rate: BitRate(self.config.ecn_rate_bps),
            kmin: self.config.ecn_kmin_bytes,
            kmax: self.config.ecn_kmax_bytes,
            pmax: self.config.ecn_pmax,
        }
    }

    fn transport(&self, base: Transport) -> Transport {
        Transport {
            mtu: self.config.mtu,
            paced: self.config.paced == 1,
            timeout: (self.config.timeout_ps > 0).then_some(Span(self.config.timeout_ps)),
            retries: self.config.retries,
            ..base
        }
    }

    /// Distance fields a router keeps: one per switch is always enough, and so is one per link.
    fn fields(&self) -> usize {
        let switches = self.nodes.iter().filter(|&&kind| kind != WhNodeKind::Host as u8).count();
        switches.min(self.links.len()).max(1)
    }

    fn ps<'m, R: Router>(&self, parts: &Parts<'m>, router: R) -> ModelSet<'m, Ps<'m, R>> {
        let mut models = Ps::models(parts.ccas, router, self.config.seed);
        models.buffers.bytes = self.config.buffer_bytes;
        models.marker.thresholds = parts.thresholds;
        models.marker.enabled = self.config.ecn == 1;
        models.transport = self.transport(models.transport);
        models
    }

    fn ns3<'m, R: Router>(&self, parts: &Parts<'m>, router: R) -> ModelSet<'m, Ns3<'m, R>> {
        let lossy = self.links.iter().filter(|link| link.loss != 0).count();
        let mut models = Ns3::models(parts.ccas, router, Ns3Coins::after_setup(self.nodes.len(), lossy));
        models.buffers.bytes = self.config.buffer_bytes;
        models.marker.thresholds = parts.thresholds;
        models.marker.enabled = self.config.ecn == 1;
        models.transport = self.transport(models.transport);
        models
    }

    /// Words of the kernel's own tables.
    fn kernel_words(&self, ccas: &[AnyCca]) -> Result<usize, WhStatus> {
        // The router does not count, but there must be one.
        const NOWHERE: FabricSize = FabricSize { nodes: 0, links: 0 };
        let mut memory = [0; Ecmp::words(NOWHERE, 1)];
        let carver = &mut Carver::new(&mut memory);
        let (parts, size, limits) = (Parts { ccas, thresholds: &THRESHOLDS }, self.size(), self.limits());
        fn words<M: Models>(models: &ModelSet<'_, M>, size: FabricSize, limits: &Limits) -> usize {
            Kernel::<M>::words(size, limits, models)
        }
        Ok(match (self.profile, self.routing) {
            (WhProfile::Ns3, _) => {
                words(&self.ns3(&parts, Ecmp::carve(carver, EcmpHash::Ns3, NOWHERE, 1)?), size, &limits)
            }
            (WhProfile::Ps, WhRouting::Ecmp) => {
                words(&self.ps(&parts, Ecmp::carve(carver, EcmpHash::Ns3, NOWHERE, 1)?), size, &limits)
            }
            (WhProfile::Ps, WhRouting::Spray) => {
                words(&self.ps(&parts, Spray::carve(carver, 0, NOWHERE, 1)?), size, &limits)
            }
        })
    }

    /// Bytes of memory for all of it. `cca` gives a congestion control.
    ///
    /// # Errors
    /// Those of `cca`; [`WhStatus::BadLimit`] if no memory is so large.
    pub(crate) fn bytes(&self, cca: impl Fn(usize) -> Result<AnyCca, WhStatus>) -> Result<usize, WhStatus> {
        // One of them stands for all: what counts is whether any needs telemetry.
        let mut sample = cca(0)?;
        for index in 1..self.config.cca_count {
            let next = cca(index)?;
            if needs_telemetry(&next) {
                sample = next;
            }
        }
        let parts = [
            bytes_for::<WhKernel>(1),
            bytes_for::<AnyCca>(self.config.cca_count),
            bytes_for::<Thresholds>(1),
            bytes_for::<NodeKind>(self.nodes.len()),
            bytes_for::<LinkSpec>(self.links.len()),
            bytes_for::<u64>(Ecmp::words(self.size(), self.fields())),
            bytes_for::<u64>(self.config.memo_words),
            bytes_for::<Store<'_>>(1),
            bytes_for::<u64>(self.kernel_words(core::slice::from_ref(&sample))?),
        ];
        let sum = parts.into_iter().try_fold(0usize, |sum, part| sum.checked_add(part?));
        sum.ok_or(WhStatus::BadLimit)
    }

    /// Makes the simulation in the rest of `region`, and the store for records before it, if there is to be one.
    ///
    /// # Errors
    /// Those of `cca`; what is wrong with a link; [`WhStatus::OutOfMemory`].
    pub(crate) fn build(
        &self,
        region: &mut Region,
        cca: impl Fn(usize) -> Result<AnyCca, WhStatus>,
    ) -> Result<(Simulation, Option<*mut Store<'static>>), WhStatus> {
        let parts = Parts {
            ccas: region.place_all(self.config.cca_count, cca)?,
            thresholds: region.place_all(1, |_| Ok(self.thresholds()))?,
        };
        let nodes = region.place_all(self.nodes.len(), |index| self.node(index))?;
        let links = region.place_all(self.links.len(), |index| self.link(index))?;
        let (size, fields, seed) = (self.size(), self.fields(), self.config.seed);
        let carver = &mut Carver::new(region.words(Ecmp::words(size, fields))?);
        let store = match self.config.memo_words {
            0 => None,
            words => {
                let records = Store::new(region.words(words)?);
                Some(region.place(records)?)
            }
        };
        let words = region.words(self.kernel_words(parts.ccas)?)?;
        let limits = &self.limits();
        let simulation = match (self.profile, self.routing) {
            (WhProfile::Ns3, _) => {
                let models = self.ns3(&parts, Ecmp::carve(carver, EcmpHash::Ns3, size, fields)?);
                Simulation::Ns3(Kernel::new(words, nodes, links, models, limits, ())?)
            }
            (WhProfile::Ps, WhRouting::Ecmp) => {
                let models = self.ps(&parts, Ecmp::carve(carver, EcmpHash::Salted(seed), size, fields)?);
                Simulation::Ps(Kernel::new(words, nodes, links, models, limits, ())?)
            }
            (WhProfile::Ps, WhRouting::Spray) => {
                let models = self.ps(&parts, Spray::carve(carver, seed, size, fields)?);
                Simulation::Spray(Kernel::new(words, nodes, links, models, limits, ())?)
            }
        };
        Ok((simulation, store))
    }
}

/// What models refer to.
struct Parts<'m> {
    ccas: &'m [AnyCca],
    thresholds: &'m [Thresholds],
}

fn needs_telemetry(cca: &AnyCca) -> bool {
    use wormhole_kernel::cca::CongestionControl;
    cca.needs().telemetry
}

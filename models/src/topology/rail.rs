//! The rail-optimised fat-tree (ROFT): GPU `i` of every server of a group is attached to leaf `i` of that group, its
//! rail. Inside a server GPUs may be joined by an NVSwitch.
//!
//! The shapes are those of SimAI's templates: Spectrum-X (one leaf a rail) and Alibaba HPN (Qian et al., SIGCOMM 2024;
//! two leaves a rail, in one plane or two).

use super::cut::Cut;
use super::{Counts, FabricPlan, HostLinks, LinkClass, PlanError, Trunk, block, join, non_zero, product};
use wormhole_kernel::fabric::LinkSpec;
use wormhole_kernel::units::{BitRate, Span};

/// How a GPU's NIC is attached. Two links have half of the NIC's rate each.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attachment {
    /// By one link to the leaf of its rail.
    SingleTor,
    /// By two links to two leaves of its rail. All leaves are joined to all spines.
    DualTor,
    /// By two links to two leaves of its rail. First leaves are joined to the first half of the spines only, second
    /// leaves to the second half: the two planes meet in the GPUs alone.
    DualPlane,
}

impl Attachment {
    /// Links of a NIC, and leaves of a rail in a group.
    fn tors(self) -> u32 {
        if self == Attachment::SingleTor { 1 } else { 2 }
    }

    fn planes(self) -> u32 {
        if self == Attachment::DualPlane { 2 } else { 1 }
    }
}

/// See the module. GPU `j` of server `s` is host `s * gpus_per_server + j`. Leaves are numbered by group, rail and
/// then NIC link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Rail<'r> {
    /// GPUs of a server, and rails.
    pub gpus_per_server: u32,
    /// Servers.
    pub servers: u32,
    /// Servers of a group (a scalable unit): GPUs of a leaf. The last group may have fewer.
    pub servers_per_leaf: u32,
    /// Spines of the fabric; even with two planes.
    pub spines: u32,
    /// How NICs are attached.
    pub attachment: Attachment,
    /// Between a GPU and the NVSwitch of its server, if there is one.
    pub nvlink: Option<LinkClass>,
    /// The NICs, each with all its links together. A link's rate is rounded down to whole bit/s.
    pub nic: HostLinks<'r>,
    /// Between a leaf and a spine.
    pub spine: Trunk,
}

/// 16 servers of 8 GPUs in one group, with NVLink of 2,880 Gb/s and 25 ns; 16 spines, no oversubscription. The other
/// links have 400 Gb/s and 500 ns.
impl Default for Rail<'_> {
    fn default() -> Self {
        const CLASS: LinkClass = LinkClass { rate: BitRate::from_gbps(400), delay: Span::from_ns(500) };
        Rail {
            gpus_per_server: 8,
            servers: 16,
            servers_per_leaf: 16,
            spines: 16,
            attachment: Attachment::SingleTor,
            nvlink: Some(LinkClass { rate: BitRate::from_gbps(2_880), delay: Span::from_ns(25) }),
            nic: HostLinks { rates: &[CLASS.rate], delay: CLASS.delay },
            spine: Trunk::single(CLASS),
        }
    }
}

impl Rail<'_> {
    fn hosts(&self) -> u32 {
        self.servers * self.gpus_per_server
    }

    fn groups(&self) -> u32 {
        self.servers.div_ceil(self.servers_per_leaf)
    }

    fn leaves(&self) -> u32 {
        self.groups() * self.gpus_per_server * self.attachment.tors()
    }

    /// The number, among the leaves, of the leaf that link `tor` of a host's NIC leads to.
    fn leaf_of(&self, host: u32, tor: u32) -> u32 {
        let (server, rail) = (host / self.gpus_per_server, host % self.gpus_per_server);
        let group = server / self.servers_per_leaf;
        (group * self.gpus_per_server + rail) * self.attachment.tors() + tor
    }

    /// The hosts of a leaf: what [`leaf_of`](Rail::leaf_of) gives it for.
    fn hosts_of(&self, leaf: u32) -> impl Iterator<Item = u32> {
        let rail_of_group = leaf / self.attachment.tors();
        let (group, rail) = (rail_of_group / self.gpus_per_server, rail_of_group % self.gpus_per_server);
        let servers = block(0, group, self.servers_per_leaf).take_while(|&server| server < self.servers);
        servers.map(move |server| server * self.gpus_per_server + rail)
    }

    /// One link of a host's NIC.
    fn nic_link(&self, host: u32) -> LinkClass {
        let nic = self.nic.of(host);
        LinkClass { rate: BitRate(nic.rate.0 / self.attachment.tors() as u64), ..nic }
    }

    fn spines_of_plane(&self) -> u32 {
        self.spines / self.attachment.planes()
    }

    fn leaf_cut(&self, leaf: u32) -> Cut {
        let half = self.hosts() / 2;
        let hosts = self.hosts_of(leaf).map(|host| Cut::of_host(host, half, self.nic_link(host).rate.0));
        hosts.sum::<Cut>().behind(self.spine.rate_of(self.spines_of_plane()))
    }
}

impl FabricPlan for Rail<'_> {
    fn check(&self) -> Result<(), PlanError> {
        let Rail { gpus_per_server, servers, servers_per_leaf, spines, .. } = *self;
        non_zero(&[("gpus_per_server", gpus_per_server), ("servers", servers)])?;
        non_zero(&[("servers_per_leaf", servers_per_leaf), ("spines", spines)])?;
        if !spines.is_multiple_of(self.attachment.planes()) {
            return Err(PlanError::Odd { parameter: "spines" });
        }
        self.nic.check("nic_rate")?;
        if self.nic.rates.iter().any(|rate| rate.0 < self.attachment.tors() as u64) {
            return Err(PlanError::Zero { parameter: "nic_rate" });
        }
        self.nvlink.map_or(Ok(()), |nvlink| nvlink.check("nvlink_rate"))?;
        self.spine.check("spine_links", "spine_rate")?;
        self.counts().check()
    }

    fn counts(&self) -> Counts {
        let (gpus, tors) = (self.gpus_per_server, self.attachment.tors());
        let hosts = product(&[self.servers, gpus]);
        let leaves = product(&[self.groups(), gpus, tors]);
        let nvlinks = if self.nvlink.is_some() { hosts } else { 0 };
        let nics = hosts.saturating_mul(tors as u64);
        let to_spines = leaves.saturating_mul(product(&[self.spines_of_plane(), self.spine.links]));
        Counts {
            hosts,
            nvswitches: if self.nvlink.is_some() { self.servers as u64 } else { 0 },
            switches: leaves.saturating_add(self.spines as u64),
            links: nics.saturating_add(nvlinks).saturating_add(to_spines),
        }
    }

    fn each_link(&self, each: &mut dyn FnMut(LinkSpec)) {
        let first_nvswitch = self.hosts();
        let first_leaf = first_nvswitch + self.counts().nvswitches as u32;
        let first_spine = first_leaf + self.leaves();
        // Before the NVLinks: the first link of the first host gives switches the fabric's NIC rate.
        for host in 0..self.hosts() {
            for tor in 0..self.attachment.tors() {
                each(self.nic_link(host).between(host, first_leaf + self.leaf_of(host, tor)));
            }
        }
        if let Some(nvlink) = self.nvlink {
            let nvswitch = |host| first_nvswitch + host / self.gpus_per_server;
            (0..self.hosts()).for_each(|host| each(nvlink.between(host, nvswitch(host))));
        }
        for leaf in 0..self.leaves() {
            // Leaves of two planes alternate.
            let spines = block(first_spine, leaf % self.attachment.planes(), self.spines_of_plane());
            join(block(first_leaf, leaf, 1), spines, self.spine, each);
        }
    }

    fn bisection(&self) -> u128 {
        let planes = self.attachment.planes();
        let leaves = |plane| (plane..self.leaves()).step_by(planes as usize);
        (0..planes).map(|plane| leaves(plane).map(|leaf| self.leaf_cut(leaf)).sum::<Cut>().least()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Built, gbps};
    use super::*;
    use wormhole_kernel::fabric::NodeKind;

    /// Three servers of two GPUs; groups of two servers, so that one is not full; two spines.
    fn small(attachment: Attachment) -> Rail<'static> {
        Rail { gpus_per_server: 2, servers: 3, servers_per_leaf: 2, spines: 2, attachment, ..Rail::default() }
    }

    #[test]
    fn gpus_of_a_rail_share_a_leaf() {
        let built = Built::of(&small(Attachment::SingleTor));
        built.assert_connected();
        // Hosts 0 to 5, NVSwitches 6 to 8, leaves 9 to 12 (two groups of two rails), spines 13 and 14.
        assert_eq!(built.neighbours(0), [6, 9]);
        assert_eq!(built.neighbours(3), [7, 10]);
        assert_eq!(built.neighbours(4), [8, 11]);
        assert_eq!(built.neighbours(9), [0, 2, 13, 14]);
        assert_eq!(built.neighbours(13), [9, 10, 11, 12]);
        // The same rail of the group; another rail of it; another group.
        assert_eq!((built.hops(0, 2), built.hops(0, 3), built.hops(0, 4)), (Some(2), Some(4), Some(4)));
    }

    #[test]
    fn gpus_of_a_server_meet_in_its_nvswitch() {
        let plan = small(Attachment::SingleTor);
        let built = Built::of(&plan);
        assert_eq!((built.count(NodeKind::NvSwitch), built.hops(2, 3)), (3, Some(2)));
        assert_eq!(built.neighbours(7), [2, 3]);
        let without = Built::of(&Rail { nvlink: None, ..plan });
        assert_eq!((without.count(NodeKind::NvSwitch), without.hops(2, 3)), (0, Some(4)));
        without.assert_connected();
    }

    #[test]
    fn a_dual_tor_splits_the_nic() {
        let plan = small(Attachment::DualTor);
        let built = Built::of(&plan);
        built.assert_connected();
        // Leaves 9 to 16, spines 17 and 18.
        assert_eq!(built.neighbours(0), [6, 9, 10]);
        assert_eq!(built.neighbours(1), [6, 11, 12]);
        assert!((9..17).all(|leaf| built.neighbours(leaf).ends_with(&[17, 18])));
        assert_eq!(plan.nic_link(0).rate, BitRate::from_gbps(200));
        assert_eq!(plan.injection(), small(Attachment::SingleTor).injection());
    }

    #[test]
    fn dual_planes_have_no_switch_in_common() {
        let built = Built::of(&small(Attachment::DualPlane));
        built.assert_connected();
        assert_eq!(built.neighbours(17), [9, 11, 13, 15]);
        assert_eq!(built.neighbours(18), [10, 12, 14, 16]);
        // No switch of one plane is within reach of the other: hosts do not forward.
        for leaf in [9, 10] {
            assert!((9..19).all(|node| built.hops(leaf, node).is_some() == (node % 2 == leaf % 2)));
        }
    }

    #[test]
    fn a_thousand_gpus() {
        let plan = Rail { servers: 128, servers_per_leaf: 32, spines: 32, ..Rail::default() };
        let links = 2 * 1_024 + 32 * 32;
        assert_eq!(plan.counts(), Counts { hosts: 1_024, nvswitches: 128, switches: 32 + 32, links });
        let built = Built::of(&plan);
        built.assert_connected();
        let first_leaf = 1_024 + 128;
        assert!((first_leaf..first_leaf + 32).all(|leaf| built.ports(leaf) == 32 + 32));
        assert!((first_leaf + 32..first_leaf + 64).all(|spine| built.ports(spine) == 32));
        assert_eq!((plan.bisection(), plan.injection()), (gbps(512 * 400), gbps(512 * 400)));
        assert_eq!(Rail { spines: 8, ..plan }.bisection(), gbps(512 * 400 / 4));
    }

    #[test]
    fn bisection_is_the_minimum_cut() {
        let rates = [400, 100, 50].map(BitRate::from_gbps);
        for attachment in [Attachment::SingleTor, Attachment::DualTor, Attachment::DualPlane] {
            let plan = small(attachment);
            let mixed = Rail { nic: HostLinks { rates: &rates, ..plan.nic }, ..plan };
            let slow = LinkClass { rate: BitRate::from_gbps(60), ..plan.spine.class };
            let narrow = Rail { spine: Trunk { links: 2, class: slow }, ..mixed };
            for plan in [plan, mixed, narrow, Rail { servers_per_leaf: 3, ..narrow }] {
                assert_eq!(plan.bisection(), Built::of(&plan).minimum_cut(), "{plan:?}");
            }
        }
    }

    #[test]
    fn impossible_parameters_are_named() {
        let plan = Rail::default();
        let zero = |parameter| Err(PlanError::Zero { parameter });
        assert_eq!(Rail { servers_per_leaf: 0, ..plan }.check(), zero("servers_per_leaf"));
        let (spines, attachment) = (3, Attachment::DualPlane);
        assert_eq!(Rail { spines, attachment, ..plan }.check(), Err(PlanError::Odd { parameter: "spines" }));
        assert_eq!(Rail { spines, attachment: Attachment::DualTor, ..plan }.check(), Ok(()));
        let nic = HostLinks { rates: &[BitRate(1)], ..plan.nic };
        assert_eq!(Rail { nic, ..plan }.check(), Ok(()));
        assert_eq!(Rail { nic, attachment, ..plan }.check(), zero("nic_rate"));
        let nvlink = Some(LinkClass { rate: BitRate(0), delay: Span::ZERO });
        assert_eq!(Rail { nvlink, ..plan }.check(), zero("nvlink_rate"));
        let huge = Rail { servers: u32::MAX, servers_per_leaf: 1, gpus_per_server: u32::MAX, ..plan };
        assert!(matches!(huge.check(), Err(PlanError::TooLarge { .. })));
    }
}

//! Folded Clos networks of two tiers (leaves, spines) or three (pods of leaves and spines, cores), with any
//! oversubscription.
//!
//! Every leaf is joined to every spine of its pod. With cores, the cores fall into as many groups as a pod has spines,
//! and spine `j` of each pod is joined to every core of group `j`.

use super::cut::Cut;
use super::{Counts, FabricPlan, HostLinks, LinkClass, PlanError, Trunk, block, join, non_zero, product};
use wormhole_kernel::fabric::LinkSpec;
use wormhole_kernel::units::BitRate;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Clos<'r> {
    /// Pods. Without cores there is one.
    pub pods: u32,
    /// Leaves of a pod.
    pub leaves: u32,
    /// Hosts of a leaf.
    pub hosts_per_leaf: u32,
    /// Spines of a pod.
    pub spines: u32,
    /// Cores of the fabric, a multiple of `spines`; 0 for two tiers.
    pub cores: u32,
    /// Between hosts and leaves.
    pub host: HostLinks<'r>,
    /// Between a leaf and a spine.
    pub spine: Trunk,
    /// Between a spine and a core.
    pub core: Trunk,
}

/// Two tiers without oversubscription: four leaves with 16 hosts at 100 Gb/s each, four spines at 400 Gb/s; 1 us.
impl Default for Clos<'_> {
    fn default() -> Self {
        let trunk = Trunk::single(LinkClass { rate: BitRate::from_gbps(400), ..LinkClass::PLAIN });
        let (host, spine, core) = (HostLinks::PLAIN, trunk, trunk);
        Clos { pods: 1, leaves: 4, hosts_per_leaf: 16, spines: 4, cores: 0, host, spine, core }
    }
}

impl Clos<'_> {
    fn hosts(&self) -> u32 {
        self.pods * self.leaves * self.hosts_per_leaf
    }

    /// The cut below the pods' uplinks.
    fn pod_cut(&self, pod: u32) -> Cut {
        let leaves = block(0, pod, self.leaves).map(|leaf| self.leaf_cut(leaf));
        leaves.sum::<Cut>().behind(self.core.rate_of(self.cores))
    }

    fn leaf_cut(&self, leaf: u32) -> Cut {
        let half = self.hosts() / 2;
        let hosts = block(0, leaf, self.hosts_per_leaf);
        let hosts = hosts.map(|host| Cut::of_host(host, half, self.host.of(host).rate.0));
        hosts.sum::<Cut>().behind(self.spine.rate_of(self.spines))
    }
}

impl FabricPlan for Clos<'_> {
    fn check(&self) -> Result<(), PlanError> {
        let Clos { pods, leaves, hosts_per_leaf, spines, cores, .. } = *self;
        non_zero(&[("pods", pods), ("leaves", leaves), ("hosts_per_leaf", hosts_per_leaf), ("spines", spines)])?;
        if pods > 1 {
            non_zero(&[("cores", cores)])?;
        }
        if !cores.is_multiple_of(spines) {
            return Err(PlanError::NotMultiple { parameter: "cores", of: "spines" });
        }
        self.host.check("host_rate")?;
        self.spine.check("spine_links", "spine_rate")?;
        if cores > 0 {
            self.core.check("core_links", "core_rate")?;
        }
        self.counts().check()
    }

    fn counts(&self) -> Counts {
        let Clos { pods, leaves, spines, cores, .. } = *self;
        let hosts = product(&[pods, leaves, self.hosts_per_leaf]);
        let in_pods = product(&[pods, leaves]).saturating_add(product(&[pods, spines]));
        let to_spines = product(&[pods, leaves, spines, self.spine.links]);
        let to_cores = product(&[pods, cores, self.core.links]);
        let links = hosts.saturating_add(to_spines).saturating_add(to_cores);
        Counts { hosts, nvswitches: 0, switches: in_pods.saturating_add(cores as u64), links }
    }

    fn each_link(&self, each: &mut dyn FnMut(LinkSpec)) {
        let first_leaf = self.hosts();
        let first_spine = first_leaf + self.pods * self.leaves;
        let first_core = first_spine + self.pods * self.spines;
        for host in 0..self.hosts() {
            each(self.host.of(host).between(host, first_leaf + host / self.hosts_per_leaf));
        }
        for pod in 0..self.pods {
            join(block(first_leaf, pod, self.leaves), block(first_spine, pod, self.spines), self.spine, each);
        }
        for spine in 0..self.pods * self.spines {
            let cores = block(first_core, spine % self.spines, self.cores / self.spines);
            join(block(first_spine, spine, 1), cores, self.core, each);
        }
    }

    fn bisection(&self) -> u128 {
        (0..self.pods).map(|pod| self.pod_cut(pod)).sum::<Cut>().least()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Built, gbps};
    use super::*;
    use wormhole_kernel::units::Span;

    /// Three pods of two leaves with three hosts each; two spines a pod, four cores; trunks of two and one.
    fn three_tiers() -> Clos<'static> {
        let spine = Trunk { links: 2, class: LinkClass::PLAIN };
        let core = Trunk::single(LinkClass::PLAIN);
        Clos { pods: 3, leaves: 2, hosts_per_leaf: 3, spines: 2, cores: 4, spine, core, ..Clos::default() }
    }

    #[test]
    fn two_tiers() {
        let plan = Clos::default();
        assert_eq!(plan.counts(), Counts { hosts: 64, nvswitches: 0, switches: 8, links: 64 + 16 });
        let built = Built::of(&plan);
        built.assert_connected();
        assert_eq!((built.hops(0, 15), built.hops(0, 16), built.hops(0, 63)), (Some(2), Some(4), Some(4)));
        assert!((64..68).all(|leaf| built.ports(leaf) == 16 + 4));
        assert!((68..72).all(|spine| built.ports(spine) == 4));
    }

    #[test]
    fn three_tiers_with_parallel_links() {
        let plan = three_tiers();
        let links = 18 + 3 * 2 * 2 * 2 + 3 * 4;
        assert_eq!(plan.counts(), Counts { hosts: 18, nvswitches: 0, switches: 6 + 6 + 4, links });
        let built = Built::of(&plan);
        built.assert_connected();
        assert_eq!((built.hops(0, 2), built.hops(0, 3), built.hops(0, 6)), (Some(2), Some(4), Some(6)));
        assert!((18..24).all(|leaf| built.ports(leaf) == 3 + 2 * 2));
        assert!((24..30).all(|spine| built.ports(spine) == 2 * 2 + 2));
        assert!((30..34).all(|core| built.ports(core) == 3));
        // Core 32 is in the second group: it knows the second spine of each pod only.
        assert_eq!(built.neighbours(32), [25, 27, 29]);
    }

    #[test]
    fn oversubscription_is_what_the_parameters_say() {
        let plan = Clos::default();
        assert_eq!((plan.bisection(), plan.injection()), (gbps(3_200), gbps(3_200)));
        let two_to_one = Clos { spines: 2, ..plan };
        assert_eq!((two_to_one.bisection(), two_to_one.injection()), (gbps(1_600), gbps(3_200)));
        // More spines than the hosts can fill.
        assert_eq!(Clos { spines: 64, ..plan }.bisection(), gbps(3_200));
        let pods = Clos { pods: 2, cores: 2, spines: 2, ..plan };
        assert_eq!((pods.bisection(), pods.injection()), (gbps(2 * 400), gbps(6_400)));
    }

    #[test]
    fn bisection_is_the_minimum_cut() {
        let rates = [400, 25, 100].map(BitRate::from_gbps);
        let small = Clos { leaves: 3, hosts_per_leaf: 3, spines: 3, ..Clos::default() };
        let mixed = Clos { host: HostLinks { rates: &rates, delay: Span::ZERO }, ..small };
        let narrow = Clos { spine: Trunk::single(LinkClass::PLAIN), spines: 1, ..mixed };
        for plan in [small, mixed, narrow, three_tiers(), Clos { cores: 2, ..three_tiers() }] {
            assert_eq!(plan.bisection(), Built::of(&plan).minimum_cut(), "{plan:?}");
        }
    }

    #[test]
    fn impossible_parameters_are_named() {
        let plan = Clos::default();
        let zero = |parameter| Err(PlanError::Zero { parameter });
        assert_eq!(Clos { leaves: 0, ..plan }.check(), zero("leaves"));
        assert_eq!(Clos { pods: 2, ..plan }.check(), zero("cores"));
        assert_eq!(Clos { spine: Trunk { links: 0, ..plan.spine }, ..plan }.check(), zero("spine_links"));
        let not_multiple = Err(PlanError::NotMultiple { parameter: "cores", of: "spines" });
        assert_eq!(Clos { cores: 6, ..plan }.check(), not_multiple);
        let core = Trunk::single(LinkClass { rate: BitRate(0), ..LinkClass::PLAIN });
        assert_eq!(
            (Clos { core, ..plan }.check(), Clos { core, cores: 4, ..plan }.check()),
            (Ok(()), zero("core_rate"))
        );
        let huge = Clos { leaves: u32::MAX, hosts_per_leaf: u32::MAX, spines: u32::MAX, ..plan };
        assert!(matches!(huge.check(), Err(PlanError::TooLarge { what: "nodes", .. })));
        let spine = Trunk { links: u32::MAX, ..plan.spine };
        assert!(matches!(Clos { spine, ..plan }.check(), Err(PlanError::TooLarge { what: "links", .. })));
    }
}

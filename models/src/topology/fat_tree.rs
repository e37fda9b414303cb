//! The k-ary fat-tree of Al-Fares, Loukissas and Vahdat, SIGCOMM 2008: `k` pods of `k/2` edge and `k/2` aggregation
//! switches, `k^2/4` cores, `k^3/4` hosts. All switches have `k` ports.

use super::{Clos, Counts, FabricPlan, HostLinks, LinkClass, PlanError, Trunk, non_zero};
use wormhole_kernel::fabric::LinkSpec;

/// See the module.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FatTree<'r> {
    /// Ports of a switch; even.
    pub k: u32,
    /// Between hosts and edge switches.
    pub host: HostLinks<'r>,
    /// Between edge and aggregation switches.
    pub aggregation: LinkClass,
    /// Between aggregation switches and cores.
    pub core: LinkClass,
}

/// `k` is 4: 16 hosts. All links have 100 Gb/s and 1 us.
impl Default for FatTree<'_> {
    fn default() -> Self {
        FatTree { k: 4, host: HostLinks::PLAIN, aggregation: LinkClass::PLAIN, core: LinkClass::PLAIN }
    }
}

impl<'r> FatTree<'r> {
    /// The same as a Clos network of three tiers.
    fn clos(&self) -> Clos<'r> {
        let half = self.k / 2;
        let (spine, core) = (Trunk::single(self.aggregation), Trunk::single(self.core));
        // Beyond 32 bits there are too many of them, whatever their number.
        let cores = half.saturating_mul(half);
        Clos { pods: self.k, leaves: half, hosts_per_leaf: half, spines: half, cores, host: self.host, spine, core }
    }
}

impl FabricPlan for FatTree<'_> {
    fn check(&self) -> Result<(), PlanError> {
        non_zero(&[("k", self.k)])?;
        if !self.k.is_multiple_of(2) {
            return Err(PlanError::Odd { parameter: "k" });
        }
        self.aggregation.check("aggregation_rate")?;
        self.counts().check()?;
        self.clos().check()
    }

    fn counts(&self) -> Counts {
        self.clos().counts()
    }

    fn each_link(&self, each: &mut dyn FnMut(LinkSpec)) {
        self.clos().each_link(each);
    }

    fn bisection(&self) -> u128 {
        self.clos().bisection()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Built, gbps};
    use super::*;
    use wormhole_kernel::units::BitRate;

    #[test]
    fn counts_follow_from_k() {
        for k in [2, 4, 6, 8, 16] {
            let plan = FatTree { k, ..FatTree::default() };
            let n = k as u64;
            let counts =
                Counts { hosts: n.pow(3) / 4, nvswitches: 0, switches: 5 * n * n / 4, links: 3 * n.pow(3) / 4 };
            assert_eq!((plan.check(), plan.counts()), (Ok(()), counts), "k = {k}");
            let built = Built::of(&plan);
            built.assert_connected();
            let switches = counts.hosts as u32..(counts.hosts + counts.switches) as u32;
            assert!(switches.into_iter().all(|switch| built.ports(switch) == k as usize), "k = {k}");
        }
    }

    #[test]
    fn paths_have_two_four_or_six_links() {
        let built = Built::of(&FatTree::default());
        let hops = [1, 2, 3, 4, 15].map(|host| built.hops(0, host));
        assert_eq!(hops, [Some(2), Some(4), Some(4), Some(6), Some(6)]);
        // Edge switch 16 of the first pod, its aggregation switches 24 and 25, and the cores of the latter.
        assert_eq!(built.neighbours(16), [0, 1, 24, 25]);
        assert_eq!(built.neighbours(25), [16, 17, 34, 35]);
        assert_eq!(built.neighbours(32), [24, 26, 28, 30]);
    }

    #[test]
    fn bisection_is_full_unless_a_tier_is_slower() {
        let plan = FatTree::default();
        assert_eq!((plan.bisection(), plan.injection()), (gbps(800), gbps(800)));
        let core = LinkClass { rate: BitRate::from_gbps(40), ..LinkClass::PLAIN };
        // Two pods, with four uplinks each.
        let slow_cores = FatTree { core, ..plan };
        assert_eq!(slow_cores.bisection(), gbps(2 * 4 * 40));
        let small = FatTree { k: 2, ..slow_cores };
        for plan in [small, slow_cores, FatTree { aggregation: core, ..plan }] {
            assert_eq!(plan.bisection(), Built::of(&plan).minimum_cut(), "{plan:?}");
        }
    }

    #[test]
    fn impossible_parameters_are_named() {
        let plan = FatTree::default();
        assert_eq!(FatTree { k: 0, ..plan }.check(), Err(PlanError::Zero { parameter: "k" }));
        assert_eq!(FatTree { k: 5, ..plan }.check(), Err(PlanError::Odd { parameter: "k" }));
        let none = LinkClass { rate: BitRate(0), ..LinkClass::PLAIN };
        let zero = |parameter| Err(PlanError::Zero { parameter });
        assert_eq!(FatTree { aggregation: none, ..plan }.check(), zero("aggregation_rate"));
        assert_eq!(FatTree { core: none, ..plan }.check(), zero("core_rate"));
        assert!(matches!(FatTree { k: u32::MAX - 1, ..plan }.check(), Err(PlanError::TooLarge { .. })));
    }
}

//! A dumbbell: two switches with hosts, and the bottleneck between them.

use super::cut::Cut;
use super::{Counts, FabricPlan, HostLinks, LinkClass, PlanError, Trunk, join, non_zero};
use wormhole_kernel::fabric::LinkSpec;

/// See the module. The hosts on the left have the lower ids; the switches are the last nodes, the left one first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Dumbbell<'r> {
    /// Hosts on the left.
    pub left: u32,
    /// Hosts on the right.
    pub right: u32,
    /// Their links to the switches.
    pub host: HostLinks<'r>,
    /// Between the switches.
    pub bottleneck: Trunk,
}

/// Four hosts on each side; all links have 100 Gb/s and 1 us.
impl Default for Dumbbell<'_> {
    fn default() -> Self {
        Dumbbell { left: 4, right: 4, host: HostLinks::PLAIN, bottleneck: Trunk::single(LinkClass::PLAIN) }
    }
}

impl FabricPlan for Dumbbell<'_> {
    fn check(&self) -> Result<(), PlanError> {
        non_zero(&[("left", self.left), ("right", self.right)])?;
        self.host.check("host_rate")?;
        self.bottleneck.check("bottleneck_links", "bottleneck_rate")?;
        self.counts().check()
    }

    fn counts(&self) -> Counts {
        let hosts = self.left as u64 + self.right as u64;
        Counts { hosts, nvswitches: 0, switches: 2, links: hosts + self.bottleneck.links as u64 }
    }

    fn each_link(&self, each: &mut dyn FnMut(LinkSpec)) {
        let left = self.left + self.right;
        let right = left + 1;
        (0..self.left).for_each(|host| each(self.host.of(host).between(host, left)));
        (self.left..left).for_each(|host| each(self.host.of(host).between(host, right)));
        join(left..right, right..right + 1, self.bottleneck, each);
    }

    fn bisection(&self) -> u128 {
        let hosts = self.left + self.right;
        let cut = |host| Cut::of_host(host, hosts / 2, self.host.of(host).rate.0);
        let left = (0..self.left).map(cut).sum::<Cut>().behind(self.bottleneck.rate_of(1));
        [left].into_iter().chain((self.left..hosts).map(cut)).sum::<Cut>().least()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Built, gbps};
    use super::*;
    use wormhole_kernel::units::BitRate;

    #[test]
    fn the_bottleneck_is_between_left_and_right() {
        let dumbbell = Built::of(&Dumbbell { left: 2, right: 3, ..Dumbbell::default() });
        assert_eq!((dumbbell.ports(5), dumbbell.ports(6)), (3, 4));
        assert_eq!((dumbbell.hops(0, 1), dumbbell.hops(0, 2), dumbbell.hops(2, 4)), (Some(2), Some(3), Some(2)));
        dumbbell.assert_connected();
    }

    #[test]
    fn the_bottleneck_is_the_bisection_unless_the_hosts_are_slower() {
        let plan = Dumbbell::default();
        assert_eq!((plan.bisection(), plan.injection()), (gbps(100), gbps(400)));
        let bottleneck = Trunk { links: 3, ..plan.bottleneck };
        assert_eq!(Dumbbell { bottleneck, ..plan }.bisection(), gbps(300));
        let class = LinkClass { rate: BitRate::from_gbps(1_000), ..LinkClass::PLAIN };
        assert_eq!(Dumbbell { bottleneck: Trunk::single(class), ..plan }.bisection(), gbps(400));
        // Half of the hosts are 0, 1 and 2; of these 2 is on the right: it sends as much as it can to the others there.
        let uneven = Dumbbell { left: 2, right: 5, ..plan };
        assert_eq!((uneven.bisection(), Built::of(&uneven).minimum_cut()), (gbps(200), gbps(200)));
    }

    #[test]
    fn both_sides_have_hosts() {
        let plan = Dumbbell::default();
        assert_eq!(Dumbbell { right: 0, ..plan }.check(), Err(PlanError::Zero { parameter: "right" }));
        let bottleneck = Trunk { links: 0, ..plan.bottleneck };
        let zero = Err(PlanError::Zero { parameter: "bottleneck_links" });
        assert_eq!(Dumbbell { bottleneck, ..plan }.check(), zero);
    }
}

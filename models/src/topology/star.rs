//! A star: all hosts on one switch.

use super::cut::Cut;
use super::{Counts, FabricPlan, HostLinks, PlanError, non_zero};
use wormhole_kernel::fabric::LinkSpec;

/// See the module. The switch is the last node.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Star<'r> {
    /// Hosts.
    pub hosts: u32,
    /// Their links to the switch.
    pub host: HostLinks<'r>,
}

/// Eight hosts at 100 Gb/s and 1 us.
impl Default for Star<'_> {
    fn default() -> Self {
        Star { hosts: 8, host: HostLinks::PLAIN }
    }
}

impl FabricPlan for Star<'_> {
    fn check(&self) -> Result<(), PlanError> {
        non_zero(&[("hosts", self.hosts)])?;
        self.host.check("host_rate")?;
        self.counts().check()
    }

    fn counts(&self) -> Counts {
        let hosts = self.hosts as u64;
        Counts { hosts, nvswitches: 0, switches: 1, links: hosts }
    }

    fn each_link(&self, each: &mut dyn FnMut(LinkSpec)) {
        (0..self.hosts).for_each(|host| each(self.host.of(host).between(host, self.hosts)));
    }

    fn bisection(&self) -> u128 {
        let half = self.hosts / 2;
        let hosts = (0..self.hosts).map(|host| Cut::of_host(host, half, self.host.of(host).rate.0));
        hosts.sum::<Cut>().least()
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{Built, gbps};
    use super::*;
    use wormhole_kernel::units::{BitRate, Span};

    #[test]
    fn all_hosts_are_two_links_apart() {
        let star = Built::of(&Star::default());
        assert_eq!(star.ports(8), 8);
        assert!((1..8).all(|host| star.hops(0, host) == Some(2)));
    }

    #[test]
    fn the_slower_half_is_the_bisection() {
        assert_eq!(Star::default().bisection(), gbps(400));
        let rates = [BitRate::from_gbps(400), BitRate::from_gbps(100)];
        // Hosts 0 and 1 can send 500 Gb/s to hosts 2, 3 and 4, which have 900.
        let star = Star { hosts: 5, host: HostLinks { rates: &rates, delay: Span::ZERO } };
        assert_eq!((star.bisection(), star.injection()), (gbps(500), gbps(500)));
        assert_eq!(Built::of(&star).minimum_cut(), gbps(500));
    }

    #[test]
    fn a_star_has_hosts_with_rates() {
        let zero = |parameter| Err(PlanError::Zero { parameter });
        assert_eq!(Star { hosts: 0, ..Star::default() }.check(), zero("hosts"));
        let host = HostLinks { rates: &[], delay: Span::ZERO };
        assert_eq!(Star { host, ..Star::default() }.check(), zero("host_rate"));
        assert!(matches!(Star { hosts: u32::MAX, ..Star::default() }.check(), Err(PlanError::TooLarge { .. })));
    }
}

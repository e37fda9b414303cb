//! Fabrics by their parameters: the nodes and links of the usual shapes.
//!
//! Nodes are numbered from the bottom: hosts, NVSwitches, leaves, then each tier above. Links are listed in the same
//! order, so a host's first link is that of its NIC.

mod clos;
mod cut;
mod dumbbell;
mod fat_tree;
mod rail;
mod star;
#[cfg(test)]
mod testing;

pub use clos::Clos;
pub use dumbbell::Dumbbell;
pub use fat_tree::FatTree;
pub use rail::{Attachment, Rail};
pub use star::Star;

use core::fmt;
use core::ops::Range;
use wormhole_kernel::fabric::{FabricSize, LinkSpec, NodeKind};
use wormhole_kernel::ids::NodeId;
use wormhole_kernel::units::{BitRate, Span};

/// More nodes than this are taken for a mistake: ns-3's addresses have room for no more.
pub const MAX_NODES: u64 = 1 << 24;

/// More links than this cannot be numbered: each has two ports.
pub const MAX_LINKS: u64 = 1 << 30;

/// A fabric by its parameters.
///
/// Who depends on it: whatever makes a list of nodes and links of it. All methods but [`check`](FabricPlan::check)
/// count on parameters that `check` has found possible; with others they MAY panic.
pub trait FabricPlan {
    /// Whether there is such a fabric.
    ///
    /// # Errors
    /// [`PlanError`], with the first parameter that is impossible.
    fn check(&self) -> Result<(), PlanError>;

    /// How many there are of each kind of node, and of links.
    fn counts(&self) -> Counts;

    /// Calls `each` with every link, in order. Parallel links follow each other.
    fn each_link(&self, each: &mut dyn FnMut(LinkSpec));

    /// What the first half of the hosts, by id and rounded down, can send to the other hosts at once, in bit/s: the
    /// minimum cut of the network between them, one direction. NVSwitches are left out, and hosts forward nothing.
    fn bisection(&self) -> u128;

    /// The size of the fabric.
    fn size(&self) -> FabricSize {
        let Counts { hosts, nvswitches, switches, links } = self.counts();
        FabricSize { nodes: (hosts + nvswitches + switches) as usize, links: links as usize }
    }

    /// What a node of the fabric is.
    fn node(&self, id: NodeId) -> NodeKind {
        let Counts { hosts, nvswitches, .. } = self.counts();
        match id.0 as u64 {
            id if id < hosts => NodeKind::Host,
            id if id < hosts + nvswitches => NodeKind::NvSwitch,
            _ => NodeKind::Switch,
        }
    }

    /// What [`bisection`](FabricPlan::bisection) would be if only the NICs were limits: the rate of all NICs of one
    /// half of the hosts, in bit/s, whichever is less. Divided by the bisection it is the oversubscription.
    fn injection(&self) -> u128 {
        let hosts = self.counts().hosts;
        let mut halves = [0, 0];
        self.each_link(&mut |link| {
            if (link.a.0 as u64) < hosts && self.node(link.b) == NodeKind::Switch {
                halves[(link.a.0 as u64 >= hosts / 2) as usize] += link.rate.0 as u128;
            }
        });
        halves[0].min(halves[1])
    }
}

/// How many nodes and links a fabric has. Numbers too large for 64 bits saturate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Counts {
    /// Hosts. One GPU is one host.
    pub hosts: u64,
    /// NVSwitches: one a server, or none.
    pub nvswitches: u64,
    /// Switches of the network.
    pub switches: u64,
    /// Links. Parallel links are counted one by one.
    pub links: u64,
}

impl Counts {
    fn check(&self) -> Result<(), PlanError> {
        let nodes = self.hosts.saturating_add(self.nvswitches).saturating_add(self.switches);
        if nodes > MAX_NODES {
            return Err(PlanError::TooLarge { what: "nodes", limit: MAX_NODES });
        }
        if self.links > MAX_LINKS {
            return Err(PlanError::TooLarge { what: "links", limit: MAX_LINKS });
        }
        Ok(())
    }
}

/// Why there is no such fabric. Parameters have the names of their fields; those of links have the field's name
/// before them, as in `spine_rate`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum PlanError {
    /// A number or a rate is 0, or a list of rates is empty.
    Zero {
        /// The parameter.
        parameter: &'static str,
    },
    /// A number is not even.
    Odd {
        /// The parameter.
        parameter: &'static str,
    },
    /// A number is not divisible by another one.
    NotMultiple {
        /// The parameter.
        parameter: &'static str,
        /// The parameter it must be a multiple of.
        of: &'static str,
    },
    /// There are more nodes or links than can be numbered.
    TooLarge {
        /// `nodes` or `links`.
        what: &'static str,
        /// How many there may be.
        limit: u64,
    },
}

impl PlanError {
    /// The parameter that is impossible; `None` if it is all of them together.
    pub fn parameter(&self) -> Option<&'static str> {
        match *self {
            PlanError::Zero { parameter } | PlanError::Odd { parameter } | PlanError::NotMultiple { parameter, .. } => {
                Some(parameter)
            }
            PlanError::TooLarge { .. } => None,
        }
    }
}

impl fmt::Display for PlanError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            PlanError::Zero { parameter } => write!(f, "{parameter} must not be 0"),
            PlanError::Odd { parameter } => write!(f, "{parameter} must be even"),
            PlanError::NotMultiple { parameter, of } => write!(f, "{parameter} must be a multiple of {of}"),
            PlanError::TooLarge { what, limit } => write!(f, "the fabric would have more than {limit} {what}"),
        }
    }
}

impl core::error::Error for PlanError {}

/// A kind of link.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkClass {
    /// Rate of each direction.
    pub rate: BitRate,
    /// Propagation delay.
    pub delay: Span,
}

impl LinkClass {
    /// A link of 100 Gb/s and 1 us.
    const PLAIN: LinkClass = LinkClass { rate: BitRate::from_gbps(100), delay: Span::from_us(1) };

    fn check(&self, rate: &'static str) -> Result<(), PlanError> {
        if self.rate.0 == 0 { Err(PlanError::Zero { parameter: rate }) } else { Ok(()) }
    }

    /// A link of this kind between two nodes. It loses nothing.
    fn between(&self, a: u32, b: u32) -> LinkSpec {
        LinkSpec { a: NodeId(a), b: NodeId(b), rate: self.rate, delay: self.delay, loss: 0 }
    }
}

/// The links between two switches.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Trunk {
    /// How many there are, in parallel.
    pub links: u32,
    /// Each of them.
    pub class: LinkClass,
}

impl Trunk {
    /// A trunk of one link.
    pub const fn single(class: LinkClass) -> Trunk {
        Trunk { links: 1, class }
    }

    fn check(&self, links: &'static str, rate: &'static str) -> Result<(), PlanError> {
        non_zero(&[(links, self.links)])?;
        self.class.check(rate)
    }

    /// Rate of `trunks` of these together, in bit/s.
    fn rate_of(&self, trunks: u32) -> u128 {
        product(&[trunks, self.links]) as u128 * self.class.rate.0 as u128
    }
}

/// The NICs of the hosts. They have one delay, but may differ in their rates.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct HostLinks<'r> {
    /// Rates, in turn: that of host 0, of host 1 and so on, and from the start again.
    pub rates: &'r [BitRate],
    /// Propagation delay.
    pub delay: Span,
}

impl HostLinks<'_> {
    /// Every NIC has 100 Gb/s and 1 us.
    const PLAIN: HostLinks<'static> = HostLinks { rates: &[LinkClass::PLAIN.rate], delay: LinkClass::PLAIN.delay };

    fn check(&self, rate: &'static str) -> Result<(), PlanError> {
        let sound = !self.rates.is_empty() && self.rates.iter().all(|rate| rate.0 > 0);
        if sound { Ok(()) } else { Err(PlanError::Zero { parameter: rate }) }
    }

    /// The NIC of a host.
    fn of(&self, host: u32) -> LinkClass {
        LinkClass { rate: self.rates[host as usize % self.rates.len()], delay: self.delay }
    }
}

fn non_zero(parameters: &[(&'static str, u32)]) -> Result<(), PlanError> {
    let zero = parameters.iter().find(|(_, value)| *value == 0);
    zero.map_or(Ok(()), |&(parameter, _)| Err(PlanError::Zero { parameter }))
}

/// Saturates, so that parameters of any size can be checked.
fn product(factors: &[u32]) -> u64 {
    factors.iter().fold(1, |product: u64, &factor| product.saturating_mul(factor as u64))
}

/// The ids of block `index` of `size` nodes, where block 0 begins with node `first`.
fn block(first: u32, index: u32, size: u32) -> Range<u32> {
    let start = first + index * size;
    start..start + size
}

/// Joins every lower node to every upper one.
fn join(lower: Range<u32>, upper: Range<u32>, trunk: Trunk, each: &mut dyn FnMut(LinkSpec)) {
    for a in lower {
        for b in upper.clone() {
            (0..trunk.links).for_each(|_| each(trunk.class.between(a, b)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_of_hosts_repeat() {
        let rates = [BitRate(1), BitRate(2), BitRate(3)];
        let hosts = HostLinks { rates: &rates, delay: Span(7) };
        assert_eq!([0, 2, 3, 7].map(|host| hosts.of(host).rate.0), [1, 3, 1, 2]);
        let zero = Err(PlanError::Zero { parameter: "host_rate" });
        assert_eq!(HostLinks { rates: &[], ..hosts }.check("host_rate"), zero);
        assert_eq!(HostLinks { rates: &[BitRate(1), BitRate(0)], ..hosts }.check("host_rate"), zero);
    }

    #[test]
    fn counts_are_checked_and_do_not_wrap() {
        assert_eq!(product(&[u32::MAX; 4]), u64::MAX);
        let counts = Counts { hosts: MAX_NODES - 1, nvswitches: 0, switches: 1, links: MAX_LINKS };
        assert_eq!(counts.check(), Ok(()));
        let nodes = Counts { nvswitches: u64::MAX, ..counts }.check();
        assert_eq!(nodes, Err(PlanError::TooLarge { what: "nodes", limit: MAX_NODES }));
        let links = Counts { links: MAX_LINKS + 1, ..counts }.check();
        assert_eq!(links, Err(PlanError::TooLarge { what: "links", limit: MAX_LINKS }));
    }
}

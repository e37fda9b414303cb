//! The minimum cut between two halves of the hosts.
//!
//! In a folded Clos network traffic can be spread evenly over all switches of a tier. What it can carry is then what a
//! tree can carry in which each tier of a pod is one node, and all uplinks of a node are one edge.

use core::iter::Sum;

/// The rate, in bit/s, of the links that are cut below a node if the node is on either side.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Cut {
    /// If it is with the first half.
    first: u128,
    /// If it is with the second half.
    second: u128,
}

impl Cut {
    /// Below a switch with one host. Hosts below id `half` are the first half.
    pub(super) fn of_host(host: u32, half: u32, rate: u64) -> Cut {
        let rate = rate as u128;
        if host < half { Cut { first: 0, second: rate } } else { Cut { first: rate, second: 0 } }
    }

    /// Below whatever the node's uplinks, of this rate together, lead to.
    pub(super) fn behind(self, uplinks: u128) -> Cut {
        Cut { first: self.first.min(self.second + uplinks), second: self.second.min(self.first + uplinks) }
    }

    /// The cut, if nothing is above the node.
    pub(super) fn least(self) -> u128 {
        self.first.min(self.second)
    }
}

/// Below a node that all of these are below.
impl Sum for Cut {
    fn sum<I: Iterator<Item = Cut>>(cuts: I) -> Cut {
        cuts.fold(Cut::default(), |sum, cut| Cut { first: sum.first + cut.first, second: sum.second + cut.second })
    }
}

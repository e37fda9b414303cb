//! What can go wrong at the kernel's surface.

use crate::ids::NodeId;
use crate::units::SimTime;
use core::fmt;

/// A fixed capacity is used up. The kernel stays usable.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CapacityError {
    /// The field of [`Limits`](crate::limits::Limits) to raise, or `memory` if the caller's slice is too short.
    pub what: &'static str,
    /// Its present value (for `memory`, the number of 8-byte words needed).
    pub limit: usize,
}

/// Why a command was refused. A refused command changes nothing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Error {
    /// A capacity is used up.
    Capacity(CapacityError),
    /// The command names a time before `now`.
    InPast {
        /// The time asked for.
        at: SimTime,
        /// The kernel's time.
        now: SimTime,
    },
    /// The node does not exist or is not a host.
    NotAHost(NodeId),
    /// There is no such link, or it names a node that does not exist, or joins a node to itself.
    BadLink {
        /// Index of the link in the fabric description.
        link: usize,
    },
    /// A link has rate 0.
    ZeroRate {
        /// Index of the link in the fabric description.
        link: usize,
    },
    /// No path leads from the source to the destination.
    NoPath {
        /// The source host.
        src: NodeId,
        /// The destination host.
        dst: NodeId,
    },
    /// Source and destination are the same host.
    SameHost(NodeId),
    /// A flow of no bytes.
    EmptyFlow,
    /// A priority above 7, or an index of a congestion control that was not given.
    BadClass,
    /// The path has more switches than the flow's congestion control can take telemetry from.
    PathTooLong {
        /// Switches on the path.
        switches: usize,
        /// What the telemetry holds.
        limit: usize,
    },
}

impl From<CapacityError> for Error {
    fn from(e: CapacityError) -> Error {
        Error::Capacity(e)
    }
}

impl fmt::Display for CapacityError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "out of {}: the limit is {}", self.what, self.limit)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Capacity(e) => e.fmt(f),
            Error::InPast { at, now } => write!(f, "time {at:?} is before now ({now:?})"),
            Error::NotAHost(n) => write!(f, "node {} is not a host", n.0),
            Error::BadLink { link } => {
                write!(f, "link {link} does not exist, or not both its ends do, or they are one")
            }
            Error::ZeroRate { link } => write!(f, "link {link} has rate 0"),
            Error::NoPath { src, dst } => write!(f, "no path from {} to {}", src.0, dst.0),
            Error::SameHost(n) => write!(f, "source equals destination ({})", n.0),
            Error::EmptyFlow => write!(f, "a flow needs at least one byte"),
            Error::BadClass => write!(f, "no such priority or congestion control"),
            Error::PathTooLong { switches, limit } => {
                write!(f, "the path has {switches} switches, telemetry holds {limit}")
            }
        }
    }
}

impl core::error::Error for CapacityError {}
impl core::error::Error for Error {}

//! Numbers of the C interface. Enumerations only grow at their end.

use crate::status::WhStatus;

/// Raised when a program built against an older header no longer works with the library. Structs and enumerations that
/// grow at their end do not raise it.
pub const WH_ABI_VERSION: u32 = 1;

/// What the address of a kernel's memory must be a multiple of. `malloc` and its like see to that.
pub const WH_ALIGNMENT: usize = 16;

/// Later than every event.
pub const WH_NEVER: u64 = 0xffff_ffff_ffff_ffff;

/// Flag of `WhConfig`: the memory is all zero already, as `calloc` gives it. Else `wh_init` clears it, which touches
/// all of its pages. It is not zero any more once `wh_init` has been called on it, whatever came of that.
pub const WH_MEMORY_IS_ZERO: u32 = 1;

/// Room for parameters in `WhCca`.
pub const WH_CCA_VALUES: usize = 16;

/// What a node does: an entry of `WhConfig.nodes`.
#[repr(u8)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhNodeKind {
    /// Sends and receives; forwards nothing.
    Host = 0,
    /// Forwards.
    Switch = 1,
    /// A switch inside a server: forwards among its own hosts and is preferred by them.
    NvSwitch = 2,
}

/// A family of models.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhProfile {
    /// Picoseconds, no quirks, time-outs: the default.
    Ps = 0,
    /// Equal to the HPCC/RDMA fork of ns-3, in nanoseconds. No time-out: a lost last packet stalls its flow.
    Ns3 = 1,
}

/// How packets find their way. Profile ns3 has ECMP only.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhRouting {
    /// A hash of the flow picks among the shortest paths at every hop.
    Ecmp = 0,
    /// Every packet takes its own shortest path.
    Spray = 1,
}

/// Congestion controls.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhCcaKind {
    /// HPCC: telemetry of every hop.
    Hpcc = 0,
    /// DCQCN: ECN marks.
    Dcqcn = 1,
    /// TIMELY: gradient of the round-trip time.
    Timely = 2,
    /// DCTCP: share of ECN marks.
    Dctcp = 3,
    /// Swift: delay against a target.
    Swift = 4,
    /// None: a fixed window at line rate.
    Fixed = 5,
}

/// Usual fabrics.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhPlanKind {
    /// All hosts on one switch: `hosts`. The switch is the last node.
    Star = 0,
    /// Two switches with `left` and `right` hosts, `trunk_links` links between them. The switches are the last nodes.
    Dumbbell = 1,
    /// Three tiers of `k`-port switches: k^3/4 hosts, then edge, aggregation and core switches.
    FatTree = 2,
    /// Two tiers, or three with `cores`: `pods`, `leaves` and `spines` of a pod, `hosts_per_leaf`, `trunk_links`.
    Clos = 3,
}

/// What acceleration may skip.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhTier {
    /// Nothing.
    Off = 0,
    /// What is proven to repeat: results stay as they are, bit for bit.
    Exact = 1,
    /// Also steady states, with an error that is bounded by measurement.
    Bounded = 2,
}

/// How alike two states must be to share a memo record.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhPrecision {
    /// Equal in every bit that counts.
    Exact = 0,
    /// Alike up to a few per cent: for tier bounded.
    Quantised = 1,
}

/// Why a run has returned.
#[repr(u32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WhStep {
    /// Everything up to the limit has happened; now is the limit.
    Reached = 0,
    /// No event is left; now is the time of the last one.
    Idle = 1,
    /// Outputs must be polled before anything more can happen.
    OutputFull = 2,
    /// Flows have ended now, and nothing else is due in this instant (`wh_run_to_completion` only).
    Completed = 3,
    /// The number of events asked for has been executed.
    Budget = 4,
    /// Nothing moves any more, and flows are left that will never end: a PFC deadlock, or acknowledgements that will
    /// never come.
    Stalled = 5,
}

/// Numbers come in as plain integers: any value may stand there, and an enumeration in Rust must not have any.
macro_rules! numbers {
    ($($name:ident: $repr:ty { $($variant:ident),* })*) => {$(
        impl $name {
            /// The constant with this number.
            ///
            /// # Errors
            /// [`WhStatus::BadConstant`] if there is none.
            pub(crate) fn of(number: $repr) -> Result<$name, WhStatus> {
                let all = [$($name::$variant),*];
                all.into_iter().find(|one| *one as $repr == number).ok_or(WhStatus::BadConstant)
            }
        }
    )*};
}

numbers! {
    WhNodeKind: u8 { Host, Switch, NvSwitch }
    WhProfile: u32 { Ps, Ns3 }
    WhRouting: u32 { Ecmp, Spray }
    WhCcaKind: u32 { Hpcc, Dcqcn, Timely, Dctcp, Swift, Fixed }
    WhPlanKind: u32 { Star, Dumbbell, FatTree, Clos }
    WhTier: u32 { Off, Exact, Bounded }
    WhPrecision: u32 { Exact, Quantised }
}

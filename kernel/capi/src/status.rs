//! Status codes.

use core::ffi::CStr;
use wormhole_kernel::{CapacityError, Error};
use wormhole_memo_fmt::FormatError;
use wormhole_models::topology::PlanError;

/// What came of a call. After anything but `WH_STATUS_OK` and `WH_STATUS_EMPTY` nothing has been changed, unless the
/// function says otherwise. The list only grows at its end.
#[repr(i32)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[must_use]
pub enum WhStatus {
    /// Done.
    Ok = 0,
    /// There is nothing to give: no completion, no frame, no event. Not an error.
    Empty = 1,
    /// A pointer is null that must not be.
    NullPointer = 2,
    /// A pointer is not a multiple of its type's alignment.
    Misaligned = 3,
    /// `struct_size` is less than that of the first version, or says of a newer struct what this library does not know.
    BadStructSize = 4,
    /// This is no kernel: `wh_init` has not made one here, or its memory has been moved.
    BadHandle = 5,
    /// A number is none of the constants it must be one of, or an unknown flag is set.
    BadConstant = 6,
    /// A parameter is outside of its range, or not a number.
    BadParameter = 7,
    /// There is no parameter of this name.
    UnknownName = 8,
    /// A limit is 0 or too large.
    BadLimit = 9,
    /// There are no nodes, or too many nodes or links.
    BadFabric = 10,
    /// There is no such link; or a link names a node that does not exist, or joins a node to itself.
    BadLink = 11,
    /// A link has rate 0, or a rate or delay that is too large.
    BadRate = 12,
    /// There is no such port.
    BadPort = 13,
    /// The memory is too short: `wh_sizeof` says how much there must be.
    OutOfMemory = 14,
    /// Raise `queued_flows`.
    OutOfQueuedFlows = 15,
    /// Raise `active_flows`.
    OutOfActiveFlows = 16,
    /// Raise `packets`.
    OutOfPackets = 17,
    /// Raise `inputs`.
    OutOfInputs = 18,
    /// Acceleration has no memory: `snapshot_words` is 0.
    OutOfSnapshotWords = 19,
    /// The time is before now.
    InPast = 20,
    /// The node does not exist or is not a host.
    NotAHost = 21,
    /// Source and destination are the same host.
    SameHost = 22,
    /// A flow or a frame of no bytes.
    NoBytes = 23,
    /// A priority above 7, or a congestion control that was not given.
    BadClass = 24,
    /// No path leads from the source to the destination.
    NoPath = 25,
    /// The path has more switches than telemetry has room for, or more links than any path may have.
    PathTooLong = 26,
    /// There is no memory for records: `memo_words` is 0.
    NoMemo = 27,
    /// The bytes are not those of a memo file.
    NotAMemo = 28,
    /// The memo bytes are damaged. Records before the damage have been taken over.
    MemoDamaged = 29,
    /// The memo bytes are of another format, another kernel or other models.
    MemoOfOthers = 30,
    /// The caller's buffer is too short; the size needed has been told.
    BufferTooShort = 31,
    /// There is no such fabric: a number or rate is 0, odd, not a multiple of what it must be, or too large.
    ImpossiblePlan = 32,
    /// A defect of the simulator. The kernel refuses everything from now on; other kernels are not concerned.
    Internal = 33,
}

impl WhStatus {
    /// What a number says, in a few words of English.
    pub(crate) fn text(number: i32) -> &'static CStr {
        const TEXTS: [&CStr; 34] = [
            c"done",
            c"nothing there",
            c"a pointer is null",
            c"a pointer is misaligned",
            c"a struct has the wrong size",
            c"not a kernel, or a kernel whose memory was moved",
            c"a number is none of the constants",
            c"a parameter is out of range",
            c"no parameter of this name",
            c"a limit is 0 or too large",
            c"no nodes, or too many nodes or links",
            c"a link does not exist, or not both its ends do, or they are one",
            c"a link has rate 0, or its rate or delay is too large",
            c"no such port",
            c"out of memory: see wh_sizeof",
            c"out of queued_flows",
            c"out of active_flows",
            c"out of packets",
            c"out of inputs",
            c"snapshot_words is 0",
            c"the time is before now",
            c"the node is not a host",
            c"source equals destination",
            c"a flow or frame needs at least one byte",
            c"no such priority or congestion control",
            c"no path",
            c"the path is too long",
            c"memo_words is 0",
            c"not a memo file",
            c"the memo bytes are damaged",
            c"the memo bytes are of another format, kernel or models",
            c"the buffer is too short",
            c"no such fabric",
            c"a defect of the simulator",
        ];
        usize::try_from(number).ok().and_then(|n| TEXTS.get(n)).unwrap_or(&c"unknown status")
    }
}

impl From<CapacityError> for WhStatus {
    fn from(error: CapacityError) -> WhStatus {
        match error.what {
            "memory" => WhStatus::OutOfMemory,
            "queued_flows" => WhStatus::OutOfQueuedFlows,
            "active_flows" => WhStatus::OutOfActiveFlows,
            "packets" => WhStatus::OutOfPackets,
            "inputs" => WhStatus::OutOfInputs,
            "snapshot_words" => WhStatus::OutOfSnapshotWords,
            _ => WhStatus::Internal,
        }
    }
}

impl From<Error> for WhStatus {
    fn from(error: Error) -> WhStatus {
        match error {
            Error::Capacity(error) => error.into(),
            Error::InPast { .. } => WhStatus::InPast,
            Error::NotAHost(_) => WhStatus::NotAHost,
            Error::BadLink { .. } => WhStatus::BadLink,
            Error::ZeroRate { .. } => WhStatus::BadRate,
            Error::NoPath { .. } => WhStatus::NoPath,
            Error::SameHost(_) => WhStatus::SameHost,
            Error::EmptyFlow => WhStatus::NoBytes,
            Error::BadClass => WhStatus::BadClass,
            Error::PathTooLong { .. } => WhStatus::PathTooLong,
            _ => WhStatus::Internal,
        }
    }
}

impl From<FormatError> for WhStatus {
    fn from(error: FormatError) -> WhStatus {
        match error {
            FormatError::NotAMemoFile => WhStatus::NotAMemo,
            FormatError::UnsupportedVersion { .. } => WhStatus::MemoOfOthers,
            FormatError::Truncated | FormatError::Corrupt | FormatError::Malformed => WhStatus::MemoDamaged,
            FormatError::BufferTooSmall { .. } => WhStatus::BufferTooShort,
            _ => WhStatus::Internal,
        }
    }
}

impl From<PlanError> for WhStatus {
    fn from(_: PlanError) -> WhStatus {
        WhStatus::ImpossiblePlan
    }
}

//! Typed 32-bit ids. An id is an index into the arena of its kind; `NONE` is the absent one.

use bytemuck::{Pod, Zeroable};

macro_rules! ids {
    ($($(#[$doc:meta])* $name:ident;)*) => {$(
        $(#[$doc])*
        #[repr(transparent)]
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Pod, Zeroable)]
        pub struct $name(pub u32);

        impl $name {
            /// Stands for "no such thing" in stored structures.
            pub const NONE: $name = $name(u32::MAX);

            /// The arena index.
            #[inline(always)]
            pub const fn index(self) -> usize {
                self.0 as usize
            }

            /// Whether this is [`Self::NONE`].
            #[inline(always)]
            pub const fn is_none(self) -> bool {
                self.0 == u32::MAX
            }

            /// Whether this names something.
            #[inline(always)]
            pub const fn is_some(self) -> bool {
                self.0 != u32::MAX
            }
        }
    )*};
}

ids! {
    /// A host or a switch.
    NodeId;
    /// One end of a link: the egress port of one node and the ingress port for what its peer sends.
    PortId;
    /// A link, in the order the fabric lists them.
    LinkId;
    /// A flow, in the order flows were added.
    FlowId;
    /// An active queue pair: a started, unfinished flow.
    QpId;
    /// A frame in a queue or on a wire.
    PacketId;
    /// A set of flows and ports that nothing else influences (see `accel`).
    PartitionId;
}

//! Policies of switches that are chosen at run time, and states with room for the largest of several.

#[cfg(feature = "plugin")]
pub use switches::{AnyBuffers, AnyMarker};

use bytemuck::{Pod, Zeroable};

/// The state of whichever policy it is, in `N` words.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct AnyState<const N: usize>([u64; N]);

/// Eight-byte words that hold a state of any of these sizes in bytes.
pub(crate) const fn words(sizes: &[usize]) -> usize {
    let (mut most, mut i) = (0, 0);
    while i < sizes.len() {
        if sizes[i] > most {
            most = sizes[i];
        }
        i += 1;
    }
    most.div_ceil(8)
}

impl<const N: usize> AnyState<N> {
    pub(crate) fn of<S: Pod>(state: S) -> AnyState<N> {
        let mut any = AnyState::zeroed();
        *any.get_mut() = state;
        any
    }

    #[inline(always)]
    pub(crate) fn get<S: Pod>(&self) -> &S {
        const { assert!(size_of::<S>() <= 8 * N && align_of::<S>() <= 8) };
        bytemuck::from_bytes(&bytemuck::cast_slice(&self.0)[..size_of::<S>()])
    }

    #[inline(always)]
    pub(crate) fn get_mut<S: Pod>(&mut self) -> &mut S {
        const { assert!(size_of::<S>() <= 8 * N && align_of::<S>() <= 8) };
        bytemuck::from_bytes_mut(&mut bytemuck::cast_slice_mut(&mut self.0)[..size_of::<S>()])
    }
}

// Only plugins make a choice of these: see `profile`.
#[cfg(feature = "plugin")]
mod switches {
    use super::{AnyState, words};
    use crate::buffer::DynamicThreshold;
    use crate::ecn::RedMarker;
    use crate::plugin::{ForeignBuffers, ForeignMarker};
    use wormhole_kernel::BitRate;
    use wormhole_kernel::buffer::BufferManager;
    use wormhole_kernel::fabric::PortInfo;
    use wormhole_kernel::ids::PortId;
    use wormhole_kernel::marker::Marker;
    use wormhole_kernel::model::ModelId;

    // Every method of the trait is forwarded here and only here.
    macro_rules! buffers_set {
        ($($(#[$doc:meta])* $name:ident,)*) => {
            const SWITCH_WORDS: usize = words(&[$(size_of::<<$name as BufferManager>::Switch>(),)*]);
            const PORT_WORDS: usize = words(&[$(size_of::<<$name as BufferManager>::Port>(),)*]);
            const QUEUE_WORDS: usize = words(&[$(size_of::<<$name as BufferManager>::Queue>(),)*]);

            /// One of several buffer managers.
            #[derive(Clone, Copy, Debug)]
            pub enum AnyBuffers {
                $($(#[$doc])* $name($name),)*
            }

            impl BufferManager for AnyBuffers {
                type Switch = AnyState<SWITCH_WORDS>;
                type Port = AnyState<PORT_WORDS>;
                type Queue = AnyState<QUEUE_WORDS>;

                fn id(&self) -> ModelId {
                    match self { $(AnyBuffers::$name(model) => model.id(),)* }
                }

                fn switch(&self, ports: &mut dyn Iterator<Item = PortInfo>) -> Self::Switch {
                    match self { $(AnyBuffers::$name(model) => AnyState::of(model.switch(ports)),)* }
                }

                fn port(&self, info: &PortInfo, nic_rate: BitRate) -> Self::Port {
                    match self { $(AnyBuffers::$name(model) => AnyState::of(model.port(info, nic_rate)),)* }
                }

                fn admit(&self, s: &mut Self::Switch, p: &Self::Port, q: &mut Self::Queue, bytes: u32) -> bool {
                    match self {
                        $(AnyBuffers::$name(model) => model.admit(s.get_mut(), p.get(), q.get_mut(), bytes),)*
                    }
                }

                fn pauses(&self, s: &Self::Switch, p: &Self::Port, q: &Self::Queue) -> bool {
                    match self { $(AnyBuffers::$name(model) => model.pauses(s.get(), p.get(), q.get()),)* }
                }

                fn release(&self, s: &mut Self::Switch, p: &Self::Port, q: &mut Self::Queue, bytes: u32) {
                    match self {
                        $(AnyBuffers::$name(model) => model.release(s.get_mut(), p.get(), q.get_mut(), bytes),)*
                    }
                }

                fn resumes(&self, s: &Self::Switch, p: &Self::Port, q: &Self::Queue) -> bool {
                    match self { $(AnyBuffers::$name(model) => model.resumes(s.get(), p.get(), q.get()),)* }
                }

                fn is_calm(&self, s: &Self::Switch, more: u64) -> bool {
                    match self { $(AnyBuffers::$name(model) => model.is_calm(s.get(), more),)* }
                }

                fn replace(&self, s: &mut Self::Switch, q: &mut Self::Queue, to: Self::Queue) {
                    match self {
                        $(AnyBuffers::$name(model) => model.replace(s.get_mut(), q.get_mut(), *to.get()),)*
                    }
                }

                fn shared_bytes(&self, s: &Self::Switch) -> u64 {
                    match self { $(AnyBuffers::$name(model) => model.shared_bytes(s.get()),)* }
                }

                fn queue_bytes(&self, q: &Self::Queue) -> u64 {
                    match self { $(AnyBuffers::$name(model) => model.queue_bytes(q.get()),)* }
                }
            }
        };
    }

    buffers_set! {
        /// See [`DynamicThreshold`].
        DynamicThreshold,
        /// See [`ForeignBuffers`].
        ForeignBuffers,
    }

    // As above.
    macro_rules! marker_set {
        ($($(#[$doc:meta])* $name:ident($model:ty),)*) => {
            const MARKER_WORDS: usize = marker_words();

            const fn marker_words<'m>() -> usize {
                words(&[$(size_of::<<$model as Marker>::Port>(),)*])
            }

            /// One of several markers.
            #[derive(Clone, Debug)]
            pub enum AnyMarker<'m> {
                $($(#[$doc])* $name($model),)*
            }

            impl Marker for AnyMarker<'_> {
                type Port = AnyState<MARKER_WORDS>;

                fn id(&self) -> ModelId {
                    match self { $(AnyMarker::$name(model) => model.id(),)* }
                }

                fn port(&self, port: PortId, info: &PortInfo) -> Self::Port {
                    match self { $(AnyMarker::$name(model) => AnyState::of(model.port(port, info)),)* }
                }

                fn marks(&mut self, port: &mut Self::Port, queue_bytes: u64) -> bool {
                    match self { $(AnyMarker::$name(model) => model.marks(port.get_mut(), queue_bytes),)* }
                }

                fn position(&self, port: &Self::Port) -> u64 {
                    match self { $(AnyMarker::$name(model) => model.position(port.get()),)* }
                }

                fn set_position(&self, port: &mut Self::Port, position: u64) {
                    match self { $(AnyMarker::$name(model) => model.set_position(port.get_mut(), position),)* }
                }

                fn pfc_built(&mut self) {
                    match self { $(AnyMarker::$name(model) => model.pfc_built(),)* }
                }
            }
        };
    }

    marker_set! {
        /// See [`RedMarker`].
        RedMarker(RedMarker<'m>),
        /// See [`ForeignMarker`].
        ForeignMarker(ForeignMarker),
    }

    #[cfg(test)]
    mod tests {
        use super::*;
        use crate::ecn::{Coins, Ns3Coins};
        use crate::kit::{BuffersKit, MarkerKit, assert_passed, buffers, marker};
        use crate::profile::THRESHOLDS;

        #[test]
        fn every_call_arrives_in_the_buffers() {
            let bare = DynamicThreshold { bytes: 2 << 20, wraps: false };
            let any = AnyBuffers::DynamicThreshold(bare);
            assert_eq!(any.id(), bare.id());
            let (mut one, mut other) = (buffers::Drive::new(&bare, 1), buffers::Drive::new(&any, 1));
            for step in 0..10_000 {
                assert_eq!(one.step(), other.step(), "step {step}");
                assert_eq!(one.view(), other.view(), "step {step}");
            }
            // `queue_bytes` and `replace` are the kit's.
            let checks = BuffersKit::new(&any).checks();
            assert_passed(&checks);
            assert_eq!(checks, BuffersKit::new(&bare).checks());
        }

        #[test]
        fn every_call_arrives_in_the_marker() {
            for coins in [Coins::PerPort { seed: 7 }, Coins::Ns3(Ns3Coins::starting_at(3))] {
                let bare = RedMarker { thresholds: &THRESHOLDS, enabled: true, coins };
                let any = AnyMarker::RedMarker(bare.clone());
                assert_eq!(any.id(), bare.id());
                let (mut one, mut other) = (marker::Drive::new(&bare, 1), marker::Drive::new(&any, 1));
                let mut marks = 0;
                for step in 0..20_000 {
                    let (verdict, position) = one.step();
                    assert_eq!((verdict, position), other.step(), "step {step}");
                    marks += u32::from(verdict);
                    if step % 10 == 0 {
                        one.pfc_built();
                        other.pfc_built();
                    }
                }
                assert!(marks > 0);
                let checks = MarkerKit::new(&any).checks();
                assert_passed(&checks);
                assert_eq!(checks, MarkerKit::new(&bare).checks());
            }
        }
    }
}

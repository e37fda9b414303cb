//! The choice of congestion control at run time.

use super::{Dcqcn, Dctcp, FixedWindow, Hpcc, Swift, Timely};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::ModelId;
use wormhole_kernel::units::SimTime;

/// Eight-byte words that hold a state of any of these sizes.
const fn words(sizes: &[usize]) -> usize {
    let (mut most, mut i) = (0, 0);
    while i < sizes.len() {
        if sizes[i] > most {
            most = sizes[i];
        }
        i += 1;
    }
    most.div_ceil(8)
}

/// The state of whichever algorithm a flow has.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct AnyCcaState([u64; STATE_WORDS]);

impl AnyCcaState {
    fn of<S: Pod>(state: S) -> AnyCcaState {
        let mut any = AnyCcaState::zeroed();
        *any.get_mut() = state;
        any
    }

    #[inline(always)]
    fn get<S: Pod>(&self) -> &S {
        const { assert!(size_of::<S>() <= 8 * STATE_WORDS && align_of::<S>() <= 8) };
        bytemuck::from_bytes(&bytemuck::cast_slice(&self.0)[..size_of::<S>()])
    }

    #[inline(always)]
    fn get_mut<S: Pod>(&mut self) -> &mut S {
        const { assert!(size_of::<S>() <= 8 * STATE_WORDS && align_of::<S>() <= 8) };
        bytemuck::from_bytes_mut(&mut bytemuck::cast_slice_mut(&mut self.0)[..size_of::<S>()])
    }
}

// Every method of the trait is forwarded here and only here.
macro_rules! cca_set {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Words of the largest state.
        const STATE_WORDS: usize = words(&[$(size_of::<<$name as CongestionControl>::State>(),)*]);

        /// One of the congestion controls of this crate.
        #[derive(Clone, Copy, Debug)]
        pub enum AnyCca {
            $($(#[$doc])* $name($name),)*
        }

        impl CongestionControl for AnyCca {
            type State = AnyCcaState;

            fn id(&self) -> ModelId {
                match self { $(AnyCca::$name(model) => model.id(),)* }
            }

            fn needs(&self) -> CcaNeeds {
                match self { $(AnyCca::$name(model) => model.needs(),)* }
            }

            fn start(&self, flow: &FlowFacts, now: SimTime) -> (AnyCcaState, SendControl) {
                match self {
                    $(AnyCca::$name(model) => {
                        let (state, control) = model.start(flow, now);
                        (AnyCcaState::of(state), control)
                    })*
                }
            }

            #[inline(always)]
            fn on_ack(&self, state: &mut AnyCcaState, ack: &Ack<'_>, out: &mut CcaOut) {
                match self { $(AnyCca::$name(model) => model.on_ack(state.get_mut(), ack, out),)* }
            }

            fn on_timer(&self, state: &mut AnyCcaState, timer: usize, now: SimTime, out: &mut CcaOut) {
                match self { $(AnyCca::$name(model) => model.on_timer(state.get_mut(), timer, now, out),)* }
            }

            fn on_timeout(&self, state: &mut AnyCcaState, now: SimTime, out: &mut CcaOut) {
                match self { $(AnyCca::$name(model) => model.on_timeout(state.get_mut(), now, out),)* }
            }

            fn relative(&self, state: &AnyCcaState, origin: &Origin<'_>) -> Option<AnyCcaState> {
                match self { $(AnyCca::$name(model) => model.relative(state.get(), origin).map(AnyCcaState::of),)* }
            }

            fn absolute(&self, relative: &AnyCcaState, origin: &Origin<'_>) -> AnyCcaState {
                match self { $(AnyCca::$name(model) => AnyCcaState::of(model.absolute(relative.get(), origin)),)* }
            }

            fn repeats(&self, before: &AnyCcaState, after: &AnyCcaState) -> bool {
                match self { $(AnyCca::$name(model) => model.repeats(before.get(), after.get()),)* }
            }

            fn coast(&self, state: &mut AnyCcaState, before: &AnyCcaState, rounds: u64) {
                match self { $(AnyCca::$name(model) => model.coast(state.get_mut(), before.get(), rounds),)* }
            }
        }
    };
}

cca_set! {
    /// See [`Hpcc`].
    Hpcc,
    /// See [`Dcqcn`].
    Dcqcn,
    /// See [`Timely`].
    Timely,
    /// See [`Dctcp`].
    Dctcp,
    /// See [`Swift`].
    Swift,
    /// See [`FixedWindow`].
    FixedWindow,
}

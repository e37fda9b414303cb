//! The choice of congestion control at run time.

use super::{Dcqcn, Dctcp, FixedWindow, Hpcc, Swift, Timely};
use crate::any::{AnyState, words};
#[cfg(feature = "plugin")]
use crate::plugin::ForeignCca;
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::model::ModelId;
use wormhole_kernel::units::SimTime;

/// The state of whichever algorithm a flow has.
pub type AnyCcaState = AnyState<STATE_WORDS>;

// Every method of the trait is forwarded here and only here.
macro_rules! cca_set {
    ($($(#[$doc:meta])* $name:ident $(if $condition:meta)?,)*) => {
        /// Words of the largest state.
        const STATE_WORDS: usize =
            words(&[$($(#[cfg($condition)])? size_of::<<$name as CongestionControl>::State>(),)*]);

        /// One of the congestion controls of this crate.
        #[derive(Clone, Copy, Debug)]
        pub enum AnyCca {
            $($(#[$doc])* $(#[cfg($condition)])? $name($name),)*
        }

        impl CongestionControl for AnyCca {
            type State = AnyCcaState;

            fn id(&self) -> ModelId {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.id(),)*
                }
            }

            fn needs(&self) -> CcaNeeds {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.needs(),)*
                }
            }

            fn start(&self, flow: &FlowFacts, now: SimTime) -> (AnyCcaState, SendControl) {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => {
                        let (state, control) = model.start(flow, now);
                        (AnyCcaState::of(state), control)
                    })*
                }
            }

            #[inline(always)]
            fn on_ack(&self, state: &mut AnyCcaState, ack: &Ack<'_>, out: &mut CcaOut) {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.on_ack(state.get_mut(), ack, out),)*
                }
            }

            fn on_timer(&self, state: &mut AnyCcaState, timer: usize, now: SimTime, out: &mut CcaOut) {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.on_timer(state.get_mut(), timer, now, out),)*
                }
            }

            fn on_timeout(&self, state: &mut AnyCcaState, now: SimTime, out: &mut CcaOut) {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.on_timeout(state.get_mut(), now, out),)*
                }
            }

            fn relative(&self, state: &AnyCcaState, origin: &Origin<'_>) -> Option<AnyCcaState> {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.relative(state.get(), origin).map(AnyState::of),)*
                }
            }

            fn absolute(&self, relative: &AnyCcaState, origin: &Origin<'_>) -> AnyCcaState {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => AnyCcaState::of(model.absolute(relative.get(), origin)),)*
                }
            }

            fn repeats(&self, before: &AnyCcaState, after: &AnyCcaState) -> bool {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.repeats(before.get(), after.get()),)*
                }
            }

            fn coast(&self, state: &mut AnyCcaState, before: &AnyCcaState, rounds: u64) {
                match self {
                    $($(#[cfg($condition)])? AnyCca::$name(model) => model.coast(state.get_mut(), before.get(), rounds),)*
                }
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
    /// See [`ForeignCca`].
    ForeignCca if feature = "plugin",
}

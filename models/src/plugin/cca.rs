//! A congestion control of a plugin.

use super::MAX_CCA_STATE;
use super::abi::{self, CcaFunctions, MAX_TIMER_PS, MIN_TIMER_PS};
use super::descriptor::Functions;
use super::fault::{Call, Wrong};
use super::foreign::Foreign;
use super::slot::{Slot, slot_words};
use bytemuck::{Pod, Zeroable};
use core::ffi::c_void;
use core::mem::offset_of;
use wormhole_kernel::cca::{Ack, CcaNeeds, CcaOut, CongestionControl, FlowFacts, Origin, SendControl};
use wormhole_kernel::event::CCA_TIMERS;
use wormhole_kernel::model::ModelId;
use wormhole_kernel::telemetry::IntHop;
use wormhole_kernel::units::{BitRate, SimTime, Span};

// A plugin reads the kernel's own records.
const _: () = {
    assert!(size_of::<abi::Hop>() == size_of::<IntHop>() && align_of::<abi::Hop>() == align_of::<IntHop>());
    assert!(offset_of!(abi::Hop, at_ps) == offset_of!(IntHop, at));
    assert!(offset_of!(abi::Hop, tx_bytes) == offset_of!(IntHop, tx_bytes));
    assert!(offset_of!(abi::Hop, rate_bps) == offset_of!(IntHop, rate));
    assert!(offset_of!(abi::Hop, queue_bytes) == offset_of!(IntHop, queue));
};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct ForeignCca {
    plugin: &'static Foreign,
    functions: &'static CcaFunctions,
}

/// A flow's state: what bounds its rate, and what the plugin remembers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ForeignCcaState {
    line_rate: BitRate,
    slot: Slot<{ slot_words(MAX_CCA_STATE) }>,
}

impl ForeignCca {
    /// The congestion control of a plugin; `None` if it is none.
    pub fn new(plugin: &'static Foreign) -> Option<ForeignCca> {
        match plugin.functions() {
            Functions::Cca(functions) => Some(ForeignCca { plugin, functions }),
            _ => None,
        }
    }

    /// The plugin.
    pub fn plugin(&self) -> &'static Foreign {
        self.plugin
    }

    /// Whether flows can be memoised and fast-forwarded exactly.
    pub fn has_relative(&self) -> bool {
        self.functions.relative.is_some()
    }

    /// Makes a call that has effects, and takes them over as far as they can be.
    #[inline(always)]
    fn call(
        &self,
        call: Call,
        state: &mut ForeignCcaState,
        out: &mut CcaOut,
        make: impl FnOnce(*const c_void, *mut c_void, *mut abi::Out),
    ) {
        let SendControl { window, rate } = out.control;
        let mut answer = abi::Out {
            window_bytes: window,
            rate_bps: rate.0,
            repace: out.repace.into(),
            timers_set: 0,
            timer_ps: [0; CCA_TIMERS],
        };
        make(self.plugin.config(), state.slot.write(), &mut answer);
        let faults = &self.plugin.faults;
        state.slot.check(self.plugin.info().state_size, call, faults);
        if answer.window_bytes == 0 {
            faults.note(call, Wrong::Window, 0);
        }
        if answer.rate_bps == 0 {
            faults.note(call, Wrong::Rate, 0);
        }
        let rate = BitRate(answer.rate_bps.max(1)).min(state.line_rate);
        out.control = SendControl { window: answer.window_bytes.max(1), rate };
        out.repace = answer.repace != 0;
        if answer.timers_set != 0 {
            self.take_timers(call, &answer, out);
        }
    }

    fn take_timers(&self, call: Call, answer: &abi::Out, out: &mut CcaOut) {
        if call == Call::Start {
            return self.plugin.faults.note(call, Wrong::EarlyTimers, answer.timers_set.into());
        }
        if answer.timers_set >> CCA_TIMERS != 0 {
            self.plugin.faults.note(call, Wrong::Timers, answer.timers_set.into());
        }
        for (i, delay) in answer.timer_ps.iter().enumerate() {
            if answer.timers_set >> i & 1 == 0 {
                continue;
            }
            if (MIN_TIMER_PS..=MAX_TIMER_PS).contains(delay) {
                out.timers[i] = Some(Span(*delay));
            } else {
                self.plugin.faults.note(call, Wrong::Timer, *delay);
            }
        }
    }
}

fn origin(origin: &Origin<'_>) -> abi::Origin {
    abi::Origin {
        now_ps: origin.now.0,
        acked_bytes: origin.acked,
        hops: origin.hops.as_ptr().cast(),
        hop_count: origin.hops.len() as u32,
        reserved: 0,
    }
}

impl CongestionControl for ForeignCca {
    type State = ForeignCcaState;

    fn id(&self) -> ModelId {
        self.plugin.id()
    }

    fn needs(&self) -> CcaNeeds {
        let CcaFunctions { needs_telemetry, header_bytes, .. } = *self.functions;
        CcaNeeds { telemetry: needs_telemetry != 0, header_bytes }
    }

    fn start(&self, flow: &FlowFacts, now: SimTime) -> (ForeignCcaState, SendControl) {
        let line_rate = flow.line_rate;
        let mut state = ForeignCcaState { line_rate, slot: Slot::new(self.plugin.info().state_size) };
        let mut out = CcaOut::new(SendControl { window: u64::MAX, rate: line_rate });
        let flow = abi::Flow {
            line_rate_bps: line_rate.0,
            base_rtt_ps: flow.base_rtt.0,
            bdp_bytes: flow.bdp,
            mtu_bytes: flow.mtu,
            reserved: 0,
        };
        self.call(Call::Start, &mut state, &mut out, |config, state, out| {
            if let Some(start) = self.functions.start {
                // SAFETY: the plugin's own function (`Descriptor::read`); every pointer is to what the header says.
                unsafe { start(config, state, &flow, now.0, out) };
            }
        });
        (state, out.control)
    }

    fn on_ack(&self, state: &mut ForeignCcaState, ack: &Ack<'_>, out: &mut CcaOut) {
        let given = abi::Ack {
            now_ps: ack.now.0,
            acked_bytes: ack.acked,
            snd_nxt_bytes: ack.snd_nxt,
            rtt_ps: ack.rtt.0,
            marked: ack.marked.into(),
            hop_count: ack.hops.len() as u32,
            hops_passed: ack.hop_count as u32,
            reserved: 0,
            hops: ack.hops.as_ptr().cast(),
        };
        self.call(Call::OnAck, state, out, |config, state, out| {
            if let Some(on_ack) = self.functions.on_ack {
                // SAFETY: as in `start`; the hops outlive the call.
                unsafe { on_ack(config, state, &given, out) };
            }
        });
    }

    fn on_timer(&self, state: &mut ForeignCcaState, timer: usize, now: SimTime, out: &mut CcaOut) {
        self.call(Call::OnTimer, state, out, |config, state, out| {
            if let Some(on_timer) = self.functions.on_timer {
                // SAFETY: as in `start`.
                unsafe { on_timer(config, state, timer as u32, now.0, out) };
            }
        });
    }

    fn on_timeout(&self, state: &mut ForeignCcaState, now: SimTime, out: &mut CcaOut) {
        self.call(Call::OnTimeout, state, out, |config, state, out| {
            if let Some(on_timeout) = self.functions.on_timeout {
                // SAFETY: as in `start`.
                unsafe { on_timeout(config, state, now.0, out) };
            }
        });
    }

    fn relative(&self, state: &ForeignCcaState, at: &Origin<'_>) -> Option<ForeignCcaState> {
        let relative = self.functions.relative?;
        let mut state = *state;
        // SAFETY: as in `start`; the hops outlive the call.
        let verdict = unsafe { relative(self.plugin.config(), state.slot.write(), &origin(at)) };
        state.slot.check(self.plugin.info().state_size, Call::Relative, &self.plugin.faults);
        self.plugin.verdict(Call::Relative, verdict, false).then_some(state)
    }

    fn absolute(&self, relative: &ForeignCcaState, at: &Origin<'_>) -> ForeignCcaState {
        let mut state = *relative;
        if let Some(absolute) = self.functions.absolute {
            // SAFETY: as in `relative`.
            unsafe { absolute(self.plugin.config(), state.slot.write(), &origin(at)) };
            state.slot.check(self.plugin.info().state_size, Call::Absolute, &self.plugin.faults);
        }
        state
    }
}

//! A marker of a plugin.

use super::MAX_MARKER_STATE;
use super::abi::{self, MarkerFunctions};
use super::descriptor::Functions;
use super::fault::Call;
use super::foreign::Foreign;
use super::slot::{Slot, slot_words};
use crate::hash::mix;
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::ids::PortId;
use wormhole_kernel::marker::Marker;
use wormhole_kernel::model::ModelId;

/// See the module. Random numbers come from a seed and a counter per port; whether one was looked at, the plugin says.
#[derive(Clone, Copy, Debug)]
pub struct ForeignMarker {
    plugin: &'static Foreign,
    functions: &'static MarkerFunctions,
    seed: u64,
}

/// A port's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ForeignMarkerPort {
    /// Numbers drawn, from a start of the port's own.
    counter: u64,
    slot: Slot<{ slot_words(MAX_MARKER_STATE) }>,
}

impl ForeignMarker {
    /// The marker of a plugin, with this seed; `None` if it is none.
    pub fn new(plugin: &'static Foreign, seed: u64) -> Option<ForeignMarker> {
        match plugin.functions() {
            Functions::Marker(functions) => Some(ForeignMarker { plugin, functions, seed }),
            _ => None,
        }
    }

    /// The plugin.
    pub fn plugin(&self) -> &'static Foreign {
        self.plugin
    }

    /// The same with another seed.
    pub fn with_seed(self, seed: u64) -> ForeignMarker {
        ForeignMarker { seed, ..self }
    }
}

impl Marker for ForeignMarker {
    type Port = ForeignMarkerPort;

    fn id(&self) -> ModelId {
        self.plugin.id()
    }

    fn port(&self, port: PortId, info: &PortInfo) -> ForeignMarkerPort {
        let size = self.plugin.info().state_size;
        let mut state = ForeignMarkerPort { counter: mix(u64::from(port.0)), slot: Slot::new(size) };
        let info = abi::Port { rate_bps: info.rate.0, delay_ps: info.delay.0, nic_rate_bps: 0 };
        if let Some(start) = self.functions.start {
            // SAFETY: the plugin's own function (`Descriptor::read`); every pointer is to what the header says.
            unsafe { start(self.plugin.config(), state.slot.write(), &info) };
            state.slot.check(size, Call::Start, &self.plugin.faults);
        }
        state
    }

    fn marks(&mut self, port: &mut ForeignMarkerPort, queue_bytes: u64) -> bool {
        let random = mix(mix(self.seed).wrapping_add(port.counter));
        let mut drew = 0;
        let Some(marks) = self.functions.marks else { return false };
        // SAFETY: as in `port`.
        let verdict = unsafe { marks(self.plugin.config(), port.slot.write(), queue_bytes, random, &mut drew) };
        port.slot.check(self.plugin.info().state_size, Call::Marks, &self.plugin.faults);
        if drew != 0 {
            port.counter = port.counter.wrapping_add(1);
        }
        self.plugin.verdict(Call::Marks, verdict, false)
    }

    fn position(&self, port: &ForeignMarkerPort) -> u64 {
        port.counter
    }

    fn set_position(&self, port: &mut ForeignMarkerPort, position: u64) {
        port.counter = position;
    }
}

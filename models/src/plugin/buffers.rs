//! A buffer manager of a plugin. What a switch and its queues hold is counted here.

use super::abi::{self, BuffersFunctions, Question};
use super::descriptor::Functions;
use super::fault::Call;
use super::foreign::Foreign;
use super::slot::{Slot, slot_words};
use super::{MAX_PORT_STATE, MAX_QUEUE_STATE, MAX_SWITCH_STATE};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::model::ModelId;
use wormhole_kernel::units::BitRate;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct ForeignBuffers {
    plugin: &'static Foreign,
    functions: &'static BuffersFunctions,
}

/// A switch's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ForeignSwitch {
    /// Bytes in the buffer.
    held: u64,
    slot: Slot<{ slot_words(MAX_SWITCH_STATE) }>,
}

/// A port's state.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ForeignPort {
    slot: Slot<{ slot_words(MAX_PORT_STATE) }>,
}

/// A queue's state. The kernel's tables of them begin as zero bytes, also behind what the plugin has of each.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct ForeignQueue {
    /// Bytes in the buffer.
    held: u64,
    slot: Slot<{ slot_words(MAX_QUEUE_STATE) }, 0>,
}

impl ForeignBuffers {
    /// The buffer manager of a plugin; `None` if it is none.
    pub fn new(plugin: &'static Foreign) -> Option<ForeignBuffers> {
        match plugin.functions() {
            Functions::Buffers(functions) => Some(ForeignBuffers { plugin, functions }),
            _ => None,
        }
    }

    /// The plugin.
    pub fn plugin(&self) -> &'static Foreign {
        self.plugin
    }

    /// Whether what passes a switch can be memoised and fast-forwarded.
    pub fn can_be_calm(&self) -> bool {
        self.functions.is_calm.is_some()
    }

    fn ask(
        &self,
        (call, question): (Call, Option<Question>),
        (switch, port, queue): (&ForeignSwitch, &ForeignPort, &ForeignQueue),
        otherwise: bool,
    ) -> bool {
        let Some(question) = question else { return otherwise };
        let config = self.plugin.config();
        // SAFETY: the plugin's own function (`Descriptor::read`); the states are the ones the header says, to read.
        let verdict = unsafe { question(config, switch.slot.read(), port.slot.read(), queue.slot.read()) };
        self.plugin.verdict(call, verdict, otherwise)
    }

    fn check(&self, call: Call, switch: &mut ForeignSwitch, queue: Option<&mut ForeignQueue>) {
        let faults = &self.plugin.faults;
        switch.slot.check(self.plugin.info().state_size, call, faults);
        if let Some(queue) = queue {
            queue.slot.check(self.functions.queue_state_size, call, faults);
        }
    }
}

fn port_info(info: &PortInfo, nic_rate_bps: u64) -> abi::Port {
    abi::Port { rate_bps: info.rate.0, delay_ps: info.delay.0, nic_rate_bps }
}

impl BufferManager for ForeignBuffers {
    type Switch = ForeignSwitch;
    type Port = ForeignPort;
    type Queue = ForeignQueue;

    fn id(&self) -> ModelId {
        self.plugin.id()
    }

    fn switch(&self, ports: &mut dyn Iterator<Item = PortInfo>) -> ForeignSwitch {
        let mut switch = ForeignSwitch { held: 0, slot: Slot::new(self.plugin.info().state_size) };
        let Some(add_port) = self.functions.add_port else { return switch };
        for info in ports {
            // SAFETY: as in `ask`; the switch's state is the function's to change.
            unsafe { add_port(self.plugin.config(), switch.slot.write(), &port_info(&info, 0)) };
            self.check(Call::AddPort, &mut switch, None);
        }
        switch
    }

    fn port(&self, info: &PortInfo, nic_rate: BitRate) -> ForeignPort {
        let size = self.functions.port_state_size;
        let mut port = ForeignPort { slot: Slot::new(size) };
        if let Some(start_port) = self.functions.start_port {
            // SAFETY: as in `ask`; the port's state is the function's to change.
            unsafe { start_port(self.plugin.config(), port.slot.write(), &port_info(info, nic_rate.0)) };
            port.slot.check(size, Call::StartPort, &self.plugin.faults);
        }
        port
    }

    fn admit(&self, switch: &mut ForeignSwitch, port: &ForeignPort, queue: &mut ForeignQueue, bytes: u32) -> bool {
        let Some(admit) = self.functions.admit else { return false };
        let config = self.plugin.config();
        // SAFETY: as in `ask`; the states of switch and queue are the function's to change.
        let verdict = unsafe { admit(config, switch.slot.write(), port.slot.read(), queue.slot.write(), bytes) };
        self.check(Call::Admit, switch, Some(queue));
        let admitted = self.plugin.verdict(Call::Admit, verdict, false);
        if admitted {
            switch.held += u64::from(bytes);
            queue.held += u64::from(bytes);
        }
        admitted
    }

    fn pauses(&self, switch: &ForeignSwitch, port: &ForeignPort, queue: &ForeignQueue) -> bool {
        self.ask((Call::Pauses, self.functions.pauses), (switch, port, queue), false)
    }

    fn release(&self, switch: &mut ForeignSwitch, port: &ForeignPort, queue: &mut ForeignQueue, bytes: u32) {
        let Some(release) = self.functions.release else { return };
        let config = self.plugin.config();
        // SAFETY: as in `admit`.
        unsafe { release(config, switch.slot.write(), port.slot.read(), queue.slot.write(), bytes) };
        self.check(Call::Release, switch, Some(queue));
        switch.held -= u64::from(bytes);
        queue.held -= u64::from(bytes);
    }

    fn resumes(&self, switch: &ForeignSwitch, port: &ForeignPort, queue: &ForeignQueue) -> bool {
        self.ask((Call::Resumes, self.functions.resumes), (switch, port, queue), true)
    }

    fn is_calm(&self, switch: &ForeignSwitch, more: u64) -> bool {
        let Some(is_calm) = self.functions.is_calm else { return false };
        // SAFETY: as in `ask`.
        let verdict = unsafe { is_calm(self.plugin.config(), switch.slot.read(), more) };
        self.plugin.verdict(Call::IsCalm, verdict, false)
    }

    fn replace(&self, switch: &mut ForeignSwitch, queue: &mut ForeignQueue, to: ForeignQueue) {
        switch.held = switch.held - queue.held + to.held;
        if let Some(replace) = self.functions.replace {
            // SAFETY: as in `ask`; the switch's state is the function's to change.
            unsafe { replace(self.plugin.config(), switch.slot.write(), queue.slot.read(), to.slot.read()) };
            self.check(Call::Replace, switch, None);
        }
        *queue = to;
    }

    fn shared_bytes(&self, switch: &ForeignSwitch) -> u64 {
        switch.held
    }

    fn queue_bytes(&self, queue: &ForeignQueue) -> u64 {
        queue.held
    }
}

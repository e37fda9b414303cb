//! The type family: every pluggable part of the kernel, behind one type parameter.

use crate::buffer::BufferManager;
use crate::cca::CongestionControl;
use crate::marker::{LossModel, Marker};
use crate::nic::Nic;
use crate::queue::EventQueue;
use crate::router::Router;
use crate::scheduler::EgressScheduler;
use crate::telemetry::Telemetry;
use crate::timing::LinkTiming;
use crate::transport::Transport;

/// A choice of models. Implemented by an empty type; the kernel is monomorphised for it.
pub trait Models {
    /// Rounding of serialisation times.
    type Timing: LinkTiming;
    /// Congestion control.
    type Cca: CongestionControl;
    /// What telemetry headers hold.
    type Telemetry: Telemetry;
    /// Switch buffers and PFC.
    type Buffers: BufferManager;
    /// Egress scheduling of switches.
    type Scheduler: EgressScheduler;
    /// ECN marking.
    type Marker: Marker;
    /// Frame loss.
    type Loss: LossModel;
    /// Routing.
    type Router: Router;
    /// Scheduling of queue pairs at a NIC port.
    type Nic: Nic;
    /// The pending-event set.
    type Queue<'a>: EventQueue<'a>;
}

/// The models themselves, as handed to the kernel.
pub struct ModelSet<'m, M: Models> {
    /// Congestion controls; a flow names one by its index.
    pub ccas: &'m [M::Cca],
    /// See [`Models::Timing`].
    pub timing: M::Timing,
    /// See [`Models::Telemetry`].
    pub telemetry: M::Telemetry,
    /// See [`Models::Buffers`].
    pub buffers: M::Buffers,
    /// See [`Models::Scheduler`].
    pub scheduler: M::Scheduler,
    /// See [`Models::Marker`].
    pub marker: M::Marker,
    /// See [`Models::Loss`].
    pub loss: M::Loss,
    /// See [`Models::Router`].
    pub router: M::Router,
    /// See [`Models::Nic`].
    pub nic: M::Nic,
    /// Parameters of the reliable transport.
    pub transport: Transport,
}

impl<M: Models> ModelSet<'_, M> {
    /// Whether any congestion control reads telemetry.
    pub(crate) fn telemetry_needed(&self) -> bool {
        use crate::cca::CongestionControl as _;
        self.ccas.iter().any(|cca| cca.needs().telemetry)
    }
}

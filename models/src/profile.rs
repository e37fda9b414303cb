//! The two model families, `ns3` and `ps`: which parts make up the reference simulator, and which the default one.

use crate::buffer::DynamicThreshold;
use crate::cca::AnyCca;
use crate::ecn::RedMarker;
use crate::loss::BernoulliLoss;
use crate::nic::{Ns3RoundRobin, RoundRobin};
use crate::scheduler::ControlThenRoundRobin;
use crate::telemetry::Ns3Telemetry;
use crate::timing::Ns3Timing;
use wormhole_kernel::Models;
use wormhole_kernel::cca::ExactTelemetry;
use wormhole_kernel::queue::Wheel;
use wormhole_kernel::router::Router;
use wormhole_kernel::timing::PsTiming;

/// Profile `ns3`: equals the HPCC/RDMA fork of ns-3 to the nanosecond.
pub struct Ns3<'m, R>(core::marker::PhantomData<(&'m (), R)>);

impl<'m, R: Router> Models for Ns3<'m, R> {
    type Timing = Ns3Timing;
    type Cca = AnyCca;
    type Telemetry = Ns3Telemetry;
    type Buffers = DynamicThreshold;
    type Scheduler = ControlThenRoundRobin;
    type Marker = RedMarker<'m>;
    type Loss = BernoulliLoss;
    type Router = R;
    type Nic = Ns3RoundRobin;
    type Queue<'a> = Wheel<'a>;
}

/// Profile `ps`: picoseconds, telemetry in full precision, no quirks.
pub struct Ps<'m, R>(core::marker::PhantomData<(&'m (), R)>);

impl<'m, R: Router> Models for Ps<'m, R> {
    type Timing = PsTiming;
    type Cca = AnyCca;
    type Telemetry = ExactTelemetry;
    type Buffers = DynamicThreshold;
    type Scheduler = ControlThenRoundRobin;
    type Marker = RedMarker<'m>;
    type Loss = BernoulliLoss;
    type Router = R;
    type Nic = RoundRobin;
    type Queue<'a> = Wheel<'a>;
}

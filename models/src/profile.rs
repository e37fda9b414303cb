//! The two model families, `ns3` and `ps`: which parts make up the reference simulator, and which the default one.
//!
//! Buffers and marker of switches are called several times a packet-hop, so they are type parameters: a family whose
//! switches have others is another type ([`with_switches`]), and the usual one pays nothing for the choice.

use crate::buffer::DynamicThreshold;
use crate::cca::AnyCca;
use crate::ecn::{Coins, Ns3Coins, RedMarker, Thresholds};
use crate::loss::BernoulliLoss;
use crate::nic::{Ns3RoundRobin, RoundRobin};
use crate::scheduler::ControlThenRoundRobin;
use crate::telemetry::Ns3Telemetry;
use crate::timing::Ns3Timing;
use core::marker::PhantomData;
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::marker::Marker;
use wormhole_kernel::queue::Wheel;
use wormhole_kernel::router::Router;
use wormhole_kernel::telemetry::ExactTelemetry;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{BitRate, ModelSet, Models, Transport};

/// Buffer of a switch (`BUFFER_SIZE 32`).
pub const BUFFER_BYTES: u32 = 32 << 20;

/// ECN thresholds of the reference runs but those of DCTCP; ports of other rates scale them.
pub const THRESHOLDS: [Thresholds; 1] =
    [Thresholds { rate: BitRate::from_gbps(100), kmin: 400_000, kmax: 1_600_000, pmax: 0.2 }];

/// ECN thresholds of the reference runs of DCTCP: a step.
pub const DCTCP_THRESHOLDS: [Thresholds; 1] = [Thresholds { kmin: 300_000, kmax: 300_000, pmax: 1.0, ..THRESHOLDS[0] }];

/// Profile `ns3`: equals the HPCC/RDMA fork of ns-3 to the nanosecond.
pub struct Ns3<'m, R, B = DynamicThreshold, K = RedMarker<'m>>(PhantomData<(&'m (), R, B, K)>);

impl<'m, R: Router, B: BufferManager, K: Marker> Models for Ns3<'m, R, B, K> {
    type Timing = Ns3Timing;
    type Cca = AnyCca;
    type Telemetry = Ns3Telemetry;
    type Buffers = B;
    type Scheduler = ControlThenRoundRobin;
    type Marker = K;
    type Loss = BernoulliLoss;
    type Router = R;
    type Nic = Ns3RoundRobin;
    type Queue<'a> = Wheel<'a>;
}

impl<'m, R: Router> Ns3<'m, R> {
    /// The models with the parameters of the reference runs; `coins` as [`Ns3Coins::after_setup`] gives them.
    pub fn models(ccas: &'m [AnyCca], router: R, coins: Ns3Coins) -> ModelSet<'m, Self> {
        ModelSet {
            ccas,
            timing: Ns3Timing,
            telemetry: Ns3Telemetry { multiplier: 1 },
            buffers: DynamicThreshold { bytes: BUFFER_BYTES, wraps: true },
            scheduler: ControlThenRoundRobin,
            marker: RedMarker { thresholds: &THRESHOLDS, enabled: true, coins: Coins::Ns3(coins) },
            loss: BernoulliLoss::Ns3,
            router,
            nic: Ns3RoundRobin,
            transport: Transport { timeout: None, ns3_quirks: true, ..Transport::default() },
        }
    }
}

/// Profile `ps`: picoseconds, telemetry in full precision, no quirks.
pub struct Ps<'m, R, B = DynamicThreshold, K = RedMarker<'m>>(PhantomData<(&'m (), R, B, K)>);

impl<'m, R: Router, B: BufferManager, K: Marker> Models for Ps<'m, R, B, K> {
    type Timing = PsTiming;
    type Cca = AnyCca;
    type Telemetry = ExactTelemetry;
    type Buffers = B;
    type Scheduler = ControlThenRoundRobin;
    type Marker = K;
    type Loss = BernoulliLoss;
    type Router = R;
    type Nic = RoundRobin;
    type Queue<'a> = Wheel<'a>;
}

impl<'m, R: Router> Ps<'m, R> {
    /// The models with the parameters of the reference runs, and time-outs. `seed` is that of everything random.
    pub fn models(ccas: &'m [AnyCca], router: R, seed: u64) -> ModelSet<'m, Self> {
        ModelSet {
            ccas,
            timing: PsTiming,
            telemetry: ExactTelemetry,
            buffers: DynamicThreshold { bytes: BUFFER_BYTES, wraps: false },
            scheduler: ControlThenRoundRobin,
            marker: RedMarker { thresholds: &THRESHOLDS, enabled: true, coins: Coins::PerPort { seed } },
            loss: BernoulliLoss::Counter { seed },
            router,
            nic: RoundRobin,
            transport: Transport::default(),
        }
    }
}

/// A family of models whose switches have other buffers and another marker.
pub fn with_switches<'m, A: Models, Z>(
    models: ModelSet<'m, A>,
    buffers: Z::Buffers,
    marker: Z::Marker,
) -> ModelSet<'m, Z>
where
    Z: Models<
            Timing = A::Timing,
            Cca = A::Cca,
            Telemetry = A::Telemetry,
            Scheduler = A::Scheduler,
            Loss = A::Loss,
            Router = A::Router,
            Nic = A::Nic,
        >,
{
    let ModelSet { ccas, timing, telemetry, scheduler, loss, router, nic, transport, .. } = models;
    ModelSet { ccas, timing, telemetry, buffers, scheduler, marker, loss, router, nic, transport }
}

//! Template of models in a crate of your own: a congestion control, a marker, a buffer manager, and the family that
//! puts them into the kernel.
//!
//! A family names a type for every policy; the kernel is compiled for it. What you do not bring comes from
//! `wormhole_models` or the kernel. Keep what you need of this and delete the rest.

mod buffers;
mod cca;
mod marker;

pub use buffers::Fixed;
pub use cca::{Aimd, AimdConfig};
pub use marker::Step;

use wormhole_kernel::queue::Wheel;
use wormhole_kernel::router::Router;
use wormhole_kernel::telemetry::ExactTelemetry;
use wormhole_kernel::timing::PsTiming;
use wormhole_kernel::{ModelSet, Models, Transport};
use wormhole_models::loss::BernoulliLoss;
use wormhole_models::nic::RoundRobin;
use wormhole_models::scheduler::ControlThenRoundRobin;

/// The family, with any router.
pub struct Mine<R>(std::marker::PhantomData<R>);

impl<R: Router> Models for Mine<R> {
    type Timing = PsTiming;
    type Cca = Aimd;
    type Telemetry = ExactTelemetry;
    type Buffers = Fixed;
    type Scheduler = ControlThenRoundRobin;
    type Marker = Step;
    type Loss = BernoulliLoss;
    type Router = R;
    type Nic = RoundRobin;
    type Queue<'a> = Wheel<'a>;
}

/// The models of the family. `seed` is that of everything random.
pub fn models<R: Router>(ccas: &[Aimd], router: R, seed: u64) -> ModelSet<'_, Mine<R>> {
    ModelSet {
        ccas,
        timing: PsTiming,
        telemetry: ExactTelemetry,
        buffers: Fixed { pause: 500_000, headroom: 100_000 },
        scheduler: ControlThenRoundRobin,
        marker: Step { bytes: 100_000 },
        loss: BernoulliLoss::Counter { seed },
        router,
        nic: RoundRobin,
        transport: Transport::default(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::accel::{Acceleration, Tier};
    use wormhole_kernel::*;
    use wormhole_models::router::{Ecmp, EcmpHash};

    /// FCTs of two flows of 2 MB to one host, in nanoseconds, and events skipped.
    fn incast(tier: Tier) -> (Vec<u64>, u64) {
        let nodes = [NodeKind::Host, NodeKind::Host, NodeKind::Host, NodeKind::Switch];
        let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
        let links = [0, 1, 2].map(|host| LinkSpec { a: NodeId(host), b: NodeId(3), rate, delay, loss: 0 });
        let ccas = [Aimd::new(AimdConfig::default())];
        let models = models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
        let limits = Limits { snapshot_words: 1 << 20, ..Limits::default() };
        let mut memory = vec![0; Kernel::<Mine<Ecmp>>::words(FabricSize::of(&nodes, &links), &limits, &models)];
        let mut kernel = Kernel::new(&mut memory, &nodes, &links, models, &limits, ()).expect("a fabric");
        kernel.accelerate(Acceleration { tier, ..Acceleration::default() }).expect("memory");
        for src in [0, 1] {
            kernel.add_flow(&FlowSpec::new(NodeId(src), NodeId(2), 2_000_000, SimTime::ZERO)).expect("a flow");
        }
        let mut fcts = Vec::new();
        while let Some(now) = kernel.next_event_time() {
            kernel.run_until(now + Span::from_us(50)).expect("room");
            while let Some(done) = kernel.poll_completion() {
                fcts.push(done.fct.as_ns());
            }
        }
        (fcts, kernel.skipped().events)
    }

    #[test]
    fn an_incast_fills_its_link_and_is_the_same_accelerated() {
        let (fcts, skipped) = incast(Tier::Off);
        assert_eq!((fcts.len(), skipped), (2, 0));
        // 4 MB and their headers at 100 Gb/s take 335 us.
        assert!(fcts[1] > 335_000 && fcts[1] < 400_000, "{fcts:?}");
        assert_eq!(incast(Tier::Exact).0, fcts);
    }
}

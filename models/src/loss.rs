//! Random frame loss on links, or none.

use crate::hash::mix;
use crate::mrg32k3a::Mrg32k3a;
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::ids::LinkId;
use wormhole_kernel::marker::LossModel;
use wormhole_kernel::model::{ConfigHash, ModelId};

/// 2^64 as a float: loss probabilities are fractions of it.
const TWO_TO_64: f64 = 18_446_744_073_709_551_616.0;

/// A loss probability as the kernel wants it: a fraction of 2^64. Values outside 0 to 1 are clamped.
pub fn loss_fraction(probability: f64) -> u64 {
    (probability * TWO_TO_64) as u64
}

/// Each frame is lost independently, with the probability of its link.
#[derive(Clone, Copy, Debug)]
pub enum BernoulliLoss {
    /// From a seed, the link and a counter.
    Counter {
        /// The seed.
        seed: u64,
    },
    /// ns-3's `RateErrorModel`: each lossy link has a copy of one generator, shared by its directions.
    Ns3,
}

/// ns-3's stream of loss generators (`third.cc`: `SetStream(50)`, which counts from 2^63).
const NS3_STREAM: u64 = (1 << 63) + 50;

/// A link's random sequence.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct LossState {
    generator: Mrg32k3a,
    link: u64,
    drawn: u64,
}

impl LossModel for BernoulliLoss {
    type Link = LossState;

    fn id(&self) -> ModelId {
        let config = match *self {
            BernoulliLoss::Counter { seed } => ConfigHash::new().with(0).with(seed),
            BernoulliLoss::Ns3 => ConfigHash::new().with(1),
        };
        ModelId { name: "bernoulli-loss", version: 1, config: config.finish() }
    }

    fn link(&self, link: LinkId) -> LossState {
        LossState { generator: Mrg32k3a::stream(0), link: link.0 as u64, drawn: 0 }
    }

    fn loses(&self, state: &mut LossState, loss: u64) -> bool {
        state.drawn += 1;
        match *self {
            BernoulliLoss::Counter { seed } => mix(mix(seed ^ mix(!state.link)).wrapping_add(state.drawn)) < loss,
            BernoulliLoss::Ns3 => {
                if state.drawn == 1 {
                    state.generator = Mrg32k3a::stream(NS3_STREAM);
                }
                state.generator.draw() < loss as f64 / TWO_TO_64
            }
        }
    }
}

/// Nothing is lost, whatever the probabilities of links. Takes a byte a link.
#[derive(Clone, Copy, Debug)]
pub struct NoLoss;

impl LossModel for NoLoss {
    /// Nothing; but a table has items of some size.
    type Link = u8;

    fn id(&self) -> ModelId {
        ModelId { name: "no-loss", version: 1, config: 0 }
    }

    fn link(&self, _link: LinkId) -> u8 {
        0
    }

    fn loses(&self, _state: &mut u8, _loss: u64) -> bool {
        false
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn share_of_losses_is_the_probability() {
        for model in [BernoulliLoss::Counter { seed: 1 }, BernoulliLoss::Ns3] {
            let mut state = model.link(LinkId(2));
            let lost = (0..100_000).filter(|_| model.loses(&mut state, loss_fraction(0.01))).count();
            assert!((900..1_100).contains(&lost), "{model:?}: {lost}");
        }
    }

    #[test]
    fn no_loss_loses_nothing() {
        let mut state = NoLoss.link(LinkId(0));
        assert!((0..1_000).all(|_| !NoLoss.loses(&mut state, u64::MAX)));
    }

    #[test]
    fn ns3_links_repeat_one_sequence() {
        let (mut a, mut b) = (BernoulliLoss::Ns3.link(LinkId(0)), BernoulliLoss::Ns3.link(LinkId(9)));
        for _ in 0..1_000 {
            let loss = loss_fraction(0.3);
            assert_eq!(BernoulliLoss::Ns3.loses(&mut a, loss), BernoulliLoss::Ns3.loses(&mut b, loss));
        }
    }
}

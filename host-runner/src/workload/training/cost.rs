//! What passes cost: floating-point operations, bytes and times.

use super::schedule::Direction;
use super::{Training, ZeroStage};
use wormhole_kernel::Span;
use wormhole_kernel::units::PS_PER_S;

/// Bytes of an activation and of a parameter that is sent: bfloat16.
pub(super) const VALUE_BYTES: u64 = 2;

/// Bytes that a step of Adam in mixed precision reads and writes for each parameter, the gradient aside: master copy
/// and two moments of 4 bytes, each read and written, and the new 2-byte parameter.
const OPTIMISER_BYTES: u64 = 6 * 4 + VALUE_BYTES;

/// A part of a layer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Half {
    /// Attention, and the router if there are experts.
    Attention,
    /// The feed-forward network, or the experts.
    FeedForward,
}

/// Times of passes.
///
/// A matrix of `n` parameters costs `2 n` operations a token; scores and weighted sums of attention cost `4 s h` a
/// token, as in Narayanan et al. 2021 (the mask is not made use of). A backward pass costs twice as much as the forward
/// pass. All but matrices and attention is left out. Experts get equal shares of the tokens.
#[derive(Clone, Debug)]
pub(super) struct Costs {
    /// Operations of a layer's first half forward, for a micro-batch.
    attention: f64,
    /// Operations of its second half.
    feed_forward: f64,
    /// Operations of the output matrix.
    pub(super) head: f64,
    /// Operations that a tensor-parallel group does a second.
    per_second: f64,
}

impl Costs {
    pub(super) fn new(training: &Training) -> Costs {
        let model = &training.model;
        let tokens = f64::from(training.micro_batch_size) * f64::from(model.sequence);
        let matrices = (model.attention_matrices() + model.router_matrix()) as f64;
        let scores = 4.0 * f64::from(model.sequence) * f64::from(model.hidden);
        let visits = if model.is_mixture() { f64::from(model.top_k) } else { 1.0 };
        Costs {
            attention: tokens * (2.0 * matrices + scores),
            feed_forward: tokens * 2.0 * visits * model.ffn_matrices() as f64,
            head: tokens * 2.0 * model.vocabulary_matrix() as f64,
            per_second: f64::from(training.tp) * training.flops * training.efficiency,
        }
    }

    /// Time of whole layers, with the output matrix if `head`.
    pub(super) fn layers(&self, layers: u32, head: bool, direction: Direction) -> Span {
        let head = if head { self.head } else { 0.0 };
        self.time(f64::from(layers) * (self.attention + self.feed_forward) + head, direction)
    }

    /// Time of half a layer.
    pub(super) fn half(&self, half: Half, direction: Direction) -> Span {
        let operations = match half {
            Half::Attention => self.attention,
            Half::FeedForward => self.feed_forward,
        };
        self.time(operations, direction)
    }

    fn time(&self, forward: f64, direction: Direction) -> Span {
        let operations = match direction {
            Direction::Forward => forward,
            Direction::Backward => 2.0 * forward,
        };
        span(operations / self.per_second)
    }
}

/// Operations of an iteration of one replica.
pub(super) fn iteration_operations(training: &Training) -> f64 {
    let Costs { attention, feed_forward, head, .. } = Costs::new(training);
    let forward = f64::from(training.model.layers) * (attention + feed_forward) + head;
    3.0 * forward * f64::from(training.micro_batches)
}

/// Whole picoseconds, rounded.
fn span(seconds: f64) -> Span {
    Span((seconds * PS_PER_S as f64).round() as u64)
}

/// Layers of a chunk, from 0.
pub(super) type Layers = std::ops::Range<u32>;

/// Parameters that a rank holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Held {
    /// Those that all replicas hold.
    pub shared: u64,
    /// Of the experts, if they are spread over ranks.
    pub experts: u64,
}

/// Figures that follow from a configuration. The configuration must be valid.
impl Training {
    /// Layers of a chunk.
    pub(super) fn chunk_layers(&self) -> u32 {
        self.model.layers / (self.pp * self.schedule.chunks())
    }

    /// Whether a chunk begins the model.
    pub(super) fn is_first(&self, stage: u32, chunk: u32) -> bool {
        stage == 0 && chunk == 0
    }

    /// Whether a chunk ends the model.
    pub(super) fn is_last(&self, stage: u32, chunk: u32) -> bool {
        stage + 1 == self.pp && chunk + 1 == self.schedule.chunks()
    }

    /// What a rank holds of some layers of a chunk, with the embedding before the first layer of the model and the
    /// output matrix after the last.
    ///
    /// All parameters are divided evenly among the tensor-parallel ranks: norms, some biases and positions are copied
    /// in truth, less than a thousandth of a model.
    pub(super) fn held(&self, stage: u32, chunk: u32, layers: &Layers) -> Held {
        let model = &self.model;
        let count = u128::from(layers.end - layers.start);
        let mut shared = count * model.shared_layer_parameters();
        let experts = count * model.expert_layer_parameters();
        if self.is_first(stage, chunk) && layers.start == 0 {
            shared += model.input_parameters();
        }
        if self.is_last(stage, chunk) && layers.end == self.chunk_layers() {
            let copied = model.is_tied() && self.pp == 1;
            shared += model.norm_parameters() + if copied { 0 } else { model.vocabulary_matrix() };
        }
        let shares = u128::from(self.tp);
        if self.ep == 1 {
            Held { shared: (shared + experts).div_ceil(shares) as u64, experts: 0 }
        } else {
            let experts = experts.div_ceil(shares * u128::from(self.ep)) as u64;
            Held { shared: shared.div_ceil(shares) as u64, experts }
        }
    }

    /// What a rank of a stage holds of all its chunks.
    pub(super) fn held_by(&self, stage: u32) -> Held {
        let layers = 0..self.chunk_layers();
        let chunks = (0..self.schedule.chunks()).map(|chunk| self.held(stage, chunk, &layers));
        chunks.fold(Held { shared: 0, experts: 0 }, |sum, chunk| Held {
            shared: sum.shared + chunk.shared,
            experts: sum.experts + chunk.experts,
        })
    }

    /// The layers whose gradients are reduced together: bucket `index` of a chunk.
    pub(super) fn bucket(&self, index: u32) -> Layers {
        let edge = |index: u32| (u64::from(index) * u64::from(self.chunk_layers()) / u64::from(self.buckets)) as u32;
        edge(index)..edge(index + 1)
    }

    /// Ranks that hold copies of the same experts.
    pub(super) fn expert_replicas(&self) -> u32 {
        self.dp / self.ep
    }

    /// Bytes that the activations of a micro-batch take.
    fn activation_bytes(&self) -> u64 {
        let tokens = u64::from(self.micro_batch_size) * u64::from(self.model.sequence);
        tokens * u64::from(self.model.hidden) * VALUE_BYTES
    }

    /// Bytes of a message between pipeline stages. Each tensor-parallel rank sends its part of the activations
    /// (Narayanan et al. 2021, section 4.1, scatter/gather).
    pub(super) fn pipeline_bytes(&self) -> u64 {
        self.activation_bytes() / u64::from(self.tp)
    }

    /// Bytes that a rank brings to an all-to-all of experts: the tokens of its part of the sequence, once for each
    /// expert they visit.
    pub(super) fn expert_bytes(&self) -> u64 {
        padded(self.pipeline_bytes() * u64::from(self.model.top_k), self.ep)
    }

    /// Bytes of the whole activations that a tensor-parallel group exchanges around half a layer. Around experts they
    /// are those of the tokens that have come, as many as go if experts are equally busy.
    pub(super) fn tensor_bytes(&self, half: Half) -> u64 {
        match half {
            Half::FeedForward if self.model.is_mixture() => self.activation_bytes() * u64::from(self.model.top_k),
            _ => self.activation_bytes(),
        }
    }

    /// Bytes of the gradients of the embedding that a rank holds.
    pub(super) fn embedding_bytes(&self) -> u64 {
        self.model.vocabulary_matrix().div_ceil(u128::from(self.tp)) as u64 * u64::from(self.gradient_bytes)
    }

    /// Time of the optimiser's step: memory limits it.
    pub(super) fn optimiser_time(&self, stage: u32) -> Span {
        let Held { shared, experts } = self.held_by(stage);
        let (replicas, expert_replicas) = match self.zero {
            ZeroStage::None => (1, 1),
            ZeroStage::One | ZeroStage::Two | ZeroStage::Three => (self.dp, self.expert_replicas()),
        };
        let parameters = shared.div_ceil(u64::from(replicas)) + experts.div_ceil(u64::from(expert_replicas));
        let bytes = parameters * (OPTIMISER_BYTES + u64::from(self.gradient_bytes));
        span(bytes as f64 / self.memory_bandwidth)
    }
}

/// The next multiple of `parts`: collectives that give every rank a part are padded, as gradient buffers are.
pub(super) fn padded(count: u64, parts: u32) -> u64 {
    count.next_multiple_of(u64::from(parts))
}

//! Training iterations of GPT and mixture-of-experts models.
//!
//! [`Training`] says how a model is spread over ranks; [`Training::job`] gives a program for each rank. Programs make
//! tasks as they are asked for them, so thousands of ranks fit into memory.
//!
//! | traffic | when |
//! |---|---|
//! | pipeline | activations and their gradients between neighbouring stages, for each micro-batch |
//! | experts | four all-to-alls for each layer and micro-batch: there and back, forward and backward |
//! | gradients | once an iteration, after the last micro-batch, or bucket by bucket during its backward pass |
//! | parameters | ZeRO: after the optimiser, or before each pass |
//! | tensor and sequence parallel | twice for each layer and pass; only if asked for |
//!
//! Left out: recomputation of activations, dropped or unevenly spread tokens, context parallelism, gathers of
//! parameters ahead of their pass, the few bytes of losses and gradient norms.

mod cost;
mod description;
mod iteration;
mod keys;
mod model;
mod parallelism;
mod schedule;
#[cfg(test)]
mod tests;

pub use description::Description;
pub use keys::{Kind, ScheduleName, TrainingKeys};
pub use model::{Family, ModelShape};
pub use schedule::Schedule;

use crate::workload::task::{Job, Program};
use iteration::{Facts, Iterations};
use std::sync::Arc;
use wormhole_kernel::units::PS_PER_S;

/// What replicas share instead of holding copies (Rajbhandari et al. 2020).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ZeroStage {
    /// Nothing: gradients are all-reduced.
    None,
    /// The optimiser's state: gradients are reduce-scattered, and parameters all-gathered after the step.
    One,
    /// Gradients too. It sends what stage 1 sends: gradients are accumulated before they are reduced.
    Two,
    /// Parameters too: they are all-gathered before each pass of a chunk, forward and backward; gradients are
    /// reduce-scattered.
    Three,
}

/// How a model is trained.
#[derive(Clone, PartialEq, Debug)]
pub struct Training {
    /// The model.
    pub model: ModelShape,
    /// Ranks that share each tensor.
    pub tp: u32,
    /// Pipeline stages.
    pub pp: u32,
    /// Replicas.
    pub dp: u32,
    /// Consecutive replicas that share the experts of a layer; it divides `dp`. With 1, each holds all experts.
    pub ep: u32,
    /// Micro-batches of each replica in an iteration.
    pub micro_batches: u32,
    /// Sequences of a micro-batch.
    pub micro_batch_size: u32,
    /// In which order micro-batches go through the stages.
    pub schedule: Schedule,
    /// Whether tensor-parallel ranks exchange activations. The Wormhole paper leaves that out.
    pub tp_traffic: bool,
    /// Whether they do it by all-gathers and reduce-scatters instead of all-reduces (Korthikanti et al. 2022).
    pub sequence_parallel: bool,
    /// Whether first and last stage all-reduce the gradients of an embedding they both hold.
    pub embedding_traffic: bool,
    /// What replicas share.
    pub zero: ZeroStage,
    /// Whether gradients are reduced during the backward pass of the last micro-batch.
    pub overlap: bool,
    /// With `overlap`: parts in which the gradients of a chunk are reduced; at most one a layer.
    pub buckets: u32,
    /// Bytes of a gradient: 2 or 4.
    pub gradient_bytes: u32,
    /// Peak operations a second of a GPU.
    pub flops: f64,
    /// The share of `flops` that is reached, above 0 and up to 1.
    pub efficiency: f64,
    /// Bytes a second that a GPU's memory moves; it limits the optimiser's step.
    pub memory_bandwidth: f64,
    /// How many iterations follow each other.
    pub iterations: u32,
}

/// Limit of every count of a configuration, so that no product of them overflows.
const MAX_COUNT: u32 = 1 << 24;

/// Most ranks of a job.
const MAX_RANKS: u64 = 1 << 20;

/// Most picoseconds of computation, and most bytes of anything: half of what 64 bits hold.
const MAX_AMOUNT: u64 = u64::MAX / 2;

impl Training {
    /// A model on one GPU: the degrees are 1, and the rest is what is usual. The GPU is an A100 of 80 GB: 312 TFLOP/s
    /// in bfloat16 and 2,039 GB/s (NVIDIA's data sheet), of which 40 % of the operations are reached.
    pub fn new(model: ModelShape) -> Training {
        Training {
            model,
            tp: 1,
            pp: 1,
            dp: 1,
            ep: 1,
            micro_batches: 1,
            micro_batch_size: 1,
            schedule: Schedule::OneFOneB,
            tp_traffic: false,
            sequence_parallel: false,
            embedding_traffic: false,
            zero: ZeroStage::None,
            overlap: false,
            buckets: 1,
            gradient_bytes: 4,
            flops: 312e12,
            efficiency: 0.4,
            memory_bandwidth: 2.039e12,
            iterations: 1,
        }
    }

    /// Number of ranks of a valid configuration.
    pub fn ranks(&self) -> u32 {
        self.tp * self.pp * self.dp
    }

    /// Sequences of an iteration of a valid configuration.
    pub fn global_batch(&self) -> u128 {
        [self.dp, self.micro_batches, self.micro_batch_size].map(u128::from).into_iter().product()
    }

    /// Checks the configuration.
    ///
    /// # Errors
    /// All that is wrong, a sentence each.
    pub fn validate(&self) -> Result<(), Vec<String>> {
        // Later checks divide by what earlier ones have found to be positive, and multiply what is small enough.
        for check in [Training::check_counts, Training::check_relations, Training::check_amounts] {
            let faults: Vec<String> = check(self).into_iter().filter(|(bad, _)| *bad).map(|(_, text)| text).collect();
            if !faults.is_empty() {
                return Err(faults);
            }
        }
        Ok(())
    }

    /// Each value by itself.
    fn check_counts(&self) -> Vec<(bool, String)> {
        let model = &self.model;
        let counts = [
            ("tp", self.tp),
            ("pp", self.pp),
            ("dp", self.dp),
            ("ep", self.ep),
            ("micro-batches", self.micro_batches),
            ("micro-batch-size", self.micro_batch_size),
            ("virtual-stages", self.schedule.chunks()),
            ("buckets", self.buckets),
            ("iterations", self.iterations),
            ("layers", model.layers),
            ("hidden", model.hidden),
            ("heads", model.heads),
            ("kv-heads", model.kv_heads),
            ("ffn", model.ffn),
            ("vocabulary", model.vocabulary),
            ("sequence", model.sequence),
        ];
        let count = |(name, value): (&str, u32)| {
            (value == 0 || value > MAX_COUNT, format!("{name} must be from 1 to {MAX_COUNT}, not {value}"))
        };
        let positive = |(name, value): (&str, f64)| {
            (!(value > 0.0 && value.is_finite()), format!("{name} must be positive and finite, not {value}"))
        };
        let mut checks: Vec<(bool, String)> = counts.map(count).into();
        checks.extend([("flops", self.flops), ("memory-bandwidth", self.memory_bandwidth)].map(positive));
        checks.extend([
            (
                !(self.efficiency > 0.0 && self.efficiency <= 1.0),
                format!("efficiency must be above 0 and up to 1, not {}", self.efficiency),
            ),
            (
                ![2, 4].contains(&self.gradient_bytes),
                format!("gradient-bytes must be 2 or 4, not {}", self.gradient_bytes),
            ),
            (
                model.is_mixture() && (model.top_k == 0 || model.top_k > model.experts || model.experts > MAX_COUNT),
                format!("{} experts, {} a token: that cannot be", model.experts, model.top_k),
            ),
        ]);
        checks
    }

    /// Values that must fit each other.
    fn check_relations(&self) -> Vec<(bool, String)> {
        let model = &self.model;
        let &Training { tp, pp, dp, ep, micro_batches, buckets, .. } = self;
        let chunks = u64::from(pp) * u64::from(self.schedule.chunks());
        let layers = u64::from(model.layers);
        let divides = |name: &str, value: u32, parts_name: &str, parts: u32| {
            (!value.is_multiple_of(parts), format!("{parts_name} {parts} does not divide {name} {value}"))
        };
        let interleaved = matches!(self.schedule, Schedule::Interleaved { .. });
        let ranks = [tp, pp, dp].map(u64::from).into_iter().fold(1, u64::saturating_mul);
        vec![
            divides("hidden", model.hidden, "heads", model.heads),
            divides("heads", model.heads, "kv-heads", model.kv_heads),
            divides("heads", model.heads, "tp", tp),
            divides("sequence", model.sequence, "tp", tp),
            divides("dp", dp, "ep", ep),
            (ep > 1 && !model.is_mixture(), format!("a dense model has no experts to spread: ep must be 1, not {ep}")),
            (
                model.is_mixture() && !model.experts.is_multiple_of(ep),
                format!("ep {ep} does not divide experts {}", model.experts),
            ),
            (
                !layers.is_multiple_of(chunks),
                format!("{layers} layers cannot be spread evenly over pp times virtual-stages, {chunks} chunks"),
            ),
            (interleaved && pp == 1, "schedule interleaved needs pp above 1".into()),
            (
                interleaved && !micro_batches.is_multiple_of(pp),
                format!("schedule interleaved: pp {pp} does not divide micro-batches {micro_batches}"),
            ),
            (buckets > 1 && !self.overlap, format!("buckets {buckets} without overlap")),
            (
                u64::from(buckets) > (layers / chunks).max(1),
                format!("buckets {buckets}, but a chunk has {} layers", layers / chunks),
            ),
            (
                self.sequence_parallel && !self.tp_traffic,
                "sequence-parallel says how tp-traffic is sent: there is none".into(),
            ),
            (
                self.tp_traffic && tp > 1 && model.is_mixture() && !self.sequence_parallel,
                "tp-traffic of a model with experts must be sequence-parallel".into(),
            ),
            (ranks > MAX_RANKS, format!("{ranks} ranks; at most {MAX_RANKS}")),
        ]
    }

    /// What follows from the values, against what the simulator can count.
    fn check_amounts(&self) -> Vec<(bool, String)> {
        let model = &self.model;
        // Bounds of bytes: of all gradients or parameters with all of their optimiser state, and of activations.
        let parameters = (model.parameters() as f64) * 64.0;
        let tokens = f64::from(self.micro_batch_size) * f64::from(model.sequence);
        let activations = tokens * f64::from(model.hidden) * 2.0 * f64::from(model.top_k.max(1));
        let passes = f64::from(self.micro_batches) * f64::from(self.schedule.chunks());
        let operations = cost::iteration_operations(self) * f64::from(self.iterations);
        let times = operations / (self.flops * self.efficiency) + parameters / self.memory_bandwidth;
        let tasks = iteration::MAX_TASKS_A_LAYER * f64::from(self.chunk_layers() + 1) * 2.0 * passes;
        let most = MAX_AMOUNT as f64;
        vec![
            (parameters > most, "the model has too many parameters to count their bytes".into()),
            (activations > most, "a micro-batch has too many bytes to count".into()),
            (times * PS_PER_S as f64 > most, "the computation takes longer than the simulator can count".into()),
            (tasks * f64::from(self.iterations) > f64::from(u32::MAX), "a rank has too many tasks to count".into()),
        ]
    }

    /// The job of a valid configuration.
    ///
    /// # Panics
    /// It may if [`validate`](Training::validate) finds faults.
    pub fn job(&self) -> Job {
        let (groups, facts) = Facts::new(self);
        Job { description: self.to_string(), groups, programs: programs(facts) }
    }
}

/// The programs of all ranks.
fn programs(facts: Facts) -> Vec<Box<dyn Program>> {
    let ranks = facts.ranks();
    let facts = Arc::new(facts);
    (0..ranks).map(|rank| Box::new(Iterations::new(facts.clone(), rank)) as Box<dyn Program>).collect()
}

/// One line: model and degrees.
impl std::fmt::Display for Training {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Training { model, tp, pp, dp, ep, micro_batches, .. } = self;
        let kind = if model.is_mixture() { "MoE" } else { "GPT" };
        let (name, ranks) = (&model.name, self.ranks());
        write!(f, "{kind} {name}, {ranks} ranks: tp {tp}, pp {pp}, dp {dp}, ep {ep}, {micro_batches} micro-batches")
    }
}

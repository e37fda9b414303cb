//! A training job as it is written on the command line and in scenario files.

use super::{ModelShape, Schedule, Training, ZeroStage};
use clap::{Args, ValueEnum};
use serde::{Deserialize, Serialize};
use std::fmt;

/// Which family of models.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Dense models.
    Gpt,
    /// Models with experts.
    Moe,
}

impl Kind {
    fn has(self, model: &ModelShape) -> bool {
        model.is_mixture() == (self == Kind::Moe)
    }

    /// The model if none is named.
    fn default_model(self) -> &'static str {
        match self {
            Kind::Gpt => "13b",
            Kind::Moe => "8x7b",
        }
    }
}

/// The name of a schedule.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ScheduleName {
    /// Forward and backward passes take turns.
    #[value(name = "1f1b")]
    #[serde(rename = "1f1b")]
    OneFOneB,
    /// All forward passes, then all backward passes.
    #[value(name = "gpipe")]
    #[serde(rename = "gpipe")]
    GPipe,
    /// 1F1B with several chunks of the model on each rank.
    Interleaved,
}

impl fmt::Display for ScheduleName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.to_possible_value().as_ref().map_or("", |value| value.get_name()))
    }
}

/// The options of `wormhole workload gpt` and `moe`; in a scenario file, the keys of a `[[job]]` of these kinds.
///
/// What is left out has the value of [`TrainingKeys::default`], or one that follows from others.
#[derive(Args, Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", default, deny_unknown_fields)]
pub struct TrainingKeys {
    /// Model: 7b, 13b, 22b, 175b or 1t; 8x7b, 8x13b, 8x22b or 32x22b [default: 13b or 8x7b].
    #[arg(long, value_name = "NAME")]
    pub model: Option<String>,
    /// Number of GPUs [default: tp times pp times dp].
    #[arg(long, value_name = "N")]
    pub gpus: Option<u32>,
    /// Tensor-parallel degree.
    #[arg(long, value_name = "N", default_value_t = Self::default().tp)]
    pub tp: u32,
    /// Pipeline stages.
    #[arg(long, value_name = "N", default_value_t = Self::default().pp)]
    pub pp: u32,
    /// Data-parallel replicas [default: as many as the GPUs are enough for, or 1].
    #[arg(long, value_name = "N")]
    pub dp: Option<u32>,
    /// Expert-parallel degree: consecutive replicas that share the experts of a layer; it divides dp.
    #[arg(long, value_name = "N", default_value_t = Self::default().ep)]
    pub ep: u32,
    /// Micro-batches of each replica in an iteration [default: pp, which makes the global batch dp times pp].
    #[arg(long, value_name = "N")]
    pub micro_batches: Option<u32>,
    /// Sequences of a micro-batch.
    #[arg(long, value_name = "N", default_value_t = Self::default().micro_batch_size)]
    pub micro_batch_size: u32,
    /// Pipeline schedule.
    #[arg(long, value_enum, default_value_t = Self::default().schedule)]
    pub schedule: ScheduleName,
    /// Chunks of each rank; only with schedule interleaved, which has two by default.
    #[arg(long, value_name = "N")]
    pub virtual_stages: Option<u32>,
    /// Tokens of a sequence [default: the model's].
    #[arg(long, value_name = "N")]
    pub sequence: Option<u32>,
    /// Tensor-parallel ranks exchange activations, by all-reduces.
    #[arg(long)]
    pub tp_traffic: bool,
    /// They do it by all-gathers and reduce-scatters.
    #[arg(long)]
    pub sequence_parallel: bool,
    /// First and last stage all-reduce the gradients of an embedding that both hold.
    #[arg(long)]
    pub embedding_traffic: bool,
    /// ZeRO stage, 0 to 3.
    #[arg(long, value_name = "STAGE", default_value_t = Self::default().zero)]
    pub zero: u32,
    /// Gradients are reduced during the backward pass of the last micro-batch.
    #[arg(long)]
    pub overlap: bool,
    /// With overlap: parts in which the gradients of a chunk are reduced.
    #[arg(long, value_name = "N", default_value_t = Self::default().buckets)]
    pub buckets: u32,
    /// Bytes of a gradient: 2 or 4.
    #[arg(long, value_name = "BYTES", default_value_t = Self::default().gradient_bytes)]
    pub gradient_bytes: u32,
    /// Peak operations a second of a GPU. The default is an A100's in bfloat16.
    #[arg(long, value_name = "RATE", default_value_t = Self::default().flops)]
    pub flops: f64,
    /// The share of the peak that is reached.
    #[arg(long, value_name = "FRACTION", default_value_t = Self::default().efficiency)]
    pub efficiency: f64,
    /// Bytes a second of a GPU's memory.
    #[arg(long, value_name = "RATE", default_value_t = Self::default().memory_bandwidth)]
    pub memory_bandwidth: f64,
    /// Iterations one after the other.
    #[arg(long, value_name = "N", default_value_t = Self::default().iterations)]
    pub iterations: u32,
}

impl Default for TrainingKeys {
    /// One GPU, as [`Training::new`] has it.
    fn default() -> TrainingKeys {
        // The model does not matter: all that follows from it is left open.
        let usual = Training::new(ModelShape::default());
        TrainingKeys {
            model: None,
            gpus: None,
            tp: usual.tp,
            pp: usual.pp,
            dp: None,
            ep: usual.ep,
            micro_batches: None,
            micro_batch_size: usual.micro_batch_size,
            schedule: ScheduleName::OneFOneB,
            virtual_stages: None,
            sequence: None,
            tp_traffic: usual.tp_traffic,
            sequence_parallel: usual.sequence_parallel,
            embedding_traffic: usual.embedding_traffic,
            zero: 0,
            overlap: usual.overlap,
            buckets: usual.buckets,
            gradient_bytes: usual.gradient_bytes,
            flops: usual.flops,
            efficiency: usual.efficiency,
            memory_bandwidth: usual.memory_bandwidth,
            iterations: usual.iterations,
        }
    }
}

impl TrainingKeys {
    /// The job that the keys ask for; it is valid.
    ///
    /// # Errors
    /// All that is wrong, a sentence each.
    pub fn training(&self, kind: Kind) -> Result<Training, Vec<String>> {
        let mut faults = Vec::new();
        let model = self.shape(kind).unwrap_or_else(|fault| {
            faults.push(fault);
            ModelShape::default()
        });
        let zero = self.zero_stage().unwrap_or_else(|fault| {
            faults.push(fault);
            ZeroStage::None
        });
        faults.extend(self.odd_schedule());
        if !faults.is_empty() {
            return Err(faults);
        }
        let training = Training {
            tp: self.tp,
            pp: self.pp,
            dp: self.replicas(),
            ep: self.ep,
            micro_batches: self.micro_batches.unwrap_or(self.pp),
            micro_batch_size: self.micro_batch_size,
            schedule: self.schedule(),
            tp_traffic: self.tp_traffic,
            sequence_parallel: self.sequence_parallel,
            embedding_traffic: self.embedding_traffic,
            zero,
            overlap: self.overlap,
            buckets: self.buckets,
            gradient_bytes: self.gradient_bytes,
            flops: self.flops,
            efficiency: self.efficiency,
            memory_bandwidth: self.memory_bandwidth,
            iterations: self.iterations,
            model,
        };
        training.validate()?;
        match self.gpus {
            Some(gpus) if gpus != training.ranks() => {
                Err(vec![format!("gpus {gpus}, but tp times pp times dp are {}", training.ranks())])
            }
            _ => Ok(training),
        }
    }

    /// The same keys with all that follows from others written out.
    pub fn complete(&self, training: &Training) -> TrainingKeys {
        TrainingKeys {
            model: Some(training.model.name.clone()),
            gpus: Some(training.ranks()),
            dp: Some(training.dp),
            micro_batches: Some(training.micro_batches),
            virtual_stages: (self.schedule == ScheduleName::Interleaved).then_some(training.schedule.chunks()),
            sequence: Some(training.model.sequence),
            ..self.clone()
        }
    }

    fn shape(&self, kind: Kind) -> Result<ModelShape, String> {
        let name = self.model.as_deref().unwrap_or(kind.default_model());
        let model = ModelShape::find(name).filter(|model| kind.has(model)).ok_or_else(|| {
            let known =
                ModelShape::names().into_iter().filter(|name| ModelShape::find(name).is_some_and(|m| kind.has(&m)));
            format!("no model `{name}` of this kind; there are {}", known.collect::<Vec<_>>().join(", "))
        })?;
        Ok(ModelShape { sequence: self.sequence.unwrap_or(model.sequence), ..model })
    }

    fn zero_stage(&self) -> Result<ZeroStage, String> {
        let stages = [ZeroStage::None, ZeroStage::One, ZeroStage::Two, ZeroStage::Three];
        let stage = stages.get(self.zero as usize).copied();
        stage.ok_or_else(|| format!("zero must be from 0 to 3, not {}", self.zero))
    }

    fn schedule(&self) -> Schedule {
        match self.schedule {
            ScheduleName::OneFOneB => Schedule::OneFOneB,
            ScheduleName::GPipe => Schedule::GPipe,
            ScheduleName::Interleaved => Schedule::Interleaved { virtual_stages: self.virtual_stages.unwrap_or(2) },
        }
    }

    fn odd_schedule(&self) -> Option<String> {
        let stages = self.virtual_stages.filter(|_| self.schedule != ScheduleName::Interleaved)?;
        Some(format!("virtual-stages {stages} need schedule interleaved, not {}", self.schedule))
    }

    fn replicas(&self) -> u32 {
        let others = self.tp.saturating_mul(self.pp);
        self.dp.unwrap_or_else(|| self.gpus.and_then(|gpus| gpus.checked_div(others)).unwrap_or(1).max(1))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_rest_follows_from_model_and_gpus() {
        let keys = TrainingKeys { gpus: Some(128), tp: 8, pp: 2, ..TrainingKeys::default() };
        let training = keys.training(Kind::Gpt).expect("a valid job");
        let plain = Training::new(ModelShape::find("13b").expect("a model"));
        assert_eq!(training, Training { tp: 8, pp: 2, dp: 8, micro_batches: 2, ..plain });
        let complete = keys.complete(&training);
        assert_eq!(complete.training(Kind::Gpt), Ok(training));
        assert_eq!((complete.dp, complete.sequence, complete.virtual_stages), (Some(8), Some(2_048), None));
    }

    #[test]
    fn keys_are_those_of_the_command_line() {
        let text = "model = '8x22b'\ntp = 8\ndp = 4\nep = 4\nschedule = 'interleaved'\npp = 2\nmicro-batch-size = 2\n\
                    tp-traffic = true\nsequence-parallel = true\nzero = 1\nsequence = 1024\nvirtual-stages = 4\n";
        let keys: TrainingKeys = toml::from_str(text).expect("keys");
        let training = keys.training(Kind::Moe).expect("a valid job");
        assert_eq!((training.schedule, training.zero), (Schedule::Interleaved { virtual_stages: 4 }, ZeroStage::One));
        assert_eq!((training.model.sequence, training.micro_batches), (1_024, 2));
        let written = toml::to_string(&keys).expect("text");
        assert_eq!(toml::from_str(&written), Ok(keys));
        assert!(toml::from_str::<TrainingKeys>("microbatches = 2").is_err());
    }

    #[test]
    fn faults_are_told() {
        let fault = |keys: TrainingKeys, kind| keys.training(kind).expect_err("faults").join("; ");
        let several =
            TrainingKeys { model: Some("13b".into()), zero: 4, virtual_stages: Some(2), ..Default::default() };
        assert_eq!(
            fault(several, Kind::Moe),
            "no model `13b` of this kind; there are 8x7b, 8x13b, 8x22b, 32x22b; zero must be from 0 to 3, not 4; \
             virtual-stages 2 need schedule interleaved, not 1f1b"
        );
        let gpus = TrainingKeys { gpus: Some(100), tp: 8, ..Default::default() };
        assert_eq!(fault(gpus, Kind::Gpt), "gpus 100, but tp times pp times dp are 96");
        assert!(fault(TrainingKeys { tp: 0, gpus: Some(8), ..Default::default() }, Kind::Gpt).starts_with("tp must"));
    }
}

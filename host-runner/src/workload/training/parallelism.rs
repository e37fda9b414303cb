//! Which ranks hold what, and which ranks form groups.
//!
//! Ranks are numbered as in Megatron-LM: neighbours share tensors, then come replicas, then pipeline stages. So a host
//! of eight GPUs with consecutive ranks holds whole tensor-parallel groups.

use super::Training;
use crate::workload::task::{Group, GroupId, Rank};

/// Where a rank is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Place {
    /// Pipeline stage.
    pub stage: u32,
    /// Which of the data-parallel replicas.
    pub replica: u32,
    /// Which part of each tensor.
    pub shard: u32,
}

impl Place {
    pub(super) fn of(training: &Training, rank: Rank) -> Place {
        let (tp, dp) = (training.tp, training.dp);
        Place { stage: rank / (tp * dp), replica: rank / tp % dp, shard: rank % tp }
    }

    pub(super) fn rank(self, training: &Training) -> Rank {
        (self.stage * training.dp + self.replica) * training.tp + self.shard
    }
}

/// The groups of a rank. There are none of one rank, and none that send nothing.
#[derive(Clone, Copy, Default, Debug)]
pub(super) struct Memberships {
    /// Shares tensors.
    pub tensor: Option<GroupId>,
    /// Holds copies of the same parameters, experts aside if they are spread.
    pub data: Option<GroupId>,
    /// Shares the experts of a layer.
    pub expert: Option<GroupId>,
    /// Holds copies of the same experts, if they are spread.
    pub expert_data: Option<GroupId>,
    /// First and last stage, which hold copies of the embedding.
    pub embedding: Option<GroupId>,
}

/// All groups, and what each rank is a member of.
///
/// Groups of the same ranks stay apart if their purposes differ: real jobs have a communicator for each, and calls of
/// different purposes may come in different orders.
pub(super) struct GroupTable {
    pub list: Vec<Group>,
    pub of_rank: Vec<Memberships>,
}

impl GroupTable {
    pub(super) fn new(training: &Training) -> GroupTable {
        let of_rank = vec![Memberships::default(); training.ranks() as usize];
        let mut table = GroupTable { list: Vec::new(), of_rank };
        for stage in 0..training.pp {
            table.add_stage(training, stage);
        }
        if training.embedding_traffic && training.model.is_tied() {
            table.add_embeddings(training);
        }
        table
    }

    fn add_stage(&mut self, training: &Training, stage: u32) {
        let place = |replica, shard| Place { stage, replica, shard }.rank(training);
        let &Training { tp, dp, ep, .. } = training;
        for replica in 0..if training.tp_traffic { dp } else { 0 } {
            let ranks = (0..tp).map(|shard| place(replica, shard)).collect();
            self.add(ranks, format!("tp stage {stage} replica {replica}"), |of| &mut of.tensor);
        }
        for shard in 0..tp {
            let ranks = (0..dp).map(|replica| place(replica, shard)).collect();
            self.add(ranks, format!("dp stage {stage} shard {shard}"), |of| &mut of.data);
        }
        for shard in 0..if ep > 1 { tp } else { 0 } {
            for first in (0..dp).step_by(ep as usize) {
                let ranks = (first..first + ep).map(|replica| place(replica, shard)).collect();
                self.add(ranks, format!("ep stage {stage} shard {shard} replica {first}"), |of| &mut of.expert);
            }
            for part in 0..ep {
                let ranks = (part..dp).step_by(ep as usize).map(|replica| place(replica, shard)).collect();
                self.add(ranks, format!("expert-dp stage {stage} shard {shard} part {part}"), |of| &mut of.expert_data);
            }
        }
    }

    fn add_embeddings(&mut self, training: &Training) {
        for replica in 0..training.dp {
            for shard in 0..training.tp {
                let place = |stage| Place { stage, replica, shard }.rank(training);
                let ranks = (0..training.pp).step_by((training.pp as usize - 1).max(1)).map(place).collect();
                self.add(ranks, format!("embedding replica {replica} shard {shard}"), |of| &mut of.embedding);
            }
        }
    }

    fn add(&mut self, ranks: Vec<Rank>, name: String, purpose: fn(&mut Memberships) -> &mut Option<GroupId>) {
        if ranks.len() > 1 {
            for rank in &ranks {
                *purpose(&mut self.of_rank[*rank as usize]) = Some(self.list.len() as GroupId);
            }
            self.list.push(Group { name, ranks });
        }
    }
}

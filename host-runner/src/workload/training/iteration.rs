//! The program of a rank: its passes, then the update of the parameters, as often as there are iterations.

use super::cost::{Costs, Half, Held, Layers, VALUE_BYTES, padded};
use super::parallelism::{GroupTable, Memberships, Place};
use super::schedule::{Direction, Pass, Passes};
use super::{Training, ZeroStage};
use crate::workload::task::{Call, CollectiveKind, Group, GroupId, Program, Rank, Task, TaskId, Work};
use std::collections::VecDeque;
use std::sync::Arc;
use wormhole_kernel::Span;

/// More tasks than a layer has in a pass, and than a pass and an update have beside their layers.
pub(super) const MAX_TASKS_A_LAYER: f64 = 16.0;

/// Tasks asked for ahead of time. They follow from each other, so more would only fill memory.
const LOOKAHEAD: usize = 16;

/// What all ranks of a job know.
pub(super) struct Facts {
    training: Training,
    passes: Passes,
    pub(super) costs: Costs,
    memberships: Vec<Memberships>,
}

impl Facts {
    pub(super) fn new(training: &Training) -> (Vec<Group>, Facts) {
        let GroupTable { list, of_rank } = GroupTable::new(training);
        let facts = Facts {
            training: training.clone(),
            passes: Passes::new(training.schedule, training.pp, training.micro_batches),
            costs: Costs::new(training),
            memberships: of_rank,
        };
        (list, facts)
    }

    /// Number of ranks.
    pub(super) fn ranks(&self) -> Rank {
        self.training.ranks()
    }
}

/// Replicas that hold copies of the same parameters, and the last task among them: as on a communicator, the next
/// one waits for it, so that all members begin them in the same order.
#[derive(Clone, Copy)]
struct Replicas {
    group: GroupId,
    size: u32,
    last: Option<TaskId>,
    held: fn(Held) -> u64,
}

/// See the module.
///
/// The tasks of a rank form a chain: receive, compute, receive and so on. Sends and, if they overlap, reductions of
/// gradients leave the chain to themselves.
#[derive(Clone)]
pub(super) struct Iterations {
    facts: Arc<Facts>,
    place: Place,
    groups: Memberships,
    /// Those of shared parameters and of experts.
    replicas: [Option<Replicas>; 2],
    /// Made, and not yet yielded: tasks of one piece of a pass at most.
    queue: VecDeque<Task>,
    /// Id of the next task made.
    next_id: TaskId,
    /// The end of the chain: what the next task of it comes after.
    tail: Vec<TaskId>,
    iteration: u32,
    /// Index of the pass within the iteration.
    pass: u32,
    /// Pieces of the pass that have been made.
    pieces_made: u32,
}

impl Iterations {
    pub(super) fn new(facts: Arc<Facts>, rank: Rank) -> Iterations {
        let training = &facts.training;
        let groups = facts.memberships[rank as usize];
        let replicas =
            |group: Option<GroupId>, size, held| group.map(|group| Replicas { group, size, last: None, held });
        Iterations {
            place: Place::of(training, rank),
            groups,
            replicas: [
                replicas(groups.data, training.dp, |held| held.shared),
                replicas(groups.expert_data, training.expert_replicas(), |held| held.experts),
            ],
            queue: VecDeque::new(),
            next_id: 0,
            tail: Vec::new(),
            iteration: 0,
            pass: 0,
            pieces_made: 0,
            facts,
        }
    }

    /// Makes the next few tasks.
    fn make(&mut self) {
        if self.pass == self.facts.passes.count() {
            self.update();
            self.pass = 0;
            self.iteration += 1;
            return;
        }
        let pass = self.facts.passes.pass(self.place.stage, self.pass);
        if self.pieces_made == 0 {
            self.begin(pass);
        }
        self.piece(pass);
        self.pieces_made += 1;
        if self.pieces_made == self.pieces(pass) {
            self.end(pass);
            self.pieces_made = 0;
            self.pass += 1;
        }
    }

    /// What a pass needs: parameters, and the result of the pass before it.
    fn begin(&mut self, pass: Pass) {
        let before = self.tail.clone();
        let mut needs = Vec::new();
        if self.facts.training.zero == ZeroStage::Three {
            let held = self.held(pass.chunk, &(0..self.facts.training.chunk_layers()));
            needs.extend(self.among_replicas(CollectiveKind::AllGather, held, VALUE_BYTES, &before));
        }
        if let Some(stage) = self.facts.passes.source(self.place.stage, pass) {
            let recv = Work::Recv { from: Some(self.peer(stage)), tag: Some(self.facts.passes.tag(pass)) };
            needs.push(self.push(recv, before));
        }
        if !needs.is_empty() {
            self.tail = needs;
        }
    }

    /// Hands the result of a pass on.
    fn end(&mut self, pass: Pass) {
        if let Some((stage, next)) = self.facts.passes.next(self.place.stage, pass) {
            let bytes = self.facts.training.pipeline_bytes();
            let send = Work::Send { to: self.peer(stage), bytes, tag: self.facts.passes.tag(next) };
            self.push(send, self.tail.clone());
        }
    }

    /// Into how many pieces a pass is cut: layers if something is sent within them, buckets if gradients are reduced.
    fn pieces(&self, pass: Pass) -> u32 {
        if self.is_layerwise() {
            self.facts.training.chunk_layers()
        } else if self.reduces(pass) {
            self.facts.training.buckets
        } else {
            1
        }
    }

    fn is_layerwise(&self) -> bool {
        self.groups.tensor.is_some() || self.groups.expert.is_some()
    }

    /// Whether gradients of a chunk are complete, and reduced, as its pass goes on.
    fn reduces(&self, pass: Pass) -> bool {
        let training = &self.facts.training;
        let last = pass.micro_batch + 1 == training.micro_batches;
        training.overlap && pass.direction == Direction::Backward && last
    }

    /// The next piece of a pass. Backward passes begin with the last layers.
    fn piece(&mut self, pass: Pass) {
        let facts = self.facts.clone();
        let (training, pieces) = (&facts.training, self.pieces(pass));
        let place = match pass.direction {
            Direction::Forward => self.pieces_made,
            Direction::Backward => pieces - 1 - self.pieces_made,
        };
        let layers = if self.is_layerwise() {
            place..place + 1
        } else if self.reduces(pass) {
            training.bucket(place)
        } else {
            0..training.chunk_layers()
        };
        let head = training.is_last(self.place.stage, pass.chunk) && layers.end == training.chunk_layers();
        if self.is_layerwise() {
            self.layer(pass.direction, head);
        } else {
            self.compute(facts.costs.layers(layers.end - layers.start, head, pass.direction));
        }
        if self.reduces(pass) {
            let ready = (0..training.buckets).map(|index| training.bucket(index)).find(|b| b.start == layers.start);
            if let Some(bucket) = ready {
                let after = self.tail.clone();
                self.reduce(self.held(pass.chunk, &bucket), &after);
            }
        }
    }

    /// A layer, with the output matrix after it if `head`.
    fn layer(&mut self, direction: Direction, head: bool) {
        let head = head.then(|| self.facts.costs.layers(0, true, direction));
        let (before, halves, after) = match direction {
            Direction::Forward => (None, [Half::Attention, Half::FeedForward], head),
            Direction::Backward => (head, [Half::FeedForward, Half::Attention], None),
        };
        before.into_iter().for_each(|time| self.compute(time));
        halves.into_iter().for_each(|half| self.half(half, direction));
        after.into_iter().for_each(|time| self.compute(time));
    }

    /// Half a layer. Tokens go to their experts and come back, forward and backward; within that, the tensor-parallel
    /// ranks exchange activations.
    fn half(&mut self, half: Half, direction: Direction) {
        let training = &self.facts.training;
        let experts = self.groups.expert.filter(|_| half == Half::FeedForward);
        let to_experts = experts.map(|group| (group, CollectiveKind::AllToAll, training.expert_bytes()));
        let bytes = training.tensor_bytes(half);
        let tensor = |kind| self.groups.tensor.map(|group| (group, kind, bytes));
        let (gather, reduce) = if training.sequence_parallel {
            (tensor(CollectiveKind::AllGather), tensor(CollectiveKind::ReduceScatter))
        } else {
            (None, tensor(CollectiveKind::AllReduce))
        };
        let time = self.facts.costs.half(half, direction);
        [to_experts, gather].into_iter().flatten().for_each(|call| self.call(call));
        self.compute(time);
        [reduce, to_experts].into_iter().flatten().for_each(|call| self.call(call));
    }

    /// Reduces what is left of the gradients, steps, and spreads the new parameters.
    fn update(&mut self) {
        let facts = self.facts.clone();
        let (training, held) = (&facts.training, facts.training.held_by(self.place.stage));
        if !training.overlap {
            let after = self.tail.clone();
            self.reduce(held, &after);
        }
        let reduced: Vec<TaskId> = self.replicas.iter().flatten().filter_map(|replicas| replicas.last).collect();
        self.tail.extend(reduced);
        if let Some(group) = self.groups.embedding {
            self.call((group, CollectiveKind::AllReduce, training.embedding_bytes()));
        }
        self.compute(training.optimiser_time(self.place.stage));
        if matches!(training.zero, ZeroStage::One | ZeroStage::Two) {
            let after = self.tail.clone();
            let gathers = self.among_replicas(CollectiveKind::AllGather, held, VALUE_BYTES, &after);
            if !gathers.is_empty() {
                self.tail = gathers;
            }
        }
    }

    fn reduce(&mut self, held: Held, after: &[TaskId]) {
        let kind = match self.facts.training.zero {
            ZeroStage::None => CollectiveKind::AllReduce,
            ZeroStage::One | ZeroStage::Two | ZeroStage::Three => CollectiveKind::ReduceScatter,
        };
        self.among_replicas(kind, held, u64::from(self.facts.training.gradient_bytes), after);
    }

    /// A collective of shared parameters and one of experts, where there are other replicas of them.
    fn among_replicas(&mut self, kind: CollectiveKind, held: Held, value_bytes: u64, after: &[TaskId]) -> Vec<TaskId> {
        let mut made = Vec::new();
        for index in 0..self.replicas.len() {
            let Some(replicas) = self.replicas[index] else { continue };
            let bytes = padded((replicas.held)(held), replicas.size) * value_bytes;
            let mut after = after.to_vec();
            after.extend(replicas.last.filter(|last| !after.contains(last)));
            let id = self.push(Work::Collective(Call { group: replicas.group, kind, bytes }), after);
            self.replicas[index] = Some(Replicas { last: Some(id), ..replicas });
            made.push(id);
        }
        made
    }

    fn held(&self, chunk: u32, layers: &Layers) -> Held {
        self.facts.training.held(self.place.stage, chunk, layers)
    }

    /// The rank of another stage with which this one exchanges activations.
    fn peer(&self, stage: u32) -> Rank {
        Place { stage, ..self.place }.rank(&self.facts.training)
    }

    fn compute(&mut self, time: Span) {
        self.chain(Work::Compute { time, processor: 0 });
    }

    fn call(&mut self, (group, kind, bytes): (GroupId, CollectiveKind, u64)) {
        self.chain(Work::Collective(Call { group, kind, bytes }));
    }

    /// Adds a task to the chain.
    fn chain(&mut self, work: Work) {
        let after = std::mem::take(&mut self.tail);
        let id = self.push(work, after);
        self.tail.push(id);
    }

    fn push(&mut self, work: Work, after: Vec<TaskId>) -> TaskId {
        self.queue.push_back(Task::new(work, after));
        self.next_id += 1;
        self.next_id - 1
    }
}

#[cfg(test)]
impl Iterations {
    /// How many tasks are made and not yet yielded.
    pub(super) fn made(&self) -> usize {
        self.queue.len()
    }
}

impl Program for Iterations {
    fn next(&mut self) -> Option<Task> {
        while self.queue.is_empty() && self.iteration < self.facts.training.iterations {
            self.make();
        }
        self.queue.pop_front()
    }

    /// Reductions wait for each other beside the chain, and must not hold it up.
    fn lookahead(&self) -> usize {
        let training = &self.facts.training;
        LOOKAHEAD + 2 * (training.buckets * training.schedule.chunks()) as usize
    }
}

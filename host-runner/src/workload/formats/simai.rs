//! Training iterations in the text form of SimAI and AICB, which is that of ASTRA-sim 1.0.
//!
//! The first line is the kind of parallelism and keys with numbers, with or without a colon: `model_parallel_NPU_group`
//! (tp), `ep` or `expert_parallel_npu_group`, `pp`, `ga`, `all_gpus`, `checkpoints`, `checkpoint_initiates`, `pp_comm`.
//! Then comes a number of rows, and these: a name, a dependency that is not used, for each of forward, input gradient
//! and weight gradient a compute time, a collective and its bytes, and at last an update time. Times are nanoseconds.
//! Bytes are the volume of the whole group, as in [`Call::bytes`].
//!
//! # Ranks
//! Tensor parallelism is the innermost dimension, then data, then pipeline: of `all_gpus` ranks, a stage has
//! `dp * tp` that follow each other, with `dp = all_gpus / (tp * pp)`. Expert parallelism divides the data dimension:
//! an `_EP` group is `ep` ranks that are `tp` apart, a `_DP_EP` group the `dp / ep` ranks at one place of those. The
//! first two collectives of a row are in the TP group, the third is in the DP group, unless a suffix says otherwise.
//! In a `MICRO` file all are among all ranks. A collective of a lone rank is none.
//!
//! # An iteration
//! `ga` micro-batches go forward over all rows and back; with `pp > 1`, all go forward and then all back (GPipe), the
//! rows are those of each stage, and `pp_comm` bytes go to the next stage after each forward, and to the previous one
//! after each backward. Computing and collectives wait for each other in order, except the collective of the weight
//! gradient, which the last micro-batch starts and nothing waits for until the end. Then all rows are updated.
//!
//! Where the backward comes to a row in `checkpoint_initiates`, those from the nearest checkpoint at or before it are
//! first computed forward again, up to that row and without it, each at most once for each micro-batch.

use super::{bare_time, number_of_ranks};
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use crate::input::rows::{Table, read_rows, warn_of_more_rows};
use crate::input::tokens::{Token, Tokens};
use crate::workload::task::{Call, CollectiveKind, Group, GroupId, Groups, Job, Program, Rank, Task, TaskId, Work};
use std::collections::VecDeque;
use std::mem;
use std::sync::Arc;
use wormhole_kernel::Span;

/// Collectives that may be under way before the next ones wait behind a joint of these: a program stays small.
const OPEN_AT_ONCE: usize = 64;

/// Kinds of parallelism.
const POLICIES: [&str; 4] = ["HYBRID_TRANSFORMER_FWD_IN_BCKWD", "HYBRID_TRANSFORMER", "DATA", "MICRO"];

/// Tag of what a stage sends to the next.
const FORWARD: u64 = 0;
/// Tag of what a stage sends to the previous.
const BACKWARD: u64 = 1;

/// Reads a workload; what is wrong goes to `found`. `None` if anything is. If it does not say how many ranks it has, as
/// `MICRO` files and old ones do not, it has `ranks`.
pub fn parse(text: &str, ranks: Option<u32>, found: &mut Diagnostics) -> Option<Job> {
    let mut tokens = Tokens::new(text);
    let header = Header::read(&mut tokens, ranks, found)?;
    let rows = rows(&header, &mut tokens, found);
    let shape = header.shape(found)?;
    check_length(&header, rows.len(), found);
    if found.has_errors() {
        // Rows may be missing, then, that checkpoints name.
        return None;
    }
    let recomputed = recomputed(&header, rows.len(), found);
    if found.has_errors() {
        return None;
    }
    let description = format!(
        "SimAI workload ({}): {}, {}: tp {}, dp {}, ep {}, pp {}, {}",
        header.policy.text,
        counted(rows.len(), "layer"),
        counted(shape.ranks() as usize, "rank"),
        shape.tp,
        shape.dp,
        shape.ep,
        shape.pp,
        counted(header.ga as usize, "micro-batch")
    );
    let plan = Arc::new(Plan { rows, recomputed, micro_batches: header.ga, pp_comm: header.pp_comm, pp: shape.pp });
    let (groups, members) = shape.groups(&plan.rows);
    let program = |(rank, groups)| Box::new(Iteration::of(rank, groups, shape, plan.clone())) as Box<dyn Program>;
    let programs = (0..).zip(members).map(program).collect();
    Some(Job { description, groups, programs })
}

/// Whether a word is a kind of parallelism, with which files of this format begin.
pub(super) fn is_policy(word: &str) -> bool {
    POLICIES.contains(&word)
}

/// The first line.
struct Header<'t> {
    policy: Token<'t>,
    tp: Option<u32>,
    ep: u32,
    pp: u32,
    ga: u32,
    ranks: Option<u32>,
    checkpoints: Vec<Token<'t>>,
    initiates: Vec<Token<'t>>,
    pp_comm: u64,
}

impl<'t> Header<'t> {
    /// `ranks` counts if the header has no number of ranks.
    fn read(tokens: &mut Tokens<'t>, ranks: Option<u32>, found: &mut Diagnostics) -> Option<Header<'t>> {
        let Some(line) = tokens.next_line() else {
            found.error(0, "", "the file is empty: it must begin with the kind of parallelism");
            return None;
        };
        // With or without a colon, and with or without a blank behind it.
        let pieces = line.iter().flat_map(|t| t.text.split(':').map(|text| Token { text, line: t.line }));
        let words: Vec<Token<'t>> = pieces.filter(|t| !t.text.is_empty()).collect();
        let policy = *words.first().unwrap_or(&line[0]);
        if !is_policy(policy.text) {
            found.error(policy.line, policy.text, format!("a workload begins with one of {}", POLICIES.join(", ")));
            return None;
        }
        // What is not hybrid has no tensor parallelism.
        let tp = (!policy.text.starts_with("HYBRID")).then_some(1);
        let (checkpoints, initiates) = (Vec::new(), Vec::new());
        let mut header = Header { policy, tp, ep: 1, pp: 1, ga: 1, ranks, checkpoints, initiates, pp_comm: 0 };
        let mut rest = &words[1.min(words.len())..];
        while let Some((key, after)) = rest.split_first() {
            let end = after.iter().position(is_key).unwrap_or(after.len());
            header.set(*key, &after[..end], found);
            rest = &after[end..];
        }
        Some(header)
    }

    fn is_micro(&self) -> bool {
        self.policy.text == "MICRO"
    }

    /// Takes over what is behind a key.
    fn set(&mut self, key: Token<'t>, values: &[Token<'t>], found: &mut Diagnostics) {
        let Some(value) = values.first() else {
            return found.warning(key.line, key.text, "the key has no value, and is left out");
        };
        let mut most = 1;
        match key.text {
            "model_parallel_NPU_group" => self.tp = number_of_ranks(value, found).or(self.tp),
            "ep" | "expert_parallel_npu_group" => self.ep = number_of_ranks(value, found).unwrap_or(1),
            "pp" => self.pp = number_of_ranks(value, found).unwrap_or(1),
            "all_gpus" => self.ranks = number_of_ranks(value, found).or(self.ranks),
            "ga" => self.ga = value.number("ga", found).unwrap_or(1).max(1),
            "pp_comm" => self.pp_comm = value.number("pp_comm", found).unwrap_or(0),
            "vpp" => {
                if value.number::<u32>("vpp", found).is_some_and(|vpp| vpp > 1) {
                    found.warning(value.line, value.text, "virtual stages are not interleaved: vpp is taken for 1");
                }
            }
            "checkpoints" | "checkpoint_initiates" => {
                most = values.len();
                let list = listed_rows(values, found);
                if key.text == "checkpoints" { self.checkpoints = list } else { self.initiates = list }
            }
            _ => {
                most = values.len();
                found.warning(key.line, key.text, "no such key is known, and it is left out");
            }
        }
        if let Some(extra) = values.get(most) {
            found.error(extra.line, extra.text, format!("{} has one value", key.text));
        }
    }

    /// The dimensions, if they fit each other.
    fn shape(&self, found: &mut Diagnostics) -> Option<Shape> {
        let line = self.policy.line;
        if self.ranks.is_none() {
            found.error(line, "", "all_gpus is missing: nothing says how many ranks there are");
        }
        if self.tp.is_none() {
            found.error(line, "", "model_parallel_NPU_group is missing");
        }
        let (ranks, tp, ep, pp) = (self.ranks?, self.tp?, self.ep, self.pp);
        let stage = u64::from(tp) * u64::from(pp);
        if u64::from(ranks) % stage != 0 {
            let message = format!("all_gpus {ranks} is no multiple of tp * pp = {tp} * {pp}");
            found.error(line, "", message);
            return None;
        }
        // It divides a u32 that is not 0.
        let dp = ranks / stage as u32;
        if !dp.is_multiple_of(ep) {
            found.error(line, "", format!("dp = all_gpus / (tp * pp) = {dp} is no multiple of ep = {ep}"));
            return None;
        }
        if pp > 1 && self.pp_comm == 0 {
            found.warning(line, "", "without pp_comm, the stages of the pipeline do not wait for each other");
        }
        Some(Shape { tp, dp, ep, pp, is_micro: self.is_micro() })
    }
}

/// A word that is a key, rather than one of the values of the key before.
fn is_key(word: &Token<'_>) -> bool {
    word.text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// `2 0 1`: a count, and so many rows.
fn listed_rows<'t>(values: &[Token<'t>], found: &mut Diagnostics) -> Vec<Token<'t>> {
    let (count, rows) = (values[0], &values[1..]);
    if let Some(declared) = count.number::<usize>("the number of checkpoints", found)
        && declared != rows.len()
    {
        found.error(count.line, count.text, format!("{declared} declared, {} found", rows.len()));
    }
    rows.to_vec()
}

/// What a rank does over and over.
struct Row {
    forward: Part,
    input_gradient: Part,
    weight_gradient: Part,
    update: Span,
}

/// A third of a row.
struct Part {
    compute: Span,
    /// `None`: nothing is sent.
    collective: Option<Collective>,
}

#[derive(Clone, Copy)]
struct Collective {
    kind: CollectiveKind,
    set: Set,
    bytes: u64,
}

/// Which ranks do a collective together.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Set {
    Tp,
    Dp,
    Ep,
    DpEp,
}

impl Set {
    const ALL: [Set; 4] = [Set::Tp, Set::Dp, Set::Ep, Set::DpEp];

    fn name(self) -> &'static str {
        match self {
            Set::Tp => "tp",
            Set::Dp => "dp",
            Set::Ep => "ep",
            Set::DpEp => "dp_ep",
        }
    }
}

/// The rows behind the header, with their number.
fn rows(header: &Header<'_>, tokens: &mut Tokens<'_>, found: &mut Diagnostics) -> Vec<Row> {
    let Some(count) = tokens.next() else {
        found.error(header.policy.line, "", "the number of layers is missing behind the first line");
        return Vec::new();
    };
    let Some(declared) = count.number::<usize>("the number of layers", found) else { return Vec::new() };
    if declared == 0 {
        found.error(count.line, count.text, "there are no layers");
    }
    let fields = "name dependency, then three times time collective bytes, then update";
    let table = Table { noun: "layer", fields, declared, header: count };
    let tp = if header.is_micro() { Set::Dp } else { Set::Tp };
    let rows = read_rows(&table, tokens, found, |_, fields, found| row(fields, tp, found));
    warn_of_more_rows(&table, tokens.clone(), found, |line| line.len() == 12 && line[2].is_digits());
    rows
}

/// The first two collectives are in the set `tp`.
fn row(fields: &[Token<'_>; 12], tp: Set, found: &mut Diagnostics) -> Option<Row> {
    let [_, dependency, rest @ .., update] = fields;
    dependency.number::<i64>("a dependency", found);
    let forward = part(&rest[..3], tp, found);
    let input_gradient = part(&rest[3..6], tp, found);
    let weight_gradient = part(&rest[6..], Set::Dp, found);
    let update = bare_time(update, "ns", found);
    Some(Row { forward: forward?, input_gradient: input_gradient?, weight_gradient: weight_gradient?, update: update? })
}

fn part(fields: &[Token<'_>], set: Set, found: &mut Diagnostics) -> Option<Part> {
    let compute = bare_time(&fields[0], "ns", found);
    let collective = collective(&fields[1], &fields[2], set, found);
    Some(Part { compute: compute?, collective: collective? })
}

/// A collective, in this set of ranks if its name does not say otherwise; `None` of the inner kind if nothing is sent.
fn collective(name: &Token<'_>, size: &Token<'_>, set: Set, found: &mut Diagnostics) -> Option<Option<Collective>> {
    let bytes = size.number::<u64>("bytes", found);
    if name.text == "NONE" {
        if bytes.is_some_and(|bytes| bytes > 0) {
            found.warning(size.line, size.text, "NONE has a size: it is taken for 0 bytes");
        }
        return bytes.map(|_| None);
    }
    let (verb, set) = match name.text.strip_suffix("_EP") {
        Some(verb) => verb.strip_suffix("_DP").map_or((verb, Set::Ep), |verb| (verb, Set::DpEp)),
        None => (name.text, set),
    };
    let kind = match verb {
        "ALLREDUCE" => Some(CollectiveKind::AllReduce),
        "ALLGATHER" => Some(CollectiveKind::AllGather),
        "REDUCESCATTER" => Some(CollectiveKind::ReduceScatter),
        "ALLTOALL" => Some(CollectiveKind::AllToAll),
        "BROADCAST" => Some(CollectiveKind::Broadcast),
        _ => None,
    };
    if kind.is_none() {
        let known = "NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST, these also with _EP or _DP_EP";
        found.error(name.line, name.text, format!("unknown collective; known are {known}"));
    }
    let (kind, bytes) = (kind?, bytes?);
    Some((bytes > 0).then_some(Collective { kind, set, bytes }))
}

/// For each row, the checkpoint from which rows up to it are computed again when the backward comes to it.
fn recomputed(header: &Header<'_>, rows: usize, found: &mut Diagnostics) -> Vec<Option<usize>> {
    let mut checkpoints = row_numbers(&header.checkpoints, rows, found);
    let mut initiates = row_numbers(&header.initiates, rows, found);
    checkpoints.sort_unstable_by_key(|(row, _)| *row);
    initiates.sort_unstable_by_key(|(row, _)| *row);
    let mut recomputed = vec![None; rows];
    let mut last = None;
    for (row, token) in initiates.into_iter().rev() {
        let before = checkpoints.partition_point(|(checkpoint, _)| *checkpoint <= row);
        let Some((checkpoint, _)) = checkpoints[..before].last() else {
            found.error(token.line, token.text, "no checkpoint lies at or before this layer");
            continue;
        };
        // The backward comes to later rows first: what they have computed again from the same checkpoint, is.
        if last != Some(*checkpoint) {
            recomputed[row] = Some(*checkpoint);
            last = Some(*checkpoint);
        }
    }
    recomputed
}

/// Tokens that name rows, each with its row.
fn row_numbers<'t>(tokens: &[Token<'t>], rows: usize, found: &mut Diagnostics) -> Vec<(usize, Token<'t>)> {
    let message = || format!("no such layer: there are 0 to {}", rows.saturating_sub(1));
    let parse = |text: &str| text.parse().ok().filter(|row| *row < rows).ok_or_else(message);
    tokens.iter().filter_map(|t| Some((t.parse(parse, found)?, *t))).collect()
}

/// Tasks of a program are numbered in 32 bits.
fn check_length(header: &Header<'_>, rows: usize, found: &mut Diagnostics) {
    // Forward, the same again, and backward with a joint: two, two and five; and messages of the pipeline.
    let tasks_at_most = (rows as u64 * 9 + 8).checked_mul(header.ga.into());
    if tasks_at_most.is_none_or(|tasks| tasks >= u64::from(TaskId::MAX)) {
        let message = format!("{} of so many layers are too many", counted(header.ga as usize, "micro-batch"));
        found.error(header.policy.line, "", message);
    }
}

/// How ranks are divided.
#[derive(Clone, Copy)]
struct Shape {
    tp: u32,
    dp: u32,
    ep: u32,
    pp: u32,
    is_micro: bool,
}

impl Shape {
    fn ranks(self) -> u32 {
        self.stage() * self.pp
    }

    /// Ranks of a stage of the pipeline.
    fn stage(self) -> u32 {
        self.tp * self.dp
    }

    /// Which group of a set a rank is in.
    fn group(self, set: Set, rank: Rank) -> u32 {
        let Shape { tp, dp, ep, .. } = self;
        let (stage, in_stage) = (rank / self.stage(), rank % self.stage());
        let (d, t) = (in_stage / tp, in_stage % tp);
        match set {
            Set::Tp => stage * dp + d,
            Set::Dp => stage * tp + t,
            Set::Ep => (stage * (dp / ep) + d / ep) * tp + t,
            Set::DpEp => (stage * ep + d % ep) * tp + t,
        }
    }

    /// The groups that rows use, and those of each rank, by [`Set`]. There are none of one rank.
    fn groups(self, rows: &[Row]) -> (Vec<Group>, Vec<RankGroups>) {
        let mut groups = Groups::default();
        let mut of_ranks = vec![RankGroups::default(); self.ranks() as usize];
        for set in Set::ALL.into_iter().filter(|set| rows.iter().any(|row| row.uses(*set))) {
            let mut members: Vec<Vec<Rank>> = Vec::new();
            for rank in 0..self.ranks() {
                let group = self.group(set, rank) as usize;
                members.resize_with(members.len().max(group + 1), Vec::new);
                members[group].push(rank);
            }
            for (number, ranks) in members.into_iter().enumerate().filter(|(_, ranks)| ranks.len() > 1) {
                let name = || if self.is_micro { "all".into() } else { format!("{} {number}", set.name()) };
                let id = groups.of(ranks.clone(), name);
                ranks.iter().for_each(|rank| of_ranks[*rank as usize][set as usize] = Some(id));
            }
        }
        (groups.into_list(), of_ranks)
    }
}

/// The groups of a rank, by [`Set`]; `None` where it is alone, or nobody asks.
type RankGroups = [Option<GroupId>; Set::ALL.len()];

impl Row {
    fn uses(&self, set: Set) -> bool {
        let parts = [&self.forward, &self.input_gradient, &self.weight_gradient];
        parts.iter().any(|part| part.collective.is_some_and(|c| c.set == set))
    }
}

/// What all ranks of a job share.
struct Plan {
    /// At least one.
    rows: Vec<Row>,
    /// By row, the checkpoint from which rows are computed again before its backward.
    recomputed: Vec<Option<usize>>,
    micro_batches: u32,
    /// Bytes between stages; 0: none are sent.
    pp_comm: u64,
    /// Stages.
    pp: u32,
}

impl Plan {
    fn last_row(&self) -> usize {
        self.rows.len() - 1
    }

    /// The first step of the backward over a row.
    fn backward(&self, row: usize) -> Step {
        match self.recomputed[row] {
            Some(from) if from < row => Step::Recompute { row: from, until: row },
            _ => Step::Backward { row },
        }
    }

    fn update(&self) -> Span {
        Span(self.rows.iter().fold(0, |sum, row| sum.saturating_add(row.update.0)))
    }
}

/// Where an iteration is: what is done next.
#[derive(Clone, Copy)]
enum Step {
    Forward { row: usize },
    Recompute { row: usize, until: usize },
    Backward { row: usize },
    Update,
    Done,
}

/// The iteration of one rank: makes its tasks as it is asked for them.
#[derive(Clone)]
struct Iteration {
    plan: Arc<Plan>,
    groups: RankGroups,
    /// Its like in the stage before.
    previous: Option<Rank>,
    /// Its like in the next stage.
    following: Option<Rank>,
    step: Step,
    micro_batch: u32,
    /// Tasks of steps that are behind, which are not yielded yet.
    made: VecDeque<Task>,
    /// How many tasks were made.
    count: TaskId,
    /// The last one of those that wait for each other.
    last: Option<TaskId>,
    /// Others that only the end waits for.
    open: Vec<TaskId>,
}

impl Iteration {
    fn of(rank: Rank, groups: RankGroups, shape: Shape, plan: Arc<Plan>) -> Iteration {
        let talks = plan.pp_comm > 0;
        Iteration {
            previous: rank.checked_sub(shape.stage()).filter(|_| talks),
            following: Some(rank + shape.stage()).filter(|rank| talks && *rank < shape.ranks()),
            plan,
            groups,
            step: Step::Forward { row: 0 },
            micro_batch: 0,
            made: VecDeque::new(),
            count: 0,
            last: None,
            open: Vec::new(),
        }
    }

    /// Makes the tasks of a step; returns the next one.
    fn take_step(&mut self) -> Step {
        let plan = self.plan.clone();
        match self.step {
            Step::Forward { row } => {
                if row == 0 {
                    self.receive(self.previous, FORWARD);
                }
                self.do_part(&plan.rows[row].forward);
                if row < plan.last_row() {
                    return Step::Forward { row: row + 1 };
                }
                self.send(self.following, FORWARD);
                self.after_forward(&plan)
            }
            Step::Recompute { row, until } => {
                self.do_part(&plan.rows[row].forward);
                if row + 1 < until { Step::Recompute { row: row + 1, until } } else { Step::Backward { row: until } }
            }
            Step::Backward { row } => {
                if row == plan.last_row() {
                    self.receive(self.following, BACKWARD);
                }
                self.do_backward(&plan, row);
                if row > 0 {
                    return plan.backward(row - 1);
                }
                self.send(self.previous, BACKWARD);
                self.after_backward(&plan)
            }
            Step::Update => {
                self.update(plan.update());
                Step::Done
            }
            Step::Done => Step::Done,
        }
    }

    fn after_forward(&mut self, plan: &Plan) -> Step {
        if plan.pp > 1 {
            self.micro_batch += 1;
            if self.micro_batch < plan.micro_batches {
                return Step::Forward { row: 0 };
            }
            self.micro_batch = 0;
        }
        plan.backward(plan.last_row())
    }

    fn after_backward(&mut self, plan: &Plan) -> Step {
        self.micro_batch += 1;
        if self.micro_batch == plan.micro_batches {
            Step::Update
        } else if plan.pp > 1 {
            plan.backward(plan.last_row())
        } else {
            Step::Forward { row: 0 }
        }
    }

    /// Input gradient, then weight gradient, whose sum over ranks is made once, of all micro-batches.
    fn do_backward(&mut self, plan: &Plan, row: usize) {
        self.do_part(&plan.rows[row].input_gradient);
        let weight = &plan.rows[row].weight_gradient;
        self.compute(weight.compute);
        if self.micro_batch + 1 == plan.micro_batches
            && let Some(work) = self.work_of(weight.collective)
        {
            let sum = self.make(work);
            self.leave_open(sum);
        }
    }

    /// Computes, then does the collective and waits for it.
    fn do_part(&mut self, part: &Part) {
        self.compute(part.compute);
        if let Some(work) = self.work_of(part.collective) {
            self.last = Some(self.make(work));
        }
    }

    fn compute(&mut self, time: Span) {
        if time > Span::ZERO {
            self.last = Some(self.make(Work::Compute { time, processor: 0 }));
        }
    }

    fn work_of(&self, collective: Option<Collective>) -> Option<Work> {
        let Collective { kind, set, bytes } = collective?;
        let group = self.groups[set as usize]?;
        Some(Work::Collective(Call { group, kind, bytes }))
    }

    fn receive(&mut self, from: Option<Rank>, tag: u64) {
        if from.is_some() {
            self.last = Some(self.make(Work::Recv { from, tag: Some(tag) }));
        }
    }

    fn send(&mut self, to: Option<Rank>, tag: u64) {
        if let Some(to) = to {
            let message = self.make(Work::Send { to, bytes: self.plan.pp_comm, tag });
            self.leave_open(message);
        }
    }

    fn update(&mut self, time: Span) {
        if !self.open.is_empty() {
            self.open.extend(self.last);
            self.last = Some(self.join());
        }
        self.compute(time);
    }

    fn leave_open(&mut self, task: TaskId) {
        self.open.push(task);
        if self.open.len() == OPEN_AT_ONCE {
            let joint = self.join();
            self.open.push(joint);
        }
    }

    /// A task that ends when all open ones have.
    fn join(&mut self) -> TaskId {
        let after = mem::take(&mut self.open);
        self.push(Task::new(Work::Nothing, after))
    }

    /// A task behind the last one.
    fn make(&mut self, work: Work) -> TaskId {
        self.push(Task::new(work, self.last.into_iter().collect()))
    }

    fn push(&mut self, task: Task) -> TaskId {
        self.made.push_back(task);
        self.count += 1;
        self.count - 1
    }
}

impl Program for Iteration {
    fn next(&mut self) -> Option<Task> {
        while self.made.is_empty() && !matches!(self.step, Step::Done) {
            self.step = self.take_step();
        }
        self.made.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use super::*;
    use crate::input::mistreat;

    const OK: &str = include_str!("../../../../tests/data/cases/c33_workload_quirks/ok.txt");
    const PP_COMM: &str = include_str!("../../../../tests/data/cases/c33_workload_quirks/pp_comm_big.txt");

    fn read(text: &str) -> (Option<Job>, Vec<String>) {
        let mut found = Diagnostics::of("f");
        let job = parse(text, None, &mut found);
        (job, lines(&found))
    }

    fn good(text: &str) -> Job {
        let (job, found) = read(text);
        assert!(found.is_empty(), "{found:?}");
        job.unwrap()
    }

    fn faults(text: &str) -> Vec<String> {
        let (job, found) = read(text);
        assert!(job.is_none(), "{text}");
        found
    }

    /// A file of one row, `keys` and the row's fields behind its name and dependency.
    fn one_row(keys: &str, fields: &str) -> String {
        format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD {keys}\n1\nmlp -1 {fields}\n")
    }

    /// Tasks in short: `c5` computes 5 ns, `g0 AllReduce 7` is a collective of group 0; then those it waits for.
    fn short(tasks: &[Task]) -> Vec<String> {
        let work = |work: &Work| match work {
            Work::Nothing => "join".into(),
            Work::Compute { time, .. } => format!("c{}", time.as_ns()),
            Work::Collective(call) => format!("g{} {:?} {}", call.group, call.kind, call.bytes),
            Work::Send { to, bytes, tag } => format!("send {to} {bytes} {tag}"),
            Work::Recv { from, tag } => format!("recv {} {}", from.unwrap(), tag.unwrap()),
            other => format!("{other:?}"),
        };
        tasks.iter().map(|t| format!("{} {:?}", work(&t.work), t.after)).collect()
    }

    #[test]
    fn an_iteration_is_forward_backward_update() {
        let job = good(OK);
        let want = "SimAI workload (HYBRID_TRANSFORMER_FWD_IN_BCKWD): 2 layers, 4 ranks: tp 2, dp 2, ep 1, pp 1, \
            1 micro-batch";
        assert_eq!(job.description, want);
        let groups: Vec<(&str, &[Rank])> = job.groups.iter().map(|g| (g.name.as_str(), &g.ranks[..])).collect();
        let want: [(&str, &[Rank]); 4] = [("tp 0", &[0, 1]), ("tp 1", &[2, 3]), ("dp 0", &[0, 2]), ("dp 1", &[1, 3])];
        assert_eq!(groups, want);
        let tasks = run(job);
        let want = [
            "c1000 []",
            "g0 AllReduce 65536 [0]",
            "c2000 [1]",
            "g0 AllGather 65536 [2]",
            "c2000 [3]",
            "g0 ReduceScatter 65536 [4]",
            "c900 [5]",
            "g2 AllReduce 131072 [6]",
            "c1000 [6]",
            "g0 AllReduce 65536 [8]",
            "c500 [9]",
            "join [7, 10]",
            "c200 [11]",
        ];
        assert_eq!(short(&tasks[0]), want);
        assert_eq!(short(&tasks[3])[7], "g3 AllReduce 131072 [6]");
    }

    #[test]
    fn quirks_of_the_case() {
        let read_case = |name: &str| {
            let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../tests/data/cases/c33_workload_quirks");
            read(&std::fs::read_to_string(format!("{folder}/{name}.txt")).unwrap())
        };
        assert_eq!(read_case("short_count").1, ["f:2: error: 839 layers declared, 2 found (found `839`)"]);
        let (job, found) = read_case("none_with_size");
        assert_eq!(found, ["f:3: warning: NONE has a size: it is taken for 0 bytes (found `33554432`)"]);
        assert!(run(job.unwrap())[0].iter().all(|t| !matches!(t.work, Work::Collective(_))));
        let unknown = "unknown collective; known are NONE, ALLREDUCE, ALLGATHER, REDUCESCATTER, ALLTOALL, BROADCAST, \
            these also with _EP or _DP_EP";
        for (case, token) in [("unknown_type", "ALLTOALLV_EP"), ("allreducealltoall", "ALLREDUCEALLTOALL")] {
            let (job, found) = read_case(case);
            assert!(job.is_none());
            assert_eq!(found, [format!("f:3: error: {unknown} (found `{token}`)")]);
        }
        let (job, found) = read_case("tiny_optimizer");
        assert!(found.is_empty());
        assert!(short(&run(job.unwrap())[0]).contains(&"g0 AllReduce 4 [4]".to_owned()));
    }

    #[test]
    fn stages_pass_on_what_needs_64_bits() {
        for text in [PP_COMM.to_owned(), PP_COMM.replace("pp_comm", "pp_comm:")] {
            let tasks = run(good(&text));
            assert_eq!(tasks.len(), 4);
            let messages = |rank: usize| -> Vec<String> {
                let all = short(&tasks[rank]);
                all.into_iter().filter(|t| t.starts_with("send") || t.starts_with("recv")).collect()
            };
            assert_eq!(messages(1), ["send 3 3000000000 0 [3]", "recv 3 1 [3]"]);
            assert_eq!(messages(3), ["recv 1 0 []", "send 1 3000000000 1 [10]"]);
        }
        let header = |text: &str| {
            let mut tokens = Tokens::new(text);
            Header::read(&mut tokens, None, &mut Diagnostics::of("f")).unwrap().checkpoints.len()
        };
        assert_eq!(header(PP_COMM), 2);
    }

    #[test]
    fn a_tensor_group_may_be_wider_than_a_server() {
        let job = good(include_str!("../../../../tests/data/cases/c34_tp_wider_than_node/workload.txt"));
        assert_eq!(job.ranks(), 64);
        assert_eq!(job.groups[3].ranks, (48..64).collect::<Vec<_>>());
        assert_eq!(job.groups[4].ranks, [0, 16, 32, 48]);
    }

    #[test]
    fn experts_divide_the_data_dimension() {
        let keys = "model_parallel_NPU_group: 2 ep: 2 pp: 2 all_gpus: 16 pp_comm: 1";
        let job = good(&one_row(keys, "0 ALLTOALL_EP 8 0 BROADCAST 8 0 ALLGATHER_DP_EP 8 0"));
        let group = |name: &str| job.groups.iter().find(|g| g.name == name).unwrap().ranks.clone();
        assert_eq!([group("tp 0"), group("tp 7")], [[0, 1], [14, 15]]);
        assert_eq!([group("ep 0"), group("ep 1"), group("ep 2"), group("ep 7")], [[0, 2], [1, 3], [4, 6], [13, 15]]);
        assert_eq!([group("dp_ep 0"), group("dp_ep 1"), group("dp_ep 2")], [[0, 4], [1, 5], [2, 6]]);
        assert!(job.groups.iter().all(|g| !g.name.starts_with("dp ")), "nobody asks for it");
    }

    #[test]
    fn micro_batches_sum_their_gradients_once() {
        let fields = "1 NONE 0 2 NONE 0 3 ALLREDUCE 8 4";
        let flat = run(good(&one_row("model_parallel_NPU_group: 1 ga: 2 all_gpus: 2", fields)));
        let want =
            ["c1 []", "c2 [0]", "c3 [1]", "c1 [2]", "c2 [3]", "c3 [4]", "g0 AllReduce 8 [5]", "join [6, 5]", "c4 [7]"];
        assert_eq!(short(&flat[1]), want);
        let keys = "model_parallel_NPU_group: 1 ga: 2 all_gpus: 4 pp: 2 pp_comm: 9";
        let piped = run(good(&one_row(keys, fields)));
        let want = [
            "c1 []",
            "send 2 9 0 [0]",
            "c1 [0]",
            "send 2 9 0 [2]",
            "recv 2 1 [2]",
            "c2 [4]",
            "c3 [5]",
            "recv 2 1 [6]",
            "c2 [7]",
            "c3 [8]",
            "g0 AllReduce 8 [9]",
            "join [1, 3, 10, 9]",
            "c4 [11]",
        ];
        assert_eq!(short(&piped[0]), want);
    }

    #[test]
    fn checkpoints_are_computed_again() {
        let text = |keys: &str| {
            let rows = (1..=4).map(|n| format!("l -1 {n} NONE 0 {n}0 NONE 0 0 NONE 0 0\n")).collect::<String>();
            format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 1 all_gpus: 1 {keys}\n4\n{rows}")
        };
        let times = |keys: &str| -> Vec<u64> {
            let tasks = run(good(&text(keys)));
            let time = |t: &Task| if let Work::Compute { time, .. } = t.work { time.as_ns() } else { 0 };
            tasks[0].iter().map(time).collect()
        };
        assert_eq!(times("checkpoints: 2 0 2 checkpoint_initiates: 0"), [1, 2, 3, 4, 40, 30, 20, 10]);
        let again = [1, 2, 3, 4, 3, 40, 30, 1, 20, 10];
        assert_eq!(times("checkpoints: 2 0 2 checkpoint_initiates: 2 3 1"), again);
        assert_eq!(times("checkpoints: 1 1 checkpoint_initiates: 2 3 2"), [1, 2, 3, 4, 2, 3, 40, 30, 20, 10]);
        let want = [
            "f:1: error: 3 declared, 1 found (found `3`)",
            "f:1: error: no such layer: there are 0 to 3 (found `9`)",
            "f:1: error: no checkpoint lies at or before this layer (found `1`)",
        ];
        assert_eq!(faults(&text("checkpoints: 3 9 checkpoint_initiates: 1 1")), want[..1]);
        assert_eq!(faults(&text("checkpoints: 1 9 checkpoint_initiates: 1 1")), want[1..]);
    }

    #[test]
    fn old_headers_are_read() {
        let rows = "1\nmlp\t-1\t1\tNONE\t0\t1\tNONE\t0\t1\tALLREDUCE\t64\t1\n";
        let tabs = format!(
            "HYBRID_TRANSFORMER_FWD_IN_BCKWD\tmodel_parallel_NPU_group: 2 \t \
            expert_parallel_npu_group:1 all_gpus:4 checkpoints: 0 checkpoint_initiates: 0\n{rows}"
        );
        assert_eq!(good(&tabs).ranks(), 4);
        let without = format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD model_parallel_NPU_group: 2 checkpoints: 0\n{rows}");
        assert_eq!(faults(&without), ["f:1: error: all_gpus is missing: nothing says how many ranks there are"]);
        let mut found = Diagnostics::of("f");
        assert_eq!(parse(&without, Some(8), &mut found).unwrap().ranks(), 8);
        let micro = parse(&format!("MICRO\n{rows}"), Some(8), &mut found).unwrap();
        assert_eq!((micro.groups.len(), micro.groups[0].name.as_str(), micro.groups[0].ranks.len()), (1, "all", 8));
        assert!(found.all().is_empty());
        let lacking = tabs.replace("checkpoints: 0 checkpoint_initiates: 0", "checkpoints: vpp 2 hello 3 pp_comm");
        let (job, found) = read(&lacking);
        assert!(job.is_some());
        let want = [
            "f:1: warning: the key has no value, and is left out (found `checkpoints`)",
            "f:1: warning: virtual stages are not interleaved: vpp is taken for 1 (found `2`)",
            "f:1: warning: no such key is known, and it is left out (found `hello`)",
            "f:1: warning: the key has no value, and is left out (found `pp_comm`)",
        ];
        assert_eq!(found, want);
    }

    #[test]
    fn every_fault_is_named() {
        let row = "1 NONE 0 1 NONE 0 1 NONE 0 1";
        let message = |keys: &str| faults(&one_row(keys, row)).join("; ");
        let group = "model_parallel_NPU_group";
        assert_eq!(
            message(&format!("{group}: 3 all_gpus: 4")),
            "f:1: error: all_gpus 4 is no multiple of tp * pp = 3 * 1"
        );
        let want = "f:1: error: dp = all_gpus / (tp * pp) = 2 is no multiple of ep = 3";
        assert_eq!(message(&format!("{group}: 2 ep: 3 all_gpus: 4")), want);
        assert_eq!(message("all_gpus: 4"), "f:1: error: model_parallel_NPU_group is missing");
        let want = "f:1: error: expected 1 to 1048576 ranks (found `0`)";
        assert_eq!(message(&format!("{group}: 1 all_gpus: 4 pp: 0")), want);
        assert_eq!(
            message(&format!("{group}: 1 1 all_gpus: 4")),
            format!("f:1: error: {group} has one value (found `1`)")
        );
        let want = "f:1: error: 4294967295 micro-batches of so many layers are too many";
        assert_eq!(message(&format!("{group}: 1 all_gpus: 4 ga: 4294967295")), want);
        assert!(faults("")[0].contains("empty"));
        assert!(faults("::\n1")[0].starts_with("f:1: error: a workload begins with one of HYBRID"));
        let keys = format!("HYBRID_TRANSFORMER {group}: 1 all_gpus: 1");
        assert!(faults(&keys)[0].starts_with("f:1: error: the number of layers is missing"));
        assert_eq!(faults(&format!("{keys}\n0\n")), ["f:2: error: there are no layers (found `0`)"]);
        let want = [
            "f:3: error: a dependency must be a whole number (found `x`)",
            "f:3: error: must not be negative (found `-1`)",
            "f:3: error: bytes must be a whole number (found `1e9`)",
            "f:3: error: too large (found `99999999999999999`)",
        ];
        assert_eq!(faults(&format!("{keys}\n1\nl x -1 NONE 0 1 ALLREDUCE 1e9 1 NONE 0 99999999999999999\n")), want);
    }

    #[test]
    fn a_pipeline_without_messages_is_warned_of() {
        let (job, found) =
            read(&one_row("model_parallel_NPU_group: 1 all_gpus: 2 pp: 2", "1 NONE 0 1 NONE 0 1 NONE 0 1"));
        assert!(job.is_some());
        assert_eq!(found, ["f:1: warning: without pp_comm, the stages of the pipeline do not wait for each other"]);
    }

    #[test]
    fn a_long_iteration_is_made_as_it_is_asked_for() {
        let row = "layer -1 2000 ALLGATHER 65536 2000 REDUCESCATTER 65536 900 ALLREDUCE 38654705664 100\n";
        let keys = "model_parallel_NPU_group: 8 pp: 2 ga: 1000000 all_gpus: 9216 pp_comm: 65536";
        let text = format!("HYBRID_TRANSFORMER_FWD_IN_BCKWD {keys}\n400\n{}", row.repeat(400));
        let mut job = good(&text);
        assert_eq!(job.ranks(), 9_216);
        let program = &mut job.programs[5_000];
        let mut longest = 0;
        for number in 0..100_000 {
            let task = program.next().unwrap();
            assert!(task.after.iter().all(|id| *id < number));
            longest = longest.max(task.after.len());
        }
        assert!(longest <= OPEN_AT_ONCE);
    }

    #[test]
    fn no_text_is_too_broken() {
        mistreat(PP_COMM, |text| {
            if let (Some(job), _) = read(text) {
                job.programs.into_iter().for_each(|mut program| {
                    (0..100).try_for_each(|_| program.next().map(|_| ()));
                });
            }
        });
    }
}

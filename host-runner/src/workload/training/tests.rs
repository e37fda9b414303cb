//! Whole jobs: what their programs yield, and how long they take where nothing takes time but computing.

use super::iteration::Facts;
use super::*;
use crate::workload::task::{Call, CollectiveKind, Group, GroupId, Rank, Task, TaskId, Work};
use std::collections::{BTreeMap, HashMap, VecDeque};

fn model(name: &str) -> ModelShape {
    ModelShape::find(name).expect(name)
}

/// 13B on 128 GPUs.
fn gpt() -> Training {
    Training { tp: 8, pp: 2, dp: 8, micro_batches: 2, ..Training::new(model("13b")) }
}

/// 8x7B on 64 GPUs.
fn moe() -> Training {
    Training { tp: 2, pp: 2, dp: 16, ep: 8, micro_batches: 2, ..Training::new(model("8x7b")) }
}

const INTERLEAVED: Schedule = Schedule::Interleaved { virtual_stages: 2 };

fn drain(mut program: Box<dyn Program>) -> Vec<Task> {
    std::iter::from_fn(move || program.next()).collect()
}

fn tasks(programs: Vec<Box<dyn Program>>) -> Vec<Vec<Task>> {
    programs.into_iter().map(drain).collect()
}

/// What the collectives of a rank are: purpose of the group, kind, bytes; and how many there are.
fn collectives(training: &Training, rank: Rank) -> BTreeMap<(String, CollectiveKind, u64), u32> {
    training.validate().expect("a valid configuration");
    let Job { groups, mut programs, .. } = training.job();
    let mut counts = BTreeMap::new();
    for task in drain(programs.swap_remove(rank as usize)) {
        if let Work::Collective(Call { group, kind, bytes }) = task.work {
            let purpose = groups[group as usize].name.split(' ').next().unwrap_or_default();
            *counts.entry((purpose.to_string(), kind, bytes)).or_default() += 1;
        }
    }
    counts
}

/// Lists of purpose, kind, bytes and count, as [`collectives`] gives them.
fn expected(list: &[(&str, CollectiveKind, u64, u32)]) -> BTreeMap<(String, CollectiveKind, u64), u32> {
    list.iter().map(|&(purpose, kind, bytes, count)| ((purpose.to_string(), kind, bytes), count)).collect()
}

/// Parameters of a rank of [`gpt`], worked by hand: 20 layers of 12 h^2 + 13 h, the vocabulary's matrix; first stage:
/// positions; last stage: the last norm.
const GPT_LAYERS: u64 = 20 * (12 * 5_120 * 5_120 + 13 * 5_120) / 8;
const GPT_WORDS: u64 = 50_257 * 5_120 / 8;
const GPT_FIRST: u64 = GPT_LAYERS + GPT_WORDS + 2_048 * 5_120 / 8;
const GPT_LAST: u64 = GPT_LAYERS + GPT_WORDS + 2 * 5_120 / 8;

#[test]
fn gradients_are_reduced_as_zero_says() {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    assert_eq!(GPT_FIRST, 820_073_600);
    let of = |zero, rank| collectives(&Training { zero, ..gpt() }, rank);
    assert_eq!(of(ZeroStage::None, 0), expected(&[("dp", AllReduce, 4 * GPT_FIRST, 1)]));
    assert_eq!(of(ZeroStage::None, 127), expected(&[("dp", AllReduce, 4 * GPT_LAST, 1)]));
    for zero in [ZeroStage::One, ZeroStage::Two] {
        let sharded = [("dp", ReduceScatter, 4 * GPT_FIRST, 1), ("dp", AllGather, 2 * GPT_FIRST, 1)];
        assert_eq!(of(zero, 0), expected(&sharded));
    }
    let gathered = [("dp", ReduceScatter, 4 * GPT_FIRST, 1), ("dp", AllGather, 2 * GPT_FIRST, 2 * 2)];
    assert_eq!(of(ZeroStage::Three, 0), expected(&gathered));
    let half_size = Training { gradient_bytes: 2, iterations: 3, ..gpt() };
    assert_eq!(collectives(&half_size, 0), expected(&[("dp", AllReduce, 2 * GPT_FIRST, 3)]));
}

#[test]
fn experts_exchange_tokens_and_are_reduced_apart() {
    use CollectiveKind::{AllReduce, AllToAll};
    let (h, ffn, words) = (4_096, 14_336, 32_000);
    // 16 layers: attention with 8 of 32 heads for keys and values, two norms, the router; one expert of 8.
    let shared = 16 * (2 * h * h + 2 * h * h / 4 + 2 * h + 8 * h) + words * h;
    let experts = 16 * 3 * h * ffn;
    // 4,096 tokens over two tensor-parallel ranks, to two experts each; 16 layers, 2 micro-batches, 4 times.
    let tokens = 4_096 / 2 * h * 2 * 2;
    let list = [
        ("ep", AllToAll, tokens, 16 * 2 * 4),
        ("dp", AllReduce, 4 * shared / 2, 1),
        ("expert-dp", AllReduce, 4 * experts / 2, 1),
    ];
    assert_eq!(collectives(&moe(), 0), expected(&list));
    let whole = [("dp", AllReduce, 4 * (shared + 8 * experts) / 2, 1)];
    assert_eq!(collectives(&Training { ep: 1, ..moe() }, 0), expected(&whole), "every replica holds all experts");
}

#[test]
fn tensor_parallel_traffic_is_optional() {
    use CollectiveKind::{AllGather, AllReduce, ReduceScatter};
    let activations = 2_048 * 5_120 * 2;
    let reduced = Training { tp_traffic: true, dp: 1, ..gpt() };
    // 20 layers, 2 micro-batches, twice forward and twice backward.
    assert_eq!(collectives(&reduced, 0), expected(&[("tp", AllReduce, activations, 20 * 2 * 4)]));
    let scattered = Training { sequence_parallel: true, ..reduced };
    let both = [("tp", AllGather, activations, 160), ("tp", ReduceScatter, activations, 160)];
    assert_eq!(collectives(&scattered, 0), expected(&both));
}

#[test]
fn tied_embeddings_are_reduced_between_first_and_last_stage() {
    let training = Training { embedding_traffic: true, dp: 1, pp: 4, ..gpt() };
    let reduced = expected(&[("embedding", CollectiveKind::AllReduce, 4 * GPT_WORDS, 1)]);
    assert_eq!(collectives(&training, 7), reduced);
    assert_eq!(collectives(&training, 31), reduced);
    assert_eq!(collectives(&training, 8), expected(&[]));
}

#[test]
fn buckets_are_reduced_while_the_backward_pass_goes_on() {
    let training = Training { overlap: true, buckets: 3, ..gpt() };
    let tasks = drain(training.job().programs.swap_remove(0));
    let reductions: Vec<(&Task, u64)> = tasks.iter().filter_map(|task| Some((task, bytes(task)?))).collect();
    // Layers 13 to 19, then 6 to 12, then 0 to 5 with the embeddings.
    let layer = GPT_LAYERS / 20;
    let outer = GPT_FIRST - GPT_LAYERS;
    let sizes: Vec<u64> = reductions.iter().map(|(_, bytes)| bytes / 4).collect();
    assert_eq!(sizes, [7 * layer, 7 * layer, 6 * layer + outer]);
    // The second reduction waits for the first and for its layers, not the layers for a reduction.
    let compute = |id: TaskId| matches!(tasks[id as usize].work, Work::Compute { .. });
    let (second, _) = reductions[1];
    assert_eq!(second.after.iter().filter(|id| compute(**id)).count(), 1);
    assert_eq!(second.after.len(), 2);
    let passes = tasks.iter().filter(|task| matches!(task.work, Work::Compute { .. })).rev().skip(1);
    assert!(passes.flat_map(|task| &task.after).all(|id| bytes(&tasks[*id as usize]).is_none()));
}

fn bytes(task: &Task) -> Option<u64> {
    match task.work {
        Work::Collective(call) => Some(call.bytes),
        _ => None,
    }
}

#[test]
fn groups_are_those_of_megatron() {
    let training = Training { tp: 2, pp: 2, dp: 4, ep: 2, tp_traffic: true, sequence_parallel: true, ..moe() };
    training.validate().expect("a valid configuration");
    let groups = training.job().groups;
    let find = |name: &str| {
        let named = |group: &&Group| group.name == name;
        groups.iter().find(named).map(|group| group.ranks.clone()).expect(name)
    };
    assert_eq!(find("tp stage 1 replica 2"), [12, 13]);
    assert_eq!(find("dp stage 0 shard 1"), [1, 3, 5, 7]);
    assert_eq!(find("ep stage 1 shard 1 replica 2"), [13, 15]);
    assert_eq!(find("expert-dp stage 0 shard 1 part 1"), [3, 7]);
    // Of each stage: 4 of tensors; 2 of replicas; 4 of experts and 4 of their replicas.
    assert_eq!(groups.len(), 2 * (4 + 2 + 4 + 4));
    let whole = Training { embedding_traffic: true, ..gpt() }.job().groups;
    assert_eq!(whole.last().map(|group| group.ranks.clone()), Some(vec![63, 127]));
    assert!(Training { dp: 1, ..gpt() }.job().groups.is_empty(), "groups of one are left out");
}

/// Configurations that use everything.
fn variety() -> Vec<Training> {
    let small = ModelShape { layers: 8, ..model("7b") };
    let gpt = Training { tp: 2, pp: 4, dp: 2, micro_batches: 8, ..Training::new(small) };
    let experts = ModelShape { layers: 8, ..model("8x7b") };
    let moe = Training { tp: 2, pp: 2, dp: 4, ep: 2, micro_batches: 4, ..Training::new(experts) };
    let busy = Training { overlap: true, iterations: 2, embedding_traffic: true, ..gpt.clone() };
    let sequence = Training { tp_traffic: true, sequence_parallel: true, overlap: true, buckets: 2, ..moe.clone() };
    let mut list = Vec::new();
    for schedule in [Schedule::OneFOneB, Schedule::GPipe, INTERLEAVED] {
        for zero in [ZeroStage::None, ZeroStage::One, ZeroStage::Three] {
            for training in [&gpt, &moe, &busy, &sequence] {
                list.push(Training { schedule, zero, ..training.clone() });
            }
        }
    }
    list.push(Training { pp: 1, ep: 4, ..moe });
    list.push(Training { micro_batches: 3, pp: 2, tp_traffic: true, ..gpt });
    list
}

#[test]
fn tasks_follow_only_earlier_ones() {
    for training in variety() {
        training.validate().expect("a valid configuration");
        for rank in tasks(training.job().programs) {
            for (id, task) in (0..).zip(&rank) {
                assert!(task.after.iter().all(|before: &TaskId| *before < id), "{training:?}: {task:?}");
            }
        }
    }
}

#[test]
fn every_message_has_one_receiver() {
    for training in variety() {
        let (mut sent, mut received) = (HashMap::new(), HashMap::new());
        for (rank, list) in (0..).zip(tasks(training.job().programs)) {
            for task in list {
                match task.work {
                    Work::Send { to, tag, .. } => *sent.entry((rank, to, tag)).or_insert(0) += 1,
                    Work::Recv { from, tag } => {
                        *received.entry((from.expect("a peer"), rank, tag.expect("a tag"))).or_insert(0) += 1;
                    }
                    _ => {}
                }
            }
        }
        assert_eq!(sent, received, "{training:?}");
        assert!(sent.values().all(|count| *count == training.iterations), "{training:?}");
    }
}

#[test]
fn all_members_of_a_group_call_the_same() {
    for training in variety() {
        let Job { groups, programs, .. } = training.job();
        let mut calls: HashMap<(GroupId, Rank), Vec<Call>> = HashMap::new();
        for (rank, list) in (0..).zip(tasks(programs)) {
            for task in list {
                if let Work::Collective(call) = task.work {
                    calls.entry((call.group, rank)).or_default().push(call);
                }
            }
        }
        for (id, group) in (0..).zip(&groups) {
            let of = |rank: &Rank| calls.remove(&(id, *rank)).unwrap_or_default();
            let lists: Vec<Vec<Call>> = group.ranks.iter().map(of).collect();
            assert!(lists.iter().all(|list| *list == lists[0] && !list.is_empty()), "{training:?}: {}", group.name);
        }
        assert!(calls.is_empty(), "{training:?}: calls of ranks that are not members");
    }
}

/// Ends the tasks of all ranks as early as may be, if communication takes no time. Gives the time of the last one's
/// end in picoseconds; all tasks must end.
fn run(ranks: &[Vec<Task>], groups: &[Group]) -> u64 {
    let mut ends: Vec<Vec<u64>> = vec![Vec::new(); ranks.len()];
    let mut mail: HashMap<(Rank, Rank, u64), VecDeque<u64>> = HashMap::new();
    let mut arrivals: HashMap<(GroupId, usize), HashMap<Rank, u64>> = HashMap::new();
    let mut calls: HashMap<(GroupId, Rank), usize> = HashMap::new();
    // Ranks in turn go on until they must wait for another one.
    loop {
        let before: usize = ends.iter().map(Vec::len).sum();
        for (rank, list) in ranks.iter().enumerate() {
            let rank = rank as Rank;
            while let Some(task) = list.get(ends[rank as usize].len()) {
                let id = ends[rank as usize].len();
                let ready = task.after.iter().map(|id| ends[rank as usize][*id as usize]).max().unwrap_or(0);
                let end = match task.work {
                    Work::Compute { time, .. } => Some(ready + time.0),
                    Work::Send { to, tag, .. } => {
                        mail.entry((rank, to, tag)).or_default().push_back(ready);
                        Some(ready)
                    }
                    Work::Recv { from, tag } => {
                        let key = (from.expect("a peer"), rank, tag.expect("a tag"));
                        mail.get_mut(&key).and_then(VecDeque::pop_front).map(|sent| sent.max(ready))
                    }
                    Work::Collective(call) => {
                        let nth = calls.entry((call.group, rank)).or_insert(0);
                        let here = arrivals.entry((call.group, *nth)).or_default();
                        here.insert(rank, ready);
                        let all = here.len() == groups[call.group as usize].ranks.len();
                        *nth += usize::from(all);
                        all.then(|| here.values().copied().max().unwrap_or(0))
                    }
                    _ => unreachable!("task {id} of another kind"),
                };
                let Some(end) = end else { break };
                ends[rank as usize].push(end);
            }
        }
        let after: usize = ends.iter().map(Vec::len).sum();
        if after == before {
            break;
        }
    }
    for (rank, (list, ends)) in ranks.iter().zip(&ends).enumerate() {
        assert_eq!(ends.len(), list.len(), "rank {rank} waits for ever with {:?}", list[ends.len()]);
    }
    ends.into_iter().flatten().max().unwrap_or(0)
}

#[test]
fn no_configuration_blocks() {
    for training in variety() {
        let Job { groups, programs, .. } = training.job();
        assert!(run(&tasks(programs), &groups) > 0);
    }
}

/// Time of an iteration if only layers take time, in times of a micro-batch's layers of one stage, forward and
/// backward.
fn rounds(schedule: Schedule, stages: u32, micro_batches: u32) -> f64 {
    let shape = ModelShape { layers: 24, ..model("13b") };
    let free = Training { memory_bandwidth: 1e300, ..Training::new(shape) };
    let training = Training { pp: stages, micro_batches, schedule, ..free };
    training.validate().expect("a valid configuration");
    let (groups, mut facts) = Facts::new(&training);
    facts.costs.head = 0.0;
    let layers = training.chunk_layers() * schedule.chunks();
    let of = |direction| facts.costs.layers(layers, false, direction).0;
    let round = of(schedule::Direction::Forward) + of(schedule::Direction::Backward);
    run(&tasks(programs(facts)), &groups) as f64 / round as f64
}

#[test]
fn bubbles_are_those_of_the_closed_forms() {
    for (stages, micro_batches) in [(1, 3), (2, 1), (2, 6), (4, 4), (4, 8), (8, 16)] {
        let (p, m) = (f64::from(stages), f64::from(micro_batches));
        for schedule in [Schedule::OneFOneB, Schedule::GPipe] {
            let rounds = rounds(schedule, stages, micro_batches);
            assert!((rounds - (m + p - 1.0)).abs() < 1e-6, "{schedule:?} {stages} {micro_batches}: {rounds}");
        }
    }
    for (stages, virtual_stages, micro_batches) in [(2, 2, 4), (2, 3, 6), (4, 2, 4), (4, 3, 8), (4, 6, 16)] {
        let (p, v, m) = (f64::from(stages), f64::from(virtual_stages), f64::from(micro_batches));
        let rounds = rounds(Schedule::Interleaved { virtual_stages }, stages, micro_batches);
        assert!((rounds - (m + (p - 1.0) / v)).abs() < 1e-6, "{stages} {virtual_stages} {micro_batches}: {rounds}");
    }
}

#[test]
fn computation_takes_what_the_formula_says() {
    // Narayanan et al. 2021, section 5.1: 96 B s l h^2 (1 + s / (6 h) + V / (16 l h)) operations with recomputation;
    // without it three quarters for the layers: 72 B s l h^2 (1 + s / (6 h)), and 6 B s h V for the output.
    let training = gpt();
    let (s, l, h, v) = (2_048.0, 40.0, 5_120.0, 50_257.0);
    let operations = 2.0 * (72.0 * s * l * h * h * (1.0 + s / (6.0 * h)) + 6.0 * s * h * v);
    assert!((cost::iteration_operations(&training) / operations - 1.0).abs() < 1e-12);
    let time = |rank: usize| -> u64 {
        let list = drain(training.job().programs.swap_remove(rank));
        let times = list.iter().filter_map(|task| match task.work {
            Work::Compute { time, .. } => Some(time.0),
            _ => None,
        });
        times.sum()
    };
    let optimiser = (GPT_FIRST * 30 + GPT_LAST * 30) as f64 / 2.039e12;
    let seconds = operations / (8.0 * 312e12 * 0.4) + optimiser;
    assert!(((time(0) + time(127)) as f64 / 1e12 / seconds - 1.0).abs() < 1e-9);
}

#[test]
fn activations_are_sent_in_parts() {
    for task in drain(gpt().job().programs.swap_remove(0)) {
        if let Work::Send { to, bytes, .. } = task.work {
            assert_eq!((to, bytes), (64, 2_048 * 5_120 * 2 / 8));
        }
    }
}

/// A rank of 10,000 micro-batches holds no more tasks than one piece of a pass, however far it has come.
#[test]
fn programs_are_lazy() {
    let wide = ModelShape { layers: 64, ..model("32x22b") };
    let training = Training { tp: 8, pp: 8, dp: 16, ep: 16, micro_batches: 10_000, ..Training::new(wide) };
    training.validate().expect("a valid configuration");
    let (_, facts) = Facts::new(&training);
    let facts = Arc::new(facts);
    let mut ranks: Vec<Iterations> = (0..1_024).map(|rank| Iterations::new(facts.clone(), rank)).collect();
    for program in &mut ranks {
        for _ in 0..1_000 {
            assert!(program.next().is_some());
            assert!(program.made() <= iteration::MAX_TASKS_A_LAYER as usize);
        }
    }
}

fn faults(training: Training) -> Vec<String> {
    training.validate().expect_err("faults")
}

#[test]
fn all_faults_are_told_at_once() {
    assert_eq!(gpt().validate(), Ok(()));
    let zeros = faults(Training { tp: 0, micro_batches: 0, efficiency: 2.0, flops: f64::NAN, ..gpt() });
    assert_eq!(zeros.len(), 4, "{zeros:?}");
    let odd = faults(Training { pp: 3, ep: 3, buckets: 2, tp: 3, ..gpt() });
    assert_eq!(odd.len(), 6, "{odd:?}");
    let one = |training: Training, part: &str| {
        let faults = faults(training);
        assert!(faults.len() == 1 && faults[0].contains(part), "{faults:?}");
    };
    one(Training { micro_batches: 3, schedule: INTERLEAVED, ..gpt() }, "micro-batches 3");
    one(Training { pp: 1, schedule: INTERLEAVED, ..gpt() }, "pp above 1");
    one(Training { gradient_bytes: 8, ..gpt() }, "gradient-bytes");
    one(Training { ep: 16, ..moe() }, "experts 8");
    one(Training { ep: 2, ..gpt() }, "dense");
    one(Training { sequence_parallel: true, ..gpt() }, "none");
    one(Training { tp_traffic: true, ..moe() }, "sequence-parallel");
    one(Training { overlap: true, buckets: 21, ..gpt() }, "20 layers");
    one(Training { dp: 1 << 20, ..gpt() }, "16777216 ranks");
    one(Training { micro_batches: 1 << 24, iterations: 1 << 10, flops: 1e300, ..gpt() }, "too many tasks");
    one(Training { flops: 1.0, ..gpt() }, "takes longer");
    let huge = ModelShape { hidden: 1 << 24, heads: 8, kv_heads: 8, ffn: 1 << 24, layers: 1 << 20, ..model("13b") };
    assert!(faults(Training { model: huge, ..gpt() })[0].contains("too many parameters"));
}

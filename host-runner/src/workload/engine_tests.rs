//! Jobs in a world where every message takes a fixed time, however many there are.

use super::super::task::{CollectiveKind, Listed};
use super::*;

const LATENCY: Span = Span(1_000);

/// What a job has shown.
struct Shown {
    engine: Engine,
    end: SimTime,
    messages: Vec<(SimTime, Message)>,
}

fn play(jobs: &[PlacedJob]) -> Result<Shown, Mismatch> {
    let mut engine = Engine::new(jobs);
    let mut flying: BTreeMap<SimTime, Vec<u32>> = BTreeMap::new();
    let (mut now, mut messages) = (SimTime::ZERO, Vec::new());
    engine.advance(now, &[])?;
    loop {
        for message in engine.messages() {
            flying.entry(now + LATENCY).or_default().push(message.id);
            messages.push((now, message));
        }
        let arrival = flying.keys().next().copied();
        let Some(next) = [arrival, engine.next_time()].into_iter().flatten().min() else { break };
        now = next;
        let mut arrived = flying.remove(&now).unwrap_or_default();
        // The order in which arrivals are told is not to matter.
        arrived.reverse();
        engine.advance(now, &arrived)?;
    }
    Ok(Shown { engine, end: now, messages })
}

fn job(groups: &[&[Rank]], programs: Vec<Vec<Task>>) -> PlacedJob {
    let groups = (0..).zip(groups).map(|(i, ranks)| Group { name: format!("g{i}"), ranks: ranks.to_vec() }).collect();
    let hosts = (0..programs.len() as u32).map(NodeId).collect();
    let programs = programs.into_iter().map(|tasks| Box::new(Listed::new(tasks)) as Box<dyn Program>).collect();
    PlacedJob {
        name: "job".into(),
        job: Job { description: String::new(), groups, programs },
        hosts,
        start: SimTime::ZERO,
        collectives: CollectiveOptions::default(),
    }
}

fn compute(time: u64, after: &[TaskId]) -> Task {
    Task::new(Work::Compute { time: Span(time), processor: 0 }, after.to_vec())
}

fn call(group: GroupId, kind: CollectiveKind, bytes: u64, after: &[TaskId]) -> Task {
    Task::new(Work::Collective(Call { group, kind, bytes }), after.to_vec())
}

fn send(to: Rank, after: &[TaskId]) -> Task {
    Task::new(Work::Send { to, bytes: 10, tag: 7 }, after.to_vec())
}

fn recv(from: Option<Rank>, after: &[TaskId]) -> Task {
    Task::new(Work::Recv { from, tag: Some(7) }, after.to_vec())
}

#[test]
fn a_ring_takes_its_steps_after_the_last_member_has_come() {
    let programs = (0..4).map(|rank| vec![compute(10 * rank, &[]), call(0, CollectiveKind::AllReduce, 400, &[0])]);
    let shown = play(&[job(&[&[0, 1, 2, 3]], programs.collect())]).expect("no mismatch");
    assert!(shown.engine.is_done() && shown.engine.waits().is_empty());
    assert_eq!(shown.messages.len(), 4 * 6);
    assert!(shown.messages.iter().all(|(_, m)| m.bytes == 100));
    // Rank 3 comes at 30: six steps follow.
    assert_eq!(shown.end, SimTime(30 + 6 * LATENCY.0));
    let [record] = shown.engine.collectives() else { panic!("one collective") };
    // Rank 1 comes at 10 and finds rank 0 there, whom nobody sends to before; rank 0 sends to 1 then.
    assert_eq!((record.start, record.end), (SimTime(10), shown.end));
    let rank_3 = shown.engine.activities(0).nth(3).expect("rank 3");
    assert_eq!((rank_3.computed, rank_3.total()), (Span(30), Span(shown.end.0)));
}

#[test]
fn messages_of_an_instant_are_in_the_order_of_their_names_and_connections_keep_their_ports() {
    let programs =
        (0..3).map(|_| vec![call(0, CollectiveKind::AllReduce, 3, &[]), call(0, CollectiveKind::AllGather, 3, &[0])]);
    let shown = play(&[job(&[&[2, 0, 1]], programs.collect())]).expect("no mismatch");
    assert!(shown.messages.is_sorted_by_key(|(at, message)| (*at, message.name)));
    let names: std::collections::HashSet<_> = shown.messages.iter().map(|(_, m)| m.name).collect();
    assert_eq!(names.len(), shown.messages.len(), "names are unique");
    let of_0: Vec<_> =
        shown.messages.iter().filter(|(_, m)| m.src == NodeId(0)).map(|(_, m)| (m.dst, m.src_port)).collect();
    assert_eq!(of_0.len(), 6);
    assert!(of_0.iter().all(|ports| *ports == of_0[0]) && of_0[0].0 == NodeId(1), "{of_0:?}");
}

#[test]
fn a_rank_that_never_joins_is_named() {
    let gather = |after: &[TaskId]| call(0, CollectiveKind::AllGather, 1_024, after);
    let rank_2 = vec![call(1, CollectiveKind::AllReduce, 1_024, &[]), gather(&[0])];
    let programs = vec![vec![gather(&[])], vec![gather(&[])], rank_2, vec![gather(&[])]];
    let shown = play(&[job(&[&[0, 1, 2, 3], &[2, 3]], programs)]).expect("no mismatch");
    assert!(!shown.engine.is_done());
    let waits: Vec<String> = shown.engine.waits().iter().map(|w| format!("{} {}", w.rank, w.what)).collect();
    let of_group_0 = [0, 1, 3].map(|rank| format!("{rank} rank 2 in group g0"));
    let all = [&of_group_0[..2], &["2 rank 3 in group g1".into()], &of_group_0[2..]].concat();
    assert_eq!(waits, all);
}

#[test]
fn members_that_disagree_are_named() {
    let programs = [1_024, 1_025].map(|bytes| vec![call(0, CollectiveKind::AllReduce, bytes, &[])]);
    let Err(Mismatch(message)) = play(&[job(&[&[0, 1]], programs.to_vec())]) else { panic!("a mismatch") };
    assert_eq!(
        message,
        "job: rank 1 calls AllReduce of 1025 bytes in group g0, but others call AllReduce of 1024 bytes"
    );
    let stranger = vec![vec![], vec![call(0, CollectiveKind::Barrier, 0, &[])]];
    let Err(Mismatch(message)) = play(&[job(&[&[0]], stranger)]) else { panic!("a mismatch") };
    assert!(message.ends_with("is not a member of it"), "{message}");
}

#[test]
fn receives_take_messages_in_order_and_wait_for_the_right_ones() {
    let programs = vec![
        vec![compute(50, &[]), send(2, &[0])],
        vec![send(2, &[])],
        vec![recv(Some(0), &[]), recv(None, &[]), compute(5, &[1]), compute(5, &[0])],
    ];
    let shown = play(&[job(&[], programs)]).expect("no mismatch");
    assert!(shown.engine.is_done());
    assert_eq!(shown.end, SimTime(1_050 + 5));
    let lonely = play(&[job(&[], vec![vec![recv(Some(1), &[])], vec![]])]).expect("no mismatch");
    assert!(!lonely.engine.is_done());
    assert_eq!(lonely.engine.waits()[0].what, "a message from rank 1 with tag 7");
}

#[test]
fn a_processor_does_one_thing_at_a_time_and_delays_do_not_occupy_it() {
    let delay = Task::new(Work::Delay(Span(3)), vec![]);
    let other = Task::new(Work::Compute { time: Span(4), processor: 1 }, vec![]);
    let tasks = vec![compute(10, &[]), compute(20, &[]), delay.clone(), delay, other];
    let shown = play(&[job(&[], vec![tasks])]).expect("no mismatch");
    assert_eq!(shown.end, SimTime(30));
}

#[test]
fn tasks_may_start_with_others_and_by_signals() {
    // Task 1 starts with task 0; tasks 2 and 3 when the signal was raised once and twice.
    let mut with = Task::new(Work::Delay(Span(100)), vec![]);
    with.with = vec![0];
    with.raises = vec![5];
    let mut first = Task::new(Work::Delay(Span(7)), vec![]);
    first.raises = vec![5];
    let awaits = |count| Task { awaits: Some((5, count)), ..Task::new(Work::Delay(Span(1_000)), vec![]) };
    let programs = vec![vec![first, with], vec![awaits(1)], vec![awaits(2)], vec![awaits(3)]];
    let shown = play(&[job(&[], programs)]).expect("no mismatch");
    assert_eq!(shown.end, SimTime(1_100));
    assert!(!shown.engine.is_done());
    assert_eq!(shown.engine.waits()[0].what, "signal 5 to be raised 3 times; it was raised 2");
}

#[test]
fn jobs_begin_in_their_time_and_share_hosts() {
    let programs = || vec![vec![send(1, &[])], vec![recv(Some(0), &[])]];
    let later = PlacedJob { start: SimTime(400), name: "later".into(), ..job(&[], programs()) };
    let on_one_host = PlacedJob { hosts: vec![NodeId(3); 2], ..job(&[], programs()) };
    let shown = play(&[job(&[], programs()), later, on_one_host]).expect("no mismatch");
    let spans: Vec<_> = (0..3).map(|job| shown.engine.span(job)).collect();
    assert_eq!(spans, [(0, 1_000), (400, 1_400), (0, 0)].map(|(a, b)| (SimTime(a), SimTime(b))));
    assert_eq!(shown.messages.len(), 2, "what stays on a host is not sent");
}

/// Tasks of [`Long`].
const LONG: u32 = 1_000_000;

/// A program of many tasks that are made as they are asked for, one after the other.
#[derive(Clone)]
struct Long {
    left: u32,
    yielded: std::sync::Arc<std::sync::atomic::AtomicU32>,
}

impl Program for Long {
    fn next(&mut self) -> Option<Task> {
        let id = LONG - self.left;
        self.left = self.left.checked_sub(1)?;
        self.yielded.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Some(compute(1, &id.checked_sub(1).map_or(vec![], |before| vec![before])))
    }
}

#[test]
fn long_programs_are_never_in_memory_as_a_whole() {
    let yielded = std::sync::Arc::new(std::sync::atomic::AtomicU32::new(0));
    let program = Long { left: LONG, yielded: std::sync::Arc::clone(&yielded) };
    let mut placed = job(&[], vec![vec![]]);
    placed.job.programs = vec![Box::new(program)];
    let mut engine = Engine::new(&[placed]);
    // The tasks have been counted, which makes them one by one.
    yielded.store(0, std::sync::atomic::Ordering::Relaxed);
    engine.advance(SimTime::ZERO, &[]).expect("no mismatch");
    let ahead = yielded.load(std::sync::atomic::Ordering::Relaxed);
    assert!(ahead <= 1_025, "{ahead} tasks are made at once");
    while let Some(at) = engine.next_time() {
        engine.advance(at, &[]).expect("no mismatch");
        assert!(engine.jobs[0].ranks[0].tasks.len() <= 1_025);
    }
    assert!(engine.is_done());
    assert_eq!(engine.span(0).1, SimTime(1_000_000));
}

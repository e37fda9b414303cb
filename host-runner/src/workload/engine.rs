//! Runs jobs: releases tasks as others end, and says which messages are to be sent.
//!
//! It knows no network and no clock. Whoever drives it tells the time and which messages have arrived, and sends what
//! it asks for:
//!
//! 1. [`Engine::advance`] to the present, with what has arrived by now;
//! 2. [`Engine::messages`] are sent;
//! 3. until the next arrival or [`Engine::next_time`], whichever is sooner.
//!
//! What happens in one instant is put in an order that does not depend on the order in which it is told.

use super::activity::{Activity, Course, Diary, Stretch};
use super::collective::CollectiveOptions;
use super::instance::{Effects, Instance, Ready};
use super::messages::{Message, MessageName};
use super::task::{Call, Group, GroupId, Job, Program, Rank, SignalId, Task, TaskId, Work};
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, HashMap, VecDeque};
use wormhole_kernel::{NodeId, SimTime, Span};

/// A job and where it runs.
#[derive(Clone, Debug)]
pub struct PlacedJob {
    /// What it is called in messages and tables.
    pub name: String,
    /// What runs.
    pub job: Job,
    /// The host of each rank.
    pub hosts: Vec<NodeId>,
    /// When it begins.
    pub start: SimTime,
    /// How its collectives are done.
    pub collectives: CollectiveOptions,
}

/// A collective that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct CollectiveRecord {
    /// Index of the job.
    pub job: u32,
    /// Which collective, of which group.
    pub call: Call,
    /// The how-manieth of its group, from 0.
    pub which: u32,
    /// When its first message was sent, or its last member came if there was none.
    pub start: SimTime,
    /// When its last member had ended it.
    pub end: SimTime,
}

/// A rank that cannot go on.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Wait {
    /// Name of the job.
    pub job: String,
    /// Who waits.
    pub rank: Rank,
    /// For what, as in `rank 3 in group B`.
    pub what: String,
}

/// Two ranks disagree about a collective: the run cannot go on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mismatch(pub String);

/// What a rank did in some time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct RankStretch {
    /// Index of the job.
    pub job: u32,
    /// The rank.
    pub rank: Rank,
    /// What, and when.
    pub stretch: Stretch,
}

/// Ranks whose courses are kept, of all jobs: each takes up to 13 kB.
const MOST_COURSES: usize = 32;

/// So many of those that a rank waits for in a group are named.
const MOST_WAITS: usize = 4;

/// Something that a rank does until a certain time.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Begin { job: u32 },
    End { job: u32, rank: Rank, task: TaskId },
}

/// What a message under way is part of.
#[derive(Clone, Copy)]
enum Purpose {
    Collective { job: u32, group: GroupId, which: u32, from: u32, to: u32, lane: u32 },
    Send { job: u32, from: Rank, to: Rank, task: TaskId, tag: u64 },
    Put { job: u32, from: Rank, to: Rank, task: TaskId },
}

impl Purpose {
    fn job(&self) -> u32 {
        match *self {
            Purpose::Collective { job, .. } | Purpose::Send { job, .. } | Purpose::Put { job, .. } => job,
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Progress {
    Waiting,
    Started,
    Ended,
}

/// A task that its program has yielded.
struct Slot {
    progress: Progress,
    /// Tasks and signals it waits for.
    unmet: u32,
    work: Work,
    raises: Vec<SignalId>,
    /// Tasks that wait for its end, and for its start.
    dependents: Vec<TaskId>,
    companions: Vec<TaskId>,
}

#[derive(Default)]
struct Processor {
    busy: bool,
    /// Tasks that are ready, by when they became so.
    ready: BinaryHeap<Reverse<(SimTime, TaskId)>>,
}

struct RankState {
    program: Box<dyn Program>,
    is_exhausted: bool,
    /// Tasks from `first` on.
    tasks: VecDeque<Slot>,
    first: TaskId,
    waiting: usize,
    processors: BTreeMap<u32, Processor>,
    /// Messages that have arrived and were not asked for, by (from, tag): which, in order of arrival.
    arrived: Vec<(Rank, u64)>,
    /// Receives that wait, in order.
    receives: Vec<(TaskId, Option<Rank>, Option<u64>)>,
    diary: Diary,
}

struct GroupState {
    /// How many collectives each member has joined.
    calls: HashMap<Rank, (u32, u32)>,
    instances: VecDeque<Option<Instance>>,
    first: u32,
}

#[derive(Default)]
struct Signal {
    raised: u32,
    waiting: Vec<(u32, Rank, TaskId)>,
}

struct JobState {
    name: String,
    hosts: Vec<NodeId>,
    collectives: CollectiveOptions,
    groups: Vec<Group>,
    group_states: Vec<GroupState>,
    ranks: Vec<RankState>,
    signals: HashMap<SignalId, Signal>,
    /// Ranks with tasks left.
    unfinished: u32,
    /// Tasks of the first rank.
    first_rank_tasks: u32,
    start: SimTime,
    end: SimTime,
}

/// See the module.
pub struct Engine {
    now: SimTime,
    jobs: Vec<JobState>,
    calendar: BinaryHeap<Reverse<(SimTime, Due)>>,
    /// Messages under way, by id; and ids that are free.
    under_way: Vec<Option<Purpose>>,
    free: Vec<u32>,
    outbox: Vec<Message>,
    /// Messages that take no time.
    at_once: VecDeque<u32>,
    /// Tasks that may start now.
    ready: VecDeque<(u32, Rank, TaskId)>,
    /// Processors that may take up a task, once all that is ready now is known.
    idle: Vec<(u32, Rank, u32)>,
    records: Vec<CollectiveRecord>,
    /// What ranks have done, if it is to be told.
    stretches: Option<Vec<RankStretch>>,
    mismatch: Option<Mismatch>,
}

impl Engine {
    /// Jobs before their start.
    pub fn new(jobs: &[PlacedJob]) -> Engine {
        let calendar = (0..).zip(jobs).map(|(job, placed)| Reverse((placed.start, Due::Begin { job }))).collect();
        Engine {
            now: SimTime::ZERO,
            jobs: jobs.iter().map(JobState::new).collect(),
            calendar,
            under_way: Vec::new(),
            free: Vec::new(),
            outbox: Vec::new(),
            at_once: VecDeque::new(),
            ready: VecDeque::new(),
            idle: Vec::new(),
            records: Vec::new(),
            stretches: None,
            mismatch: None,
        }
    }

    // Getters.

    /// When something happens next that no message brings about.
    pub fn next_time(&self) -> Option<SimTime> {
        self.calendar.peek().map(|Reverse((at, _))| *at)
    }

    /// Whether all tasks have ended.
    pub fn is_done(&self) -> bool {
        self.calendar.is_empty() && self.jobs.iter().all(|job| job.unfinished == 0)
    }

    /// Share of its tasks that the first rank of each job has ended, 0 to 1.
    pub fn shares_done(&self) -> impl Iterator<Item = f64> + '_ {
        self.jobs.iter().map(|job| match job.ranks.first() {
            Some(rank) if job.unfinished > 0 => f64::from(rank.first) / f64::from(job.first_rank_tasks.max(1)),
            _ => 1.0,
        })
    }

    /// Ranks that wait, and for what: why nothing goes on. Those that wait for a rank that waits itself are among them.
    pub fn waits(&self) -> Vec<Wait> {
        let mut waits: Vec<Wait> = self.jobs.iter().flat_map(JobState::waits).collect();
        waits.sort();
        waits.dedup();
        waits
    }

    /// Collectives that have ended, in order of their ends.
    pub fn collectives(&self) -> &[CollectiveRecord] {
        &self.records
    }

    /// The groups of a job.
    ///
    /// # Panics
    /// If there is no such job.
    pub fn groups(&self, job: u32) -> &[Group] {
        &self.jobs[job as usize].groups
    }

    /// When a job began, and when its last task ended.
    ///
    /// # Panics
    /// If there is no such job.
    pub fn span(&self, job: u32) -> (SimTime, SimTime) {
        let job = &self.jobs[job as usize];
        (job.start, job.end)
    }

    /// What each rank of a job has done with its time, up to the job's end or now.
    ///
    /// # Panics
    /// If there is no such job.
    pub fn activities(&self, job: u32) -> impl Iterator<Item = Activity> + '_ {
        let job = &self.jobs[job as usize];
        let until = job.last(self.now);
        job.ranks.iter().map(move |rank| rank.diary.until(until))
    }

    /// The courses of some ranks of a job, up to the job's end or now: of as many as there is room for, at even
    /// distances.
    ///
    /// # Panics
    /// If there is no such job.
    pub fn courses(&self, job: u32) -> impl Iterator<Item = (Rank, Course)> + '_ {
        let job = &self.jobs[job as usize];
        let until = job.last(self.now);
        let ranks = (0..).zip(&job.ranks);
        ranks.filter_map(move |(rank, state)| Some((rank, state.diary.course_until(until)?)))
    }

    /// What each rank does now, from when it began up to the job's end or now.
    pub fn open_stretches(&self) -> impl Iterator<Item = RankStretch> + '_ {
        (0..).zip(&self.jobs).filter(|(_, job)| job.start <= self.now).flat_map(move |(index, job)| {
            let until = job.last(self.now);
            (0..).zip(&job.ranks).filter_map(move |(rank, state)| {
                Some(RankStretch { job: index, rank, stretch: state.diary.stretch_until(until)? })
            })
        })
    }

    /// The ranks of a job whose courses are kept.
    fn kept_courses(&self, job: u32) -> impl Iterator<Item = Rank> + use<> {
        let (jobs, ranks) = (self.jobs.len(), self.jobs[job as usize].ranks.len());
        let share = (MOST_COURSES / jobs).max(usize::from((job as usize) < MOST_COURSES)).min(ranks);
        (0..share).map(move |place| (place * ranks / share) as Rank)
    }

    // Commands.

    /// Lets everything up to and including `now` happen. `arrived` are the messages that have arrived now.
    ///
    /// # Errors
    /// [`Mismatch`] if members of a group do not agree about a collective.
    ///
    /// # Panics
    /// If a message is not under way, or time runs backwards.
    pub fn advance(&mut self, now: SimTime, arrived: &[u32]) -> Result<(), Mismatch> {
        assert!(now >= self.now, "time runs backwards");
        while let Some(at) = self.next_time().filter(|&at| at < now) {
            self.now = at;
            self.calendar_due();
            self.settle();
        }
        self.now = now;
        arrived.iter().for_each(|&message| self.deliver(message));
        self.calendar_due();
        self.settle();
        self.mismatch.take().map_or(Ok(()), Err)
    }

    /// From now on what ranks do is kept until it is taken.
    pub fn keep_stretches(&mut self) {
        self.stretches.get_or_insert_default();
    }

    /// What ranks have done since this was asked last. Those of one rank are in order and do not overlap; where they
    /// leave gaps it has done nothing that takes time, or there are further ones.
    pub fn take_stretches(&mut self) -> Vec<RankStretch> {
        self.stretches.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// The messages that are to be sent now, in order of their names.
    pub fn messages(&mut self) -> Vec<Message> {
        self.outbox.sort_unstable();
        std::mem::take(&mut self.outbox)
    }

    // What happens.

    fn calendar_due(&mut self) {
        while let Some(at) = self.next_time().filter(|&at| at <= self.now) {
            debug_assert!(at == self.now);
            match self.calendar.pop().map(|Reverse((_, due))| due) {
                Some(Due::Begin { job }) => self.begin(job),
                Some(Due::End { job, rank, task }) => self.end_timed(job, rank, task),
                None => {}
            }
        }
    }

    fn begin(&mut self, job: u32) {
        let now = self.now;
        let kept: Vec<Rank> = self.kept_courses(job).collect();
        for rank in 0..self.jobs[job as usize].ranks.len() as Rank {
            self.rank(job, rank).diary = Diary::from(now, kept.contains(&rank));
            self.pull(job, rank);
        }
    }

    /// Starts what is ready, until nothing more is in this instant but what takes time.
    fn settle(&mut self) {
        loop {
            if let Some((job, rank, task)) = self.ready.pop_front() {
                self.start(job, rank, task);
            } else if let Some(message) = self.at_once.pop_front() {
                self.deliver(message);
            } else if !self.idle.is_empty() {
                let mut idle = std::mem::take(&mut self.idle);
                idle.sort_unstable();
                idle.into_iter().for_each(|(job, rank, processor)| self.occupy(job, rank, processor));
            } else if self.next_time().is_some_and(|at| at <= self.now) {
                self.calendar_due();
            } else {
                return;
            }
        }
    }

    fn rank(&mut self, job: u32, rank: Rank) -> &mut RankState {
        &mut self.jobs[job as usize].ranks[rank as usize]
    }

    /// Takes tasks from a program as far as it may run ahead.
    fn pull(&mut self, job: u32, rank: Rank) {
        if self.rank(job, rank).is_exhausted {
            return;
        }
        while let Some((task, awaited)) = self.rank(job, rank).take_up() {
            let waits = awaited.is_some_and(|signal| self.await_signal(job, rank, task, signal));
            let slot = self.rank(job, rank).slot(task);
            slot.unmet += waits as u32;
            if slot.unmet == 0 {
                self.ready.push_back((job, rank, task));
            }
        }
        self.note_end(job, rank);
    }

    /// Whether a task has to wait for a signal; if so it is noted there.
    fn await_signal(&mut self, job: u32, rank: Rank, task: TaskId, (signal, count): (SignalId, u32)) -> bool {
        let signal = self.jobs[job as usize].signals.entry(signal).or_default();
        let waits = signal.raised < count;
        if waits {
            signal.waiting.push((count, rank, task));
        }
        waits
    }

    fn start(&mut self, job: u32, rank: Rank, task: TaskId) {
        let now = self.now;
        let state = self.rank(job, rank);
        let work = state.slot(task).work.clone();
        if let Work::Compute { processor, .. } = work {
            // It starts when its processor takes it up.
            state.processors.entry(processor).or_default().ready.push(Reverse((now, task)));
            return self.idle.push((job, rank, processor));
        }
        self.mark_started(job, rank, task);
        match work {
            Work::Nothing | Work::Compute { .. } => self.end(job, rank, task),
            Work::Delay(time) => self.end_after(time, job, rank, task),
            Work::Collective(call) => self.join(job, rank, task, call),
            Work::Send { to, bytes, tag } => self.send(Purpose::Send { job, from: rank, to, task, tag }, bytes),
            Work::Put { to, bytes } => self.send(Purpose::Put { job, from: rank, to, task }, bytes),
            Work::Recv { from, tag } => self.receive(job, rank, task, from, tag),
        }
    }

    /// A processor takes up the task that has been ready for longest.
    fn occupy(&mut self, job: u32, rank: Rank, processor: u32) {
        let now = self.now;
        let state = self.rank(job, rank);
        let unit = state.processors.entry(processor).or_default();
        if unit.busy {
            return;
        }
        let Some(Reverse((_, task))) = unit.ready.pop() else { return };
        unit.busy = true;
        let Work::Compute { time, .. } = state.slot(task).work else { return };
        self.note(job, rank, |diary| diary.compute(now, 1));
        self.mark_started(job, rank, task);
        self.end_after(time, job, rank, task);
    }

    fn end_after(&mut self, time: Span, job: u32, rank: Rank, task: TaskId) {
        self.calendar.push(Reverse((self.now + time, Due::End { job, rank, task })));
    }

    /// A delay or computation is over.
    fn end_timed(&mut self, job: u32, rank: Rank, task: TaskId) {
        let now = self.now;
        let state = self.rank(job, rank);
        if let Work::Compute { processor, .. } = state.slot(task).work {
            state.processors.entry(processor).or_default().busy = false;
            self.note(job, rank, |diary| diary.compute(now, -1));
            self.idle.push((job, rank, processor));
        }
        self.end(job, rank, task);
    }

    fn mark_started(&mut self, job: u32, rank: Rank, task: TaskId) {
        let state = self.rank(job, rank);
        state.waiting -= 1;
        let slot = state.slot(task);
        slot.progress = Progress::Started;
        let companions = std::mem::take(&mut slot.companions);
        self.meet(job, rank, companions);
        self.pull(job, rank);
    }

    fn end(&mut self, job: u32, rank: Rank, task: TaskId) {
        let state = self.rank(job, rank);
        let slot = state.slot(task);
        slot.progress = Progress::Ended;
        let (dependents, raises) = (std::mem::take(&mut slot.dependents), std::mem::take(&mut slot.raises));
        while state.tasks.front().is_some_and(|slot| slot.progress == Progress::Ended) {
            state.tasks.pop_front();
            state.first += 1;
        }
        self.meet(job, rank, dependents);
        raises.into_iter().for_each(|signal| self.raise(job, signal));
        self.note_end(job, rank);
    }

    /// The rank may have nothing left to do.
    fn note_end(&mut self, job: u32, rank: Rank) {
        let job = &mut self.jobs[job as usize];
        let state = &job.ranks[rank as usize];
        if state.is_exhausted && state.tasks.is_empty() {
            job.unfinished -= 1;
            job.end = job.end.max(self.now);
        }
    }

    /// Tasks of a rank wait for one thing less.
    fn meet(&mut self, job: u32, rank: Rank, tasks: Vec<TaskId>) {
        for task in tasks {
            let slot = self.rank(job, rank).slot(task);
            slot.unmet -= 1;
            if slot.unmet == 0 {
                self.ready.push_back((job, rank, task));
            }
        }
    }

    fn raise(&mut self, job: u32, signal: SignalId) {
        let signal = self.jobs[job as usize].signals.entry(signal).or_default();
        signal.raised += 1;
        let raised = signal.raised;
        let (met, waiting) = std::mem::take(&mut signal.waiting).into_iter().partition(|(count, ..)| *count <= raised);
        signal.waiting = waiting;
        met.into_iter().for_each(|(_, rank, task): (u32, Rank, TaskId)| self.meet(job, rank, vec![task]));
    }

    // Collectives.

    fn join(&mut self, job: u32, rank: Rank, task: TaskId, call: Call) {
        let state = &mut self.jobs[job as usize];
        let members = state.groups[call.group as usize].ranks.len() as u32;
        let group = &mut state.group_states[call.group as usize];
        let Some((member, calls)) = group.calls.get_mut(&rank) else {
            return self.disagree(job, rank, call, "is not a member of it".into());
        };
        let (member, which) = (*member, *calls);
        *calls += 1;
        let instance = group.instance(which, || {
            Instance::new(call, members, state.collectives.algorithm(call.kind, members, call.bytes))
        });
        if instance.call != call {
            let Call { kind, bytes, .. } = instance.call;
            return self.disagree(job, rank, call, format!("others call {kind:?} of {bytes} bytes"));
        }
        let mut effects = Effects::default();
        instance.join(member, task, &mut effects);
        self.apply(job, call.group, which, effects);
    }

    fn disagree(&mut self, job: u32, rank: Rank, call: Call, why: String) {
        let state = &self.jobs[job as usize];
        let Call { kind, bytes, group } = call;
        let (name, group) = (&state.name, &state.groups[group as usize].name);
        let message = format!("{name}: rank {rank} calls {kind:?} of {bytes} bytes in group {group}, but {why}");
        self.mismatch.get_or_insert(Mismatch(message));
    }

    fn apply(&mut self, job: u32, group: GroupId, which: u32, effects: Effects) {
        for Ready { from, to, lane, index, bytes } in effects.ready {
            let name = MessageName::of_collective(job, group, which, from, lane, index);
            let purpose = Purpose::Collective { job, group, which, from, to, lane };
            self.post(name, purpose, bytes, connection(group, lane));
        }
        let state = &mut self.jobs[job as usize];
        let ranks = &state.groups[group as usize].ranks;
        let ended: Vec<(Rank, TaskId)> = effects.ended.iter().map(|&(m, task)| (ranks[m as usize], task)).collect();
        let instances = &mut state.group_states[group as usize];
        if let Some(over) = instances.take_over(which) {
            let start = over.start.unwrap_or(self.now);
            self.records.push(CollectiveRecord { job, call: over.call, which, start, end: self.now });
        }
        ended.into_iter().for_each(|(rank, task)| self.end(job, rank, task));
    }

    // Messages.

    fn send(&mut self, purpose: Purpose, bytes: u64) {
        let (Purpose::Send { job, from, to, task, .. } | Purpose::Put { job, from, to, task }) = purpose else {
            return;
        };
        self.post(MessageName::of_task(job, from, task), purpose, bytes, connection(from, to));
    }

    /// Hands a message to whoever sends it. Without bytes, or to the same host, it arrives at once.
    fn post(&mut self, name: MessageName, purpose: Purpose, bytes: u64, src_port: u16) {
        let (src, dst) = self.ends(&purpose);
        let job = &mut self.jobs[purpose.job() as usize];
        if let Purpose::Collective { group, which, .. } = purpose {
            job.group_states[group as usize].note_start(which, self.now);
        }
        let (src, dst) = (job.hosts[src as usize], job.hosts[dst as usize]);
        let id = self.free.pop().unwrap_or_else(|| {
            self.under_way.push(None);
            self.under_way.len() as u32 - 1
        });
        self.under_way[id as usize] = Some(purpose);
        self.count_messages(&purpose, 1);
        if bytes == 0 || src == dst {
            return self.at_once.push_back(id);
        }
        self.outbox.push(Message { name, id, src, dst, bytes, src_port });
    }

    /// The ranks that a message goes between.
    fn ends(&self, purpose: &Purpose) -> (Rank, Rank) {
        match *purpose {
            Purpose::Collective { job, group, from, to, .. } => {
                let ranks = &self.jobs[job as usize].groups[group as usize].ranks;
                (ranks[from as usize], ranks[to as usize])
            }
            Purpose::Send { from, to, .. } | Purpose::Put { from, to, .. } => (from, to),
        }
    }

    fn count_messages(&mut self, purpose: &Purpose, by: i32) {
        let (src, dst) = self.ends(purpose);
        let now = self.now;
        self.note(purpose.job(), src, |diary| diary.communicate(now, by));
        self.note(purpose.job(), dst, |diary| diary.communicate(now, by));
    }

    /// A rank does something else now.
    fn note(&mut self, job: u32, rank: Rank, change: impl FnOnce(&mut Diary) -> Option<Stretch>) {
        let ended = change(&mut self.rank(job, rank).diary);
        if let Some(kept) = &mut self.stretches {
            kept.extend(ended.map(|stretch| RankStretch { job, rank, stretch }));
        }
    }

    fn deliver(&mut self, message: u32) {
        let Some(purpose) = self.under_way.get_mut(message as usize).and_then(Option::take) else {
            panic!("message {message} is not under way");
        };
        self.free.push(message);
        self.count_messages(&purpose, -1);
        match purpose {
            Purpose::Collective { job, group, which, from, to, lane } => {
                let mut effects = Effects::default();
                let state = &mut self.jobs[job as usize].group_states[group as usize];
                if let Some(instance) = state.get(which) {
                    instance.deliver(from, lane, to, &mut effects);
                }
                self.apply(job, group, which, effects);
            }
            Purpose::Send { job, from, to, task, tag } => {
                self.arrive(job, from, to, tag);
                self.end(job, from, task);
            }
            Purpose::Put { job, from, task, .. } => self.end(job, from, task),
        }
    }

    /// A message is there: the first receive that it suits takes it.
    fn arrive(&mut self, job: u32, from: Rank, to: Rank, tag: u64) {
        let state = &mut self.jobs[job as usize].ranks[to as usize];
        let suits = |(_, source, want): &(TaskId, Option<Rank>, Option<u64>)| suits(*source, *want, from, tag);
        match state.receives.iter().position(suits) {
            Some(at) => {
                let (task, ..) = state.receives.remove(at);
                self.end(job, to, task);
            }
            None => state.arrived.push((from, tag)),
        }
    }

    fn receive(&mut self, job: u32, rank: Rank, task: TaskId, from: Option<Rank>, tag: Option<u64>) {
        let state = self.rank(job, rank);
        match state.arrived.iter().position(|&(source, got)| suits(from, tag, source, got)) {
            Some(at) => {
                state.arrived.remove(at);
                self.end(job, rank, task);
            }
            None => state.receives.push((task, from, tag)),
        }
    }
}

fn suits(from: Option<Rank>, tag: Option<u64>, source: Rank, got: u64) -> bool {
    from.is_none_or(|from| from == source) && tag.is_none_or(|tag| tag == got)
}

/// A UDP source port for a connection: as good as any, the same in every run, and never below those of listed flows.
fn connection(a: u32, b: u32) -> u16 {
    let mixed = (a as u64 ^ (b as u64) << 32).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    10_000 + (mixed >> 40) as u16 % 50_000
}

/// Tasks that a program will yield.
fn task_count(program: &dyn Program) -> u32 {
    let mut program = dyn_clone::clone_box(program);
    std::iter::from_fn(|| program.next()).fold(0, |count, _| count + 1)
}

impl JobState {
    fn new(placed: &PlacedJob) -> JobState {
        let job = placed.job.clone();
        JobState {
            name: placed.name.clone(),
            hosts: placed.hosts.clone(),
            collectives: placed.collectives,
            group_states: job.groups.iter().map(GroupState::new).collect(),
            groups: job.groups,
            unfinished: job.programs.len() as u32,
            first_rank_tasks: job.programs.first().map_or(0, |program| task_count(&**program)),
            ranks: job.programs.into_iter().map(RankState::new).collect(),
            signals: HashMap::new(),
            start: placed.start,
            end: placed.start,
        }
    }

    /// Its end, or if it has none yet the present.
    fn last(&self, now: SimTime) -> SimTime {
        if self.unfinished == 0 { self.end } else { now }
    }

    fn waits(&self) -> Vec<Wait> {
        let wait = |rank, what| Wait { job: self.name.clone(), rank, what };
        let mut waits = Vec::new();
        for (group, state) in self.groups.iter().zip(&self.group_states) {
            for instance in state.instances.iter().flatten() {
                let absent: Vec<u32> = instance.absent().collect();
                let present = (0..).zip(&group.ranks).filter(|(member, _)| !absent.contains(member));
                for (_, &rank) in present {
                    let of_them = absent.iter().take(MOST_WAITS).map(|&member| group.ranks[member as usize]);
                    waits.extend(of_them.map(|other| wait(rank, format!("rank {other} in group {}", group.name))));
                }
            }
        }
        for (rank, state) in (0..).zip(&self.ranks) {
            waits.extend(state.receives.iter().map(|(_, from, tag)| {
                let from = from.map_or("any rank".into(), |from| format!("rank {from}"));
                let tag = tag.map_or(String::new(), |tag| format!(" with tag {tag}"));
                wait(rank, format!("a message from {from}{tag}"))
            }));
        }
        for (id, signal) in &self.signals {
            let waiting = signal.waiting.iter();
            waits.extend(waiting.map(|(count, rank, _)| {
                wait(*rank, format!("signal {id} to be raised {count} times; it was raised {}", signal.raised))
            }));
        }
        waits
    }
}

impl RankState {
    fn new(program: Box<dyn Program>) -> RankState {
        RankState {
            program,
            is_exhausted: false,
            tasks: VecDeque::new(),
            first: 0,
            waiting: 0,
            processors: BTreeMap::new(),
            arrived: Vec::new(),
            receives: Vec::new(),
            diary: Diary::default(),
        }
    }

    /// # Panics
    /// If the task has not been yielded, or is over and gone.
    fn slot(&mut self, task: TaskId) -> &mut Slot {
        &mut self.tasks[(task - self.first) as usize]
    }

    /// The next task of the program, and the signal it awaits; `None` after the last one, or if the program may not run
    /// ahead any further.
    fn take_up(&mut self) -> Option<(TaskId, Option<(SignalId, u32)>)> {
        if self.waiting >= self.program.lookahead().max(1) {
            return None;
        }
        let Some(task) = self.program.next() else {
            self.is_exhausted = true;
            return None;
        };
        let awaited = task.awaits;
        Some((self.insert(task), awaited))
    }

    fn insert(&mut self, task: Task) -> TaskId {
        let id = self.first + self.tasks.len() as TaskId;
        let mut unmet = 0;
        for (list, starts) in [(&task.after, false), (&task.with, true)] {
            for &before in list {
                assert!(before < id, "task {id} waits for task {before}, which comes after it");
                let Some(at) = before.checked_sub(self.first) else { continue };
                let slot = &mut self.tasks[at as usize];
                match slot.progress {
                    Progress::Ended => continue,
                    Progress::Started if starts => continue,
                    _ if starts => slot.companions.push(id),
                    _ => slot.dependents.push(id),
                }
                unmet += 1;
            }
        }
        self.tasks.push_back(Slot {
            progress: Progress::Waiting,
            unmet,
            work: task.work,
            raises: task.raises,
            dependents: Vec::new(),
            companions: Vec::new(),
        });
        self.waiting += 1;
        id
    }
}

impl GroupState {
    fn new(group: &Group) -> GroupState {
        let calls = (0..).zip(&group.ranks).map(|(member, &rank)| (rank, (member, 0))).collect();
        GroupState { calls, instances: VecDeque::new(), first: 0 }
    }

    /// The `which`-th collective of the group, made if it is not there.
    fn instance(&mut self, which: u32, make: impl FnOnce() -> Instance) -> &mut Instance {
        let at = (which - self.first) as usize;
        while self.instances.len() <= at {
            self.instances.push_back(None);
        }
        self.instances[at].get_or_insert_with(make)
    }

    fn get(&mut self, which: u32) -> Option<&mut Instance> {
        let at = which.checked_sub(self.first)?;
        self.instances.get_mut(at as usize)?.as_mut()
    }

    fn note_start(&mut self, which: u32, now: SimTime) {
        if let Some(instance) = self.get(which) {
            instance.start.get_or_insert(now);
        }
    }

    /// Gives a collective away that all members have ended.
    fn take_over(&mut self, which: u32) -> Option<Instance> {
        let at = which.checked_sub(self.first)? as usize;
        let over = self.instances.get_mut(at)?.take_if(|instance| instance.is_over());
        while self.instances.front().is_some_and(Option::is_none) {
            self.instances.pop_front();
            self.first += 1;
        }
        over
    }
}

#[cfg(test)]
#[path = "engine_tests.rs"]
mod tests;

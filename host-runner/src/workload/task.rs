//! What ranks do: tasks, and the programs that yield them.
//!
//! A job is a set of ranks. Each has a [`Program`], which yields its tasks one after the other; so a long iteration
//! never lies in memory as a whole. A task may start once tasks that the same program yielded before it have ended.
//! Ranks meet in collectives, in sends with their receives, and by signals.

use dyn_clone::DynClone;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;
use wormhole_kernel::Span;

/// Position of a task in its program: the first one yielded is 0.
pub type TaskId = u32;

/// A rank of a job, from 0.
pub type Rank = u32;

/// Index into [`Job::groups`].
pub type GroupId = u32;

/// Index of a counter that all ranks of a job share.
pub type SignalId = u32;

/// A piece of work of one rank.
#[derive(Clone, PartialEq, Debug)]
pub struct Task {
    /// It starts when these have ended. All were yielded before it.
    pub after: Vec<TaskId>,
    /// It starts when these have started. All were yielded before it.
    pub with: Vec<TaskId>,
    /// It starts when a signal has been raised so many times.
    pub awaits: Option<(SignalId, u32)>,
    /// Signals that its end raises, each by one.
    pub raises: Vec<SignalId>,
    /// What is done.
    pub work: Work,
}

impl Task {
    /// Work that starts when the tasks `after` have ended.
    pub fn new(work: Work, after: Vec<TaskId>) -> Task {
        Task { after, with: Vec::new(), awaits: None, raises: Vec::new(), work }
    }
}

/// What a task does.
#[derive(Clone, PartialEq, Debug)]
pub enum Work {
    /// Nothing: it joins or forks others.
    Nothing,
    /// Lets time pass; any number at once.
    Delay(Span),
    /// Occupies a processor of the rank. Tasks of one processor run one at a time, in the order in which they become
    /// ready; of those ready together, the first yielded first.
    Compute {
        /// How long.
        time: Span,
        /// Which processor.
        processor: u32,
    },
    /// Takes part in a collective of a group. The n-th call of each member makes the n-th collective of the group.
    Collective(Call),
    /// Sends a message that a [`Recv`](Work::Recv) of the peer takes. It begins at once and ends with its last
    /// acknowledgement.
    Send {
        /// To whom.
        to: Rank,
        /// Payload bytes.
        bytes: u64,
        /// Messages of one pair and tag are received in the order in which they were sent.
        tag: u64,
    },
    /// Waits for a message; it has arrived when its last acknowledgement has.
    Recv {
        /// From whom; `None`: from anyone.
        from: Option<Rank>,
        /// Of which tag; `None`: of any.
        tag: Option<u64>,
    },
    /// Sends bytes that nobody waits for by a task of its own.
    Put {
        /// To whom.
        to: Rank,
        /// Payload bytes.
        bytes: u64,
    },
}

/// A rank's part in a collective.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Call {
    /// Among whom.
    pub group: GroupId,
    /// Which one. All members must agree.
    pub kind: CollectiveKind,
    /// The size as nccl-tests counts it. All members must agree.
    ///
    /// All-reduce, broadcast: the buffer of each rank. Reduce-scatter: the buffer each rank brings. All-gather: the
    /// buffer each rank ends with, of which it brings one n-th. All-to-all: the buffer each rank brings, of which every
    /// rank gets one n-th.
    pub bytes: u64,
}

/// The collectives.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub enum CollectiveKind {
    /// Everyone gets the sum.
    AllReduce,
    /// Everyone gets a part of the sum.
    ReduceScatter,
    /// Everyone gets the parts of all.
    AllGather,
    /// Everyone gets a part of everyone.
    AllToAll,
    /// Everyone gets what the first member of the group has.
    Broadcast,
    /// Nobody goes on before all have come. It sends nothing.
    Barrier,
}

impl CollectiveKind {
    /// Its name in tables, as nccl-tests has it.
    pub fn name(self) -> &'static str {
        match self {
            CollectiveKind::AllReduce => "all_reduce",
            CollectiveKind::ReduceScatter => "reduce_scatter",
            CollectiveKind::AllGather => "all_gather",
            CollectiveKind::AllToAll => "alltoall",
            CollectiveKind::Broadcast => "broadcast",
            CollectiveKind::Barrier => "barrier",
        }
    }
}

/// Some ranks of a job that do collectives together: a communicator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Group {
    /// What it is called in messages and tables, such as `dp 3`.
    pub name: String,
    /// Its members, each once; their order is that of rings and trees.
    pub ranks: Vec<Rank>,
}

/// Yields the tasks of one rank. A clone yields what is left to be yielded; every run has clones of its own.
pub trait Program: DynClone + Send + Sync {
    /// The next task, `None` after the last one.
    fn next(&mut self) -> Option<Task>;

    /// How many tasks may be yielded and not started. Who runs the program asks for no more, as a driver's launch
    /// queue does; so a program that only makes tasks as it is asked for them stays small.
    fn lookahead(&self) -> usize {
        1_024
    }
}

dyn_clone::clone_trait_object!(Program);

/// A program whose tasks are in memory.
#[derive(Clone)]
pub struct Listed {
    tasks: Arc<[Task]>,
    next: usize,
}

impl Listed {
    /// Yields these.
    pub fn new(tasks: Vec<Task>) -> Listed {
        Listed { tasks: tasks.into(), next: 0 }
    }
}

impl Program for Listed {
    fn next(&mut self) -> Option<Task> {
        let task = self.tasks.get(self.next)?.clone();
        self.next += 1;
        Some(task)
    }

    fn lookahead(&self) -> usize {
        usize::MAX
    }
}

/// What runs together on some hosts.
#[derive(Clone)]
pub struct Job {
    /// One line for people: what it is.
    pub description: String,
    /// The groups.
    pub groups: Vec<Group>,
    /// One program a rank.
    pub programs: Vec<Box<dyn Program>>,
}

impl fmt::Debug for Job {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Job({}, {} ranks)", self.description, self.ranks())
    }
}

impl Job {
    /// Number of ranks.
    pub fn ranks(&self) -> u32 {
        self.programs.len() as u32
    }
}

/// Makes groups, each once however often it is asked for.
#[derive(Default)]
pub struct Groups {
    list: Vec<Group>,
    known: HashMap<Vec<Rank>, GroupId>,
}

impl Groups {
    /// The group of these ranks; `name` counts if it is new.
    pub fn of(&mut self, ranks: Vec<Rank>, name: impl FnOnce() -> String) -> GroupId {
        *self.known.entry(ranks).or_insert_with_key(|ranks| {
            self.list.push(Group { name: name(), ranks: ranks.clone() });
            self.list.len() as GroupId - 1
        })
    }

    /// All groups, by id.
    pub fn into_list(self) -> Vec<Group> {
        self.list
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_groups_are_one() {
        let mut groups = Groups::default();
        let pair = groups.of(vec![0, 1], || "tp 0".into());
        assert_eq!(groups.of(vec![1, 0], || "reversed".into()), pair + 1, "the order counts");
        assert_eq!(groups.of(vec![0, 1], || "again".into()), pair);
        let names: Vec<String> = groups.into_list().into_iter().map(|g| g.name).collect();
        assert_eq!(names, ["tp 0", "reversed"]);
    }
}

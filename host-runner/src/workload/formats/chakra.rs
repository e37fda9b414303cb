//! Chakra execution traces (protobuf, schema 0.0.4): a file per rank, which is a run of messages, each behind its
//! length: metadata, then nodes.
//!
//! Attributes are read from whichever kind of integer they are written as. `comm_size` is what ASTRA-sim 2 takes it
//! for: of an all-gather, the bytes that each rank contributes; of the others, the buffer of each rank.
//!
//! A compute node takes its `duration_micros`; what only says `num_ops` takes no time, because nothing says how fast
//! they are. So do nodes for memory and storage: both are warned of. Nodes with `is_cpu_op` run on processor 1, the
//! others on processor 0. `start_time_micros`, `comm_priority` and tensors mean nothing here.

use super::{MAX_RANKS, listed, waiting_for_one_another};
use crate::input::counted;
use crate::input::diagnostics::Diagnostics;
use crate::workload::graph::arrange;
use crate::workload::task::{Call, CollectiveKind, GroupId, Groups, Job, Rank, Task, TaskId, Work};
use prost::Message;
use std::collections::HashMap;
use std::mem;
use wormhole_kernel::Span;
use wormhole_kernel::units::PS_PER_US;

/// Processor of nodes that run on the GPU.
const GPU: u32 = 0;
/// Processor of nodes that run on the CPU.
const CPU: u32 = 1;

/// Reads the traces of a job, that of rank 0 first, each with its name for messages. `groups` is the file that says
/// which ranks belong to a `pg_name`: JSON such as `{"1": [0, 1]}`. Without it, every collective is among all ranks.
/// What is wrong goes to `found`; `None` if anything is.
pub fn parse(files: &[(&str, &[u8])], groups: Option<(&str, &str)>, found: &mut Diagnostics) -> Option<Job> {
    if files.is_empty() || files.len() > MAX_RANKS as usize {
        found.error(0, "", format!("a job has a trace for each of 1 to {MAX_RANKS} ranks"));
        return None;
    }
    let ranks = files.len() as u32;
    let mut reader = Reader { ranks, ..Reader::default() };
    if let Some((name, json)) = groups {
        let mut faults = Diagnostics::of(name);
        reader.named = Some(named_ranks(json, ranks, &mut faults));
        found.extend(faults);
    }
    let programs: Vec<Vec<Task>> = (0..)
        .zip(files)
        .map(|(rank, (name, bytes))| {
            let mut faults = Diagnostics::of(*name);
            let tasks = reader.program(rank, bytes, &mut faults);
            found.extend(faults);
            tasks
        })
        .collect();
    if found.has_errors() {
        return None;
    }
    let nodes = counted(programs.iter().map(Vec::len).sum(), "node");
    let description =
        format!("Chakra execution trace (schema {}): {}, {nodes}", reader.version, counted(files.len(), "rank"));
    Some(Job { description, groups: reader.groups.into_list(), programs: listed(programs) })
}

/// The first message of a file.
#[derive(Clone, PartialEq, Message)]
struct Metadata {
    #[prost(string, tag = "1")]
    version: String,
}

/// What a rank does, as far as it is used here.
#[derive(Clone, PartialEq, Message)]
struct Node {
    #[prost(uint64, tag = "1")]
    id: u64,
    #[prost(string, tag = "2")]
    name: String,
    #[prost(int32, tag = "3")]
    kind: i32,
    #[prost(uint64, repeated, tag = "4")]
    ctrl_deps: Vec<u64>,
    #[prost(uint64, repeated, tag = "5")]
    data_deps: Vec<u64>,
    #[prost(uint64, tag = "7")]
    duration_micros: u64,
    #[prost(message, repeated, tag = "10")]
    attributes: Vec<Attribute>,
}

#[derive(Clone, PartialEq, Message)]
struct Attribute {
    #[prost(string, tag = "1")]
    name: String,
    #[prost(oneof = "Value", tags = "7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 28, 29")]
    value: Option<Value>,
}

/// Values of the kinds that are used here.
#[derive(Clone, PartialEq, prost::Oneof)]
enum Value {
    #[prost(int32, tag = "7")]
    Int32(i32),
    #[prost(int64, tag = "9")]
    Int64(i64),
    #[prost(uint32, tag = "11")]
    Uint32(u32),
    #[prost(uint64, tag = "13")]
    Uint64(u64),
    #[prost(sint32, tag = "15")]
    Sint32(i32),
    #[prost(sint64, tag = "17")]
    Sint64(i64),
    #[prost(fixed32, tag = "19")]
    Fixed32(u32),
    #[prost(fixed64, tag = "21")]
    Fixed64(u64),
    #[prost(sfixed32, tag = "23")]
    Sfixed32(i32),
    #[prost(sfixed64, tag = "25")]
    Sfixed64(i64),
    #[prost(bool, tag = "27")]
    Bool(bool),
    #[prost(message, tag = "28")]
    Bools(Bools),
    #[prost(string, tag = "29")]
    Text(String),
}

#[derive(Clone, PartialEq, Message)]
struct Bools {
    #[prost(bool, repeated, tag = "1")]
    values: Vec<bool>,
}

impl Value {
    /// `None` if it is no whole number, or below 0.
    fn number(&self) -> Option<u64> {
        match *self {
            Value::Int32(n) | Value::Sint32(n) | Value::Sfixed32(n) => n.try_into().ok(),
            Value::Int64(n) | Value::Sint64(n) | Value::Sfixed64(n) => n.try_into().ok(),
            Value::Uint32(n) | Value::Fixed32(n) => Some(n.into()),
            Value::Uint64(n) | Value::Fixed64(n) => Some(n),
            Value::Bool(_) | Value::Bools(_) | Value::Text(_) => None,
        }
    }
}

impl Node {
    fn attribute(&self, name: &str) -> Option<&Value> {
        self.attributes.iter().find(|a| a.name == name).and_then(|a| a.value.as_ref())
    }

    /// A number that may be missing.
    fn number(&self, name: &str) -> Result<Option<u64>, String> {
        let number = |value: &Value| value.number().ok_or(format!("`{name}` is no whole number, or below 0"));
        self.attribute(name).map(number).transpose()
    }

    fn required(&self, name: &str) -> Result<u64, String> {
        self.number(name)?.ok_or_else(|| format!("it has no `{name}`"))
    }

    /// What `pg_name` says, if it says anything.
    fn communicator(&self) -> Option<String> {
        match self.attribute("pg_name")? {
            Value::Text(name) => Some(name.clone()).filter(|name| !name.is_empty()),
            value => value.number().map(|n| n.to_string()),
        }
    }

    fn title(&self) -> String {
        format!("node {} `{}`", self.id, self.name)
    }
}

/// A node in few bytes: its operands and tensors are gone.
struct Operation {
    id: u64,
    /// How messages call it.
    title: String,
    /// Ids of those it waits for.
    waits_for: Vec<u64>,
    work: Work,
}

/// How many nodes of a file may mean something else than they are taken for.
#[derive(Default)]
struct Doubts {
    memory: usize,
    operations: usize,
    empty_messages: usize,
    unknown_communicators: usize,
}

/// Ranks that do collectives together.
#[derive(Clone)]
struct Communicator {
    id: GroupId,
    /// In ascending order.
    members: Vec<Rank>,
}

#[derive(Default)]
struct Reader {
    ranks: u32,
    /// From the file of communicators, if there is one.
    named: Option<HashMap<String, Vec<Rank>>>,
    /// Those in use, by name; `None`: all ranks.
    communicators: HashMap<Option<String>, Communicator>,
    groups: Groups,
    /// Of the schema, as the last file has it.
    version: String,
    /// About the file that is read.
    doubts: Doubts,
}

impl Reader {
    fn program(&mut self, rank: Rank, file: &[u8], found: &mut Diagnostics) -> Vec<Task> {
        let mut operations = self.operations(rank, file, found);
        mem::take(&mut self.doubts).warn(found);
        operations.sort_by_key(|o| o.id);
        for pair in operations.windows(2).filter(|pair| pair[0].id == pair[1].id) {
            found.error(0, "", format!("{}: {} has the same id", pair[1].title, pair[0].title));
        }
        if found.has_errors() {
            return Vec::new();
        }
        let tasks = operations.iter().map(|o| Task::new(o.work.clone(), places(o, &operations, found))).collect();
        arrange(tasks).unwrap_or_else(|cycle| {
            let names: Vec<String> = cycle.iter().map(|at| operations[*at as usize].title.clone()).collect();
            found.error(0, "", waiting_for_one_another(&names));
            Vec::new()
        })
    }

    /// The nodes of a file, up to the first message that cannot be read.
    fn operations(&mut self, rank: Rank, file: &[u8], found: &mut Diagnostics) -> Vec<Operation> {
        let mut messages = Messages { file, at: 0 };
        match messages.next::<Metadata>() {
            Ok(Some(metadata)) => self.version = metadata.version,
            Ok(None) => found.error(0, "", "the file is empty: a trace begins with its metadata"),
            Err(message) => found.error(0, "", message),
        }
        if found.has_errors() {
            return Vec::new();
        }
        let mut operations = Vec::new();
        loop {
            match messages.next() {
                Ok(Some(node)) => operations.push(self.operation(rank, node, found)),
                Ok(None) if operations.is_empty() => {
                    found.error(0, "", "the trace has metadata only: there are no nodes");
                    return operations;
                }
                Ok(None) => return operations,
                Err(message) => {
                    found.error(0, "", message);
                    return operations;
                }
            }
        }
    }

    fn operation(&mut self, rank: Rank, node: Node, found: &mut Diagnostics) -> Operation {
        let title = node.title();
        let work = self.work(rank, &node).unwrap_or_else(|message| {
            found.error(0, "", format!("{title}: {message}"));
            Work::Nothing
        });
        let waits_for = [node.ctrl_deps, node.data_deps].concat();
        Operation { id: node.id, title, waits_for, work }
    }

    /// What a node does. The numbers of its type are those of `NodeType` in the schema.
    fn work(&mut self, rank: Rank, node: &Node) -> Result<Work, String> {
        match node.kind {
            1 => Ok(Work::Nothing),
            2 | 3 | 8..=10 => {
                self.doubts.memory += 1;
                Ok(Work::Nothing)
            }
            4 => compute(node, &mut self.doubts),
            5 => {
                let (to, bytes, tag) = (self.peer("comm_dst", rank, node)?, node.required("comm_size")?, tag(node)?);
                self.doubts.empty_messages += usize::from(bytes == 0);
                Ok(Work::Send { to, bytes: bytes.max(1), tag })
            }
            6 => Ok(Work::Recv { from: Some(self.peer("comm_src", rank, node)?), tag: Some(tag(node)?) }),
            7 => self.collective(rank, node),
            other => Err(format!("there is no type {other} of nodes")),
        }
    }

    fn peer(&self, attribute: &str, own: Rank, node: &Node) -> Result<Rank, String> {
        let peer = node.required(attribute)?;
        if peer == u64::from(own) {
            return Err(format!("`{attribute}` {peer} is this rank itself"));
        }
        let in_range = u32::try_from(peer).ok().filter(|peer| *peer < self.ranks);
        in_range.ok_or_else(|| format!("`{attribute}` {peer}: there are ranks 0 to {}", self.ranks - 1))
    }

    fn collective(&mut self, rank: Rank, node: &Node) -> Result<Work, String> {
        let kind = collective_kind(node.required("comm_type")?)?;
        let size = match kind {
            CollectiveKind::Barrier => 0,
            _ => node.required("comm_size")?,
        };
        let is_empty = size == 0 && kind != CollectiveKind::Barrier;
        self.doubts.empty_messages += usize::from(is_empty);
        let name = self.communicator_of(node)?;
        let Communicator { id: group, members } = self.communicator(name)?;
        if members.binary_search(&rank).is_err() {
            return Err("its communicator does not have this rank".into());
        }
        let bytes = match kind {
            CollectiveKind::AllGather => size.checked_mul(members.len() as u64).ok_or("`comm_size` is too large")?,
            _ => size,
        };
        let is_nothing = is_empty || members.len() == 1;
        Ok(if is_nothing { Work::Nothing } else { Work::Collective(Call { group: *group, kind, bytes }) })
    }

    /// The name of the communicator of a collective; `None`: all ranks.
    fn communicator_of(&mut self, node: &Node) -> Result<Option<String>, String> {
        let name = node.communicator();
        if name.is_some() && self.named.is_some() {
            return Ok(name);
        }
        if is_partial(node) {
            return Err("`involved_dim` leaves out dimensions: which ranks these are, only `pg_name` can say".into());
        }
        self.doubts.unknown_communicators += usize::from(name.is_some());
        Ok(None)
    }

    fn communicator(&mut self, name: Option<String>) -> Result<&Communicator, String> {
        if !self.communicators.contains_key(&name) {
            let (ranks, title) = match &name {
                None => ((0..self.ranks).collect(), "all".to_owned()),
                Some(name) => {
                    let ranks = self.named.as_ref().and_then(|named| named.get(name)).cloned();
                    (ranks.ok_or_else(|| format!("`pg_name` {name} is no communicator"))?, format!("pg {name}"))
                }
            };
            let mut members = ranks.clone();
            members.sort_unstable();
            let id = self.groups.of(ranks, || title);
            self.communicators.insert(name.clone(), Communicator { id, members });
        }
        Ok(&self.communicators[&name])
    }
}

fn compute(node: &Node, doubts: &mut Doubts) -> Result<Work, String> {
    doubts.operations += usize::from(node.duration_micros == 0 && node.number("num_ops")?.is_some_and(|n| n > 0));
    let time = node.duration_micros.checked_mul(PS_PER_US).ok_or("`duration_micros` is too large")?;
    let is_cpu = node.attribute("is_cpu_op") == Some(&Value::Bool(true));
    Ok(Work::Compute { time: Span(time), processor: if is_cpu { CPU } else { GPU } })
}

/// Messages without a tag have tag 0.
fn tag(node: &Node) -> Result<u64, String> {
    Ok(node.number("comm_tag")?.unwrap_or(0))
}

/// By the numbers of `CollectiveCommType` in the schema.
fn collective_kind(number: u64) -> Result<CollectiveKind, String> {
    match number {
        0 => Ok(CollectiveKind::AllReduce),
        2 => Ok(CollectiveKind::AllGather),
        5 => Ok(CollectiveKind::Broadcast),
        6 => Ok(CollectiveKind::AllToAll),
        7 => Ok(CollectiveKind::ReduceScatter),
        9 => Ok(CollectiveKind::Barrier),
        _ => Err(format!(
            "`comm_type` {number} is not supported: 0 all-reduce, 2 all-gather, 5 broadcast, 6 all-to-all, \
             7 reduce-scatter and 9 barrier are"
        )),
    }
}

fn is_partial(node: &Node) -> bool {
    match node.attribute("involved_dim") {
        Some(Value::Bools(dimensions)) => dimensions.values.contains(&false),
        Some(Value::Bool(involved)) => !involved,
        _ => false,
    }
}

/// Where those are that an operation waits for.
fn places(operation: &Operation, sorted: &[Operation], found: &mut Diagnostics) -> Vec<TaskId> {
    let mut place = |id: &u64| {
        let place = sorted.binary_search_by_key(id, |o| o.id).ok();
        if place.is_none() {
            found.error(0, "", format!("{}: it waits for node {id}, which is not in the file", operation.title));
        }
        place.map(|at| at as TaskId)
    };
    operation.waits_for.iter().filter_map(&mut place).collect()
}

impl Doubts {
    fn warn(self, found: &mut Diagnostics) {
        let mut warn = |count: usize, what: &str| {
            if count > 0 {
                found.warning(0, "", format!("{} {what}", counted(count, "node")));
            }
        };
        warn(self.memory, "for memory or storage: taken to take no time");
        warn(self.operations, "with `num_ops` and no `duration_micros`: taken to take no time");
        warn(self.empty_messages, "with a `comm_size` of 0: collectives do nothing, and a byte is sent as a message");
        warn(self.unknown_communicators, "with a `pg_name`, but no file of communicators: all ranks take part");
    }
}

/// The messages of a file, each behind its length.
struct Messages<'b> {
    file: &'b [u8],
    at: usize,
}

impl Messages<'_> {
    fn next<M: Message + Default>(&mut self) -> Result<Option<M>, String> {
        let begin = self.at;
        let mut rest = &self.file[begin..];
        if rest.is_empty() {
            return Ok(None);
        }
        let at = |message: String| format!("byte {begin}: {message}");
        let length = prost::decode_length_delimiter(&mut rest);
        let length = length.map_err(|_| at("the length of a message cannot be read: torn, or no such trace".into()))?;
        let torn = || at(format!("a message of {length} bytes is torn: there are {}", rest.len()));
        let body = rest.get(..length).ok_or_else(torn)?;
        self.at = self.file.len() - rest.len() + length;
        M::decode(body).map(Some).map_err(|error| at(format!("a message cannot be read: {error}")))
    }
}

/// The ranks of each communicator.
fn named_ranks(json: &str, ranks: u32, found: &mut Diagnostics) -> HashMap<String, Vec<Rank>> {
    let named: HashMap<String, Vec<Rank>> = serde_json::from_str(json).unwrap_or_else(|error| {
        found.error(error.line(), "", format!("expected JSON such as {{\"1\": [0, 1]}}: {error}"));
        HashMap::new()
    });
    let mut names: Vec<&String> = named.keys().collect();
    names.sort_unstable();
    for name in names {
        let mut sorted = named[name].clone();
        sorted.sort_unstable();
        if sorted.is_empty() {
            found.error(0, name, "the communicator has no ranks");
        }
        if sorted.windows(2).any(|pair| pair[0] == pair[1]) {
            found.error(0, name, "the communicator has a rank twice");
        }
        if let Some(rank) = sorted.last().filter(|rank| **rank >= ranks) {
            let message = format!("the communicator has rank {rank}, but there are traces of {ranks} ranks only");
            found.error(0, name, message);
        }
    }
    named
}

#[cfg(test)]
mod tests {
    use super::super::tests::{lines, run};
    use super::*;

    /// A node without attributes.
    fn node(id: u64, kind: i32, waits_for: &[u64]) -> Node {
        Node { id, kind, name: format!("n{id}"), data_deps: waits_for.to_vec(), ..Node::default() }
    }

    /// A node with attributes.
    fn with(mut node: Node, attributes: &[(&str, Value)]) -> Node {
        let attribute = |(name, value): &(&str, Value)| Attribute { name: (*name).into(), value: Some(value.clone()) };
        node.attributes = attributes.iter().map(attribute).collect();
        node
    }

    fn collective(id: u64, kind: i64, bytes: u64) -> Node {
        let attributes = [("comm_type", Value::Int64(kind)), ("comm_size", Value::Uint64(bytes))];
        with(node(id, 7, &[]), &attributes)
    }

    fn encode(nodes: &[Node]) -> Vec<u8> {
        let mut file = Metadata { version: "0.0.4".into() }.encode_length_delimited_to_vec();
        nodes.iter().for_each(|node| file.extend(node.encode_length_delimited_to_vec()));
        file
    }

    /// The job of these files, `0.et` and so on, and what was found.
    fn read(files: &[Vec<u8>], groups: Option<&str>) -> (Option<Job>, Vec<String>) {
        let names: Vec<String> = (0..files.len()).map(|rank| format!("{rank}.et")).collect();
        let files: Vec<(&str, &[u8])> = names.iter().map(String::as_str).zip(files.iter().map(Vec::as_slice)).collect();
        let mut found = Diagnostics::of("x");
        let job = parse(&files, groups.map(|json| ("groups.json", json)), &mut found);
        (job, lines(&found))
    }

    fn good(files: &[Vec<u8>], groups: Option<&str>) -> Job {
        let (job, found) = read(files, groups);
        assert!(found.is_empty(), "{found:?}");
        job.unwrap()
    }

    /// What is wrong with nodes of rank 0 of two.
    fn faults(nodes: &[Node]) -> Vec<String> {
        let (job, found) = read(&[encode(nodes), encode(&[node(0, 1, &[])])], Some(r#"{"3": [1], "4": [0, 1]}"#));
        assert!(job.is_none());
        found
    }

    #[test]
    fn nodes_are_tasks() {
        let compute = Node { duration_micros: 7, ..with(node(9, 4, &[40]), &[("is_cpu_op", Value::Bool(true))]) };
        let send =
            [("comm_dst", Value::Int32(1)), ("comm_size", Value::Uint64(5 << 30)), ("comm_tag", Value::Sint32(3))];
        let send = Node { ctrl_deps: vec![9, 40], ..with(node(0, 5, &[9]), &send) };
        let gpu = Node { duration_micros: 1, ..with(node(40, 4, &[]), &[("is_cpu_op", Value::Bool(false))]) };
        let recv = with(node(2, 6, &[]), &[("comm_src", Value::Fixed64(0)), ("comm_tag", Value::Sfixed32(3))]);
        let job = good(&[encode(&[send, compute, gpu]), encode(&[recv])], None);
        assert_eq!(job.description, "Chakra execution trace (schema 0.0.4): 2 ranks, 4 nodes");
        let tasks = run(job);
        let compute = |us, processor| Work::Compute { time: Span::from_us(us), processor };
        let want = [
            Task::new(compute(1, GPU), vec![]),
            Task::new(compute(7, CPU), vec![0]),
            Task::new(Work::Send { to: 1, bytes: 5 << 30, tag: 3 }, vec![0, 1]),
        ];
        assert_eq!(tasks[0], want);
        assert_eq!(tasks[1], [Task::new(Work::Recv { from: Some(0), tag: Some(3) }, vec![])]);
    }

    #[test]
    fn an_all_gather_is_sized_by_what_each_rank_contributes() {
        let kinds = [(0, 100), (2, 400), (5, 100), (6, 100), (7, 100)];
        let nodes: Vec<Node> = (0..).zip(kinds).map(|(id, (kind, _))| collective(id, kind, 100)).collect();
        let barrier = with(node(9, 7, &[]), &[("comm_type", Value::Int32(9))]);
        let file = encode(&[nodes, vec![barrier]].concat());
        let job = good(&[file.clone(), file.clone(), file.clone(), file], None);
        assert_eq!((job.groups[0].name.as_str(), job.groups[0].ranks.len()), ("all", 4));
        let calls: Vec<(CollectiveKind, u64)> = run(job)[3].iter().map(|t| call(t).expect("a collective")).collect();
        use CollectiveKind::*;
        let want =
            [(AllReduce, 100), (AllGather, 400), (Broadcast, 100), (AllToAll, 100), (ReduceScatter, 100), (Barrier, 0)];
        assert_eq!(calls, want);
    }

    fn call(task: &Task) -> Option<(CollectiveKind, u64)> {
        match &task.work {
            Work::Collective(call) => Some((call.kind, call.bytes)),
            _ => None,
        }
    }

    #[test]
    fn every_kind_of_integer_is_read() {
        let kinds = [
            Value::Int32(77),
            Value::Int64(77),
            Value::Uint32(77),
            Value::Uint64(77),
            Value::Sint32(77),
            Value::Sint64(77),
            Value::Fixed32(77),
            Value::Fixed64(77),
            Value::Sfixed32(77),
            Value::Sfixed64(77),
        ];
        assert!(kinds.iter().all(|value| value.number() == Some(77)));
        assert_eq!((Value::Int64(-1).number(), Value::Bool(true).number()), (None, None));
        // Kind 9, then 13, on the wire: key, value.
        assert_eq!(Attribute { name: String::new(), value: Some(Value::Int64(1)) }.encode_to_vec(), [9 << 3, 1]);
        assert_eq!(Attribute { name: String::new(), value: Some(Value::Uint64(1)) }.encode_to_vec(), [13 << 3, 1]);
    }

    #[test]
    fn communicators_are_named() {
        let named = |name: Value| {
            let mut node = collective(1, 0, 64);
            node.attributes.push(Attribute { name: "pg_name".into(), value: Some(name) });
            encode(&[node])
        };
        let groups = Some(r#"{"1": [2, 0], "2": [1]}"#);
        let files = [named(Value::Text("1".into())), named(Value::Text("2".into())), named(Value::Int64(1))];
        let job = good(&files, groups);
        assert_eq!((job.groups[0].name.as_str(), &job.groups[0].ranks), ("pg 1", &vec![2, 0]));
        let tasks = run(job);
        assert!(call(&tasks[0][0]).is_some() && tasks[0] == tasks[2]);
        assert_eq!(tasks[1][0].work, Work::Nothing, "alone");
        let (without_file, found) = read(&files, None);
        assert_eq!(without_file.unwrap().groups.len(), 1);
        let warning = "1 node with a `pg_name`, but no file of communicators: all ranks take part";
        assert_eq!(found[0], format!("0.et: warning: {warning}"));
        let (_, found) = read(&files, Some(r#"{"1": [2, 0, 2], "3": [], "2": [7]}"#));
        let want = [
            "groups.json: error: the communicator has a rank twice (found `1`)",
            "groups.json: error: the communicator has rank 7, but there are traces of 3 ranks only (found `2`)",
            "groups.json: error: the communicator has no ranks (found `3`)",
            "1.et: error: node 1 `n1`: its communicator does not have this rank",
        ];
        assert_eq!(found, want);
        assert!(read(&files, Some("{\n1")).1[0].starts_with("groups.json:2: error: expected JSON such as"));
    }

    #[test]
    fn every_fault_names_its_node() {
        let pg = |name: &str| Attribute { name: "pg_name".into(), value: Some(Value::Text(name.into())) };
        let (mut other, mut none) = (collective(1, 0, 1), collective(2, 0, 1));
        other.attributes.push(pg("3"));
        none.attributes.push(pg("5"));
        let mut partial = collective(3, 0, 1);
        let dimensions = Value::Bools(Bools { values: vec![true, false] });
        partial.attributes.push(Attribute { name: "involved_dim".into(), value: Some(dimensions) });
        let found = faults(&[
            other,
            none,
            partial,
            collective(4, 1, 1),
            collective(5, 2, u64::MAX),
            node(6, 7, &[]),
            with(node(7, 5, &[]), &[("comm_dst", Value::Int32(2)), ("comm_size", Value::Int32(1))]),
            with(node(8, 6, &[]), &[("comm_src", Value::Int32(0))]),
            with(node(9, 5, &[]), &[("comm_dst", Value::Int32(-1))]),
            with(node(10, 5, &[]), &[("comm_dst", Value::Int32(1))]),
            Node { duration_micros: u64::MAX, ..node(11, 4, &[]) },
            node(12, 77, &[]),
            node(12, 4, &[]),
        ]);
        let want = [
            "1 `n1`: its communicator does not have this rank",
            "2 `n2`: `pg_name` 5 is no communicator",
            "3 `n3`: `involved_dim` leaves out dimensions: which ranks these are, only `pg_name` can say",
            "4 `n4`: `comm_type` 1 is not supported: 0 all-reduce, 2 all-gather, 5 broadcast, 6 all-to-all, \
             7 reduce-scatter and 9 barrier are",
            "5 `n5`: `comm_size` is too large",
            "6 `n6`: it has no `comm_type`",
            "7 `n7`: `comm_dst` 2: there are ranks 0 to 1",
            "8 `n8`: `comm_src` 0 is this rank itself",
            "9 `n9`: `comm_dst` is no whole number, or below 0",
            "10 `n10`: it has no `comm_size`",
            "11 `n11`: `duration_micros` is too large",
            "12 `n12`: there is no type 77 of nodes",
            "12 `n12`: node 12 `n12` has the same id",
        ];
        assert_eq!(found, want.map(|fault| format!("0.et: error: node {fault}")));
    }

    #[test]
    fn missing_nodes_and_cycles_are_errors() {
        let found = faults(&[node(5, 4, &[6]), node(1 << 40, 4, &[5, 7])]);
        let want = [
            "0.et: error: node 5 `n5`: it waits for node 6, which is not in the file",
            "0.et: error: node 1099511627776 `n1099511627776`: it waits for node 7, which is not in the file",
        ];
        assert_eq!(found, want);
        let found = faults(&[node(0, 4, &[3]), node(2, 4, &[3]), node(3, 4, &[2])]);
        assert_eq!(found, ["0.et: error: these wait for one another: node 2 `n2`, node 3 `n3`"]);
        let ring: Vec<Node> = (0..12).map(|id| node(id, 4, &[(id + 1) % 12])).collect();
        assert!(faults(&ring)[0].ends_with("node 9 `n9` and 2 more"));
    }

    #[test]
    fn what_takes_no_time_is_warned_of() {
        let operations = with(node(0, 4, &[]), &[("num_ops", Value::Int64(10))]);
        let empty = with(node(1, 5, &[]), &[("comm_dst", Value::Int32(1)), ("comm_size", Value::Int32(0))]);
        let nodes = [operations, empty, collective(2, 0, 0), node(3, 2, &[]), node(4, 3, &[]), node(5, 1, &[])];
        let (job, found) = read(&[encode(&nodes), encode(&[node(0, 1, &[])])], None);
        let want = [
            "0.et: warning: 2 nodes for memory or storage: taken to take no time",
            "0.et: warning: 1 node with `num_ops` and no `duration_micros`: taken to take no time",
            "0.et: warning: 2 nodes with a `comm_size` of 0: collectives do nothing, and a byte is sent as a message",
        ];
        assert_eq!(found, want);
        let tasks = run(job.unwrap());
        assert_eq!(tasks[0][1].work, Work::Send { to: 1, bytes: 1, tag: 0 });
        assert_eq!(tasks[0][2].work, Work::Nothing);
    }

    #[test]
    fn broken_files_are_named() {
        let good = encode(&[collective(0, 0, 1 << 20)]);
        let torn = good[..good.len() - 1].to_vec();
        let mut bent = good.clone();
        bent[9] = 0xff;
        let (job, found) = read(&[Vec::new(), encode(&[]), torn, bent, vec![0xff; 20]], None);
        assert!(job.is_none());
        let want = [
            "0.et: error: the file is empty: a trace begins with its metadata",
            "1.et: error: the trace has metadata only: there are no nodes",
            "2.et: error: byte 8: a message of 38 bytes is torn: there are 37",
        ];
        assert_eq!(found[..3], want);
        assert!(found[3].starts_with("3.et: error: byte 8: a message cannot be read"), "{}", found[3]);
        assert_eq!(found[4], "4.et: error: byte 0: the length of a message cannot be read: torn, or no such trace");
        assert!(read(&[], None).1[0].starts_with("x: error: a job has a trace for each"));
    }

    #[test]
    fn no_file_is_too_broken() {
        let nodes =
            [collective(0, 2, 1 << 20), node(3, 4, &[0]), with(node(4, 6, &[3, 0]), &[("comm_src", Value::Int64(1))])];
        let file = encode(&nodes);
        for end in 0..file.len() {
            read(&[file[..end].to_vec(), file.clone()], None);
        }
        for at in 0..file.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff, file[at] ^ 1, file[at] ^ 8, file[at].wrapping_add(1)] {
                let mut bent = file.clone();
                bent[at] = byte;
                read(&[bent, file.clone()], None);
            }
        }
    }
}

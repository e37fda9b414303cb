//! The flows of a run that have ended, in order of completion: the latest in memory, and all before in a file, if there
//! is one for them. So memory does not grow with their number.

use crate::workload::messages::MessageName;
use bytemuck::{Pod, Zeroable};
use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use wormhole_kernel::{Completion, NodeId, SimTime, Span};

/// So many go to the file at once, and are read at once.
const BATCH: usize = 1 << 14;

/// One flow that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FlowRecord {
    /// What the kernel says.
    pub completion: Completion,
    /// What the flow is: the same in every run of the scenario.
    pub name: MessageName,
    /// Sending host.
    pub src: NodeId,
    /// Receiving host.
    pub dst: NodeId,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// Priority (802.1p class).
    pub priority: u8,
    /// The least FCT the path allows: the flow alone, at line rate.
    pub ideal: Span,
    /// ns-3's estimate of the FCT of the flow alone, in nanoseconds: the last column of `fct.txt`.
    pub ns3_ideal_ns: u64,
}

/// A record in the file.
#[repr(C)]
#[derive(Clone, Copy, Pod, Zeroable)]
struct Row {
    completion: Completion,
    name: [u64; 2],
    ideal: Span,
    ns3_ideal_ns: u64,
    src: NodeId,
    dst: NodeId,
    src_port: u16,
    dst_port: u16,
    priority: u32,
}

/// Bytes of a record in the file.
const BYTES_IN_FILE: usize = size_of::<Row>();

impl Row {
    fn of(record: &FlowRecord) -> Row {
        Row {
            completion: record.completion,
            name: halves(record.name),
            ideal: record.ideal,
            ns3_ideal_ns: record.ns3_ideal_ns,
            src: record.src,
            dst: record.dst,
            src_port: record.src_port,
            dst_port: record.dst_port,
            priority: record.priority.into(),
        }
    }

    fn record(&self) -> FlowRecord {
        FlowRecord {
            completion: self.completion,
            name: MessageName(u128::from(self.name[0]) << 64 | u128::from(self.name[1])),
            src: self.src,
            dst: self.dst,
            src_port: self.src_port,
            dst_port: self.dst_port,
            priority: self.priority as u8,
            ideal: self.ideal,
            ns3_ideal_ns: self.ns3_ideal_ns,
        }
    }
}

/// In order as the whole is.
fn halves(name: MessageName) -> [u64; 2] {
    [(name.0 >> 64) as u64, name.0 as u64]
}

/// By time, then by name.
fn order(record: &FlowRecord) -> (SimTime, MessageName) {
    (record.completion.start + record.completion.fct, record.name)
}

/// See the module.
#[derive(Clone, Default, Debug)]
pub struct FlowRecords {
    file: Option<Arc<File>>,
    /// The file takes no more.
    is_full: bool,
    in_file: usize,
    recent: Vec<FlowRecord>,
    /// Those that end in one instant are put in the order of their names.
    sorts: bool,
    fct_sum: u128,
    fct_max: Span,
}

impl FlowRecords {
    /// None so far. `sorts`: those that end in one instant are put in the order of their names, so that it does not
    /// depend on how they were simulated.
    pub(crate) fn new(sorts: bool) -> FlowRecords {
        FlowRecords { sorts, ..FlowRecords::default() }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.in_file + self.recent.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// All of them.
    ///
    /// # Errors
    /// Those of the file.
    pub fn iter(&self) -> impl Iterator<Item = io::Result<FlowRecord>> + '_ {
        let batch = |first| match self.read(first) {
            Ok(records) => records.into_iter().map(Ok).collect(),
            Err(fault) => vec![Err(fault)],
        };
        let in_file = (0..self.in_file).step_by(BATCH).flat_map(batch);
        in_file.chain(self.recent.iter().copied().map(Ok))
    }

    fn read(&self, first: usize) -> io::Result<Vec<FlowRecord>> {
        let Some(file) = &self.file else { return Ok(Vec::new()) };
        let mut rows = vec![Row::zeroed(); BATCH.min(self.in_file - first)];
        file.read_exact_at(bytemuck::cast_slice_mut(&mut rows), (first * BYTES_IN_FILE) as u64)?;
        Ok(rows.iter().map(Row::record).collect())
    }

    /// The number of each. A flow of the list has its token; behind those so many listed ones, the flows of jobs have
    /// the places of their names among each other: so a flow has the same number in every run that comes as far.
    ///
    /// # Errors
    /// Those of the file.
    pub fn numbers(&self, listed: usize) -> io::Result<Vec<u32>> {
        let mut names: Vec<([u64; 2], u32)> = Vec::new();
        let mut numbers: Vec<u32> = Vec::with_capacity(self.len());
        for (place, record) in (0..).zip(self.iter()) {
            let FlowRecord { name, completion, .. } = record?;
            if !name.is_of_list() {
                names.push((halves(name), place));
            }
            numbers.push(completion.token as u32);
        }
        names.sort_unstable();
        for (number, (_, place)) in (listed as u32..).zip(names) {
            numbers[place as usize] = number;
        }
        Ok(numbers)
    }

    /// All of them, of a run that was given no file for them.
    ///
    /// # Panics
    /// If some are in a file.
    pub fn in_memory(&self) -> &[FlowRecord] {
        assert!(self.in_file == 0, "{} flows are in a file", self.in_file);
        &self.recent
    }

    /// As [`in_memory`](Self::in_memory), to be changed.
    ///
    /// # Panics
    /// If some are in a file.
    pub fn in_memory_mut(&mut self) -> &mut Vec<FlowRecord> {
        assert!(self.in_file == 0, "{} flows are in a file", self.in_file);
        &mut self.recent
    }

    /// Mean of their FCTs in nanoseconds, 0 of none.
    pub fn mean_fct_ns(&self) -> f64 {
        self.fct_sum as f64 / 1e3 / self.len().max(1) as f64
    }

    /// Greatest of their FCTs in nanoseconds, 0 of none.
    pub fn max_fct_ns(&self) -> f64 {
        self.fct_max.0 as f64 / 1e3
    }

    /// From now on most of them are in this file, which is empty and nobody else's.
    pub(crate) fn keep_in(&mut self, file: File) {
        self.file = Some(Arc::new(file));
    }

    /// Adds one that has ended no earlier than all before.
    pub(crate) fn push(&mut self, record: FlowRecord) {
        self.fct_sum += u128::from(record.completion.fct.0);
        self.fct_max = self.fct_max.max(record.completion.fct);
        let place = match self.sorts {
            true => self.recent.partition_point(|other| order(other) < order(&record)),
            false => self.recent.len(),
        };
        self.recent.insert(place, record);
        if self.recent.len() >= BATCH && !self.is_full {
            self.spill();
        }
    }

    /// Writes what is in memory to the file, if there is one, but for the last instant: more may end in it.
    fn spill(&mut self) {
        let (Some(file), Some(last)) = (&self.file, self.recent.last()) else { return };
        let whole = match self.sorts {
            true => self.recent.partition_point(|other| order(other).0 < order(last).0),
            false => self.recent.len(),
        };
        let rows: Vec<Row> = self.recent[..whole].iter().map(Row::of).collect();
        let written = file.write_all_at(bytemuck::cast_slice(&rows), (self.in_file * BYTES_IN_FILE) as u64);
        // What does not fit on the disk stays in memory: the tables, which are larger, will tell.
        self.is_full = written.is_err();
        if !self.is_full {
            self.in_file += rows.len();
            self.recent.drain(..whole);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every third flow is of the list; those of a job come in the opposite order of their names.
    fn record(place: u64, count: u64) -> FlowRecord {
        let mut completion = Completion::default();
        (completion.token, completion.bytes) = (place, place + 1);
        (completion.start, completion.fct) = (SimTime(place), Span(7_000 * place));
        let name = if place.is_multiple_of(3) { u128::from(place) } else { 1 << 120 | u128::from(count - place) };
        FlowRecord {
            completion,
            name: MessageName(name),
            src: NodeId(place as u32),
            dst: NodeId(1),
            src_port: 7,
            dst_port: 8,
            priority: 3,
            ideal: Span(9),
            ns3_ideal_ns: 10,
        }
    }

    fn records(count: u64, file: Option<File>) -> FlowRecords {
        let mut records = FlowRecords::default();
        file.into_iter().for_each(|file| records.keep_in(file));
        (0..count).for_each(|place| records.push(record(place, count)));
        records
    }

    #[test]
    fn a_file_holds_what_memory_would() {
        for count in [0, 5, BATCH as u64 - 1, BATCH as u64, 3 * BATCH as u64 + 5] {
            let kept = records(count, None);
            let filed = records(count, Some(tempfile::tempfile().expect("a file")));
            assert_eq!((filed.len(), filed.recent.len()), (count as usize, count as usize % BATCH));
            let read: Vec<FlowRecord> = filed.iter().collect::<io::Result<_>>().expect("a file");
            assert!(read == kept.in_memory(), "{count} flows");
            assert_eq!(filed.numbers(7).expect("a file"), kept.numbers(7).expect("memory"));
            assert_eq!((filed.mean_fct_ns(), filed.max_fct_ns()), (kept.mean_fct_ns(), kept.max_fct_ns()));
        }
    }

    #[test]
    fn flows_of_jobs_are_numbered_by_their_names_behind_the_listed_ones() {
        assert_eq!(records(6, None).numbers(100).expect("memory"), [0, 103, 102, 3, 101, 100]);
    }

    #[test]
    fn flows_of_one_instant_are_sorted_by_name_across_batches() {
        // All of a third end together, the last to be named first.
        let count = 3 * (BATCH as u64 - 10);
        let ends_with = |place: u64| place / (count / 3);
        let of = |place: u64| {
            let mut record = record(1, 1);
            (record.completion.start, record.completion.fct) = (SimTime(ends_with(place)), Span(5));
            record.name = MessageName(u128::from(count - place));
            record
        };
        for file in [None, Some(tempfile::tempfile().expect("a file"))] {
            let mut records = FlowRecords::new(true);
            file.into_iter().for_each(|file| records.keep_in(file));
            (0..count).for_each(|place| records.push(of(place)));
            let read: Vec<FlowRecord> = records.iter().collect::<io::Result<_>>().expect("a file");
            assert_eq!(read.len(), count as usize);
            assert!(read.is_sorted_by_key(order));
        }
    }

    #[test]
    fn what_the_disk_does_not_take_stays_in_memory() {
        // It cannot be written to.
        let file = File::open("Cargo.toml").expect("this crate's");
        let records = records(2 * BATCH as u64, Some(file));
        assert_eq!(records.in_memory().len(), 2 * BATCH);
    }
}

//! How large a simulation may grow. All memory follows from these numbers.

/// Capacities of a kernel, besides the size of its fabric.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Flows added and not yet started.
    pub queued_flows: usize,
    /// Flows started and not yet finished.
    pub active_flows: usize,
    /// Frames in queues and on wires.
    pub packets: usize,
    /// Completions and external frames not yet polled.
    pub outputs: usize,
    /// Link changes scheduled and not yet due, and external frames not yet due.
    pub inputs: usize,
    /// Words of memory for the states of partitions; acceleration does without what does not fit.
    pub snapshot_words: usize,
}

impl Default for Limits {
    /// Small: 1,024 flows and 65,536 frames, about 10 MB.
    fn default() -> Limits {
        Limits {
            queued_flows: 1_024,
            active_flows: 1_024,
            packets: 65_536,
            outputs: 1_024,
            inputs: 64,
            snapshot_words: 0,
        }
    }
}

//! What is recorded of a run as it goes: the options, and who observes for each.

use crate::ending::ExitStatus;
use crate::outputs::{EventTrace, PortCapture, SpanTrace};
use crate::scenario::Scenario;
use crate::workload::engine::RankStretch;
use clap::{Args, ValueHint};
use std::cell::RefCell;
use std::fs::File;
use std::io;
use std::path::PathBuf;
use std::str::FromStr;
use wormhole_kernel::accel::{SkippedBy, Tier};
use wormhole_kernel::{NodeId, Observer, PartitionId, SimTime};

/// Traces of a run.
#[derive(Args, Debug)]
#[command(next_help_heading = "Outputs")]
pub(crate) struct RecordingArgs {
    /// Also write a trace of every packet event to this file. Stretches that are skipped leave no trace.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    events: Option<PathBuf>,
    /// Also write a trace of what ranks do when, and of the stretches that are skipped, for Perfetto or Chrome.
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    trace: Option<PathBuf>,
    /// Also write what node A sends to node B and receives from it to a pcap file. May be given several times.
    /// Stretches that are skipped leave no frames.
    #[arg(long, value_name = "A-B=FILE")]
    pcap: Vec<CapturedPort>,
}

/// A port and the file for its frames.
#[derive(Clone, PartialEq, Eq, Debug)]
struct CapturedPort {
    node: NodeId,
    peer: NodeId,
    file: PathBuf,
}

impl FromStr for CapturedPort {
    type Err = String;

    fn from_str(text: &str) -> Result<CapturedPort, String> {
        let expected = || format!("expected A-B=FILE, such as 0-16=port.pcap, not `{text}`");
        let (nodes, file) = text.split_once('=').filter(|(_, file)| !file.is_empty()).ok_or_else(expected)?;
        let (node, peer) = nodes.split_once('-').ok_or_else(expected)?;
        let number = |text: &str| text.parse().map(NodeId).map_err(|_| expected());
        Ok(CapturedPort { node: number(node)?, peer: number(peer)?, file: file.into() })
    }
}

/// What records a run.
#[derive(Default)]
pub(crate) struct Recording {
    events: Option<EventTrace<File>>,
    spans: Option<RefCell<SpanTrace<File>>>,
    ports: Vec<PortCapture>,
}

impl RecordingArgs {
    /// Makes the files. If an option asks for what is not there, this is told on standard error.
    ///
    /// # Errors
    /// Those of the files.
    pub(crate) fn start(&self, scenario: &Scenario) -> io::Result<Result<Recording, ExitStatus>> {
        if scenario.acceleration.tier != Tier::Off && (self.events.is_some() || !self.pcap.is_empty()) {
            eprintln!("warning: stretches that are skipped are not in the trace; --accel off executes every event");
        }
        let mut recording = Recording::default();
        for CapturedPort { node, peer, file } in &self.pcap {
            match PortCapture::create(file, scenario, *node, *peer)? {
                Some(port) => recording.ports.push(port),
                None => {
                    eprintln!("wormhole: --pcap {}-{}: no link joins these nodes", node.0, peer.0);
                    return Ok(Err(ExitStatus::BadInput));
                }
            }
        }
        recording.events = self.events.as_ref().map(File::create).transpose()?.map(EventTrace::new);
        let spans = self.trace.as_ref().map(File::create).transpose()?;
        recording.spans = spans.map(|file| RefCell::new(SpanTrace::new(file, scenario)));
        Ok(Ok(recording))
    }
}

impl Recording {
    /// Whether nothing is recorded.
    pub(crate) fn is_empty(&self) -> bool {
        self.events.is_none() && self.spans.is_none() && self.ports.is_empty()
    }

    /// Who observes the run, and who hears of its ranks.
    pub(crate) fn split(&mut self) -> (impl Observer + '_, Option<RankTrace<'_>>) {
        let Recording { events, spans, ports } = self;
        let spans = spans.as_ref();
        ((events.as_mut(), (spans.map(SkipTrace), &mut ports[..])), spans.map(RankTrace))
    }

    /// Completes the files.
    ///
    /// # Errors
    /// The first of any of them.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.events.map_or(Ok(()), EventTrace::finish)?;
        self.ports.into_iter().try_for_each(PortCapture::finish)?;
        if let Some(spans) = self.spans {
            let left_out = spans.into_inner().finish()?;
            if left_out > 0 {
                eprintln!("warning: the trace is full; {left_out} spans more were left out");
            }
        }
        Ok(())
    }
}

/// Tells the trace what was skipped.
struct SkipTrace<'t>(&'t RefCell<SpanTrace<File>>);

impl Observer for SkipTrace<'_> {
    fn skipped(&mut self, from: SimTime, to: SimTime, partition: PartitionId, by: SkippedBy) {
        self.0.borrow_mut().skipped(from, to, partition, by);
    }
}

/// Tells the trace what ranks have done.
#[derive(Clone, Copy)]
pub(crate) struct RankTrace<'t>(&'t RefCell<SpanTrace<File>>);

impl RankTrace<'_> {
    pub(crate) fn rank(&self, did: &RankStretch) {
        self.0.borrow_mut().rank(did);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_named_by_the_nodes_of_their_link() {
        let port = CapturedPort { node: NodeId(3), peer: NodeId(17), file: "a=b.pcap".into() };
        assert_eq!("3-17=a=b.pcap".parse(), Ok(port));
        for bad in ["", "3-17", "3-17=", "3=x", "a-b=x", "-1-2=x"] {
            assert!(bad.parse::<CapturedPort>().is_err(), "{bad}");
        }
    }
}

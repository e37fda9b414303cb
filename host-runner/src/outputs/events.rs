//! The packet-event trace: one line per thing that happens to a frame.

use std::io::{self, BufWriter, Write};
use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::{Completion, FlowId, Observer, PortId, SimTime};

/// Writes the trace as CSV.
///
/// Columns: `time_ps`; `event` (`start`, `finish` of a flow; `send`, `receive`, `drop` of a frame; `pause`, `resume`
/// of a port's priority); `port` (numbered by node, then by link); `flow` for `start` and `finish`; then of a frame
/// its `kind`, its `queue_pair` slot, `seq`, `bytes` and whether it is `marked`. Fields that do not apply are empty.
pub struct EventTrace<W: Write> {
    out: BufWriter<W>,
    /// The first error; nothing is written after it.
    failed: io::Result<()>,
}

impl<W: Write> EventTrace<W> {
    /// A trace with its heading.
    pub fn new(out: W) -> EventTrace<W> {
        let mut trace = EventTrace { out: BufWriter::new(out), failed: Ok(()) };
        trace.line(format_args!("time_ps,event,port,flow,kind,queue_pair,seq,bytes,marked"));
        trace
    }

    /// Writes out what is left.
    ///
    /// # Errors
    /// The first error of any write.
    pub fn finish(mut self) -> io::Result<()> {
        self.failed?;
        self.out.flush()
    }

    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        if self.failed.is_ok() {
            self.failed = writeln!(self.out, "{line}");
        }
    }

    fn frame(&mut self, time: SimTime, event: &str, port: PortId, frame: &Packet) {
        let kind = match frame.kind() {
            PacketKind::Data => "data",
            PacketKind::Ack => "ack",
            PacketKind::Nack => "nack",
            PacketKind::Pause => "pause",
            PacketKind::Resume => "resume",
            PacketKind::External => "external",
        };
        let qp = if frame.qp().is_some() { frame.qp().0.to_string() } else { String::new() };
        let (seq, bytes, marked) = (frame.seq, frame.bytes, frame.is_marked() as u8);
        self.line(format_args!("{},{event},{},,{kind},{qp},{seq},{bytes},{marked}", time.0, port.0));
    }
}

impl<W: Write> Observer for EventTrace<W> {
    fn flow_started(&mut self, time: SimTime, flow: FlowId) {
        self.line(format_args!("{},start,,{},,,,,", time.0, flow.0));
    }

    fn flow_finished(&mut self, time: SimTime, record: &Completion) {
        self.line(format_args!("{},finish,,{},,,,{},", time.0, record.flow.0, record.bytes));
    }

    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(time, "send", port, frame);
    }

    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(time, "receive", port, frame);
    }

    fn dropped(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        self.frame(time, "drop", port, frame);
    }

    fn pfc(&mut self, time: SimTime, port: PortId, priority: u8, pause: bool) {
        let event = if pause { "pause" } else { "resume" };
        self.line(format_args!("{},{event},{},,,,{priority},,", time.0, port.0));
    }
}

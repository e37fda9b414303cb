//! Frames as a pcap file with times in nanoseconds.

use pcap_file::pcap::{PcapHeader, PcapPacket, PcapWriter};
use pcap_file::{DataLink, Endianness, PcapError, TsResolution};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::Path;
use std::time::Duration;
use wormhole_kernel::SimTime;

/// Longer frames are cut.
const SNAP_LENGTH: usize = 1 << 16;

/// See the module. Picoseconds are cut off.
pub(crate) struct Capture {
    file: PcapWriter<BufWriter<File>>,
    /// The first fault; nothing is written after it.
    fault: Option<io::Error>,
}

impl Capture {
    /// Makes the file.
    ///
    /// # Errors
    /// Those of the file.
    pub(crate) fn create(path: &Path) -> io::Result<Capture> {
        let header = PcapHeader {
            snaplen: SNAP_LENGTH as u32,
            datalink: DataLink::ETHERNET,
            ts_resolution: TsResolution::NanoSecond,
            endianness: Endianness::Little,
            ..PcapHeader::default()
        };
        let file = BufWriter::new(File::create(path)?);
        Ok(Capture { file: PcapWriter::with_header(file, header).map_err(io_error)?, fault: None })
    }

    /// A frame has passed.
    pub(crate) fn frame(&mut self, at: SimTime, frame: &[u8]) {
        if self.fault.is_none() {
            let kept = &frame[..frame.len().min(SNAP_LENGTH)];
            let packet = PcapPacket::new(Duration::from_nanos(at.as_ns()), frame.len() as u32, kept);
            self.fault = self.file.write_packet(&packet).map_err(io_error).err();
        }
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first of the file, whenever it was.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self.fault {
            Some(fault) => Err(fault),
            None => self.file.into_writer().flush(),
        }
    }
}

fn io_error(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other),
    }
}

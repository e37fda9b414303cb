//! The queue's AXI4-Stream pins as Rust sees them, and what both kinds of queue do: the RTL and its model.

/// Bytes in a beat: what the queue moves in a clock cycle.
pub(crate) const BEAT: usize = 64;

/// Beats in the queue's memory (`LOG2_DEPTH` of `ecn_queue.v`).
pub(crate) const DEPTH: usize = 256;

/// A beat to be offered to the queue from a cycle on, until it is taken.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Offer {
    /// The first cycle in which it is offered.
    pub(crate) not_before: u64,
    /// TKEEP: bit i says that byte i is there.
    pub(crate) keep: u64,
    /// TLAST: 1 if it ends its frame.
    pub(crate) last: u8,
    /// Zero.
    pub(crate) pad: [u8; 7],
    /// TDATA.
    pub(crate) data: [u8; BEAT],
}

/// What the queue's pins say at the end of a cycle.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Pins {
    /// TKEEP on the way out.
    pub(crate) keep: u64,
    /// Frames marked so far.
    pub(crate) marked: u32,
    /// TREADY on the way in.
    pub(crate) s_ready: u8,
    /// TVALID on the way out.
    pub(crate) m_valid: u8,
    /// TLAST on the way out.
    pub(crate) m_last: u8,
    /// Zero.
    pub(crate) pad: u8,
    /// TDATA on the way out.
    pub(crate) data: [u8; BEAT],
}

// `wrapper.cpp` has the same structs.
const _: () = assert!(size_of::<Offer>() == 88 && size_of::<Pins>() == 80);

impl Pins {
    /// After a reset.
    pub(crate) const IDLE: Pins =
        Pins { keep: 0, marked: 0, s_ready: 0, m_valid: 0, m_last: 0, pad: 0, data: [0; BEAT] };
}

/// A queue, in RTL or as a model.
pub(crate) trait EcnQueue {
    /// Runs `ready.len()` cycles: as many as `pins` has, which are written. A cycle's byte in `ready` is 1 if the other
    /// side takes what the queue gives in it.
    ///
    /// Returns how many of the offered beats the queue has taken: the first ones.
    fn run(&mut self, offers: &[Offer], ready: &[u8], pins: &mut [Pins]) -> usize;
}

/// The beats of a frame, to be offered from a cycle on.
pub(crate) fn beats(frame: &[u8], not_before: u64) -> impl Iterator<Item = Offer> {
    let count = frame.len().div_ceil(BEAT);
    frame.chunks(BEAT).enumerate().map(move |(i, chunk)| {
        let mut data = [0; BEAT];
        data[..chunk.len()].copy_from_slice(chunk);
        let keep = u64::MAX >> (BEAT - chunk.len());
        Offer { not_before, keep, last: u8::from(i + 1 == count), pad: [0; 7], data }
    })
}

/// Frames put together again from beats.
#[derive(Default)]
pub(crate) struct Assembler {
    frame: Vec<u8>,
}

impl Assembler {
    /// Takes what the queue gives in a cycle in which the other side is ready; gives the frame that this ends.
    pub(crate) fn take(&mut self, pins: &Pins) -> Option<Vec<u8>> {
        if pins.m_valid == 0 {
            return None;
        }
        self.frame.extend_from_slice(&pins.data[..pins.keep.count_ones() as usize]);
        (pins.m_last != 0).then(|| std::mem::take(&mut self.frame))
    }
}

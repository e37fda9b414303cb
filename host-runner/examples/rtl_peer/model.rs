//! The model of the queue in Rust: equal to `ecn_queue.v` in every pin and every cycle.

use crate::axis::{BEAT, DEPTH, EcnQueue, Offer, Pins};
use std::collections::VecDeque;

/// The queue, registers and all.
pub(crate) struct Model {
    threshold: usize,
    memory: VecDeque<Offer>,
    /// The output register, which keeps what has been in it.
    output: Pins,
    in_frame: bool,
    cycle: u64,
}

impl Model {
    /// A queue after its reset. `threshold` is in beats: while more wait, frames that come in are marked.
    pub(crate) fn new(threshold: u32) -> Model {
        Model {
            threshold: threshold as usize,
            memory: VecDeque::with_capacity(DEPTH),
            output: Pins::IDLE,
            in_frame: false,
            cycle: 0,
        }
    }

    /// One cycle: its pins, and whether the offered beat is taken.
    fn step(&mut self, offer: Option<&Offer>, ready: bool) -> (Pins, bool) {
        let waiting = self.memory.len();
        let pins = Pins { s_ready: u8::from(waiting < DEPTH), ..self.output };

        // The clock's edge. Both sides go by what was there before it.
        if pins.m_valid == 0 || ready {
            self.output.m_valid = 0;
            if let Some(Offer { keep, last, data, .. }) = self.memory.pop_front() {
                self.output = Pins { keep, m_valid: 1, m_last: last, data, ..self.output };
            }
        }
        let taken = offer.filter(|_| waiting < DEPTH);
        if let Some(&(mut beat)) = taken {
            if !self.in_frame && is_capable(&beat.data) && waiting > self.threshold {
                mark(&mut beat.data);
                self.output.marked += 1;
            }
            self.in_frame = beat.last == 0;
            self.memory.push_back(beat);
        }
        (pins, taken.is_some())
    }
}

impl EcnQueue for Model {
    fn run(&mut self, offers: &[Offer], ready: &[u8], pins: &mut [Pins]) -> usize {
        let mut left = offers;
        for (&ready, pins) in ready.iter().zip(pins) {
            let offer = left.first().filter(|offer| offer.not_before <= self.cycle);
            let (seen, taken) = self.step(offer, ready != 0);
            *pins = seen;
            left = &left[usize::from(taken)..];
            self.cycle += 1;
        }
        offers.len() - left.len()
    }
}

/// Whether a frame's first beat is of IPv4, and its transport understands marks: ECT(0) or ECT(1).
fn is_capable(beat: &[u8; BEAT]) -> bool {
    beat[12..14] == [0x08, 0x00] && beat[14] >> 4 == 4 && matches!(beat[15] & 3, 1 | 2)
}

/// Sets "congestion experienced", and corrects the header checksum (RFC 1624, equation 3).
fn mark(beat: &mut [u8; BEAT]) {
    let grown = u32::from(3 - (beat[15] & 3));
    beat[15] |= 3;
    let checksum = u16::from_be_bytes([beat[24], beat[25]]);
    let sum = u32::from(!checksum) + grown;
    let folded = (sum & 0xffff) + (sum >> 16);
    beat[24..26].copy_from_slice(&(!(folded as u16)).to_be_bytes());
}

//! The two one-way rings of a connection.
//!
//! A slot has a header of 64 bytes and a payload. Bytes 48 to 55 are the time stamp; byte 63 says whose the slot is
//! (bit 7: 0 the producer's, 1 the consumer's) and what is in it. Of a packet, bytes 0 and 1 are its length and byte 2
//! is a port number, which is not used here. The side that owns a slot hands it over by writing byte 63, last.

use super::layout::{Layout, SLOT_HEADER};
use super::shm::{AtomicU64, Shm, WORD};
use std::fmt;
use std::rc::Rc;
use std::sync::atomic::Ordering::{Acquire, Relaxed, Release};

/// Words of a slot's header: length and port, the time stamp, owner and type.
const INFO: usize = 0;
const STAMP: usize = 6;
const OWNER: usize = 7;
const PAYLOAD: usize = SLOT_HEADER / WORD;

/// Byte 63 is the last of its word.
const TYPE_SHIFT: u32 = 56;
const CONSUMERS: u8 = 0x80;

const SYNC: u8 = 0;
const TERMINATE: u8 = 1;
const PACKET: u8 = 0x40;

/// What a slot holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Message {
    /// Nothing but its time stamp.
    Sync,
    /// Nothing comes after it.
    Terminate,
    /// An Ethernet frame, without check sequence.
    Packet(Vec<u8>),
}

/// What kind of message the next one is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Kind {
    /// [`Message::Sync`].
    Sync,
    /// [`Message::Terminate`].
    Terminate,
    /// [`Message::Packet`].
    Packet,
}

/// A slot with something in it that cannot be.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BadSlot {
    slot: usize,
    what: String,
}

impl fmt::Display for BadSlot {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "slot {} of the ring has {}", self.slot, self.what)
    }
}

/// One side of a ring.
struct Ring {
    memory: Rc<Shm>,
    layout: Layout,
    /// The slot that comes next.
    next: usize,
}

impl Ring {
    fn slot(&self) -> &[AtomicU64] {
        let Layout { offset, slot, .. } = self.layout;
        &self.memory.words()[(offset + self.next * slot) / WORD..][..slot / WORD]
    }

    /// Type of the message in the slot that comes next, and whether the slot is the consumer's.
    fn owner(&self) -> (u8, bool) {
        let own_type = (u64::from_le(self.slot()[OWNER].load(Acquire)) >> TYPE_SHIFT) as u8;
        (own_type & !CONSUMERS, own_type & CONSUMERS != 0)
    }

    /// Gives the slot to the other side, and goes on to the next.
    fn hand_over(&mut self, own_type: u8) {
        self.slot()[OWNER].store((u64::from(own_type) << TYPE_SHIFT).to_le(), Release);
        self.next = (self.next + 1) % self.layout.slots;
    }
}

/// The side that sends.
pub(super) struct Producer(Ring);

impl Producer {
    /// For a ring that lies within the memory.
    pub(super) fn new(memory: Rc<Shm>, layout: Layout) -> Producer {
        Producer(Ring { memory, layout, next: 0 })
    }

    /// The most bytes of a packet.
    pub(super) fn longest_packet(&self) -> usize {
        // The length of a packet has 16 bits.
        self.0.layout.longest_packet().min(usize::from(u16::MAX))
    }

    /// Sends a message, if there is room for it. A packet must not be too long.
    pub(super) fn send(&mut self, stamp: u64, message: &Message) -> bool {
        if self.0.owner().1 {
            return false;
        }
        let slot = self.0.slot();
        let own_type = match message {
            Message::Sync => SYNC,
            Message::Terminate => TERMINATE,
            Message::Packet(frame) => {
                slot[INFO].store((frame.len() as u64).to_le(), Relaxed);
                for (word, bytes) in slot[PAYLOAD..].iter().zip(frame.chunks(WORD)) {
                    let mut whole = [0; WORD];
                    whole[..bytes.len()].copy_from_slice(bytes);
                    word.store(u64::from_ne_bytes(whole), Relaxed);
                }
                PACKET
            }
        };
        slot[STAMP].store(stamp.to_le(), Relaxed);
        self.0.hand_over(own_type | CONSUMERS);
        true
    }
}

/// The side that receives.
pub(super) struct Consumer(Ring);

impl Consumer {
    /// For a ring that lies within the memory.
    pub(super) fn new(memory: Rc<Shm>, layout: Layout) -> Consumer {
        Consumer(Ring { memory, layout, next: 0 })
    }

    /// Time stamp and kind of the next message, if there is one.
    ///
    /// # Errors
    /// It is of a kind that there is not.
    pub(super) fn peek(&self) -> Result<Option<(u64, Kind)>, BadSlot> {
        let (own_type, is_there) = self.0.owner();
        if !is_there {
            return Ok(None);
        }
        let kind = match own_type {
            SYNC => Kind::Sync,
            TERMINATE => Kind::Terminate,
            PACKET => Kind::Packet,
            other => return Err(self.bad(format!("a message of unknown type {other:#04x}"))),
        };
        Ok(Some((u64::from_le(self.0.slot()[STAMP].load(Relaxed)), kind)))
    }

    /// Takes the message that [`peek`](Self::peek) has told of.
    ///
    /// # Errors
    /// A packet is longer than its slot.
    pub(super) fn take(&mut self, kind: Kind) -> Result<Message, BadSlot> {
        let (message, own_type) = match kind {
            Kind::Sync => (Message::Sync, SYNC),
            Kind::Terminate => (Message::Terminate, TERMINATE),
            Kind::Packet => (Message::Packet(self.packet()?), PACKET),
        };
        self.0.hand_over(own_type);
        Ok(message)
    }

    /// The packet in the next slot. Its length is read once: it may change meanwhile.
    fn packet(&self) -> Result<Vec<u8>, BadSlot> {
        let slot = self.0.slot();
        let length = usize::from(u64::from_le(slot[INFO].load(Relaxed)) as u16);
        let most = self.0.layout.longest_packet();
        if length > most {
            return Err(self.bad(format!("a packet of {length} bytes, where {most} have room")));
        }
        let words = slot[PAYLOAD..].iter().take(length.div_ceil(WORD));
        let mut frame: Vec<u8> = words.flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect();
        frame.truncate(length);
        Ok(frame)
    }

    fn bad(&self, what: String) -> BadSlot {
        BadSlot { slot: self.0.next, what }
    }
}

#[cfg(test)]
mod tests {
    use super::super::shm;
    use super::*;

    const LAYOUT: Layout = Layout { offset: 64, slot: 128, slots: 3 };

    fn memory() -> Rc<Shm> {
        let file = shm::create(None, 4_096).expect("a file");
        Rc::new(Shm::map(&file, 4_096).expect("a mapping"))
    }

    /// Bytes as they lie in the memory.
    fn bytes(memory: &Shm, from: usize, length: usize) -> Vec<u8> {
        let words = memory.words()[from / WORD..].iter().take(length / WORD);
        words.flat_map(|word| word.load(Relaxed).to_ne_bytes()).collect()
    }

    fn poke(memory: &Shm, at: usize, byte: u8) {
        let word = &memory.words()[at / WORD];
        let mut bytes = word.load(Relaxed).to_ne_bytes();
        bytes[at % WORD] = byte;
        word.store(u64::from_ne_bytes(bytes), Relaxed);
    }

    #[test]
    fn slots_have_the_bytes_of_the_protocol() {
        let memory = memory();
        let mut producer = Producer::new(memory.clone(), LAYOUT);
        assert!(producer.send(0x0102_0304_0506_0708, &Message::Packet(vec![0xaa, 0xbb, 0xcc])));
        let mut slot = [0; 128];
        slot[0] = 3;
        slot[48..56].copy_from_slice(&[8, 7, 6, 5, 4, 3, 2, 1]);
        slot[63] = 0xc0;
        slot[64..67].copy_from_slice(&[0xaa, 0xbb, 0xcc]);
        assert_eq!(bytes(&memory, 64, 128), slot);
        assert!(producer.send(500_000, &Message::Sync) && producer.send(7, &Message::Terminate));
        let stamp = [0x20, 0xa1, 0x07, 0, 0, 0, 0, 0];
        assert_eq!(
            (bytes(&memory, 192 + 48, 8), bytes(&memory, 192 + 56, 8)),
            (stamp.into(), vec![0, 0, 0, 0, 0, 0, 0, 0x80])
        );
        assert_eq!(bytes(&memory, 320 + 56, 8), [0, 0, 0, 0, 0, 0, 0, 0x81]);
        assert!(!producer.send(8, &Message::Sync), "the ring is full");

        let mut consumer = Consumer::new(memory.clone(), LAYOUT);
        assert_eq!(consumer.peek(), Ok(Some((0x0102_0304_0506_0708, Kind::Packet))));
        assert_eq!(consumer.take(Kind::Packet), Ok(Message::Packet(vec![0xaa, 0xbb, 0xcc])));
        assert_eq!(bytes(&memory, 64 + 56, 8), [0, 0, 0, 0, 0, 0, 0, 0x40], "the slot is the producer's again");
        assert!(producer.send(8, &Message::Sync), "there is room again");
    }

    #[test]
    fn messages_come_out_in_order_whatever_their_length() {
        let memory = memory();
        let (mut producer, mut consumer) =
            (Producer::new(memory.clone(), LAYOUT), Consumer::new(memory.clone(), LAYOUT));
        assert_eq!(consumer.peek(), Ok(None));
        for length in 0..=LAYOUT.longest_packet() {
            let frame: Vec<u8> = (0..length as u8).collect();
            assert!(producer.send(length as u64, &Message::Packet(frame.clone())));
            assert_eq!(consumer.peek(), Ok(Some((length as u64, Kind::Packet))));
            assert_eq!(consumer.take(Kind::Packet), Ok(Message::Packet(frame)));
        }
        assert_eq!(consumer.peek(), Ok(None));
    }

    #[test]
    fn garbage_is_told() {
        let memory = memory();
        let mut consumer = Consumer::new(memory.clone(), LAYOUT);
        for own_type in (0x80..=0xff).filter(|t| ![0x80, 0x81, 0xc0].contains(t)) {
            poke(&memory, 64 + 63, own_type);
            let told = consumer.peek().expect_err("no such type").to_string();
            assert_eq!(told, format!("slot 0 of the ring has a message of unknown type {:#04x}", own_type & 0x7f));
        }
        poke(&memory, 64 + 63, 0xc0);
        for (low, high, length) in [(65, 0, 65), (0xff, 0xff, 65_535)] {
            poke(&memory, 64, low);
            poke(&memory, 65, high);
            let told = consumer.take(Kind::Packet).expect_err("too long").to_string();
            assert_eq!(told, format!("slot 0 of the ring has a packet of {length} bytes, where 64 have room"));
        }
        poke(&memory, 64, 64);
        poke(&memory, 65, 0);
        assert!(consumer.take(Kind::Packet).is_ok());
    }
}

//! A SimBricks peer for tests, both sides of the protocol, on its own: it shares no code with what it tests.
//!
//! The shared memory is read and written as the file that it is. Nothing is checked here: a test may say what it likes.

use rustix::fs::{MemfdFlags, memfd_create};
use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use std::collections::VecDeque;
use std::fs::File;
use std::io::{IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::time::{Duration, Instant};

/// Message types, with the owner's bit as the producer sets it.
pub const SYNC: u8 = 0x80;
/// The end.
pub const TERMINATE: u8 = 0x81;
/// An Ethernet frame.
pub const PACKET: u8 = 0xc0;

/// What a listener says: version, flags; offset, slot size and slots of both rings, that to the connecter first; upper
/// protocol, and where its introduction begins.
pub const LISTENER: [u64; 10] = [1, 1, 0, 1_600, 64, 102_400, 1_600, 64, 1, 80];
/// Bytes of memory its rings take.
pub const MEMORY: u64 = 204_800;
/// What a connecter says: version, flags, upper protocol, and where its introduction begins.
pub const CONNECTER: [u64; 4] = [1, 1, 1, 32];

/// No test waits longer: then what it waits for does not come.
const PATIENCE: Duration = Duration::from_secs(300);

/// Waiting for the other side.
struct Wait(Instant);

impl Wait {
    fn begins() -> Wait {
        Wait(Instant::now())
    }

    fn goes_on(&self) {
        assert!(self.0.elapsed() < PATIENCE, "the other side does nothing");
        std::thread::yield_now();
    }
}

/// One side of a ring, in bytes of the memory.
struct Ring {
    offset: u64,
    slot: u64,
    slots: u64,
    next: u64,
}

impl Ring {
    fn new(fields: &[u64]) -> Ring {
        Ring { offset: fields[0], slot: fields[1], slots: fields[2], next: 0 }
    }

    /// Where the slot that comes next is.
    fn at(&self) -> u64 {
        self.offset + self.next % self.slots * self.slot
    }
}

/// One message: its stamp, its type as in the slot, its payload.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Received {
    /// In picoseconds.
    pub stamp: u64,
    /// [`SYNC`], [`TERMINATE`] or [`PACKET`].
    pub own_type: u8,
    /// Empty unless it is a packet.
    pub payload: Vec<u8>,
}

/// A peer whose connection stands.
pub struct Peer {
    /// The connection. A peer that drops it is gone.
    pub socket: UnixStream,
    memory: File,
    incoming: Ring,
    outgoing: Ring,
    /// Time that its messages take, in picoseconds.
    pub latency: u64,
}

/// The bytes of an introduction: its fields, and the four bytes of the upper protocol's.
pub fn intro(fields: &[u64]) -> Vec<u8> {
    fields.iter().flat_map(|field| field.to_le_bytes()).chain([0; 4]).collect()
}

/// A file of shared memory.
///
/// # Panics
/// If the system does not give it.
pub fn memory(bytes: u64) -> File {
    let file =
        File::from(memfd_create("peer", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING).expect("a memory file"));
    file.set_len(bytes).expect("a length");
    file
}

/// Sends bytes, and with them a file if there is one.
///
/// # Panics
/// If it does not work.
pub fn say(socket: &UnixStream, bytes: &[u8], file: Option<&File>) {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let files: Vec<_> = file.iter().map(|file| file.as_fd()).collect();
    if !files.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(&files));
    }
    let sent = sendmsg(socket, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL);
    assert_eq!(sent.expect("the other side is there"), bytes.len());
}

/// Connects to a socket as soon as somebody listens on it.
///
/// # Panics
/// If nobody does.
pub fn dial(path: &Path) -> UnixStream {
    let wait = Wait::begins();
    loop {
        match UnixStream::connect(path) {
            Ok(socket) => return socket,
            Err(_) => wait.goes_on(),
        }
    }
}

/// The fields of the other side's introduction, and the file that comes with it.
fn hear(socket: &UnixStream) -> (Vec<u64>, Option<File>) {
    let mut bytes = [0; 128];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = recvmsg(socket, &mut [IoSliceMut::new(&mut bytes)], &mut control, RecvFlags::empty());
    let length = got.expect("an introduction").bytes;
    let mut file = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(files) = message {
            file = files.map(File::from).next();
        }
    }
    (bytes[..length].as_chunks().0.iter().map(|field| u64::from_le_bytes(*field)).collect(), file)
}

impl Peer {
    /// Connects, with these fields for an introduction.
    ///
    /// # Panics
    /// If there is no sound answer.
    pub fn connect(path: &Path, fields: &[u64], latency: u64) -> Peer {
        let socket = dial(path);
        say(&socket, &intro(fields), None);
        let (theirs, memory) = hear(&socket);
        assert_eq!((theirs.len(), theirs[0], theirs[8], theirs[9]), (10, 1, 1, 80), "a listener's introduction");
        let (incoming, outgoing) = (Ring::new(&theirs[2..5]), Ring::new(&theirs[5..8]));
        Peer { socket, memory: memory.expect("the listener sends its memory"), incoming, outgoing, latency }
    }

    /// Takes a connection, with these fields for an introduction and so many bytes of memory.
    ///
    /// # Panics
    /// If there is no sound answer.
    pub fn accept(listener: &UnixListener, fields: &[u64; 10], bytes: u64, latency: u64) -> Peer {
        let (socket, _) = listener.accept().expect("a connection");
        let memory = memory(bytes);
        say(&socket, &intro(fields), Some(&memory));
        let (theirs, file) = hear(&socket);
        assert_eq!((&theirs[..], file.is_none()), (&[1, theirs[1], 1, 32][..], true), "a connecter's introduction");
        let (outgoing, incoming) = (Ring::new(&fields[2..5]), Ring::new(&fields[5..8]));
        Peer { socket, memory, incoming, outgoing, latency }
    }

    /// Sends a message; `false` if there is no room for it.
    ///
    /// # Panics
    /// If the memory is gone.
    pub fn try_send(&mut self, stamp: u64, own_type: u8, payload: &[u8], length: u16) -> bool {
        let at = self.outgoing.at();
        let mut owner = [0];
        self.memory.read_exact_at(&mut owner, at + 63).expect("the memory");
        if owner[0] & 0x80 != 0 {
            return false;
        }
        let write = |bytes: &[u8], to: u64| self.memory.write_all_at(bytes, at + to).expect("the memory");
        write(payload, 64);
        write(&length.to_le_bytes(), 0);
        write(&stamp.to_le_bytes(), 48);
        write(&[own_type], 63);
        self.outgoing.next += 1;
        true
    }

    /// Sends a message that takes the latency from `now` on, as soon as there is room.
    ///
    /// # Panics
    /// If there is none for long.
    pub fn send(&mut self, now: u64, own_type: u8, payload: &[u8]) {
        let wait = Wait::begins();
        while !self.try_send(now + self.latency, own_type, payload, payload.len() as u16) {
            wait.goes_on();
        }
    }

    /// The next message, if there is one.
    ///
    /// # Panics
    /// If the memory is gone.
    pub fn peek(&self) -> Option<Received> {
        let at = self.incoming.at();
        let mut owner = [0];
        self.memory.read_exact_at(&mut owner, at + 63).expect("the memory");
        if owner[0] & 0x80 == 0 {
            return None;
        }
        let mut slot = vec![0; self.incoming.slot as usize];
        self.memory.read_exact_at(&mut slot, at).expect("the memory");
        let length = if slot[63] == PACKET { usize::from(u16::from_le_bytes([slot[0], slot[1]])) } else { 0 };
        let stamp = u64::from_le_bytes(slot[48..56].try_into().expect("8 bytes"));
        Some(Received { stamp, own_type: slot[63], payload: slot[64..64 + length].to_vec() })
    }

    /// Gives the slot of the message that was seen last back.
    ///
    /// # Panics
    /// If the memory is gone.
    pub fn done(&mut self, message: &Received) {
        let back = [message.own_type & 0x7f];
        self.memory.write_all_at(&back, self.incoming.at() + 63).expect("the memory");
        self.incoming.next += 1;
    }

    /// Waits for a message.
    ///
    /// # Panics
    /// If none comes for long.
    pub fn receive(&mut self) -> Received {
        let wait = Wait::begins();
        loop {
            match self.peek() {
                Some(message) => {
                    self.done(&message);
                    return message;
                }
                None => wait.goes_on(),
            }
        }
    }

    /// Keeps time with the other side, as SimBricks' programs do, up to `until` or until the other side ends it. Sends
    /// `frames` at their times. Gives the packets that have come, with their stamps.
    ///
    /// # Panics
    /// If the other side does nothing for long.
    pub fn play(&mut self, frames: &[(u64, Vec<u8>)], until: u64) -> Vec<(u64, Vec<u8>)> {
        let (mut now, mut told, mut packets) = (0, None, Vec::new());
        let mut frames: VecDeque<_> = frames.iter().collect();
        while now < until {
            while let Some((_, frame)) = frames.front().filter(|(at, _)| *at <= now) {
                self.send(now, PACKET, frame);
                told = Some(now);
                frames.pop_front();
            }
            if told.is_none_or(|told| told + self.latency <= now) {
                self.send(now, SYNC, &[]);
                told = Some(now);
            }
            let wait = Wait::begins();
            let next = loop {
                match self.peek() {
                    Some(message) if message.stamp > now && message.own_type != TERMINATE => break message.stamp,
                    Some(message) => {
                        self.done(&message);
                        match message.own_type {
                            TERMINATE => return packets,
                            PACKET => packets.push((message.stamp, message.payload)),
                            _ => {}
                        }
                    }
                    None => wait.goes_on(),
                }
            };
            let own = frames.front().map_or(u64::MAX, |(at, _)| *at).min(told.unwrap_or(0) + self.latency);
            now = next.min(own).min(until);
        }
        packets
    }
}

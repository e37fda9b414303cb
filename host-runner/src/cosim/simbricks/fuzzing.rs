//! A peer that does as some bytes say.

use super::connect::Connection;
use super::intro::{self, SyncMode};
use super::layout::Layout;
use super::peer::{Arrival, Pace, Peer};
use super::ring::{Consumer, Producer};
use super::shm::{self, Shm, WORD};
use std::os::unix::net::UnixStream;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use wormhole_kernel::{SimTime, Span};

/// Bytes of the shared memory.
const MEMORY: usize = 4_096;
/// The ring to us is in the first half of it, that from us in the second.
const HALF: usize = MEMORY / 2;
const PACE: Pace = Pace { latency: Span(500), interval: Span(100) };

/// Reads an introduction from either side. One that is accepted, written by us, is accepted with the same rings.
///
/// # Panics
/// If it is not.
pub fn simbricks_intro(bytes: &[u8]) {
    for sync in [SyncMode::Off, SyncMode::Optional, SyncMode::Required] {
        for from_listener in [false, true] {
            let Ok(Some(terms)) = intro::read(bytes, from_listener, sync) else { continue };
            assert_eq!(terms.rings.is_some(), from_listener);
            let Some(rings) = terms.rings else { continue };
            assert!(rings.bytes() >= rings.to_connecter.offset.max(rings.to_listener.offset));
            let again = intro::read(&intro::write(sync, Some(&rings)), true, SyncMode::Optional);
            assert_eq!(again.map(|terms| terms.and_then(|terms| terms.rings)), Ok(Some(rings)));
        }
    }
}

/// Writes bytes over the shared memory, a piece after the other, and has them received. Each piece is a place, a
/// length, and the bytes. The first byte says how large slots are.
///
/// # Panics
/// If a frame is longer than a slot, or time does not go on.
pub fn simbricks_ring(bytes: &[u8]) {
    let Some((&first, mut bytes)) = bytes.split_first() else { return };
    let slot = 72 + 8 * usize::from(first % 16);
    let ring = |offset| Layout { offset, slot, slots: HALF / slot };
    let file = shm::create(None, MEMORY).expect("a file");
    let memory = Rc::new(Shm::map(&file, MEMORY).expect("a mapping"));
    let (socket, _other) = UnixStream::pair().expect("sockets");
    socket.set_nonblocking(true).expect("a socket");
    let connection = Connection {
        socket,
        incoming: Consumer::new(memory.clone(), ring(0)),
        outgoing: Producer::new(memory.clone(), ring(HALF)),
        is_synchronised: first & 0x80 == 0,
    };
    let mut peer = Peer::new("peer".into(), connection, PACE);
    let (mut now, mut last) = (SimTime::ZERO, SimTime::ZERO);
    while let [low, high, length, rest @ ..] = bytes {
        let (piece, rest) = rest.split_at(rest.len().min(usize::from(*length)));
        bytes = rest;
        poke(&memory, usize::from(u16::from_le_bytes([*low, *high])), piece);
        while let Ok(Some(arrival)) = peer.receive(now) {
            if let Arrival::Frame(_, frame) = &arrival {
                assert!(frame.len() <= ring(0).longest_packet());
            }
            let (Arrival::Frame(time, _) | Arrival::End(time)) = arrival;
            let time = time.unwrap_or(last);
            assert!(last <= time, "{last:?} is followed by {time:?}");
            last = time;
        }
        peer.send(now, piece.to_vec());
        peer.tell(now);
        peer.flush();
        now = (now + Span(50)).min(peer.horizon().max(now));
        assert!(peer.look_at_socket().is_ok() && !peer.is_lost(now), "the other end of the socket is open");
    }
}

fn poke(memory: &Shm, at: usize, piece: &[u8]) {
    for (at, byte) in (at..).zip(piece) {
        let word = &memory.words()[at % MEMORY / WORD];
        let mut bytes = word.load(Relaxed).to_ne_bytes();
        bytes[at % WORD] = *byte;
        word.store(u64::from_ne_bytes(bytes), Relaxed);
    }
}

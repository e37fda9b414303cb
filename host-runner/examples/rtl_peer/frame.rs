//! Ethernet frames with IPv4 and UDP: what travels through the fabric and the queue.

use wormhole_kernel::NodeId;

/// Bytes of the headers: Ethernet, IPv4, UDP.
const HEADERS: usize = 14 + 20 + 8;

/// The shortest frame, without its check sequence.
pub(crate) const SHORTEST: usize = 60;

/// The longest frame, without its check sequence.
pub(crate) const LONGEST: usize = 1_514;

/// A frame of `bytes` bytes from one host to another that may be marked: ECT(0). It carries its number.
///
/// # Panics
/// If the size is not one of Ethernet.
pub(crate) fn build(src: NodeId, dst: NodeId, number: u32, bytes: usize) -> Vec<u8> {
    assert!((SHORTEST..=LONGEST).contains(&bytes), "frames have {SHORTEST} to {LONGEST} bytes, not {bytes}");
    let mut frame: Vec<u8> = (0..bytes).map(|i| (i as u32).wrapping_mul(number | 1) as u8).collect();
    for (at, host) in [(0, dst), (6, src)] {
        frame[at..at + 6].copy_from_slice(&[2, 0, 0, 0, 0, host.0 as u8]);
    }
    frame[12..14].copy_from_slice(&[0x08, 0x00]);
    let length = ((bytes - 14) as u16).to_be_bytes();
    // Version and header length, ECT(0), length; no fragments, TTL 64, UDP, no checksum yet.
    frame[14..26].copy_from_slice(&[0x45, 2, length[0], length[1], 0, 0, 0x40, 0, 64, 17, 0, 0]);
    for (at, host) in [(26, src), (30, dst)] {
        frame[at..at + 4].copy_from_slice(&[10, 0, 0, host.0 as u8]);
    }
    frame[34..42].copy_from_slice(&[0x12, 0xb7, 0x12, 0xb7, 0, 0, 0, 0]);
    let udp = ((bytes - 34) as u16).to_be_bytes();
    frame[38..40].copy_from_slice(&udp);
    frame[HEADERS..HEADERS + 4].copy_from_slice(&number.to_be_bytes());
    renew_checksum(&mut frame);
    frame
}

/// Its source and destination.
pub(crate) fn ends(frame: &[u8]) -> (NodeId, NodeId) {
    (NodeId(frame[29].into()), NodeId(frame[33].into()))
}

/// The number it carries.
pub(crate) fn number(frame: &[u8]) -> u32 {
    u32::from_be_bytes([frame[42], frame[43], frame[44], frame[45]])
}

/// Whether it says "congestion experienced".
pub(crate) fn is_marked(frame: &[u8]) -> bool {
    frame[15] & 3 == 3
}

/// Sets "congestion experienced".
pub(crate) fn mark(frame: &mut [u8]) {
    frame[15] |= 3;
    renew_checksum(frame);
}

/// The one's-complement sum of the IPv4 header's words: 0xffff if its checksum is right.
pub(crate) fn header_sum(frame: &[u8]) -> u16 {
    let words = frame[14..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
    let sum: u32 = words.sum();
    let folded = (sum & 0xffff) + (sum >> 16);
    ((folded & 0xffff) + (folded >> 16)) as u16
}

fn renew_checksum(frame: &mut [u8]) {
    frame[24..26].fill(0);
    let checksum = !header_sum(frame);
    frame[24..26].copy_from_slice(&checksum.to_be_bytes());
}

//! Ethernet frames as far as the bridge looks at them: addresses, ports, and the ECN field.
//!
//! Frames are without preamble and check sequence, as SimBricks and TAP devices carry them.

use std::fmt;
use std::str::FromStr;

/// Two addresses and a type.
pub(crate) const HEADER: usize = 14;

/// Bytes of the frame check sequence, which is on the wire and nowhere else.
const CHECK_SEQUENCE: usize = 4;

/// The shortest frame on a wire (IEEE 802.3, 4A.4.2).
const SHORTEST: usize = 64;

const TYPE_IPV4: [u8; 2] = [0x08, 0x00];
const TYPE_IPV6: [u8; 2] = [0x86, 0xdd];
const PROTOCOL_TCP: u8 = 6;
const PROTOCOL_UDP: u8 = 17;
/// The bits of ECN in the IPv4 type of service (RFC 3168, 5): 0 if the sender cannot use it, 3 if congestion was met.
const ECN: u8 = 3;

/// An Ethernet address.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Mac(pub(crate) [u8; 6]);

impl Mac {
    /// Whether it names several hosts, as the broadcast address does.
    pub(crate) fn is_group(self) -> bool {
        self.0[0] & 1 != 0
    }
}

impl FromStr for Mac {
    type Err = String;

    fn from_str(text: &str) -> Result<Mac, String> {
        let fault = || "an Ethernet address is six pairs of hexadecimal digits, such as 02:00:00:00:00:01".to_owned();
        let mut bytes = [0; 6];
        let mut pairs = text.split(':');
        for byte in &mut bytes {
            let pair = pairs.next().filter(|p| p.len() == 2 && p.bytes().all(|b| b.is_ascii_hexdigit()));
            *byte = pair.and_then(|p| u8::from_str_radix(p, 16).ok()).ok_or_else(fault)?;
        }
        if pairs.next().is_some() { Err(fault()) } else { Ok(Mac(bytes)) }
    }
}

impl fmt::Display for Mac {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [a, b, c, d, e, g] = self.0;
        write!(f, "{a:02x}:{b:02x}:{c:02x}:{d:02x}:{e:02x}:{g:02x}")
    }
}

/// A frame's destination and source. `None` if it is shorter than its header.
pub(crate) fn addresses(frame: &[u8]) -> Option<(Mac, Mac)> {
    let (destination, rest) = frame.get(..HEADER)?.split_first_chunk()?;
    Some((Mac(*destination), Mac(*rest.first_chunk()?)))
}

/// Bytes of a frame on a wire: with its check sequence, padded if it is short. Preamble and gap are not counted, as
/// they are not for the other frames of a fabric.
pub(crate) fn wire_bytes(frame: &[u8]) -> usize {
    (frame.len() + CHECK_SEQUENCE).max(SHORTEST)
}

/// The ports of UDP or TCP, which tell flows of two hosts apart; zeros if a frame has none, or not all of it is there.
pub(crate) fn ports(frame: &[u8]) -> (u16, u16) {
    transport_header(frame)
        .and_then(|header| Some((u16::from_be_bytes(*header.first_chunk()?), header.get(2..4)?)))
        .map_or((0, 0), |(source, destination)| (source, u16::from_be_bytes([destination[0], destination[1]])))
}

/// The frame from its header of UDP or TCP on.
fn transport_header(frame: &[u8]) -> Option<&[u8]> {
    let packet = frame.get(HEADER..)?;
    let (protocol, header) = match [frame[12], frame[13]] {
        TYPE_IPV4 => {
            // A header has 5 words at least: with fewer there are no ports, but what is in the header itself.
            let words = Some(usize::from(packet.first()? & 0xf)).filter(|words| *words >= 5)?;
            // All fragments of a packet are to take one path, and only the first has ports.
            let is_fragment = packet.get(6)? & 0x3f != 0 || *packet.get(7)? != 0;
            (*packet.get(9)?, packet.get(4 * words..).filter(|_| !is_fragment)?)
        }
        TYPE_IPV6 => (*packet.get(6)?, packet.get(40..)?),
        _ => return None,
    };
    (protocol == PROTOCOL_TCP || protocol == PROTOCOL_UDP).then_some(header)
}

/// Tells the receiver of congestion, if the frame is of IP and its sender can use ECN: both bits are set.
pub(crate) fn mark_congestion(frame: &mut [u8]) {
    let Some((header, packet)) = frame.split_first_chunk_mut::<HEADER>() else { return };
    match [header[12], header[13]] {
        TYPE_IPV4 if packet.len() >= 20 && packet[1] & ECN != 0 => {
            let before = u16::from_be_bytes([packet[0], packet[1]]);
            packet[1] |= ECN;
            let after = u16::from_be_bytes([packet[0], packet[1]]);
            let sum = u16::from_be_bytes([packet[10], packet[11]]);
            packet[10..12].copy_from_slice(&updated_checksum(sum, before, after).to_be_bytes());
        }
        // The traffic class lies across the first two bytes.
        TYPE_IPV6 if packet.len() >= 40 && packet[1] >> 4 & ECN != 0 => packet[1] |= ECN << 4,
        _ => {}
    }
}

/// The Internet checksum after one word has changed (RFC 1624, equation 3).
fn updated_checksum(sum: u16, before: u16, after: u16) -> u16 {
    let mut new = u32::from(!sum) + u32::from(!before) + u32::from(after);
    while new > 0xffff {
        new = (new & 0xffff) + (new >> 16);
    }
    !(new as u16)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From 02:..:01 to 02:..:02, IPv4 with ECT(0), UDP from port 0x1234 to 0x5678. The sum of the header is right.
    const UDP: [u8; 42] = [
        0x02, 0, 0, 0, 0, 2, 0x02, 0, 0, 0, 0, 1, 0x08, 0, // Ethernet
        0x45, 0x02, 0, 28, 0, 0, 0, 0, 64, 17, 0x66, 0xcd, 10, 0, 0, 1, 10, 0, 0, 2, // IPv4
        0x12, 0x34, 0x56, 0x78, 0, 8, 0, 0, // UDP
    ];

    /// The sum over all words of a sound header is all ones (RFC 1071).
    fn is_sound(header: &[u8]) -> bool {
        let words = header.chunks(2).map(|w| u32::from(u16::from_be_bytes([w[0], w[1]])));
        let sum: u32 = words.sum();
        (sum & 0xffff) + (sum >> 16) == 0xffff
    }

    #[test]
    fn addresses_are_read_and_written() {
        let mac = |text: &str| text.parse::<Mac>();
        assert_eq!(mac("02:00:ab:CD:00:ff"), Ok(Mac([2, 0, 0xab, 0xcd, 0, 0xff])));
        assert_eq!(mac("02:00:ab:CD:00:ff").map(|m| m.to_string()), Ok("02:00:ab:cd:00:ff".into()));
        for fault in ["", "02", "02:00:00:00:00", "02:00:00:00:00:00:00", "+2:00:00:00:00:00", "2:0:0:0:0:0"] {
            assert!(mac(fault).is_err(), "{fault}");
        }
        assert_eq!(addresses(&UDP), Some((Mac([2, 0, 0, 0, 0, 2]), Mac([2, 0, 0, 0, 0, 1]))));
        assert_eq!(addresses(&UDP[..13]), None);
        assert!(Mac([0xff; 6]).is_group() && Mac([1, 0, 0x5e, 0, 0, 1]).is_group() && !Mac([2; 6]).is_group());
    }

    #[test]
    fn frames_have_a_check_sequence_and_a_least_length_on_the_wire() {
        assert_eq!([14, 60, 61, 1_514].map(|length| wire_bytes(&vec![0; length])), [64, 64, 65, 1_518]);
    }

    #[test]
    fn ports_are_those_of_udp_and_tcp_only() {
        assert_eq!(ports(&UDP), (0x1234, 0x5678));
        let with = |at: usize, byte: u8| {
            let mut frame = UDP;
            frame[at] = byte;
            ports(&frame)
        };
        assert_eq!(with(23, PROTOCOL_TCP), (0x1234, 0x5678));
        assert_eq!((with(23, 1), with(20, 0x20), with(21, 1), with(12, 9)), ((0, 0), (0, 0), (0, 0), (0, 0)));
        // A header that is shorter than there is any.
        assert_eq!((with(14, 0x40), with(14, 0x44)), ((0, 0), (0, 0)));
        // Options before the ports, which are then not all there.
        assert_eq!(with(14, 0x4f), (0, 0));
        (0..UDP.len()).for_each(|end| assert!(end >= 38 || ports(&UDP[..end]) == (0, 0), "{end} bytes"));
    }

    #[test]
    fn congestion_is_told_to_who_can_use_it_and_the_checksum_stays_right() {
        assert!(is_sound(&UDP[14..34]));
        let mut frame = UDP;
        mark_congestion(&mut frame);
        assert_eq!(frame[15], 0x03);
        assert!(is_sound(&frame[14..34]));

        let mut deaf = UDP;
        deaf[15] = 0;
        let before = deaf;
        mark_congestion(&mut deaf);
        assert_eq!(deaf, before);

        let mut six = [0; 54];
        six[12..16].copy_from_slice(&[0x86, 0xdd, 0x60, 0x20]);
        mark_congestion(&mut six);
        assert_eq!(six[14..16], [0x60, 0x30]);
        (0..UDP.len()).for_each(|end| mark_congestion(&mut UDP.to_vec()[..end]));
    }
}

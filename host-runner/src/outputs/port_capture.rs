//! What a port sends and receives, as a pcap file: headers of RoCEv2 as the simulated frames would have them.
//!
//! A simulated frame has no bytes: behind its headers are zeros, up to its length on the simulated wire.
//!
//! | what | where |
//! |---|---|
//! | hosts | MAC 02:00 and the node's number; IPv4 as ns-3 numbers them, 11.0.0.1 and further by 256 |
//! | priority, ECN | the upper bits of the IPv4 type of service; ECT(0), or CE once a switch has marked the frame |
//! | flow | UDP source port; destination queue pair, which is 16 and the flow's place in the kernel's table |
//! | sequence | BTH packet sequence number: the first byte over the MTU, modulo 2^24. SEND First, then Middle |
//! | ACK, NACK | RC Acknowledge with AETH: ACK, or NAK "PSN sequence error". BECN: the data packet had been marked |
//! | PFC | MAC control frames of IEEE 802.1Qbb |

use crate::capture::Capture;
use crate::input::fct::address;
use crate::scenario::Scenario;
use std::io;
use std::path::Path;
use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::router::RouteKey;
use wormhole_kernel::{NodeId, Observer, PortId, QpId, SimTime};

/// UDP destination port of RoCEv2.
const ROCE_PORT: u16 = 4791;
/// Ethertype of IEEE 802 for experiments: a frame injected from outside, which the simulator knows nothing of.
const LOCAL_EXPERIMENT: u16 = 0x88b5;
/// Length of Ethernet, IPv4, UDP and BTH headers, and of an AETH.
const HEADERS: u32 = 14 + 20 + 8 + 12;
const AETH: u32 = 4;

/// The first queue pairs are for management.
const FIRST_QUEUE_PAIR: u64 = 16;

/// Opcodes of reliable connections (InfiniBand, table 38).
const SEND_FIRST: u8 = 0;
const SEND_MIDDLE: u8 = 1;
const ACKNOWLEDGE: u8 = 17;

/// See the module.
pub struct PortCapture {
    capture: Capture,
    /// The ports, and the node each frame of their links comes from if it does not say so.
    ports: Vec<PortId>,
    node: NodeId,
    peer: NodeId,
    /// Ends of the flow of each queue pair.
    flows: Vec<Option<RouteKey>>,
    mtu: u64,
}

impl PortCapture {
    /// Captures the ports of `node` whose links lead to `peer`; `None` if there are none.
    ///
    /// # Errors
    /// Those of the file.
    pub fn create(path: &Path, scenario: &Scenario, node: NodeId, peer: NodeId) -> io::Result<Option<PortCapture>> {
        let ports = ports_between(scenario, node, peer);
        if ports.is_empty() {
            return Ok(None);
        }
        let (capture, mtu) = (Capture::create(path)?, scenario.transport.mtu.into());
        Ok(Some(PortCapture { capture, ports, node, peer, flows: Vec::new(), mtu }))
    }

    /// Completes the file.
    ///
    /// # Errors
    /// The first of the file, whenever it was.
    pub fn finish(self) -> io::Result<()> {
        self.capture.finish()
    }

    fn frame(&mut self, time: SimTime, frame: &Packet, from: NodeId) {
        let flow = self.flows.get(frame.qp().0 as usize).copied().flatten();
        let mut bytes = match (frame.kind(), flow) {
            (PacketKind::Pause | PacketKind::Resume, _) => pfc(frame, from),
            (PacketKind::Data | PacketKind::Ack | PacketKind::Nack, Some(flow)) => roce(frame, &flow, self.mtu),
            // Of what comes from outside only the length is known.
            _ => [&mac(from)[..], &mac(from), &LOCAL_EXPERIMENT.to_be_bytes()].concat(),
        };
        // The last packet of a flow may be shorter than RoCE's headers are: those of the simulator's model are.
        let length = bytes.len().max(frame.bytes as usize);
        bytes.resize(length, 0);
        self.capture.frame(time, &bytes);
    }
}

impl Observer for PortCapture {
    fn queue_pair_opened(&mut self, _time: SimTime, qp: QpId, data: &RouteKey) {
        if self.flows.len() <= qp.index() {
            self.flows.resize(qp.index() + 1, None);
        }
        self.flows[qp.index()] = Some(*data);
    }

    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        if self.ports.contains(&port) {
            self.frame(time, frame, self.node);
        }
    }

    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet) {
        if self.ports.contains(&port) {
            self.frame(time, frame, self.peer);
        }
    }
}

/// Ports of `node` whose links lead to `peer`: the kernel numbers ports by node, then by link.
fn ports_between(scenario: &Scenario, node: NodeId, peer: NodeId) -> Vec<PortId> {
    let ends = || scenario.links.iter().flat_map(|link| [(link.a, link.b), (link.b, link.a)]);
    let first = ends().filter(|(from, _)| *from < node).count() as u32;
    let own = ends().filter(|(from, _)| *from == node);
    (first..).map(PortId).zip(own).filter(|(_, (_, to))| *to == peer).map(|(port, _)| port).collect()
}

fn mac(node: NodeId) -> [u8; 6] {
    let [a, b, c, d] = node.0.to_be_bytes();
    [2, 0, a, b, c, d]
}

/// Ethernet, IPv4, UDP and InfiniBand headers of a packet of a flow.
fn roce(frame: &Packet, flow: &RouteKey, mtu: u64) -> Vec<u8> {
    let is_data = frame.kind() == PacketKind::Data;
    let (src, dst) = if is_data { (flow.src, flow.dst) } else { (flow.dst, flow.src) };
    let length = frame.bytes.max(HEADERS + if is_data { 0 } else { AETH });
    let mut bytes = Vec::with_capacity((HEADERS + AETH) as usize);
    bytes.extend([mac(dst), mac(src)].concat());
    bytes.extend(0x0800u16.to_be_bytes());
    bytes.extend(ipv4(frame, is_data, length - 14, address(src.0), address(dst.0)));
    for word in [flow.src_port, ROCE_PORT, (length - 34) as u16, 0] {
        bytes.extend(word.to_be_bytes());
    }
    let packet = frame.seq / mtu;
    let (opcode, number) = match frame.kind() {
        PacketKind::Data if frame.seq == 0 => (SEND_FIRST, packet),
        PacketKind::Data => (SEND_MIDDLE, packet),
        PacketKind::Nack => (ACKNOWLEDGE, packet),
        // The last packet that has arrived; what is told is the first byte missing.
        _ => (ACKNOWLEDGE, frame.seq.div_ceil(mtu).wrapping_sub(1)),
    };
    let becn = u8::from(!is_data && frame.is_marked()) << 6;
    bytes.extend([opcode, 0, 0xff, 0xff, becn]);
    bytes.extend(low_24_bits(FIRST_QUEUE_PAIR + u64::from(frame.qp().0)));
    bytes.push(0);
    bytes.extend(low_24_bits(number));
    if !is_data {
        // ACK without a limit of credits, or NAK of a sequence error; then the message's number, which is not modelled.
        bytes.push(if frame.kind() == PacketKind::Nack { 0x60 } else { 0x1f });
        bytes.extend([0; 3]);
    }
    bytes
}

fn low_24_bits(number: u64) -> [u8; 3] {
    let [.., a, b, c] = number.to_be_bytes();
    [a, b, c]
}

fn ipv4(frame: &Packet, is_data: bool, length: u32, src: u32, dst: u32) -> [u8; 20] {
    let ecn = match (is_data, frame.is_marked()) {
        (true, true) => 3,
        (true, false) => 2,
        (false, _) => 0,
    };
    let mut header = [0; 20];
    header[0] = 0x45;
    header[1] = frame.priority << 5 | ecn;
    header[2..4].copy_from_slice(&(length as u16).to_be_bytes());
    // Not to be fragmented; time to live; UDP.
    header[6] = 0x40;
    header[8] = 64;
    header[9] = 17;
    header[12..16].copy_from_slice(&src.to_be_bytes());
    header[16..20].copy_from_slice(&dst.to_be_bytes());
    let sum = header.chunks(2).fold(0u32, |sum, word| sum + u32::from(u16::from_be_bytes([word[0], word[1]])));
    let folded = (sum & 0xffff) + (sum >> 16);
    header[10..12].copy_from_slice(&(!(folded as u16)).to_be_bytes());
    header
}

/// A MAC control frame: pause of one priority, for as long as can be or not at all.
fn pfc(frame: &Packet, from: NodeId) -> Vec<u8> {
    let priority = frame.payload as usize % 8;
    let mut bytes = vec![0x01, 0x80, 0xc2, 0, 0, 1];
    bytes.extend(mac(from));
    bytes.extend([0x88, 0x08, 0x01, 0x01, 0, 1 << priority]);
    let quanta = if frame.kind() == PacketKind::Pause { u16::MAX } else { 0 };
    for other in 0..8 {
        bytes.extend(if other == priority { quanta } else { 0 }.to_be_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn flow() -> RouteKey {
        RouteKey { src: NodeId(1), dst: NodeId(0x102), src_port: 10_007, dst_port: 100, packet: 0 }
    }

    #[test]
    fn a_data_packet_has_the_headers_of_rocev2() {
        let mut frame = Packet::default();
        (frame.seq, frame.bytes, frame.priority) = (3_000, 1_048, 3);
        let bytes = roce(&frame, &flow(), 1_000);
        assert_eq!(bytes.len(), 54);
        assert_eq!(bytes[..14], [2, 0, 0, 0, 1, 2, 2, 0, 0, 0, 0, 1, 8, 0]);
        assert_eq!(bytes[14..18], [0x45, 0x62, 0x04, 0x0a], "priority 3, ECT(0), 1034 bytes");
        assert_eq!(bytes[26..34], [11, 0, 1, 1, 11, 1, 2, 1]);
        assert_eq!(bytes[34..42], [0x27, 0x17, 0x12, 0xb7, 0x03, 0xf6, 0, 0]);
        assert_eq!(bytes[42..54], [1, 0, 0xff, 0xff, 0, 0, 0, 16, 0, 0, 0, 3]);
        // The sum of all words, the checksum among them, is all ones.
        let words = bytes[14..34].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]])));
        let sum: u32 = words.sum();
        assert_eq!((sum & 0xffff) + (sum >> 16), 0xffff);
    }

    #[test]
    fn a_short_packet_still_has_room_for_its_headers() {
        let mut frame = Packet::default();
        frame.bytes = 49;
        let bytes = roce(&frame, &flow(), 1_000);
        assert_eq!((bytes.len(), &bytes[16..18], &bytes[38..40]), (54, &[0, 40][..], &[0, 20][..]));
    }
}

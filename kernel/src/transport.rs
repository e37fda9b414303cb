//! Parameters of the reliable transport (RoCEv2 reliable connections): headers, go-back-N, time-outs.

use crate::model::{ConfigHash, ModelId};
use crate::units::Span;

/// Bytes of a PFC frame on the wire.
pub const PFC_BYTES: u32 = 43;
/// Header bytes of a data packet, besides the congestion control's own: Ethernet 14, IPv4 20, UDP 8, sequence 6.
pub const DATA_HEADER_BYTES: u32 = 48;
/// Bytes of an ACK besides the congestion control's own header, and the least an ACK can have (padding).
pub const ACK_BYTES: u32 = 46;
/// Smallest ACK on the wire.
pub const MIN_ACK_BYTES: u32 = 60;

/// Transport parameters, the same for all flows.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transport {
    /// Largest payload of a packet, in bytes.
    pub mtu: u32,
    /// A receiver repeats a NACK for the same byte only after this time.
    pub nack_interval: Span,
    /// Bytes a receiver takes in before it acknowledges every packet (1: from the first on), as ns-3's
    /// `L2_ACK_INTERVAL`.
    pub ack_interval: u64,
    /// Besides, it acknowledges whenever its count is a multiple of this, as ns-3's `L2_CHUNK_SIZE`. 0: never.
    pub chunk: u64,
    /// Go back to the start of the chunk instead of the byte missing, as ns-3's `L2_BACK_TO_ZERO`.
    pub back_to_chunk: bool,
    /// ACKs leave hosts at the control priority: PFC does not hold them there. (In switches they share the data's
    /// priority, as in the reference model.)
    pub ack_control_priority: bool,
    /// Pace packets at the rate the congestion control sets; else at line rate, as with ns-3's `RATE_BOUND 0`.
    pub paced: bool,
    /// Retransmission time-out; doubles with each expiry in a row. `None`: a lost tail packet hangs its flow.
    pub timeout: Option<Span>,
    /// Expiries in a row after which a flow is given up (InfiniBand's retry count).
    pub retries: u32,
    /// Keep to the letter of ns-3 where that is a quirk: a receiver forgets a finished flow and answers its
    /// strays, and a sender that went back twice may believe less sent than acknowledged.
    pub ns3_quirks: bool,
}

impl Default for Transport {
    fn default() -> Transport {
        Transport {
            mtu: 1_000,
            nack_interval: Span::from_us(500),
            ack_interval: 1,
            chunk: 4_000,
            back_to_chunk: false,
            ack_control_priority: false,
            paced: true,
            timeout: Some(Span::from_us(4_000)),
            retries: 7,
            ns3_quirks: false,
        }
    }
}

impl Transport {
    /// Part of every memo key.
    pub fn id(&self) -> ModelId {
        let config = ConfigHash::new()
            .with(self.mtu as u64)
            .with(self.nack_interval.0)
            .with(self.ack_interval)
            .with(self.chunk)
            .with(self.back_to_chunk as u64)
            .with(self.ack_control_priority as u64)
            .with(self.paced as u64)
            .with(self.timeout.map_or(0, |t| t.0))
            .with(self.retries as u64)
            .with(self.ns3_quirks as u64)
            .finish();
        ModelId { name: "go-back-n", version: 1, config }
    }

    /// Bytes on the wire of a data packet with `payload` bytes of a flow whose congestion control adds `header`.
    #[inline(always)]
    pub const fn data_bytes(payload: u32, header: u32) -> u32 {
        payload + DATA_HEADER_BYTES + header
    }

    /// Bytes on the wire of an ACK or NACK.
    #[inline(always)]
    pub const fn ack_bytes(header: u32) -> u32 {
        if ACK_BYTES + header > MIN_ACK_BYTES { ACK_BYTES + header } else { MIN_ACK_BYTES }
    }
}

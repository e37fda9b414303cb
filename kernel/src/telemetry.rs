//! In-band network telemetry (INT): what switches write into data packets, how frames carry it, and the model that
//! decides that.

use crate::error::CapacityError;
use crate::ids::PacketId;
use crate::memory::{Carver, words_for};
use crate::model::ModelId;
use crate::packet::Packet;
use crate::units::{BitRate, SimTime, Span};
use bytemuck::{Pod, Zeroable};
use core::hint::select_unpredictable;

/// Switch hops that fit in a packet's telemetry (the INT header of HPCC, SIGCOMM'19, has five).
pub const MAX_INT_HOPS: usize = 5;

/// One switch hop's telemetry (HPCC, section 3.1): the state of the egress port as the packet leaves it.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Pod, Zeroable)]
pub struct IntHop {
    /// When the packet left, as far as the header can tell.
    pub at: SimTime,
    /// Bytes the port had sent before this packet.
    pub tx_bytes: u64,
    /// Rate of the port.
    pub rate: BitRate,
    /// Bytes the packet left behind in the port's queues.
    pub queue: u64,
}

/// Telemetry as switches write it.
///
/// Who depends on it: the switch, once per telemetry-carrying packet and hop. It stands apart from the
/// congestion control because the header's units belong to the fabric.
pub trait Telemetry {
    /// What a frame carries of a hop. The less it takes, the more frames fit into the caches.
    type Record: Pod;

    /// Part of every memo key.
    fn id(&self) -> ModelId;

    /// What the header holds of a hop: `hop` as the switch sees it, in full precision. Of a hop that has been
    /// [read](Self::read) from a record, it MUST be that record again.
    fn record(&self, hop: &IntHop) -> Self::Record;

    /// What a record tells its reader.
    fn read(&self, record: &Self::Record) -> IntHop;

    /// What the header rounds clock and byte counter down to.
    fn units(&self) -> (Span, u64);

    /// The clock and counter read from a record as distances back from those of `origin`, read from a record of the
    /// same port that is not older.
    fn relative(&self, hop: IntHop, origin: &IntHop) -> IntHop;

    /// The inverse of [`relative`](Self::relative), at any origin.
    fn absolute(&self, relative: IntHop, origin: &IntHop) -> IntHop;
}

/// Telemetry in full precision.
#[derive(Clone, Copy, Debug, Default)]
pub struct ExactTelemetry;

impl Telemetry for ExactTelemetry {
    type Record = IntHop;

    fn id(&self) -> ModelId {
        ModelId { name: "int-exact", version: 1, config: 0 }
    }

    #[inline(always)]
    fn record(&self, hop: &IntHop) -> IntHop {
        *hop
    }

    #[inline(always)]
    fn read(&self, record: &IntHop) -> IntHop {
        *record
    }

    fn units(&self) -> (Span, u64) {
        (Span(1), 1)
    }

    fn relative(&self, hop: IntHop, origin: &IntHop) -> IntHop {
        let at = SimTime(origin.at.0.wrapping_sub(hop.at.0));
        IntHop { at, tx_bytes: origin.tx_bytes.wrapping_sub(hop.tx_bytes), ..hop }
    }

    // Distances back from an origin: measuring them twice gives the hop again.
    fn absolute(&self, relative: IntHop, origin: &IntHop) -> IntHop {
        self.relative(relative, origin)
    }
}

/// The telemetry of all frames: [`MAX_INT_HOPS`] records of type `R` a frame, and as many that nobody reads.
/// Empty if no congestion control reads telemetry.
pub(crate) struct Headers<'a, R> {
    rows: &'a mut [[R; MAX_INT_HOPS]],
}

impl<'a, R: Pod> Headers<'a, R> {
    pub(crate) const fn words(packets: usize, needed: bool) -> usize {
        words_for::<[R; MAX_INT_HOPS]>(Self::rows(packets, needed))
    }

    const fn rows(packets: usize, needed: bool) -> usize {
        if needed { packets + 1 } else { 0 }
    }

    pub(crate) fn carve(carver: &mut Carver<'a>, packets: usize, needed: bool) -> Result<Self, CapacityError> {
        Ok(Headers { rows: carver.take(Self::rows(packets, needed))? })
    }

    /// Whether any packet has telemetry.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn are_needed(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Appends a record to a packet that has telemetry. When the header is full, records wrap around (as in HPCC's INT
    /// header) and the count tells. Which packets have it is hard to guess, so this is no branch: the others' is
    /// written to where nobody reads it.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn push(&mut self, id: PacketId, packet: &mut Packet, record: R) {
        let nobody = self.rows.len() - 1;
        let row = select_unpredictable(packet.telemetry != 0, id.index(), nobody);
        self.rows[row][packet.int_hops as usize % MAX_INT_HOPS] = record;
        packet.int_hops = packet.int_hops.saturating_add(packet.telemetry);
    }

    /// Sets one record of a packet, which counts it already.
    pub(crate) fn set(&mut self, id: PacketId, hop: u8, record: R) {
        self.rows[id.index()][hop as usize % MAX_INT_HOPS] = record;
    }

    /// Reads the records of a packet into `hops`; gives what was read.
    #[cfg_attr(target_pointer_width = "64", inline(always))]
    pub(crate) fn read<'h, T: Telemetry<Record = R>>(
        &self,
        telemetry: &T,
        id: PacketId,
        packet: &Packet,
        hops: &'h mut [IntHop; MAX_INT_HOPS],
    ) -> &'h [IntHop] {
        let count = (packet.int_hops as usize).min(MAX_INT_HOPS);
        if count == 0 {
            return &[];
        }
        for (hop, record) in hops.iter_mut().zip(&self.rows[id.index()][..count]) {
            *hop = telemetry.read(record);
        }
        &hops[..count]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_wrap_and_are_counted() {
        let mut words = [0u64; 128];
        let mut headers = Headers::carve(&mut Carver::new(&mut words), 2, true).unwrap();
        let (mut packet, mut without) = (Packet { telemetry: 1, ..Packet::default() }, Packet::default());
        let mut hops = [IntHop::default(); MAX_INT_HOPS];
        headers.push(PacketId(1), &mut without, IntHop::default());
        let read = headers.read(&ExactTelemetry, PacketId(1), &without, &mut hops);
        assert_eq!((read, without.int_hops), (&[][..], 0));
        for queue in 0..7 {
            headers.push(PacketId(0), &mut packet, IntHop { queue, ..IntHop::default() });
        }
        let read = headers.read(&ExactTelemetry, PacketId(0), &packet, &mut hops);
        assert_eq!((read.len(), packet.int_hops), (MAX_INT_HOPS, 7));
        assert_eq!(hops.map(|hop| hop.queue), [5, 6, 2, 3, 4]);
    }
}

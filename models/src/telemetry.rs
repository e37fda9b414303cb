//! The INT header of profile `ns3`.

use wormhole_kernel::cca::{IntHop, Telemetry};
use wormhole_kernel::ids::PortId;
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::SimTime;

/// Times wrap at 2^24 ns.
pub const TIME_MODULUS_NS: u64 = 1 << 24;
/// Byte counters have 20 bits of units of 128 B times the multiplier.
const BYTE_BITS: u32 = 20;
const BYTE_UNIT: u64 = 128;
/// Queue lengths have 17 bits of units of 80 B times the multiplier.
const QUEUE_BITS: u32 = 17;
const QUEUE_UNIT: u64 = 80;

/// HPCC's INT header as ns-3 packs it (`IntHop`): coarse counters that wrap, multiplied back for the reader.
#[derive(Clone, Copy, Debug)]
pub struct Ns3Telemetry {
    /// `INT_MULTI`: scales the units to fast links. At least 1.
    pub multiplier: u64,
}

impl Ns3Telemetry {
    /// Where the byte counter wraps, in bytes.
    pub fn byte_modulus(&self) -> u64 {
        (BYTE_UNIT * self.multiplier) << BYTE_BITS
    }
}

impl Telemetry for Ns3Telemetry {
    fn id(&self) -> ModelId {
        ModelId { name: "int-ns3", version: 1, config: ConfigHash::new().with(self.multiplier).finish() }
    }

    #[inline(always)]
    fn record(&self, hop: IntHop, _port: PortId) -> IntHop {
        IntHop {
            at: SimTime::from_ns(hop.at.as_ns() % TIME_MODULUS_NS),
            tx_bytes: coarse(hop.tx_bytes, BYTE_UNIT * self.multiplier, BYTE_BITS),
            queue: coarse(hop.queue, QUEUE_UNIT * self.multiplier, QUEUE_BITS),
            rate: hop.rate,
        }
    }
}

/// A counter in whole units, with so many bits of them. Divisions are slow, and most queues are empty.
#[inline(always)]
fn coarse(value: u64, unit: u64, bits: u32) -> u64 {
    if value < unit {
        return 0;
    }
    let units = if unit.is_power_of_two() { value >> unit.trailing_zeros() } else { value / unit };
    units % (1 << bits) * unit
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::units::BitRate;

    #[test]
    fn counters_are_coarse_and_wrap() {
        let header = Ns3Telemetry { multiplier: 4 };
        let hop = IntHop {
            at: SimTime::from_ns(TIME_MODULUS_NS + 5),
            tx_bytes: header.byte_modulus() + 1_000,
            rate: BitRate(1),
            queue: 959,
        };
        let seen = header.record(hop, PortId(0));
        assert_eq!((seen.at, seen.tx_bytes, seen.queue), (SimTime::from_ns(5), 512, 640));
    }
}

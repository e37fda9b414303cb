//! The INT header of profile `ns3`.

use bytemuck::{Pod, Zeroable};
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::telemetry::{IntHop, Telemetry};
use wormhole_kernel::units::{BitRate, SimTime, Span};

/// The clock has 24 bits of nanoseconds.
const TIME_BITS: u32 = 24;
/// Where it wraps.
pub const TIME_MODULUS_NS: u64 = 1 << TIME_BITS;
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

/// A record: as in ns-3 a word of clock, byte counter and queue. The rate stands beside it, as any rate will do here.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub struct Ns3IntHop {
    /// From the least significant bit: 24 bits of clock, 20 of bytes, 17 of queue.
    fields: u64,
    rate: BitRate,
}

impl Ns3Telemetry {
    /// Where the byte counter wraps, in bytes.
    pub fn byte_modulus(&self) -> u64 {
        (BYTE_UNIT * self.multiplier) << BYTE_BITS
    }
}

impl Telemetry for Ns3Telemetry {
    type Record = Ns3IntHop;

    fn id(&self) -> ModelId {
        ModelId { name: "int-ns3", version: 1, config: ConfigHash::new().with(self.multiplier).finish() }
    }

    #[inline(always)]
    fn record(&self, hop: &IntHop) -> Ns3IntHop {
        let clock = hop.at.as_ns() & mask(TIME_BITS);
        let bytes = units(hop.tx_bytes, BYTE_UNIT * self.multiplier) & mask(BYTE_BITS);
        let queue = units(hop.queue, QUEUE_UNIT * self.multiplier) & mask(QUEUE_BITS);
        Ns3IntHop { fields: clock | bytes << TIME_BITS | queue << (TIME_BITS + BYTE_BITS), rate: hop.rate }
    }

    #[inline(always)]
    fn read(&self, record: &Ns3IntHop) -> IntHop {
        let Ns3IntHop { fields, rate } = *record;
        IntHop {
            at: SimTime::from_ns(fields & mask(TIME_BITS)),
            tx_bytes: (fields >> TIME_BITS & mask(BYTE_BITS)) * (BYTE_UNIT * self.multiplier),
            queue: (fields >> (TIME_BITS + BYTE_BITS)) * (QUEUE_UNIT * self.multiplier),
            rate,
        }
    }

    fn units(&self) -> (Span, u64) {
        (Span::from_ns(1), BYTE_UNIT * self.multiplier)
    }

    fn relative(&self, hop: IntHop, origin: &IntHop) -> IntHop {
        let at = SimTime(back(origin.at.0, hop.at.0, Span::from_ns(TIME_MODULUS_NS).0));
        IntHop { at, tx_bytes: back(origin.tx_bytes, hop.tx_bytes, self.byte_modulus()), ..hop }
    }

    // Distances back from an origin: measuring them twice gives the hop again.
    fn absolute(&self, relative: IntHop, origin: &IntHop) -> IntHop {
        self.relative(relative, origin)
    }
}

/// How far `value` is back from `origin`; both are below the modulus at which they wrap.
fn back(origin: u64, value: u64, modulus: u64) -> u64 {
    if origin >= value { origin - value } else { origin + (modulus - value) }
}

/// All ones in so many bits.
const fn mask(bits: u32) -> u64 {
    (1 << bits) - 1
}

/// A counter in whole units. Divisions are slow, and most queues are empty.
#[inline(always)]
fn units(value: u64, unit: u64) -> u64 {
    if value < unit {
        0
    } else if unit.is_power_of_two() {
        value >> unit.trailing_zeros()
    } else {
        value / unit
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_coarse_and_wrap() {
        let header = Ns3Telemetry { multiplier: 4 };
        let hop = IntHop {
            at: SimTime::from_ns(TIME_MODULUS_NS + 5),
            tx_bytes: header.byte_modulus() + 1_000,
            rate: BitRate(1),
            queue: 959,
        };
        let seen = header.read(&header.record(&hop));
        assert_eq!((seen.at, seen.tx_bytes, seen.queue), (SimTime::from_ns(5), 512, 640));
        assert_eq!(header.record(&seen), header.record(&hop));
    }

    #[test]
    fn records_move_with_their_origin_over_the_wrap() {
        let header = Ns3Telemetry { multiplier: 4 };
        let (time, bytes) = header.units();
        let record = |ticks: u64, units: u64, queue| {
            let at = SimTime(time.0 * ticks);
            header.read(&header.record(&IntHop { at, tx_bytes: bytes * units, rate: BitRate(1), queue }))
        };
        let wrap = (TIME_MODULUS_NS, 1 << BYTE_BITS);
        let (ages, starts) = ([0, 1, 1_000, wrap.0 - 1], [0, 1, 999, 1_000, wrap.0 - 1, wrap.0, wrap.0 + 1]);
        for (age, start) in ages.into_iter().flat_map(|age| starts.map(|start| (age, start))) {
            let sent = age % wrap.1;
            let origin = record(start + age, start + sent, 0);
            let relative = header.relative(record(start, start, 960), &origin);
            assert_eq!((relative.at.0, relative.tx_bytes), (age * time.0, sent * bytes), "from {start}");
            assert_eq!(header.absolute(relative, &origin), record(start, start, 960));
            // Elsewhere: past the wrap of one, of the other, of both.
            for (t, b) in [(3, 5), (wrap.0 - 1, 5), (3, wrap.1 - 1), (7 * wrap.0 + 1, 9 * wrap.1 + 1)] {
                let there = record(start + age + t, start + sent + b, 0);
                assert_eq!(header.absolute(relative, &there), record(start + t, start + b, 960));
            }
        }
    }
}

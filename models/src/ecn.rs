//! ECN marking: RED between two thresholds, a step where they are equal.

use crate::hash::mix;
use crate::mrg32k3a::Mrg32k3a;
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::ids::PortId;
use wormhole_kernel::marker::Marker;
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, quotient};

/// Marking thresholds of ports of one rate.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Thresholds {
    /// The port rate they are for.
    pub rate: BitRate,
    /// Up to this many bytes nothing is marked.
    pub kmin: u64,
    /// Above this many bytes everything is marked.
    pub kmax: u64,
    /// Probability just below `kmax`, 0 to 1.
    pub pmax: f64,
}

impl Thresholds {
    /// These thresholds in proportion to another rate.
    pub fn scaled_to(&self, rate: BitRate) -> Thresholds {
        let scale = |bytes: u64| quotient(bytes as u128 * rate.0 as u128, self.rate.0.max(1) as u128) as u64;
        Thresholds { rate, kmin: scale(self.kmin), kmax: scale(self.kmax), pmax: self.pmax }
    }
}

/// Where random numbers in [0, 1) come from.
#[derive(Clone, Copy, Debug)]
pub enum Coins {
    /// Per port, from a seed and a counter: independent of everything else.
    PerPort {
        /// The seed.
        seed: u64,
    },
    /// ns-3's: every coin is the first number of the next stream, one sequence for the whole fabric.
    Ns3(Ns3Coins),
}

/// The global sequence of coins of ns-3 (`UniformVariable` made anew for every coin).
#[derive(Clone, Copy, Debug)]
pub struct Ns3Coins {
    next: Mrg32k3a,
}

impl Ns3Coins {
    /// The sequence that begins at stream `first`: set-up has taken those before it.
    pub fn starting_at(first: u64) -> Ns3Coins {
        Ns3Coins { next: Mrg32k3a::stream(first) }
    }

    /// The first coin after the set-up of a fabric of so many nodes and links with losses (NS3-MODEL section 10).
    pub fn after_setup(nodes: usize, lossy_links: usize) -> Ns3Coins {
        Ns3Coins::starting_at(6 * nodes as u64 + 2 * (1 + lossy_links as u64))
    }

    fn draw(&mut self) -> f64 {
        let coin = { self.next }.draw();
        self.skip();
        coin
    }

    fn skip(&mut self) {
        self.next = self.next.next_stream();
    }
}

/// RED on the bytes a frame leaves behind in its queue (ns-3 `SwitchMmu::ShouldSendCN`).
#[derive(Clone, Debug)]
pub struct RedMarker<'a> {
    /// Thresholds by rate; ports of other rates scale those of the nearest lower rate, else of the lowest.
    pub thresholds: &'a [Thresholds],
    /// `false`: nothing is ever marked.
    pub enabled: bool,
    /// Random numbers.
    pub coins: Coins,
}

/// A port's thresholds and its position in its random sequence. Small: every frame that leaves looks at it.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct RedPort {
    /// Thresholds in bytes; at 4 GiB they might as well be higher.
    kmin: u32,
    kmax: u32,
    pmax: f64,
    /// Numbers drawn, from a start of the port's own.
    counter: u64,
}

/// The thresholds for a port rate: listed ones, else those of the nearest lower rate (else the lowest) in proportion.
pub fn thresholds_for(table: &[Thresholds], rate: BitRate) -> Option<Thresholds> {
    let below = table.iter().filter(|t| t.rate <= rate).max_by_key(|t| t.rate);
    let nearest = below.or_else(|| table.iter().min_by_key(|t| t.rate))?;
    Some(if nearest.rate == rate { *nearest } else { nearest.scaled_to(rate) })
}

impl Marker for RedMarker<'_> {
    type Port = RedPort;

    fn id(&self) -> ModelId {
        let coins = match self.coins {
            Coins::PerPort { .. } => ConfigHash::new().with(0),
            Coins::Ns3(_) => ConfigHash::new().with(1),
        };
        let config = self.thresholds.iter().fold(coins.with(self.enabled as u64), |hash, t| {
            hash.with(t.rate.0).with(t.kmin).with(t.kmax).with(t.pmax.to_bits())
        });
        ModelId { name: "red", version: 1, config: config.finish() }
    }

    fn port(&self, port: PortId, info: &PortInfo) -> RedPort {
        let off = Thresholds { rate: info.rate, kmin: u64::MAX, kmax: u64::MAX, pmax: 0.0 };
        let found = if self.enabled { thresholds_for(self.thresholds, info.rate) } else { None };
        let Thresholds { kmin, kmax, pmax, .. } = found.unwrap_or(off);
        let narrow = |bytes: u64| u32::try_from(bytes).unwrap_or(u32::MAX);
        RedPort { kmin: narrow(kmin), kmax: narrow(kmax), pmax, counter: mix(u64::from(port.0)) }
    }

    #[inline(always)]
    fn marks(&mut self, port: &mut RedPort, queue_bytes: u64) -> bool {
        if queue_bytes <= u64::from(port.kmin) {
            return false;
        }
        queue_bytes > u64::from(port.kmax) || self.toss(port, queue_bytes)
    }

    fn position(&self, port: &RedPort) -> u64 {
        port.counter
    }

    fn set_position(&self, port: &mut RedPort, position: u64) {
        port.counter = position;
    }

    fn pfc_built(&mut self) {
        if let Coins::Ns3(coins) = &mut self.coins {
            coins.skip();
        }
    }
}

impl RedMarker<'_> {
    fn toss(&mut self, port: &mut RedPort, queue_bytes: u64) -> bool {
        // Whatever the source: the counter shows that the port has drawn.
        port.counter = port.counter.wrapping_add(1);
        let coin = match &mut self.coins {
            Coins::Ns3(coins) => coins.draw(),
            Coins::PerPort { seed } => {
                let bits = mix(mix(*seed).wrapping_add(port.counter));
                (bits >> 11) as f64 / (1u64 << 53) as f64
            }
        };
        let (kmin, kmax) = (u64::from(port.kmin), u64::from(port.kmax));
        coin < port.pmax * (queue_bytes - kmin) as f64 / (kmax - kmin) as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{MarkerKit, assert_passed};
    use wormhole_kernel::units::Span;

    const G100: BitRate = BitRate::from_gbps(100);
    const TABLE: [Thresholds; 1] = [Thresholds { rate: G100, kmin: 400_000, kmax: 1_600_000, pmax: 0.2 }];

    fn marker() -> RedMarker<'static> {
        RedMarker { thresholds: &TABLE, enabled: true, coins: Coins::PerPort { seed: 7 } }
    }

    fn port(rate: BitRate) -> RedPort {
        marker().port(PortId(3), &PortInfo::detached(rate, Span::ZERO))
    }

    #[test]
    fn probability_rises_between_the_thresholds() {
        let share = |bytes| {
            let (mut marker, mut port) = (marker(), port(G100));
            (0..10_000).filter(|_| marker.marks(&mut port, bytes)).count()
        };
        assert_eq!(share(400_000), 0);
        assert!((900..1_100).contains(&share(1_000_000)), "{}", share(1_000_000));
        assert!((1_900..2_100).contains(&share(1_600_000)), "{}", share(1_600_000));
        assert_eq!(share(1_600_001), 10_000);
    }

    #[test]
    fn equal_thresholds_are_a_step() {
        let table = [Thresholds { kmin: 300_000, kmax: 300_000, pmax: 1.0, ..TABLE[0] }];
        let mut marker = RedMarker { thresholds: &table, ..marker() };
        let mut port = marker.port(PortId(0), &PortInfo::detached(G100, Span::ZERO));
        let before = port.counter;
        assert!(!marker.marks(&mut port, 300_000));
        assert!(marker.marks(&mut port, 300_001));
        assert_eq!(port.counter, before, "a step tosses no coin");
    }

    #[test]
    fn every_coin_is_counted() {
        for coins in [Coins::PerPort { seed: 7 }, Coins::Ns3(Ns3Coins::starting_at(0))] {
            let (mut marker, mut port) = (RedMarker { coins, ..marker() }, port(G100));
            let before = port.counter;
            for bytes in [400_000, 400_001, 1_600_000, 1_600_001] {
                marker.marks(&mut port, bytes);
            }
            assert_eq!(port.counter, before.wrapping_add(2), "only between the thresholds");
        }
    }

    /// NS3-MODEL, section 10: 6 streams for a node, 2 for the run and for each link with losses; then one for a coin,
    /// and one for a PFC frame.
    #[test]
    fn coins_of_ns3_are_the_first_numbers_of_successive_streams() {
        let first = |stream| Mrg32k3a::stream(stream).draw();
        let mut coins = Ns3Coins::after_setup(5, 3);
        assert_eq!([coins.draw(), coins.draw()], [first(38), first(39)]);
        let mut marker = RedMarker { coins: Coins::Ns3(coins), ..marker() };
        marker.pfc_built();
        let Coins::Ns3(mut coins) = marker.coins else { unreachable!("the same kind of coins") };
        assert_eq!(coins.draw(), first(41));
    }

    #[test]
    fn a_port_that_is_put_back_tosses_the_same_coins() {
        let (mut marker, mut port) = (marker(), port(G100));
        let start = marker.position(&port);
        let first = [(); 64].map(|()| marker.marks(&mut port, 1_500_000));
        assert_ne!([(); 64].map(|()| marker.marks(&mut port, 1_500_000)), first);
        marker.set_position(&mut port, start);
        assert_eq!([(); 64].map(|()| marker.marks(&mut port, 1_500_000)), first);
    }

    #[test]
    fn it_passes_the_kit() {
        for coins in [Coins::PerPort { seed: 7 }, Coins::Ns3(Ns3Coins::starting_at(0))] {
            assert_passed(&MarkerKit::new(&RedMarker { coins, ..marker() }).checks());
        }
    }

    #[test]
    fn rates_take_the_thresholds_of_the_nearest_lower_one() {
        let at = |gbps, kmin| Thresholds { rate: BitRate::from_gbps(gbps), kmin, kmax: 2 * kmin, pmax: 1.0 };
        let table = [at(400, 1_000_000), at(100, 400_000)];
        let kmin = |gbps| thresholds_for(&table, BitRate::from_gbps(gbps)).map(|t| t.kmin);
        let scaled = [100_000, 400_000, 800_000, 1_000_000, 2_000_000];
        assert_eq!([25, 100, 200, 400, 800].map(kmin), scaled.map(Some));
        assert_eq!(thresholds_for(&[], G100), None);
    }

    #[test]
    fn other_rates_scale() {
        assert_eq!(port(BitRate::from_gbps(400)).kmin, 1_600_000);
        assert_eq!(port(BitRate::from_gbps(10)).kmax, 160_000);
    }
}

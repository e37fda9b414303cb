//! Which external port an Ethernet address is behind: given by the user, or learned as a switch learns it.

use super::frame::Mac;
use std::collections::HashMap;
use std::collections::hash_map::Entry;

/// Addresses learned at most: a peer that makes up addresses fills no memory.
const MOST: usize = 1 << 16;

/// Where a frame goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Destination {
    /// To this external port.
    Port(usize),
    /// To all but the one it came from.
    All,
    /// It is where it wants to go.
    Nowhere,
}

/// See the module.
#[derive(Default)]
pub(crate) struct Addresses {
    /// External port of an address, and whether the user has said so.
    places: HashMap<Mac, (usize, bool)>,
}

impl Addresses {
    /// What is known by the user's word.
    pub(crate) fn given(given: impl IntoIterator<Item = (Mac, usize)>) -> Addresses {
        Addresses { places: given.into_iter().map(|(mac, port)| (mac, (port, true))).collect() }
    }

    /// A frame from `source` has come in at `port`.
    pub(crate) fn learn(&mut self, source: Mac, port: usize) {
        let has_room = self.places.len() < MOST;
        match self.places.entry(source) {
            _ if source.is_group() => {}
            Entry::Occupied(mut known) if !known.get().1 => {
                known.insert((port, false));
            }
            Entry::Vacant(unknown) if has_room => {
                unknown.insert((port, false));
            }
            Entry::Occupied(_) | Entry::Vacant(_) => {}
        }
    }

    /// Where a frame goes that has come in at `port`.
    pub(crate) fn destination(&self, mac: Mac, port: usize) -> Destination {
        match self.places.get(&mac) {
            Some(&(place, _)) if place == port => Destination::Nowhere,
            Some(&(place, _)) => Destination::Port(place),
            None => Destination::All,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Mac = Mac([2, 0, 0, 0, 0, 1]);
    const B: Mac = Mac([2, 0, 0, 0, 0, 2]);
    const BROADCAST: Mac = Mac([0xff; 6]);

    #[test]
    fn what_is_given_stays_and_what_is_learned_moves() {
        let mut addresses = Addresses::given([(A, 0)]);
        assert_eq!(addresses.destination(A, 2), Destination::Port(0));
        assert_eq!(addresses.destination(A, 0), Destination::Nowhere);
        assert_eq!(addresses.destination(B, 0), Destination::All);
        addresses.learn(A, 1);
        addresses.learn(B, 1);
        assert_eq!(addresses.destination(A, 2), Destination::Port(0));
        assert_eq!(addresses.destination(B, 0), Destination::Port(1));
        addresses.learn(B, 2);
        assert_eq!(addresses.destination(B, 0), Destination::Port(2));
        addresses.learn(BROADCAST, 1);
        assert_eq!(addresses.destination(BROADCAST, 0), Destination::All);
    }

    #[test]
    fn what_is_learned_has_a_limit() {
        let mut addresses = Addresses::default();
        let mac = |i: u32| Mac([2, 0, (i >> 24) as u8, (i >> 16) as u8, (i >> 8) as u8, i as u8]);
        (0..MOST as u32 + 1).for_each(|i| addresses.learn(mac(i), 1));
        assert_eq!(addresses.destination(mac(MOST as u32 - 1), 0), Destination::Port(1));
        assert_eq!(addresses.destination(mac(MOST as u32), 0), Destination::All);
        // Those that are known may still move.
        addresses.learn(mac(0), 2);
        assert_eq!(addresses.destination(mac(0), 0), Destination::Port(2));
    }
}

//! What the two sides of a SimBricks connection tell each other first: the bytes, and what may be in them.
//!
//! All fields are 64 bits, little-endian. The listener sends its version, its flags, where both rings are, the upper
//! protocol and where that protocol's own introduction begins; with them goes the shared memory. The connecter sends
//! the same without the rings. The introduction of protocol "net" is four bytes without a meaning.

use super::layout::{Layout, SLOT_HEADER};
use super::shm::WORD;
use clap::ValueEnum;
use std::fmt;

const VERSION: u64 = 1;
/// Bit 0: synchronisation is offered; bit 1: it is demanded.
const OFFERS: u64 = 1;
const DEMANDS: u64 = 2;
/// The upper protocol "net": Ethernet frames.
const NET: u64 = 1;
/// Bytes of its introduction.
const NET_INTRO: usize = 4;
const LISTENER_FIELDS: usize = 10;
const CONNECTER_FIELDS: usize = 4;

/// The longest introduction that is read.
pub(super) const LONGEST: usize = 2_048;

/// Whether time is kept together.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum SyncMode {
    /// No: frames count as sent when they are seen.
    Off,
    /// If the peer offers it.
    Optional,
    /// Yes, or it is an error.
    Required,
}

/// Both rings.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Rings {
    /// From the listener to the connecter.
    pub(super) to_connecter: Layout,
    /// The other way.
    pub(super) to_listener: Layout,
}

impl Rings {
    /// As a listener offers them: SimBricks' own defaults.
    pub(super) const DEFAULT: Rings = {
        let ring = Layout { offset: 0, slot: 1_600, slots: 8_192 };
        Rings { to_connecter: Layout { offset: ring.slot * ring.slots, ..ring }, to_listener: ring }
    };

    /// Bytes that both take.
    pub(super) fn bytes(&self) -> usize {
        [self.to_connecter, self.to_listener].into_iter().filter_map(Layout::end).max().unwrap_or(0)
    }
}

/// What is wrong with an introduction.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct BadIntro(String);

impl fmt::Display for BadIntro {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "the peer's introduction: {}", self.0)
    }
}

/// What is taken from a sound introduction.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Terms {
    /// Whether time is kept together.
    pub(super) is_synchronised: bool,
    /// A listener's rings.
    pub(super) rings: Option<Rings>,
}

/// The introduction of a listener, with its rings, or of a connecter.
pub(super) fn write(sync: SyncMode, rings: Option<&Rings>) -> Vec<u8> {
    let flags = match sync {
        SyncMode::Off => 0,
        SyncMode::Optional => OFFERS,
        SyncMode::Required => OFFERS | DEMANDS,
    };
    let mut fields = vec![VERSION, flags];
    for ring in rings.into_iter().flat_map(|rings| [rings.to_connecter, rings.to_listener]) {
        fields.extend([ring.offset, ring.slot, ring.slots].map(|value| value as u64));
    }
    fields.push(NET);
    fields.push((fields.len() as u64 + 1) * WORD as u64);
    let mut bytes: Vec<u8> = fields.into_iter().flat_map(u64::to_le_bytes).collect();
    bytes.extend([0; NET_INTRO]);
    bytes
}

/// Understands as much of an introduction as has come. `None`: there is more to come.
///
/// # Errors
/// What is wrong with it.
pub(super) fn read(bytes: &[u8], from_listener: bool, sync: SyncMode) -> Result<Option<Terms>, BadIntro> {
    let bad = |message: String| Err(BadIntro(message));
    let count = if from_listener { LISTENER_FIELDS } else { CONNECTER_FIELDS };
    let Some(header) = bytes.get(..count * WORD) else { return Ok(None) };
    let fields: Vec<u64> = header.as_chunks().0.iter().map(|field| u64::from_le_bytes(*field)).collect();
    let (version, flags, upper, upper_at) = (fields[0], fields[1], fields[count - 2], fields[count - 1]);
    if version != VERSION {
        return bad(format!("version {version}, where {VERSION} is spoken"));
    }
    if flags & !(OFFERS | DEMANDS) != 0 {
        return bad(format!("flags {flags:#x}, of which only {OFFERS:#x} and {DEMANDS:#x} have a meaning"));
    }
    if upper != NET {
        return bad(format!("upper protocol {upper}, where {NET} (Ethernet) is spoken"));
    }
    let place = usize::try_from(upper_at).ok().filter(|at| (header.len()..=LONGEST - NET_INTRO).contains(at));
    let Some(end) = place.map(|at| at + NET_INTRO) else {
        return bad(format!("the upper protocol's introduction is said to be at byte {upper_at}"));
    };
    let is_synchronised = agree(sync, flags)?;
    let rings = if from_listener { Some(rings(&fields[2..8])?) } else { None };
    match bytes.len() {
        length if length < end => Ok(None),
        length if length == end => Ok(Some(Terms { is_synchronised, rings })),
        length => bad(format!("{length} bytes, where {end} were expected")),
    }
}

/// Whether time is kept together: if neither side is against it, and both can.
fn agree(sync: SyncMode, flags: u64) -> Result<bool, BadIntro> {
    match sync {
        SyncMode::Off if flags & DEMANDS != 0 => Err(BadIntro("it demands synchronisation, which is off".into())),
        SyncMode::Required if flags == 0 => Err(BadIntro("it offers no synchronisation, which is required".into())),
        SyncMode::Off => Ok(false),
        SyncMode::Optional | SyncMode::Required => Ok(flags != 0),
    }
}

/// A listener's rings, by their six fields.
fn rings(fields: &[u64]) -> Result<Rings, BadIntro> {
    let ring = |fields: &[u64], name: &str| {
        let bad = |message: String| BadIntro(format!("the ring {name}: {message}"));
        let [offset, slot, slots] = [fields[0], fields[1], fields[2]];
        let number = |value: u64| usize::try_from(value).map_err(|_| bad(format!("{value} is out of range")));
        let layout = Layout { offset: number(offset)?, slot: number(slot)?, slots: number(slots)? };
        if slot <= SLOT_HEADER as u64 {
            return Err(bad(format!("slots of {slot} bytes have no room for a packet")));
        }
        if offset % WORD as u64 != 0 || slot % WORD as u64 != 0 {
            return Err(bad(format!("offset {offset} and slot size {slot} must be multiples of {WORD}")));
        }
        if slots == 0 {
            return Err(bad("it has no slots".into()));
        }
        layout.end().map(|end| (layout, end)).ok_or_else(|| bad(format!("{slots} slots of {slot} bytes: too large")))
    };
    let (to_connecter, first_end) = ring(&fields[..3], "to the connecter")?;
    let (to_listener, second_end) = ring(&fields[3..], "to the listener")?;
    if to_connecter.offset < second_end && to_listener.offset < first_end {
        return Err(BadIntro("the rings overlap".into()));
    }
    Ok(Rings { to_connecter, to_listener })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A listener with synchronisation: version 1, flags 1, ring to the connecter at 13,107,200 with 8,192 slots of
    /// 1,600 bytes, ring to the listener at 0 with as many, protocol 1, introduction at 80; four bytes more.
    #[rustfmt::skip]
    const LISTENER: [u8; 84] = [
        1, 0, 0, 0, 0, 0, 0, 0, /**/ 1, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0xc8, 0, 0, 0, 0, 0, /**/ 0x40, 0x06, 0, 0, 0, 0, 0, 0, /**/ 0, 0x20, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, /**/ 0x40, 0x06, 0, 0, 0, 0, 0, 0, /**/ 0, 0x20, 0, 0, 0, 0, 0, 0,
        1, 0, 0, 0, 0, 0, 0, 0, /**/ 80, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0,
    ];

    /// A connecter that demands synchronisation: version 1, flags 3, protocol 1, introduction at 32; four bytes more.
    #[rustfmt::skip]
    const CONNECTER: [u8; 36] = [
        1, 0, 0, 0, 0, 0, 0, 0, /**/ 3, 0, 0, 0, 0, 0, 0, 0,
        1, 0, 0, 0, 0, 0, 0, 0, /**/ 32, 0, 0, 0, 0, 0, 0, 0,
        0, 0, 0, 0,
    ];

    #[test]
    fn the_bytes_are_those_of_the_protocol() {
        assert_eq!(write(SyncMode::Optional, Some(&Rings::DEFAULT)), LISTENER);
        assert_eq!(write(SyncMode::Required, None), CONNECTER);
        assert_eq!(write(SyncMode::Off, None)[8..16], [0; 8]);
        let rings = Some(Rings::DEFAULT);
        assert_eq!(read(&LISTENER, true, SyncMode::Optional), Ok(Some(Terms { is_synchronised: true, rings })));
        let terms = Terms { is_synchronised: true, rings: None };
        assert_eq!(read(&CONNECTER, false, SyncMode::Optional), Ok(Some(terms)));
        assert_eq!(Rings::DEFAULT.bytes(), 26_214_400);
    }

    #[test]
    fn what_comes_in_pieces_is_waited_for() {
        let mut longer = LISTENER.to_vec();
        (0..84).for_each(|end| assert_eq!(read(&LISTENER[..end], true, SyncMode::Off), Ok(None), "{end} bytes"));
        longer.push(0);
        assert!(read(&longer, true, SyncMode::Off).is_err());
    }

    #[test]
    fn time_is_kept_together_if_both_agree() {
        let agreed = |local, flags: u8| {
            let mut bytes = CONNECTER;
            bytes[8] = flags;
            read(&bytes, false, local).map(|terms| terms.map(|terms| terms.is_synchronised))
        };
        use SyncMode::{Off, Optional, Required};
        assert_eq!([0, 1].map(|flags| agreed(Off, flags)), [Ok(Some(false)), Ok(Some(false))]);
        assert_eq!(
            [0, 1, 2, 3].map(|flags| agreed(Optional, flags).ok().flatten()),
            [false, true, true, true].map(Some)
        );
        assert_eq!([1, 2, 3].map(|flags| agreed(Required, flags)), [Ok(Some(true)), Ok(Some(true)), Ok(Some(true))]);
        assert!(agreed(Required, 0).is_err() && agreed(Off, 2).is_err() && agreed(Off, 3).is_err());
        assert!(agreed(Optional, 4).is_err());
    }

    /// The listener's introduction with one field replaced.
    fn with_field(field: usize, value: u64) -> Result<Option<Terms>, BadIntro> {
        let mut bytes = LISTENER;
        bytes[field * 8..][..8].copy_from_slice(&value.to_le_bytes());
        read(&bytes, true, SyncMode::Optional)
    }

    #[test]
    fn what_makes_no_sense_is_told() {
        let message = |field, value| with_field(field, value).expect_err("it makes no sense").0;
        assert_eq!(message(0, 2), "version 2, where 1 is spoken");
        assert_eq!(message(8, 2), "upper protocol 2, where 1 (Ethernet) is spoken");
        for at in [0, 79, 2_045, u64::MAX] {
            assert_eq!(message(9, at), format!("the upper protocol's introduction is said to be at byte {at}"));
        }
        for slot in [0, 64] {
            let message = message(3, slot);
            assert_eq!(message, format!("the ring to the connecter: slots of {slot} bytes have no room for a packet"));
        }
        assert!(message(3, 1_601).contains("multiples of 8") && message(5, 4).contains("multiples of 8"));
        assert_eq!(message(7, 0), "the ring to the listener: it has no slots");
        assert!(message(4, u64::MAX).contains("too large") && message(6, u64::MAX - 7).contains("too large"));
        assert_eq!(message(5, 13_107_200 - 8), "the rings overlap");
        assert_eq!(message(7, 8_193), "the rings overlap");
    }

    #[test]
    fn nothing_a_peer_says_does_harm() {
        for at in 0..LISTENER.len() {
            for byte in [0, 1, 0x7f, 0x80, 0xff] {
                let mut bytes = LISTENER;
                bytes[at] = byte;
                if let Ok(Some(Terms { rings: Some(rings), .. })) = read(&bytes, true, SyncMode::Optional) {
                    assert!(rings.bytes() > 0 && rings.to_connecter.longest_packet() > 0);
                }
            }
        }
    }
}

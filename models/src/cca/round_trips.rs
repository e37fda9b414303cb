//! Round trips counted in bytes: one is over when a byte is acknowledged that was sent after it had begun.

use super::{distance, position};
use bytemuck::{Pod, Zeroable};
use wormhole_kernel::cca::Ack;

/// Where a flow is in its round trip, and whether its acknowledgements have kept pace: each for as many bytes and
/// with as many under way as the one before. Then the ends of round trips follow from their number.
#[repr(C)]
#[derive(Clone, Copy, PartialEq, Eq, Debug, Pod, Zeroable)]
pub(super) struct RoundTrips {
    /// Acknowledged beyond this byte, the round trip is over; 0 before the first acknowledgement.
    end: u64,
    acked: u64,
    /// Of the last acknowledgement: the bytes under way, and those that were new.
    in_flight: u64,
    step: u64,
    /// Acknowledgements so far, and those that did not keep pace.
    acks: u64,
    changes: u64,
}

/// What an acknowledgement means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum RoundTrip {
    /// The first of all.
    First,
    /// The round trip goes on.
    GoesOn,
    /// It is over.
    Over,
}

impl RoundTrips {
    /// What `ack` means. A round trip that is over must be [begun](Self::begin) anew.
    pub(super) fn on_ack(&mut self, ack: &Ack<'_>) -> RoundTrip {
        let in_flight = ack.snd_nxt.wrapping_sub(ack.acked);
        let step = ack.acked.wrapping_sub(self.acked);
        self.acks += 1;
        self.changes += u64::from((in_flight, step) != (self.in_flight, self.step));
        (self.acked, self.in_flight, self.step) = (ack.acked, in_flight, step);
        match ack.acked > self.end {
            false => RoundTrip::GoesOn,
            true if self.end == 0 => RoundTrip::First,
            true => RoundTrip::Over,
        }
    }

    /// A round trip begins; it ends behind `snd_nxt`.
    pub(super) fn begin(&mut self, snd_nxt: u64) {
        self.end = snd_nxt;
    }

    /// Where the present one ends.
    pub(super) fn end(&self) -> u64 {
        self.end
    }

    /// Bytes under way at the last acknowledgement.
    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight
    }

    pub(super) fn relative(&self, acked: u64) -> RoundTrips {
        RoundTrips { end: distance(self.end, acked), acked: self.acked.wrapping_sub(acked), ..*self }
    }

    pub(super) fn absolute(&self, acked: u64) -> RoundTrips {
        RoundTrips { end: position(self.end, acked), acked: self.acked.wrapping_add(acked), ..*self }
    }

    /// The same, counted as `other` is.
    pub(super) fn counted_as(&self, other: &RoundTrips) -> RoundTrips {
        RoundTrips { acks: other.acks, changes: other.changes, ..*self }
    }

    /// Whether all acknowledgements from here to `after`, both relative, have kept pace.
    pub(super) fn keeps_pace(&self, after: &RoundTrips) -> bool {
        let last_counts = after.acked == 0 && after.step > 0 && after.end <= after.in_flight;
        self.changes == after.changes && self.acks < after.acks && last_counts
    }

    /// Goes on in pace, `rounds` times as many acknowledgements as since `before`; gives the round trips that end.
    pub(super) fn coast(&mut self, before: &RoundTrips, rounds: u64) -> u64 {
        let acks = (self.acks - before.acks) * rounds;
        // An ACK ends the round trip if it goes beyond `in_flight` bytes after the one that began it.
        let length = self.in_flight / self.step + 1;
        let passed = (self.in_flight - self.end) / self.step + acks;
        self.end = self.in_flight - passed % length * self.step;
        self.acks += acks;
        passed / length
    }

    /// Counts `rounds` times what was counted since `before`.
    pub(super) fn count_on(&mut self, before: &RoundTrips, rounds: u64) {
        self.acks += (self.acks - before.acks) * rounds;
        self.changes += (self.changes - before.changes) * rounds;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::units::{SimTime, Span};

    fn ack(acked: u64, snd_nxt: u64) -> Ack<'static> {
        Ack { now: SimTime::ZERO, acked, snd_nxt, marked: false, rtt: Span::ZERO, hops: &[], hop_count: 0 }
    }

    #[test]
    fn a_round_trip_is_over_beyond_what_was_sent_when_it_began() {
        let mut trips = RoundTrips::zeroed();
        assert_eq!((trips.on_ack(&ack(1_000, 5_000)), trips.in_flight()), (RoundTrip::First, 4_000));
        trips.begin(5_000);
        assert_eq!((trips.on_ack(&ack(5_000, 9_500)), trips.in_flight()), (RoundTrip::GoesOn, 4_500));
        assert_eq!((trips.on_ack(&ack(5_001, 9_500)), trips.end()), (RoundTrip::Over, 5_000));
        assert_eq!((trips.acks, trips.changes, trips.step), (3, 3, 1));
        trips.on_ack(&ack(5_002, 9_501));
        assert_eq!((trips.acks, trips.changes), (4, 3), "that kept pace");
    }

    const RELATIVE: RoundTrips = RoundTrips { end: 2_000, acked: 0, in_flight: 2_000, step: 500, acks: 14, changes: 5 };

    #[test]
    fn pace_is_kept_if_all_is_as_before() {
        let before = RoundTrips { end: 7, acked: 9, in_flight: 11, step: 13, acks: 13, changes: 5 };
        assert!(before.keeps_pace(&RELATIVE));
        for other in [
            RoundTrips { acked: 1, ..RELATIVE },
            RoundTrips { step: 0, ..RELATIVE },
            RoundTrips { end: 2_001, ..RELATIVE },
            RoundTrips { acks: 13, ..RELATIVE },
            RoundTrips { changes: 6, ..RELATIVE },
        ] {
            assert!(!before.keeps_pace(&other), "{other:?}");
        }
    }

    #[test]
    fn positions_move_and_counts_go_on() {
        let trips = RoundTrips { end: 9_000, acked: 7_000, ..RELATIVE };
        assert_eq!((trips.relative(7_000), RELATIVE.absolute(7_000)), (RELATIVE, trips));
        let unset = RoundTrips { end: 0, ..trips };
        assert_eq!(unset.relative(7_000).absolute(100), RoundTrips { end: 0, acked: 100, ..RELATIVE });

        let before = RoundTrips { acks: 10, changes: 3, ..RELATIVE };
        assert_eq!(RELATIVE.counted_as(&before), before);
        let mut later = RELATIVE;
        later.count_on(&before, 3);
        assert_eq!(later, RoundTrips { acks: 14 + 3 * 4, changes: 5 + 3 * 2, ..RELATIVE });
    }

    /// So many acknowledgements in pace; gives the round trips that ended.
    fn go_on(trips: &mut RoundTrips, acked: &mut u64, acks: u64, in_flight: u64, step: u64) -> u64 {
        let mut over = 0;
        for _ in 0..acks {
            *acked += step;
            if trips.on_ack(&ack(*acked, *acked + in_flight)) != RoundTrip::GoesOn {
                trips.begin(*acked + in_flight);
                over += 1;
            }
        }
        over
    }

    #[test]
    fn coasting_is_going_on() {
        for (in_flight, step) in [(49_000, 1_000), (50_500, 1_000), (3_000, 2_000), (500, 1_000), (0, 1_000)] {
            for (warm_up, period) in [(70, 1), (111, 7), (200, 100)] {
                let (mut trips, mut acked) = (RoundTrips::zeroed(), 0);
                go_on(&mut trips, &mut acked, warm_up, in_flight, step);
                let before = trips.relative(acked);
                go_on(&mut trips, &mut acked, period, in_flight, step);
                let mut coasted = trips.relative(acked);
                assert!(before.keeps_pace(&coasted));
                let over = coasted.coast(&before, 13);
                let simulated = go_on(&mut trips, &mut acked, 13 * period, in_flight, step);
                assert_eq!(
                    (over, coasted),
                    (simulated, trips.relative(acked)),
                    "{in_flight} {step} {warm_up} {period}"
                );
            }
        }
    }

    #[test]
    fn a_change_of_pace_is_noticed() {
        let (mut trips, mut acked) = (RoundTrips::zeroed(), 0);
        go_on(&mut trips, &mut acked, 100, 49_000, 1_000);
        let before = trips.relative(acked);
        go_on(&mut trips, &mut acked, 1, 48_000, 1_000);
        go_on(&mut trips, &mut acked, 100, 49_000, 1_000);
        assert!(!before.keeps_pace(&trips.relative(acked)));
    }
}

//! Bounded fast-forwarding: flows whose goodput stays what it is are moved on by it.
//!
//! What is measured is goodput, bytes acknowledged: with a window the congestion control's rate may be a multiple of
//! it. Windows follow each other; three in a row are compared. The window is right once it covers a cycle of the
//! congestion control, that is once the goodput of consecutive windows agrees: it is doubled until then. A flow that
//! shares a port with others may drift slowly, which no short window shows: so what is skipped is in proportion to
//! what was watched, and is watched again after.

use super::Detector;
use super::arena::Block;
use super::park::{Parked, QP_ENTRIES};
use super::partition::{for_each_port, for_each_qp};
use crate::event::{CCA_TIMERS, Event};
use crate::ids::{PartitionId, QpId};
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::qp::{MARKS, Mark, Qp, Rates};
use crate::queue::EventQueue;
use crate::router::Router;
use crate::timing::LinkTiming;
use crate::transport::Transport;
use crate::units::{PS_PER_S, SimTime, Span, quotient};
use bytemuck::{Pod, Zeroable};

/// Windows that are compared.
const WINDOWS: u32 = MARKS as u32 - 1;
/// Disagreements after which the window is doubled.
const PATIENCE: u32 = 4;
/// Packets a window must have of every flow, times the relative range that is asked for: one packet more or less must
/// not decide.
const RESOLUTION: u64 = 2;
/// A stretch that is a small part of a flow's time may be measured more coarsely, up to this many times.
const LENIENCE: u64 = 4;
/// A single flow may differ by so many times what is allowed on average.
const OUTLIER: u64 = 2;
/// Round trips after a flow has joined before anything is measured.
const SETTLING: u64 = 6;
/// A stretch may be at most this many times as long as what was measured for it.
const MAX_STRETCH: u64 = 800;
/// Contending flows are watched in windows this many times as long, and skipped for at most this many times what was
/// watched of them: how they share a port wanders slowly.
const CONTENDED_WINDOW: u64 = 8;
const CONTENDED_STRETCH: u64 = 1;
/// But for this long nothing of theirs is skipped at all: shares level out over some 10 ms (HPCC at 100 Gb/s: additive
/// increase is slow), and who finishes first is decided meanwhile.
const CONTENDED_WATCH: Span = Span::from_us(10_000);
/// A window is at most this many times as long as it must be if its end waits for that of a swing.
const LONGEST_WAIT: u64 = 8;
/// Rates that swing by less than this part of theta are taken for constant.
const STILL: u64 = 4;
/// A stretch must be this many windows long to be worth skipping.
const MIN_WINDOWS: u64 = 2;
const MILLION: u64 = 1_000_000;

/// What is known of a partition's rates.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Steady {
    /// When the last windows ended, the latest last. What flows had acknowledged then stands in their `marks`.
    ends: [SimTime; MARKS],
    window: Span,
    /// Simulated time it has been watched for, in whole windows.
    watched: Span,
    /// The counters when it was written down.
    ledger: Block,
    ledger_at: SimTime,
    /// Nothing is measured before: the congestion controls are still finding their rates.
    begins: SimTime,
    windows: u32,
    disagreements: u32,
    /// Flows share a port.
    contended: u32,
    /// Short windows will do.
    hastens: u32,
    swing: Swing,
}

impl Steady {
    /// The mark that the windows to compare begin at. Two that end with swings say as much as three that do not.
    fn first_mark(&self) -> usize {
        self.swing.aligned as usize
    }
}

/// How the rate of a partition's leader goes up and down.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
struct Swing {
    /// Extremes of the last window and of this one, in bit/s.
    before: [u64; 2],
    now: [u64; 2],
    /// It has been in the lower quarter since it last passed the middle.
    was_low: u32,
    /// Windows end where it passes the middle upwards.
    aligned: u32,
}

impl Swing {
    const NEW: Swing = Swing { before: [u64::MAX, 0], now: [u64::MAX, 0], was_low: 0, aligned: 0 };

    fn extremes(&self) -> [u64; 2] {
        [self.before[0].min(self.now[0]), self.before[1].max(self.now[1])]
    }

    /// Takes in a rate. Says whether it has passed the middle upwards.
    fn follow(&mut self, rate: u64) -> bool {
        self.now = [self.now[0].min(rate), self.now[1].max(rate)];
        let [low, high] = self.extremes();
        if rate <= low + (high - low) / 4 {
            self.was_low = 1;
        }
        let passes = self.was_low != 0 && rate >= low + (high - low) / 2 && high > low;
        if passes {
            self.was_low = 0;
        }
        passes
    }

    /// In millionths of the highest rate.
    fn relative(&self) -> u64 {
        let [low, high] = self.extremes();
        quotient(u128::from(high - low) * u128::from(MILLION), u128::from(high.max(1))) as u64
    }

    fn end_window(&mut self) {
        (self.before, self.now) = (self.now, [u64::MAX, 0]);
    }
}

impl Steady {
    pub(crate) const NEW: Steady = Steady {
        ends: [SimTime::ZERO; MARKS],
        window: Span::ZERO,
        watched: Span::ZERO,
        ledger: Block::NONE,
        ledger_at: SimTime::ZERO,
        begins: SimTime::ZERO,
        windows: 0,
        disagreements: 0,
        contended: 0,
        hastens: 0,
        swing: Swing::NEW,
    };
}

/// The least and the most of something over the last windows.
struct Range {
    least: u128,
    most: u128,
}

impl Range {
    /// Of a value a window, from the marks at its ends.
    fn of(qp: &Qp, first: usize, value: impl Fn(usize, &Mark, &Mark) -> u128) -> Range {
        let values = (first + 1..MARKS).map(|i| value(i, &qp.marks[i - 1], &qp.marks[i]));
        values.fold(Range { least: u128::MAX, most: 0 }, |range, value| Range {
            least: range.least.min(value),
            most: range.most.max(value),
        })
    }

    /// In millionths of the most.
    fn relative(&self) -> u64 {
        quotient((self.most - self.least) * u128::from(MILLION), self.most.max(1)) as u64
    }
}

/// The goodput to go on with, as bytes and the time they took: that of all windows. After other flows have left, if
/// it has only risen or only fallen since, that of the last.
fn goodput(qp: &Qp, steady: &Steady) -> (u64, Span) {
    let ends = &steady.ends;
    let of = |from: usize, to: usize| (qp.marks[to].acked - qp.marks[from].acked, ends[to].since(ends[from]));
    let rises = |i: usize| {
        let ((before, time_before), (after, time_after)) = (of(i - 1, i), of(i, i + 1));
        u128::from(after) * u128::from(time_before.0) > u128::from(before) * u128::from(time_after.0)
    };
    let first = steady.first_mark();
    let monotonous = steady.hastens != 0 && (first + 2..MARKS - 1).all(|i| rises(i) == rises(first + 1));
    of(if monotonous { MARKS - 2 } else { first }, MARKS - 1)
}

/// Bytes until a flow has only about two round trips to go: one to send, one to be acknowledged.
pub(super) fn bytes_to_its_end(qp: &Qp, mtu: u32) -> u128 {
    u128::from(qp.bytes_left().saturating_sub(qp.in_flight().saturating_add(2 * u64::from(mtu))))
}

/// Payload bytes a second at the mean of a flow's rate samples, which is on the wire.
fn payload_rate(qp: &Qp, mtu: u32) -> u128 {
    let mean = u128::from(qp.rates.sum / qp.rates.count.max(1));
    quotient(mean * u128::from(mtu), u128::from(8 * Transport::data_bytes(mtu, qp.header)))
}

/// How much a flow differed between windows, in millionths: in goodput, and in round-trip time, which tells whether a
/// queue is filling or draining behind a goodput that stays. `None` if a window had fewer bytes than `fewest`.
fn unsteadiness(qp: &Qp, steady: &Steady, fewest: u64) -> Option<u64> {
    let (ends, first) = (&steady.ends, steady.first_mark());
    let bytes = Range::of(qp, first, |_, from, to| u128::from(to.acked - from.acked));
    let goodput = Range::of(qp, first, |i, from, to| {
        quotient(u128::from(to.acked - from.acked) << 32, u128::from(ends[i].since(ends[i - 1]).0.max(1)))
    });
    let rtt = Range::of(qp, first, |_, from, to| {
        quotient(u128::from((to.rtt_sum - from.rtt_sum).0) << 8, u128::from((to.acks - from.acks).max(1)))
    });
    (bytes.least >= u128::from(fewest)).then(|| goodput.relative().max(rtt.relative()))
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Forgets what was measured of a partition.
    pub(crate) fn forget_rates(&mut self, id: PartitionId) {
        let mut ledger = self.partitions.get(id).steady.ledger;
        self.arena.free(&mut ledger);
        self.partitions.get_mut(id).steady = Steady::NEW;
    }

    /// Prepares to measure: at once if flows have only left, which the others hardly feel, or after some round trips.
    pub(crate) fn prepare_to_measure(&mut self, id: PartitionId, joined: bool) {
        let mut round_trip = Span::ZERO;
        for_each_qp!(self, id, qp, {
            round_trip = round_trip.max(self.qps.slots[qp.index()].base_rtt);
        });
        let settling = if joined { Span(round_trip.0.saturating_mul(SETTLING)) } else { Span::ZERO };
        let begins = self.now() + settling;
        let steady = &mut self.partitions.get_mut(id).steady;
        (steady.begins, steady.hastens) = (begins, u32::from(!joined));
    }

    /// Begins to measure.
    fn begin_to_measure(&mut self, id: PartitionId) {
        let (now, contended) = (self.now(), self.is_contended(id));
        let hastens = u32::from(!contended && self.partitions.get(id).steady.hastens != 0);
        let window = match self.acceleration.detector {
            Detector::Cycle { window, .. } if contended => Span(window.0.saturating_mul(CONTENDED_WINDOW)),
            Detector::Cycle { window, .. } => Span(window.0 >> hastens),
            // What goodput is for in the other detector the rate is in this one, sample by sample.
            Detector::Paper { interval, .. } => interval,
        };
        let ledger = self.write_ledger(id).unwrap_or_default();
        let contended = u32::from(contended);
        self.forget_samples(id);
        let steady = &mut self.partitions.get_mut(id).steady;
        *steady = Steady { ledger, ledger_at: now, window, contended, hastens, ..Steady::NEW };
        self.end_window(id);
        self.partitions.get_mut(id).steady.windows = 0;
    }

    /// Whether any port carries the data of more than one flow.
    pub(super) fn is_contended(&mut self, id: PartitionId) -> bool {
        if !M::Router::PER_FLOW {
            return true;
        }
        for_each_port!(self, id, port, {
            self.ports[port.index()].local = 0;
        });
        let mut contended = false;
        for_each_qp!(self, id, qp, {
            self.each_port(qp, &mut |kernel, port, is_data| {
                let flows = &mut kernel.ports[port.index()].local;
                *flows += u32::from(is_data);
                contended |= *flows > 1;
            });
        });
        // That was in the place of their numbers.
        self.number_ports(id);
        contended
    }

    fn end_window(&mut self, id: PartitionId) {
        let now = self.now();
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.swing.end_window();
        steady.ends.rotate_left(1);
        steady.ends[MARKS - 1] = now;
        steady.windows += 1;
        for_each_qp!(self, id, qp, {
            let slot = &mut self.qps.slots[qp.index()];
            let Qp { snd_una: acked, rtt_sum, acks, .. } = *slot;
            slot.marks.rotate_left(1);
            slot.marks[MARKS - 1] = Mark { acked, rtt_sum, acks };
        });
    }

    /// The relative range that is asked for, in millionths.
    fn theta(&self) -> u64 {
        match self.acceleration.detector {
            Detector::Cycle { theta, .. } | Detector::Paper { theta, .. } => u64::from(theta),
        }
    }

    /// Looks at the goodput of a partition's flows. Says whether it has parked it.
    pub(crate) fn look_for_steady_state(&mut self, id: PartitionId) -> bool {
        let (now, steady) = (self.now(), &self.partitions.get(id).steady);
        if steady.ledger.is_none() {
            if now >= steady.begins {
                self.begin_to_measure(id);
            }
            return false;
        }
        let passes = self.follow_swing(id);
        let steady = &self.partitions.get(id).steady;
        let (window, aligned) = (steady.window, steady.swing.aligned != 0);
        let length = now.since(steady.ends[MARKS - 1]);
        if !passes && length < window {
            return false;
        }
        let awaits = self.awaits_swing(id, length);
        if awaits && passes && !aligned {
            self.begin_at_swing(id);
            return false;
        }
        if awaits && !passes || length < window {
            return false;
        }
        self.end_window(id);
        if let Detector::Paper { samples, .. } = self.acceleration.detector {
            return self.sample_rates(id, samples);
        }
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.watched += steady.ends[MARKS - 1].since(steady.ends[MARKS - 2]);
        if steady.windows < WINDOWS - steady.swing.aligned {
            return false;
        }
        let stretch = self.stretch(id);
        if !self.agrees(id, stretch) {
            let steady = &mut self.partitions.get_mut(id).steady;
            steady.disagreements += 1;
            if steady.disagreements == PATIENCE {
                steady.disagreements = 0;
                steady.window = steady.window + steady.window;
                self.join_windows(id, 2);
            }
            return false;
        }
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.disagreements = 0;
        let needed = Span(stretch.0 / MAX_STRETCH);
        if needed > steady.ends[MARKS - 1].since(steady.ends[steady.first_mark()]) {
            steady.window = Span(needed.0 / u64::from(WINDOWS) + 1);
            self.join_windows(id, MARKS - 1 - self.partitions.get(id).steady.first_mark());
            return false;
        }
        self.park_within_bound(id, stretch)
    }

    fn follow_swing(&mut self, id: PartitionId) -> bool {
        let partition = self.partitions.get_mut(id);
        let leader = partition.leader;
        partition.steady.swing.follow(self.qps.slots[leader.index()].control.rate.0)
    }

    /// Whether a window that is so long ends with a swing only.
    fn awaits_swing(&self, id: PartitionId, length: Span) -> bool {
        let steady = &self.partitions.get(id).steady;
        let Detector::Cycle { theta, .. } = self.acceleration.detector else { return false };
        length.0 < steady.window.0.saturating_mul(LONGEST_WAIT)
            && steady.swing.relative() * STILL > u64::from(theta)
            && self.is_in_step(id)
    }

    /// Whether all flows have come equally far since they started together.
    fn is_in_step(&self, id: PartitionId) -> bool {
        let far = |qp: QpId| {
            let Qp { start, size, snd_una, .. } = self.qps.slots[qp.index()];
            (start, size, snd_una)
        };
        let leader = far(self.partitions.get(id).leader);
        for_each_qp!(self, id, qp, {
            if far(qp) != leader {
                return false;
            }
        });
        true
    }

    /// Begins the first window anew: where a swing does.
    fn begin_at_swing(&mut self, id: PartitionId) {
        self.end_window(id);
        let steady = &mut self.partitions.get_mut(id).steady;
        (steady.windows, steady.watched, steady.swing.aligned) = (0, Span::ZERO, 1);
    }

    /// Begins a window anew where the last but `windows` ended: longer windows go on with what was measured last.
    fn join_windows(&mut self, id: PartitionId, windows: usize) {
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.windows = 0;
        steady.ends[MARKS - 1] = steady.ends[MARKS - 1 - windows];
        for_each_qp!(self, id, qp, {
            let marks = &mut self.qps.slots[qp.index()].marks;
            marks[MARKS - 1] = marks[MARKS - 1 - windows];
        });
    }

    /// The paper's detector: the range of every flow's rate over so many samples is less than theta of their mean, and
    /// that mean is what it goes on with, until the first of them ends. Windows follow each other without overlap.
    fn sample_rates(&mut self, id: PartitionId, samples: u32) -> bool {
        let (mut steady, mut full, mut stretch) = (true, false, u128::MAX);
        let (mtu, theta) = (self.models.transport.mtu, self.theta());
        for_each_qp!(self, id, qp, {
            let slot = &mut self.qps.slots[qp.index()];
            slot.rates.sample(slot.control.rate);
            let Rates { least, most, sum, count } = slot.rates;
            let mean = sum / count;
            full = count >= u64::from(samples);
            let range = u128::from(most.0 - least.0) * u128::from(MILLION);
            steady &= range < u128::from(mean) * u128::from(theta);
            let time = quotient(bytes_to_its_end(slot, mtu) * u128::from(PS_PER_S), payload_rate(slot, mtu).max(1));
            stretch = stretch.min(time);
        });
        if !full {
            return false;
        }
        let stretch = Span(u64::try_from(stretch).unwrap_or(u64::MAX));
        let parked = steady && self.park_within_bound(id, stretch);
        self.forget_samples(id);
        parked
    }

    fn forget_samples(&mut self, id: PartitionId) {
        for_each_qp!(self, id, qp, {
            self.qps.slots[qp.index()].rates = Rates::default();
        });
    }

    /// How long a stretch could be skipped now.
    fn stretch(&self, id: PartitionId) -> Span {
        let Steady { watched, contended, .. } = self.partitions.get(id).steady;
        let stretch = self.time_to_an_end(id);
        match contended {
            0 => stretch,
            _ if watched < CONTENDED_WATCH => Span::ZERO,
            _ => stretch.min(Span(watched.0.saturating_mul(CONTENDED_STRETCH))),
        }
    }

    /// Whether flows had about the same goodput in all windows: on average, and none of them far from it.
    fn agrees(&self, id: PartitionId, stretch: Span) -> bool {
        let theta = self.theta();
        let fewest = RESOLUTION * MILLION / theta.max(1) * u64::from(self.models.transport.mtu);
        let steady = self.partitions.get(id).steady;
        let Steady { window, contended, .. } = steady;
        let most_lenient = if contended != 0 { 1 } else { LENIENCE };
        let mut sum = 0;
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            let life = self.now().since(slot.start) + stretch;
            let lenience = (life.0 / stretch.0.max(1)).clamp(1, most_lenient);
            let Some(unsteadiness) = unsteadiness(slot, &steady, fewest / lenience) else { return false };
            if unsteadiness > OUTLIER * theta * lenience || self.longest_timer(qp) > window {
                return false;
            }
            sum += unsteadiness / lenience;
        });
        sum <= theta * u64::from(self.partitions.get(id).qps)
    }

    /// The longest wait of a congestion control for one of its timers: its cycle is no shorter.
    fn longest_timer(&self, qp: QpId) -> Span {
        let pending = |timer| self.events.pending(self.timers.timer(Event::Cca(qp, timer)));
        let waits = (0..CCA_TIMERS).filter_map(pending).map(|key| key.tie.delay().unwrap_or(Span::MAX));
        waits.max().unwrap_or(Span::ZERO)
    }

    fn park_within_bound(&mut self, id: PartitionId, stretch: Span) -> bool {
        let now = self.now();
        let steady = self.partitions.get(id).steady;
        let Steady { window, ledger, ledger_at, .. } = steady;
        let span = now.since(ledger_at);
        if stretch.0 < MIN_WINDOWS * window.0 || !self.stays_calm(id) {
            return false;
        }
        let Some(after) = self.capture(id) else { return false };
        // The flows' part of the ledger: what they would have had at its beginning at the goodput that was measured.
        let (detector, mtu) = (self.acceleration.detector, self.models.transport.mtu);
        self.each_ledger_entry(id, ledger, |qp, acked| {
            let share = if let Detector::Paper { .. } = detector {
                quotient(payload_rate(qp, mtu) * u128::from(span.0), u128::from(PS_PER_S))
            } else {
                let (bytes, time) = goodput(qp, &steady);
                quotient(u128::from(bytes) * u128::from(span.0), u128::from(time.0.max(1)))
            };
            *acked = qp.snd_una.wrapping_sub(share as u64);
        });
        if let Detector::Cycle { .. } = detector {
            self.keep_to_links(id, ledger, span);
        }
        self.partitions.get_mut(id).steady.ledger = Block::NONE;
        let until = now + stretch;
        self.park(id, Parked { since: now, until, span, ledger, after, ..Parked::NONE });
        true
    }

    /// Acknowledgements come in bunches where they share links with data: a flow may seem faster than its links for as
    /// long as it was measured, but it is not to go on so.
    fn keep_to_links(&mut self, id: PartitionId, ledger: Block, span: Span) {
        let mut at = self.ledger_entries_at(id);
        for_each_qp!(self, id, qp, {
            if self.qps.slots[qp.index()].is_open() {
                let (most, acked) = (self.most_bytes(qp, span), self.qps.slots[qp.index()].snd_una);
                let before = &mut self.arena.get_mut(ledger)[at];
                *before = acked.wrapping_sub(acked.wrapping_sub(*before).min(most));
                at += QP_ENTRIES;
            }
        });
    }

    /// Payload bytes that the slowest link of a flow's path carries in so long.
    fn most_bytes(&mut self, qp: QpId, span: Span) -> u64 {
        let Qp { line_rate: mut rate, header, .. } = self.qps.slots[qp.index()];
        // Sprayed packets take many paths at once: only that of the NIC is slow for all of them.
        if M::Router::PER_FLOW {
            self.each_port(qp, &mut |kernel, port, is_data| {
                if is_data {
                    rate = rate.min(kernel.fabric.port(port).rate);
                }
            });
        }
        let mtu = self.models.transport.mtu;
        let packet = self.models.timing.serialise(Transport::data_bytes(mtu, header), rate);
        u64::from(mtu).checked_mul(span.0).map_or(u64::MAX, |all| all / packet.0.max(1))
    }

    /// How long until the first flow comes to its end.
    fn time_to_an_end(&self, id: PartitionId) -> Span {
        let steady = &self.partitions.get(id).steady;
        let mtu = self.models.transport.mtu;
        let mut least = u128::MAX;
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            let (bytes, span) = goodput(slot, steady);
            let time = quotient(bytes_to_its_end(slot, mtu) * u128::from(span.0), u128::from(bytes.max(1)));
            least = least.min(time);
        });
        Span(u64::try_from(least).unwrap_or(u64::MAX))
    }

    /// After a stretch that was skipped: the windows before it count as if they had come right before now.
    pub(crate) fn resume_watch(&mut self, id: PartitionId, passed: Span) {
        let now = self.now();
        let ledger = self.write_ledger(id).unwrap_or_default();
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.ends.iter_mut().for_each(|end| *end += passed);
        steady.ledger = ledger;
        steady.ledger_at = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::units::BitRate;

    /// A flow that had come to this at the ends of the last windows: their times, bytes acknowledged, sums of
    /// round-trip times; an acknowledgement a window.
    fn measured(ends: [u64; MARKS], acked: [u64; MARKS], rtt_sums: [u64; MARKS]) -> (Qp, Steady) {
        let mark = |i| Mark { acked: acked[i], rtt_sum: Span(rtt_sums[i]), acks: i as u64 };
        let mut qp = Qp::zeroed();
        qp.marks = core::array::from_fn(mark);
        (qp, Steady { ends: ends.map(SimTime), ..Steady::NEW })
    }

    #[test]
    fn a_swing_passes_its_middle_upwards_after_it_was_low() {
        let mut swing = Swing { before: [1_000, 2_000], ..Swing::NEW };
        assert_eq!([1_251, 1_600].map(|rate| swing.follow(rate)), [false; 2], "it was not in the lower quarter");
        assert_eq!([1_250, 1_499, 1_500, 1_700].map(|rate| swing.follow(rate)), [false, false, true, false]);
        assert_eq!((swing.extremes(), swing.relative()), ([1_000, 2_000], 500_000));
        swing.end_window();
        assert_eq!((swing.before, swing.now), ([1_250, 1_700], [u64::MAX, 0]));
        // Beyond what was known, both ways.
        assert_eq!([1_100, 2_200].map(|rate| swing.follow(rate)), [false, true]);
        assert_eq!((swing.extremes(), swing.relative()), ([1_100, 2_200], 500_000));
    }

    #[test]
    fn a_rate_that_stays_does_not_swing() {
        let mut swing = Swing::NEW;
        assert_eq!([700; 3].map(|rate| swing.follow(rate)), [false; 3]);
        assert_eq!(swing.relative(), 0);
    }

    #[test]
    fn goodput_is_that_of_all_windows_unless_flows_have_left_and_it_rises_or_falls() {
        let goodput = |ends, acked, hastens, aligned| {
            let (qp, mut steady) = measured(ends, acked, [0; MARKS]);
            (steady.hastens, steady.swing.aligned) = (hastens, aligned);
            let (bytes, time) = super::goodput(&qp, &steady);
            (bytes, time.0)
        };
        let up_and_down = ([5, 15, 35, 45], [7, 1_007, 4_007, 5_407]);
        let rising = ([5, 15, 35, 45], [7, 1_007, 4_007, 5_607]);
        let falling = ([5, 15, 35, 45], [7, 1_007, 2_507, 3_107]);
        for (ends, acked) in [up_and_down, rising, falling] {
            assert_eq!(goodput(ends, acked, 0, 0), (acked[3] - 7, 40));
            assert_eq!(goodput(ends, acked, 0, 1), (acked[3] - acked[1], 30), "from swing to swing");
        }
        assert_eq!(goodput(up_and_down.0, up_and_down.1, 1, 0), (5_400, 40));
        assert_eq!(goodput(rising.0, rising.1, 1, 0), (1_600, 10));
        assert_eq!(goodput(falling.0, falling.1, 1, 0), (600, 10));
        assert_eq!(goodput(up_and_down.0, up_and_down.1, 1, 1), (1_400, 10), "two windows rise or fall");
        let even = [10, 20, 30, 40];
        assert_eq!(goodput(even, [0, 1_000, 2_000, 3_200], 1, 0), (3_200, 30), "it did not rise at first");
        assert_eq!(goodput(even, [0, 1_000, 2_000, 2_800], 1, 0), (800, 10), "it never rose");
    }

    #[test]
    fn flows_differ_between_windows_in_goodput_or_in_round_trip_time() {
        let unsteadiness = |ends, acked, rtt_sums, fewest| {
            let (qp, steady) = measured(ends, acked, rtt_sums);
            super::unsteadiness(&qp, &steady, fewest)
        };
        let (even, like_before) = ([10, 20, 30, 40], [0, 100, 200, 300]);
        assert_eq!(unsteadiness(even, [5, 1_005, 2_005, 2_905], like_before, 900), Some(100_000));
        assert_eq!(unsteadiness(even, [5, 1_005, 2_005, 2_905], like_before, 901), None);
        assert_eq!(unsteadiness([10, 20, 30, 50], [5, 1_005, 2_005, 4_005], like_before, 1), Some(0), "as fast");
        // 30 more of 130.
        assert_eq!(unsteadiness(even, [5, 1_005, 2_005, 3_005], [0, 100, 200, 330], 1), Some(230_769));
        // Between swings, the window before the first does not count.
        let (qp, mut steady) = measured(even, [5, 6, 1_006, 2_006], like_before);
        steady.swing.aligned = 1;
        assert_eq!(super::unsteadiness(&qp, &steady, 1_000), Some(0));
    }

    #[test]
    fn a_round_trip_goes_by_per_acknowledgement() {
        let (mut qp, steady) = measured([10, 20, 30, 40], [0, 1_000, 2_000, 3_000], [0, 200, 400, 600]);
        assert_eq!(unsteadiness(&qp, &steady, 0), Some(0));
        // Two of 100 each in place of one of 200.
        qp.marks[MARKS - 1].acks += 1;
        assert_eq!(unsteadiness(&qp, &steady, 0), Some(500_000));
    }

    #[test]
    fn the_end_of_a_flow_begins_two_packets_and_what_is_under_way_before() {
        let mut qp = Qp::zeroed();
        (qp.size, qp.snd_nxt, qp.snd_una) = (10_000, 4_000, 1_000);
        assert_eq!([500, 1_000, 1_500, 2_000].map(|mtu| bytes_to_its_end(&qp, mtu)), [2_000, 1_000, 0, 0]);
    }

    /// 1,000 of 1,090 bytes of a packet are payload.
    #[test]
    fn headers_are_no_payload() {
        let mut qp = Qp::zeroed();
        qp.header = 42;
        assert_eq!(payload_rate(&qp, 1_000), 0, "no sample yet");
        [2, 1, 6].into_iter().for_each(|gbps| qp.rates.sample(BitRate::from_gbps(gbps)));
        assert_eq!(payload_rate(&qp, 1_000), 3_000_000_000 * 1_000 / (8 * 1_090));
    }
}

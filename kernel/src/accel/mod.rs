//! Acceleration: skipping events that can be proven or measured to be redundant.
//!
//! A *partition* is a set of flows and the ports they use that nothing outside it can influence before the next
//! interrupt. Where the motion of a partition repeats, or its flows run in a steady state, it is parked: its frames
//! and timers leave the simulation until something needs them again.

pub(crate) mod arena;
mod convergence;
pub(crate) mod episode;
mod key;
mod label;
mod park;
pub(crate) mod partition;
pub(crate) mod playback;
mod recording;
mod recurrence;
mod snapshot;
mod steady;
mod value;

use crate::error::CapacityError;
use crate::ids::{PartitionId, QpId};
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::qp::Qp;
use crate::units::Span;
use partition::{JOINED, LEFT, SAME, for_each_qp};

/// What may be skipped.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Tier {
    /// Nothing: every event is executed.
    #[default]
    Off,
    /// What is proven to repeat: results are those of [`Off`](Tier::Off), bit for bit.
    Exact,
    /// Also steady states, with an error that is bounded by measurement.
    Bounded,
}

/// How steady states are recognised ([`Tier::Bounded`]).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Detector {
    /// Ours: goodput over a window that grows until it covers a cycle of the congestion control; range and drift
    /// tests.
    Cycle {
        /// Largest relative range of the goodput between windows, in parts per million.
        theta: u32,
        /// Shortest window.
        window: Span,
    },
    /// The paper's (section on steady-state identification): the relative range of the sending rate, read from the
    /// congestion control, over `samples` samples. Such windows follow each other; the paper's slides by a sample.
    Paper {
        /// Largest relative range, in parts per million.
        theta: u32,
        /// Samples in the window (l).
        samples: u32,
        /// Time between samples.
        interval: Span,
    },
}

impl Detector {
    /// Ours with its defaults.
    pub const CYCLE: Detector = Detector::Cycle { theta: 20_000, window: Span::from_us(18) };
    /// The paper's with its defaults: theta 5 %, l 2000, samples of 1 us.
    pub const PAPER: Detector = Detector::Paper { theta: 50_000, samples: 2_000, interval: Span::from_us(1) };

    /// A hash of its parameters: part of the memo keys of the bounded tier.
    fn hash(&self) -> u64 {
        match *self {
            Detector::Cycle { theta, window } => mix(mix(1, u64::from(theta)), window.0),
            Detector::Paper { theta, samples, interval } => {
                mix(mix(mix(2, u64::from(theta)), u64::from(samples)), interval.0)
            }
        }
    }
}

/// How to accelerate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Acceleration {
    /// What may be skipped.
    pub tier: Tier,
    /// How steady states are recognised.
    pub detector: Detector,
}

impl Default for Acceleration {
    fn default() -> Acceleration {
        Acceleration { tier: Tier::Off, detector: Detector::CYCLE }
    }
}

/// Why a stretch of a partition did not have to be simulated.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum SkippedBy {
    /// It was proven to repeat itself.
    Exact,
    /// Its flows were in a steady state.
    Bounded,
    /// A record, or another partition like it, told what would come of it.
    Memo,
}

/// What has been done so often in vain is done half as often, after twice as many times a third as often, and so on
/// down to the rarest: where nothing comes again, ever less is spent on finding that out.
const PATIENCE: u64 = 64;
const RAREST: u64 = 8;

/// How many times rarer than it might be something is done that has been in vain so often.
fn rarer(vain: u64) -> u64 {
    (1 + vain / PATIENCE).min(RAREST)
}

/// What acceleration has done since the start.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Skipped {
    /// Events not executed, by the rate at which the stretches skipped had them.
    pub events: u64,
    /// Simulated time skipped exactly, summed over partitions.
    pub time_exact: Span,
    /// Simulated time skipped within a bound, summed over partitions.
    pub time_bounded: Span,
    /// Most partitions there were at once.
    pub partitions_max: u32,
    /// Parked partitions that were woken, for whatever reason.
    pub wakes: u64,
    /// Those woken before their time.
    pub skip_backs: u64,
    /// Frames and ports put back that had company: something of another partition was due at the same instant after
    /// the same delay. Which was scheduled first is not known then, and matters if the two partitions are ever
    /// joined; the one with the elder flow goes first. While this is 0, exact acceleration is exact.
    pub contested: u64,
    /// Parked partitions woken because a switch's shared buffer was about to couple them with others.
    pub buffer_couplings: u64,
}

/// Queue pairs whose partitions are to be looked at.
pub(crate) type Looks = heapless::Vec<QpId, 64>;

/// One more word into a hash: a rotation, an exclusive or, a product.
pub(crate) fn mix(hash: u64, word: u64) -> u64 {
    (hash.rotate_left(23) ^ word).wrapping_mul(0x9e37_79b9_7f4a_7c15)
}

/// Payload bytes under way; none where [`Qp::in_flight`] wraps.
fn window_of(slot: &Qp) -> u64 {
    slot.snd_nxt.saturating_sub(slot.snd_una)
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Accelerates from now on, or not.
    ///
    /// # Errors
    /// [`CapacityError`] `snapshot_words` if there is no memory for states at all.
    pub fn accelerate(&mut self, how: Acceleration) -> Result<(), CapacityError> {
        if how.tier != Tier::Off && self.reserve.is_empty() {
            return Err(CapacityError { what: "snapshot_words", limit: 0 });
        }
        self.interrupt_recordings();
        self.wake_all();
        let was_off = core::mem::replace(&mut self.acceleration, how).tier == Tier::Off;
        for qp in self.qps.ids() {
            if how.tier == Tier::Off {
                self.leave(qp);
            } else if was_off && self.qps.slots[qp.index()].is_in_use() {
                self.join(qp);
                self.watch_from(qp);
            }
        }
        Ok(())
    }

    /// Whether partitions are kept.
    pub(crate) fn accelerates(&self) -> bool {
        self.acceleration.tier != Tier::Off
    }

    /// A flow is worth looking at once it has lasted a few round trips.
    pub(crate) fn watch_from(&mut self, qp: QpId) {
        let slot = &mut self.qps.slots[qp.index()];
        slot.section = slot.snd_una.saturating_add(slot.bdp.saturating_mul(2));
    }

    /// The acknowledgement of a queue pair has come that its partition is to be looked at on. If too many are in this
    /// instant, the next one of the queue pair will do.
    #[cold]
    pub(crate) fn ask_for_look(&mut self, qp: QpId) {
        let is_noted = self.looks.push(qp).is_ok();
        self.qps.slots[qp.index()].section = if is_noted { u64::MAX } else { 0 };
        self.interrupted |= is_noted;
    }

    /// Looks at partitions, if all of this instant has happened: then flows in step have come equally far, and are
    /// found to be equally fast.
    pub(crate) fn look_at_end_of_instant(&mut self) {
        if !self.looks.is_empty() && !self.has_more_now() {
            for qp in core::mem::take(&mut self.looks) {
                self.look(qp);
            }
        }
    }

    fn look(&mut self, qp: QpId) {
        let slot = &self.qps.slots[qp.index()];
        let id = slot.partition;
        if id.is_none() || !slot.is_open() {
            return;
        }
        if self.partitions.is_due(id) {
            // It is looked up first.
            return self.lead(qp);
        }
        let partition = self.partitions.get(id);
        let (leader, changed) = (partition.leader, partition.changed);
        if leader != qp && self.leads(leader, id) {
            return;
        }
        if changed != SAME {
            if changed == LEFT {
                self.split(id);
            }
            let id = self.qps.slots[qp.index()].partition;
            return self.watch(id, qp, changed == JOINED);
        }
        self.partitions.get_mut(id).leader = qp;
        if self.look_for_recurrence(id, qp) {
            return;
        }
        let may_be_steady = self.acceleration.tier == Tier::Bounded;
        if may_be_steady && !self.partitions.get(id).recurrence.is_promising() && self.look_for_steady_state(id) {
            return;
        }
        self.watch_on(id);
    }

    /// Whether a queue pair still leads the partition and will be heard of again.
    fn leads(&self, leader: QpId, id: PartitionId) -> bool {
        let slot = self.qps.slots.get(leader.index());
        slot.is_some_and(|slot| slot.partition == id && slot.is_open() && slot.section != u64::MAX)
    }

    /// Begins to watch a partition that has changed.
    fn watch(&mut self, id: PartitionId, leader: QpId, joined: bool) {
        self.forget_motion(id);
        self.vain_watches = (self.vain_watches + 1).min(PATIENCE * (RAREST - 1));
        let partition = self.partitions.get_mut(id);
        partition.leader = leader;
        partition.changed = SAME;
        if !self.partitions.get(id).episode.is_recording() {
            self.measure_queues(id);
        }
        self.prepare_to_measure(id, joined);
        self.watch_on(id);
    }

    /// Says when the partition is looked at next.
    pub(crate) fn watch_on(&mut self, id: PartitionId) {
        let leader = self.partitions.get(id).leader;
        if leader.is_none() {
            return;
        }
        let next = self.partitions.get(id).recurrence.next();
        let slot = &mut self.qps.slots[leader.index()];
        let packet = u64::from(self.models.transport.mtu);
        let soon = match self.acceleration.detector {
            Detector::Cycle { .. } => slot.snd_una + packet.max(window_of(slot) / 4 * rarer(self.vain_watches)),
            Detector::Paper { .. } => slot.snd_una + packet,
        };
        let is_exact = self.acceleration.tier == Tier::Exact;
        slot.section = if is_exact || next < soon { next.max(slot.snd_una + packet) } else { soon };
    }

    /// Forgets what was found out about a partition's motion.
    pub(crate) fn forget_motion(&mut self, id: PartitionId) {
        self.drop_candidate(id);
        self.partitions.get_mut(id).recurrence = recurrence::Recurrence::NEW;
        self.forget_rates(id);
    }

    /// A flow has finished: its partition will have to be split, and led by another if it was the leader.
    pub(crate) fn flow_left(&mut self, qp: QpId) {
        let id = self.qps.slots[qp.index()].partition;
        if id.is_none() {
            return;
        }
        self.partitions.get_mut(id).changed = LEFT;
        self.note_change(id);
        if self.partitions.get(id).leader != qp {
            return;
        }
        let (mut leader, mut most) = (QpId::NONE, 0);
        for_each_qp!(self, id, qp, {
            let slot = &self.qps.slots[qp.index()];
            if slot.is_open() && slot.bytes_left() >= most {
                (leader, most) = (qp, slot.bytes_left());
            }
        });
        self.partitions.get_mut(id).leader = leader;
        if leader.is_some() {
            self.lead(leader);
        }
    }

    /// Looks at the partition of a queue pair after a round trip, or after a few.
    pub(crate) fn lead(&mut self, qp: QpId) {
        let slot = &mut self.qps.slots[qp.index()];
        slot.section = slot.snd_una + window_of(slot) * rarer(self.vain_watches) + 1;
    }

    /// A partition is parked: that makes up for [`PATIENCE`] others that were watched in vain.
    pub(crate) fn watching_has_paid(&mut self) {
        self.vain_watches = self.vain_watches.saturating_sub(PATIENCE);
    }
}

//! Exact fast-forwarding: a partition whose state comes back to what it was repeats itself.
//!
//! Looked at on acknowledgements of one flow, the leader's. Cheap fingerprints find candidates (Brent's cycle search:
//! one kept fingerprint, replaced after 1, 2, 4, ... looks); full snapshots, a candidate's period apart, decide. What
//! is proven to repeat is skipped in whole periods. Most looks see that the leader itself is not where it was, and
//! that is all they look at.

use super::arena::Block;
use super::mix;
use super::park::{Parked, RECURRENCE};
use super::partition::{for_each_port, for_each_qp};
use super::snapshot::{HEADER_WORDS, witness};
use crate::cca::CongestionControl;
use crate::ids::{PartitionId, QpId};
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::router::Router;
use crate::units::SimTime;
use bytemuck::{Pod, Zeroable};

/// Looks at which the leader's acknowledgements are counted singly; then the steps double as often.
const LOOKS_PER_STRIDE: u32 = 64;
/// Longest step, in packets of the leader.
const MAX_STRIDE: u32 = 256;
/// A fingerprint reads so many queue pairs and ports in about the time that one packet of a flow takes on its way: a
/// step has a packet of the leader for every so many of them, which keeps looks at large partitions about 1 % of their
/// work, or less where others of their flows send too.
const MEMBERS_PER_PACKET: u64 = 64;
/// A state is compared with later ones as often as this, and for as many round trips: its true period may be a
/// multiple of its fingerprint's.
const TRIES: u32 = 12;
const MAX_ROUND_TRIPS: u64 = 12;
/// After so many candidates that came to nothing there is little hope.
const CANDIDATES: u32 = 5;
/// Looks in which the next one comes up, if there is one.
const LOOKS_TO_HOPE: u32 = 8;
/// Skipping fewer periods is not worth it.
pub(super) const MIN_ROUNDS: u64 = 4;

/// The search for a recurrence.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub(crate) struct Recurrence {
    /// The kept fingerprint, and what the leader had acknowledged then.
    fingerprint: u64,
    acked: u64,
    /// What the leader will have acknowledged at the next look.
    next: u64,
    /// Half of the kept fingerprint of the leader alone.
    of_leader: u32,
    /// Steps between looks, in packets.
    stride: u32,
    /// Looks since the kept fingerprint, and at how many it is replaced.
    looks: u32,
    power: u32,
    /// Looks in all.
    total: u32,
    /// Comparisons with `before` so far.
    tries: u32,
    /// Candidates given up, and the number of looks at the last time.
    dropped: u32,
    dropped_at: u32,
    /// Period of the candidate, in bytes of the leader; 0 while there is none.
    period: u64,
    /// When `before` and `ledger` were taken.
    began: SimTime,
    before: Block,
    ledger: Block,
}

impl Recurrence {
    pub(crate) const NEW: Recurrence = Recurrence {
        fingerprint: 0,
        acked: 0,
        next: 0,
        of_leader: 0,
        stride: 1,
        looks: 0,
        power: 1,
        total: 0,
        tries: 0,
        dropped: 0,
        dropped_at: 0,
        period: 0,
        began: SimTime::ZERO,
        before: Block::NONE,
        ledger: Block::NONE,
    };

    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// Whether a candidate is being tried.
    fn has_candidate(&self) -> bool {
        self.period != 0
    }

    /// Whether a recurrence may be found soon: a candidate is being tried, or one was lately and few have been given
    /// up.
    pub(crate) fn is_promising(&self) -> bool {
        let lately = self.total - self.dropped_at < LOOKS_TO_HOPE;
        self.has_candidate() || lately && (1..CANDIDATES).contains(&self.dropped)
    }

    /// Takes note of a fingerprint, which is made if it is needed. Says whether it is the kept one.
    fn note(&mut self, of_leader: u32, fingerprint: impl Fn() -> u64, acked: u64) -> bool {
        if self.looks > 0 && of_leader == self.of_leader && fingerprint() == self.fingerprint {
            return true;
        }
        self.looks += 1;
        if self.looks >= self.power {
            self.power = self.power.saturating_mul(2);
            self.looks = 0;
        }
        if self.looks == 0 || self.total == 0 {
            self.fingerprint = fingerprint();
            self.of_leader = of_leader;
            self.acked = acked;
            self.looks = self.looks.max(1);
        }
        self.total += 1;
        if self.total.is_multiple_of(LOOKS_PER_STRIDE) {
            self.stride = (2 * self.stride).min(MAX_STRIDE);
        }
        false
    }
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Gives the search up and begins anew, later steps as they were.
    pub(crate) fn drop_candidate(&mut self, id: PartitionId) {
        let recurrence = self.partitions.get(id).recurrence;
        let Recurrence { mut before, mut ledger, stride, total, mut dropped, mut dropped_at, .. } = recurrence;
        if !before.is_none() {
            (dropped, dropped_at) = (dropped.saturating_add(1), total);
        }
        self.arena.free(&mut before);
        self.arena.free(&mut ledger);
        self.partitions.get_mut(id).recurrence = Recurrence { stride, total, dropped, dropped_at, ..Recurrence::NEW };
    }

    /// Looks at a partition on an acknowledgement of its leader. Says whether it has parked it.
    pub(crate) fn look_for_recurrence(&mut self, id: PartitionId, leader: QpId) -> bool {
        // Sprayed packets take their way by their number: nothing comes back.
        if !M::Router::PER_FLOW {
            return false;
        }
        let acked = self.qps.slots[leader.index()].snd_una;
        if acked < self.partitions.get(id).recurrence.next {
            return false;
        }
        if self.partitions.get(id).recurrence.has_candidate() {
            return self.try_candidate(id, leader);
        }
        let partition = self.partitions.get(id);
        let fewest = u64::from(partition.qps + partition.ports) / MEMBERS_PER_PACKET;
        let mut recurrence = partition.recurrence;
        let found = recurrence.note(self.of_flow(0, leader) as u32, || self.fingerprint(id), acked);
        let period = acked - recurrence.acked;
        recurrence.next = acked + u64::from(recurrence.stride).max(fewest) * u64::from(self.models.transport.mtu);
        self.partitions.get_mut(id).recurrence = recurrence;
        if found && period > 0 {
            self.begin_candidate(id, acked, period);
        }
        false
    }

    fn begin_candidate(&mut self, id: PartitionId, acked: u64, period: u64) {
        let now = self.now();
        let before = self.capture(id);
        let ledger = before.and_then(|_| self.write_ledger(id));
        let recurrence = &mut self.partitions.get_mut(id).recurrence;
        recurrence.before = before.unwrap_or_default();
        recurrence.ledger = ledger.unwrap_or_default();
        if ledger.is_none() {
            return self.drop_candidate(id);
        }
        recurrence.acked = acked;
        recurrence.period = period;
        recurrence.began = now;
        recurrence.tries = 0;
        recurrence.next = acked + period;
    }

    fn try_candidate(&mut self, id: PartitionId, leader: QpId) -> bool {
        let acked = self.qps.slots[leader.index()].snd_una;
        let Recurrence { before, next, .. } = self.partitions.get(id).recurrence;
        if acked == next && self.controls_repeat(id, before) {
            let Some(mut after) = self.capture(id) else {
                self.drop_candidate(id);
                return false;
            };
            if self.repeats(id, before, after) {
                return self.park_exactly(id, after);
            }
            self.arena.free(&mut after);
            self.partitions.get_mut(id).recurrence.tries += 1;
        }
        self.try_again(id, leader);
        false
    }

    /// Waits for one more of the candidate's periods, or gives it up.
    fn try_again(&mut self, id: PartitionId, leader: QpId) {
        let slot = &self.qps.slots[leader.index()];
        let patience = MAX_ROUND_TRIPS.saturating_mul(slot.in_flight());
        let recurrence = &mut self.partitions.get_mut(id).recurrence;
        recurrence.next = slot.snd_una + recurrence.period;
        if recurrence.tries == TRIES || slot.snd_una - recurrence.acked > patience.max(recurrence.period) {
            recurrence.stride = (2 * recurrence.stride).min(MAX_STRIDE);
            self.drop_candidate(id);
        }
    }

    fn park_exactly(&mut self, id: PartitionId, mut after: Block) -> bool {
        let now = self.now();
        let Recurrence { before, ledger, began, .. } = self.partitions.get(id).recurrence;
        let span = now.since(began);
        let rounds = self.rounds_before_an_end(id, ledger);
        if rounds < MIN_ROUNDS || rounds == u64::MAX || !self.stays_calm(id) {
            self.arena.free(&mut after);
            self.drop_candidate(id);
            return false;
        }
        let until = SimTime(now.0.saturating_add(span.0.saturating_mul(rounds)));
        self.partitions.get_mut(id).recurrence = Recurrence::NEW;
        self.park(id, Parked { since: now, until, span, ledger, before, after, kind: RECURRENCE, ..Parked::NONE });
        true
    }

    /// Whether two snapshots of a partition say that it repeats itself.
    fn repeats(&self, id: PartitionId, before: Block, after: Block) -> bool {
        let (before, after) = (self.arena.get(before), self.arena.get(after));
        let controls = before[2] as usize..before[3] as usize;
        // The header tells the lengths of all the rest.
        if before[..HEADER_WORDS] != after[..HEADER_WORDS]
            || before[..controls.start] != after[..controls.start]
            || witness(before) != witness(after)
        {
            return false;
        }
        let mut pairs = before[controls.clone()].chunks(Self::CCA_WORDS).zip(after[controls].chunks(Self::CCA_WORDS));
        self.each_control(id, |cca, _| {
            pairs.next().is_some_and(|(b, a)| cca.repeats(&Self::cca_of(b), &Self::cca_of(a)))
        })
    }

    /// Whether the congestion controls of all flows repeat what they were in a snapshot: this is quickly told.
    fn controls_repeat(&self, id: PartitionId, before: Block) -> bool {
        let before = self.arena.get(before);
        let mut states = before[before[2] as usize..before[3] as usize].chunks(Self::CCA_WORDS);
        self.each_control(id, |cca, qp| {
            let state = states.next().map(Self::cca_of);
            let now = self.relative_cca(qp);
            state.zip(now).is_some_and(|(before, after)| cca.repeats(&before, &after))
        })
    }

    /// Whether `holds` for the congestion controls of all flows that have not finished.
    fn each_control(&self, id: PartitionId, mut holds: impl FnMut(&M::Cca, QpId) -> bool) -> bool {
        for_each_qp!(self, id, qp, {
            let is_open = self.qps.slots[qp.index()].is_open();
            if is_open && !holds(&self.models.ccas[self.qps.slots[qp.index()].cca as usize], qp) {
                return false;
            }
        });
        true
    }

    /// A hash of what is quickly told of a partition's state.
    fn fingerprint(&self, id: PartitionId) -> u64 {
        let now = self.now();
        let mut hash = 0;
        for_each_qp!(self, id, qp, {
            hash = self.of_flow(hash, qp);
        });
        for_each_port!(self, id, port, {
            let state = &self.ports[port.index()];
            hash = mix(hash, state.backlog << 40 ^ state.idle_from.at.since(now).0);
        });
        hash
    }

    /// A flow's state into a hash.
    fn of_flow(&self, hash: u64, qp: QpId) -> u64 {
        let slot = &self.qps.slots[qp.index()];
        let hash = mix(hash, slot.in_flight() << 32 ^ slot.expected.wrapping_sub(slot.snd_una));
        let hash = mix(hash, slot.control.rate.0);
        mix(hash, slot.next_avail.0.wrapping_sub(self.now().0))
    }
}

//! Convergence: the part of an episode up to where a partition begins to repeat itself, or to run steadily.
//!
//! What follows depends on how much flows have left only in when it ends. So such a record holds for flows of any size
//! that is enough: sizes are left out of its key. It tells of the motion, too, with which the partition goes on: a
//! partition that is played back to that point is parked there at once, until the first of its own flows comes to its
//! end.
//!
//! A motion, in words: why it is parked; the span that was measured, or the period; the longest stretch; what ports and
//! flows count in that span, as in a ledger; for a period, the congestion controls at its beginning.

use super::arena::Block;
use super::episode::Episode;
use super::park::{PORT_ENTRIES, Parked, QP_ENTRIES, RECURRENCE, STEADY};
use super::recurrence::MIN_ROUNDS;
use super::snapshot::counts;
use super::steady::bytes_to_its_end;
use super::value::Writer;
use crate::event::Clock;
use crate::ids::{PartitionId, QpId};
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::units::{SimTime, Span, quotient};

const MOTION_HEADER: usize = 3;

/// A motion that is being told of: the ledger of its span, and the state at the beginning of a period.
pub(super) struct Motion<'m> {
    pub(super) parked: &'m Parked,
    pub(super) ledger: &'m [u64],
    pub(super) before: &'m [u64],
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// A partition is about to be parked: if it is being recorded, and this is its first motion, that is recorded.
    pub(super) fn note_convergence(&mut self, id: PartitionId, parked: &Parked) {
        let episode = self.partitions.get(id).episode;
        if !episode.is_recording() || episode.has_converged != 0 || !matches!(parked.kind, STEADY | RECURRENCE) {
            return;
        }
        self.partitions.get_mut(id).episode.has_converged = 1;
        let Some(mut key) = self.open_ended_key(episode) else { return };
        if let Some(mut value) = self.write_value(id, true, Some(parked)) {
            if let Some(store) = self.memo.as_mut() {
                store.insert(self.arena.get(key), self.arena.get(value));
            }
            self.arena.free(&mut value);
        }
        self.arena.free(&mut key);
    }

    /// The record of a motion that a partition comes to, whatever its flows have left.
    pub(super) fn find_motion(&mut self, id: PartitionId, episode: Episode) -> Option<Block> {
        let mut key = self.open_ended_key(episode)?;
        let mut found = self.find(id, key);
        self.arena.free(&mut key);
        if let Some(value) = &mut found
            && !self.fits(id, *value)
        {
            self.arena.free(value);
            return None;
        }
        found
    }

    /// The key of a recording without sizes: the coarse one, where little can come of a small difference.
    fn open_ended_key(&mut self, episode: Episode) -> Option<Block> {
        let Episode { key, coarse, contended, .. } = episode;
        let of = if coarse.is_none() || contended != 0 { key } else { coarse };
        let block = self.arena.alloc(self.arena.get(of).len())?;
        let [to, from] = self.arena.several([block, of]);
        to.copy_from_slice(from);
        Self::leave_sizes_out(to);
        Some(block)
    }

    /// What a flow has sent of what it had: of no more than this a record without sizes holds. `None` if it was on its
    /// last packets.
    pub(super) fn sent_on_the_way(&self, qp: QpId, acked_before: u64, left_before: u64) -> Option<u64> {
        let sent = self.qps.slots[qp.index()].snd_nxt.wrapping_sub(acked_before);
        (left_before > sent + u64::from(self.models.transport.mtu)).then_some(sent)
    }

    /// Words that the tale of a motion takes.
    pub(super) fn motion_words(&self, parked: &Parked) -> usize {
        let controls = self.arena.get(parked.after);
        MOTION_HEADER + self.arena.get(parked.ledger).len() + counts(controls).0 * Self::CCA_WORDS
    }

    pub(super) fn tell_motion(&self, id: PartitionId, value: &mut Writer<'_>, motion: Motion<'_>) {
        let Motion { parked, ledger, before } = motion;
        let stretch = parked.until.since(parked.since);
        value.put_all([u64::from(parked.kind), parked.span.0, stretch.0]);
        let mut at = 0;
        self.each_ledger_word(id, |now, is_short| {
            let grown = now.wrapping_sub(ledger[at]);
            value.put(if is_short { grown & u64::from(u32::MAX) } else { grown });
            at += 1;
        });
        if parked.kind == RECURRENCE {
            value.put_all(before[before[2] as usize..before[3] as usize].iter().copied());
        }
    }

    /// Parks a partition that has been played back to where it goes on by itself, if that is worth it.
    pub(super) fn resume_motion(&mut self, id: PartitionId, value: Block, motion_at: usize) {
        // The record is from the midst of an instant, of which some is still to come: seen from its beginning.
        let present = self.clock;
        self.clock = Clock::beginning_of(self.now());
        let after = self.capture(id);
        self.clock = present;
        // It is in the store already.
        self.partitions.get_mut(id).episode.has_converged = 1;
        let Some(mut after) = after else { return };
        let parked = self.motion_at(id, after, value, motion_at);
        match parked {
            Some(parked) if parked.until > parked.since && self.stays_calm(id) => self.park(id, parked),
            _ => {
                let Parked { mut ledger, mut before, .. } = parked.unwrap_or(Parked::NONE);
                self.arena.free(&mut ledger);
                self.arena.free(&mut before);
                self.arena.free(&mut after);
            }
        }
    }

    fn motion_at(&mut self, id: PartitionId, after: Block, value: Block, motion_at: usize) -> Option<Parked> {
        let [kind, span, stretch] = self.arena.get(value)[motion_at..motion_at + MOTION_HEADER] else { return None };
        let ledger = self.write_ledger(id)?;
        let (qps, ports) = counts(self.arena.get(after));
        let controls_at = motion_at + MOTION_HEADER + ports * PORT_ENTRIES + qps * QP_ENTRIES;
        let [entries, grown] = self.arena.several([ledger, value]);
        let grown = &grown[motion_at + MOTION_HEADER..controls_at];
        entries.iter_mut().zip(grown).for_each(|(entry, grown)| *entry = entry.wrapping_sub(*grown));
        let now = self.now();
        let parked =
            Parked { since: now, until: now, span: Span(span), ledger, after, kind: kind as u32, ..Parked::NONE };
        if parked.kind == RECURRENCE {
            let rounds = self.rounds_before_an_end(id, ledger);
            let until = SimTime(now.0.saturating_add(span.saturating_mul(rounds)));
            let until = if rounds < MIN_ROUNDS || rounds == u64::MAX { now } else { until };
            return match self.copy_with_controls(after, value, controls_at) {
                Some(before) => Some(Parked { until, before, ..parked }),
                None => Some(parked),
            };
        }
        let until = now + self.stretch_by(id, ledger, Span(span)).min(Span(stretch));
        Some(Parked { until, ..parked })
    }

    /// A copy of a snapshot with other congestion controls in it.
    fn copy_with_controls(&mut self, of: Block, value: Block, controls_at: usize) -> Option<Block> {
        let copy = self.arena.alloc(self.arena.get(of).len())?;
        let [to, from, value] = self.arena.several([copy, of, value]);
        to.copy_from_slice(from);
        let controls = from[2] as usize..from[3] as usize;
        let length = controls.len();
        to[controls].copy_from_slice(&value[controls_at..controls_at + length]);
        Some(copy)
    }

    /// How long until the first flow comes to its end, if flows go on as a ledger says.
    fn stretch_by(&mut self, id: PartitionId, ledger: Block, span: Span) -> Span {
        let (mtu, mut least) = (self.models.transport.mtu, u128::MAX);
        self.each_ledger_entry(id, ledger, |qp, before| {
            let bytes = u128::from(qp.snd_una.wrapping_sub(*before)).max(1);
            least = least.min(quotient(bytes_to_its_end(qp, mtu) * u128::from(span.0), bytes));
        });
        Span(u64::try_from(least).unwrap_or(u64::MAX))
    }
}

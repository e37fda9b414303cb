//! Bounded fast-forwarding: flows whose goodput stays what it is are moved on by it.
//!
//! What is measured is goodput, bytes acknowledged: with a window the congestion control's rate may be a multiple of
//! it. Windows follow each other; three in a row are compared. The window is right once it covers a cycle of the
//! congestion control, that is once the goodput of consecutive windows agrees: it is doubled until then. A flow that
//! shares a port with others may drift slowly, which no short window shows: so what is skipped is in proportion to
//! what was watched, and is watched again after.

use super::arena::Block;
use super::park::Parked;
use super::{Detector, Tier};
use crate::ids::{PartitionId, PortId, QpId};
use crate::kernel::Kernel;
use crate::models::Models;
use crate::observer::Observer;
use crate::qp::{MARKS, Qp};
use crate::router::Router;
use crate::units::{SimTime, Span};
use bytemuck::{Pod, Zeroable};

/// Windows that are compared.
const WINDOWS: u32 = MARKS as u32 - 1;
/// Disagreements after which the window is doubled.
const PATIENCE: u32 = 4;
/// Packets a window must have of every flow, times the relative range that is asked for: one packet more or less must
/// not decide.
const RESOLUTION: u64 = 2;
/// Contending flows are skipped for at most this many times what was watched of them.
const CONTENDED_STRETCH: u64 = 8;
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
    windows: u32,
    disagreements: u32,
    /// Flows share a port.
    contended: u32,
    pad: u32,
}

impl Steady {
    pub(crate) const NEW: Steady = Steady {
        ends: [SimTime::ZERO; MARKS],
        window: Span::ZERO,
        watched: Span::ZERO,
        ledger: Block::NONE,
        ledger_at: SimTime::ZERO,
        windows: 0,
        disagreements: 0,
        contended: 0,
        pad: 0,
    };
}

/// Goodputs of a flow in the last windows, and over all of them.
struct Goodput {
    /// Bytes per 2^32 ps.
    least: u128,
    most: u128,
    mean: u128,
    /// Bytes over all windows.
    bytes: u64,
    /// Fewest bytes in a window.
    fewest: u64,
}

impl Goodput {
    fn of(qp: &Qp, ends: &[SimTime; MARKS]) -> Goodput {
        let rate = |bytes: u64, span: Span| (u128::from(bytes) << 32) / u128::from(span.0.max(1));
        let bytes = qp.marks[MARKS - 1] - qp.marks[0];
        let mean = rate(bytes, ends[MARKS - 1].since(ends[0]));
        let mut goodput = Goodput { least: u128::MAX, most: 0, mean, bytes, fewest: u64::MAX };
        for i in 1..MARKS {
            let bytes = qp.marks[i] - qp.marks[i - 1];
            let rate = rate(bytes, ends[i].since(ends[i - 1]));
            goodput.least = goodput.least.min(rate);
            goodput.most = goodput.most.max(rate);
            goodput.fewest = goodput.fewest.min(bytes);
        }
        goodput
    }
}

impl<M: Models, O: Observer> Kernel<'_, M, O> {
    /// Forgets what was measured of a partition.
    pub(crate) fn forget_rates(&mut self, id: PartitionId) {
        let mut ledger = self.partitions.get(id).steady.ledger;
        self.arena.free(&mut ledger);
        self.partitions.get_mut(id).steady = Steady::NEW;
    }

    /// Begins to measure.
    pub(crate) fn measure(&mut self, id: PartitionId) {
        if self.acceleration.tier != Tier::Bounded {
            return;
        }
        let (now, contended) = (self.now(), self.is_contended(id));
        let window = match self.acceleration.detector {
            Detector::Cycle { window, .. } => window,
            Detector::Paper { samples, interval, .. } => Span(interval.0.saturating_mul(u64::from(samples))),
        };
        let ledger = self.write_ledger(id).unwrap_or_default();
        let steady = &mut self.partitions.get_mut(id).steady;
        *steady = Steady { ledger, ledger_at: now, window, contended: u32::from(contended), ..Steady::NEW };
        self.end_window(id);
        self.partitions.get_mut(id).steady.windows = 0;
    }

    /// Whether any port carries the data of more than one flow.
    fn is_contended(&mut self, id: PartitionId) -> bool {
        if !M::Router::PER_FLOW {
            return true;
        }
        let mut next = self.first_port(id);
        while let Some(port) = next {
            self.ports[port.index()].local = 0;
            next = self.next_port(port);
        }
        let mut contended = false;
        let mut next = self.first_qp(id);
        while let Some(qp) = next {
            self.each_data_port(qp, |kernel, port| {
                let flows = &mut kernel.ports[port.index()].local;
                *flows += 1;
                contended |= *flows > 1;
            });
            next = self.next_qp(qp);
        }
        contended
    }

    fn end_window(&mut self, id: PartitionId) {
        let now = self.now();
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.ends.rotate_left(1);
        steady.ends[MARKS - 1] = now;
        steady.windows += 1;
        let mut next = self.first_qp(id);
        while let Some(qp) = next {
            let slot = &mut self.qps.slots[qp.index()];
            slot.marks.rotate_left(1);
            slot.marks[MARKS - 1] = slot.snd_una;
            next = self.next_qp(qp);
        }
    }

    /// Looks at the goodput of a partition's flows. Says whether it has parked it.
    pub(crate) fn look_for_steady_state(&mut self, id: PartitionId) -> bool {
        let steady = &self.partitions.get(id).steady;
        let last = steady.ends[MARKS - 1];
        if self.now().since(last) < steady.window || steady.ledger.is_none() {
            return false;
        }
        self.end_window(id);
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.watched += steady.ends[MARKS - 1].since(steady.ends[MARKS - 2]);
        if steady.windows < WINDOWS {
            return false;
        }
        if self.agrees(id) {
            self.partitions.get_mut(id).steady.disagreements = 0;
            return self.park_within_bound(id);
        }
        let steady = &mut self.partitions.get_mut(id).steady;
        steady.disagreements += 1;
        if steady.disagreements == PATIENCE {
            steady.disagreements = 0;
            steady.windows = 0;
            steady.window = steady.window + steady.window;
        }
        false
    }

    /// Whether every flow had about the same goodput in all windows.
    fn agrees(&self, id: PartitionId) -> bool {
        let theta = match self.acceleration.detector {
            Detector::Cycle { theta, .. } | Detector::Paper { theta, .. } => u64::from(theta),
        };
        let fewest = RESOLUTION * MILLION / theta.max(1) * u64::from(self.models.transport.mtu);
        let ends = &self.partitions.get(id).steady.ends;
        let mut next = self.first_qp(id);
        while let Some(qp) = next {
            let goodput = Goodput::of(&self.qps.slots[qp.index()], ends);
            let range = (goodput.most - goodput.least) * u128::from(MILLION);
            if goodput.fewest < fewest || range > goodput.mean * u128::from(theta) {
                return false;
            }
            next = self.next_qp(qp);
        }
        true
    }

    fn park_within_bound(&mut self, id: PartitionId) -> bool {
        let now = self.now();
        let Steady { ends, window, watched, ledger, ledger_at, contended, .. } = self.partitions.get(id).steady;
        let measured = ends[MARKS - 1].since(ends[0]);
        let span = now.since(ledger_at);
        let mut stretch = self.time_to_an_end(id, measured);
        if contended != 0 {
            stretch = stretch.min(Span(watched.0.saturating_mul(CONTENDED_STRETCH)));
        }
        if stretch.0 < MIN_WINDOWS * window.0 || !self.is_calm(id) {
            return false;
        }
        let Some(after) = self.capture(id) else { return false };
        // The flows' part of the ledger: what they would have had at its beginning at the goodput that was measured.
        self.each_ledger_entry(id, ledger, |qp, acked| {
            let bytes = qp.marks[MARKS - 1] - qp.marks[0];
            let share = u128::from(bytes) * u128::from(span.0) / u128::from(measured.0.max(1));
            *acked = qp.snd_una.wrapping_sub(share as u64);
        });
        self.partitions.get_mut(id).steady.ledger = Block::NONE;
        let until = now + stretch;
        self.park(id, Parked { since: now, until, span, ledger, after, ..Parked::NONE });
        true
    }

    /// How long until the first flow has only about two round trips to go.
    fn time_to_an_end(&mut self, id: PartitionId, measured: Span) -> Span {
        let mtu = u64::from(self.models.transport.mtu);
        let ends = self.partitions.get(id).steady.ends;
        let mut least = u128::MAX;
        let mut next = self.first_qp(id);
        while let Some(qp) = next {
            let slot = &self.qps.slots[qp.index()];
            let goodput = Goodput::of(slot, &ends);
            let left = slot.bytes_left().saturating_sub(2 * (slot.in_flight() + mtu));
            let time = u128::from(left) * u128::from(measured.0) / u128::from(goodput.bytes.max(1));
            least = least.min(time);
            next = self.next_qp(qp);
        }
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

    /// Calls `visit` with the ports that the data of a queue pair takes.
    fn each_data_port(&mut self, qp: QpId, mut visit: impl FnMut(&mut Self, PortId)) {
        let ack_port = self.qps.slots[qp.index()].ack_port;
        let mut is_data = true;
        self.each_port(qp, |kernel, port| {
            is_data &= port != ack_port;
            if is_data {
                visit(kernel, port);
            }
        });
    }
}

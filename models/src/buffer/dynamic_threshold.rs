//! The shared buffer with dynamic PFC thresholds of the reference model (ns-3 `SwitchMmu`).
//!
//! Each ingress queue has a reserve of its own, then draws on the shared part up to a threshold that shrinks as
//! the shared part fills, then on its port's headroom for what is in flight when the pause goes out.
//! Arithmetic is 32-bit, as there.

use bytemuck::{Pod, Zeroable};
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, PS_PER_NS, quotient};

/// Bytes every ingress queue has for itself.
const RESERVE: u32 = 4 * 1024;
/// A paused sender goes on once the queue is this far below its threshold.
const RESUME_OFFSET: u32 = 3 * 1024;
/// The threshold is the free shared buffer shifted right by this, for ports at the rate of the NICs.
const BASE_SHIFT: u32 = 3;
/// More than a frame has; jumbo frames are 9 KiB.
const LARGEST_FRAME: u32 = 16 * 1024;

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct DynamicThreshold {
    /// Bytes of buffer of each switch (`BUFFER_SIZE` MiB).
    pub bytes: u32,
    /// A switch whose reserves and headrooms exceed its buffer has, in ns-3, a shared part that wraps around to
    /// nearly 4 GiB. Without this it has none: queues live on reserve and headroom alone.
    pub wraps: bool,
}

/// A switch's buffer.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Shared {
    /// Bytes that are neither anybody's reserve nor headroom.
    pool: u32,
    used: u32,
    /// With this many bytes in use, or more, it is not calm any more.
    coupled_from: u32,
}

impl Shared {
    fn empty(pool: u32) -> Shared {
        Shared { pool, used: 0, coupled_from: coupled_from(pool) }
    }
}

/// A port's share.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct PortShare {
    headroom: u32,
    shift: u32,
}

/// What one ingress queue holds.
#[repr(C)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Held {
    /// In its reserve and the shared part.
    ingress: u32,
    headroom: u32,
}

impl Held {
    #[inline(always)]
    fn shared(&self) -> u32 {
        self.ingress.saturating_sub(RESERVE)
    }
}

/// Bytes in flight on a link, three times, in ns-3's integer steps (`third.cc`).
fn headroom(info: &PortInfo) -> u32 {
    let bytes = quotient(info.rate.0 as u128 * (info.delay.0 / PS_PER_NS) as u128, 8 * 1_000_000_000) * 3;
    u32::try_from(bytes).unwrap_or(u32::MAX)
}

/// From how many bytes in use on the switch is not calm, with such a pool.
///
/// The argument: let at most `most` bytes be in the shared part from now on. While that is within the pool, no
/// threshold wraps, and none is below `lowest = (pool - most) >> BASE_SHIFT`, the one at the largest shift beside
/// `most`. What one queue has in the shared part is among what the switch has there: no more than `most`. If that, a
/// frame and the offset of resumes together do not exceed `lowest`, then against any threshold
/// - `admit` finds `shared + bytes` and `beyond` within it: it takes the frame, and not into the headroom;
/// - `pauses` finds `shared` below it: the queue's own headroom decides;
/// - `resumes` finds `shared + RESUME_OFFSET` within it: again the headroom decides.
///
/// So it is calm while `most + LARGEST_FRAME + RESUME_OFFSET <= lowest`, which is solved for `most` here.
fn coupled_from(pool: u32) -> u32 {
    let spare = pool.checked_sub((LARGEST_FRAME + RESUME_OFFSET) << BASE_SHIFT);
    spare.map_or(0, |spare| spare / ((1 << BASE_SHIFT) + 1) + 1)
}

#[inline(always)]
fn threshold(switch: &Shared, port: &PortShare) -> u32 {
    switch.pool.wrapping_sub(switch.used) >> port.shift
}

impl BufferManager for DynamicThreshold {
    type Switch = Shared;
    type Port = PortShare;
    type Queue = Held;

    fn id(&self) -> ModelId {
        let config = ConfigHash::new().with(self.bytes as u64).with(self.wraps as u64).finish();
        ModelId { name: "dynamic-threshold", version: 1, config }
    }

    fn switch(&self, ports: &mut dyn Iterator<Item = PortInfo>) -> Shared {
        let taken = ports.fold(0u64, |sum, info| sum + RESERVE as u64 + headroom(&info) as u64);
        let pool = if self.wraps {
            self.bytes.wrapping_sub(taken as u32)
        } else {
            (self.bytes as u64).saturating_sub(taken) as u32
        };
        Shared::empty(pool)
    }

    fn port(&self, info: &PortInfo, nic_rate: BitRate) -> PortShare {
        // Faster ports get more: the shift is one less for each halving that brings the rate down to the NICs'.
        let mut shift = BASE_SHIFT;
        let mut rate = info.rate.0;
        while rate > nic_rate.0 && shift > 0 {
            shift -= 1;
            rate /= 2;
        }
        PortShare { headroom: headroom(info), shift }
    }

    #[inline(always)]
    fn admit(&self, switch: &mut Shared, port: &PortShare, queue: &mut Held, bytes: u32) -> bool {
        let threshold = threshold(switch, port);
        let held = queue.ingress + bytes;
        if queue.headroom + bytes > port.headroom && queue.shared() + bytes > threshold {
            return false;
        }
        // Within the reserve nothing is beyond it; queues hover about that bound, so it is no branch.
        let beyond = held.saturating_sub(RESERVE);
        if beyond > threshold {
            queue.headroom += bytes;
        } else {
            queue.ingress = held;
            switch.used += bytes.min(beyond);
        }
        true
    }

    #[inline(always)]
    fn pauses(&self, switch: &Shared, port: &PortShare, queue: &Held) -> bool {
        (queue.headroom > 0) | (queue.shared() >= threshold(switch, port))
    }

    #[inline(always)]
    fn release(&self, switch: &mut Shared, _port: &PortShare, queue: &mut Held, bytes: u32) {
        let from_headroom = queue.headroom.min(bytes);
        let from_shared = (bytes - from_headroom).min(queue.shared());
        queue.headroom -= from_headroom;
        queue.ingress -= bytes - from_headroom;
        switch.used -= from_shared;
    }

    #[inline(always)]
    fn resumes(&self, switch: &Shared, port: &PortShare, queue: &Held) -> bool {
        let shared = queue.shared();
        queue.headroom == 0 && (shared == 0 || shared + RESUME_OFFSET <= threshold(switch, port))
    }

    #[inline(always)]
    fn is_calm(&self, switch: &Shared, more: u64) -> bool {
        more.saturating_add(switch.used as u64) < switch.coupled_from as u64
    }

    fn replace(&self, switch: &mut Shared, queue: &mut Held, to: Held) {
        switch.used = switch.used - queue.shared() + to.shared();
        *queue = to;
    }

    fn shared_bytes(&self, switch: &Shared) -> u64 {
        switch.used as u64
    }

    fn queue_bytes(&self, queue: &Held) -> u64 {
        queue.ingress as u64 + queue.headroom as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_kernel::units::Span;

    fn info(gbps: u64) -> PortInfo {
        PortInfo::detached(BitRate::from_gbps(gbps), Span::from_us(1))
    }

    #[test]
    fn headroom_is_three_times_the_pipe() {
        assert_eq!(headroom(&info(100)), 37_500);
    }

    #[test]
    fn faster_ports_have_a_higher_threshold() {
        let model = DynamicThreshold { bytes: 32 << 20, wraps: false };
        let shift = |gbps| model.port(&info(gbps), BitRate::from_gbps(100)).shift;
        assert_eq!([shift(25), shift(100), shift(200), shift(400), shift(1_600)], [3, 3, 2, 1, 0]);
    }

    #[test]
    fn what_is_taken_is_given_back() {
        let model = DynamicThreshold { bytes: 1 << 20, wraps: false };
        let mut switch = model.switch(&mut [info(100), info(100)].into_iter());
        let port = model.port(&info(100), BitRate::from_gbps(100));
        let mut queue = Held { ingress: 0, headroom: 0 };
        let mut taken = 0;
        while model.admit(&mut switch, &port, &mut queue, 1_000) {
            taken += 1;
            assert!(taken < 1_049, "more than the buffer has");
        }
        assert!(queue.headroom > 36_000 && model.pauses(&switch, &port, &queue));
        assert_eq!(model.queue_bytes(&queue), taken * 1_000);
        for _ in 0..taken {
            assert!(model.queue_bytes(&queue) > 0);
            model.release(&mut switch, &port, &mut queue, 1_000);
        }
        assert_eq!((switch.used, queue.ingress, queue.headroom), (0, 0, 0));
        assert!(model.resumes(&switch, &port, &queue));
    }

    /// An empty switch of two ports with a pool of 965,384 bytes, one of the ports, and a queue that holds so much.
    fn held(shared: u32, headroom: u32) -> (Shared, PortShare, Held) {
        let switch = MODEL.switch(&mut [info(100), info(100)].into_iter());
        let port = MODEL.port(&info(100), BitRate::from_gbps(100));
        (Shared { used: shared, ..switch }, port, Held { ingress: RESERVE + shared, headroom })
    }

    const MODEL: DynamicThreshold = DynamicThreshold { bytes: 1 << 20, wraps: false };

    /// The least `s` with (965,384 - s) / 8 <= s is 107,265; the most with s + 3,072 <= (965,384 - s) / 8 is 104,534.
    #[test]
    fn senders_pause_at_an_eighth_of_what_is_free_and_go_on_below() {
        let asks = |shared, headroom, says: fn(&DynamicThreshold, &Shared, &PortShare, &Held) -> bool| {
            let (switch, port, queue) = held(shared, headroom);
            says(&MODEL, &switch, &port, &queue)
        };
        assert_eq!([107_264, 107_265].map(|shared| asks(shared, 0, BufferManager::pauses)), [false, true]);
        assert!([0, 107_265].map(|shared| asks(shared, 1, BufferManager::pauses)) == [true; 2], "it uses headroom");
        assert_eq!([104_534, 104_535].map(|shared| asks(shared, 0, BufferManager::resumes)), [true, false]);
        assert!(!asks(0, 1, BufferManager::resumes));
        // One that uses its reserve only goes on, however little is free.
        let (switch, port, queue) = held(0, 0);
        assert!(MODEL.resumes(&Shared { used: switch.pool, ..switch }, &port, &queue));
        assert!(!MODEL.resumes(
            &Shared { used: switch.pool, ..switch },
            &port,
            &Held { ingress: RESERVE + 1, ..queue }
        ));
    }

    /// What a frame of 1,000 bytes makes of a queue, and of the shared part: admitted, ingress, headroom, used.
    fn taken(shared: u32, headroom: u32) -> (bool, u32, u32, u32) {
        let (mut switch, port, mut queue) = held(shared, headroom);
        let admitted = MODEL.admit(&mut switch, &port, &mut queue, 1_000);
        (admitted, queue.ingress - RESERVE, queue.headroom, switch.used)
    }

    /// The most `s` with s + 1,000 <= (965,384 - s) / 8 is 106,376.
    #[test]
    fn frames_go_to_the_shared_part_then_to_the_headroom_then_nowhere() {
        assert_eq!(taken(106_376, 0), (true, 107_376, 0, 107_376));
        assert_eq!(taken(106_377, 0), (true, 106_377, 1_000, 106_377));
        assert_eq!(taken(106_377, 36_500), (true, 106_377, 37_500, 106_377));
        assert_eq!(taken(106_377, 36_501), (false, 106_377, 36_501, 106_377));
        assert_eq!(taken(106_376, 36_501), (true, 107_376, 36_501, 107_376), "there is room in the shared part");
    }

    #[test]
    fn a_frame_is_only_in_part_beyond_the_reserve() {
        let (mut switch, port, _) = held(0, 0);
        let mut queue = Held { ingress: 3_500, headroom: 0 };
        assert!(MODEL.admit(&mut switch, &port, &mut queue, 1_000));
        assert_eq!((queue.ingress, queue.headroom, switch.used), (4_500, 0, 404));
        queue.headroom = 300;
        // Back from the headroom first, then from the shared part, then from the reserve.
        MODEL.release(&mut switch, &port, &mut queue, 1_000);
        assert_eq!((queue.ingress, queue.headroom, switch.used), (3_800, 0, 0));
    }

    #[test]
    fn a_queue_that_is_replaced_takes_its_part_along() {
        let (switch, _, mut queue) = held(5_000, 70);
        let mut switch = Shared { used: switch.used + 600, ..switch };
        MODEL.replace(&mut switch, &mut queue, Held { ingress: RESERVE + 200, headroom: 9 });
        assert_eq!((switch.used, queue.ingress, queue.headroom), (800, RESERVE + 200, 9));
        assert_eq!((MODEL.shared_bytes(&switch), MODEL.queue_bytes(&queue)), (800, 4_305));
        MODEL.replace(&mut switch, &mut queue, Held { ingress: 10, headroom: 0 });
        assert_eq!(switch.used, 600);
    }

    #[test]
    fn reserves_and_headrooms_are_no_part_of_the_pool() {
        let pool =
            |bytes, wraps| DynamicThreshold { bytes, wraps }.switch(&mut [info(100), info(100)].into_iter()).pool;
        assert_eq!([pool(1 << 20, false), pool(1 << 20, true)], [965_384; 2]);
        assert_eq!([pool(80_000, false), pool(80_000, true)], [0, u32::MAX - 3_191]);
    }

    /// All that is decided about a queue in its switch.
    fn decisions(port: &PortShare, queue: Held, bytes: u32, switch: &Shared) -> [u32; 5] {
        let model = DynamicThreshold { bytes: 0, wraps: false };
        let resumes = model.resumes(switch, port, &queue);
        let (mut switch, mut queue) = (*switch, queue);
        let admitted = model.admit(&mut switch, port, &mut queue, bytes);
        let pauses = model.pauses(&switch, port, &queue);
        [u32::from(resumes), u32::from(admitted), queue.ingress, queue.headroom, u32::from(pauses)]
    }

    /// Everything that queues of a calm switch may hold and be offered is decided alike whatever others hold.
    fn assert_calm(switch: &Shared, most: u32) {
        let steps = |end: u32| (0..=16u64).map(move |i| (u64::from(end) * i / 16) as u32);
        for shift in 0..=BASE_SHIFT {
            let port = PortShare { headroom: 37_500, shift };
            for (shared, headroom) in steps(most).flat_map(|shared| [0, 1, 37_500].map(|room| (shared, room))) {
                let queue = Held { ingress: RESERVE + shared, headroom };
                for bytes in [64, 1_090, LARGEST_FRAME] {
                    let alone = decisions(&port, queue, bytes, &Shared { used: shared, ..*switch });
                    for used in steps(most - shared).map(|others| shared + others) {
                        let among = decisions(&port, queue, bytes, &Shared { used, ..*switch });
                        assert_eq!(among, alone, "{queue:?} and {bytes} at shift {shift} of {used} in {switch:?}");
                    }
                }
            }
        }
    }

    #[test]
    fn calm_switches_decide_alike_whatever_others_hold() {
        let model = DynamicThreshold { bytes: 0, wraps: false };
        let mut calm = 0;
        for pool in [0, 1 << 15, 1 << 18, 12 << 20, 30 << 20, u32::MAX - 1_000_000, u32::MAX] {
            for used in [0, 1, 5_000, 1 << 20, 1 << 25, 1 << 31].into_iter().filter(|used| *used <= pool) {
                let switch = Shared { used, ..Shared::empty(pool) };
                // The most that is still calm, and some less.
                let end = (0..32).rev().fold(0u64, |most, bit| {
                    if model.is_calm(&switch, most | 1 << bit) { most | 1 << bit } else { most }
                });
                assert!(!model.is_calm(&switch, end + 1) && !model.is_calm(&switch, u64::MAX));
                for more in [0, end / 2, end].into_iter().filter(|more| model.is_calm(&switch, *more)) {
                    assert_calm(&switch, used + more as u32);
                    calm += 1;
                }
            }
        }
        assert!(calm > 40, "{calm}");
    }

    #[test]
    fn switches_are_calm_while_they_are_nearly_empty() {
        let ports = || [info(100); 32].into_iter();
        let (small, large) = (1 << 20, 32 << 20);
        let is_calm = |bytes, wraps, more| {
            let model = DynamicThreshold { bytes, wraps };
            model.is_calm(&model.switch(&mut ports()), more)
        };
        // A ninth of the pool, less what a frame and the offset take.
        let pool = u64::from(large) - 32 * (4_096 + 37_500);
        let limit = (pool - 8 * (16_384 + 3_072)) / 9;
        assert!(is_calm(large, false, limit) && !is_calm(large, false, limit + 1));
        assert!(!is_calm(small, false, 0), "no shared part at all");
        assert!(is_calm(small, true, 400 << 20), "one that wraps around");
    }
}

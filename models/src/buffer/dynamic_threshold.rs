//! The shared buffer with dynamic PFC thresholds of the reference model (ns-3 `SwitchMmu`).
//!
//! Each ingress queue has a reserve of its own, then draws on the shared part up to a threshold that shrinks as
//! the shared part fills, then on its port's headroom for what is in flight when the pause goes out.
//! Arithmetic is 32-bit, as there.

use bytemuck::{Pod, Zeroable};
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::{BitRate, PS_PER_NS};

/// Bytes every ingress queue has for itself.
const RESERVE: u32 = 4 * 1024;
/// A paused sender goes on once the queue is this far below its threshold.
const RESUME_OFFSET: u32 = 3 * 1024;
/// The threshold is the free shared buffer shifted right by this, for ports at the rate of the NICs.
const BASE_SHIFT: u32 = 3;

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
    let bytes = info.rate.0 as u128 * (info.delay.0 / PS_PER_NS) as u128 / 8 / 1_000_000_000 * 3;
    u32::try_from(bytes).unwrap_or(u32::MAX)
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
        Shared { pool, used: 0 }
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
}

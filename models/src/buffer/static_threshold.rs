//! A buffer with a fixed share per ingress queue: what a port may hold does not depend on other ports.

use bytemuck::{Pod, Zeroable};
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::model::{ConfigHash, ModelId};
use wormhole_kernel::units::BitRate;

/// See the module. With `pause` at or above `limit` it is a plain drop-tail buffer.
#[derive(Clone, Copy, Debug)]
pub struct StaticThreshold {
    /// Bytes at which the sender is paused.
    pub pause: u64,
    /// Bytes at or below which it goes on.
    pub resume: u64,
    /// Bytes beyond which frames are dropped.
    pub limit: u64,
}

/// Bytes held by a switch or a queue.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Bytes(u64);

impl BufferManager for StaticThreshold {
    type Switch = Bytes;
    /// Nothing; but a table has items of some size.
    type Port = [u64; 1];
    type Queue = Bytes;

    fn id(&self) -> ModelId {
        let config = ConfigHash::new().with(self.pause).with(self.resume).with(self.limit).finish();
        ModelId { name: "static-threshold", version: 1, config }
    }

    fn switch(&self, _ports: &mut dyn Iterator<Item = PortInfo>) -> Bytes {
        Bytes(0)
    }

    fn port(&self, _info: &PortInfo, _nic_rate: BitRate) -> [u64; 1] {
        [0]
    }

    #[inline(always)]
    fn admit(&self, switch: &mut Bytes, _port: &[u64; 1], queue: &mut Bytes, bytes: u32) -> bool {
        let fits = queue.0 + bytes as u64 <= self.limit;
        if fits {
            queue.0 += bytes as u64;
            switch.0 += bytes as u64;
        }
        fits
    }

    #[inline(always)]
    fn pauses(&self, _switch: &Bytes, _port: &[u64; 1], queue: &Bytes) -> bool {
        queue.0 >= self.pause
    }

    #[inline(always)]
    fn release(&self, switch: &mut Bytes, _port: &[u64; 1], queue: &mut Bytes, bytes: u32) {
        queue.0 -= bytes as u64;
        switch.0 -= bytes as u64;
    }

    #[inline(always)]
    fn resumes(&self, _switch: &Bytes, _port: &[u64; 1], queue: &Bytes) -> bool {
        queue.0 <= self.resume
    }

    /// Always: nothing depends on others.
    fn is_calm(&self, _switch: &Bytes, _more: u64) -> bool {
        true
    }

    fn replace(&self, switch: &mut Bytes, queue: &mut Bytes, to: Bytes) {
        switch.0 = switch.0 - queue.0 + to.0;
        *queue = to;
    }

    fn shared_bytes(&self, switch: &Bytes) -> u64 {
        switch.0
    }

    fn queue_bytes(&self, queue: &Bytes) -> u64 {
        queue.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_resumes_and_drops_at_its_thresholds() {
        let model = StaticThreshold { pause: 3_000, resume: 1_000, limit: 4_000 };
        let (mut switch, mut queue) = (Bytes(0), Bytes(0));
        let states: [bool; 5] = core::array::from_fn(|_| {
            model.admit(&mut switch, &[0], &mut queue, 1_000) && model.pauses(&switch, &[0], &queue)
        });
        assert_eq!((states, queue.0), ([false, false, true, true, false], 4_000));
        let states: [bool; 4] = core::array::from_fn(|_| {
            model.release(&mut switch, &[0], &mut queue, 1_000);
            model.resumes(&switch, &[0], &queue)
        });
        assert_eq!((states, switch.0), ([false, false, true, true], 0));
    }

    #[test]
    fn a_queue_that_is_replaced_takes_its_bytes_along() {
        let model = StaticThreshold { pause: 3_000, resume: 1_000, limit: 4_000 };
        let (mut switch, mut queue) = (Bytes(2_500), Bytes(1_500));
        model.replace(&mut switch, &mut queue, Bytes(700));
        assert_eq!((model.shared_bytes(&switch), model.queue_bytes(&queue)), (1_700, 700));
    }
}

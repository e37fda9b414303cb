//! Template of a buffer manager: a fixed share for each ingress queue, and headroom for what is on its way when the
//! pause goes out.

use bytemuck::{Pod, Zeroable};
use wormhole_kernel::BitRate;
use wormhole_kernel::buffer::BufferManager;
use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::model::{ConfigHash, ModelId};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Fixed {
    /// Bytes of a queue from which on its sender is paused. It goes on at half of them.
    pub pause: u64,
    /// Bytes beyond them that are still taken.
    pub headroom: u64,
}

/// Bytes held.
#[repr(transparent)]
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
pub struct Held(u64);

impl BufferManager for Fixed {
    type Switch = Held;
    /// Nothing; but a table has items of some size.
    type Port = [u64; 1];
    type Queue = Held;

    fn id(&self) -> ModelId {
        let config = ConfigHash::new().with(self.pause).with(self.headroom).finish();
        ModelId { name: "my-fixed", version: 1, config }
    }

    fn switch(&self, _ports: &mut dyn Iterator<Item = PortInfo>) -> Held {
        Held(0)
    }

    fn port(&self, _info: &PortInfo, _nic_rate: BitRate) -> [u64; 1] {
        [0]
    }

    fn admit(&self, switch: &mut Held, _port: &[u64; 1], queue: &mut Held, bytes: u32) -> bool {
        let fits = queue.0 + u64::from(bytes) <= self.pause + self.headroom;
        if fits {
            queue.0 += u64::from(bytes);
            switch.0 += u64::from(bytes);
        }
        fits
    }

    fn pauses(&self, _switch: &Held, _port: &[u64; 1], queue: &Held) -> bool {
        queue.0 >= self.pause
    }

    fn release(&self, switch: &mut Held, _port: &[u64; 1], queue: &mut Held, bytes: u32) {
        queue.0 -= u64::from(bytes);
        switch.0 -= u64::from(bytes);
    }

    fn resumes(&self, _switch: &Held, _port: &[u64; 1], queue: &Held) -> bool {
        queue.0 <= self.pause / 2
    }

    /// Always: what a queue may hold does not depend on others.
    fn is_calm(&self, _switch: &Held, _more: u64) -> bool {
        true
    }

    fn replace(&self, switch: &mut Held, queue: &mut Held, to: Held) {
        switch.0 = switch.0 - queue.0 + to.0;
        *queue = to;
    }

    fn shared_bytes(&self, switch: &Held) -> u64 {
        switch.0
    }

    fn queue_bytes(&self, queue: &Held) -> u64 {
        queue.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_models::kit::{BuffersKit, assert_passed};

    #[test]
    fn it_passes_the_conformance_kit() {
        assert_passed(&BuffersKit::new(&Fixed { pause: 50_000, headroom: 10_000 }).checks());
    }
}

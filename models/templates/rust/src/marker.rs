//! Template of a marker: everything above one queue length is marked.

use wormhole_kernel::fabric::PortInfo;
use wormhole_kernel::ids::PortId;
use wormhole_kernel::marker::Marker;
use wormhole_kernel::model::{ConfigHash, ModelId};

/// See the module.
#[derive(Clone, Copy, Debug)]
pub struct Step {
    /// Bytes that stay unmarked.
    pub bytes: u64,
}

impl Marker for Step {
    /// Nothing; but a table has items of some size. A marker with chance has a counter here: see `RedMarker`.
    type Port = [u64; 1];

    fn id(&self) -> ModelId {
        ModelId { name: "my-step", version: 1, config: ConfigHash::new().with(self.bytes).finish() }
    }

    fn port(&self, _port: PortId, _info: &PortInfo) -> [u64; 1] {
        [0]
    }

    fn marks(&mut self, _port: &mut [u64; 1], queue_bytes: u64) -> bool {
        queue_bytes > self.bytes
    }

    /// There is no random sequence to be anywhere in.
    fn position(&self, _port: &[u64; 1]) -> u64 {
        0
    }

    fn set_position(&self, _port: &mut [u64; 1], _position: u64) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use wormhole_models::kit::{MarkerKit, assert_passed};

    #[test]
    fn it_passes_the_conformance_kit() {
        assert_passed(&MarkerKit::new(&Step { bytes: 100_000 }).checks());
    }
}

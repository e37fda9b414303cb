//! Switch buffers.

mod dynamic_threshold;
mod static_threshold;

pub use dynamic_threshold::DynamicThreshold;
pub use static_threshold::StaticThreshold;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kit::{BuffersKit, Check, Verdict, assert_passed};
    use wormhole_kernel::buffer::BufferManager;

    fn checks<B: BufferManager>(model: &B) -> usize {
        let checks = BuffersKit::new(model).checks();
        assert_passed(&checks);
        checks.iter().filter(|Check { verdict, .. }| *verdict == Verdict::Passed).count()
    }

    #[test]
    fn every_model_passes_the_kit() {
        // All but the two that only foreign code can fail; of a small shared buffer also those that need a calm switch.
        assert_eq!(checks(&DynamicThreshold { bytes: 32 << 20, wraps: false }), 6);
        assert_eq!(checks(&DynamicThreshold { bytes: 1 << 18, wraps: false }), 4);
        assert_eq!(checks(&DynamicThreshold { bytes: 1 << 10, wraps: true }), 6);
        assert_eq!(checks(&StaticThreshold { pause: 50_000, resume: 40_000, limit: 90_000 }), 6);
    }
}

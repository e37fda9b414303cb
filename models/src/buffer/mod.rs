//! Switch buffers.

mod dynamic_threshold;
mod static_threshold;

pub use dynamic_threshold::DynamicThreshold;
pub use static_threshold::StaticThreshold;

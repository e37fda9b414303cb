//! Routers.

mod distance;
mod ecmp;
#[cfg(feature = "alloc")]
mod heap_paths;
mod slice_paths;
mod spray;
mod table;

pub use distance::PathMemory;
#[cfg(feature = "alloc")]
pub use ecmp::Ecmp;
pub use ecmp::{EcmpHash, EcmpIn};
#[cfg(feature = "alloc")]
pub use heap_paths::HeapPaths;
pub use slice_paths::SlicePaths;
#[cfg(feature = "alloc")]
pub use spray::Spray;
pub use spray::SprayIn;
pub use table::{Route, TableRouter};

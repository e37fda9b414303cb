//! Routers.

#[cfg(feature = "alloc")]
mod distance;
#[cfg(feature = "alloc")]
mod ecmp;
#[cfg(feature = "alloc")]
mod spray;
mod table;

#[cfg(feature = "alloc")]
pub use ecmp::{Ecmp, EcmpHash};
#[cfg(feature = "alloc")]
pub use spray::Spray;
pub use table::{Route, TableRouter};

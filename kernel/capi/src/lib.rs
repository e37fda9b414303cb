//! The C interface of the Wormhole kernel.
//!
//! | module | what it is |
//! |---|---|
//! | `structs`, `constants`, `status` | what crosses the border: plain structs, numbers, status codes |
//! | `exports` | the functions of `wormhole.h`; each checks, calls the safe part, and gives a status |
//! | `handle` | what `WhKernel *` points to: how it is checked, how its parts share one piece of memory |
//! | `pointers`, `region` | reading and writing through pointers of the caller; laying things out in caller memory |
//! | `config`, `cca`, `plan` | configurations, congestion controls and usual fabrics, made from structs |
//! | `simulation` | the kernels of all profiles behind one type |
//! | `memo` | memo bytes in and out |
//!
//! `unsafe` code is in `exports`, `handle`, `pointers` and `region` only. The contract with the caller, on which all
//! of it rests, is at the top of `include/wormhole.h`; that file is generated from this crate and checked by a test.
//!
//! The crate needs `std` for one thing: a panic, which would be a defect of the simulator, is caught at the border and
//! becomes a status. Without `std` there is no way to catch one, and the workspace's profiles unwind.
//! Nothing here allocates.

mod cca;
mod config;
mod constants;
mod exports;
mod handle;
mod memo;
mod plan;
mod pointers;
mod region;
mod simulation;
mod status;
mod structs;

/// The programs in it are compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../../docs/embedding.md")]
mod embedding {}

pub use constants::{
    WH_ABI_VERSION, WH_ALIGNMENT, WH_CCA_VALUES, WH_MEMORY_IS_ZERO, WH_NEVER, WhCcaKind, WhNodeKind, WhPlanKind,
    WhPrecision, WhProfile, WhRouting, WhStep, WhTier,
};
pub use exports::*;
pub use handle::WhKernel;
pub use status::WhStatus;
pub use structs::{
    WhAcceleration, WhCca, WhCompletion, WhConfig, WhFlow, WhFrame, WhLink, WhMemoisation, WhMemoised, WhPlan,
    WhPortStats, WhSkipped, WhTotals,
};

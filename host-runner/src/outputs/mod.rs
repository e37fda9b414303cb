//! What a run leaves on disk.

mod columns;
mod events;
mod fct;
mod folder;
mod jobs;
mod links;
mod pfc;
mod port_capture;
mod rows;
mod skips;
mod span_trace;
mod summary;

pub(crate) use columns::Columns;
pub use events::EventTrace;
pub use fct::{fct_rows, fct_table};
pub use folder::ResultFolder;
pub use jobs::{collectives_table, ranks_table};
pub use links::links_table;
pub(crate) use pfc::sorted_pfc;
pub use pfc::{PfcLog, PfcRow, write_pfc};
pub use port_capture::PortCapture;
pub use rows::Rows;
pub use skips::SkipLog;
pub use span_trace::SpanTrace;
pub use summary::{JobSummary, Summary};

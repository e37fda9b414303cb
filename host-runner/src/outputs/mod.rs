//! What a run leaves on disk.

mod events;
mod fct;
mod folder;
mod jobs;
mod links;
mod pfc;
mod skips;
mod summary;

pub use events::EventTrace;
pub use fct::{fct_rows, write_fct_csv};
pub use folder::ResultFolder;
pub use jobs::{write_collectives_csv, write_ranks_csv};
pub use links::write_links_csv;
pub use pfc::{PfcLog, PfcRow, write_pfc};
pub use skips::SkipLog;
pub use summary::{JobSummary, Summary};

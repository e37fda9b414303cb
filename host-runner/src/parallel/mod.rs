//! Runs a scenario on several threads, with the results of one.
//!
//! * `parts`: flows and jobs that share no node are simulated apart, accelerated or not.
//! * `shards`: a fabric that all flows share is cut into shards, if nothing is skipped.
//! * `cut`: which node goes to which shard.
//!
//! Which of them a run takes does not depend on the number of threads. A shard is made for each thread, and the order of
//! events is that of one kernel whatever their number.

mod cut;
mod shards;

use crate::scenario::{Profile, Scenario};
use crate::simulate::{Outcome, Refusal, Watch};
use wormhole_kernel::accel::Tier;

/// Runs a scenario on as many threads as it says. `None` if one thread does as well, or only one can.
///
/// # Errors
/// Everything the kernel refuses.
pub(crate) fn simulate(scenario: &Scenario, watch: &mut dyn Watch) -> Result<Option<Outcome>, Vec<Refusal>> {
    if scenario.threads < 2 || !can_be_cut(scenario) {
        return Ok(None);
    }
    shards::simulate(scenario, watch)
}

/// Whether kernels that each have a part of the fabric could have the results of one.
fn can_be_cut(scenario: &Scenario) -> bool {
    let skips_nothing = scenario.acceleration.tier == Tier::Off;
    // What jobs begin begins at once, anywhere. ns-3's coins are one sequence for the whole fabric.
    let is_local = scenario.jobs.is_empty() && scenario.profile == Profile::Ps && !scenario.plugins.concern_switches();
    // Senders and receivers of packets that are sent again would have to know of each other at once.
    let is_lossless = scenario.link_events.is_empty() && scenario.links.iter().all(|link| link.loss == 0);
    skips_nothing && is_local && is_lossless
}

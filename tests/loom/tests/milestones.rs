//! The milestones of shards in two threads.

use wormhole_loom::windows_are_told_in_step;

#[test]
fn what_is_told_of_a_window_is_known_one_window_later() {
    windows_are_told_in_step();
}

//! The barrier of shards in two threads.

use wormhole_loom::turns_are_told_in_step;

#[test]
fn what_is_told_before_a_turn_is_known_after_it() {
    turns_are_told_in_step();
}

//! The two sides of a ring share memory and no lock.

use wormhole_loom::packets_come_whole_and_in_order;

#[test]
fn one_slot_is_right_under_every_order_of_memory_accesses() {
    assert!(packets_come_whole_and_in_order(1) > 1);
}

#[test]
fn two_slots_are_right_under_every_order_of_memory_accesses() {
    assert!(packets_come_whole_and_in_order(2) > 1);
}

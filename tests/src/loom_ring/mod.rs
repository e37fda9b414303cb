//! The ring of the SimBricks protocol, as host-runner has it, in memory of which loom tries every order of accesses
//! that the language's memory model allows.
//!
//! The source file is the same; [`shm`] stands for its memory. Loom searches all interleavings of the two sides, and
//! all values that a read may see: a weaker ordering anywhere in `ring` lets a model here fail.

#[path = "../../../host-runner/src/cosim/simbricks/layout.rs"]
mod layout;
// Not all of it is tried.
#[allow(dead_code)]
#[path = "../../../host-runner/src/cosim/simbricks/ring.rs"]
mod ring;
mod shm;

use layout::Layout;
use ring::{Consumer, Message, Producer};
use shm::Shm;
use std::rc::Rc;

/// Slots with room for a word.
const SLOT: usize = layout::SLOT_HEADER + shm::WORD;

/// How often either side looks at the ring.
const LOOKS: usize = 3;

/// A producer sends numbered packets through a ring of so many slots while a consumer takes them: they come whole, in
/// order, with their stamps, however the two sides' accesses mix.
///
/// # Panics
/// If they do not.
pub fn packets_come_whole_and_in_order(slots: usize) {
    loom::model(move || {
        let memory = Rc::new(Shm::new(slots * SLOT));
        let layout = Layout { offset: 0, slot: SLOT, slots };
        let (mut producer, mut consumer) = (Producer::new(memory.clone(), layout), Consumer::new(memory, layout));
        let sender = loom::thread::spawn(move || {
            let mut sent = 0;
            for _ in 0..LOOKS {
                sent += u64::from(producer.send(sent, &Message::Packet(sent.to_ne_bytes().to_vec())));
            }
            sent
        });
        let mut taken = 0;
        let mut take = |taken: &mut u64| {
            while let Some((stamp, kind)) = consumer.peek().expect("a sound slot") {
                let message = consumer.take(kind).expect("a sound slot");
                assert_eq!((stamp, message), (*taken, Message::Packet(taken.to_ne_bytes().to_vec())));
                *taken += 1;
            }
        };
        take(&mut taken);
        let sent = sender.join().expect("the producer");
        take(&mut taken);
        assert!(taken == sent && sent >= slots.min(LOOKS) as u64, "{taken} of {sent} packets");
    });
}

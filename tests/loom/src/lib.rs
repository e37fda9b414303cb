//! What host-runner has without locks, in memory of which loom tries every order of accesses that the language's memory
//! model allows: the ring of the SimBricks protocol, and the milestones of shards.
//!
//! The source files are the same; [`shm`] stands for the ring's memory, [`sync`] for what milestones are made of. Loom
//! searches all interleavings of the two sides, and all values that a read may see: a weaker ordering anywhere in
//! `ring`, [`Milestones::pass`] or [`Milestones::wait`] lets a model here fail.

// Not all of each is tried.
#[allow(dead_code)]
#[path = "../../../host-runner/src/cosim/simbricks/layout.rs"]
mod layout;
#[allow(dead_code)]
#[path = "../../../host-runner/src/parallel/milestones.rs"]
mod milestones;
#[allow(dead_code)]
#[path = "../../../host-runner/src/cosim/simbricks/ring.rs"]
mod ring;
mod shm;
mod sync;

use layout::Layout;
use milestones::Milestones;
use ring::{Consumer, Message, Producer};
use shm::Shm;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicUsize;
use std::sync::atomic::Ordering::Relaxed;

/// Slots with room for a word.
const SLOT: usize = layout::SLOT_HEADER + shm::WORD;

/// Packets that the producer tries to send.
const PACKETS: u64 = 3;

/// A producer sends numbered packets through a ring of so many slots while a consumer takes them: they come whole, in
/// order, with their stamps, however the accesses of the two sides mix. Gives how many of the orders that were tried
/// had the consumer take something while the producer was still at work.
///
/// # Panics
/// If they do not.
pub fn packets_come_whole_and_in_order(slots: usize) -> usize {
    let early = Arc::new(AtomicUsize::new(0));
    let counter = early.clone();
    loom::model(move || {
        let memory = Rc::new(Shm::new(slots, SLOT));
        let layout = Layout { offset: 0, slot: SLOT, slots };
        let (mut producer, mut consumer) = (Producer::new(memory.clone(), layout), Consumer::new(memory, layout));
        let sender = loom::thread::spawn(move || {
            // A packet's number is its stamp, too, and not what is there at first.
            let send = |sent: u64, _| {
                let message = Message::Packet((sent + 1).to_ne_bytes().to_vec());
                sent + u64::from(producer.send(sent + 1, &message))
            };
            (0..PACKETS).fold(0, send)
        });
        let mut taken = 0u64;
        let mut take = || {
            while let Some((stamp, kind)) = consumer.peek().expect("a sound slot") {
                taken += 1;
                let message = consumer.take(kind).expect("a sound slot");
                assert_eq!((stamp, message), (taken, Message::Packet(taken.to_ne_bytes().to_vec())));
            }
            taken
        };
        if take() > 0 {
            counter.fetch_add(1, Relaxed);
        }
        let sent = sender.join().expect("the producer");
        let taken = take();
        assert!(taken == sent && sent >= PACKETS.min(slots as u64), "{taken} of {sent} packets");
    });
    early.load(Relaxed)
}

/// Windows that each thread tells of: the last is the first that is written where the other may have read.
const WINDOWS: usize = 5;
/// Places for them, as shards have.
const PLACES: usize = 4;

/// Two threads tell each other the number of each window, and hear of one when they have told of the next, as shards
/// do: each hears just that.
///
/// # Panics
/// If one does not.
pub fn windows_are_told_in_step() {
    let mut model = loom::model::Builder::new();
    // More would take hours.
    model.preemption_bound = Some(2);
    model.check(|| {
        let milestones = Arc::new(Milestones::new(2));
        let places = Arc::new([(); 2].map(|()| [(); PLACES].map(|()| sync::AtomicUsize::new(0))));
        let take_part = |me: usize| {
            let (milestones, places) = (milestones.clone(), places.clone());
            move || {
                for window in 1..=WINDOWS {
                    places[me][window % PLACES].store(window, Relaxed);
                    milestones.pass(me);
                    milestones.wait(window - 1).expect("nobody panics");
                    let before = window - 1;
                    assert_eq!(places[1 - me][before % PLACES].load(Relaxed), before);
                }
            }
        };
        let other = loom::thread::spawn(take_part(1));
        take_part(0)();
        other.join().expect("the other thread");
    });
}

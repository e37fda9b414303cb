//! All algorithms at once: every byte gets where it must, and nothing waits for ever.

use super::*;
use CollectiveKind::{AllGather, Barrier, Broadcast, ReduceScatter};

/// Runs a collective in a world where a message that may go arrives in the next tick. Gives the bytes each member has
/// sent and the number of ticks.
fn run(algorithm: &dyn Algorithm, members: u32) -> (Vec<u64>, u32) {
    let lanes = algorithm.lanes();
    let mut done = vec![0u32; (members * lanes) as usize];
    let mut sent = vec![0; members as usize];
    let mut ticks = 0;
    loop {
        let arrived = done.clone();
        let has = |need: Need| arrived[(need.from * lanes + need.lane) as usize] > need.index;
        let mut moved = false;
        for (at, count) in done.iter_mut().enumerate() {
            let (member, lane) = (at as u32 / lanes, at as u32 % lanes);
            let Some(hop) = algorithm.hop(member, lane, *count) else { continue };
            assert!(hop.to < members && hop.to != member, "{hop:?}");
            for need in hop.needs.into_iter().flatten() {
                let brings = algorithm.hop(need.from, need.lane, need.index).expect("what is needed is sent");
                assert_eq!(brings.to, member, "what is needed arrives here");
            }
            if hop.needs.into_iter().flatten().all(has) {
                *count += 1;
                sent[member as usize] += hop.bytes;
                moved = true;
            }
        }
        if !moved {
            break;
        }
        ticks += 1;
    }
    for (at, count) in done.iter().enumerate() {
        let left = algorithm.hop(at as u32 / lanes, at as u32 % lanes, *count);
        assert_eq!(left, None, "member {} lane {} waits for ever", at as u32 / lanes, at as u32 % lanes);
    }
    (sent, ticks)
}

fn options(all_reduce: AllReduce, channels: u32, chunk_bytes: u64) -> CollectiveOptions {
    CollectiveOptions { all_reduce, channels, chunk_bytes, ..CollectiveOptions::default() }
}

const KINDS: [CollectiveKind; 6] =
    [CollectiveKind::AllReduce, ReduceScatter, AllGather, CollectiveKind::AllToAll, Broadcast, Barrier];

const HOW: [AllReduce; 3] = [AllReduce::Ring, AllReduce::HalvingDoubling, AllReduce::DoubleTree];

#[test]
fn everything_arrives_whatever_the_group_and_the_chunks() {
    for members in 2..=17 {
        for how in HOW {
            for (channels, chunk) in [(1, u64::MAX), (3, u64::MAX), (1, 10), (2, 7)] {
                for kind in KINDS {
                    for bytes in [1, 5, 1_000] {
                        run(&*options(how, channels, chunk).algorithm(kind, members, bytes), members);
                    }
                }
            }
        }
    }
}

/// Bytes on the wire as the algorithms' papers count them, for a size that every split divides.
#[test]
fn members_send_the_bytes_of_the_closed_forms() {
    for members in [2u64, 4, 8, 16] {
        let bytes = 960 * members;
        let sent = |how, kind, channels, chunk| {
            run(&*options(how, channels, chunk).algorithm(kind, members as u32, bytes), members as u32).0
        };
        for (channels, chunk) in [(1, u64::MAX), (2, u64::MAX), (1, 60)] {
            let all = |how, kind, each: u64| {
                assert_eq!(sent(how, kind, channels, chunk), vec![each; members as usize], "{members} {kind:?}");
            };
            let part = bytes / members;
            for how in [AllReduce::Ring, AllReduce::HalvingDoubling] {
                all(how, CollectiveKind::AllReduce, 2 * (members - 1) * part);
                all(how, ReduceScatter, (members - 1) * part);
                all(how, AllGather, (members - 1) * part);
            }
            all(AllReduce::Ring, CollectiveKind::AllToAll, (members - 1) * part);
            // Every edge of both trees carries one half up and one half down. An inner node sends three halves, and as
            // a leaf of the other tree a fourth.
            let trees = sent(AllReduce::DoubleTree, CollectiveKind::AllReduce, channels, chunk);
            assert_eq!(trees.iter().sum::<u64>(), 2 * (members - 1) * bytes);
            assert!(trees.iter().all(|&of_member| of_member <= 2 * bytes), "{trees:?}");
            let chain = sent(AllReduce::Ring, Broadcast, channels, chunk);
            assert_eq!(chain[..members as usize - 1], vec![bytes; members as usize - 1]);
        }
    }
}

#[test]
fn steps_are_those_of_the_closed_forms() {
    let ticks = |how, kind, members| run(&*options(how, 1, u64::MAX).algorithm(kind, members, 1 << 20), members).1;
    assert_eq!(ticks(AllReduce::Ring, CollectiveKind::AllReduce, 8), 14);
    assert_eq!(ticks(AllReduce::HalvingDoubling, CollectiveKind::AllReduce, 8), 6);
    assert_eq!(ticks(AllReduce::HalvingDoubling, CollectiveKind::AllReduce, 9), 8, "one before, one after");
    assert_eq!(ticks(AllReduce::DoubleTree, CollectiveKind::AllReduce, 8), 6, "three levels up, three down");
    assert_eq!(ticks(AllReduce::Ring, AllGather, 8), 7);
    assert_eq!(ticks(AllReduce::Ring, CollectiveKind::AllToAll, 8), 1);
    let pairwise = CollectiveOptions { all_to_all: AllToAll::Pairwise, ..CollectiveOptions::default() };
    assert_eq!(run(&*pairwise.algorithm(CollectiveKind::AllToAll, 8, 80), 8), (vec![70; 8], 7));
}

/// In a reduce-scatter a member ends with the part that all have contributed to.
#[test]
fn a_ring_carries_every_part_past_every_member() {
    let (members, parts) = (5, 5u64);
    let ring = ring::Ring::new(ReduceScatter, members, Pipeline { bytes: 100, channels: 1, chunk: u64::MAX });
    let mut seen = vec![vec![1u32; parts as usize]; members as usize];
    for step in 0..members - 1 {
        let before = seen.clone();
        for member in 0..members {
            let part = ring.part(member, step) as usize;
            seen[((member + 1) % members) as usize][part] += before[member as usize][part];
        }
    }
    for (member, parts) in seen.iter().enumerate() {
        assert_eq!(parts[(member + 1) % members as usize], members, "member {member}: {parts:?}");
    }
}

#[test]
fn leaves_of_one_tree_are_inner_nodes_of_the_other() {
    for members in [4, 8, 16] {
        let tree = double_tree::DoubleTree::new(members, Pipeline { bytes: 1, channels: 1, chunk: 1 });
        let down = |member: u32, channel: u32| {
            (1u32..3).filter(|way| tree.hop(member, channel * 3 + way, 0).is_some()).count()
        };
        assert!((0..members).all(|m| down(m, 0) == 0 || down(m, 1) == 0), "{members}");
    }
}

//! The bridge over real fabrics: where frames go, when they arrive, what becomes of those that do not.

use super::addresses::Addresses;
use super::bridge::{Bridge, Counts, Delivery};
use super::frame::Mac;
use super::simulation::{Driven, Losses, Simulation};
use crate::load::{Texts, load_texts};
use crate::memo::{Memo, MemoOptions};
use crate::scenario::Options;
use crate::simulate::{Outcome, simulate_driven};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::{NodeId, SimTime};

/// One microsecond, in picoseconds.
const US: u64 = 1_000_000;

/// Hosts 0, 1, 2 at one switch, 100 Gb/s and 1 us each.
const STAR: &str = "4 1 3\n3\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n";

const BROADCAST: u8 = 0xff;

/// What is simulated beside the frames.
#[derive(Clone, Copy, Default)]
struct Beside {
    flows: Option<&'static str>,
    link_events: Option<&'static str>,
    tier: Tier,
}

/// Lets `work` have a bridge to external ports at hosts 0, 1 and 2 of a fabric.
fn with_bridge(topology: &str, beside: Beside, work: impl FnOnce(&mut Bridge<'_>)) -> (Counts, Outcome) {
    let texts = Texts {
        topology: ("topology", topology),
        flows: beside.flows.map(|text| ("flows", text)),
        config: None,
        link_events: beside.link_events.map(|text| ("events", text)),
    };
    let acceleration = Acceleration { tier: beside.tier, detector: Detector::CYCLE };
    let scenario = load_texts(&texts, &Options { acceleration, ..Options::PLAIN }).scenario.expect("a scenario");
    let options = MemoOptions { keys: None, check: 0, limit_words: 1_000_000 };
    let mut memo = Memo::open(options, None, beside.tier).0.expect("a memo");
    let hosts = [0, 1, 2].map(NodeId);
    let mut counts = Counts::default();
    let mut losses = Losses::default();
    let driver = Driven {
        losses: losses.clone(),
        work: |simulation: &mut dyn Simulation| {
            let addresses = Addresses::given([(Mac([2, 0, 0, 0, 0, 9]), 2)]);
            let mut bridge = Bridge::new(simulation, &hosts, addresses, None, SimTime::MAX);
            work(&mut bridge);
            counts = bridge.counts();
            Ok(())
        },
    };
    let outcome = simulate_driven(&scenario, Some(&mut memo), &mut losses, driver).expect("nothing is refused");
    (counts, outcome)
}

/// A frame from and to hosts with these last bytes in their addresses; `BROADCAST` is to all.
fn frame(to: u8, from: u8, length: usize) -> Vec<u8> {
    let mut frame = vec![0; length];
    frame[..6].copy_from_slice(&if to == BROADCAST { [BROADCAST; 6] } else { [2, 0, 0, 0, 0, to] });
    frame[6..12].copy_from_slice(&[2, 0, 0, 0, 0, from]);
    frame
}

fn run(bridge: &mut Bridge<'_>, until: u64) -> Vec<Delivery> {
    assert!(bridge.run_until(SimTime(until)).is_ok());
    std::iter::from_fn(|| bridge.poll()).collect()
}

/// When a frame arrives that takes two hops of [`STAR`] alone: stored and forwarded, with its check sequence.
fn arrival(at: u64, length: u64) -> SimTime {
    SimTime(at + 2 * ((length + 4).max(64) * 80 + US))
}

#[test]
fn frames_go_where_their_address_was_last_seen_and_before_that_to_all() {
    let (counts, _) = with_bridge(STAR, Beside::default(), |bridge| {
        let ports = |deliveries: &[Delivery]| deliveries.iter().map(|d| (d.at, d.port)).collect::<Vec<_>>();
        bridge.receive(SimTime(5), 0, frame(11, 10, 100));
        assert_eq!(bridge.next_event_time(), Some(SimTime(5)));
        let flooded = run(bridge, 10 * US);
        // The second copy waits for the first at the sender's port.
        assert_eq!(ports(&flooded), [(arrival(5, 100), 1), (SimTime(arrival(5, 100).0 + 104 * 80), 2)]);
        assert!(flooded.iter().all(|d| d.frame == frame(11, 10, 100)));

        bridge.receive(SimTime(20 * US), 1, frame(10, 11, 1_514));
        assert_eq!(ports(&run(bridge, 30 * US)), [(arrival(20 * US, 1_514), 0)]);
        bridge.receive(SimTime(30 * US), 0, frame(11, 10, 14));
        assert_eq!(ports(&run(bridge, 40 * US)), [(arrival(30 * US, 14), 1)]);
        // What the user has said, what is where it wants to go, and what is no frame.
        bridge.receive(SimTime(40 * US), 0, frame(9, 10, 100));
        bridge.receive(SimTime(40 * US), 1, frame(11, 12, 100));
        bridge.receive(SimTime(40 * US), 1, vec![0; 13]);
        assert_eq!(ports(&run(bridge, 50 * US)), [(arrival(40 * US, 100), 2)]);
        bridge.receive(SimTime(50 * US), 2, frame(BROADCAST, 9, 60));
        assert_eq!(run(bridge, 60 * US).len(), 2);
        assert_eq!((bridge.frames(), bridge.next_event_time()), (0, None));
    });
    assert_eq!(counts, Counts { received: 7, delivered: 7, lost: 0, refused: 2 });
}

#[test]
fn it_does_not_matter_when_frames_are_handed_over() {
    let times = [(3, 0, 1), (3, 1, 1), (3, 0, 2), (900, 2, 0), (5 * US, 1, 2), (5 * US, 0, 2)];
    let all = |all_at_once: bool| {
        let mut got = Vec::new();
        with_bridge(STAR, Beside::default(), |bridge| {
            for (i, &(at, from, to)) in times.iter().enumerate() {
                if !all_at_once {
                    got.extend(run(bridge, at - 1));
                }
                let addressed = frame([10, 11, 9][to], [10, 11, 9][from], 200 + i);
                bridge.receive(SimTime(at), from, addressed);
            }
            got.extend(run(bridge, 50 * US));
        });
        got
    };
    let (once, one_by_one) = (all(true), all(false));
    assert!(once.len() >= times.len());
    assert_eq!(once, one_by_one);
}

#[test]
fn more_frames_than_have_room_for_an_instant_enter_in_it_all_the_same() {
    let (counts, _) = with_bridge(STAR, Beside::default(), |bridge| {
        (0..5_000).for_each(|_| bridge.receive(SimTime(US), 0, frame(9, 10, 60)));
        let got = run(bridge, 10_000 * US);
        let at = |i: u64| SimTime(arrival(US, 60).0 + i * 64 * 80);
        assert!(got.iter().zip(0..).all(|(d, i)| (d.at, d.port) == (at(i), 2)));
    });
    assert_eq!((counts.received, counts.delivered), (5_000, 5_000));
}

#[test]
fn lost_frames_are_forgotten() {
    // The link of host 2 is down from 10 to 30 us.
    let beside = Beside { link_events: Some("10 down 2 3\n30 up 2 3\n"), ..Beside::default() };
    let (counts, _) = with_bridge(STAR, beside, |bridge| {
        for at in [0, 9 * US, 20 * US, 40 * US] {
            bridge.receive(SimTime(at), 0, frame(9, 10, 1_000));
        }
        let got: Vec<SimTime> = run(bridge, 100 * US).iter().map(|d| d.at).collect();
        assert_eq!(got, [0, 40 * US].map(|at| arrival(at, 1_000)));
        assert_eq!(bridge.frames(), 0);
    });
    assert_eq!(counts, Counts { received: 4, delivered: 2, lost: 2, refused: 0 });
}

#[test]
fn congestion_is_told_in_the_frame() {
    let mut sent = frame(9, 10, 1_514);
    sent[12..16].copy_from_slice(&[8, 0, 0x45, 2]);
    let (counts, _) = with_bridge(STAR, Beside::default(), |bridge| {
        for i in 0..2_000 {
            bridge.receive(SimTime(US + i), (i % 2) as usize, sent.clone());
        }
        let codes: Vec<u8> = run(bridge, 10_000 * US).iter().map(|d| d.frame[15]).collect();
        assert!(codes.contains(&2) && codes.contains(&3), "some are marked, some are not");
        assert!(codes.iter().all(|code| [2, 3].contains(code)));
    });
    assert_eq!(counts.delivered, 2_000);
}

/// Frames arrive when they do without acceleration, whatever is skipped between them, and so do the flows beside them.
#[test]
fn acceleration_changes_no_arrival() {
    // Hosts 0 to 2 and 5 at switch 3, host 6 and 7 at switch 4. Flows of 200 MB cross from 5 to 6 and from 2 to 7:
    // frames from 0 to 2 meet the acknowledgements of one of them, frames from 0 to 1 meet none.
    let topology = "8 2 7\n3 4\n0 3 100Gbps 1us 0\n1 3 100Gbps 1us 0\n2 3 100Gbps 1us 0\n5 3 100Gbps 1us 0\n\
                    6 4 100Gbps 1us 0\n7 4 100Gbps 1us 0\n3 4 400Gbps 1us 0\n";
    let flows = Some("2\n5 6 3 100 20000000 0\n2 7 3 101 20000000 0\n");
    let all = |tier| {
        let mut got = Vec::new();
        let (_, outcome) = with_bridge(topology, Beside { flows, tier, ..Beside::default() }, |bridge| {
            for i in 0..10 {
                let at = i * 150 * US + 7 * i;
                bridge.receive(SimTime(at), 0, frame(9, 10, 1_500));
                bridge.receive(SimTime(at + 333), 1, frame(10, 11, 700));
            }
            got = run(bridge, 5_000 * US);
        });
        (got, outcome)
    };
    let (plain, (exact, accelerated)) = (all(Tier::Off), all(Tier::Exact));
    assert_eq!(exact, plain.0);
    let ends =
        |outcome: &Outcome| outcome.flows.in_memory().iter().map(|f| (f.name, f.completion.fct)).collect::<Vec<_>>();
    assert_eq!((ends(&accelerated), ends(&accelerated).len()), (ends(&plain.1), 2));
    let skipped = accelerated.skipped;
    assert!(skipped.events > plain.1.totals.events / 2, "{skipped:?} of {:?}", plain.1.totals);
    assert!(skipped.skip_backs >= 9, "frames wake what they meet: {skipped:?}");
    println!("{} frames, {} skipped events, {} skip-backs", exact.len(), skipped.events, skipped.skip_backs);
}

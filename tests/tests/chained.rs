//! Flows that are added as others end: `Kernel::run_to_completion`.

use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::kernel::Step;
use wormhole_kernel::*;
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig, WindowRule};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};

const NODES: [NodeKind; 4] = [NodeKind::Host, NodeKind::Host, NodeKind::Host, NodeKind::Switch];

/// Does something with an idle kernel: hosts 0, 1 and 2 around switch 3.
fn on_a_star<T>(work: impl FnOnce(&mut Kernel<'_, Ps<'_, Ecmp>>) -> T) -> T {
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let links = [0, 1, 2].map(|host| LinkSpec { a: NodeId(host), b: NodeId(3), rate, delay, loss: 0 });
    let ccas = [AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::Rule(WindowRule::Bdp)))];
    let models = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let limits = Limits { snapshot_words: 1 << 20, ..Limits::default() };
    let mut memory = vec![0; Kernel::<Ps<Ecmp>>::words(FabricSize::of(&NODES, &links), &limits, &models)];
    work(&mut Kernel::new(&mut memory, &NODES, &links, models, &limits, ()).expect("a kernel"))
}

/// Host 0 sends to host 1, which answers, and so on, while host 2 sends to host 1 all the time. Gives starts and FCTs
/// in order of completion, in picoseconds, and the events executed.
fn ping_pong(tier: Tier, budget: u64) -> (Vec<(u64, u64)>, u64) {
    on_a_star(|kernel| play(kernel, tier, budget))
}

fn play(kernel: &mut Kernel<'_, Ps<'_, Ecmp>>, tier: Tier, budget: u64) -> (Vec<(u64, u64)>, u64) {
    kernel.accelerate(Acceleration { tier, detector: Detector::CYCLE }).expect("memory for states");
    let flow = |src, dst, token, start| FlowSpec { token, ..FlowSpec::new(NodeId(src), NodeId(dst), 200_000, start) };
    kernel.add_flow(&flow(0, 1, 0, SimTime::ZERO)).expect("a flow");
    kernel.add_flow(&flow(2, 1, 100, SimTime::ZERO)).expect("a flow");
    let mut ends = Vec::new();
    while ends.len() < 20 {
        match kernel.run_to_completion(SimTime::MAX, budget).expect("room") {
            Step::Budget => continue,
            Step::Completed => {}
            other => panic!("{other:?} after {} flows", ends.len()),
        }
        let now = kernel.now();
        assert!(kernel.next_event_time().is_none_or(|next| next > now), "the instant is over");
        while let Some(done) = kernel.poll_completion() {
            assert_eq!(done.start + done.fct, now, "ends are told when they happen");
            ends.push((done.start.0, done.fct.0));
            let (src, dst) =
                if done.token >= 100 { (2, 1) } else { ((done.token as u32 + 1) % 2, done.token as u32 % 2) };
            kernel.add_flow(&flow(src, dst, done.token + 1, now)).expect("a flow");
        }
    }
    (ends, kernel.totals().events)
}

#[test]
fn what_follows_begins_in_the_instant_of_what_it_waits_for() {
    let (ends, _) = ping_pong(Tier::Off, u64::MAX);
    let starts: Vec<u64> = ends.iter().map(|(start, _)| *start).collect();
    let finishes: Vec<u64> = ends.iter().map(|(start, fct)| start + fct).collect();
    assert!(starts.iter().all(|start| *start == 0 || finishes.contains(start)), "{ends:?}");
    assert!(finishes.is_sorted());
}

#[test]
fn neither_slices_nor_exact_acceleration_change_anything() {
    let (plain, events) = ping_pong(Tier::Off, u64::MAX);
    assert_eq!(ping_pong(Tier::Off, 7), (plain.clone(), events));
    for budget in [u64::MAX, 7] {
        let (exact, fewer) = ping_pong(Tier::Exact, budget);
        assert_eq!(exact, plain);
        assert!(fewer < events, "{fewer} of {events} events");
    }
}

#[test]
fn ends_of_an_earlier_run_are_told_at_once() {
    on_a_star(|kernel| {
        kernel.add_flow(&FlowSpec::new(NodeId(0), NodeId(1), 1_000, SimTime::ZERO)).expect("a flow");
        kernel.run_until(SimTime::MAX).expect("room");
        assert_eq!(kernel.run_to_completion(SimTime::MAX, u64::MAX), Ok(Step::Completed));
        assert!(kernel.poll_completion().is_some());
        assert_eq!(kernel.run_to_completion(SimTime::MAX, u64::MAX), Ok(Step::Idle));
    });
}

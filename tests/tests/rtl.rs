//! Hardware beside a fabric: the queue of `host-runner/examples/rtl_peer`, in Verilog under Verilator, equals its model
//! in every pin and cycle, and a co-simulation with either gives the same, whatever the quantum.

#[path = "../../host-runner/examples/rtl_peer/axis.rs"]
mod axis;
#[path = "../../host-runner/examples/rtl_peer/cosim.rs"]
mod cosim;
#[path = "../../host-runner/examples/rtl_peer/frame.rs"]
mod frame;
#[path = "../../host-runner/examples/rtl_peer/model.rs"]
mod model;
#[path = "../../host-runner/examples/rtl_peer/verilated.rs"]
mod verilated;

use axis::{Assembler, EcnQueue, Offer, Pins, beats};
use cosim::{CABLE, Outcome, Send, co_simulate};
use model::Model;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use verilated::Verilated;
use wormhole_kernel::{NodeId, SimTime, Span};
use wormhole_tests::component::{is_there, starts};
use wormhole_tests::{Rng, root, wormhole_example};

const FOLDER: &str = "host-runner/examples/rtl_peer";

/// The shared library, built once for all tests of this file; `None` if `test` is to be skipped.
fn library(test: &str) -> Option<&'static Path> {
    static LIBRARY: OnceLock<PathBuf> = OnceLock::new();
    is_there(test, "verilator", starts("verilator", &["--version"])).then(|| {
        LIBRARY
            .get_or_init(|| {
                let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("rtl");
                let built = Command::new(root().join(FOLDER).join("build.sh")).arg(&folder).output().expect("sh");
                assert!(built.status.success(), "build.sh: {}", String::from_utf8_lossy(&built.stderr));
                folder.join("libecn_queue.so")
            })
            .as_path()
    })
}

fn load(library: &Path, threshold: u32) -> Verilated {
    Verilated::load(library, threshold).expect("the library that build.sh has made")
}

/// A frame of any size and content. Most are of IPv4, most of those have a right checksum.
fn any_frame(rng: &mut Rng) -> Vec<u8> {
    let bytes = if rng.one_in(3) { rng.between(1, 64) } else { rng.between(60, 600) } as usize;
    let mut frame: Vec<u8> = (0..bytes).map(|_| rng.next() as u8).collect();
    if bytes >= frame::SHORTEST && !rng.one_in(5) {
        let number = rng.next() as u32;
        frame = frame::build(NodeId(rng.below(256) as u32), NodeId(rng.below(256) as u32), number, bytes);
        // Any bits of ECN and DSCP, and checksums from all over their range.
        frame[15] = rng.next() as u8;
        frame[18..20].copy_from_slice(&(rng.next() as u16).to_be_bytes());
        frame[24..26].fill(0);
        let checksum = !frame::header_sum(&frame);
        let checksum = if rng.one_in(8) { rng.pick(&[0, 1, 0xfffe, 0xffff]) as u16 } else { checksum };
        frame[24..26].copy_from_slice(&checksum.to_be_bytes());
        if rng.one_in(10) {
            frame[rng.between(12, 14) as usize] = rng.next() as u8;
        }
    }
    frame
}

/// Random work for a queue: when frames come and when they are taken changes its manner every few thousand cycles.
struct Work {
    rng: Rng,
    cycle: u64,
    /// When the last frame has been offered.
    busy: u64,
    offers: VecDeque<Offer>,
    sent: VecDeque<Vec<u8>>,
    /// Of 16 cycles: how many are idle before a frame on average, and how many are ready.
    gap: u64,
    ready: u64,
}

impl Work {
    /// Frames that come in the next cycles, and when the other side is ready.
    fn next(&mut self, cycles: u64) -> Vec<u8> {
        if self.rng.one_in(8) {
            self.gap = self.rng.pick(&[0, 0, 4, 40, 200]);
            self.ready = self.rng.pick(&[0, 1, 5, 8, 15, 16, 16]);
        }
        let end = self.cycle + cycles;
        while self.busy < end && self.offers.len() < 1_000 {
            let frame = any_frame(&mut self.rng);
            self.busy = self.busy.max(self.cycle) + self.rng.between(0, 2 * self.gap);
            self.offers.extend(beats(&frame, self.busy));
            self.busy += frame.len().div_ceil(axis::BEAT) as u64;
            self.sent.push_back(frame);
        }
        self.cycle = end;
        (0..cycles).map(|_| u8::from(self.rng.below(16) < self.ready)).collect()
    }
}

/// What the queues of a run have come through: equal pins prove little about what they never did.
#[derive(Default, Debug)]
struct Seen {
    cycles: u64,
    full: u64,
    held: u64,
    frames: u64,
    marked: u64,
    not_marked: u64,
}

impl Seen {
    /// AXI4-Stream: what is offered stays until it is taken. And frames come out as they went in, but for marks.
    fn check(&mut self, before: &mut (Pins, u8), pins: &Pins, ready: u8, whole: &mut Assembler, work: &mut Work) {
        self.cycles += 1;
        self.full += u64::from(pins.s_ready == 0);
        if before.0.m_valid != 0 && before.1 == 0 {
            self.held += 1;
            let stays = |pins: &Pins| (pins.m_valid, pins.m_last, pins.keep, pins.data);
            assert_eq!(stays(pins), stays(&before.0), "what was offered and not taken");
        }
        *before = (*pins, ready);
        let frame = if ready != 0 { whole.take(pins) } else { None };
        let Some(out) = frame else { return };
        let mut sent = work.sent.pop_front().expect("a frame that went in");
        self.frames += 1;
        if out == sent {
            self.not_marked += 1;
            return;
        }
        self.marked += 1;
        assert!(matches!(sent[15] & 3, 1 | 2) && sent[12..14] == [8, 0], "marked, though it cannot be: {sent:02x?}");
        // The sum of the header's words stays as it was, right or wrong: -0 and 0 are one number to it.
        let number = |sum: u16| sum % 0xffff;
        assert_eq!(number(frame::header_sum(&out)), number(frame::header_sum(&sent)), "the header's sum: {sent:02x?}");
        sent[15] |= 3;
        sent[24..26].copy_from_slice(&out[24..26]);
        assert_eq!(out, sent, "besides the mark and the checksum");
    }
}

/// Runs both queues for at least so many cycles of random work, and compares every pin in every cycle.
fn compare(library: &Path, seed: u64, threshold: u32, cycles: u64) -> Seen {
    let (mut rtl, mut model) = (load(library, threshold), Model::new(threshold));
    let mut work =
        Work { rng: Rng(seed), cycle: 0, busy: 0, offers: VecDeque::new(), sent: VecDeque::new(), gap: 4, ready: 8 };
    let (mut seen, mut before, mut whole) = (Seen::default(), (Pins::IDLE, 0), Assembler::default());
    while seen.cycles < cycles {
        let quantum = work.rng.between(1, 1_000);
        let ready = work.next(quantum);
        let mut of_rtl = vec![Pins::IDLE; ready.len()];
        let mut of_model = of_rtl.clone();
        let offers = work.offers.make_contiguous();
        let taken = rtl.run(offers, &ready, &mut of_rtl);
        assert_eq!(taken, model.run(offers, &ready, &mut of_model), "beats taken");
        work.offers.drain(..taken);
        for (i, (rtl, model)) in of_rtl.iter().zip(&of_model).enumerate() {
            assert_eq!(rtl, model, "RTL and model, in cycle {}", seen.cycles);
            seen.check(&mut before, rtl, ready[i], &mut whole, &mut work);
        }
    }
    seen
}

#[test]
fn rtl_equals_its_model_in_every_pin_and_cycle() {
    let Some(library) = library("rtl_equals_its_model_in_every_pin_and_cycle") else { return };
    for (seed, threshold) in [(1, 0), (2, 5), (3, 64), (4, 200), (5, 256)] {
        println!("seed {seed}, threshold {threshold} beats");
        let seen = compare(library, seed, threshold, 300_000);
        println!("RTL under Verilator equals its model: {seen:?}");
        assert!(seen.frames > 10_000 && seen.full > 1_000 && seen.held > 10_000, "{seen:?}");
        // The memory never holds more than 256 beats.
        assert!(seen.not_marked > 1_000 && (seen.marked > 1_000) == (threshold < 256), "{seen:?}");
    }
}

/// Bursts of both senders at once: some are more than the queue holds, some only a few frames.
fn any_sends(seed: u64) -> Vec<Send> {
    let rng = &mut Rng(seed);
    let (mut at, mut sends) = (SimTime::ZERO, Vec::new());
    while sends.len() < 1_500 {
        at += Span(rng.below(30_000_000));
        for _ in 0..rng.pick(&[1, 3, 20, 60]) {
            let (src, bytes) = (NodeId(rng.below(2) as u32), rng.pick(&[60, 64, 65, 800, 1_514]) as usize);
            sends.push(Send { at, src, bytes });
            at += Span(rng.pick(&[0, 0, 1, 4_000, 123_456]));
        }
    }
    sends
}

/// Every frame has arrived once and whole, and its header is right.
fn assert_whole(outcome: &Outcome, sends: &[Send]) {
    let mut numbers: Vec<u32> = outcome.arrivals.iter().map(|arrival| frame::number(&arrival.frame)).collect();
    numbers.sort();
    assert!(numbers.into_iter().eq(0..sends.len() as u32), "every frame arrives once");
    for arrival in &outcome.arrivals {
        let number = frame::number(&arrival.frame);
        let sent = sends[number as usize];
        let mut want = frame::build(sent.src, NodeId(4), number, sent.bytes);
        assert_eq!(frame::header_sum(&arrival.frame), 0xffff, "checksum of frame {number}");
        if frame::is_marked(&arrival.frame) {
            frame::mark(&mut want);
        }
        assert_eq!(arrival.frame, want, "frame {number}");
        // Four links, two cables.
        assert!(arrival.at.since(sent.at) > Span::from_us(4) + CABLE + CABLE, "{number} took less than light");
    }
}

#[test]
fn co_simulation_is_the_same_with_rtl_and_model_for_any_quantum() {
    let Some(library) = library("co_simulation_is_the_same_with_rtl_and_model_for_any_quantum") else { return };
    for seed in 1..=3 {
        let sends = any_sends(seed);
        let with_rtl = co_simulate(&mut load(library, 100), CABLE, &sends).expect("a fabric");
        assert_whole(&with_rtl, &sends);
        let marked = with_rtl.arrivals.iter().filter(|arrival| frame::is_marked(&arrival.frame)).count();
        println!(
            "seed {seed}: {} frames through the RTL, {marked} marked, {} of them there; the last at {} ps",
            sends.len(),
            with_rtl.marked_by_queue,
            with_rtl.arrivals.last().map_or(0, |arrival| arrival.at.0)
        );
        // Some by the fabric, some by the queue, some not.
        let by_queue = with_rtl.marked_by_queue as usize;
        assert!(100 < by_queue && by_queue + 10 < marked && marked + 100 < sends.len());
        // The lookahead, parts of it, less than a cycle, and no multiple of a cycle.
        for quantum in [500_000, 250_000, 100_000, 33_333, 4_000, 1_001].map(Span) {
            let with_model = co_simulate(&mut Model::new(100), quantum, &sends).expect("a fabric");
            assert!(with_model == with_rtl, "seed {seed}, quantum {quantum:?}: RTL and model differ");
        }
        let quantum = Span(7_777);
        let again = co_simulate(&mut load(library, 100), quantum, &sends).expect("a fabric");
        assert!(again == with_rtl, "seed {seed}, quantum {quantum:?}: RTL and RTL differ");
    }
}

#[test]
#[should_panic(expected = "a quantum is above 0 and at most 500000ps")]
fn quantum_beyond_the_lookahead_is_refused() {
    let _ = co_simulate(&mut Model::new(1), CABLE + Span(1), &[]);
}

/// What a newcomer is told to type gives what it says.
#[test]
fn documented_example_runs_with_rtl_and_model() {
    let text = std::fs::read_to_string(root().join("host-runner/docs/attaching-hardware.md")).expect("the document");
    for line in [&format!("{FOLDER}/build.sh target/rtl"), "cargo run --example rtl_peer -- target/rtl/libecn_queue.so"]
    {
        assert!(text.lines().any(|l| l == line), "attaching-hardware.md does not say `{line}`");
    }
    let example = wormhole_example("rtl_peer");
    let run = |library: Option<&Path>| Command::new(&example).args(library).output().expect("the example runs");
    let said = |output: Output| {
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let with_model = said(run(None));
    let last = with_model.lines().last().unwrap_or_default();
    assert!(text.contains(last), "attaching-hardware.md does not show what the example says: {last}");
    let missing = run(Some(Path::new("no-such-library.so")));
    let errors = String::from_utf8_lossy(&missing.stderr);
    assert!(missing.status.code() == Some(1) && errors.contains("no-such-library.so"), "{missing:?}");
    let Some(library) = library("documented_example_runs_with_rtl_and_model") else { return };
    assert_eq!(said(run(Some(library))), with_model);
    println!("with RTL under Verilator and with the model: {last}");
}

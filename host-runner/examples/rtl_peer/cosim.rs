//! The co-simulation: a Wormhole fabric whose frames pass through a hardware queue on their way.
//!
//! ```text
//! host 0 --+            +-- host 2 ~~ cable ~~> queue ~~ cable ~~> host 3 --+
//!          +-- switch 5 +---------------------------------------------------+
//! host 1 --+            +-- host 4
//! ```
//!
//! Hosts 0 and 1 send to host 4, by way of the queue: the fabric carries a frame to host 2, where it leaves the
//! simulation. A cable takes it to the queue; the queue gives it back, marked or not; a cable takes it to host 3, where
//! it enters the simulation again. A flow from host 0 to host 4 runs beside.
//!
//! Both simulators run for the same *quantum*, one after the other, and then exchange frames. A frame takes
//! [`CABLE`] to the other side. So with a quantum up to that, the *lookahead*, nothing arrives in a time that its
//! receiver has behind it, and the results do not depend on the quantum.

use crate::axis::{Assembler, EcnQueue, Offer, Pins, beats};
use crate::frame;
use std::collections::VecDeque;
use wormhole_kernel::{
    BitRate, Error, ExternalFrame, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, Models, NodeId, NodeKind, SimTime,
    Span, Step,
};
use wormhole_models::cca::{AnyCca, Hpcc, HpccConfig};
use wormhole_models::ecn::Thresholds;
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};

/// Propagation delay of each cable between the fabric and the queue.
pub(crate) const CABLE: Span = Span::from_ns(500);

/// A cycle of the queue's clock: 250 MHz.
const CYCLE: Span = Span::from_ns(4);

/// What comes after the queue takes 5 beats in 16 cycles: 40 Gb/s of the 128 that the queue can move.
const DRAIN: (u64, u64) = (5, 16);

/// Where frames leave the fabric for the queue, where they come back, and where they go.
const TO_QUEUE: NodeId = NodeId(2);
const FROM_QUEUE: NodeId = NodeId(3);
const RECEIVER: NodeId = NodeId(4);
const SWITCH: NodeId = NodeId(5);

/// Bytes of the check sequence, which the fabric carries and the queue does not.
const CHECK_SEQUENCE: u32 = 4;

/// The fabric's switches mark above 10 kB at 100 Gb/s.
const STEP: [Thresholds; 1] = [Thresholds { rate: BitRate::from_gbps(100), kmin: 10_000, kmax: 10_000, pmax: 1.0 }];

/// A frame to be sent.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Send {
    /// When its sender has it ready.
    pub(crate) at: SimTime,
    /// Host 0 or 1.
    pub(crate) src: NodeId,
    /// Its size without the check sequence.
    pub(crate) bytes: usize,
}

/// A frame that has come to its receiver.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Arrival {
    /// When its last bit arrived.
    pub(crate) at: SimTime,
    /// What it is.
    pub(crate) frame: Vec<u8>,
}

/// What has come of a co-simulation.
#[derive(PartialEq, Eq, Debug)]
pub(crate) struct Outcome {
    /// The frames, in order of arrival.
    pub(crate) arrivals: Vec<Arrival>,
    /// Those that the queue has marked.
    pub(crate) marked_by_queue: u32,
    /// When the flow that runs beside has ended.
    pub(crate) flow_end: SimTime,
}

/// Sends frames, whose numbers are their indices, through the fabric and a queue, until all have arrived.
///
/// # Errors
/// What the kernel refuses, such as a sender that is no host.
///
/// # Panics
/// If the quantum is 0 or longer than [`CABLE`], or `sends` is not in order of time.
pub(crate) fn co_simulate(queue: &mut dyn EcnQueue, quantum: Span, sends: &[Send]) -> Result<Outcome, Error> {
    assert!(Span::ZERO < quantum && quantum <= CABLE, "a quantum is above 0 and at most {CABLE:?}");
    assert!(sends.is_sorted_by_key(|send| send.at), "sends are in order of time");
    let nodes = [[NodeKind::Host; 5].as_slice(), &[NodeKind::Switch]].concat();
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let links = [0, 1, 2, 3, 4].map(|host| LinkSpec { a: NodeId(host), b: SWITCH, rate, delay, loss: 0 });
    let ccas = [AnyCca::Hpcc(Hpcc::new(HpccConfig::default()))];
    let mut models = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    models.marker.thresholds = &STEP;
    let limits = Limits { inputs: sends.len() + 1_024, ..Limits::default() };
    let mut memory = vec![0; Kernel::<Ps<Ecmp>>::words(FabricSize::of(&nodes, &links), &limits, &models)];
    let mut kernel = Kernel::new(&mut memory, &nodes, &links, models, &limits, ())?;
    kernel.add_flow(&FlowSpec::new(NodeId(0), RECEIVER, 1_000_000, SimTime::ZERO))?;

    let frames = sends.iter().zip(0..).map(|(send, number)| frame::build(send.src, RECEIVER, number, send.bytes));
    let mut fabric = Fabric { kernel, frames: frames.collect(), arrivals: Vec::new(), flow_end: SimTime::ZERO };
    let mut device = Device::new(queue);
    let (mut now, mut unsent) = (SimTime::ZERO, sends.iter().zip(0..).peekable());
    while unsent.peek().is_some() || !device.is_idle() || fabric.kernel.next_event_time().is_some() {
        let end = now + quantum;
        while let Some((send, number)) = unsent.next_if(|(send, _)| send.at < end) {
            fabric.inject(send.at, send.src, TO_QUEUE, number)?;
        }
        let to_queue = fabric.run_before(end)?;
        for (at, frame) in device.run_before(end) {
            fabric.enter_again(at + CABLE, frame)?;
        }
        to_queue.iter().for_each(|(at, frame)| device.offer(*at + CABLE, frame));
        now = end;
    }
    let Fabric { arrivals, flow_end, .. } = fabric;
    Ok(Outcome { arrivals, marked_by_queue: device.marked, flow_end })
}

/// Wormhole's side. The kernel moves tokens; what frames contain is kept here, by their numbers.
struct Fabric<'k, M: Models> {
    kernel: Kernel<'k, M>,
    frames: Vec<Vec<u8>>,
    arrivals: Vec<Arrival>,
    flow_end: SimTime,
}

impl<M: Models> Fabric<'_, M> {
    /// Hands a frame to the NIC of a host.
    fn inject(&mut self, at: SimTime, src: NodeId, dst: NodeId, number: u32) -> Result<(), Error> {
        let content = &self.frames[number as usize];
        let bytes = content.len() as u32 + CHECK_SEQUENCE;
        let frame = ExternalFrame::new(src, dst, bytes, number.into());
        self.kernel.inject(at, &ExternalFrame { marked: frame::is_marked(content).into(), ..frame })
    }

    /// Takes a frame back that has been through the queue.
    fn enter_again(&mut self, at: SimTime, content: Vec<u8>) -> Result<(), Error> {
        let ((_, dst), number) = (frame::ends(&content), frame::number(&content));
        self.frames[number as usize] = content;
        self.inject(at, FROM_QUEUE, dst, number)
    }

    /// Lets everything before `end` happen, and gives what leaves for the queue, by time.
    fn run_before(&mut self, end: SimTime) -> Result<Vec<(SimTime, Vec<u8>)>, Error> {
        let mut to_queue = Vec::new();
        loop {
            let step = self.kernel.run_until(SimTime(end.0 - 1))?;
            while let Some(out) = self.kernel.poll_egress() {
                let mut frame = self.frames[out.token as usize].clone();
                if out.marked != 0 && !frame::is_marked(&frame) {
                    frame::mark(&mut frame);
                }
                match out.dst {
                    TO_QUEUE => to_queue.push((out.at, frame)),
                    _ => self.arrivals.push(Arrival { at: out.at, frame }),
                }
            }
            while let Some(done) = self.kernel.poll_completion() {
                self.flow_end = done.start + done.fct;
            }
            if step != Step::OutputFull {
                return Ok(to_queue);
            }
        }
    }
}

/// The hardware's side: a queue, and what offers it beats and takes them.
struct Device<'q> {
    queue: &'q mut dyn EcnQueue,
    /// The next cycle.
    cycle: u64,
    /// Beats that have not been taken yet.
    offers: VecDeque<Offer>,
    /// Beats in the queue.
    inside: usize,
    assembler: Assembler,
    marked: u32,
}

impl Device<'_> {
    fn new(queue: &mut dyn EcnQueue) -> Device<'_> {
        Device { queue, cycle: 0, offers: VecDeque::new(), inside: 0, assembler: Assembler::default(), marked: 0 }
    }

    fn is_idle(&self) -> bool {
        self.offers.is_empty() && self.inside == 0
    }

    /// A frame whose last bit is there at `at`: it is offered from the next cycle that begins.
    fn offer(&mut self, at: SimTime, frame: &[u8]) {
        self.offers.extend(beats(frame, at.0.div_ceil(CYCLE.0)));
    }

    /// Runs the cycles that end before `end`, and gives the frames that come out, with the ends of their last cycles.
    fn run_before(&mut self, end: SimTime) -> Vec<(SimTime, Vec<u8>)> {
        let cycles = self.cycle..(end.0 - 1) / CYCLE.0;
        let (drained, of) = DRAIN;
        let ready: Vec<u8> = cycles.clone().map(|cycle| u8::from(cycle * drained % of < drained)).collect();
        let mut pins = vec![Pins::IDLE; ready.len()];
        let taken = self.queue.run(self.offers.make_contiguous(), &ready, &mut pins);
        self.offers.drain(..taken);
        self.inside += taken;
        let mut out = Vec::new();
        for ((cycle, pins), _) in cycles.clone().zip(&pins).zip(&ready).filter(|(_, ready)| **ready != 0) {
            self.inside -= usize::from(pins.m_valid);
            let frame = self.assembler.take(pins);
            out.extend(frame.map(|frame| (SimTime((cycle + 1) * CYCLE.0), frame)));
        }
        self.marked = pins.last().map_or(self.marked, |pins| pins.marked);
        self.cycle = cycles.end;
        out
    }
}

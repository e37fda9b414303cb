//! The bridge between external ports and a kernel.
//!
//! An external port stands for a host of the fabric. The bridge decides which host a frame goes to, keeps its bytes
//! while the kernel carries its number, and gives both back when it has arrived.
//!
//! What comes out depends on the times of frames alone, not on when they are handed over: a frame enters when all
//! before its time has happened, and frames of one instant enter in the order of their ports.

use super::addresses::{Addresses, Destination};
use super::frame;
use super::simulation::Simulation;
use crate::capture::Capture;
use crate::traffic::Halt;
use std::collections::{BTreeMap, HashMap, VecDeque};
use std::fmt;
use std::io;
use std::rc::Rc;
use wormhole_kernel::{Error, ExternalFrame, NodeId, SimTime};

/// A frame that has reached an external port.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Delivery {
    /// When its last bit arrived.
    pub(crate) at: SimTime,
    /// Index of the external port.
    pub(crate) port: usize,
    /// Its bytes, without preamble and check sequence.
    pub(crate) frame: Vec<u8>,
}

/// What the bridge has done with frames.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counts {
    /// Frames that came in.
    pub(crate) received: u64,
    /// Frames that were handed out. A frame to all is handed out at each port.
    pub(crate) delivered: u64,
    /// Frames that the fabric has lost.
    pub(crate) lost: u64,
    /// Frames whose destination was where they came from, or that were shorter than an Ethernet header.
    pub(crate) refused: u64,
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Counts { received, delivered, lost, refused } = self;
        write!(f, "frames from outside: {received} came in, {delivered} went out, {lost} lost, {refused} refused")
    }
}

/// See the module.
pub(crate) struct Bridge<'s> {
    simulation: &'s mut dyn Simulation,
    /// The hosts of the external ports.
    hosts: &'s [NodeId],
    addresses: Addresses,
    capture: Option<Capture>,
    /// Frames that have yet to enter, by time, port and number.
    arriving: BTreeMap<(SimTime, usize, u64), Vec<u8>>,
    /// Frames in the fabric, by token.
    in_flight: HashMap<u64, Rc<Vec<u8>>>,
    delivered: VecDeque<Delivery>,
    /// The token of the next frame.
    next_token: u64,
    /// Everything up to and including this time has happened.
    now: SimTime,
    until: SimTime,
    counts: Counts,
}

impl<'s> Bridge<'s> {
    /// A bridge at time 0, to the external ports at these hosts. Nothing is to happen after `until`.
    pub(crate) fn new(
        simulation: &'s mut dyn Simulation,
        hosts: &'s [NodeId],
        addresses: Addresses,
        capture: Option<Capture>,
        until: SimTime,
    ) -> Bridge<'s> {
        Bridge {
            simulation,
            hosts,
            addresses,
            capture,
            arriving: BTreeMap::new(),
            in_flight: HashMap::new(),
            delivered: VecDeque::new(),
            next_token: 0,
            now: SimTime::ZERO,
            until,
            counts: Counts::default(),
        }
    }

    // Getters.

    /// Everything up to and including this time has happened.
    pub(crate) fn now(&self) -> SimTime {
        self.now
    }

    /// Nothing is to happen after this time.
    pub(crate) fn until(&self) -> SimTime {
        self.until
    }

    /// When something happens next, if anything does: in the fabric, or a frame enters it.
    pub(crate) fn next_event_time(&self) -> Option<SimTime> {
        let entry = self.arriving.first_key_value().map(|(&(at, ..), _)| at);
        [entry, self.simulation.next_event_time()].into_iter().flatten().min()
    }

    /// Frames that have yet to enter.
    pub(crate) fn waiting(&self) -> usize {
        self.arriving.len()
    }

    /// Frames that have come in and have not left: those that have yet to enter, and those in the fabric.
    pub(crate) fn frames(&self) -> usize {
        self.arriving.len() + self.in_flight.len()
    }

    /// What has been done so far.
    pub(crate) fn counts(&self) -> Counts {
        self.counts
    }

    // Commands.

    /// A frame comes in at an external port: its first bit is there at `at`. A time before now counts as now.
    pub(crate) fn receive(&mut self, at: SimTime, port: usize, frame: Vec<u8>) {
        let key = (at.max(self.now), port, self.counts.received);
        self.counts.received += 1;
        self.arriving.insert(key, frame);
    }

    /// Lets everything up to and including `limit` happen.
    ///
    /// # Errors
    /// A capacity is used up, the kernel refuses a frame, or what jobs do makes no sense.
    pub(crate) fn run_until(&mut self, limit: SimTime) -> Result<(), Halt> {
        while let Some((&(at, ..), _)) = self.arriving.first_key_value()
            && at <= limit
        {
            if let Some(before) = at.0.checked_sub(1) {
                self.run_to(SimTime(before))?;
            }
            self.enter_all(at)?;
        }
        self.run_to(limit)
    }

    /// Completes the capture.
    ///
    /// # Errors
    /// Those of its file.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.capture.map_or(Ok(()), Capture::finish)
    }

    // Outputs.

    /// The next frame that has arrived, in order of time.
    pub(crate) fn poll(&mut self) -> Option<Delivery> {
        self.delivered.pop_front()
    }

    // Helpers.

    /// Runs to `limit`, which no frame that is arriving comes before.
    fn run_to(&mut self, limit: SimTime) -> Result<(), Halt> {
        if limit < self.now {
            return Ok(());
        }
        self.now = limit;
        loop {
            let is_there = self.simulation.run_until(limit);
            self.collect();
            if is_there? {
                return Ok(());
            }
        }
    }

    /// Takes what the fabric gives back.
    fn collect(&mut self) {
        while let Some(out) = self.simulation.poll_egress() {
            let Some(port) = self.hosts.iter().position(|&host| host == out.dst) else { continue };
            let Some(frame) = self.in_flight.remove(&out.token) else { continue };
            let mut frame = Rc::unwrap_or_clone(frame);
            if out.marked != 0 {
                frame::mark_congestion(&mut frame);
            }
            if let Some(capture) = &mut self.capture {
                capture.frame(out.at, &frame);
            }
            self.counts.delivered += 1;
            self.delivered.push_back(Delivery { at: out.at, port, frame });
        }
        while let Some(token) = self.simulation.poll_lost() {
            self.counts.lost += u64::from(self.in_flight.remove(&token).is_some());
        }
    }

    /// Lets all frames of an instant enter. Everything before it has happened.
    fn enter_all(&mut self, at: SimTime) -> Result<(), Halt> {
        let is_due = |(&(due, ..), _): (&(SimTime, usize, u64), &Vec<u8>)| due == at;
        while self.arriving.first_key_value().is_some_and(is_due)
            && let Some(((_, port, _), frame)) = self.arriving.pop_first()
        {
            self.enter(at, port, frame)?;
        }
        Ok(())
    }

    /// A frame enters. One to several hosts is several frames from there on.
    fn enter(&mut self, at: SimTime, port: usize, frame: Vec<u8>) -> Result<(), Halt> {
        if let Some(capture) = &mut self.capture {
            capture.frame(at, &frame);
        }
        let Some((destination, source)) = frame::addresses(&frame) else {
            self.counts.refused += 1;
            return Ok(());
        };
        self.addresses.learn(source, port);
        let frame = Rc::new(frame);
        match self.addresses.destination(destination, port) {
            Destination::Port(to) => self.send(at, port, to, frame),
            Destination::All => {
                let others = (0..self.hosts.len()).filter(|&to| to != port);
                others.into_iter().try_for_each(|to| self.send(at, port, to, frame.clone()))
            }
            Destination::Nowhere => {
                self.counts.refused += 1;
                Ok(())
            }
        }
    }

    /// Sends a frame from one external port to another.
    fn send(&mut self, at: SimTime, from: usize, to: usize, frame: Rc<Vec<u8>>) -> Result<(), Halt> {
        let token = self.next_token;
        self.next_token += 1;
        let bytes = frame::wire_bytes(&frame) as u32;
        let (src_port, dst_port) = frame::ports(&frame);
        let external =
            ExternalFrame { src_port, dst_port, ..ExternalFrame::new(self.hosts[from], self.hosts[to], bytes, token) };
        self.in_flight.insert(token, frame);
        let injected = match self.simulation.inject(at, &external) {
            Err(Error::Capacity(_)) => {
                // Those before it in this instant make room.
                self.run_to(at)?;
                self.simulation.inject(at, &external)
            }
            done => done,
        };
        injected.map_err(Halt::of)
    }
}

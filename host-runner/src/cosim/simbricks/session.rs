//! Keeping time with peers, and carrying frames between them and the bridge.
//!
//! A message's stamp is its sender's time plus the latency of the link. It promises that nothing earlier comes. So all
//! before the least promise can be simulated: that of the latency is the lookahead. What is stamped just then is not
//! simulated before it is known that no more comes with this stamp: results do not depend on which process is faster.

use super::peer::{Arrival, Peer};
use crate::cosim::bridge::Bridge;
use crate::cosim::{Break, Fault};
use crate::traffic::Halt;
use std::thread;
use std::time::{Duration, Instant};
use wormhole_kernel::{SimTime, Span};

/// Turns between two looks at the sockets.
const TURNS_PER_LOOK: u32 = 256;

/// Most frames of peers that have not left the fabric. Peers without synchronisation wait then; one that keeps time
/// cannot, and it is a fault if so many come for one instant.
const MOST_FRAMES: usize = 1 << 16;

/// The smallest step of time.
const STEP: Span = Span(1);

/// See the module.
pub(super) struct Session<'b, 's> {
    bridge: &'b mut Bridge<'s>,
    /// By external port.
    peers: Vec<Peer>,
    /// All before this has been simulated.
    now: SimTime,
    /// Nothing from this time on is to be.
    end: SimTime,
}

impl<'b, 's> Session<'b, 's> {
    pub(super) fn new(bridge: &'b mut Bridge<'s>, peers: Vec<Peer>) -> Session<'b, 's> {
        let end = bridge.until() + STEP;
        Session { bridge, peers, now: SimTime::ZERO, end }
    }

    /// Runs until the time is up, or a peer ends it.
    ///
    /// # Errors
    /// A fault of a peer or of the simulation.
    pub(super) fn run(&mut self) -> Result<(), Break> {
        for turn in (1..TURNS_PER_LOOK + 1).cycle() {
            let has_received = self.receive()?;
            let has_advanced = self.advance()?;
            let has_sent = self.send();
            if self.now >= self.end && !self.peers.iter().any(Peer::is_behind) {
                return Ok(());
            }
            if turn == TURNS_PER_LOOK {
                self.look_at_sockets()?;
            }
            if !(has_received || has_advanced || has_sent) {
                thread::yield_now();
            }
        }
        Ok(())
    }

    /// Takes what is due from all peers. Gives whether there was anything.
    fn receive(&mut self) -> Result<bool, Fault> {
        let mut any = false;
        for (port, peer) in self.peers.iter_mut().enumerate() {
            while (peer.is_synchronised() || self.bridge.frames() < MOST_FRAMES)
                && let Some(arrival) = peer.receive(self.now)?
            {
                any = true;
                if self.bridge.waiting() >= MOST_FRAMES {
                    return Err(peer.fault(format!("more than {MOST_FRAMES} frames for one instant")));
                }
                match arrival {
                    Arrival::Frame(time, frame) => self.bridge.receive(time.unwrap_or(self.now), port, frame),
                    Arrival::End(time) => {
                        eprintln!("{}: the peer has ended the co-simulation", peer.name());
                        self.end = self.end.min(time.unwrap_or(self.now));
                    }
                }
            }
        }
        Ok(any)
    }

    /// Simulates as far as is known to be right. Gives whether that was any further.
    fn advance(&mut self) -> Result<bool, Halt> {
        // Who cannot send does not go on: what waits stays little.
        if self.peers.iter().any(Peer::is_behind) {
            return Ok(false);
        }
        let horizon = self.horizon().min(self.end);
        if horizon <= self.now {
            return Ok(false);
        }
        self.bridge.run_until(SimTime(horizon.0 - STEP.0))?;
        self.now = horizon;
        while let Some(delivery) = self.bridge.poll() {
            self.peers[delivery.port].send(delivery.at, delivery.frame);
        }
        Ok(true)
    }

    /// What may be simulated next, exclusively. Without any synchronisation that is the next thing to happen.
    fn horizon(&self) -> SimTime {
        if self.peers.iter().any(|peer| peer.is_synchronised() && !peer.has_ended()) {
            return self.peers.iter().map(Peer::horizon).min().unwrap_or(self.now);
        }
        self.bridge.next_event_time().map_or(self.now, |next| next + STEP)
    }

    /// Sends what is to be sent. Gives whether anything was.
    fn send(&mut self) -> bool {
        let mut any = false;
        for peer in &mut self.peers {
            peer.tell(self.now);
            any |= peer.flush();
        }
        any
    }

    /// Looks whether the peers are still there.
    fn look_at_sockets(&mut self) -> Result<(), Fault> {
        for peer in &mut self.peers {
            peer.look_at_socket()?;
            if peer.is_lost(self.now) {
                return Err(peer.fault(format!("the peer is gone, at {} ps", self.now.0)));
            }
        }
        Ok(())
    }

    /// Takes leave of the peers: tells them that it is over, and gives them some time to have room for that.
    pub(super) fn take_leave(&mut self, patience: Duration) {
        let deadline = Instant::now() + patience;
        for peer in &mut self.peers {
            peer.end(self.now);
            loop {
                peer.flush();
                // Who is gone needs no leave.
                let is_over = !peer.is_behind() || peer.is_lost(SimTime::MAX) || Instant::now() >= deadline;
                if is_over || peer.look_at_socket().is_err() {
                    break;
                }
                thread::yield_now();
            }
        }
    }

    /// Says what peers did not get.
    pub(super) fn report(&self) {
        for peer in self.peers.iter().filter(|peer| peer.too_long() > 0) {
            eprintln!("{}: {} frames were too long for the peer's slots", peer.name(), peer.too_long());
        }
    }
}

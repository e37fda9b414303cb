//! The other side of an external port: what it has sent and been sent, and how far it may be relied on.

use super::connect::Connection;
use super::ring::{Consumer, Kind, Message, Producer};
use crate::cosim::Fault;
use std::collections::VecDeque;
use std::io::{ErrorKind, Read};
use std::os::unix::net::UnixStream;
use wormhole_kernel::{SimTime, Span};

/// When frames arrive, and how often a peer hears how far we are.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    /// Time that what is sent takes to the peer.
    pub(super) latency: Span,
    /// Longest simulated time between two messages.
    pub(super) interval: Span,
}

/// What has come from a peer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Arrival {
    /// A frame, and its time. A peer without synchronisation tells none.
    Frame(Option<SimTime>, Vec<u8>),
    /// The peer ends the co-simulation: as of now, or of this time.
    End(Option<SimTime>),
}

/// See the module.
pub(super) struct Peer {
    name: String,
    socket: UnixStream,
    incoming: Consumer,
    outgoing: Producer,
    is_synchronised: bool,
    pace: Pace,
    /// Nothing that it has yet to send is earlier.
    promise: SimTime,
    /// How far it has been told we are.
    told: Option<SimTime>,
    /// Messages for which its ring has no room, with their stamps.
    waiting: VecDeque<(SimTime, Message)>,
    has_ended: bool,
    /// Its end of the socket is closed. What it has sent before may still be in the ring.
    is_gone: bool,
    /// Frames that its slots are too small for.
    too_long: u64,
}

impl Peer {
    pub(super) fn new(name: String, connection: Connection, pace: Pace) -> Peer {
        let Connection { socket, incoming, outgoing, is_synchronised } = connection;
        Peer {
            name,
            socket,
            incoming,
            outgoing,
            is_synchronised,
            pace,
            promise: SimTime::ZERO,
            told: None,
            waiting: VecDeque::new(),
            has_ended: false,
            is_gone: false,
            too_long: 0,
        }
    }

    // Getters.

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn is_synchronised(&self) -> bool {
        self.is_synchronised
    }

    pub(super) fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// Frames that were not sent because they are too long for its slots.
    pub(super) fn too_long(&self) -> u64 {
        self.too_long
    }

    /// Whether something waits for room in its ring.
    pub(super) fn is_behind(&self) -> bool {
        !self.waiting.is_empty()
    }

    /// Up to where, exclusively, it lets simulated time go: before its promise, and not so far that it would have to be
    /// told something before.
    pub(super) fn horizon(&self) -> SimTime {
        if !self.is_synchronised || self.has_ended {
            return SimTime::MAX;
        }
        self.told.map_or(SimTime::ZERO, |told| told + self.pace.interval).min(self.promise)
    }

    /// Whether nothing more will come of a peer on which all waits that has got as far as `now`.
    pub(super) fn is_lost(&self, now: SimTime) -> bool {
        let is_needed = !self.is_synchronised || self.promise <= now || self.is_behind();
        self.is_gone && !self.has_ended && is_needed && self.incoming.peek() == Ok(None)
    }

    // Receiving.

    /// The next thing that is due before or at `now`, if there is one.
    ///
    /// # Errors
    /// The peer breaks the protocol.
    pub(super) fn receive(&mut self, now: SimTime) -> Result<Option<Arrival>, Fault> {
        while !self.has_ended
            && let Some((stamp, kind)) = self.incoming.peek().map_err(|bad| self.fault(bad))?
        {
            // SimBricks' own programs put no sensible time on their last message.
            if self.is_synchronised && kind != Kind::Terminate {
                if SimTime(stamp) < self.promise {
                    let message = format!("a message of {stamp} ps after one of {} ps", self.promise.0);
                    return Err(self.fault(message));
                }
                self.promise = SimTime(stamp);
                if self.promise > now {
                    return Ok(None);
                }
            }
            let time = self.is_synchronised.then_some(self.promise);
            match self.incoming.take(kind).map_err(|bad| self.fault(bad))? {
                Message::Sync => {}
                Message::Packet(frame) => return Ok(Some(Arrival::Frame(time, frame))),
                Message::Terminate => {
                    self.has_ended = true;
                    return Ok(Some(Arrival::End(time)));
                }
            }
        }
        Ok(None)
    }

    /// Looks whether the peer is still there.
    ///
    /// # Errors
    /// It has sent something on the socket, where nothing is to come any more.
    pub(super) fn look_at_socket(&mut self) -> Result<(), Fault> {
        match self.socket.read(&mut [0]) {
            Ok(0) => self.is_gone = true,
            Ok(_) => return Err(self.fault("more on the socket than an introduction")),
            Err(error) if [ErrorKind::WouldBlock, ErrorKind::Interrupted].contains(&error.kind()) => {}
            Err(_) => self.is_gone = true,
        }
        Ok(())
    }

    // Sending.

    /// Sends a frame that has left the fabric at `at`.
    pub(super) fn send(&mut self, at: SimTime, frame: Vec<u8>) {
        if frame.len() > self.outgoing.longest_packet() {
            self.too_long += 1;
        } else {
            self.push(at, Message::Packet(frame));
        }
    }

    /// Tells the peer that all before `now` has been done, if it is time to.
    pub(super) fn tell(&mut self, now: SimTime) {
        let is_due = self.told.is_none_or(|told| told + self.pace.interval <= now);
        if self.is_synchronised && is_due {
            self.push(now, Message::Sync);
        }
    }

    /// Tells the peer that it is over, as of `now`.
    pub(super) fn end(&mut self, now: SimTime) {
        if self.is_synchronised {
            self.push(now, Message::Sync);
        }
        self.push(now, Message::Terminate);
    }

    fn push(&mut self, at: SimTime, message: Message) {
        if !self.has_ended {
            self.told = Some(at);
            self.waiting.push_back((at + self.pace.latency, message));
        }
    }

    /// Puts into the ring what waits, as far as there is room. Gives whether anything has gone.
    pub(super) fn flush(&mut self) -> bool {
        let before = self.waiting.len();
        if self.has_ended {
            self.waiting.clear();
        }
        while let Some((stamp, message)) = self.waiting.front()
            && self.outgoing.send(stamp.0, message)
        {
            self.waiting.pop_front();
        }
        self.waiting.len() < before
    }

    /// A fault of this peer.
    pub(super) fn fault(&self, what: impl std::fmt::Display) -> Fault {
        Fault::Peer(format!("{}: {what}", self.name))
    }
}

//! Simulated time paced by the clock on the wall.

use super::device::Device;
use nix::errno::Errno;
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::prctl::set_timerslack;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use wormhole_kernel::SimTime;

/// The clock, and who may stop it. Simulated time 0 is when it was made.
pub(crate) struct Pacer {
    start: Instant,
    signals: SignalFd,
}

impl Pacer {
    /// Starts the clock. From now on SIGINT and SIGTERM do not end the process, but end [`wait`](Self::wait).
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn start() -> io::Result<Pacer> {
        let mut stops = SigSet::empty();
        stops.add(Signal::SIGINT);
        stops.add(Signal::SIGTERM);
        stops.thread_block()?;
        let signals = SignalFd::with_flags(&stops, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        // As exact as the system can: by default a sleep may last 50 us longer, so that others wake up with it.
        set_timerslack(1)?;
        Ok(Pacer { start: Instant::now(), signals })
    }

    /// Simulated time by the clock on the wall.
    pub(crate) fn now(&self) -> SimTime {
        let ps = self.start.elapsed().as_nanos().saturating_mul(1_000);
        SimTime(u64::try_from(ps).unwrap_or(u64::MAX))
    }

    /// Waits for the first of these: a time, a frame at a device, a signal to stop. True if it is the signal.
    ///
    /// # Errors
    /// Those of the system.
    pub(crate) fn wait<'d>(&self, devices: impl Iterator<Item = &'d Device>, until: SimTime) -> io::Result<bool> {
        let mut places: Vec<PollFd<'_>> = devices.map(|d| PollFd::new(d.as_fd(), PollFlags::POLLIN)).collect();
        places.push(PollFd::new(self.signals.as_fd(), PollFlags::POLLIN));
        // Not before: rounded up to what a timer can do.
        let left = Duration::from_nanos(until.since(self.now()).0.div_ceil(1_000));
        let timeout = (until != SimTime::MAX).then(|| left.into());
        match ppoll(&mut places, timeout, None) {
            Ok(_) | Err(Errno::EINTR) => {}
            Err(error) => return Err(error.into()),
        }
        Ok(self.signals.read_signal()?.is_some())
    }
}

//! A simulation under way that takes and gives frames, whatever its models are.

use crate::scenario::Scenario;
use crate::simulate::{Driver, Ending, Outcome, Refusal, Stretch, advance};
use crate::traffic::{Halt, Traffic};
use std::cell::RefCell;
use std::rc::Rc;
use wormhole_kernel::packet::{Packet, PacketKind};
use wormhole_kernel::{Error, ExternalFrame, Kernel, Models, Observer, PortId, SimTime, Step};

/// Frames that may wait for one instant. More go in one after the other, within it.
const INPUTS: usize = 1 << 10;

/// What the bridge needs of a simulation.
pub(crate) trait Simulation {
    /// When something happens next: in the fabric, or in a job.
    fn next_event_time(&self) -> Option<SimTime>;

    /// Lets everything up to and including `limit` happen. `false`: [`poll_egress`](Self::poll_egress) must be asked
    /// before more can.
    ///
    /// # Errors
    /// A capacity is used up, or what jobs do makes no sense.
    fn run_until(&mut self, limit: SimTime) -> Result<bool, Halt>;

    /// As [`Kernel::inject`].
    ///
    /// # Errors
    /// As [`Kernel::inject`].
    fn inject(&mut self, at: SimTime, frame: &ExternalFrame) -> Result<(), Error>;

    /// The next frame that has reached its host.
    fn poll_egress(&mut self) -> Option<ExternalFrame>;

    /// The token of a frame that the fabric has lost.
    fn poll_lost(&mut self) -> Option<u64>;
}

/// Tokens of external frames that were lost: an observer, of which there are two hands.
#[derive(Clone, Default)]
pub(crate) struct Losses(Rc<RefCell<Vec<u64>>>);

impl Observer for Losses {
    fn dropped(&mut self, _: SimTime, _: PortId, frame: &Packet) {
        if frame.kind() == PacketKind::External {
            self.0.borrow_mut().push(frame.seq);
        }
    }
}

/// A kernel with its flows.
struct Running<'r, 'k, 's, M: Models, O: Observer> {
    kernel: &'r mut Kernel<'k, M, O>,
    traffic: &'r mut Traffic<'s>,
    losses: Losses,
    /// How far jobs have been told of.
    now: SimTime,
}

impl<M: Models, O: Observer> Simulation for Running<'_, '_, '_, M, O> {
    fn next_event_time(&self) -> Option<SimTime> {
        [self.kernel.next_event_time(), self.traffic.next_time()].into_iter().flatten().min()
    }

    fn run_until(&mut self, limit: SimTime) -> Result<bool, Halt> {
        loop {
            let Stretch { step, goes_on } = advance(limit, &mut self.now, self.kernel, self.traffic)?;
            match step {
                Step::OutputFull => return Ok(false),
                _ if goes_on => {}
                Step::Reached | Step::Idle => return Ok(true),
                // What stands still may be set in motion by a frame from outside.
                Step::Stalled | Step::Budget | Step::Completed => {}
            }
        }
    }

    fn inject(&mut self, at: SimTime, frame: &ExternalFrame) -> Result<(), Error> {
        self.kernel.inject(at, frame)
    }

    fn poll_egress(&mut self) -> Option<ExternalFrame> {
        self.kernel.poll_egress()
    }

    fn poll_lost(&mut self) -> Option<u64> {
        self.losses.0.borrow_mut().pop()
    }
}

/// Lets `work` do with a simulation what it likes.
pub(crate) struct Driven<F> {
    /// What the simulation's observer sees lost.
    pub(crate) losses: Losses,
    /// What is done.
    pub(crate) work: F,
}

impl<F: FnOnce(&mut dyn Simulation) -> Result<(), Halt>> Driver for Driven<F> {
    fn inputs(&self) -> usize {
        INPUTS
    }

    fn drive<'k, M: Models, O: Observer>(
        self,
        _: &Scenario,
        kernel: &mut Kernel<'k, M, O>,
        traffic: &mut Traffic<'_>,
        _: &dyn Fn(&Kernel<'k, M, O>, &Traffic<'_>) -> Outcome,
    ) -> Result<Ending, Vec<Refusal>> {
        let Driven { losses, work } = self;
        let started = traffic.advance(SimTime::ZERO, kernel);
        let worked = started.and_then(|()| work(&mut Running { kernel, traffic, losses, now: SimTime::ZERO }));
        match worked {
            Err(halt) => halt.into_ending(),
            Ok(()) if traffic.is_done() => Ok(Ending::Done),
            Ok(()) => Ok(Ending::StopTime),
        }
    }
}

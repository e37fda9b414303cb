//! The flows of a run: those of the list, and those that jobs begin as others end.

use crate::flow_records::{FlowRecord, FlowRecords};
use crate::ideal::ideal_fct;
use crate::scenario::{FlowMaker, Profile, Scenario};
use crate::simulate::{Ending, Refusal};
use crate::workload::engine::{Engine, Mismatch, RankStretch, Wait};
use crate::workload::messages::{Message, MessageName};
use crate::workload::report::JobReport;
use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fs::File;
use wormhole_kernel::kernel::Step;
use wormhole_kernel::model::ConfigHash;
use wormhole_kernel::{
    CapacityError, Completion, Error, FlowEnd, FlowSpec, Kernel, Models, NodeId, Observer, SimTime, Span,
};

/// Events between two looks at the clock and the progress line.
const SLICE: u64 = 1 << 18;

/// Why no further flow can be begun.
pub(crate) enum Halt {
    Refused(Refusal),
    OutOf(CapacityError),
    Mismatch(Mismatch),
}

impl Halt {
    pub(crate) fn of(error: Error) -> Halt {
        match error {
            Error::Capacity(fault) => Halt::OutOf(fault),
            error => Halt::Refused(Refusal { flow: None, error }),
        }
    }

    pub(crate) fn into_ending(self) -> Result<Ending, Vec<Refusal>> {
        match self {
            Halt::Refused(refusal) => Err(vec![refusal]),
            Halt::OutOf(fault) => Ok(Ending::OutOf(fault)),
            Halt::Mismatch(Mismatch(message)) => Ok(Ending::Mismatch(message)),
        }
    }
}

/// What is known of a flow while it runs.
#[derive(Clone, Copy)]
struct Flight {
    name: MessageName,
    flow: FlowSpec,
    ideal: Span,
}

/// See the module.
pub(crate) struct Traffic<'s> {
    scenario: &'s Scenario,
    engine: Engine,
    maker: FlowMaker,
    /// Of the list, by token: place in the scenario's list, and ideal FCT.
    listed: Vec<(u32, Span)>,
    /// Flows of jobs, by message id. Their tokens are message ids behind the tokens of the list.
    flights: Vec<Option<Flight>>,
    /// Ideal FCTs of flows like those before. Links that fail would change them, but an ideal is that of the fabric as
    /// it was when such a flow first began.
    known_ideals: HashMap<(NodeId, NodeId, u16, u64), Span>,
    records: FlowRecords,
    /// Flows of the list that have ended.
    listed_ended: usize,
    /// Flows of jobs that have begun.
    begun: usize,
}

impl<'s> Traffic<'s> {
    pub(crate) fn new(scenario: &'s Scenario) -> Traffic<'s> {
        Traffic {
            scenario,
            engine: Engine::new(&scenario.jobs),
            maker: scenario.maker.clone(),
            listed: Vec::new(),
            flights: Vec::new(),
            known_ideals: HashMap::new(),
            records: FlowRecords::new(scenario.profile == Profile::Ps),
            listed_ended: 0,
            begun: 0,
        }
    }

    // Getters.

    /// Flows that were to run so far.
    pub(crate) fn begun(&self) -> usize {
        self.scenario.flows.len() + self.begun
    }

    /// Flows that have ended.
    pub(crate) fn ended(&self) -> usize {
        self.records.len()
    }

    /// The flow of this token, if it is of the list or runs now.
    pub(crate) fn flow(&self, token: u64) -> Option<FlowSpec> {
        self.flight(token).map(|flight| flight.flow)
    }

    fn flight(&self, token: u64) -> Option<Flight> {
        let token = token as usize;
        let Some(message) = token.checked_sub(self.listed.len()) else {
            let (place, ideal) = self.listed[token];
            let flow = self.scenario.flows[place as usize];
            return Some(Flight { name: MessageName::of_list(token), flow, ideal });
        };
        *self.flights.get(message)?
    }

    /// Whether there is nothing left to run.
    pub(crate) fn is_done(&self) -> bool {
        self.ended() == self.begun() && self.engine.is_done()
    }

    /// When jobs go on by themselves.
    pub(crate) fn next_time(&self) -> Option<SimTime> {
        self.engine.next_time()
    }

    /// Ranks that wait for others.
    pub(crate) fn waits(&self) -> Vec<Wait> {
        self.engine.waits()
    }

    pub(crate) fn job_reports(&self) -> Vec<JobReport> {
        (0..).zip(&self.scenario.jobs).map(|(index, placed)| JobReport::new(index, placed, &self.engine)).collect()
    }

    /// An estimate, 0 to 1: jobs count by the tasks of their first ranks, the flows of the list by their number.
    pub(crate) fn share_done(&self) -> f64 {
        let list = (!self.listed.is_empty()).then(|| self.listed_ended as f64 / self.listed.len() as f64);
        let shares = self.engine.shares_done().chain(list);
        let (sum, count) = shares.fold((0.0, 0.0), |(sum, count), share| (sum + share, count + 1.0));
        if count > 0.0 { sum / count } else { 1.0 }
    }

    /// Flows that have ended, in the order of [`Outcome::flows`](crate::simulate::Outcome::flows).
    pub(crate) fn records(&self) -> &FlowRecords {
        &self.records
    }

    /// What ranks do now, from when they began.
    pub(crate) fn open_stretches(&self) -> impl Iterator<Item = RankStretch> + '_ {
        self.engine.open_stretches()
    }

    // Commands.

    /// From now on most flows that have ended are in this file.
    pub(crate) fn keep_records_in(&mut self, file: File) {
        self.records.keep_in(file);
    }

    /// From now on what ranks do is kept until it is taken.
    pub(crate) fn keep_stretches(&mut self) {
        self.engine.keep_stretches();
    }

    /// What ranks have done since this was asked last.
    pub(crate) fn take_stretches(&mut self) -> Vec<RankStretch> {
        self.engine.take_stretches()
    }

    /// Flows that have ended, for good.
    pub(crate) fn take_records(&mut self) -> FlowRecords {
        std::mem::take(&mut self.records)
    }

    /// Adds all flows of the list.
    ///
    /// # Errors
    /// Everything the kernel refuses.
    pub(crate) fn add_list<M: Models, O: Observer>(
        &mut self,
        kernel: &mut Kernel<'_, M, O>,
    ) -> Result<(), Vec<Refusal>> {
        self.add_some(kernel, |_| true)
    }

    /// Adds those flows of the list that `belongs` says: of several kernels each has its own.
    ///
    /// # Errors
    /// Everything the kernel refuses.
    pub(crate) fn add_some<M: Models, O: Observer>(
        &mut self,
        kernel: &mut Kernel<'_, M, O>,
        belongs: impl Fn(&FlowSpec) -> bool,
    ) -> Result<(), Vec<Refusal>> {
        let flows = &self.scenario.flows;
        self.listed.resize(flows.len(), (0, Span::ZERO));
        let mut refused = Vec::new();
        for (index, flow) in flows.iter().enumerate().filter(|(_, flow)| belongs(flow)) {
            match kernel.add_flow(flow).and_then(|_| ideal_fct(kernel, flow)) {
                Ok(ideal) => self.listed[flow.token as usize] = (index as u32, ideal),
                Err(error) => refused.push(Refusal { flow: Some(index), error }),
            }
        }
        if refused.is_empty() { Ok(()) } else { Err(refused) }
    }

    /// Runs the kernel to a time at most, or to where jobs may go on.
    ///
    /// # Errors
    /// A capacity is used up.
    pub(crate) fn run<M: Models, O: Observer>(
        &self,
        limit: SimTime,
        kernel: &mut Kernel<'_, M, O>,
    ) -> Result<Step, CapacityError> {
        if self.scenario.jobs.is_empty() {
            kernel.run_bounded(limit, SLICE)
        } else {
            kernel.run_to_completion(limit, SLICE)
        }
    }

    /// Takes what has ended if no job could wait for it. It may be in the midst of an instant; what jobs do is not to
    /// depend on that.
    pub(crate) fn collect<M: Models, O: Observer>(&mut self, kernel: &mut Kernel<'_, M, O>) {
        if self.scenario.jobs.is_empty() {
            self.collect_rest(kernel);
        }
    }

    /// Takes what has ended before the run had to stop: nothing follows from it any more.
    pub(crate) fn collect_rest<M: Models, O: Observer>(&mut self, kernel: &mut Kernel<'_, M, O>) {
        while let Some(completion) = kernel.poll_completion() {
            self.record(completion);
        }
    }

    /// Takes what has ended, and begins what follows from it now.
    pub(crate) fn advance<M: Models, O: Observer>(
        &mut self,
        now: SimTime,
        kernel: &mut Kernel<'_, M, O>,
    ) -> Result<(), Halt> {
        if self.scenario.jobs.is_empty() {
            self.collect(kernel);
            return Ok(());
        }
        let mut arrived = Vec::new();
        while let Some(completion) = kernel.poll_completion() {
            arrived.extend(self.record(completion));
        }
        arrived.sort_unstable();
        let arrived: Vec<u32> = arrived.into_iter().map(|(_, message)| message).collect();
        self.engine.advance(now, &arrived).map_err(Halt::Mismatch)?;
        self.engine.messages().iter().try_for_each(|message| self.begin(now, message, kernel)).map_err(Halt::of)
    }

    /// Keeps the end of a flow of the list.
    pub(crate) fn take(&mut self, completion: Completion) {
        self.record(completion);
    }

    /// Keeps a flow's end. Gives the message that has arrived by it; a flow that was given up brings none.
    fn record(&mut self, completion: Completion) -> Option<(MessageName, u32)> {
        let flight = self.flight(completion.token)?;
        self.keep(completion, flight);
        let message = (completion.token as usize).checked_sub(self.listed.len())?;
        self.flights[message] = None;
        (completion.end() == FlowEnd::Done).then_some((flight.name, message as u32))
    }

    fn keep(&mut self, completion: Completion, Flight { name, flow, ideal }: Flight) {
        self.listed_ended += usize::from(name.is_of_list());
        self.records.push(FlowRecord {
            completion,
            name,
            src: flow.src,
            dst: flow.dst,
            src_port: flow.src_port,
            dst_port: flow.dst_port,
            priority: flow.priority,
            ideal,
            ns3_ideal_ns: self.maker.ns3_ideal(flow.src, flow.dst, flow.bytes),
        });
    }

    /// Begins the flow of a message.
    fn begin<M: Models, O: Observer>(
        &mut self,
        now: SimTime,
        message: &Message,
        kernel: &mut Kernel<'_, M, O>,
    ) -> Result<(), Error> {
        let &Message { name, id, src, dst, bytes, src_port } = message;
        let token = self.listed.len() as u64 + id as u64;
        let start = now + self.lateness(name);
        let flow = self.maker.complete(FlowSpec { src_port, token, ..FlowSpec::new(src, dst, bytes, start) });
        kernel.add_flow(&flow)?;
        let ideal = match self.known_ideals.entry((src, dst, src_port, bytes)) {
            Entry::Occupied(known) => *known.get(),
            Entry::Vacant(unknown) => *unknown.insert(ideal_fct(kernel, &flow)?),
        };
        let slot = id as usize;
        if self.flights.len() <= slot {
            self.flights.resize(slot + 1, None);
        }
        self.flights[slot] = Some(Flight { name, flow, ideal });
        self.begun += 1;
        Ok(())
    }

    /// How late a flow of a job starts in a perturbed run.
    fn lateness(&self, name: MessageName) -> Span {
        let Some(seed) = self.scenario.perturbation else { return Span::ZERO };
        let hash = ConfigHash::new().with(seed).with(name.0 as u64).with((name.0 >> 64) as u64);
        // The high bits of this hash are the good ones.
        Span::from_ns((hash.finish() >> 32) % 3)
    }
}

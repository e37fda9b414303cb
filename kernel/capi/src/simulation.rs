//! The kernels of all profiles behind one type.

use crate::config::{Ecmp, Spray};
use crate::constants::WhStep;
use crate::structs::{WhMemoised, WhPortStats, WhSkipped, WhTotals};
use wormhole_kernel::kernel::Step;
use wormhole_kernel::{Kernel, PortId};
use wormhole_models::profile::{Ns3, Ps};

/// A kernel. Which one is asked once a call; within the call everything is monomorphic.
pub(crate) enum Simulation {
    Ps(Kernel<'static, Ps<'static, Ecmp<'static>>>),
    Spray(Kernel<'static, Ps<'static, Spray<'static>>>),
    Ns3(Kernel<'static, Ns3<'static, Ecmp<'static>>>),
}

/// Evaluates an expression with the kernel of a simulation.
macro_rules! each {
    ($simulation:expr, $kernel:ident => $work:expr) => {
        match $simulation {
            $crate::simulation::Simulation::Ps($kernel) => $work,
            $crate::simulation::Simulation::Spray($kernel) => $work,
            $crate::simulation::Simulation::Ns3($kernel) => $work,
        }
    };
}
pub(crate) use each;

/// A kernel may go from thread to thread.
const _: fn() = || {
    fn is_send<T: Send>() {}
    is_send::<Simulation>();
};

/// The number of a step.
pub(crate) fn number(step: Step) -> u32 {
    let step = match step {
        Step::Reached => WhStep::Reached,
        Step::Idle => WhStep::Idle,
        Step::OutputFull => WhStep::OutputFull,
        Step::Completed => WhStep::Completed,
        Step::Budget => WhStep::Budget,
        Step::Stalled => WhStep::Stalled,
    };
    step as u32
}

impl Simulation {
    /// Counters of the fabric.
    pub(crate) fn totals(&self) -> WhTotals {
        each!(self, kernel => {
            let totals = kernel.totals();
            WhTotals {
                struct_size: 0,
                reserved: 0,
                events: totals.events,
                packet_hops: totals.packet_hops,
                drops: totals.drops,
                ecn_marks: totals.ecn_marks,
                pauses: totals.pauses,
                flows_finished: totals.flows_finished,
                flows_given_up: totals.flows_given_up,
                timeouts: totals.timeouts,
                queued_flows: kernel.queued_flows() as u64,
                active_flows: kernel.unfinished_flows() as u64,
                live_frames: kernel.live_packets() as u64,
            }
        })
    }

    /// What acceleration has done.
    pub(crate) fn skipped(&self) -> WhSkipped {
        let skipped = each!(self, kernel => kernel.skipped());
        WhSkipped {
            struct_size: 0,
            partitions_max: skipped.partitions_max,
            events: skipped.events,
            exact_ps: skipped.time_exact.0,
            bounded_ps: skipped.time_bounded.0,
            wakes: skipped.wakes,
            skip_backs: skipped.skip_backs,
            contested: skipped.contested,
        }
    }

    /// What memoisation has done, with so many records in memory.
    pub(crate) fn memoised(&self, records: usize) -> WhMemoised {
        let memoised = each!(self, kernel => kernel.memoised());
        WhMemoised {
            struct_size: 0,
            reserved: 0,
            hits: memoised.hits,
            misses: memoised.misses,
            refused: memoised.refused,
            checked: memoised.checked,
            mismatches: memoised.mismatches,
            skipped_ps: memoised.time.0,
            records: records as u64,
        }
    }

    /// Number of ports.
    pub(crate) fn port_count(&self) -> usize {
        each!(self, kernel => kernel.fabric().port_count())
    }

    /// What a port has counted, if it exists.
    pub(crate) fn port_stats(&self, port: u32) -> Option<WhPortStats> {
        let id = PortId(port);
        (id.index() < self.port_count()).then(|| {
            each!(self, kernel => {
                let (info, stats) = (kernel.fabric().port(id), kernel.port_stats(id));
                WhPortStats {
                    struct_size: 0,
                    node: info.node.0,
                    neighbour: kernel.fabric().neighbour(id).0,
                    link: info.link.0,
                    frames: stats.frames,
                    bytes: stats.bytes,
                    max_queue_bytes: stats.max_queue,
                    marks: stats.marks,
                    pauses: stats.pauses,
                    drops: stats.drops,
                    queue_byte_ns: stats.queue_byte_ns,
                    skipped_ps: stats.skipped.0,
                }
            })
        })
    }
}

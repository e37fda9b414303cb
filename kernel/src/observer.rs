//! Looking on. Every method has an empty default, `()` observes nothing and costs nothing. Pairs, slices and options
//! compose.

use crate::accel::SkippedBy;
use crate::flow::Completion;
use crate::ids::{FlowId, PartitionId, PortId, QpId};
use crate::packet::Packet;
use crate::router::RouteKey;
use crate::units::SimTime;

macro_rules! observer {
    ($($(#[$doc:meta])* fn $name:ident(&mut self $(, $arg:ident: $ty:ty)*);)*) => {
        /// Receives what happens, as it happens. Must not be relied on for results: those are polled.
        pub trait Observer {
            $($(#[$doc])* #[inline(always)] fn $name(&mut self $(, $arg: $ty)*) { $(let _ = $arg;)* })*
        }

        // Forwarders come from this one list: a default method that is not forwarded would be lost in silence.
        impl<O: Observer + ?Sized> Observer for &mut O {
            $(#[inline(always)] fn $name(&mut self $(, $arg: $ty)*) { (**self).$name($($arg),*) })*
        }

        impl<O: Observer> Observer for Option<O> {
            $(#[inline(always)] fn $name(&mut self $(, $arg: $ty)*) {
                if let Some(observer) = self {
                    observer.$name($($arg),*);
                }
            })*
        }

        impl<O: Observer> Observer for [O] {
            $(#[inline(always)] fn $name(&mut self $(, $arg: $ty)*) {
                self.iter_mut().for_each(|observer| observer.$name($($arg),*));
            })*
        }

        impl<A: Observer, B: Observer> Observer for (A, B) {
            $(#[inline(always)] fn $name(&mut self $(, $arg: $ty)*) {
                self.0.$name($($arg),*);
                self.1.$name($($arg),*)
            })*
        }
    };
}

observer! {
    /// A flow's queue pair has opened.
    fn flow_started(&mut self, time: SimTime, flow: FlowId);
    /// A queue pair has opened for the flow that has just started; `data` is what routers see of its packets. The id
    /// may have been that of another one, whose last frames can still be under way.
    fn queue_pair_opened(&mut self, time: SimTime, qp: QpId, data: &RouteKey);
    /// A flow has ended; `record` is what `poll_completion` will give.
    fn flow_finished(&mut self, time: SimTime, record: &Completion);
    /// `port` begins to send `frame`.
    fn transmit(&mut self, time: SimTime, port: PortId, frame: &Packet);
    /// `frame` has arrived at `port`.
    fn receive(&mut self, time: SimTime, port: PortId, frame: &Packet);
    /// `frame` is lost at `port`: no buffer, a lossy or dead link, or no route.
    fn dropped(&mut self, time: SimTime, port: PortId, frame: &Packet);
    /// A PFC frame has arrived at `port`: `priority` is paused or goes on.
    fn pfc(&mut self, time: SimTime, port: PortId, priority: u8, pause: bool);
    /// A partition was not simulated from `from` to `to`, when it woke. Stretches of one partition do not overlap. An
    /// id that has become free is given to another partition.
    fn skipped(&mut self, from: SimTime, to: SimTime, partition: PartitionId, by: SkippedBy);
}

impl Observer for () {}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::NodeId;

    #[derive(Default)]
    struct Calls([u32; 8]);

    impl Observer for Calls {
        fn flow_started(&mut self, _: SimTime, _: FlowId) {
            self.0[0] += 1;
        }
        fn flow_finished(&mut self, _: SimTime, _: &Completion) {
            self.0[1] += 1;
        }
        fn transmit(&mut self, _: SimTime, _: PortId, _: &Packet) {
            self.0[2] += 1;
        }
        fn receive(&mut self, _: SimTime, _: PortId, _: &Packet) {
            self.0[3] += 1;
        }
        fn dropped(&mut self, _: SimTime, _: PortId, _: &Packet) {
            self.0[4] += 1;
        }
        fn pfc(&mut self, _: SimTime, _: PortId, _: u8, _: bool) {
            self.0[5] += 1;
        }
        fn skipped(&mut self, _: SimTime, _: SimTime, _: PartitionId, _: SkippedBy) {
            self.0[6] += 1;
        }
        fn queue_pair_opened(&mut self, _: SimTime, _: QpId, _: &RouteKey) {
            self.0[7] += 1;
        }
    }

    fn call_all(mut observer: impl Observer) {
        let (time, port, frame) = (SimTime::ZERO, PortId(0), Packet::default());
        observer.flow_started(time, FlowId(0));
        let (src, dst) = (NodeId(0), NodeId(1));
        observer.queue_pair_opened(time, QpId(0), &RouteKey { src, dst, src_port: 0, dst_port: 0, packet: 0 });
        observer.flow_finished(time, &Completion::default());
        observer.transmit(time, port, &frame);
        observer.receive(time, port, &frame);
        observer.dropped(time, port, &frame);
        observer.pfc(time, port, 3, true);
        observer.skipped(time, time, PartitionId(0), SkippedBy::Exact);
    }

    #[test]
    fn every_call_arrives_through_every_wrapper() {
        let mut seen = (Calls::default(), Calls::default());
        call_all(&mut &mut seen);
        let dynamic: &mut dyn Observer = &mut seen.0;
        call_all(dynamic);
        call_all(Some(&mut seen.0));
        call_all(None::<Calls>);
        call_all(&mut core::slice::from_mut(&mut seen.0)[..]);
        assert_eq!((seen.0.0, seen.1.0), ([4; 8], [1; 8]));
    }
}

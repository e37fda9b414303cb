//! ECN marking and random loss: the places where chance enters.

use crate::fabric::PortInfo;
use crate::ids::PortId;
use crate::model::ModelId;
use bytemuck::Pod;

/// Decides which frames a switch marks with ECN.
///
/// Who depends on it: the switch, once per frame that leaves. Chance MUST come from the state handed in or from
/// `self`, never from outside. Models that keep a sequence in `self` (the global one of profile `ns3`) depend
/// on the order of events in the whole fabric; those that keep it per port do not.
pub trait Marker {
    /// Per egress port: thresholds, and the position in the port's random sequence.
    type Port: Pod;

    /// Part of every memo key: all but a seed, because what chance had a hand in is not memoised.
    fn id(&self) -> ModelId;

    /// State of a port.
    fn port(&self, port: PortId, info: &PortInfo) -> Self::Port;

    /// Whether a frame that leaves `queue_bytes` of its priority behind is marked.
    fn marks(&mut self, port: &mut Self::Port, queue_bytes: u64) -> bool;

    /// Where a port is in its random sequence: it moves whenever chance has been asked. What chance had a hand in is
    /// not memoised.
    fn position(&self, port: &Self::Port) -> u64;

    /// Puts a port there.
    fn set_position(&self, port: &mut Self::Port, position: u64);

    /// A PFC frame has been built (profile `ns3`: that takes a number from the same sequence).
    fn pfc_built(&mut self) {}
}

/// Decides which frames a lossy link loses.
///
/// Who depends on it: the receiving end of links whose loss probability is not 0.
pub trait LossModel {
    /// Per link: shared by its two directions.
    type Link: Pod;

    /// Name, version and configuration. Not part of memo keys: what crosses a lossy link is not memoised.
    fn id(&self) -> ModelId;

    /// State of a link.
    fn link(&self, link: crate::ids::LinkId) -> Self::Link;

    /// Whether a frame that has arrived over the link is lost. `loss` is a fraction of 2^64.
    fn loses(&self, state: &mut Self::Link, loss: u64) -> bool;
}

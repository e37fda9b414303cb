//! The shared buffer of a switch: admission, PFC, and the model that decides them.

use crate::fabric::PortInfo;
use crate::model::ModelId;
use crate::units::BitRate;
use bytemuck::Pod;

/// A buffer-management policy. The kernel owns the state, the policy the arithmetic.
///
/// Who depends on it: the switch, about four times a packet-hop, so calls are monomorphised. For every frame the
/// kernel calls [`admit`](Self::admit), then (if admitted) [`pauses`](Self::pauses), and when the frame leaves
/// [`release`](Self::release), then [`resumes`](Self::resumes). `port` and `queue` are those of the **ingress**.
pub trait BufferManager {
    /// Per switch.
    type Switch: Pod;
    /// Per port: thresholds that depend on the port's link.
    type Port: Pod;
    /// Per ingress port and priority.
    type Queue: Pod;

    /// Name, version and configuration: part of every memo key.
    fn id(&self) -> ModelId;

    /// State of an empty switch with these ports.
    fn switch(&self, ports: &mut dyn Iterator<Item = PortInfo>) -> Self::Switch;

    /// Thresholds of a port, in a fabric whose NICs run at `nic_rate`.
    fn port(&self, info: &PortInfo, nic_rate: BitRate) -> Self::Port;

    /// Takes `bytes` into the buffer, or refuses them (the frame is dropped).
    fn admit(&self, switch: &mut Self::Switch, port: &Self::Port, queue: &mut Self::Queue, bytes: u32) -> bool;

    /// Whether the sender at the ingress must be paused now.
    fn pauses(&self, switch: &Self::Switch, port: &Self::Port, queue: &Self::Queue) -> bool;

    /// Gives `bytes` back.
    fn release(&self, switch: &mut Self::Switch, port: &Self::Port, queue: &mut Self::Queue, bytes: u32);

    /// Whether a paused sender at the ingress may go on now.
    fn resumes(&self, switch: &Self::Switch, port: &Self::Port, queue: &Self::Queue) -> bool;

    /// Whether no decision about any queue could depend on what others hold, even if `more` bytes more were in the
    /// switch than there are: then flows that share the switch but no port do not feel each other.
    fn is_calm(&self, switch: &Self::Switch, more: u64) -> bool;

    /// Lets a queue hold what `to` does, at a calm moment: the switch's own count follows.
    fn replace(&self, switch: &mut Self::Switch, queue: &mut Self::Queue, to: Self::Queue);

    /// Bytes held in the part of the buffer that ports share.
    fn shared_bytes(&self, switch: &Self::Switch) -> u64;

    /// Bytes held for one ingress port and priority.
    fn queue_bytes(&self, queue: &Self::Queue) -> u64;
}

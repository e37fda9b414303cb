//! The least FCT a flow's path allows: alone, at line rate, without window.

use wormhole_kernel::cca::CongestionControl;
use wormhole_kernel::{Error, FlowSpec, Kernel, Models, Observer, Span, Transport};

/// Time from the start of the flow to the acknowledgement of its last byte, in an empty fabric.
///
/// Packets follow each other store and forward; all but the last are full. The last bit's way is the slowest of those
/// that go with the first packet up to some link, then wait there for all others, then go on with the last packet.
///
/// # Errors
/// As [`Kernel::data_path`].
pub fn ideal_fct<M: Models, O: Observer>(kernel: &mut Kernel<'_, M, O>, flow: &FlowSpec) -> Result<Span, Error> {
    let mtu = kernel.transport().mtu as u64;
    let header = kernel.cca(flow.cca).map_or(0, |cca| cca.needs().header_bytes);
    let packets = flow.bytes.div_ceil(mtu);
    let last = Transport::data_bytes((flow.bytes - (packets - 1) * mtu) as u32, header);
    let full = Transport::data_bytes(mtu as u32, header);
    let out = kernel.data_path(flow)?;
    let back = kernel.ack_path(flow)?;
    let time = |bytes: u32| -> Vec<Span> { out.iter().map(|&p| kernel.serialise(p, bytes)).collect() };
    let (full, last) = (time(full), time(last));
    let delays = total(out.iter().chain(&back).map(|&p| kernel.fabric().port(p).delay));
    let ack = total(back.iter().map(|&p| kernel.serialise(p, Transport::ack_bytes(header))));
    let waiting = |j: usize| {
        let others = Span((packets - 1).saturating_mul(full[j].0));
        others + total(full[..j].iter().chain(&last[j..]).copied())
    };
    let several = || (0..full.len()).map(waiting).max().unwrap_or(Span::ZERO);
    let data = if packets == 1 { total(last.iter().copied()) } else { several() };
    Ok(data + delays + ack)
}

/// A sum that is no longer than simulated time.
fn total(spans: impl Iterator<Item = Span>) -> Span {
    spans.fold(Span::ZERO, |sum, span| sum + span)
}

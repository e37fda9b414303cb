//! Proof by linking that kernel, models (without `alloc`) and memo-fmt need neither `std` nor an allocator.
//!
//! On a host `std` is always there, so building a `no_std` crate proves little: a dependency may still pull it in.
//! A static library with its own panic handler and without an allocator cannot hide that. What a failure means:
//!
//! * `found duplicate lang item panic_impl ... which X depends on`: the dependency X pulls in `std`. Turn off its
//!   default features, or do without it.
//! * `no global memory allocator found`: something uses `alloc` without being asked to by the feature `alloc`.
//! * `unwinding panics are not supported without std`: this crate was built without `panic = "abort"`.
//! * A type or function is not found: it needs a feature that only other members of the workspace turn on.
//! * `.ci/run` finds undefined symbols: something calls the C library. Only `memcpy` and its like are left to it, as
//!   on every hosted target; on a bare one they come with `core`.
//! * The program that `.ci/run` links ends with another code than 0: the code is the number of the step in
//!   [`wormhole_no_std_proof`] that gave a wrong result.

#![no_std]

use core::panic::PanicInfo;
use wormhole_kernel::event::{Clock, TimerId};
use wormhole_kernel::memo::MemoStore;
use wormhole_kernel::memory::Carver;
use wormhole_kernel::queue::{EventQueue, Heap4, Wheel};
use wormhole_kernel::scheduler::EgressScheduler;
use wormhole_kernel::timing::LinkTiming;
use wormhole_kernel::units::{BitRate, SimTime, Span};
use wormhole_kernel::{FlowSpec, Kernel, Limits, LinkSpec, NodeId, NodeKind};
use wormhole_memo_fmt::{FORMAT_VERSION, HEADER_MAX, Header, Reader, Store, read_header, write_header, write_record};
use wormhole_models::cca::{AnyCca, Hpcc, HpccConfig};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Route, TableRouter};
use wormhole_models::scheduler::ControlThenRoundRobin;
use wormhole_models::timing::Ns3Timing;

/// Enough for either queue with [`TIMERS`] timers; [`queue_keeps_order`] says so if it no longer is.
const WORDS: usize = 20_000;
const TIMERS: usize = 64;
/// Enough for a store with one small record.
const STORE_WORDS: usize = 64;

#[panic_handler]
fn panic(_: &PanicInfo<'_>) -> ! {
    loop {}
}

/// Runs real code of every crate: generic code exists only where it is used. Gives 0, or the step that failed.
#[unsafe(no_mangle)]
pub extern "C" fn wormhole_no_std_proof() -> i32 {
    let steps = [
        queue_keeps_order::<Heap4<'_>>(&mut [0; WORDS]),
        queue_keeps_order::<Wheel<'_>>(&mut [0; WORDS]),
        priorities_take_turns(),
        // 80 ns, of which ns-3 loses one by rounding down.
        Ns3Timing.serialise(core::hint::black_box(1_000), BitRate(100_000_000_000)) == Span::from_ns(79),
        memo_header_is_read_back(),
        flow_completes(&mut [0; WORDS]),
        memo_record_is_found(&mut [0; STORE_WORDS]) == Some(true),
    ];
    steps.iter().position(|passed| !passed).map_or(0, |step| step as i32 + 1)
}

/// Timers scheduled back to front come out front to back.
fn queue_keeps_order<'a, Q: EventQueue<'a>>(memory: &'a mut [u64]) -> bool {
    let Ok(mut queue) = Q::carve(&mut Carver::new(memory), TIMERS, Span::from_ns(1_000)) else {
        return false;
    };
    let mut clock = Clock::default();
    for timer in (0..TIMERS as u32).rev() {
        queue.schedule(TimerId(timer), clock.issue(Span::from_ns(timer as u64 * timer as u64)));
    }
    for timer in 0..TIMERS as u32 {
        match queue.pop() {
            Some((key, popped)) if popped == TimerId(timer) => clock.advance(key),
            _ => return false,
        }
    }
    queue.is_empty() && clock.now() == SimTime::from_ns(63 * 63)
}

/// Of two ready priorities each is served in turn.
fn priorities_take_turns() -> bool {
    let (mut last, ready) = (0, core::hint::black_box(0b0000_1100));
    [2, 3, 2, 3].iter().all(|&priority| ControlThenRoundRobin.select(&mut last, ready) == priority)
}

fn memo_header() -> Header {
    let models = core::hint::black_box(0x0123_4567_89ab_cdef);
    Header { format_version: FORMAT_VERSION, kernel_version: 1, models }
}

/// What was written is read back; damage is found.
fn memo_header_is_read_back() -> bool {
    let header = memo_header();
    let mut bytes = [0; HEADER_MAX];
    let Ok(length) = write_header(&header, &mut bytes) else {
        return false;
    };
    let whole = read_header(&bytes).is_ok_and(|(read, _)| read == header);
    bytes[length / 2] ^= 1;
    whole && read_header(&bytes).is_err()
}

/// A whole simulation: HPCC from host 0 to host 1 over switch 2, all memory on the stack.
fn flow_completes(memory: &mut [u64]) -> bool {
    let nodes = [NodeKind::Host, NodeKind::Host, NodeKind::Switch];
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let links = [0, 1].map(|host| LinkSpec { a: NodeId(host), b: NodeId(2), rate, delay, loss: 0 });
    let route = |node, dst, port| Route { node: NodeId(node), dst: NodeId(dst), port };
    let rows = [route(0, 1, 0), route(1, 0, 0), route(2, 0, 0), route(2, 1, 1)];
    let Some(router) = TableRouter::new(&rows) else { return false };
    let ccas = [AnyCca::Hpcc(Hpcc::new(HpccConfig::default()))];
    let models = Ps::models(&ccas, router, 1);
    let limits = Limits { queued_flows: 1, active_flows: 1, packets: 64, outputs: 1, inputs: 1, snapshot_words: 0 };
    let Ok(mut kernel) = Kernel::new(memory, &nodes, &links, models, &limits, ()) else { return false };
    let flow = FlowSpec::new(NodeId(0), NodeId(1), 20_000, SimTime::ZERO);
    let run = kernel.add_flow(&flow).is_ok() && kernel.run_until(SimTime::MAX).is_ok();
    run && kernel.poll_completion().is_some_and(|done| done.bytes == 20_000 && done.fct > Span::from_us(4))
}

/// A record written to a file is read, loaded into a store and found by its key, and by no other.
fn memo_record_is_found(memory: &mut [u64]) -> Option<bool> {
    let (key, value) = (core::hint::black_box([1, 0, 0, 0, u64::MAX]), [3 << 32 | 4, 1 << 62]);
    let mut file = [0; 128];
    let mut length = write_header(&memo_header(), &mut file).ok()?;
    length += write_record(&key, &value, &mut file[length..]).ok()?;
    let mut store = Store::new(memory);
    for record in Reader::new(&file[..length]).ok()? {
        if !store.load(&record.ok()?) {
            return None;
        }
    }
    let found = store.find(&key) == Some(&value[..]);
    Some(found && store.find(&key[1..]).is_none())
}

//! Plugins of each kind, written in Rust, in a kernel: an interpreter that sees undefined behaviour runs this, too.
//!
//! Their functions read all they are handed and write behind their states.

use super::abi::{ABI_VERSION, Ack, Buffers, BuffersFunctions, Cca, CcaFunctions, Flow, Head, MAGIC, Marker};
use super::abi::{MarkerFunctions, Origin, Out, Port};
use super::{Call, Descriptor, Fault, Foreign, ForeignBuffers, ForeignCca, ForeignMarker, Unfit, Wrong};
use crate::any::{AnyBuffers, AnyMarker};
use crate::cca::{AnyCca, FixedWindow, FixedWindowConfig};
use crate::profile::{Ps, with_switches};
use crate::router::{EcmpHash, EcmpIn, SlicePaths};
use core::ffi::{CStr, c_char, c_void};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::memory::Carver;
use wormhole_kernel::{BitRate, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, NodeId, NodeKind, SimTime, Span};

const STATE: u32 = 12;
const CONFIG: u32 = 8;

type Router = EcmpIn<SlicePaths<'static>>;
type Family = Ps<'static, Router, AnyBuffers, AnyMarker<'static>>;

/// Reads a value that a pointer leads to, and adds one to the first word of a state, in bytes: it may lie anywhere.
///
/// # Safety
/// The pointer leads to one, and `state` to four bytes.
unsafe fn look<T: Copy>(seen: *const T, state: *mut c_void) -> T {
    // SAFETY: the caller's promise.
    unsafe {
        let count = state.cast::<u32>().read_unaligned();
        state.cast::<u32>().write_unaligned(count + 1);
        seen.read()
    }
}

unsafe extern "C" fn defaults(config: *mut c_void) {
    // SAFETY: as many bytes as `config_size` says.
    unsafe { config.cast::<[u8; CONFIG as usize]>().write([7; CONFIG as usize]) };
}
unsafe extern "C" fn configure(config: *mut c_void, key: *const c_char, value: i64) -> i32 {
    // SAFETY: a key that ends, and the parameters.
    unsafe {
        if CStr::from_ptr(key) != c"key" {
            return super::abi::UNKNOWN_KEY;
        }
        config.cast::<i64>().write_unaligned(value);
    }
    super::abi::OK
}
unsafe extern "C" fn start(config: *const c_void, state: *mut c_void, flow: *const Flow, _: u64, out: *mut Out) {
    // SAFETY: what the header says they point to.
    unsafe {
        assert_eq!(look(config.cast::<[u8; CONFIG as usize]>(), state), 5i64.to_ne_bytes());
        (*out).window_bytes = look(flow, state).bdp_bytes;
    }
}
unsafe extern "C" fn on_ack(_: *const c_void, state: *mut c_void, ack: *const Ack, out: *mut Out) {
    // SAFETY: the same; as many hops as the acknowledgement says.
    unsafe {
        let ack = look(ack, state);
        for hop in 0..ack.hop_count as usize {
            assert!(look(ack.hops.add(hop), state).rate_bps > 0);
        }
        (*out).timers_set = 1;
        (*out).timer_ps[0] = 10_000;
    }
}
unsafe extern "C" fn on_timer(_: *const c_void, state: *mut c_void, _: u32, _: u64, out: *mut Out) {
    // SAFETY: the same; two words behind a state are there, though not the plugin's.
    unsafe {
        state.cast::<u8>().add(STATE as usize + 1).write(0);
        (*out).window_bytes = look(out, state).window_bytes.max(1);
    }
}
unsafe extern "C" fn relative(_: *const c_void, state: *mut c_void, origin: *const Origin) -> i32 {
    // SAFETY: the same.
    unsafe {
        let origin = look(origin, state);
        for hop in 0..origin.hop_count as usize {
            look(origin.hops.add(hop), state);
        }
    }
    0
}
unsafe extern "C" fn absolute(_: *const c_void, _: *mut c_void, _: *const Origin) {}
unsafe extern "C" fn start_port(_: *const c_void, state: *mut c_void, port: *const Port) {
    // SAFETY: the same.
    assert!(unsafe { look(port, state) }.rate_bps > 0);
}
unsafe extern "C" fn marks(_: *const c_void, state: *mut c_void, _: u64, random: u64, drew: *mut u32) -> i32 {
    // SAFETY: the same.
    unsafe { drew.write(look(drew, state) + 1) };
    (random & 1) as i32
}
unsafe extern "C" fn admit(
    _: *const c_void,
    switch: *mut c_void,
    port: *const c_void,
    queue: *mut c_void,
    _: u32,
) -> i32 {
    // SAFETY: the same.
    unsafe {
        look(port.cast::<u32>(), queue);
        look(queue.cast::<u32>(), switch);
    }
    1
}
unsafe extern "C" fn release(c: *const c_void, switch: *mut c_void, port: *const c_void, q: *mut c_void, bytes: u32) {
    // SAFETY: the same states.
    unsafe { admit(c, switch, port, q, bytes) };
}
unsafe extern "C" fn question(_: *const c_void, s: *const c_void, p: *const c_void, q: *const c_void) -> i32 {
    // SAFETY: the same, to be read only.
    let _ = unsafe { [s, p, q].map(|state| state.cast::<u32>().read_unaligned()) };
    // Neither yes nor no.
    2
}

const fn head(kind: u32, whole: usize) -> Head {
    Head {
        magic: MAGIC,
        abi_version: ABI_VERSION,
        struct_size: whole as u32,
        kind,
        model_version: 1,
        name: c"of-a-test".as_ptr(),
        config_hash: 0,
        config_size: CONFIG,
        config_align: 4,
        state_size: STATE,
        state_align: 4,
        defaults: Some(defaults),
        configure: Some(configure),
    }
}

const CCA: Cca = Cca {
    plugin: head(1, size_of::<Cca>()),
    functions: CcaFunctions {
        needs_telemetry: 1,
        header_bytes: 0,
        start: Some(start),
        on_ack: Some(on_ack),
        on_timer: Some(on_timer),
        on_timeout: None,
        relative: Some(relative),
        absolute: Some(absolute),
    },
};

const MARKER: Marker = Marker {
    plugin: head(2, size_of::<Marker>()),
    functions: MarkerFunctions { start: Some(start_port), marks: Some(marks) },
};

const BUFFERS: Buffers = Buffers {
    plugin: head(3, size_of::<Buffers>()),
    functions: BuffersFunctions {
        port_state_size: 4,
        port_state_align: 4,
        queue_state_size: 8,
        queue_state_align: 4,
        start_port: Some(start_port),
        add_port: Some(start_port),
        admit: Some(admit),
        pauses: Some(question),
        release: Some(release),
        resumes: Some(question),
        is_calm: None,
        replace: None,
    },
};

/// The plugin of a descriptor of this file.
fn plugin<T>(descriptor: &'static T) -> &'static Foreign {
    // SAFETY: a descriptor that stays.
    let descriptor = unsafe { Descriptor::read((&raw const *descriptor).cast()) }.expect("a descriptor");
    let config = alloc::vec![0; Foreign::config_words(&descriptor.info)].leak();
    let plugin = Foreign::new(descriptor, &[(c"key", 5)], config, 1).expect("a plugin");
    alloc::boxed::Box::leak(alloc::boxed::Box::new(plugin))
}

/// Five packets across a switch: their flow ends. Gives the plugin's first fault.
fn fault(plugin: &'static Foreign) -> Option<Fault> {
    let usual = AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::BdpPercent(100)));
    let cca = ForeignCca::new(plugin).map_or(usual, AnyCca::ForeignCca);
    let nodes = [NodeKind::Host, NodeKind::Host, NodeKind::Switch];
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let links = [0, 1].map(|host| LinkSpec { a: NodeId(host), b: NodeId(2), rate, delay, loss: 0 });
    let size = FabricSize::of(&nodes, &links);
    let carver = &mut Carver::new(alloc::vec![0; Router::words(size, 1)].leak());
    let router = Router::carve(carver, EcmpHash::Salted(1), size, 1).expect("room for it");
    let models = Ps::models(alloc::vec![cca].leak(), router, 1);
    let buffers = ForeignBuffers::new(plugin).map(AnyBuffers::ForeignBuffers);
    let marker = ForeignMarker::new(plugin, 1).map(AnyMarker::ForeignMarker);
    let buffers = buffers.unwrap_or(AnyBuffers::DynamicThreshold(models.buffers));
    let marker = marker.unwrap_or_else(|| AnyMarker::RedMarker(models.marker.clone()));
    let models = with_switches(models, buffers, marker);
    let limits =
        Limits { queued_flows: 1, active_flows: 1, packets: 16, outputs: 1, inputs: 1, snapshot_words: 1 << 10 };
    let mut memory = alloc::vec![0; Kernel::<Family>::words(size, &limits, &models)];
    let mut kernel = Kernel::<Family>::new(&mut memory, &nodes, &links, models, &limits, ()).expect("a kernel");
    kernel.accelerate(Acceleration { tier: Tier::Exact, detector: Detector::CYCLE }).expect("room for it");
    kernel.add_flow(&FlowSpec::new(NodeId(0), NodeId(1), 5_000, SimTime::ZERO)).expect("a flow");
    kernel.run_bounded(SimTime::MAX, 1_000).expect("room for all packets");
    assert_eq!(kernel.poll_completion().map(|done| done.bytes), Some(5_000));
    plugin.fault()
}

#[test]
fn a_congestion_control_that_writes_behind_its_state_is_found_out() {
    let fault = fault(plugin(&CCA)).expect("a fault");
    assert_eq!((fault.call, fault.wrong, fault.value), (Call::OnTimer, Wrong::Overrun, u64::from(STATE) + 1));
}

#[test]
fn a_marker_that_keeps_to_the_rules_has_no_fault() {
    assert_eq!(fault(plugin(&MARKER)), None);
}

#[test]
fn buffers_that_say_neither_yes_nor_no_are_found_out() {
    let fault = fault(plugin(&BUFFERS)).expect("a fault");
    assert_eq!((fault.call, fault.wrong, fault.value), (Call::Pauses, Wrong::Verdict, 2));
}

/// Only what a descriptor has is read of it: this one ends in the midst of its functions, and so does its memory.
#[test]
fn nothing_is_read_behind_a_descriptor() {
    let size = core::mem::offset_of!(Cca, functions.on_timer);
    let whole = Cca { plugin: head(1, size), ..CCA };
    let mut short = alloc::vec![0u64; size / 8];
    // SAFETY: a part of a descriptor, into memory of that size.
    unsafe { short.as_mut_ptr().cast::<u8>().copy_from_nonoverlapping((&raw const whole).cast(), size) };
    // SAFETY: it says how long it is.
    assert!(unsafe { Descriptor::read(short.as_ptr().cast()) }.is_ok());
    short.truncate(5);
    short.shrink_to_fit();
    short[1] = short[1] & 0xffff_ffff | 40 << 32;
    // SAFETY: the same.
    let unfit = unsafe { Descriptor::read(short.as_ptr().cast()) }.expect_err("too short");
    assert!(matches!(unfit, Unfit::StructSize { found: 40, .. }), "{unfit}");
    // SAFETY: eight bytes of no descriptor; an odd address; none at all.
    let unfit = [&0u64 as *const u64, core::ptr::without_provenance(9), core::ptr::null()]
        .map(|head| unsafe { Descriptor::read(head.cast()) }.expect_err("none"));
    assert_eq!(unfit, [Unfit::Magic(0), Unfit::Address(9), Unfit::Null]);
}

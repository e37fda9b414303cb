//! Plugins: any descriptor, and functions that return anything and write behind their states. Whatever they do, a run
//! goes on to its end, no flow ends before its time, and what is left in memory is sound.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::cell::RefCell;
use std::ffi::{CString, c_char, c_void};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::{
    BitRate, Completion, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, ModelSet, NodeId, NodeKind, SimTime, Span,
};
use wormhole_models::any::{AnyBuffers, AnyMarker};
use wormhole_models::cca::{AnyCca, FixedWindow, FixedWindowConfig};
use wormhole_models::plugin::abi::{self, ABI_VERSION, BuffersFunctions, CcaFunctions, Head, MAGIC, MarkerFunctions};
use wormhole_models::plugin::{Descriptor, Foreign, ForeignBuffers, ForeignCca, ForeignMarker};
use wormhole_models::profile::{Ps, with_switches};
use wormhole_models::router::{Ecmp, EcmpHash};

type Family = Ps<'static, Ecmp, AnyBuffers, AnyMarker<'static>>;

const EVENTS: u64 = 4_000;
/// Bytes that every state has room for: those it declares, and two words that nobody may write to.
const GUARDED: usize = 16;

thread_local! {
    /// What functions return and write.
    static TAPE: RefCell<Tape> = RefCell::default();
}

/// Bytes to be used up, over and over, and how large states are.
#[derive(Default)]
struct Tape {
    bytes: Vec<u8>,
    next: usize,
    sizes: Sizes,
}

/// Bytes that each state is declared to have.
#[derive(Clone, Copy, Default)]
struct Sizes {
    config: usize,
    state: usize,
    queue: usize,
    port: usize,
}

/// The next number.
fn any() -> u64 {
    TAPE.with_borrow_mut(|tape| {
        let mut word = [0; 8];
        for byte in &mut word {
            *byte = tape.bytes.get(tape.next).copied().unwrap_or_default();
            tape.next = (tape.next + 1) % tape.bytes.len().max(1);
        }
        // Small numbers, zeros and ones are met more often than by chance.
        u64::from_le_bytes(word) >> (word[0] % 64)
    })
}

fn sizes() -> Sizes {
    TAPE.with_borrow(|tape| tape.sizes)
}

/// Writes somewhere into a state, or into the two words behind it.
fn scribble(state: *mut c_void, size: usize) {
    let (at, value) = (any() as usize % (size + GUARDED), any() as u8);
    // SAFETY: so many bytes are there: the simulator leaves two words behind what is declared.
    unsafe { state.cast::<u8>().add(at).write(value) };
}

/// Reads all of what a pointer is said to lead to.
fn read<T>(pointer: *const T, count: usize) {
    for index in 0..count * size_of::<T>() {
        // SAFETY: the header promises so many bytes.
        std::hint::black_box(unsafe { pointer.cast::<u8>().add(index).read() });
    }
}

fn answer(out: *mut abi::Out) {
    read(out, 1);
    let timer_ps = [any(), any(), any()];
    let timers_set = if any().is_multiple_of(4) { any() as u32 } else { 0 };
    let changed = abi::Out { window_bytes: any(), rate_bps: any(), repace: any() as u32, timers_set, timer_ps };
    // SAFETY: the place for it.
    unsafe { out.write(changed) };
}

unsafe extern "C" fn defaults(config: *mut c_void) {
    if sizes().config > 0 {
        let at = any() as usize % sizes().config;
        // SAFETY: below the size of the parameters.
        unsafe { config.cast::<u8>().add(at).write(any() as u8) };
    }
}
unsafe extern "C" fn configure(config: *mut c_void, key: *const c_char, _: i64) -> i32 {
    read(key, 1);
    // SAFETY: the same memory.
    unsafe { defaults(config) };
    any() as i32 % 4
}
unsafe extern "C" fn start(
    config: *const c_void,
    state: *mut c_void,
    flow: *const abi::Flow,
    _: u64,
    out: *mut abi::Out,
) {
    read(config.cast::<u8>(), sizes().config);
    read(flow, 1);
    scribble(state, sizes().state);
    answer(out);
}
unsafe extern "C" fn on_ack(_: *const c_void, state: *mut c_void, ack: *const abi::Ack, out: *mut abi::Out) {
    // SAFETY: an acknowledgement, and as many hops as it says.
    let ack = unsafe { ack.read() };
    read(ack.hops, ack.hop_count as usize);
    scribble(state, sizes().state);
    answer(out);
}
unsafe extern "C" fn on_timer(_: *const c_void, state: *mut c_void, timer: u32, _: u64, out: *mut abi::Out) {
    assert!(timer < 3);
    scribble(state, sizes().state);
    answer(out);
}
unsafe extern "C" fn on_timeout(_: *const c_void, state: *mut c_void, _: u64, out: *mut abi::Out) {
    scribble(state, sizes().state);
    answer(out);
}
unsafe extern "C" fn relative(_: *const c_void, state: *mut c_void, origin: *const abi::Origin) -> i32 {
    // SAFETY: an origin, and as many hops as it says.
    let origin = unsafe { origin.read() };
    read(origin.hops, origin.hop_count as usize);
    scribble(state, sizes().state);
    any() as i32 % 3
}
unsafe extern "C" fn absolute(_: *const c_void, state: *mut c_void, _: *const abi::Origin) {
    scribble(state, sizes().state);
}
unsafe extern "C" fn start_marker(_: *const c_void, state: *mut c_void, port: *const abi::Port) {
    read(port, 1);
    scribble(state, sizes().state);
}
unsafe extern "C" fn marks(_: *const c_void, state: *mut c_void, _: u64, _: u64, drew: *mut u32) -> i32 {
    scribble(state, sizes().state);
    // SAFETY: the place for it.
    unsafe { drew.write(any() as u32) };
    any() as i32 % 3
}
unsafe extern "C" fn start_port(_: *const c_void, port: *mut c_void, _: *const abi::Port) {
    scribble(port, sizes().port);
}
unsafe extern "C" fn admit(
    _: *const c_void,
    switch: *mut c_void,
    port: *const c_void,
    queue: *mut c_void,
    _: u32,
) -> i32 {
    read(port.cast::<u8>(), sizes().port);
    scribble(switch, sizes().state);
    scribble(queue, sizes().queue);
    i32::from(!any().is_multiple_of(8)) + i32::from(any().is_multiple_of(64))
}
unsafe extern "C" fn release(
    config: *const c_void,
    switch: *mut c_void,
    port: *const c_void,
    queue: *mut c_void,
    bytes: u32,
) {
    // SAFETY: the same states.
    unsafe { admit(config, switch, port, queue, bytes) };
}
unsafe extern "C" fn question(
    _: *const c_void,
    switch: *const c_void,
    port: *const c_void,
    queue: *const c_void,
) -> i32 {
    read(switch.cast::<u8>(), sizes().state);
    read(port.cast::<u8>(), sizes().port);
    read(queue.cast::<u8>(), sizes().queue);
    any() as i32 % 3
}
unsafe extern "C" fn is_calm(_: *const c_void, switch: *const c_void, _: u64) -> i32 {
    read(switch.cast::<u8>(), sizes().state);
    any() as i32 % 3
}
unsafe extern "C" fn replace(_: *const c_void, switch: *mut c_void, _: *const c_void, _: *const c_void) {
    scribble(switch, sizes().state);
}

/// A function that may be missing.
fn maybe<F>(bytes: &mut Unstructured<'_>, function: F) -> Option<F> {
    bytes.ratio(15u8, 16u8).unwrap_or(true).then_some(function)
}

/// A number that is usually a good one.
fn usually(bytes: &mut Unstructured<'_>, good: u32) -> u32 {
    if bytes.ratio(1u8, 16u8).unwrap_or(false) { bytes.arbitrary().unwrap_or(good) } else { good }
}

fn size(bytes: &mut Unstructured<'_>, most: u32) -> u32 {
    let size = bytes.int_in_range(0..=most).unwrap_or(most);
    usually(bytes, size)
}

/// The head of a descriptor of so many bytes, with states of at most `most` bytes.
fn head(bytes: &mut Unstructured<'_>, kind: u32, whole: usize, most: u32, name: &CString) -> Head {
    let magic = if bytes.ratio(1u8, 64u8).unwrap_or(false) { 0 } else { MAGIC };
    // Longer than it is would be a lie about memory, which nobody can see through.
    let struct_size = usually(bytes, whole as u32).min(whole as u32);
    Head {
        magic,
        abi_version: usually(bytes, ABI_VERSION),
        struct_size,
        kind: usually(bytes, kind),
        model_version: 1,
        name: name.as_ptr(),
        config_hash: 0,
        config_size: size(bytes, 64),
        config_align: usually(bytes, 8),
        state_size: size(bytes, most),
        state_align: usually(bytes, 8),
        defaults: maybe(bytes, defaults as unsafe extern "C" fn(*mut c_void)),
        configure: maybe(bytes, configure as unsafe extern "C" fn(*mut c_void, *const c_char, i64) -> i32),
    }
}

/// A descriptor, and what it says of the sizes of states.
fn descriptor(bytes: &mut Unstructured<'_>, name: &CString) -> Option<(Descriptor, Sizes)> {
    let mut buffers = abi::Buffers {
        plugin: head(bytes, 3, size_of::<abi::Buffers>(), 64, name),
        functions: BuffersFunctions {
            port_state_size: size(bytes, 32),
            port_state_align: usually(bytes, 4),
            queue_state_size: size(bytes, 32),
            queue_state_align: usually(bytes, 8),
            start_port: maybe(bytes, start_port),
            add_port: maybe(bytes, start_marker),
            admit: maybe(bytes, admit),
            pauses: maybe(bytes, question),
            release: maybe(bytes, release),
            resumes: maybe(bytes, question),
            is_calm: maybe(bytes, is_calm),
            replace: maybe(bytes, replace),
        },
    };
    let mut cca = abi::Cca {
        plugin: head(bytes, 1, size_of::<abi::Cca>(), 128, name),
        functions: CcaFunctions {
            needs_telemetry: usually(bytes, 1),
            header_bytes: size(bytes, 256),
            start: maybe(bytes, start),
            on_ack: maybe(bytes, on_ack),
            on_timer: maybe(bytes, on_timer),
            on_timeout: maybe(bytes, on_timeout),
            relative: maybe(bytes, relative),
            absolute: maybe(bytes, absolute),
        },
    };
    let mut marker = abi::Marker {
        plugin: head(bytes, 2, size_of::<abi::Marker>(), 32, name),
        functions: MarkerFunctions { start: maybe(bytes, start_marker), marks: maybe(bytes, marks) },
    };
    // A kind that is not its own would have its functions called with the arguments of others.
    (cca.plugin.kind, marker.plugin.kind, buffers.plugin.kind) =
        (kind(cca.plugin.kind, 1), kind(marker.plugin.kind, 2), kind(buffers.plugin.kind, 3));
    let (head, queue, port): (*const Head, _, _) = match bytes.arbitrary::<u8>().unwrap_or_default() % 3 {
        0 => ((&raw const cca).cast(), 0, 0),
        1 => ((&raw const marker).cast(), 0, 0),
        _ => {
            let BuffersFunctions { queue_state_size, port_state_size, .. } = buffers.functions;
            ((&raw const buffers).cast(), queue_state_size, port_state_size)
        }
    };
    // SAFETY: a descriptor as long as it says at most; what is in it may be anything.
    let descriptor = unsafe { Descriptor::read(head) }.ok()?;
    let info = &descriptor.info;
    let [config, state, queue, port] = [info.config_size, info.state_size, queue, port].map(|size| size as usize);
    Some((descriptor, Sizes { config, state, queue, port }))
}

/// The kind itself, or one that there is not.
fn kind(found: u32, own: u32) -> u32 {
    if (1..=3).contains(&found) { own } else { found }
}

/// Three hosts on a switch, two of which send to the third.
fn run(models: ModelSet<'static, Family>) -> Vec<Completion> {
    let nodes = [NodeKind::Host, NodeKind::Host, NodeKind::Host, NodeKind::Switch];
    let (rate, delay) = (BitRate::from_gbps(100), Span::from_us(1));
    let links = [0, 1, 2].map(|host| LinkSpec { a: NodeId(host), b: NodeId(3), rate, delay, loss: 0 });
    let limits = Limits { packets: 256, outputs: 4, snapshot_words: 1 << 12, ..Limits::default() };
    let mut memory = vec![0; Kernel::<Family>::words(FabricSize::of(&nodes, &links), &limits, &models)];
    let mut kernel = Kernel::new(&mut memory, &nodes, &links, models, &limits, ()).expect("a kernel");
    kernel.accelerate(Acceleration { tier: Tier::Exact, detector: Detector::CYCLE }).expect("room for it");
    for src in [0, 1] {
        let flow = FlowSpec::new(NodeId(src), NodeId(2), 20_000, SimTime::ZERO);
        kernel.add_flow(&flow).expect("a flow");
    }
    // A capacity may be used up: packets of a byte each.
    let _ = kernel.run_bounded(SimTime::MAX, EVENTS);
    kernel.wake_all();
    std::iter::from_fn(|| kernel.poll_completion()).collect()
}

/// The models of a run with this plugin.
fn models(plugin: &'static Foreign, ccas: &'static mut [AnyCca; 1]) -> ModelSet<'static, Family> {
    if let Some(cca) = ForeignCca::new(plugin) {
        ccas[0] = AnyCca::ForeignCca(cca);
    }
    let usual = Ps::models(ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let buffers = ForeignBuffers::new(plugin).map(AnyBuffers::ForeignBuffers);
    let buffers = buffers.unwrap_or(AnyBuffers::DynamicThreshold(usual.buffers));
    let marker = ForeignMarker::new(plugin, 1).map(AnyMarker::ForeignMarker);
    let marker = marker.unwrap_or_else(|| AnyMarker::RedMarker(usual.marker.clone()));
    with_switches(usual, buffers, marker)
}

fuzz_target!(|data: &[u8]| {
    let mut bytes = Unstructured::new(data);
    let name = CString::new(if usually(&mut bytes, 0) == 0 { "hostile" } else { "No name!" }).expect("no zero");
    let name = Box::into_raw(Box::new(name));
    // SAFETY: it lasts until the end of this function.
    let described = descriptor(&mut bytes, unsafe { &*name });
    if let Some((descriptor, sizes)) = described {
        TAPE.set(Tape { bytes: bytes.take_rest().to_vec(), next: 0, sizes });
        let config = Box::into_raw(vec![0; Foreign::config_words(&descriptor.info)].into_boxed_slice());
        // SAFETY: it lasts until the end of this function.
        let made = Foreign::new(descriptor, &[(c"key", 1)], unsafe { &mut *config }, 1)
            .or_else(|_| Foreign::new(descriptor, &[], unsafe { &mut *config }, 1));
        let plugin = Box::into_raw(Box::new(made.expect("without settings there is nothing to refuse")));
        let ccas = Box::into_raw(Box::new([AnyCca::FixedWindow(FixedWindow::new(FixedWindowConfig::BdpPercent(100)))]));
        // SAFETY: both last until the end of this function, as the models and their kernel do not.
        let completions = unsafe { run(models(&*plugin, &mut *ccas)) };
        for done in &completions {
            // 20000 bytes at 100 Gb/s over two links of 1 us.
            assert!(done.fct >= Span::from_ns(3_600), "{done:?}");
        }
        // SAFETY: made by `into_raw` above, and nobody refers to them any more.
        unsafe {
            drop(Box::from_raw(plugin));
            drop(Box::from_raw(ccas));
            drop(Box::from_raw(config));
        }
    }
    // SAFETY: as above.
    drop(unsafe { Box::from_raw(name) });
});

//! Sequences of calls of the C interface, with any arguments that keep to the contract in `wormhole.h`: no call shows a
//! defect of the simulator, and none but polling changes what is there to be polled.
#![no_main]

use libfuzzer_sys::arbitrary::Unstructured;
use libfuzzer_sys::fuzz_target;
use std::ffi::{CStr, c_char};
use std::ptr::{null, null_mut};
use wormhole_capi::*;

/// Calls of a sequence.
const MOST_CALLS: usize = 64;
/// Events of a run.
const EVENTS: u64 = 2_000;
/// A run that cannot be bounded otherwise lasts no longer.
const SHORT_PS: u64 = 50_000;
/// Nodes, links and congestion controls there is memory for.
const MOST: usize = 24;
/// Of a kernel.
const MEMORY: usize = 8 << 20;
/// More than any struct may say it has.
const SCRATCH: usize = 4_096 + 64;

const NAMES: [&CStr; 6] = [c"window", c"eta", c"alpha", c"", c"rate_ai_bps", c"no such name"];

/// A number at which something might happen.
fn number(bytes: &mut Unstructured<'_>) -> u64 {
    let word: u64 = bytes.arbitrary().unwrap_or_default();
    match word % 8 {
        0 => 0,
        1 => u64::MAX,
        2 => 1 << (word >> 8 & 63),
        3 => (1 << (word >> 8 & 63)) - 1,
        4 | 5 => word >> 8 & 0xff,
        6 => word >> 8 & 0xfff_ffff,
        _ => word,
    }
}

/// The time of a kernel; 0 if it is none.
///
/// # Safety
/// As that of `wh_now`.
unsafe fn now(kernel: *const WhKernel) -> u64 {
    let mut now = 0;
    // SAFETY: the caller's promise, and a local.
    let _ = unsafe { wh_now(kernel, &mut now) };
    now
}

/// Memory that structs are read from and written to, whatever size they say they have.
struct Scratch(Vec<u64>);

impl Scratch {
    fn new() -> Scratch {
        Scratch(vec![0; SCRATCH / 8])
    }

    /// A pointer that is rarely null or misaligned.
    fn pointer<T>(&mut self, bytes: &mut Unstructured<'_>) -> *mut T {
        match bytes.arbitrary::<u8>().unwrap_or_default() {
            0 => null_mut(),
            // SAFETY: within the memory.
            1 => unsafe { self.0.as_mut_ptr().cast::<u8>().add(1).cast() },
            _ => self.0.as_mut_ptr().cast(),
        }
    }

    fn set_size(&mut self, bytes: &mut Unstructured<'_>, size: usize) {
        let size = if bytes.ratio(1u8, 16u8).unwrap_or(false) { number(bytes) as u32 } else { size as u32 };
        self.0[0] = self.0[0] & !0xffff_ffff | u64::from(size);
    }

    /// Changes some fields of a struct of so many bytes, not its size.
    fn change(&mut self, bytes: &mut Unstructured<'_>, size: usize) {
        for _ in 0..bytes.int_in_range(0..=3).unwrap_or(0) {
            let (word, half) = (bytes.int_in_range(0..=size / 8).unwrap_or(0), bytes.arbitrary().unwrap_or(false));
            let value = number(bytes);
            self.0[word] = match (word, half) {
                (0, _) => self.0[0] & 0xffff_ffff | value << 32,
                (_, true) => self.0[word] & !0xffff_ffff | value & 0xffff_ffff,
                (_, false) => value,
            };
        }
    }
}

/// A program that uses the interface.
struct Caller<'b> {
    bytes: Unstructured<'b>,
    memory: Vec<u128>,
    kernel: *mut WhKernel,
    nodes: Vec<u8>,
    links: Vec<WhLink>,
    ccas: Vec<WhCca>,
    scratch: Scratch,
    number: u64,
    memo: Vec<u8>,
    memo_bytes: usize,
}

/// A struct's pointer, filled in by `defaults`, with some fields changed.
macro_rules! filled {
    ($caller:ident, $type:ty, $defaults:expr) => {{
        let caller = &mut *$caller;
        caller.scratch.set_size(&mut caller.bytes, size_of::<$type>());
        let pointer: *mut $type = caller.scratch.0.as_mut_ptr().cast();
        let _ = $defaults(pointer);
        caller.scratch.change(&mut caller.bytes, size_of::<$type>());
        caller.scratch.pointer::<$type>(&mut caller.bytes)
    }};
}

/// A place for a result.
macro_rules! place {
    ($caller:ident, $type:ty) => {{
        let caller = &mut *$caller;
        caller.scratch.set_size(&mut caller.bytes, size_of::<$type>());
        caller.scratch.pointer::<$type>(&mut caller.bytes)
    }};
}

impl Caller<'_> {
    fn any(&mut self) -> u64 {
        number(&mut self.bytes)
    }

    /// An index that is usually one of the few there are.
    fn index(&mut self) -> u32 {
        let index: u8 = self.bytes.arbitrary().unwrap_or_default();
        if index < 250 { u32::from(index) % MOST as u32 } else { self.any() as u32 }
    }

    /// A place for a number, or none.
    fn number<T>(&mut self) -> *mut T {
        if self.bytes.ratio(1u8, 32u8).unwrap_or(false) { null_mut() } else { (&raw mut self.number).cast() }
    }

    /// The kernel, or something else that may stand there.
    fn kernel(&mut self) -> *mut WhKernel {
        match self.bytes.arbitrary::<u8>().unwrap_or_default() {
            0 => null_mut(),
            // SAFETY: within the memory, and there is room for a kernel behind it.
            1 => unsafe { self.memory.as_mut_ptr().add(64).cast() },
            // SAFETY: the same; misaligned.
            2 => unsafe { self.memory.as_mut_ptr().cast::<u8>().add(3).cast() },
            _ => self.kernel,
        }
    }

    fn describe(&mut self) {
        self.ccas.clear();
        for _ in 0..self.bytes.int_in_range(1..=3).unwrap_or(1) {
            let caller = &mut *self;
            let kind = caller.bytes.arbitrary().unwrap_or(5) % 7;
            // SAFETY: a struct in memory of its own.
            let cca = filled!(caller, WhCca, |cca| unsafe { wh_cca_defaults(cca, kind) });
            let name = NAMES[self.bytes.choose_index(NAMES.len()).unwrap_or(0)].as_ptr();
            let value = f64::from_bits(self.any());
            // SAFETY: the same, and a name that ends.
            unsafe {
                let _ = wh_cca_set(cca, name, value);
                self.ccas.push(self.scratch.0.as_ptr().cast::<WhCca>().read());
            }
        }
        let caller = &mut *self;
        let kind = caller.bytes.arbitrary().unwrap_or(0) % 5;
        // SAFETY: a struct in memory of its own; arrays with as much room as is told.
        unsafe {
            let plan = filled!(caller, WhPlan, |plan| wh_plan_defaults(plan, kind));
            let (mut nodes, mut links) = (0, 0);
            if wh_plan_size(plan, &mut nodes, &mut links) == WhStatus::Ok && nodes <= MOST && links <= MOST {
                caller.nodes = vec![0; nodes];
                caller.links = vec![WhLink::default(); links];
                let _ = wh_plan_build(plan, caller.nodes.as_mut_ptr(), nodes, caller.links.as_mut_ptr(), links);
            }
        }
        if self.links.is_empty() {
            self.nodes = vec![0, 0, 0, 1];
            let link = |a| WhLink { a, b: 3, rate_bps: 100_000_000_000, delay_ps: 1_000_000, loss: 0 };
            self.links = (0..3).map(link).collect();
        }
        if self.bytes.ratio(1u8, 4u8).unwrap_or(false) {
            let (node, link) = (self.index() as usize % self.nodes.len(), self.index() as usize % self.links.len());
            self.nodes[node] = self.bytes.int_in_range(0..=3).unwrap_or(0);
            let value = self.any();
            match value % 5 {
                0 => self.links[link].a = self.index(),
                1 => self.links[link].b = self.index(),
                2 => self.links[link].rate_bps = value / 5,
                3 => self.links[link].delay_ps = value / 5,
                _ => self.links[link].loss = value,
            }
        }
    }

    /// Makes a kernel, or not.
    fn init(&mut self) -> WhStatus {
        self.describe();
        let profile = u32::from(self.bytes.int_in_range(0..=2u8).unwrap_or(0));
        let caller = &mut *self;
        // SAFETY: a struct in memory of its own.
        let config = filled!(caller, WhConfig, |config| {
            let status = unsafe { wh_config_defaults(config, profile) };
            // SAFETY: the same.
            unsafe {
                (*config).packets = 512;
                (*config).snapshot_words = 1 << 12;
                (*config).memo_words = 1 << 10;
            }
            status
        });
        // Arrays are as long as the contract says they are.
        // SAFETY: the same memory.
        unsafe {
            let config: *mut WhConfig = self.scratch.0.as_mut_ptr().cast();
            (*config).flags &= !WH_MEMORY_IS_ZERO;
            ((*config).nodes, (*config).node_count) = (self.nodes.as_ptr(), self.nodes.len());
            ((*config).links, (*config).link_count) = (self.links.as_ptr(), self.links.len());
            ((*config).ccas, (*config).cca_count) = (self.ccas.as_ptr(), self.ccas.len());
        }
        let room = if self.bytes.ratio(1u8, 16u8).unwrap_or(false) { self.any() as usize % MEMORY } else { MEMORY };
        let place = self.number();
        // SAFETY: so much memory is there.
        unsafe {
            let status = wh_sizeof(config, place);
            let mut kernel = null_mut();
            let made = wh_init(self.memory.as_mut_ptr().cast(), room, config, &mut kernel);
            assert!(status != WhStatus::Ok || made != WhStatus::OutOfMemory || room < self.number as usize);
            if made == WhStatus::Ok {
                self.kernel = kernel;
            }
            made
        }
    }

    fn call(&mut self) -> WhStatus {
        let choice: u8 = self.bytes.arbitrary().unwrap_or_default();
        let kernel = self.kernel();
        let place: *mut u64 = self.number();
        let caller = &mut *self;
        // SAFETY: `kernel` is one, or null, or memory of a kernel's size; other pointers are to memory of the kind and
        // size that the header asks for, or null, or misaligned.
        unsafe {
            match choice % 24 {
                0 => self.init(),
                1..=4 => {
                    let (src, dst) = (caller.index(), caller.index());
                    let (size, start) = (caller.any() % 100_000, now(kernel));
                    let flow = filled!(caller, WhFlow, |flow: *mut WhFlow| {
                        let status = wh_flow_defaults(flow);
                        ((*flow).src, (*flow).dst, (*flow).bytes) = (src, dst, size);
                        (*flow).start_ps = start;
                        status
                    });
                    wh_add_flow(kernel, flow, place.cast())
                }
                5 | 6 => {
                    let (src, dst, later) = (caller.index(), caller.index(), caller.any());
                    let frame = filled!(caller, WhFrame, |frame: *mut WhFrame| {
                        ((*frame).src, (*frame).dst, (*frame).bytes) = (src, dst, 1_000);
                    });
                    wh_inject(kernel, now(kernel).saturating_add(later), frame)
                }
                7 => {
                    let (link, up) = (caller.index(), caller.index() % 3);
                    wh_set_link(kernel, now(kernel).saturating_add(caller.any()), link, up)
                }
                8..=11 => wh_run_bounded(kernel, caller.any(), EVENTS, place.cast()),
                12 => wh_run_to_completion(kernel, WH_NEVER, EVENTS, place.cast()),
                13 => wh_run_until(kernel, now(kernel).saturating_add(caller.any() % SHORT_PS), place.cast()),
                14 => wh_poll_completion(kernel, place!(caller, WhCompletion)),
                15 => wh_poll_egress(kernel, place!(caller, WhFrame)),
                16 => {
                    let tier = caller.bytes.arbitrary().unwrap_or(1) % 4;
                    wh_accelerate(kernel, filled!(caller, WhAcceleration, |how| wh_acceleration_defaults(how, tier)))
                }
                17 => {
                    let clear = |how: *mut WhMemoisation| {
                        (*how) = WhMemoisation { struct_size: (*how).struct_size, ..Default::default() };
                    };
                    wh_memoise(kernel, filled!(caller, WhMemoisation, clear))
                }
                18 => {
                    let room = caller.any() as usize % (caller.memo.len() + 1);
                    let status = wh_memo_export(kernel, caller.memo.as_mut_ptr(), room, &mut caller.memo_bytes);
                    if status == WhStatus::Ok {
                        assert!(caller.memo_bytes <= room);
                        let mut records = 0;
                        let again = wh_memo_import(kernel, caller.memo.as_ptr(), caller.memo_bytes, &mut records);
                        assert_eq!(again, WhStatus::Ok, "what was exported is taken back");
                    }
                    status
                }
                19 => {
                    if let Ok(at) = caller.bytes.choose_index(caller.memo.len()) {
                        caller.memo[at] = caller.bytes.arbitrary().unwrap_or_default();
                    }
                    let bytes = caller.memo_bytes.min(caller.memo.len());
                    wh_memo_import(kernel, caller.memo.as_ptr(), bytes, place.cast())
                }
                20 => wh_wake_all(kernel),
                21 => wh_port_stats(kernel, caller.index(), place!(caller, WhPortStats)),
                22 => {
                    let _ = wh_next_event_time(kernel, place);
                    let _ = wh_port_count(kernel, place.cast());
                    let _ = wh_skipped(kernel, place!(caller, WhSkipped));
                    let _ = wh_memoised(kernel, place!(caller, WhMemoised));
                    wh_totals(kernel, place!(caller, WhTotals))
                }
                _ => {
                    let text: *const c_char = wh_status_text(caller.any() as i32);
                    assert!(!CStr::from_ptr(text).is_empty());
                    let name = wh_cca_parameter(caller.index(), caller.any() as usize);
                    assert!(name == null() || !CStr::from_ptr(name).is_empty());
                    WhStatus::Ok
                }
            }
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let mut caller = Caller {
        bytes: Unstructured::new(data),
        memory: vec![0; MEMORY / size_of::<u128>()],
        kernel: null_mut(),
        nodes: Vec::new(),
        links: Vec::new(),
        ccas: Vec::new(),
        scratch: Scratch::new(),
        number: 0,
        memo: vec![0; 16 << 10],
        memo_bytes: 0,
    };
    let mut status = caller.init();
    for _ in 0..MOST_CALLS {
        assert_ne!(status, WhStatus::Internal);
        if caller.bytes.is_empty() {
            break;
        }
        status = caller.call();
    }
});

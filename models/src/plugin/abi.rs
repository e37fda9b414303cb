//! `include/wormhole_plugin.h` in Rust, structure by structure and field by field.

use core::ffi::{c_char, c_void};
use wormhole_kernel::event::CCA_TIMERS;

/// The bytes `WORMPLUG`.
pub const MAGIC: u64 = u64::from_le_bytes(*b"WORMPLUG");
/// Changes whenever a structure does otherwise than by growing at its end.
pub const ABI_VERSION: u32 = 1;

/// What `configure` returns: the value is taken.
pub const OK: i32 = 0;
/// What `configure` returns: there is no such key.
pub const UNKNOWN_KEY: i32 = 1;
/// What `configure` returns: the key does not take this value.
pub const BAD_VALUE: i32 = 2;

/// Shortest timer, in picoseconds: 1 ns.
pub const MIN_TIMER_PS: u64 = 1_000;
/// Longest timer, in picoseconds: 1000 s.
pub const MAX_TIMER_PS: u64 = 1_000_000_000_000_000;

/// `struct wormhole_plugin`: what all descriptors begin with.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Head {
    pub magic: u64,
    pub abi_version: u32,
    pub struct_size: u32,
    pub kind: u32,
    pub model_version: u32,
    pub name: *const c_char,
    pub config_hash: u64,
    pub config_size: u32,
    pub config_align: u32,
    pub state_size: u32,
    pub state_align: u32,
    pub defaults: Option<unsafe extern "C" fn(config: *mut c_void)>,
    pub configure: Option<unsafe extern "C" fn(config: *mut c_void, key: *const c_char, value: i64) -> i32>,
}

/// `struct wormhole_flow`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Flow {
    pub line_rate_bps: u64,
    pub base_rtt_ps: u64,
    pub bdp_bytes: u64,
    pub mtu_bytes: u32,
    pub reserved: u32,
}

/// `struct wormhole_hop`: laid out as [`IntHop`](wormhole_kernel::telemetry::IntHop).
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Hop {
    pub at_ps: u64,
    pub tx_bytes: u64,
    pub rate_bps: u64,
    pub queue_bytes: u64,
}

/// `struct wormhole_ack`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Ack {
    pub now_ps: u64,
    pub acked_bytes: u64,
    pub snd_nxt_bytes: u64,
    pub rtt_ps: u64,
    pub marked: u32,
    pub hop_count: u32,
    pub hops_passed: u32,
    pub reserved: u32,
    pub hops: *const Hop,
}

/// `struct wormhole_out`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Out {
    pub window_bytes: u64,
    pub rate_bps: u64,
    pub repace: u32,
    pub timers_set: u32,
    pub timer_ps: [u64; CCA_TIMERS],
}

/// `struct wormhole_origin`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Origin {
    pub now_ps: u64,
    pub acked_bytes: u64,
    pub hops: *const Hop,
    pub hop_count: u32,
    pub reserved: u32,
}

/// `struct wormhole_port`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Port {
    pub rate_bps: u64,
    pub delay_ps: u64,
    pub nic_rate_bps: u64,
}

/// `struct wormhole_cca`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Cca {
    pub plugin: Head,
    pub functions: CcaFunctions,
}

/// What of `struct wormhole_cca` follows its head.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, clippy::type_complexity)] // Documented in the header.
pub struct CcaFunctions {
    pub needs_telemetry: u32,
    pub header_bytes: u32,
    pub start: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Flow, u64, *mut Out)>,
    pub on_ack: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Ack, *mut Out)>,
    pub on_timer: Option<unsafe extern "C" fn(*const c_void, *mut c_void, u32, u64, *mut Out)>,
    pub on_timeout: Option<unsafe extern "C" fn(*const c_void, *mut c_void, u64, *mut Out)>,
    pub relative: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Origin) -> i32>,
    pub absolute: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Origin)>,
}

/// `struct wormhole_marker`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Marker {
    pub plugin: Head,
    pub functions: MarkerFunctions,
}

/// What of `struct wormhole_marker` follows its head.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, clippy::type_complexity)] // Documented in the header.
pub struct MarkerFunctions {
    pub start: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Port)>,
    pub marks: Option<unsafe extern "C" fn(*const c_void, *mut c_void, u64, u64, *mut u32) -> i32>,
}

/// `struct wormhole_buffers`.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs)] // Documented in the header.
pub struct Buffers {
    pub plugin: Head,
    pub functions: BuffersFunctions,
}

/// A question about a queue in its switch.
pub type Question = unsafe extern "C" fn(*const c_void, *const c_void, *const c_void, *const c_void) -> i32;

/// What of `struct wormhole_buffers` follows its head.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
#[allow(missing_docs, clippy::type_complexity)] // Documented in the header.
pub struct BuffersFunctions {
    pub port_state_size: u32,
    pub port_state_align: u32,
    pub queue_state_size: u32,
    pub queue_state_align: u32,
    pub start_port: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Port)>,
    pub add_port: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const Port)>,
    pub admit: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void, *mut c_void, u32) -> i32>,
    pub pauses: Option<Question>,
    pub release: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void, *mut c_void, u32)>,
    pub resumes: Option<Question>,
    pub is_calm: Option<unsafe extern "C" fn(*const c_void, *const c_void, u64) -> i32>,
    pub replace: Option<unsafe extern "C" fn(*const c_void, *mut c_void, *const c_void, *const c_void)>,
}

//! Reading a descriptor: what is in it is checked before anything is called.

use super::abi::{self, ABI_VERSION, BuffersFunctions, CcaFunctions, Head, MAGIC, MarkerFunctions};
use super::{
    MAX_CCA_STATE, MAX_CONFIG, MAX_HEADER, MAX_MARKER_STATE, MAX_NAME, MAX_PORT_STATE, MAX_QUEUE_STATE,
    MAX_SWITCH_STATE,
};
use core::ffi::{c_char, c_void};
use core::fmt;
use core::mem::{MaybeUninit, offset_of};

/// What a plugin is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A congestion control.
    Cca = 1,
    /// A marker.
    Marker = 2,
    /// A buffer manager.
    Buffers = 3,
}

impl Kind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Cca => "cca",
            Kind::Marker => "marker",
            Kind::Buffers => "buffers",
        }
    }

    fn of(number: u32) -> Option<Kind> {
        [Kind::Cca, Kind::Marker, Kind::Buffers].into_iter().find(|kind| *kind as u32 == number)
    }

    /// Bytes up to the last field that must be there.
    fn least_size(self) -> usize {
        const FUNCTION: usize = size_of::<usize>();
        match self {
            Kind::Cca => offset_of!(abi::Cca, functions.on_ack) + FUNCTION,
            Kind::Marker => offset_of!(abi::Marker, functions.marks) + FUNCTION,
            Kind::Buffers => offset_of!(abi::Buffers, functions.resumes) + FUNCTION,
        }
    }
}

/// What descriptors of all kinds say.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    /// What it is.
    pub kind: Kind,
    /// Name of the model.
    pub name: &'static str,
    /// Version of the model.
    pub model_version: u32,
    /// Hash of what is compiled in.
    pub config_hash: u64,
    /// Length of the descriptor in the plugin, in bytes.
    pub struct_size: u32,
    /// Bytes of the parameters.
    pub config_size: u32,
    /// Bytes of the state per flow, port or switch.
    pub state_size: u32,
    pub(super) defaults: Option<unsafe extern "C" fn(*mut c_void)>,
    pub(super) configure: Option<unsafe extern "C" fn(*mut c_void, *const c_char, i64) -> i32>,
}

/// A plugin's functions, those it must have among them.
#[derive(Clone, Copy, Debug)]
pub enum Functions {
    /// Of a congestion control.
    Cca(CcaFunctions),
    /// Of a marker.
    Marker(MarkerFunctions),
    /// Of a buffer manager.
    Buffers(BuffersFunctions),
}

/// A descriptor that is as it must be.
#[derive(Clone, Copy, Debug)]
pub struct Descriptor {
    /// What it says of itself.
    pub info: Info,
    /// Its functions.
    pub functions: Functions,
}

/// Why a descriptor cannot be used.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[non_exhaustive]
pub enum Unfit {
    /// There is none.
    Null,
    /// It is at an odd address.
    Address(usize),
    /// It does not begin as descriptors do.
    Magic(u64),
    /// It is of another version of the interface.
    AbiVersion(u32),
    /// There is no such kind.
    Kind(u32),
    /// It is too short for what must be in it.
    StructSize {
        /// Its length.
        found: u32,
        /// What it needs at least.
        least: usize,
    },
    /// The name is missing, empty or too long.
    NameLength,
    /// The name has a byte that names do not have.
    NameByte(u8),
    /// A size is too large.
    Size {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u32,
        /// The most it may be.
        most: u32,
    },
    /// An alignment is none of 1, 2, 4 and 8.
    Alignment {
        /// The field.
        field: &'static str,
        /// Its value.
        found: u32,
    },
    /// A function that must be there is not.
    Missing(&'static str),
    /// Of two functions that go together one is missing.
    Lone {
        /// The one that is there.
        there: &'static str,
        /// The one that is not.
        missing: &'static str,
    },
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Unfit::Null => write!(f, "wormhole_plugin() returned null, expected a descriptor"),
            Unfit::Address(at) => write!(f, "the descriptor is at {at:#x}, expected a multiple of 8"),
            Unfit::Magic(found) => write!(f, "magic is {found:#x}, expected {MAGIC:#x}"),
            Unfit::AbiVersion(found) => write!(f, "abi_version is {found}, expected {ABI_VERSION}"),
            Unfit::Kind(found) => write!(f, "kind is {found}, expected 1 (cca), 2 (marker) or 3 (buffers)"),
            Unfit::StructSize { found, least } => write!(f, "struct_size is {found}, expected at least {least}"),
            Unfit::NameLength => write!(f, "name is missing, empty or too long, expected 1 to {MAX_NAME} bytes"),
            Unfit::NameByte(byte) => write!(f, "name has the byte {byte:#04x}, expected a-z, 0-9, - and _"),
            Unfit::Size { field, found, most } => write!(f, "{field} is {found}, expected at most {most}"),
            Unfit::Alignment { field, found } => write!(f, "{field} is {found}, expected 1, 2, 4 or 8"),
            Unfit::Missing(function) => write!(f, "{function} is null, expected a function"),
            Unfit::Lone { there, missing } => write!(f, "{missing} is null and {there} is not, expected both or none"),
        }
    }
}

impl core::error::Error for Unfit {}

impl Descriptor {
    /// Reads what `wormhole_plugin()` has returned.
    ///
    /// # Safety
    /// `head` is null, or points to `struct wormhole_plugin` of the header in memory that may be read as far as its
    /// `struct_size` says and stays as it is for ever; its name, if not null, ends with a zero byte; its functions are
    /// those of the header, may be called from now on and always, and keep to the bytes they declare.
    ///
    /// # Errors
    /// [`Unfit`]: the first thing that is wrong.
    pub unsafe fn read(head: *const Head) -> Result<Descriptor, Unfit> {
        if head.is_null() {
            return Err(Unfit::Null);
        }
        if !head.is_aligned() {
            return Err(Unfit::Address(head.addr()));
        }
        // SAFETY: the magic, if it is one, is the first field; the caller answers for eight readable bytes.
        let magic = unsafe { (&raw const (*head).magic).read() };
        if magic != MAGIC {
            return Err(Unfit::Magic(magic));
        }
        // SAFETY: a descriptor of any version has these fields, by its magic.
        let (version, size) =
            unsafe { ((&raw const (*head).abi_version).read(), (&raw const (*head).struct_size).read()) };
        if version != ABI_VERSION {
            return Err(Unfit::AbiVersion(version));
        }
        let long_enough = |least: usize| {
            if (size as usize) < least { Err(Unfit::StructSize { found: size, least }) } else { Ok(()) }
        };
        long_enough(size_of::<Head>())?;
        // SAFETY: it is that long, and the caller answers for the memory.
        let fields = unsafe { head.read() };
        let kind = Kind::of(fields.kind).ok_or(Unfit::Kind(fields.kind))?;
        long_enough(kind.least_size())?;
        // SAFETY: the name is the caller's promise.
        let name = unsafe { read_name(fields.name) }?;
        check_size("config_size", fields.config_size, MAX_CONFIG)?;
        check_alignment("config_align", fields.config_align, fields.config_size)?;
        check_alignment("state_align", fields.state_align, fields.state_size)?;
        // SAFETY: it is of this kind and as long as it says, and zero bytes are fields of functions, all null.
        let functions = unsafe {
            match kind {
                Kind::Cca => Functions::Cca(read_up_to::<abi::Cca>(head, size).functions),
                Kind::Marker => Functions::Marker(read_up_to::<abi::Marker>(head, size).functions),
                Kind::Buffers => Functions::Buffers(read_up_to::<abi::Buffers>(head, size).functions),
            }
        };
        functions.check(fields.state_size)?;
        let Head { model_version, config_hash, config_size, state_size, defaults, configure, .. } = fields;
        let struct_size = size;
        let info =
            Info { kind, name, model_version, config_hash, struct_size, config_size, state_size, defaults, configure };
        Ok(Descriptor { info, functions })
    }
}

/// As much of a descriptor as it has, the rest zero.
///
/// # Safety
/// `size` bytes may be read from `head`, and `T` may be all zero, or anything that is a descriptor.
unsafe fn read_up_to<T>(head: *const Head, size: u32) -> T {
    let mut whole = MaybeUninit::<T>::zeroed();
    // Whole words only: half a pointer is none.
    let bytes = size_of::<T>().min(size as usize / 8 * 8);
    // SAFETY: both are that long; one is new memory.
    unsafe { core::ptr::copy_nonoverlapping(head.cast::<u8>(), whole.as_mut_ptr().cast::<u8>(), bytes) };
    // SAFETY: every byte is zero or the descriptor's.
    unsafe { whole.assume_init() }
}

/// # Safety
/// `name` is null or ends with a zero byte, and stays as it is for ever.
unsafe fn read_name(name: *const c_char) -> Result<&'static str, Unfit> {
    if name.is_null() {
        return Err(Unfit::NameLength);
    }
    let mut length = 0;
    // SAFETY: no byte behind the zero is looked at.
    while unsafe { name.add(length).read() } != 0 {
        length += 1;
        if length > MAX_NAME {
            return Err(Unfit::NameLength);
        }
    }
    // SAFETY: so many bytes have been read just now.
    let bytes: &'static [u8] = unsafe { core::slice::from_raw_parts(name.cast(), length) };
    let is_good = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(byte);
    match bytes.iter().find(|byte| !is_good(byte)) {
        Some(byte) => Err(Unfit::NameByte(*byte)),
        None => core::str::from_utf8(bytes).ok().filter(|name| !name.is_empty()).ok_or(Unfit::NameLength),
    }
}

fn check_size(field: &'static str, found: u32, most: u32) -> Result<(), Unfit> {
    if found > most { Err(Unfit::Size { field, found, most }) } else { Ok(()) }
}

/// The alignment of nothing may be 0.
fn check_alignment(field: &'static str, found: u32, size: u32) -> Result<(), Unfit> {
    let good = [1, 2, 4, 8].contains(&found) || size == 0 && found == 0;
    if good { Ok(()) } else { Err(Unfit::Alignment { field, found }) }
}

fn check_there(functions: &[(&'static str, bool)]) -> Result<(), Unfit> {
    functions.iter().find(|(_, there)| !there).map_or(Ok(()), |(name, _)| Err(Unfit::Missing(name)))
}

fn check_pair(one: (&'static str, bool), other: (&'static str, bool)) -> Result<(), Unfit> {
    let lone = |there, missing| Err(Unfit::Lone { there, missing });
    match (one.1, other.1) {
        (true, false) => lone(one.0, other.0),
        (false, true) => lone(other.0, one.0),
        _ => Ok(()),
    }
}

impl Functions {
    fn check(&self, state_size: u32) -> Result<(), Unfit> {
        match self {
            Functions::Cca(f) => {
                check_size("state_size", state_size, MAX_CCA_STATE)?;
                check_size("header_bytes", f.header_bytes, MAX_HEADER)?;
                check_size("needs_telemetry", f.needs_telemetry, 1)?;
                check_there(&[("start", f.start.is_some()), ("on_ack", f.on_ack.is_some())])?;
                check_pair(("relative", f.relative.is_some()), ("absolute", f.absolute.is_some()))
            }
            Functions::Marker(f) => {
                check_size("state_size", state_size, MAX_MARKER_STATE)?;
                check_there(&[("start", f.start.is_some()), ("marks", f.marks.is_some())])
            }
            Functions::Buffers(f) => {
                check_size("state_size", state_size, MAX_SWITCH_STATE)?;
                check_size("port_state_size", f.port_state_size, MAX_PORT_STATE)?;
                check_alignment("port_state_align", f.port_state_align, f.port_state_size)?;
                check_size("queue_state_size", f.queue_state_size, MAX_QUEUE_STATE)?;
                check_alignment("queue_state_align", f.queue_state_align, f.queue_state_size)?;
                check_there(&[
                    ("admit", f.admit.is_some()),
                    ("pauses", f.pauses.is_some()),
                    ("release", f.release.is_some()),
                    ("resumes", f.resumes.is_some()),
                ])?;
                check_pair(("is_calm", f.is_calm.is_some()), ("replace", f.replace.is_some()))
            }
        }
    }
}

//! Reading and writing through pointers of the caller.
//!
//! Null and misaligned pointers are told; that a pointer leads to memory of the size it claims is the caller's part.
#![allow(unsafe_code, reason = "a foreign interface: pointers of the caller are followed here")]

use crate::constants::WH_CCA_VALUES;
use crate::status::WhStatus;
use crate::structs::*;
use core::mem::MaybeUninit;

/// A struct of the interface.
///
/// # Safety
/// Every bit pattern is a value of it, and it is `repr(C)`.
pub(crate) unsafe trait Plain: Copy {}

/// A struct that begins with its size, in 32 bits, and only grows at its end.
///
/// # Safety
/// It begins with that.
pub(crate) unsafe trait Versioned: Plain {
    /// Its size in version 1 of the interface: no caller has a smaller one.
    const LEAST: usize = size_of::<Self>();
}

macro_rules! versioned {
    ($($name:ident),*) => {$(
        // SAFETY: integers, floats, raw pointers and arrays of them only. The first field is `struct_size: u32`.
        unsafe impl Plain for $name {}
        // SAFETY: as above; the assertion is that the field is the first one.
        unsafe impl Versioned for $name {}
        const _: () = assert!(core::mem::offset_of!($name, struct_size) == 0);
    )*};
}

versioned!(
    WhAcceleration,
    WhCca,
    WhCompletion,
    WhConfig,
    WhFlow,
    WhFrame,
    WhMemoisation,
    WhMemoised,
    WhPlan,
    WhPortStats,
    WhSkipped,
    WhTotals
);

// SAFETY: every bit pattern is one of them.
unsafe impl Plain for u8 {}
// SAFETY: the same.
unsafe impl Plain for u32 {}
// SAFETY: the same.
unsafe impl Plain for u64 {}
// SAFETY: the same.
unsafe impl Plain for usize {}
// SAFETY: the same.
unsafe impl Plain for f64 {}
// SAFETY: the same. Where it leads is looked at only when it is followed.
unsafe impl<T> Plain for *mut T {}
// SAFETY: integers only.
unsafe impl Plain for WhLink {}

/// No struct is larger: a size above is garbage, and memory is not read so far.
const LARGEST: usize = 4_096;
const _: () = assert!(size_of::<f64>() * WH_CCA_VALUES < LARGEST);

/// A pointer that may be followed, as far as can be seen.
fn check<T>(pointer: *const T) -> Result<(), WhStatus> {
    if pointer.is_null() {
        Err(WhStatus::NullPointer)
    } else if !pointer.is_aligned() {
        Err(WhStatus::Misaligned)
    } else {
        Ok(())
    }
}

/// The size a versioned struct says it has.
///
/// # Safety
/// As [`read`].
unsafe fn size_at<T: Versioned>(pointer: *const T) -> Result<usize, WhStatus> {
    check(pointer)?;
    // SAFETY: it points to memory that begins with 32 bits of size, as the caller promises.
    let size = unsafe { pointer.cast::<u32>().read() } as usize;
    if (T::LEAST..=LARGEST).contains(&size) { Ok(size) } else { Err(WhStatus::BadStructSize) }
}

/// Reads a struct of the caller's version: what an older one does not have is 0, and what a newer one has must be 0.
///
/// # Errors
/// [`WhStatus::NullPointer`], [`WhStatus::Misaligned`], [`WhStatus::BadStructSize`].
///
/// # Safety
/// A pointer that is neither null nor misaligned leads to as many readable bytes as its first 32 bits say.
pub(crate) unsafe fn read<T: Versioned>(pointer: *const T) -> Result<T, WhStatus> {
    // SAFETY: the caller's promise is ours.
    let size = unsafe { size_at(pointer)? };
    let known = size.min(size_of::<T>());
    let mut value = MaybeUninit::<T>::zeroed();
    // SAFETY: `known` bytes are readable there and fit here. The two do not overlap: one is a local.
    unsafe { pointer.cast::<u8>().copy_to_nonoverlapping(value.as_mut_ptr().cast(), known) };
    let is_zero = |at: usize| {
        // SAFETY: `at` is below `size`.
        unsafe { pointer.cast::<u8>().add(at).read() == 0 }
    };
    if !(known..size).all(is_zero) {
        return Err(WhStatus::BadStructSize);
    }
    // SAFETY: every byte of it is initialised, and every bit pattern is a value (`Plain`).
    Ok(unsafe { value.assume_init() })
}

/// A struct of the caller that takes a result. Checked before there is one: what is taken out of a kernel is not lost.
pub(crate) struct Out<T> {
    pointer: *mut T,
    size: usize,
}

/// Where a result goes.
///
/// # Errors
/// As [`read`].
///
/// # Safety
/// As [`read`], and the bytes stay writable as long as the result lives.
#[inline]
pub(crate) unsafe fn out<T: Versioned>(pointer: *mut T) -> Result<Out<T>, WhStatus> {
    // SAFETY: the caller's promise is ours.
    let size = unsafe { size_at(pointer)? };
    Ok(Out { pointer, size })
}

impl<T: Versioned> Out<T> {
    /// Writes as far as the caller's version goes, zeroes behind. The caller's `struct_size` stays.
    #[inline]
    pub(crate) fn write(self, value: &T) {
        let known = self.size.min(size_of::<T>());
        let skip = size_of::<u32>();
        let (from, to) = ((value as *const T).cast::<u8>(), self.pointer.cast::<u8>());
        // SAFETY: `size` bytes are writable there, as was promised to `out`; `known` of them have a counterpart here. A
        // reference of ours and memory of the caller do not overlap.
        unsafe {
            from.add(skip).copy_to_nonoverlapping(to.add(skip), known - skip);
            to.add(known).write_bytes(0, self.size - known);
        }
    }
}

/// A place of the caller for a result of no version.
pub(crate) struct Slot<T>(*mut T);

/// Where such a result goes.
///
/// # Errors
/// [`WhStatus::NullPointer`], [`WhStatus::Misaligned`].
///
/// # Safety
/// A pointer that is neither null nor misaligned leads to a `T` that stays writable as long as the result lives.
#[inline]
pub(crate) unsafe fn slot<T: Plain>(pointer: *mut T) -> Result<Slot<T>, WhStatus> {
    check(pointer)?;
    Ok(Slot(pointer))
}

impl<T: Plain> Slot<T> {
    /// Writes the result.
    #[inline]
    pub(crate) fn put(self, value: T) {
        // SAFETY: checked, and what was promised to `slot`.
        unsafe { self.0.write(value) }
    }
}

/// An array of the caller.
///
/// # Errors
/// As [`slot`]; [`WhStatus::BadLimit`] if no memory is so large. An empty array may be anywhere.
///
/// # Safety
/// A pointer that is neither null nor misaligned leads to `count` readable elements, which nobody changes for `'a`.
pub(crate) unsafe fn array<'a, T: Plain>(pointer: *const T, count: usize) -> Result<&'a [T], WhStatus> {
    if count == 0 {
        return Ok(&[]);
    }
    check(pointer)?;
    fits::<T>(count)?;
    // SAFETY: checked, and the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts(pointer, count) })
}

/// An array of the caller to write to.
///
/// # Errors
/// As [`array`].
///
/// # Safety
/// As [`array`], and the elements are writable and nobody else looks at them for `'a`.
pub(crate) unsafe fn array_mut<'a, T: Plain>(pointer: *mut T, count: usize) -> Result<&'a mut [T], WhStatus> {
    if count == 0 {
        return Ok(&mut []);
    }
    check(pointer)?;
    fits::<T>(count)?;
    // SAFETY: checked, and the caller's promise.
    Ok(unsafe { core::slice::from_raw_parts_mut(pointer, count) })
}

fn fits<T>(count: usize) -> Result<(), WhStatus> {
    let bytes = count.checked_mul(size_of::<T>()).filter(|&bytes| isize::try_from(bytes).is_ok());
    bytes.map(|_| ()).ok_or(WhStatus::BadLimit)
}

/// Element `index` of an array of versioned structs: they lie as far apart as the first one's size says.
///
/// # Errors
/// As [`read`]; [`WhStatus::BadStructSize`] also if an element has another size than the first.
///
/// # Safety
/// As [`read`], for every element up to this one.
pub(crate) unsafe fn element<T: Versioned>(first: *const T, index: usize) -> Result<T, WhStatus> {
    // SAFETY: the caller's promise is ours.
    let stride = unsafe { size_at(first)? };
    let at = first.wrapping_byte_add(stride.wrapping_mul(index));
    // SAFETY: the same.
    if unsafe { size_at(at)? } != stride {
        return Err(WhStatus::BadStructSize);
    }
    // SAFETY: the same.
    unsafe { read(at) }
}

/// A C string.
///
/// # Errors
/// [`WhStatus::NullPointer`].
///
/// # Safety
/// A pointer that is not null leads to bytes that end with a 0 and do not change for `'a`.
pub(crate) unsafe fn string<'a>(pointer: *const core::ffi::c_char) -> Result<&'a core::ffi::CStr, WhStatus> {
    check(pointer)?;
    // SAFETY: checked, and the caller's promise.
    Ok(unsafe { core::ffi::CStr::from_ptr(pointer) })
}

//! What `WhKernel *` points to.
//!
//! # One piece of memory, several parts
//!
//! `wh_init` cuts the caller's memory into parts that do not overlap (`region`): this struct first, then what models
//! refer to, the store of memo records, and the kernel's tables. The kernel inside refers to the other parts by
//! references of lifetime `'static`: they hold as long as the caller keeps the memory, and nobody can get at the
//! kernel but through the pointer to this struct, which the caller must not use any longer than that.
//!
//! A call makes a reference to this struct alone, never to the whole memory; so it does not alias what the kernel
//! refers to. The store is the one part that is referred to by two: the kernel has a `&mut` to it while it memoises,
//! and memo bytes go in and out through [`WhKernel::with_store`]. There the store's address, from which both
//! references are made, is used to make a new one; the kernel's becomes invalid by that and is not used any more, but
//! replaced by another new one before the call returns.
//!
//! Nothing here is ever dropped: all parts are plain data.
#![allow(unsafe_code, reason = "parts of the caller's memory refer to each other")]

use crate::config::Setup;
use crate::constants::{WH_ALIGNMENT, WhTier};
use crate::region::Region;
use crate::simulation::{Simulation, each};
use crate::status::WhStatus;
use core::panic::AssertUnwindSafe;
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use wormhole_kernel::accel::Acceleration;
use wormhole_kernel::memo::{Memoisation, Precision};
use wormhole_memo_fmt::{Header, Store};
use wormhole_models::cca::AnyCca;

/// Tells a kernel from other memory. With its address in it, a kernel that was moved is told, too.
const SEAL: usize = 0x5748_4b31 ^ usize::MAX;

/// A simulation in memory of the caller.
pub struct WhKernel {
    /// [`SEAL`] and the address.
    seal: usize,
    /// It has panicked: its state may be anything.
    is_broken: AtomicBool,
    tier: WhTier,
    pub(crate) simulation: Simulation,
    memo: Option<Memo>,
}

/// Where records are.
struct Memo {
    store: *mut Store<'static>,
    /// How the kernel uses them, if it does.
    how: Option<Memoisation>,
}

fn seal_at(kernel: *const WhKernel) -> usize {
    SEAL ^ kernel.addr()
}

/// Runs `work`; a panic becomes a status.
pub(crate) fn guard(work: impl FnOnce() -> Result<(), WhStatus>) -> WhStatus {
    match std::panic::catch_unwind(AssertUnwindSafe(work)) {
        Ok(Ok(())) => WhStatus::Ok,
        Ok(Err(status)) => status,
        Err(payload) => {
            // Dropping it might panic again.
            core::mem::forget(payload);
            WhStatus::Internal
        }
    }
}

/// Whether a kernel is there and may be used.
///
/// # Safety
/// A pointer that is neither null nor misaligned leads to readable memory of a kernel's size.
#[inline]
unsafe fn check(kernel: *const WhKernel) -> Result<(), WhStatus> {
    if kernel.is_null() {
        return Err(WhStatus::NullPointer);
    }
    if !kernel.is_aligned() {
        return Err(WhStatus::Misaligned);
    }
    // SAFETY: readable. Only integers are read as long as it is not known to be a kernel.
    if unsafe { (&raw const (*kernel).seal).read() } != seal_at(kernel) {
        return Err(WhStatus::BadHandle);
    }
    // SAFETY: it is a kernel.
    if unsafe { (*kernel).is_broken.load(Relaxed) } { Err(WhStatus::Internal) } else { Ok(()) }
}

/// Does something with a kernel.
///
/// # Safety
/// As [`check`]; and while this runs nobody else uses the kernel.
#[inline]
pub(crate) unsafe fn with(kernel: *mut WhKernel, work: impl FnOnce(&mut WhKernel) -> Result<(), WhStatus>) -> WhStatus {
    // SAFETY: the caller's promise is ours.
    if let Err(status) = unsafe { check(kernel) } {
        return status;
    }
    let status = guard(|| {
        // SAFETY: a kernel, and for this call ours alone.
        work(unsafe { &mut *kernel })
    });
    // SAFETY: the reference above is gone.
    unsafe { refuse_after(status, kernel) }
}

/// Asks a kernel something.
///
/// # Safety
/// As [`check`]; and while this runs nobody changes the kernel.
#[inline]
pub(crate) unsafe fn ask(kernel: *const WhKernel, work: impl FnOnce(&WhKernel) -> Result<(), WhStatus>) -> WhStatus {
    // SAFETY: the caller's promise is ours.
    if let Err(status) = unsafe { check(kernel) } {
        return status;
    }
    let status = guard(|| {
        // SAFETY: a kernel, and nobody changes it meanwhile.
        work(unsafe { &*kernel })
    });
    // SAFETY: still a kernel.
    unsafe { refuse_after(status, kernel) }
}

/// A kernel in which a defect has shown is not used any more.
///
/// # Safety
/// It is a kernel, and nobody has a `&mut` to it.
#[inline]
unsafe fn refuse_after(status: WhStatus, kernel: *const WhKernel) -> WhStatus {
    if status == WhStatus::Internal {
        // SAFETY: as promised.
        unsafe { (*kernel).is_broken.store(true, Relaxed) };
    }
    status
}

impl WhKernel {
    /// Makes a kernel in `memory`.
    ///
    /// # Errors
    /// [`WhStatus::NullPointer`], [`WhStatus::Misaligned`], and those of [`Setup::build`].
    ///
    /// # Safety
    /// A pointer that is neither null nor misaligned leads to `bytes` of writable memory, zero if the setup says so.
    /// While the kernel is in use nobody else touches it.
    pub(crate) unsafe fn init(
        memory: *mut u8,
        bytes: usize,
        setup: &Setup<'_>,
        cca: impl Fn(usize) -> Result<AnyCca, WhStatus>,
    ) -> Result<*mut WhKernel, WhStatus> {
        if memory.is_null() {
            return Err(WhStatus::NullPointer);
        }
        if !memory.addr().is_multiple_of(WH_ALIGNMENT) {
            return Err(WhStatus::Misaligned);
        }
        // No more than is needed: the rest is not even touched.
        let need = setup.bytes(&cca)?;
        if bytes < need {
            return Err(WhStatus::OutOfMemory);
        }
        if setup.clears() {
            // SAFETY: so much is writable.
            unsafe { memory.write_bytes(0, need) };
        }
        // SAFETY: aligned, and now initialised; the rest is the caller's promise.
        let mut region = unsafe { Region::new(memory, need) };
        let place = region.reserve::<WhKernel>()?;
        // SAFETY: room for it. What may be left there of an earlier kernel is none any more, even if this fails.
        unsafe { (&raw mut (*place).seal).write(0) };
        let (simulation, store) = setup.build(&mut region, cca)?;
        let memo = store.map(|store| Memo { store, how: None });
        let kernel =
            WhKernel { seal: seal_at(place), is_broken: AtomicBool::new(false), tier: WhTier::Off, simulation, memo };
        // SAFETY: the room reserved for it.
        unsafe { place.write(kernel) };
        Ok(place)
    }

    /// Accelerates from now on, or not.
    ///
    /// # Errors
    /// [`WhStatus::OutOfSnapshotWords`]; [`WhStatus::BadConstant`] for tier exact with keys that are not.
    pub(crate) fn accelerate(&mut self, tier: WhTier, how: Acceleration) -> Result<(), WhStatus> {
        let memoisation = self.memo.as_ref().and_then(|memo| memo.how);
        check_precision(tier, memoisation)?;
        each!(&mut self.simulation, kernel => kernel.accelerate(how))?;
        self.tier = tier;
        Ok(())
    }

    /// Looks partitions up from now on.
    ///
    /// # Errors
    /// [`WhStatus::NoMemo`], [`WhStatus::OutOfSnapshotWords`]; [`WhStatus::BadConstant`] as above.
    pub(crate) fn memoise(&mut self, how: Memoisation) -> Result<(), WhStatus> {
        check_precision(self.tier, Some(how))?;
        let memo = self.memo.as_mut().ok_or(WhStatus::NoMemo)?;
        // SAFETY: placed by `init`. If the kernel has a reference to it already, it is replaced by this one.
        let store = unsafe { &mut *memo.store };
        each!(&mut self.simulation, kernel => kernel.memoise(store, how))?;
        memo.how = Some(how);
        Ok(())
    }

    /// Does something with the records, whether the kernel uses them or not.
    ///
    /// # Errors
    /// [`WhStatus::NoMemo`], and those of `work`.
    pub(crate) fn with_store(
        &mut self,
        work: impl FnOnce(&mut Store<'static>) -> Result<(), WhStatus>,
    ) -> Result<(), WhStatus> {
        let memo = self.memo.as_mut().ok_or(WhStatus::NoMemo)?;
        // SAFETY: placed by `init`. The kernel's reference is not used from here on: it is replaced below.
        let result = work(unsafe { &mut *memo.store });
        match memo.how {
            Some(how) => result.and(self.memoise(how)),
            None => result,
        }
    }

    /// The header of memo bytes for this kernel's models.
    pub(crate) fn memo_header(&self) -> Header {
        crate::memo::header(each!(&self.simulation, kernel => kernel.memo_models()))
    }
}

/// Tier exact promises that nothing is changed.
fn check_precision(tier: WhTier, how: Option<Memoisation>) -> Result<(), WhStatus> {
    let is_coarse = how.is_some_and(|how| how.precision == Precision::Quantised);
    if is_coarse && tier == WhTier::Exact { Err(WhStatus::BadConstant) } else { Ok(()) }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::*;

    /// Two hosts on a switch, and little memory: an interpreter runs this, too.
    fn with_kernel(work: impl FnOnce(*mut WhKernel)) {
        let nodes = [WhNodeKind::Host as u8, WhNodeKind::Host as u8, WhNodeKind::Switch as u8];
        let links = [0, 1].map(|a| WhLink { a, b: 2, rate_bps: 100_000_000_000, delay_ps: 1_000_000, loss: 0 });
        let cca = crate::cca::defaults(WhCcaKind::Fixed, size_of::<WhCca>() as u32);
        let config = WhConfig {
            nodes: nodes.as_ptr(),
            node_count: nodes.len(),
            links: links.as_ptr(),
            link_count: links.len(),
            ccas: &cca,
            cca_count: 1,
            queued_flows: 2,
            active_flows: 2,
            packets: 64,
            outputs: 2,
            inputs: 2,
            snapshot_words: 1 << 12,
            memo_words: 1 << 10,
            ..crate::config::defaults(WhProfile::Ps, size_of::<WhConfig>() as u32)
        };
        let (mut bytes, mut kernel) = (0, core::ptr::null_mut());
        // SAFETY: pointers to locals that say what they are; the memory outlives the kernel.
        unsafe {
            assert_eq!(wh_sizeof(&config, &mut bytes), WhStatus::Ok);
            let mut memory = vec![u128::MAX; bytes.div_ceil(WH_ALIGNMENT)];
            assert_eq!(wh_init(memory.as_mut_ptr().cast(), bytes, &config, &mut kernel), WhStatus::Ok);
            work(kernel);
        }
    }

    /// References to the store come and go while the kernel uses it, and everything else, too.
    #[test]
    fn records_go_in_and_out_while_they_are_used() {
        with_kernel(|kernel| {
            let how = WhAcceleration { struct_size: size_of::<WhAcceleration>() as u32, ..Default::default() };
            let how = WhAcceleration { tier: WhTier::Exact as u32, theta_ppm: 1, window_ps: 1, ..how };
            let memoisation = WhMemoisation { struct_size: size_of::<WhMemoisation>() as u32, ..Default::default() };
            let mut done = WhCompletion { struct_size: size_of::<WhCompletion>() as u32, ..Default::default() };
            let mut flow = WhFlow { struct_size: size_of::<WhFlow>() as u32, ..Default::default() };
            let (mut memo, mut bytes, mut records, mut step, mut id) = ([0u8; 4_096], 0, 0, 0, 0);
            let mut fcts = [0; 3];
            // SAFETY: a kernel, and pointers to locals that say what they are.
            unsafe {
                assert_eq!(wh_accelerate(kernel, &how), WhStatus::Ok);
                assert_eq!(wh_memoise(kernel, &memoisation), WhStatus::Ok);
                for fct in &mut fcts {
                    assert_eq!(wh_flow_defaults(&mut flow), WhStatus::Ok);
                    assert_eq!(wh_now(kernel, &mut flow.start_ps), WhStatus::Ok);
                    (flow.dst, flow.bytes) = (1, 5_000);
                    assert_eq!(wh_add_flow(kernel, &flow, &mut id), WhStatus::Ok);
                    assert_eq!(wh_run_bounded(kernel, WH_NEVER, 8, &mut step), WhStatus::Ok);
                    assert_eq!(wh_memo_export(kernel, memo.as_mut_ptr(), memo.len(), &mut bytes), WhStatus::Ok);
                    assert_eq!(wh_memo_import(kernel, memo.as_ptr(), bytes, &mut records), WhStatus::Ok);
                    assert_eq!(wh_run_until(kernel, WH_NEVER, &mut step), WhStatus::Ok);
                    assert_eq!(wh_poll_completion(kernel, &mut done), WhStatus::Ok);
                    *fct = done.fct_ps;
                }
            }
            assert_eq!(fcts, [fcts[0]; 3]);
        });
    }

    #[test]
    fn a_panic_ends_one_kernel_and_nothing_else() {
        with_kernel(|healthy| {
            with_kernel(|kernel| {
                let mut now = 0;
                // SAFETY: kernels, and a pointer to a local.
                unsafe {
                    assert_eq!(with(kernel, |_| panic!("a defect, for the test's sake")), WhStatus::Internal);
                    assert_eq!(wh_now(kernel, &mut now), WhStatus::Internal);
                    assert_eq!(wh_wake_all(kernel), WhStatus::Internal);
                    assert_eq!(wh_now(healthy, &mut now), WhStatus::Ok);
                }
            });
        });
    }
}

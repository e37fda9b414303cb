//! The functions of `wormhole.h`.
//!
//! Each reads its arguments, calls the safe part and writes its results; places for results are checked before anything
//! is done. The documentation comments are those of the header.
#![allow(unsafe_code, reason = "a foreign interface")]
#![allow(clippy::missing_safety_doc, reason = "one contract for all functions: it heads include/wormhole.h")]

use crate::constants::{WH_ABI_VERSION, WH_NEVER, WhCcaKind, WhPlanKind, WhPrecision, WhProfile, WhTier};
use crate::handle::{WhKernel, ask, guard, with};
use crate::pointers::{array, array_mut, element, out, read, slot, string};
use crate::simulation::{each, number};
use crate::status::WhStatus;
use crate::structs::*;
use crate::{cca, config, memo, plan};
use core::ffi::{c_char, c_void};
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::memo::{Memoisation, Precision};
use wormhole_kernel::{
    CapacityError, Completion, ExternalFrame, FlowEnd, FlowSpec, LinkId, NodeId, SimTime, Span, kernel::Step,
};

/// `WH_ABI_VERSION` of the library. A program goes on only if it is that of its header.
#[unsafe(no_mangle)]
pub extern "C" fn wh_abi_version() -> u32 {
    WH_ABI_VERSION
}

/// A few words of English for a status, whatever its number. They stay valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn wh_status_text(status: i32) -> *const c_char {
    WhStatus::text(status).as_ptr()
}

/// Fills in all of `cca` for a `WhCcaKind`. `struct_size` must be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_cca_defaults(cca: *mut WhCca, kind: u32) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { out(cca)? };
        place.write(&cca::defaults(WhCcaKind::of(kind)?, 0));
        Ok(())
    })
}

/// The name of parameter `index` of a `WhCcaKind`, or null if there are not so many. It stays valid for ever.
#[unsafe(no_mangle)]
pub extern "C" fn wh_cca_parameter(kind: u32, index: usize) -> *const c_char {
    let name = WhCcaKind::of(kind).ok().and_then(|kind| cca::parameter(kind, index));
    name.map_or(core::ptr::null(), |name| name.as_ptr())
}

/// Sets a parameter by its name. Names end in their unit: `_ps`, `_bps`, `_packets`; flags are 0 or 1; `window` is 0
/// for none, 1 for the bandwidth-delay product, 2 for that at the present rate. After an error `cca` is as before.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_cca_set(cca: *mut WhCca, name: *const c_char, value: f64) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let (place, mut changed, name) = unsafe { (out(cca)?, read(cca)?, string(name)?) };
        changed.values[cca::index_of(&changed, name)?] = value;
        cca::model(&changed)?;
        place.write(&changed);
        Ok(())
    })
}

/// Fills in all of `plan` for a `WhPlanKind`. `struct_size` must be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_plan_defaults(plan: *mut WhPlan, kind: u32) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { out(plan)? };
        place.write(&plan::defaults(WhPlanKind::of(kind)?, 0));
        Ok(())
    })
}

/// How many nodes and links the fabric of a plan has.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_plan_size(plan: *const WhPlan, node_count: *mut usize, link_count: *mut usize) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let (plan, nodes, links) = unsafe { (read(plan)?, slot(node_count)?, slot(link_count)?) };
        let (node_count, link_count) = plan::size(&plan)?;
        nodes.put(node_count);
        links.put(link_count);
        Ok(())
    })
}

/// Writes the nodes and links of a plan's fabric into arrays of the caller, which has room for so many. What is behind
/// them stays as it is.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_plan_build(
    plan: *const WhPlan,
    nodes: *mut u8,
    node_room: usize,
    links: *mut WhLink,
    link_room: usize,
) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let (plan, nodes, links) = unsafe { (read(plan)?, array_mut(nodes, node_room)?, array_mut(links, link_room)?) };
        plan::build(&plan, nodes, links)
    })
}

/// Fills in all of `config` but arrays for a `WhProfile`: what reference runs have, small limits, no memory for
/// acceleration and records. `struct_size` must be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_config_defaults(config: *mut WhConfig, profile: u32) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { out(config)? };
        place.write(&config::defaults(WhProfile::of(profile)?, 0));
        Ok(())
    })
}

/// Reads a configuration and its arrays, and hands both to `work`.
///
/// # Safety
/// The header's contract.
unsafe fn with_setup<R>(
    config: *const WhConfig,
    work: impl FnOnce(&config::Setup<'_>, &dyn Fn(usize) -> Result<CcaModel, WhStatus>) -> Result<R, WhStatus>,
) -> Result<R, WhStatus> {
    // SAFETY: the header's contract.
    let config = unsafe { read(config)? };
    // SAFETY: the same.
    let nodes = unsafe { array(config.nodes, config.node_count)? };
    // SAFETY: the same.
    let links = unsafe { array(config.links, config.link_count)? };
    let setup = config::Setup::new(&config, nodes, links)?;
    let model = |index| {
        // SAFETY: the same; `index` is below `cca_count`.
        let cca = unsafe { element(config.ccas, index)? };
        cca::model(&cca)
    };
    work(&setup, &model)
}

type CcaModel = wormhole_models::cca::AnyCca;

/// How many bytes of memory a kernel of this configuration takes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_sizeof(config: *const WhConfig, bytes: *mut usize) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { slot(bytes)? };
        // SAFETY: the same.
        place.put(unsafe { with_setup(config, |setup, model| setup.bytes(model))? });
        Ok(())
    })
}

/// Makes a kernel at time 0 in `memory`, and gives the pointer by which it is used. There is nothing to be freed but
/// the memory, which must stay where it is; `wh_init` may be called on it again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_init(
    memory: *mut c_void,
    bytes: usize,
    config: *const WhConfig,
    kernel: *mut *mut WhKernel,
) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { slot(kernel)? };
        // SAFETY: the same.
        let made = unsafe { with_setup(config, |setup, model| WhKernel::init(memory.cast(), bytes, setup, model))? };
        place.put(made);
        Ok(())
    })
}

/// Fills in all of `how` for a `WhTier`. `struct_size` must be set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_acceleration_defaults(how: *mut WhAcceleration, tier: u32) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { out(how)? };
        let tier = WhTier::of(tier)? as u32;
        let Detector::Cycle { theta, window } = Detector::CYCLE else { return Err(WhStatus::Internal) };
        place.write(&WhAcceleration { struct_size: 0, tier, theta_ppm: theta, reserved: 0, window_ps: window.0 });
        Ok(())
    })
}

/// Accelerates from now on, or not. Needs `snapshot_words`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_accelerate(kernel: *mut WhKernel, how: *const WhAcceleration) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let WhAcceleration { tier, theta_ppm, reserved, window_ps, .. } = unsafe { read(how)? };
        let number = WhTier::of(tier)?;
        if reserved != 0 || theta_ppm > 1_000_000 || window_ps == 0 {
            return Err(WhStatus::BadParameter);
        }
        let tier = match number {
            WhTier::Off => Tier::Off,
            WhTier::Exact => Tier::Exact,
            WhTier::Bounded => Tier::Bounded,
        };
        let detector = Detector::Cycle { theta: theta_ppm, window: Span(window_ps) };
        kernel.accelerate(number, Acceleration { tier, detector })
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// Looks states up among the memo records from now on, and keeps what is new there. Has an effect with acceleration
/// only; needs `snapshot_words` and `memo_words`. Tier exact goes with exact keys only.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_memoise(kernel: *mut WhKernel, how: *const WhMemoisation) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let WhMemoisation { precision, check_ppm, reserved, .. } = unsafe { read(how)? };
        let precision = match WhPrecision::of(precision)? {
            WhPrecision::Exact => Precision::Exact,
            WhPrecision::Quantised => Precision::Quantised,
        };
        if reserved != 0 || check_ppm > 1_000_000 {
            return Err(WhStatus::BadParameter);
        }
        kernel.memoise(Memoisation { precision, check: check_ppm })
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// Writes all memo records as the bytes of a memo file. `bytes` is told how many there are; if there is no room for
/// them, nothing is written, and the status is `WH_STATUS_BUFFER_TOO_SHORT`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_memo_export(
    kernel: *mut WhKernel,
    buffer: *mut u8,
    room: usize,
    bytes: *mut usize,
) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let (place, buffer) = unsafe { (slot(bytes)?, array_mut(buffer, room)?) };
        let header = kernel.memo_header();
        kernel.with_store(|store| {
            let length = memo::length(&header, store)?;
            place.put(length);
            memo::export(&header, store, buffer.get_mut(..length).ok_or(WhStatus::BufferTooShort)?)
        })
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// Takes over the records of a memo file, which must be of the same models. `records` is told how many.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_memo_import(
    kernel: *mut WhKernel,
    buffer: *const u8,
    bytes: usize,
    records: *mut usize,
) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let (place, buffer) = unsafe { (slot(records)?, array(buffer, bytes)?) };
        let (header, mut taken) = (kernel.memo_header(), 0);
        let result = kernel.with_store(|store| memo::import(&header, store, buffer, &mut taken));
        place.put(taken);
        result
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// Fills in all of `flow` but hosts, bytes and start: priority 3, the first congestion control. `struct_size` must be
/// set.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_flow_defaults(flow: *mut WhFlow) -> WhStatus {
    guard(|| {
        // SAFETY: the header's contract.
        let place = unsafe { out(flow)? };
        let spec = FlowSpec::new(NodeId(0), NodeId(0), 0, SimTime::ZERO);
        place.write(&WhFlow {
            priority: u32::from(spec.priority),
            src_port: spec.src_port,
            dst_port: spec.dst_port,
            ..WhFlow::default()
        });
        Ok(())
    })
}

/// Adds a flow. `id` is told its number, which its completion has, too.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_add_flow(kernel: *mut WhKernel, flow: *const WhFlow, id: *mut u32) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let (flow, place) = unsafe { (read(flow)?, slot(id)?) };
        let (Ok(priority), Ok(cca)) = (u8::try_from(flow.priority), u8::try_from(flow.cca)) else {
            return Err(WhStatus::BadClass);
        };
        let spec = FlowSpec {
            src: NodeId(flow.src),
            dst: NodeId(flow.dst),
            bytes: flow.bytes,
            start: SimTime(flow.start_ps),
            priority,
            cca,
            src_port: flow.src_port,
            dst_port: flow.dst_port,
            base_rtt: (flow.base_rtt_ps != 0).then_some(Span(flow.base_rtt_ps)),
            bdp: (flow.bdp_bytes != 0).then_some(flow.bdp_bytes),
            token: flow.token,
        };
        place.put(each!(&mut kernel.simulation, kernel => kernel.add_flow(&spec))?.0);
        Ok(())
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// Takes a link down (`up` is 0) or up (1) at a time that is not before now.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_set_link(kernel: *mut WhKernel, at_ps: u64, link: u32, up: u32) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        if up > 1 {
            return Err(WhStatus::BadParameter);
        }
        each!(&mut kernel.simulation, kernel => kernel.set_link(SimTime(at_ps), LinkId(link), up == 1))?;
        Ok(())
    };
    // SAFETY: the header's contract.
    unsafe { with(kernel, work) }
}

/// Hands a frame to the NIC of host `frame->src` at a time that is not before now. `wh_poll_egress` gives it back
/// when it has reached `frame->dst`; a frame that is lost does not come back.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_inject(kernel: *mut WhKernel, at_ps: u64, frame: *const WhFrame) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let frame = unsafe { read(frame)? };
        if frame.bytes == 0 {
            return Err(WhStatus::NoBytes);
        }
        if frame.bytes > u32::from(u16::MAX) || frame.marked > 1 || frame.reserved != 0 {
            return Err(WhStatus::BadParameter);
        }
        let frame = ExternalFrame {
            src_port: frame.src_port,
            dst_port: frame.dst_port,
            priority: frame.priority,
            marked: frame.marked,
            ..ExternalFrame::new(NodeId(frame.src), NodeId(frame.dst), frame.bytes, frame.token)
        };
        each!(&mut kernel.simulation, kernel => kernel.inject(SimTime(at_ps), &frame))?;
        Ok(())
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// The next flow that has ended, in order of time; `WH_STATUS_EMPTY` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_poll_completion(kernel: *mut WhKernel, completion: *mut WhCompletion) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { out(completion)? };
        let done = each!(&mut kernel.simulation, kernel => kernel.poll_completion()).ok_or(WhStatus::Empty)?;
        let gave_up = u32::from(done.end() == FlowEnd::GaveUp);
        let Completion { flow, token, start, fct, bytes, mean_rtt, .. } = done;
        place.write(&WhCompletion {
            struct_size: 0,
            flow: flow.0,
            token,
            start_ps: start.0,
            fct_ps: fct.0,
            bytes,
            mean_rtt_ps: mean_rtt.0,
            gave_up,
            reserved: 0,
        });
        Ok(())
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// The next external frame that has reached its host, in order of time; `WH_STATUS_EMPTY` if there is none.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_poll_egress(kernel: *mut WhKernel, frame: *mut WhFrame) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { out(frame)? };
        let frame = each!(&mut kernel.simulation, kernel => kernel.poll_egress()).ok_or(WhStatus::Empty)?;
        place.write(&WhFrame {
            struct_size: 0,
            src: frame.src.0,
            dst: frame.dst.0,
            bytes: frame.bytes,
            at_ps: frame.at.0,
            token: frame.token,
            src_port: frame.src_port,
            dst_port: frame.dst_port,
            priority: frame.priority,
            marked: frame.marked,
            reserved: 0,
        });
        Ok(())
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// When something happens next; `WH_NEVER` if nothing does.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_next_event_time(kernel: *const WhKernel, at_ps: *mut u64) -> WhStatus {
    let work = |kernel: &WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { slot(at_ps)? };
        let next = each!(&kernel.simulation, kernel => kernel.next_event_time());
        place.put(next.map_or(WH_NEVER, |at| at.0));
        Ok(())
    };
    // SAFETY: the same.
    unsafe { ask(kernel, work) }
}

/// The present simulated time.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_now(kernel: *const WhKernel, now_ps: *mut u64) -> WhStatus {
    let work = |kernel: &WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { slot(now_ps)? };
        place.put(each!(&kernel.simulation, kernel => kernel.now()).0);
        Ok(())
    };
    // SAFETY: the same.
    unsafe { ask(kernel, work) }
}

/// Lets things happen; `step` is told why it returned, as a `WhStep`.
///
/// # Safety
/// The header's contract.
#[inline]
unsafe fn run(
    kernel: *mut WhKernel,
    step: *mut u32,
    run: impl FnOnce(&mut WhKernel) -> Result<Step, CapacityError>,
) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { slot(step)? };
        place.put(number(run(kernel)?));
        Ok(())
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// Lets everything up to and including `limit_ps` happen. `step` is told why it returned, as a `WhStep`.
/// `WH_STATUS_OUT_OF_PACKETS` or `WH_STATUS_OUT_OF_ACTIVE_FLOWS`: the next event needs more than a limit allows, and
/// has not happened; the kernel can still be asked and polled.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_run_until(kernel: *mut WhKernel, limit_ps: u64, step: *mut u32) -> WhStatus {
    // SAFETY: the header's contract.
    unsafe { run(kernel, step, |k| each!(&mut k.simulation, kernel => kernel.run_until(SimTime(limit_ps)))) }
}

/// As `wh_run_until`, but executes at most `budget` events: for hosts that must look after something else meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_run_bounded(kernel: *mut WhKernel, limit_ps: u64, budget: u64, step: *mut u32) -> WhStatus {
    let limit = SimTime(limit_ps);
    // SAFETY: the header's contract.
    unsafe { run(kernel, step, |k| each!(&mut k.simulation, kernel => kernel.run_bounded(limit, budget))) }
}

/// As `wh_run_bounded`, but also returns after an instant in which flows have ended: for hosts whose flows wait for
/// others.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_run_to_completion(
    kernel: *mut WhKernel,
    limit_ps: u64,
    budget: u64,
    step: *mut u32,
) -> WhStatus {
    let limit = SimTime(limit_ps);
    // SAFETY: the header's contract.
    unsafe { run(kernel, step, |k| each!(&mut k.simulation, kernel => kernel.run_to_completion(limit, budget))) }
}

/// Brings counters up to date: what acceleration has parked counts nothing until it wakes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_wake_all(kernel: *mut WhKernel) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        each!(&mut kernel.simulation, kernel => kernel.wake_all());
        Ok(())
    };
    // SAFETY: the header's contract.
    unsafe { with(kernel, work) }
}

/// What the fabric has counted, and what is under way.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_totals(kernel: *const WhKernel, totals: *mut WhTotals) -> WhStatus {
    let work = |kernel: &WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { out(totals)? };
        place.write(&kernel.simulation.totals());
        Ok(())
    };
    // SAFETY: the same.
    unsafe { ask(kernel, work) }
}

/// What acceleration has done.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_skipped(kernel: *const WhKernel, skipped: *mut WhSkipped) -> WhStatus {
    let work = |kernel: &WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { out(skipped)? };
        place.write(&kernel.simulation.skipped());
        Ok(())
    };
    // SAFETY: the same.
    unsafe { ask(kernel, work) }
}

/// What memoisation has done. Needs `memo_words`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_memoised(kernel: *mut WhKernel, memoised: *mut WhMemoised) -> WhStatus {
    let work = |kernel: &mut WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { out(memoised)? };
        let mut records = 0;
        kernel.with_store(|store| {
            records = store.len();
            Ok(())
        })?;
        place.write(&kernel.simulation.memoised(records));
        Ok(())
    };
    // SAFETY: the same.
    unsafe { with(kernel, work) }
}

/// How many ports there are: two a link. The ports of a node are numbered in the order of links, after those of the
/// nodes before it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_port_count(kernel: *const WhKernel, count: *mut u32) -> WhStatus {
    let work = |kernel: &WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { slot(count)? };
        place.put(kernel.simulation.port_count() as u32);
        Ok(())
    };
    // SAFETY: the same.
    unsafe { ask(kernel, work) }
}

/// What a port is and what it has counted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn wh_port_stats(kernel: *const WhKernel, port: u32, stats: *mut WhPortStats) -> WhStatus {
    let work = |kernel: &WhKernel| {
        // SAFETY: the header's contract.
        let place = unsafe { out(stats)? };
        place.write(&kernel.simulation.port_stats(port).ok_or(WhStatus::BadPort)?);
        Ok(())
    };
    // SAFETY: the same.
    unsafe { ask(kernel, work) }
}

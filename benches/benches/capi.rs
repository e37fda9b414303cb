//! What it costs to cross the C interface: the same work done through its functions and directly.
//!
//! The difference of `event/c` and `event/rust` is that of two crossings per event (`wh_next_event_time`,
//! `wh_run_bounded`), that of `frame/c` and `frame/rust` of two per frame (`wh_inject`, `wh_poll_egress`).
//! Functions are called through pointers the compiler knows nothing of, as a program in C does.
#![allow(unsafe_code, reason = "it calls a foreign interface")]

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use std::hint::black_box;
use wormhole_capi::*;
use wormhole_kernel::{
    BitRate, ExternalFrame, FabricSize, FlowSpec, Kernel, Limits, LinkSpec, NodeId, NodeKind, SimTime, Span,
};
use wormhole_models::cca::{AnyCca, Hpcc, HpccConfig};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};

const NODES: [NodeKind; 3] = [NodeKind::Host, NodeKind::Host, NodeKind::Switch];
const RATE: u64 = 100_000_000_000;
const DELAY: u64 = 1_000_000;
/// A flow that no benchmark sees the end of.
const ENDLESS: u64 = 1 << 60;
/// Frames handed over at a time, so that running costs little of a frame.
const FRAMES: u64 = 64;
/// Enough for all of them to arrive.
const ROUND: u64 = 100_000_000;

type World<'a> = Kernel<'a, Ps<'a, Ecmp>>;

/// Two hosts on a switch, in Rust.
fn with_rust(work: impl FnOnce(&mut World<'_>)) {
    let link = |a| LinkSpec { a: NodeId(a), b: NodeId(2), rate: BitRate(RATE), delay: Span(DELAY), loss: 0 };
    let links = [link(0), link(1)];
    let ccas = [AnyCca::Hpcc(Hpcc::new(HpccConfig::default()))];
    let models = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let limits = Limits::default();
    let mut memory = vec![0; World::words(FabricSize::of(&NODES, &links), &limits, &models)];
    work(&mut Kernel::new(&mut memory, &NODES, &links, models, &limits, ()).expect("a kernel"));
}

fn ok(status: WhStatus) {
    assert_eq!(status, WhStatus::Ok);
}

/// The same through the C interface.
fn with_c(work: impl FnOnce(*mut WhKernel)) {
    let nodes = NODES.map(|kind| if kind == NodeKind::Host { WhNodeKind::Host } else { WhNodeKind::Switch } as u8);
    let links = [0, 1].map(|a| WhLink { a, b: 2, rate_bps: RATE, delay_ps: DELAY, loss: 0 });
    let mut cca = WhCca { struct_size: size_of::<WhCca>() as u32, kind: 0, values: [0.0; WH_CCA_VALUES] };
    // SAFETY: all that is zero is a configuration, if not a good one.
    let mut config: WhConfig = unsafe { std::mem::zeroed() };
    config.struct_size = size_of::<WhConfig>() as u32;
    // SAFETY: all pointers are to what they say, and the memory outlives the kernel.
    unsafe {
        ok(wh_cca_defaults(&mut cca, WhCcaKind::Hpcc as u32));
        ok(wh_config_defaults(&mut config, WhProfile::Ps as u32));
        (config.nodes, config.node_count) = (nodes.as_ptr(), nodes.len());
        (config.links, config.link_count) = (links.as_ptr(), links.len());
        (config.ccas, config.cca_count) = (&cca, 1);
        let (mut bytes, mut kernel) = (0, std::ptr::null_mut());
        ok(wh_sizeof(&config, &mut bytes));
        let mut memory = vec![0u128; bytes.div_ceil(size_of::<u128>())];
        ok(wh_init(memory.as_mut_ptr().cast(), bytes, &config, &mut kernel));
        work(kernel);
    }
}

fn event(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("capi/event");
    group.throughput(Throughput::Elements(1));
    with_rust(|kernel| {
        kernel.add_flow(&FlowSpec::new(NodeId(0), NodeId(1), ENDLESS, SimTime::ZERO)).expect("a flow");
        group.bench_function("rust", |bencher| {
            bencher.iter(|| {
                black_box(kernel.next_event_time());
                black_box(kernel.run_bounded(black_box(SimTime::MAX), 1))
            })
        });
    });
    with_c(|kernel| {
        let mut flow = WhFlow { struct_size: size_of::<WhFlow>() as u32, ..WhFlow::default() };
        let (mut id, mut next, mut step) = (0, 0, 0);
        // SAFETY: a kernel, and pointers to locals.
        unsafe {
            ok(wh_flow_defaults(&mut flow));
            (flow.src, flow.dst, flow.bytes) = (0, 1, ENDLESS);
            ok(wh_add_flow(kernel, &flow, &mut id));
        }
        let next_event_time: unsafe extern "C" fn(*const WhKernel, *mut u64) -> WhStatus =
            black_box(wh_next_event_time);
        let run_bounded: unsafe extern "C" fn(*mut WhKernel, u64, u64, *mut u32) -> WhStatus =
            black_box(wh_run_bounded);
        group.bench_function("c", |bencher| {
            // SAFETY: the same.
            bencher.iter(|| unsafe {
                black_box(next_event_time(kernel, &mut next));
                black_box(run_bounded(kernel, black_box(WH_NEVER), 1, &mut step))
            })
        });
    });
    group.finish();
}

fn frame(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("capi/frame");
    group.throughput(Throughput::Elements(FRAMES));
    with_rust(|kernel| {
        group.bench_function("rust", |bencher| {
            bencher.iter(|| {
                let now = kernel.now();
                for token in 0..FRAMES {
                    kernel.inject(now, &ExternalFrame::new(NodeId(0), NodeId(1), 1_000, token)).expect("room");
                }
                kernel.run_until(now + Span(ROUND)).expect("capacity");
                for token in 0..FRAMES {
                    assert_eq!(kernel.poll_egress().map(|frame| frame.token), Some(token));
                }
            })
        });
    });
    with_c(|kernel| {
        let frame = WhFrame {
            struct_size: size_of::<WhFrame>() as u32,
            src: 0,
            dst: 1,
            bytes: 1_000,
            priority: 3,
            ..WhFrame::default()
        };
        let (mut now, mut step) = (0, 0);
        let mut got = frame;
        let inject: unsafe extern "C" fn(*mut WhKernel, u64, *const WhFrame) -> WhStatus = black_box(wh_inject);
        let poll_egress: unsafe extern "C" fn(*mut WhKernel, *mut WhFrame) -> WhStatus = black_box(wh_poll_egress);
        group.bench_function("c", |bencher| {
            // SAFETY: a kernel, and pointers to locals.
            bencher.iter(|| unsafe {
                for token in 0..FRAMES {
                    ok(inject(kernel, now, &WhFrame { token, ..frame }));
                }
                now += ROUND;
                ok(wh_run_until(kernel, now, &mut step));
                for token in 0..FRAMES {
                    ok(poll_egress(kernel, &mut got));
                    assert_eq!(got.token, token);
                }
            })
        });
    });
    group.finish();
}

criterion_group!(benches, event, frame);
criterion_main!(benches);

//! What a memo key costs: canonical order, state and key of one partition, by its number of flows.

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};
use wormhole_benches::star;
use wormhole_kernel::accel::{Acceleration, Detector, Tier};
use wormhole_kernel::memo::Precision;
use wormhole_kernel::router::Router;
use wormhole_kernel::{FabricSize, FlowSpec, Kernel, Limits, ModelSet, NodeId, SimTime};
use wormhole_models::cca::{AnyCca, Dcqcn, DcqcnConfig};
use wormhole_models::profile::Ps;
use wormhole_models::router::{Ecmp, EcmpHash};

/// Hosts that all send to one: a partition of as many flows.
const SIZES: [usize; 4] = [2, 20, 200, 2_000];
/// Words of memory for states: several copies of the largest.
const SNAPSHOT_WORDS: usize = 1 << 23;

fn limits(flows: usize) -> Limits {
    Limits {
        queued_flows: flows,
        active_flows: flows,
        packets: 1 << 16,
        outputs: flows,
        inputs: 0,
        snapshot_words: SNAPSHOT_WORDS,
    }
}

/// All flows have opened; first packets are on their way.
fn open<R: Router>(kernel: &mut Kernel<'_, Ps<'_, R>>, flows: usize) {
    kernel.accelerate(Acceleration { tier: Tier::Exact, detector: Detector::CYCLE }).expect("room for states");
    for src in 1..=flows as u32 {
        kernel.add_flow(&FlowSpec::new(NodeId(src), NodeId(0), 1_000_000, SimTime::ZERO)).expect("room for flows");
    }
    kernel.run_until(SimTime(1)).expect("room for packets");
}

fn key(criterion: &mut Criterion, flows: usize) {
    let graph = star(flows + 1);
    let ccas = [AnyCca::Dcqcn(Dcqcn::new(DcqcnConfig::default()))];
    let models: ModelSet<'_, Ps<'_, Ecmp>> = Ps::models(&ccas, Ecmp::new(EcmpHash::Salted(1)), 1);
    let limits = limits(flows);
    let size = FabricSize::of(&graph.nodes, &graph.links);
    let mut memory = vec![0; Kernel::<Ps<'_, Ecmp>>::words(size, &limits, &models)];
    let kernel = Kernel::new(&mut memory, &graph.nodes, &graph.links, models, &limits, ());
    let mut kernel = kernel.expect("a kernel");
    open(&mut kernel, flows);

    let mut group = criterion.benchmark_group("memo_key");
    group.throughput(Throughput::Elements(flows as u64));
    for (name, precision) in [("exact", Precision::Exact), ("quantised", Precision::Quantised)] {
        let mut lengths = Vec::new();
        kernel.each_key(precision, |key| lengths.push(key.len()));
        assert_eq!(lengths.len(), 1, "partitions of {flows} flows");
        println!("{name}, {flows} flows: {} words", lengths[0]);
        group.bench_function(BenchmarkId::new(name, flows), |bencher| {
            bencher.iter(|| {
                let mut words = 0;
                kernel.each_key(precision, |key| words += key.len());
                words
            })
        });
    }
    group.finish();
}

fn memo_key(criterion: &mut Criterion) {
    SIZES.into_iter().for_each(|flows| key(criterion, flows));
}

criterion_group!(benches, memo_key);
criterion_main!(benches);

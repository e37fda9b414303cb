//! Whole runs: a permutation on a fat-tree under HPCC in profile `ns3`. The throughput is packet-hops.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wormhole_benches::{cpu_time, permutation, run};

fn end_to_end(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("end_to_end");
    group.sample_size(10);
    // k, hosts, bytes a flow: 384,000 and 768,000 packet-hops.
    for (k, hosts, bytes) in [(4, 16, 2_000_000), (8, 128, 500_000)] {
        let scenario = permutation(k, bytes);
        group.throughput(Throughput::Elements(run(&scenario).totals.packet_hops));
        group.bench_function(format!("permutation_hpcc_ns3/{hosts}_hosts"), |bencher| {
            bencher.iter_custom(|runs| cpu_time(&scenario, runs))
        });
    }
    group.finish();
}

criterion_group!(benches, end_to_end);
criterion_main!(benches);

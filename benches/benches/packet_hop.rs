//! The cost of one packet-hop with everything in cache: one flow through one switch under DCQCN.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use wormhole::scenario::Profile;
use wormhole_benches::{cpu_time, lone_flow, run};

/// Long enough for start and end not to matter: 20,000 packet-hops.
const BYTES: u64 = 5_000_000;

fn packet_hop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("packet_hop");
    for profile in [Profile::Ps, Profile::Ns3] {
        let scenario = lone_flow(profile, BYTES);
        group.throughput(Throughput::Elements(run(&scenario).totals.packet_hops));
        group.bench_function(format!("star_dcqcn/{}", profile.name()), |bencher| {
            bencher.iter_custom(|runs| cpu_time(&scenario, runs))
        });
    }
    group.finish();
}

criterion_group!(benches, packet_hop);
criterion_main!(benches);

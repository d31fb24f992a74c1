//! Time to plan and check the recorded 128k and 1M token requests, on one thread.
//!
//! `cargo bench -p mooncake-pd-plan --bench planning [-- FILTER]`. Besides criterion's own report,
//! each row ends in one line: descriptors, and the fastest pass in ns per descriptor.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    reason = "a bench may stop"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::hint::black_box;
use std::time::{Duration, Instant};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mooncake_pd_layout::ByteLen;
use mooncake_pd_plan::{Contract, Options, Pairing, Request};

/// Longer than any row, so that every dead gap is bridged.
const ANY_GAP: u64 = 1 << 30;

fn planning(criterion: &mut Criterion) {
    let bridge = Contract::BridgeDead {
        max_gap: ByteLen::new(ANY_GAP).unwrap(),
    };
    for (model, facts) in common::bench() {
        let (source, destination) = facts.layouts(&model);
        let pairing = Pairing::new(&source, &destination).unwrap();
        for (case, row) in &facts.cases {
            let request = Request::new(&facts.raw_request(case, row), &pairing).unwrap();
            let requests = [request];
            for (label, contract) in [("payload", Contract::PayloadOnly), ("bridge", bridge)] {
                let options = Options {
                    contract,
                    ..Options::default()
                };
                let name = format!("{model}/{case}/{label}");
                measure(criterion, &name, || {
                    pairing.plan(&requests, &options).unwrap()
                });
            }
        }
    }
}

/// Lets criterion time `plan`, dropping its result outside the clock, and prints the fastest pass.
fn measure(criterion: &mut Criterion, name: &str, plan: impl Fn() -> mooncake_pd_plan::Batch) {
    let descriptors = plan().plan.descriptors();
    let mut fastest = Duration::MAX;
    let mut group = criterion.benchmark_group("plan");
    group.throughput(Throughput::Elements(descriptors));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|passes| {
            let mut total = Duration::ZERO;
            for _ in 0..passes {
                let start = Instant::now();
                let batch = black_box(plan());
                let pass = start.elapsed();
                drop(batch);
                fastest = fastest.min(pass);
                total += pass;
            }
            total
        });
    });
    group.finish();
    if fastest < Duration::MAX {
        let count = u32::try_from(descriptors).unwrap();
        let each = fastest.as_secs_f64() * 1e9 / f64::from(count);
        println!("{name}: {descriptors} descriptors, {each:.2} ns each, {fastest:?} in all\n");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = planning
}
criterion_main!(benches);

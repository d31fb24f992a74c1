//! Time of one event of a session machine, by live requests, on one thread.
//!
//! `cargo bench -p mooncake-pd-connector --bench events [-- FILTER]`. Each request has 16 blocks in
//! two groups and names of 36 characters; one begins as another ends. Besides criterion's own
//! report, each row ends in one line: the fastest pass in ns per event, commands taken.

#![allow(
    clippy::unwrap_used,
    clippy::arithmetic_side_effects,
    reason = "a bench may stop"
)]

#[path = "../tests/common/mod.rs"]
mod common;

use std::time::{Duration, Instant};

use common::lives::{DecodeLives, PrefillLives, distinct, names};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use mooncake_pd_connector::{RequestId, TransferId};

/// Lives of one pass.
const LIVES: u32 = 1_000;

fn events(criterion: &mut Criterion) {
    for live in [10, 100, 1_000, 10_000] {
        let tables = distinct(live + 1);
        let mut next = 0;
        let mut lives = PrefillLives::new(live + 1);
        let begin = |lives: &mut PrefillLives, names: (RequestId, TransferId), tables| {
            lives.ask(names.clone(), tables);
            lives.compute(names, tables);
        };
        for tables in tables.iter().skip(1) {
            begin(&mut lives, names(next), tables);
            next += 1;
        }
        measure(
            criterion,
            &format!("prefill/{live}"),
            PrefillLives::EVENTS,
            || {
                let made: Vec<_> = (next..next + u64::from(LIVES)).map(names).collect();
                next += u64::from(LIVES);
                let start = Instant::now();
                for (name, tables) in made.into_iter().zip(tables.iter().cycle()) {
                    begin(&mut lives, name, tables);
                    lives.end();
                }
                start.elapsed()
            },
        );
        let mut lives = DecodeLives::new(live + 1);
        for _ in 0..live {
            lives.begin(names(next), &tables);
            next += 1;
        }
        measure(
            criterion,
            &format!("decode/{live}"),
            DecodeLives::EVENTS,
            || {
                let made: Vec<_> = (next..next + u64::from(LIVES)).map(names).collect();
                next += u64::from(LIVES);
                let start = Instant::now();
                for name in made {
                    lives.begin(name, &tables);
                    lives.end();
                }
                start.elapsed()
            },
        );
    }
}

/// Lets criterion time passes of [`LIVES`] lives, and prints the fastest.
fn measure(criterion: &mut Criterion, name: &str, events: u32, mut pass: impl FnMut() -> Duration) {
    let mut fastest = Duration::MAX;
    let mut group = criterion.benchmark_group("events");
    group.throughput(Throughput::Elements(u64::from(LIVES * events)));
    group.bench_function(name, |bencher| {
        bencher.iter_custom(|passes| {
            let mut total = Duration::ZERO;
            for _ in 0..passes {
                let took = pass();
                fastest = fastest.min(took);
                total += took;
            }
            total
        });
    });
    group.finish();
    if fastest < Duration::MAX {
        let each = fastest.as_secs_f64() * 1e9 / f64::from(LIVES * events);
        println!("{name}: {each:.0} ns for each event\n");
    }
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(10)
        .warm_up_time(Duration::from_millis(200))
        .measurement_time(Duration::from_secs(1));
    targets = events
}
criterion_main!(benches);

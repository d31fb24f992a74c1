//! Bytes over a connection.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use quickcheck::quickcheck;

use super::bench::{Bench, buffer, span};
use crate::batch::Operation;
use crate::engine::{Engine, Patience};
use crate::flight::{InFlight, Outcome, Standing};
use crate::transfer::transfer;

fn move_all(bench: &Bench, operation: Operation, copies: &[(u64, u64, u64)]) {
    let batch = bench.batch(operation, copies);
    let moved = transfer(
        &*bench.prefill,
        &bench.peer,
        &batch,
        Patience::default(),
        |_| {},
    );
    let bytes: u64 = copies.iter().map(|(_, _, len)| len).sum();
    assert_eq!(moved.unwrap().bytes(), bytes);
}

/// Copies with disjoint destinations, out of any numbers.
fn copies(raw: &[(u16, u16, u8)], room: u64) -> Vec<(u64, u64, u64)> {
    let mut end = 0;
    let mut copies = Vec::new();
    for (from, gap, len) in raw {
        // A few are long enough to go without a buffer.
        let len = if len % 8 == 0 {
            u64::from(*len) * 600 + 1
        } else {
            u64::from(*len)
        };
        let start = end + u64::from(*gap) % 700;
        if start + len > room {
            break;
        }
        end = start + len;
        copies.push((u64::from(*from) % (room - len), start, len));
    }
    // Not in the order of addresses.
    let middle = copies.len() / 2;
    copies.rotate_left(middle);
    copies.reverse();
    copies
}

quickcheck! {
    fn any_batch_leaves_exactly_what_it_says(raw: Vec<(u16, u16, u8)>) -> bool {
        let room = 1 << 20;
        let bench = Bench::new(room);
        let copies = copies(&raw, room);
        move_all(&bench, Operation::Write, &copies);
        bench.assert_landed(&copies);
        true
    }

    fn any_read_leaves_exactly_what_it_says(raw: Vec<(u16, u16, u8)>) -> bool {
        let room = 1 << 20;
        let bench = Bench::new(room);
        let reads = copies(&raw, room);
        let there: Vec<u8> = (0..1 << 20).map(|at| super::bench::pattern(at + 77)).collect();
        bench.destination.write().copy_from_slice(&there);
        let before = bench.source.read().to_vec();
        let swapped: Vec<_> = reads.iter().map(|(from, to, len)| (*to, *from, *len)).collect();
        move_all(&bench, Operation::Read, &swapped);
        let expected = Bench::moved(&there, &before, &reads);
        assert!(**bench.destination.read() == *there);
        assert!(**bench.source.read() == *expected);
        true
    }
}

#[test]
fn sizes_around_what_goes_without_a_buffer_are_byte_exact() {
    for len in [
        1,
        511,
        512,
        513,
        (32 << 10) - 1,
        32 << 10,
        (64 << 10) - 1,
        (64 << 10) + 1,
    ] {
        let stride = len + 7;
        let bench = Bench::new(stride * 20);
        let copies: Vec<_> = (0..19)
            .map(|n| (n * stride, (19 - n) * stride, len))
            .collect();
        move_all(&bench, Operation::Write, &copies);
        bench.assert_landed(&copies);
    }
}

#[test]
fn one_long_descriptor_is_byte_exact() {
    let len = (64 << 20) + 1;
    let bench = Bench::new(len + 2);
    move_all(&bench, Operation::Write, &[(0, 1, len)]);
    bench.assert_landed(&[(0, 1, len)]);
}

#[test]
fn c62_100_000_descriptors_arrive_in_portions() {
    let bench = Bench::new(100_000 * 64);
    let copies: Vec<_> = (0..100_000)
        .map(|n| (n * 64, (99_999 - n) * 64, 48))
        .collect();
    move_all(&bench, Operation::Write, &copies);
    bench.assert_landed(&copies);
}

#[test]
fn four_submitters_while_ranges_come_and_go_on_both_sides() {
    let bench = Bench::new(256 * 4_096);
    let copies: Vec<_> = (0..256)
        .map(|n| (n * 4_096, (255 - n) * 4_096, 4_000))
        .collect();
    let stop = AtomicBool::new(false);
    let start = Instant::now();
    std::thread::scope(|scope| {
        let submitters: Vec<_> = copies
            .chunks(64)
            .enumerate()
            .map(|(which, share)| {
                let (bench, batch) = (&bench, bench.batch(Operation::Write, share));
                scope.spawn(move || {
                    let own = bench.prefill.open(bench.decode.name()).unwrap();
                    // Two of them share a connection.
                    let peer = if which < 2 { &bench.peer } else { &own };
                    while start.elapsed() < Duration::from_secs(5) {
                        let patience = Patience::default();
                        transfer(&*bench.prefill, peer, &batch, patience, |_| {}).unwrap();
                    }
                })
            })
            .collect();
        for (engine, base) in [(&*bench.prefill, 1 << 50), (&bench.decode, 1 << 51)] {
            let stop = &stop;
            scope.spawn(move || {
                let spare = buffer(base, 1 << 16);
                while !stop.load(Ordering::Relaxed) {
                    let registration = engine.register(&spare, span(0, 1 << 16)).unwrap();
                    engine.unregister(registration).unwrap();
                }
            });
        }
        let ended: Vec<_> = submitters
            .into_iter()
            .map(std::thread::ScopedJoinHandle::join)
            .collect();
        stop.store(true, Ordering::Relaxed);
        assert!(ended.iter().all(Result::is_ok));
    });
    bench.assert_landed(&copies);
}

#[test]
fn a_buffer_copies_between_its_own_parts_over_one_engine() {
    let bench = Bench::new(16 << 20);
    let peer = bench.prefill.open(bench.prefill.name()).unwrap();
    let half = 8 << 20;
    let batch = {
        let whole = super::bench::map(&bench.source);
        let part = crate::bind::Part {
            source: (super::bench::ID, 0),
            destination: (super::bench::ID, half),
            len: half,
        };
        let limits = bench.prefill.capabilities().submission();
        crate::bind::bind_parts([part], Operation::Write, &whole, &whole, limits).unwrap()
    };
    transfer(&*bench.prefill, &peer, &batch, Patience::default(), |_| {}).unwrap();
    let bytes = bench.source.read();
    let (first, second) = bytes.split_at(8 << 20);
    assert!(first == second);
}

#[test]
fn a_dropped_transfer_goes_on_and_gives_back_what_it_kept() {
    let bench = Bench::new(8 << 20);
    let kept = Arc::new(());
    let batch = bench.batch(Operation::Write, &[(0, 0, 8 << 20)]);
    let engine = Arc::clone(&bench.prefill);
    let mut flight = InFlight::new(engine, bench.peer.clone(), batch, Arc::clone(&kept));
    let _ = flight.poll();
    drop(flight);
    let deadline = Instant::now() + Duration::from_secs(30);
    while Arc::strong_count(&kept) > 1 {
        assert!(Instant::now() < deadline, "it was not given back");
        bench.prefill.orphans.sweep();
        std::thread::yield_now();
    }
    bench.assert_landed(&[(0, 0, 8 << 20)]);
}

#[test]
fn an_engine_dropped_in_mid_transfer_ends_it_and_its_threads() {
    let bench = Bench::new(64 << 20);
    let batch = bench.batch(Operation::Write, &[(0, 0, 64 << 20)]);
    let engine = Arc::clone(&bench.prefill);
    let mut flight = InFlight::new(engine, bench.peer.clone(), batch, ());
    let _ = flight.poll();
    drop(bench.decode);
    let Standing::Ended(outcome) = flight.drain(Patience::default()) else {
        panic!("nobody knows")
    };
    // It may have been faster.
    assert!(matches!(
        outcome,
        Outcome::Completed(_) | Outcome::Failed { .. } | Outcome::NotTaken { .. }
    ));
    assert!(flight.end().is_ok());
}

//! A live request takes little memory on either side.
#![allow(clippy::arithmetic_side_effects, reason = "a test may fail by panic")]

mod common;

use allocation_counter::{AllocationInfo, measure};
use common::lives::{DecodeLives, PrefillLives, distinct, names};

const LIVE: u32 = 10_000;

/// The block ids belong to the engine; the names are the machine's.
fn assert_small(what: &str, memory: &AllocationInfo) {
    let each = memory.bytes_current / i64::from(LIVE);
    let peak = memory.bytes_max / u64::from(LIVE);
    println!("{what}: {each} bytes for each live request, {peak} at most on the way");
    assert!(each > 100, "{what}: {each} bytes can't be all");
    assert!(peak < 1_024, "{what}: {peak} bytes for each live request");
}

#[test]
fn a_live_request_of_a_prefill_rank_takes_less_than_a_kib_besides_its_block_ids() {
    let tables = distinct(LIVE);
    let mut lives = PrefillLives::new(LIVE);
    let waiting = measure(|| {
        for (index, tables) in (0..).zip(&tables) {
            lives.ask(names(index), tables);
        }
    });
    assert_small("waiting for its prompt", &waiting);
    let mut lives = PrefillLives::new(LIVE);
    let under_way = measure(|| {
        for (index, tables) in (0..).zip(&tables) {
            let names = names(index);
            lives.ask(names.clone(), tables);
            lives.compute(names, tables);
        }
    });
    assert_eq!(lives.machine.leases(), tables.len());
    assert_small("being transferred", &under_way);
}

#[test]
fn a_live_load_of_a_decode_rank_takes_less_than_a_kib_besides_its_block_ids() {
    let tables = distinct(LIVE);
    let mut lives = DecodeLives::new(LIVE);
    let memory = measure(|| {
        for index in 0..u64::from(LIVE) {
            lives.begin(names(index), &tables);
        }
    });
    assert_eq!(lives.machine.leases(), tables.len());
    assert_small("loading", &memory);
}

#[test]
fn what_ended_leaves_no_memory_behind() {
    let tables = distinct(64);
    let mut lives = DecodeLives::new(64);
    let mut round = |from: u64| {
        for index in from..from + 64 {
            lives.begin(names(index), &tables);
        }
        for _ in 0..64 {
            lives.end();
        }
    };
    round(0);
    let many = measure(|| (1..100).for_each(|times| round(64 * times)));
    assert!(many.bytes_current < 64 * 64, "{} bytes", many.bytes_current);
}

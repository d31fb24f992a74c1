//! The check of the fuzz target `transfer`, without a fuzzer.
#![cfg(test)]
#![expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]

use std::fs;
use std::path::{Path, PathBuf};

use mooncake_pd_rdma::testing::{check_transfer_bytes, transfers_released};
use quickcheck::{Gen, QuickCheck};

/// Four descriptors in flight at once, no overflow.
const FOUR: u8 = 3;
/// A queue with room for one, that never works again.
const OVERFLOWS: u8 = 4;
/// A descriptor without a fault.
const GOOD: u8 = 7;
/// One whose end nobody ever learns.
const NEVER: u8 = 4;

/// What is done, with the second transfer from 8 on.
const POLL: u8 = 0;
const DRAIN: u8 = 0xF2;
const CANCEL: u8 = 4;
const WAIT: u8 = 0xF5;
const DROP: u8 = 6;
const KILL: u8 = 0xF6;
const END: u8 = 7;
const SECOND: u8 = 8;

/// An input with a fault at some descriptors.
fn input(first: u8, faults: &[(usize, u8)], actions: &[u8]) -> Vec<u8> {
    let mut input = vec![GOOD; 17];
    input[0] = first;
    for (descriptor, fault) in faults {
        input[1 + descriptor] = *fault;
    }
    input.extend(actions);
    input
}

#[test]
fn clean_transfers_give_their_memory_back() {
    assert_eq!(transfers_released(&[]), [true; 2]);
    let second = [POLL, END].map(|action| action | SECOND);
    let actions = [&[POLL, END][..], &second].concat();
    assert_eq!(transfers_released(&input(FOUR, &[], &actions)), [true; 2]);
}

#[test]
fn a_transfer_that_nobody_can_tell_the_end_of_keeps_its_memory() {
    for actions in [
        &[DRAIN, DROP][..],
        &[DRAIN, CANCEL, DRAIN, END],
        &[POLL, WAIT, END, DROP],
    ] {
        let input = input(FOUR, &[(1, NEVER)], actions);
        assert_eq!(transfers_released(&input), [false, true]);
    }
}

#[test]
fn a_transfer_behind_an_overflow_keeps_its_memory() {
    let actions = [DRAIN, END, DRAIN | SECOND, END | SECOND];
    let overflows = input(FOUR | OVERFLOWS, &[], &actions);
    assert_eq!(transfers_released(&overflows), [true, false]);
    let restarts = [&overflows[..], &[KILL, DRAIN | SECOND]].concat();
    assert_eq!(transfers_released(&restarts), [true; 2]);
}

#[test]
fn memory_is_never_released_early() {
    let check: fn(Vec<u8>) -> bool = |bytes| {
        check_transfer_bytes(&bytes);
        true
    };
    QuickCheck::new()
        .rng(Gen::new(128))
        .tests(1_000)
        .quickcheck(check);
}

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/transfer")
}

#[test]
fn every_input_of_the_corpus_of_transfer_passes_the_check() {
    let mut inputs: Vec<PathBuf> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 30, "{} inputs", inputs.len());
    for input in inputs {
        // Shown if the check fails.
        println!("{}", input.display());
        check_transfer_bytes(&fs::read(input).unwrap());
    }
}

/// Bytes that are the same everywhere and always.
fn drawn(seed: u64, len: usize) -> Vec<u8> {
    let mut state = seed;
    let mut next = || {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        state.to_be_bytes()[0]
    };
    (0..len).map(|_| next()).collect()
}

#[test]
#[ignore = "writes fuzz/corpus/transfer anew"]
fn the_corpus_of_transfer_is_written() {
    fs::create_dir_all(folder()).unwrap();
    let write = |name: &str, bytes: Vec<u8>| fs::write(folder().join(name), bytes).unwrap();
    let both = |actions: &[u8]| -> Vec<u8> {
        let pairs = actions.iter().map(|action| [*action, action | SECOND]);
        pairs.flatten().collect()
    };
    let looks = both(&[POLL, WAIT, DRAIN, DRAIN, END]);
    write("clean", input(FOUR, &[], &looks));
    write(
        "one-at-a-time",
        input(0, &[], &[&looks[..], &looks].concat()),
    );
    write("dropped", input(FOUR, &[(0, 1)], &both(&[POLL, DROP])));
    write(
        "cancelled",
        input(0, &[(1, 9)], &both(&[POLL, POLL, CANCEL, DRAIN, END])),
    );
    write(
        "killed",
        input(0, &[(2, 0xF9)], &both(&[POLL, KILL, DRAIN, END])),
    );
    for fault in 0..8_u8 {
        let name = format!("fault-{fault}");
        write(
            &name,
            input(FOUR, &[(1, 0xF8 | fault), (5, 0x10 | fault)], &looks),
        );
    }
    for index in 0..8_u8 {
        let first = FOUR | OVERFLOWS | index << 3 | index << 5;
        write(&format!("overflow-{index}"), input(first, &[], &looks));
    }
    for index in 0..20_u8 {
        let len = 17 + 8 * usize::from(index);
        write(
            &format!("drawn-{index:02}"),
            drawn(u64::from(index) + 1, len),
        );
    }
}

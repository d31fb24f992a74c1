//! Each session machine alone under events of any kind in any order.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::Path;

use mooncake_pd_connector::testing::{check_decode_events, check_prefill_events};
use quickcheck::{Arbitrary, Gen, QuickCheck};

/// Bytes that events are made of.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Arbitrary for Bytes {
    fn arbitrary(g: &mut Gen) -> Self {
        let len = usize::from(u16::arbitrary(g)) % 2_048;
        Self((0..len).map(|_| u8::arbitrary(g)).collect())
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        // Whole stretches first: an event is some bytes.
        let bytes = self.0.clone();
        let sizes = [512, 128, 32, 8, 2, 1];
        let cuts = sizes.into_iter().flat_map(move |size| {
            let bytes = bytes.clone();
            (0..bytes.len()).step_by(size).map(move |at| {
                let mut left = bytes.clone();
                left.drain(at..(at.saturating_add(size)).min(bytes.len()));
                Self(left)
            })
        });
        Box::new(cuts)
    }
}

/// Runs a check over `QUICKCHECK_TESTS` sequences, or over this many.
fn hold(check: fn(Bytes), cases: u64) {
    let cases = std::env::var("QUICKCHECK_TESTS")
        .ok()
        .and_then(|tests| tests.parse().ok())
        .unwrap_or(cases);
    QuickCheck::new().tests(cases).quickcheck(check);
}

#[test]
fn a_prefill_machine_keeps_its_promises_under_any_events() {
    hold(|bytes| check_prefill_events(&bytes.0), 4_000);
}

#[test]
fn a_decode_machine_keeps_its_promises_under_any_events() {
    hold(|bytes| check_decode_events(&bytes.0), 4_000);
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
#[ignore = "writes fuzz/corpus/events anew"]
fn the_corpus_of_events_is_written() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/events");
    fs::create_dir_all(&folder).unwrap();
    for (machine, name) in [(0, "prefill"), (1, "decode")] {
        for index in 0..20_u8 {
            let len = 16 + 16 * usize::from(index);
            let seed = u64::from(index) * 2 + u64::from(machine);
            let bytes = [vec![machine], drawn(seed + 1, len)].concat();
            fs::write(folder.join(format!("{name}-{index:02}")), bytes).unwrap();
        }
    }
}

//! Properties of planning and of the check, over generated layouts and
//! requests.

use mooncake_pd_plan::testing::{check_check_bytes, check_plan_bytes};
use quickcheck::{Arbitrary, Gen, QuickCheck};

/// Bytes that a case is made of.
#[derive(Clone, Debug)]
struct Bytes(Vec<u8>);

impl Arbitrary for Bytes {
    fn arbitrary(g: &mut Gen) -> Self {
        let len = usize::from(u16::arbitrary(g)) % 768;
        Self((0..len).map(|_| u8::arbitrary(g)).collect())
    }

    fn shrink(&self) -> Box<dyn Iterator<Item = Self>> {
        quickcheck::empty_shrinker()
    }
}

/// Runs a property over `QUICKCHECK_TESTS` cases, or over this many.
fn hold(property: fn(Bytes), cases: u64) {
    let cases = std::env::var("QUICKCHECK_TESTS")
        .ok()
        .and_then(|tests| tests.parse().ok())
        .unwrap_or(cases);
    QuickCheck::new().tests(cases).quickcheck(property);
}

#[test]
fn plans_are_the_copy_of_every_demanded_byte_and_nothing_else() {
    hold(|bytes| check_plan_bytes(&bytes.0), 1_000);
}

#[test]
fn the_check_agrees_with_the_reference_and_rejects_every_mutation() {
    hold(|bytes| check_check_bytes(&bytes.0), 1_000);
}

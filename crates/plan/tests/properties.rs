//! Properties of planning and of the check, over generated layouts and
//! requests.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a case that can't be planned fails the test"
)]

use std::collections::BTreeSet;

use mooncake_pd_plan::testing::{Case, check_check_bytes, check_plan_bytes};
use mooncake_pd_plan::{
    Contract, Leases, Options, Pairing, Request, RequestError, Section, UnfilledReason,
};
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
    hold(|bytes| check_plan_bytes(&bytes.0), 3_000);
}

#[test]
fn the_check_agrees_with_the_reference_and_rejects_every_mutation() {
    hold(|bytes| check_check_bytes(&bytes.0), 3_000);
}

/// What kinds of things happen when a case is planned.
fn outcomes(case: &Case, seen: &mut BTreeSet<&'static str>) {
    let pairing = Pairing::new(&case.source, &case.destination).unwrap();
    let mut parse = |requests: &[_]| -> Vec<Request> {
        let parsed = requests.iter().map(|raw| Request::new(raw, &pairing));
        let parsed: Vec<_> = parsed.collect();
        let errors = parsed.iter().filter_map(|request| request.as_ref().err());
        seen.extend(errors.map(name));
        parsed.into_iter().flatten().collect()
    };
    let (earlier, requests) = (parse(&case.leased), parse(&case.requests));
    let mut leases = Leases::default();
    let earlier = pairing.plan(&earlier, &Options::default()).unwrap();
    let _lease = leases.add(&earlier.plan).unwrap();
    let options = Options {
        contract: case.contract,
        leases: Some(&leases),
        ..Options::default()
    };
    let batch = pairing.plan(&requests, &options).unwrap();
    seen.extend(batch.refused.iter().map(|refused| name(&refused.error)));
    let plan = &batch.plan;
    let moved = plan.sections().iter().filter(|s| !s.pairs().is_empty());
    let blocks: usize = moved.clone().map(|section| section.pairs().len()).sum();
    let requests: BTreeSet<usize> = moved.map(Section::request).collect();
    let found = [
        ("several requests", requests.len() > 1),
        ("several blocks", blocks > 2),
        ("runs of blocks", plan.sections().iter().any(is_run)),
        ("bridged", plan.bytes() > plan.payload_bytes()),
        (
            "not bridged",
            case.contract != Contract::PayloadOnly && plan.bytes() == plan.payload_bytes(),
        ),
        (
            "local layers",
            plan.sections().iter().any(|s| !s.local_layers().is_empty()),
        ),
        ("leased", !leases.is_empty()),
    ];
    seen.extend(
        found
            .iter()
            .filter(|(_, happened)| *happened)
            .map(|(name, _)| *name),
    );
    seen.extend(
        plan.unfilled()
            .iter()
            .map(|unfilled| match unfilled.reason {
                UnfilledReason::SourceNull => "source null",
                UnfilledReason::NotHeld => "not held",
                UnfilledReason::BeyondComputed => "beyond computed",
                UnfilledReason::NotLatestState => "not latest",
                UnfilledReason::OutsideWindow => "outside window",
            }),
    );
}

/// Whether one copy moves several blocks: otherwise every block takes as many.
fn is_run(section: &Section) -> bool {
    let blocks = u64::try_from(section.pairs().len()).unwrap();
    blocks > 0 && !section.copies().is_multiple_of(blocks)
}

fn name(error: &RequestError) -> &'static str {
    match error {
        RequestError::Entry { .. } => "entry",
        RequestError::TailShort { .. } => "tail short",
        RequestError::PositionOverflow { .. } => "position overflow",
        RequestError::DestinationTaken { .. } => "destination taken",
        RequestError::SourceTaken { .. } => "source taken",
        RequestError::SharedBytes { .. } => "shared bytes",
        _ => "another error",
    }
}

#[test]
fn generated_cases_reach_every_outcome() {
    let mut seen = BTreeSet::new();
    let mut state = 1_u64;
    for _ in 0..3_000 {
        let bytes: Vec<u8> = (0..600)
            .map(|_| {
                state = state
                    .wrapping_mul(6_364_136_223_846_793_005)
                    .wrapping_add(1);
                state.to_be_bytes()[0]
            })
            .collect();
        outcomes(&Case::new(&bytes), &mut seen);
    }
    let expected = BTreeSet::from([
        "beyond computed",
        "bridged",
        "destination taken",
        "entry",
        "leased",
        "local layers",
        "not bridged",
        "not held",
        "not latest",
        "outside window",
        "runs of blocks",
        "several blocks",
        "several requests",
        "shared bytes",
        "source null",
        "source taken",
        "tail short",
        "position overflow",
    ]);
    assert_eq!(seen, expected);
}

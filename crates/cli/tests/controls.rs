//! Transfers that go wrong must be seen to go wrong.

#![expect(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    clippy::unwrap_used,
    reason = "a test may fail by panic"
)]

use std::time::Duration;

use mooncake_pd::Meter;
use mooncake_pd::args::PairArgs;
use mooncake_pd::batch::{Batch, Planned};
use mooncake_pd::commands::verified;
use mooncake_pd::failure::Exit;
use mooncake_pd::pair::Pair;
use mooncake_pd::sides::Sides;
use mooncake_pd::verify::{self, Demand, Outcome, Side, WalkError};
use mooncake_pd::walk::lists;
use mooncake_pd_layout::AllocationId;
use mooncake_pd_plan::{Copy, Pairing};

/// Source allocation and offset, destination allocation and offset, length.
type Move = (u32, usize, u32, usize, usize);

/// Attention with a hole between its two fields, and a state in the same
/// rows, whose first field lies in that hole.
fn layout(blocks: u32) -> String {
    format!(
        r#"{{"format":"mooncake-pd-layout/1",
 "allocations":[{{"id":0,"len":{}}}],
 "pools":[{{"id":0,"capacity":{blocks},"null_id":0}}],
 "groups":[
  {{"id":0,"kind":"full_attention","tokens_per_block":4,"pool":0,"layers":[{{"name":"a","fields":[
   {{"name":"k","dtype":"float16","allocation":0,"offset":0,"page_stride":256,
    "dims":[{{"axis":"token","extent":4,"stride":16}},{{"axis":"content","extent":8,"stride":2}}]}},
   {{"name":"v","dtype":"float16","allocation":0,"offset":128,"page_stride":256,
    "dims":[{{"axis":"token","extent":4,"stride":16}},{{"axis":"content","extent":8,"stride":2}}]}}]}}]}},
  {{"id":1,"kind":"gdn_state","tokens_per_block":4,"pool":0,"layers":[{{"name":"s","fields":[
   {{"name":"conv","dtype":"uint8","allocation":0,"offset":70,"page_stride":256,
    "dims":[{{"axis":"content","extent":50,"stride":1}}]}},
   {{"name":"state","dtype":"float32","allocation":0,"offset":200,"page_stride":256,
    "dims":[{{"axis":"content","extent":10,"stride":4}}]}}]}}]}}]}}"#,
        blocks * 256
    )
}

/// Two attention blocks and a state, to the destination blocks given.
fn request(attention: [u32; 2], state: u32) -> String {
    let [first, second] = attention;
    format!(
        r#"{{"format":"mooncake-pd-request/1","requests":[{{"id":"r","computed_tokens":8,"groups":[
        {{"group":0,"source":{{"entries":[3,5]}},"destination":{{"entries":[{first},{second}]}}}},
        {{"group":1,"source":{{"entries":[0,7]}},"destination":{{"entries":[{state}]}}}}]}}]}}"#
    )
}

fn pair(request: &str, contract: &str) -> Pair {
    let args = PairArgs {
        blocks: None,
        contract: contract.parse().unwrap(),
    };
    Pair::of(
        ("p", layout(9)),
        ("d", layout(12)),
        (&"r".parse().unwrap(), request),
        &args,
    )
    .unwrap()
}

fn plan(pair: &Pair) -> Planned {
    let pairing = Pairing::new(pair.source.layout(), pair.destination.layout()).unwrap();
    let batch = Batch::new(&pairing, &pair.requests, pair.options());
    batch.plan().unwrap()
}

fn demand(pair: &Pair) -> Demand {
    let lists: Vec<_> = pair.requests.iter().map(lists).collect();
    verify::demand(
        &pair.source.raw().unwrap(),
        &pair.destination.raw().unwrap(),
        &lists,
    )
    .unwrap()
}

fn moves(plan: &Planned) -> Vec<Move> {
    let at = |offset: u64| usize::try_from(offset).unwrap();
    plan.plan
        .copies()
        .map(|copy| {
            (
                copy.source().get(),
                at(copy.source_offset().get()),
                copy.destination().get(),
                at(copy.destination_offset().get()),
                at(copy.len().get()),
            )
        })
        .collect()
}

/// Runs moves that no plan gave, byte by byte.
fn outcome(pair: &Pair, moves: &[Move], touched: Option<usize>) -> Outcome {
    let meter = Meter::new(0);
    let (source, destination) = (pair.source.layout(), pair.destination.layout());
    let sides = Sides::filled(source, destination, &meter).unwrap();
    for &(from, at, to, to_at, len) in moves {
        let from = sides.source().buffer(AllocationId::new(from)).unwrap();
        let to = sides.destination().buffer(AllocationId::new(to)).unwrap();
        to.write()[to_at..to_at + len].copy_from_slice(&from.read()[at..at + len]);
    }
    if let Some(at) = touched {
        let source = sides.source().buffer(AllocationId::new(0)).unwrap();
        source.write()[at] ^= 0x55;
    }
    sides.check(&demand(pair), &meter).unwrap()
}

#[test]
fn the_right_moves_pass() {
    let pair = pair(&request([4, 6], 8), "payload-only");
    let moves = moves(&plan(&pair));
    // Two fields of two blocks and of one state.
    assert_eq!(moves.len(), 6);
    let right = outcome(&pair, &moves, None);
    assert!(right.passed(), "{right:?}");
    assert_eq!(right.bytes, (9 + 12) * 256);
}

#[test]
fn every_single_mutation_of_a_move_is_reported() {
    let pair = pair(&request([4, 6], 8), "payload-only");
    let moves = moves(&plan(&pair));
    let mut mutants: Vec<(String, Vec<Move>)> = Vec::new();
    for at in 0..moves.len() {
        let mut mutant = |name: &str, change: &dyn Fn(&mut Move)| {
            let mut changed = moves.clone();
            change(&mut changed[at]);
            mutants.push((format!("{name} {at}"), changed));
        };
        mutant("drop", &|m| m.4 = 0);
        mutant("shrink", &|m| m.4 -= 1);
        mutant("grow into padding", &|m| m.4 += 1);
        mutant("shift source", &|m| m.1 += 1);
        mutant("shift destination", &|m| m.3 += 1);
        mutant("other source block", &|m| m.1 ^= 256);
        mutant("other destination block", &|m| m.3 += 256);
        for other in 0..at {
            let mut swapped = moves.clone();
            (swapped[at].3, swapped[other].3) = (moves[other].3, moves[at].3);
            if swapped[at].4 == swapped[other].4 {
                mutants.push((format!("swap {at} {other}"), swapped));
            }
        }
    }
    let mut extra = moves.clone();
    extra.push((0, 0, 0, 11 * 256 + 255, 1));
    mutants.push(("last byte of the allocation".to_owned(), extra));
    assert!(mutants.len() > 42);
    for (name, mutant) in mutants {
        let wrong = outcome(&pair, &mutant, None);
        assert!(!wrong.passed(), "{name} passed");
        assert!(!wrong.first.is_empty(), "{name}");
    }
}

#[test]
fn a_touched_source_is_reported() {
    let pair = pair(&request([4, 6], 8), "payload-only");
    let moves = moves(&plan(&pair));
    for at in [0, 3 * 256, 9 * 256 - 1] {
        let wrong = outcome(&pair, &moves, Some(at));
        assert_eq!(wrong.wrong, 1);
        assert_eq!(wrong.first[0].side, Side::Prefill);
    }
}

fn exit(pair: &Pair, planned: &Planned, copies: Vec<Copy>) -> (Exit, String) {
    let report = verified("test", pair, planned, Duration::ZERO, copies).unwrap();
    (report.exit(), report.to_string())
}

#[test]
fn a_failed_verification_ends_with_exit_code_1_and_names_the_byte() {
    let pair = pair(&request([4, 6], 8), "payload-only");
    let planned = plan(&pair);
    let all: Vec<Copy> = planned.plan.copies().collect();
    let (right, text) = exit(&pair, &planned, all.clone());
    assert_eq!(right.code(), 0, "{text}");
    assert!(text.contains("verified: ok"), "{text}");
    let (wrong, text) = exit(&pair, &planned, all[1..].to_vec());
    assert_eq!(wrong.code(), 1, "{text}");
    assert!(text.contains("verified: failed"), "{text}");
    assert!(
        text.contains("destination allocation 0 byte 1024"),
        "{text}"
    );
    assert!(text.contains("of group 0 layer a k block 4"), "{text}");
}

#[test]
fn the_moves_of_another_request_are_reported() {
    let pair = pair(&request([4, 6], 8), "payload-only");
    for other in [request([6, 4], 8), request([4, 6], 9), request([4, 10], 8)] {
        let other = plan(&self::pair(&other, "payload-only"));
        let planned = plan(&pair);
        let (wrong, text) = exit(&pair, &planned, other.plan.copies().collect());
        assert_eq!(wrong, Exit::Unverified, "{text}");
    }
}

#[test]
fn bridged_padding_fails_where_only_payload_was_agreed() {
    let strict = pair(&request([4, 6], 8), "payload-only");
    let bridging = plan(&pair(&request([4, 6], 8), "bridge-dead"));
    assert!(bridging.plan.bytes() > bridging.plan.payload_bytes());
    let (wrong, text) = exit(&strict, &plan(&strict), bridging.plan.copies().collect());
    assert_eq!(wrong, Exit::Unverified, "{text}");
    assert!(text.contains("must not change"), "{text}");
    let agreed = pair(&request([4, 6], 8), "bridge-dead");
    let (right, text) = exit(&agreed, &bridging, bridging.plan.copies().collect());
    assert_eq!(right, Exit::Ok, "{text}");
}

#[test]
fn a_bridge_over_somebodys_bytes_or_over_the_limit_is_an_error() {
    let pair = pair(&request([4, 6], 8), "bridge-dead");
    let raw = pair.destination.raw().unwrap();
    let bridge = |copy, max_gap| verify::bridge(&mut demand(&pair), &raw, [copy], max_gap);
    let row = |block: u64| block * 256;
    // From k to v of block 4, over a hole that only states use: 64 bytes.
    let over_hole = (0, row(3), 0, row(4), 192);
    assert_eq!(bridge(over_hole, 64), Ok(()));
    assert!(matches!(bridge(over_hole, 63), Err(WalkError::Gap { .. })));
    // Over the attention bytes of block 5, which is nobody's in this batch.
    let over_block = (0, row(3), 0, row(4), 320);
    assert!(matches!(
        bridge(over_block, 1000),
        Err(WalkError::Alive { .. })
    ));
    // From conv to state of block 8, over the attention's v: dead now.
    assert_eq!(bridge((0, row(7) + 70, 0, row(8) + 70, 170), 80), Ok(()));
    // The row after the state's own end: padding, then block 9.
    assert!(matches!(
        bridge((0, row(7) + 200, 0, row(8) + 200, 60), 80),
        Err(WalkError::Alive { .. })
    ));
}

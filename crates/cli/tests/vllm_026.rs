//! A request between two sizes of the layout that was caught in a running vLLM
//! 0.26: no copies were recorded there, so the walker over the capture is the
//! reference.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use common::moves::Moves;
use common::{bridge_all, demanded, plan, planned, text};
use mooncake_pd::Meter;
use mooncake_pd::sides::Sides;
use mooncake_pd::verify::{Layout, Side, demand};
use mooncake_pd::walk::lists;
use mooncake_pd_layout::{CacheLayout, Group, GroupKind, PoolId, import};
use mooncake_pd_plan::{Contract, Pairing, RawRequest, RawSlots, RawTables, Request};

fn capture() -> String {
    text("vllm-0.26", "qwen3-next-tiny.h200.json")
}

fn resized(layout: &CacheLayout, blocks: u32, side: Side) -> (CacheLayout, Layout) {
    let layout = layout.resized(PoolId::new(0), blocks).unwrap();
    let views = Layout::read(&layout.to_json().unwrap(), side).unwrap();
    (layout, views)
}

/// 500 tokens are 4 blocks of 144; the destination has the first one cached.
fn request() -> RawRequest {
    let slots = |entries: &[u64]| RawSlots {
        first_block: None,
        entries: entries
            .iter()
            .map(|&id| Some(id).filter(|&id| id != 0))
            .collect(),
    };
    let tables = |group, source, destination| RawTables {
        group,
        source: slots(source),
        destination: slots(destination),
    };
    RawRequest {
        id: "r".to_owned(),
        computed_tokens: Some(500),
        tail_aligned: false,
        groups: vec![
            tables(0, &[0, 0, 0, 9], &[5]),
            tables(1, &[3, 4, 11, 7], &[8, 9, 2]),
        ],
    }
}

#[test]
fn a_request_moves_the_bytes_that_the_walker_finds_in_the_capture() {
    let text = capture();
    let source = import::vllm_026(&text).unwrap();
    let kinds: Vec<GroupKind> = source.groups().iter().map(Group::kind).collect();
    assert_eq!(kinds, [GroupKind::GdnState, GroupKind::FullAttention]);
    let views = Layout::read(&text, Side::Prefill).unwrap();
    let (destination, destination_views) = resized(&source, 3000, Side::Decode);

    let pairing = Pairing::new(&source, &destination).unwrap();
    let raw = request();
    let requests = [Request::new(&raw, &pairing).unwrap()];
    let plain = plan(&pairing, &requests, Contract::PayloadOnly).plan;
    assert_eq!(plain.unfilled(), []);
    let walked = demand(&views, &destination_views, &[lists(&raw)]).unwrap();
    assert_eq!(planned(&plain), demanded(&walked));
    // Two layers with 6,144 and 131,072 bytes of states in one block, and two
    // with three blocks of 147,456 bytes of keys and values.
    assert_eq!(plain.bytes(), 2 * (6_144 + 131_072) + 2 * 3 * 147_456);

    let bridged = plan(&pairing, &requests, bridge_all()).plan;
    assert_eq!(bridged.payload_bytes(), plain.bytes());
    assert_eq!(planned(&plain).minus(&planned(&bridged)), Moves::default());
}

#[test]
fn c61_the_same_request_over_loopback_changes_no_other_byte() {
    let captured = import::vllm_026(&capture()).unwrap();
    let (source, views) = resized(&captured, 12, Side::Prefill);
    let (destination, destination_views) = resized(&captured, 10, Side::Decode);
    let pairing = Pairing::new(&source, &destination).unwrap();
    let raw = request();
    let requests = [Request::new(&raw, &pairing).unwrap()];
    let plain = plan(&pairing, &requests, Contract::PayloadOnly).plan;
    let walked = demand(&views, &destination_views, &[lists(&raw)]).unwrap();
    let meter = Meter::new(0);
    let sides = Sides::filled(&source, &destination, &meter).unwrap();
    let moved = sides.transfer(plain.copies(), &meter).unwrap();
    assert_eq!(moved.bytes, plain.bytes());
    let outcome = sides.check(&walked, &meter).unwrap();
    assert!(outcome.passed(), "{outcome:?}");
}

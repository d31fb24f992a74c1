//! Plans as people read them, held by snapshots.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail by panic"
)]

mod common;

use common::vllm::{Model, oracle};
use common::{bridge_all, plan};
use mooncake_pd_plan::{Contract, Pairing, RawRequest, Request};

fn explain(model: &Model, raw: &[RawRequest], contract: Contract) -> String {
    let pairing = Pairing::new(&model.source, &model.destination).unwrap();
    let requests: Vec<Request> = raw
        .iter()
        .map(|raw| Request::new(raw, &pairing).unwrap())
        .collect();
    let batch = plan(&pairing, &requests, contract);
    assert_eq!(batch.refused, []);
    batch.plan.explain()
}

/// A model and the requests of one of its recorded cases.
fn recorded(model: &str, case: &str) -> (Model, Vec<RawRequest>) {
    let (cases, _) = oracle(model);
    let case = cases.iter().find(|found| found.name == case).unwrap();
    (Model::read(model), case.requests().unwrap())
}

/// The request as it is when the destination has the whole prompt cached: it
/// lists the state slots, or the window's blocks, and no others.
fn fully_cached(mut raw: Vec<RawRequest>, cached: &[usize]) -> Vec<RawRequest> {
    for &group in cached {
        raw[0].groups[group].destination.entries.clear();
    }
    raw
}

const QWEN: &str = "qwen3.5-0.8b";
const V4: &str = "deepseek-v4-flash";
const NONE: &str = "sequential/full";
const PARTIAL: &str = "sequential/consumer-prefix-hit";

#[test]
fn qwen_without_a_prefix_on_the_destination() {
    let (model, raw) = recorded(QWEN, NONE);
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn qwen_with_a_partial_prefix_on_the_destination() {
    let (model, raw) = recorded(QWEN, PARTIAL);
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn qwen_with_the_full_prefix_on_the_destination() {
    let (model, raw) = recorded(QWEN, NONE);
    let raw = fully_cached(raw, &[3]);
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn v4_without_a_prefix_on_the_destination() {
    let (model, raw) = recorded(V4, NONE);
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn v4_without_a_prefix_and_with_bridged_gaps() {
    let (model, raw) = recorded(V4, NONE);
    insta::assert_snapshot!(explain(&model, &raw, bridge_all()));
}

#[test]
fn v4_with_a_partial_prefix_on_the_destination() {
    let (model, raw) = recorded(V4, PARTIAL);
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn v4_with_the_full_prefix_on_the_destination() {
    let (model, raw) = recorded(V4, NONE);
    // The compressors' states are not cached by prefix.
    let raw = fully_cached(raw, &[0, 1, 2]);
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn what_is_not_filled_and_layers_of_the_destination_alone_are_named() {
    let (model, mut raw) = recorded("gpt-oss-120b", "fragmented/consumer-prefix-hit");
    // The source lost a block of its window; the destination offers a
    // look-ahead block and one that the window does not reach any more.
    raw[0].groups[0].source.entries[8] = None;
    let blocks = &mut raw[0].groups[0].destination;
    blocks.first_block = Some(16);
    blocks.entries.insert(0, Some(140));
    let blocks = &mut raw[0].groups[1].destination;
    blocks.first_block = Some(11);
    blocks.entries.push(Some(141));
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

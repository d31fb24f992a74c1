//! Plans as people read them, held by snapshots.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test may fail by panic"
)]

mod common;

use std::slice;

use common::bench::{Bench, file};
use common::vllm::{Model, oracle};
use common::{bridge_all, plan};
use mooncake_pd_layout::CacheLayout;
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
fn what_is_not_filled_is_named_with_its_reason() {
    let (model, mut raw) = recorded("gpt-oss-120b", "fragmented/consumer-prefix-hit");
    // The source lost a block of its window; the destination offers blocks that
    // the window does not reach any more, and one beyond the prompt.
    raw[0].groups[0].source.entries[8] = None;
    let blocks = &mut raw[0].groups[0].destination;
    blocks.first_block = Some(15);
    blocks.entries.splice(..0, [Some(140), Some(139)]);
    let blocks = &mut raw[0].groups[1].destination;
    blocks.first_block = Some(11);
    blocks.entries.push(Some(141));
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn c13_layers_of_the_destination_alone_are_named() {
    let (mut model, raw) = recorded("gpt-oss-120b", "sequential/full");
    let mut source = model.source.to_raw();
    source.groups[1].layers.pop().unwrap();
    model.source = CacheLayout::new(&source).unwrap();
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn long_lists_are_cut_and_names_are_escaped() {
    let (model, mut raw) = recorded("deepseek-v3-flashattn-bs16", "fragmented/full");
    raw[0].id = "d-a\n0 copies".to_owned();
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

#[test]
fn a_copy_that_runs_over_groups_is_counted_where_it_begins() {
    let Bench { model, rows } = Bench::read(V4, &file()[V4], &["contiguous"]);
    let text = explain(&model, slice::from_ref(&rows[0].request), bridge_all());
    insta::assert_snapshot!(text);
}

#[test]
fn a_plan_without_copies_says_so() {
    let (model, raw) = recorded(QWEN, "synthetic/empty-remote");
    insta::assert_snapshot!(explain(&model, &raw, Contract::PayloadOnly));
}

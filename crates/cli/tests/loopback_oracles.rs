//! Recorded requests from end to end: both sides in memory, registered, moved
//! over Loopback, and every byte of both looked at afterwards.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use common::vllm::{Model, oracle};
use common::{bridge_all, plan, text};
use mooncake_pd::Meter;
use mooncake_pd::request::{RequestName, parse};
use mooncake_pd::sides::Sides;
use mooncake_pd::verify::{self, Layout, Side, bridge, demand};
use mooncake_pd::walk::lists;
use mooncake_pd_layout::CacheLayout;
use mooncake_pd_layout::import::{Side as ReportSide, sglang};
use mooncake_pd_plan::{Contract, Pairing, RawRequest, Request};

/// The shortest lists of ids: small enough to fill in a test.
const NULLS: &str = "synthetic/null0-in-mamba+suffix";

/// Blocks of the model that the requests need: one more than their greatest id.
fn enough(requests: &[RawRequest]) -> [u32; 2] {
    let most = |entries: &mut dyn Iterator<Item = Option<u64>>| {
        u32::try_from(
            entries
                .flatten()
                .map(|id| id.saturating_add(1))
                .max()
                .unwrap(),
        )
        .unwrap()
    };
    let groups = || requests.iter().flat_map(|request| &request.groups);
    [
        most(&mut groups().flat_map(|tables| tables.source.entries.iter().copied())),
        most(&mut groups().flat_map(|tables| tables.destination.entries.iter().copied())),
    ]
}

/// Moves the requests and gives what was found wrong, of how many bytes.
fn run(
    layouts: [&CacheLayout; 2],
    views: [&Layout; 2],
    raw: &[RawRequest],
    contract: Contract,
) -> verify::Outcome {
    let [source, destination] = layouts;
    let pairing = Pairing::new(source, destination).unwrap();
    let requests: Vec<Request> = raw
        .iter()
        .map(|raw| Request::new(raw, &pairing).unwrap())
        .collect();
    let batch = plan(&pairing, &requests, contract);
    assert_eq!(batch.refused, []);
    let walked: Vec<_> = raw.iter().map(lists).collect();
    let mut wanted = demand(views[0], views[1], &walked).unwrap();
    if contract != Contract::PayloadOnly {
        let copies = batch.plan.copies().map(|copy| {
            (
                copy.source().get(),
                copy.source_offset().get(),
                copy.destination().get(),
                copy.destination_offset().get(),
                copy.len().get(),
            )
        });
        bridge(&mut wanted, views[1], copies, 1 << 40).unwrap();
    }
    let meter = Meter::new(0);
    let sides = Sides::filled(source, destination, &meter).unwrap();
    let moved = sides.transfer(batch.plan.copies(), &meter).unwrap();
    // Exactly the demanded bytes, and with bridged gaps those.
    assert_eq!(
        moved.bytes,
        wanted.rows.iter().map(|row| row.len).sum::<u64>()
    );
    assert_eq!(moved.bytes, batch.plan.bytes());
    assert_eq!(moved.descriptors, batch.plan.descriptors());
    sides.check(&wanted, &meter).unwrap()
}

#[test]
fn c61_cases_of_vllm_move_every_demanded_byte_and_no_other() {
    for (name, case, contract) in [
        ("llama3-8b-tp4", "fragmented/full", Contract::PayloadOnly),
        ("qwen3.5-0.8b", NULLS, Contract::PayloadOnly),
        ("deepseek-v4-flash", NULLS, Contract::PayloadOnly),
        ("deepseek-v4-flash", NULLS, bridge_all()),
    ] {
        let (cases, _) = oracle(name);
        let case = cases.iter().find(|found| found.name == case).unwrap();
        let raw = case.requests().unwrap();
        let model = Model::read(name).resized(enough(&raw));
        let outcome = run(
            [&model.source, &model.destination],
            [&model.source_views, &model.destination_views],
            &raw,
            contract,
        );
        assert!(outcome.passed(), "{name}: {outcome:?}");
        let sizes =
            [&model.source, &model.destination].map(|layout| layout.allocations()[0].len().get());
        assert_eq!(outcome.bytes, sizes.iter().sum::<u64>(), "{name}");
    }
}

#[test]
fn a_transfer_that_leaves_one_copy_out_is_seen() {
    let report = text("sglang-0.5.23", "mla-deepseek-v3-ps64.json");
    let [source, destination] =
        [ReportSide::Prefill, ReportSide::Decode].map(|side| sglang(&report, side).unwrap());
    let views = [Side::Prefill, Side::Decode].map(|side| Layout::read(&report, side).unwrap());
    let file: RequestName = "report#one chunk".parse().unwrap();
    let raw = parse(&file, &report).unwrap().requests;
    let pairing = Pairing::new(&source, &destination).unwrap();
    let request = Request::new(&raw[0], &pairing).unwrap();
    let plan = plan(&pairing, &[request], Contract::PayloadOnly).plan;
    let wanted = demand(&views[0], &views[1], &[lists(&raw[0])]).unwrap();
    let meter = Meter::new(0);
    let sides = Sides::filled(&source, &destination, &meter).unwrap();
    let left_out = plan.copies().next().unwrap();
    sides.transfer(plan.copies().skip(1), &meter).unwrap();
    let outcome = sides.check(&wanted, &meter).unwrap();
    assert_eq!(outcome.wrong, left_out.len().get());
    assert_eq!(outcome.first[0].offset, left_out.destination_offset().get());
}

#[test]
fn c61_cases_of_sglang_move_every_demanded_byte_and_no_other() {
    for (name, case) in [
        ("dsa-deepseek-v3.2-bf16", "two chunks"),
        ("dsv4-deepseek-v4-flash", "N=700: partial c128 block"),
        ("hybrid-qwen3-next-80b-a3b-ps64", "two chunks"),
        ("mha-llama3-8b-ps1", "one chunk"),
        ("mla-deepseek-v3-ps64", "two chunks"),
        ("swa-gpt-oss", "one chunk, N > window"),
    ] {
        let report = text("sglang-0.5.23", &format!("{name}.json"));
        let [source, destination] =
            [ReportSide::Prefill, ReportSide::Decode].map(|side| sglang(&report, side).unwrap());
        let views = [Side::Prefill, Side::Decode].map(|side| Layout::read(&report, side).unwrap());
        let file: RequestName = format!("{name}#{case}").parse().unwrap();
        let raw = parse(&file, &report).unwrap().requests;
        let outcome = run(
            [&source, &destination],
            views.each_ref(),
            &raw,
            Contract::PayloadOnly,
        );
        assert!(outcome.passed(), "{name}: {outcome:?}");
    }
}

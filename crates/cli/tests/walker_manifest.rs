//! A captured file and the manifest of it are walked to the same bytes: a
//! re-sized layout, which only has a manifest, is walked as well as a
//! captured one.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use common::{stems, text};
use mooncake_pd::request::{RequestFileError, parse};
use mooncake_pd::verify::{Demand, Layout, Lists, Side, demand};
use mooncake_pd::walk::lists;
use mooncake_pd_layout::import;

/// A side as it was captured, and as its manifest.
fn views(json: &str, side: Side) -> [Layout; 2] {
    let import_side = match side {
        Side::Prefill => import::Side::Prefill,
        Side::Decode => import::Side::Decode,
    };
    let layout = import::any(json, import_side).unwrap();
    [json, &layout.to_json().unwrap()].map(|text| Layout::read(text, side).unwrap())
}

/// Source allocation and offset, destination allocation and offset, length;
/// what follows on both sides is one.
fn merged(demand: &Demand) -> Vec<(u32, u64, u32, u64, u64)> {
    let mut out: Vec<(u32, u64, u32, u64, u64)> = Vec::new();
    for row in &demand.rows {
        if let Some((source, at, destination, to, len)) = out.last_mut()
            && (*source, at.checked_add(*len)) == (row.source, Some(row.source_offset))
            && (*destination, to.checked_add(*len))
                == (row.destination, Some(row.destination_offset))
        {
            *len = len.checked_add(row.len).unwrap();
            continue;
        }
        out.push((
            row.source,
            row.source_offset,
            row.destination,
            row.destination_offset,
            row.len,
        ));
    }
    out
}

fn same(name: &str, source: &[Layout; 2], destination: &[Layout; 2], lists: &[Lists]) {
    let [from, from_manifest] = source;
    let [to, to_manifest] = destination;
    let captured = demand(from, to, lists).unwrap();
    let manifest = demand(from_manifest, to_manifest, lists).unwrap();
    assert!(!captured.rows.is_empty(), "{name}");
    assert_eq!(merged(&captured), merged(&manifest), "{name}");
    assert_eq!(captured.blocks, manifest.blocks, "{name}");
    assert_eq!(captured.bytes, manifest.bytes, "{name}");
}

#[test]
fn every_vllm_layout_is_walked_as_its_manifest() {
    let mut models = 0_u32;
    for stem in stems("vllm-0.33", ".oracle.json") {
        if stem == "hetero-tp" {
            continue;
        }
        models = models.checked_add(1).unwrap();
        let oracle = text("vllm-0.33", &format!("{stem}.oracle.json"));
        let source = text("vllm-0.33", &format!("{stem}.json"));
        let source = views(&source, Side::Prefill);
        let destination = text("vllm-0.33", &format!("{stem}.consumer.json"));
        let destination = views(&destination, Side::Decode);
        let name = format!("{stem}#fragmented/full");
        let read = parse(&name.parse().unwrap(), &oracle).unwrap();
        let lists: Vec<_> = read.requests.iter().map(lists).collect();
        same(&name, &source, &destination, &lists);
        // One side captured, the other a manifest.
        let [captured, _] = &source;
        let [_, manifest] = &destination;
        let mixed = demand(captured, manifest, &lists).unwrap();
        let [_, from] = &source;
        let plain = demand(from, manifest, &lists).unwrap();
        assert_eq!(merged(&mixed), merged(&plain), "{name}");
    }
    assert!(models >= 18, "{models} models");
}

#[test]
fn every_sglang_layout_is_walked_as_its_manifest() {
    let mut cases = 0_u32;
    for stem in stems("sglang-0.5.23", ".json") {
        let json = text("sglang-0.5.23", &format!("{stem}.json"));
        let sides = [Side::Prefill, Side::Decode].map(|side| views(&json, side));
        let [source, destination] = &sides;
        let unknown = parse(&format!("{stem}#").parse().unwrap(), &json).unwrap_err();
        let RequestFileError::UnknownCase { known, .. } = unknown else {
            panic!("{stem}: {unknown}");
        };
        for case in known {
            let name = format!("{stem}#{case}");
            let read = match parse(&name.parse().unwrap(), &json) {
                Err(RequestFileError::UnequalTp { .. }) => continue,
                read => read.unwrap(),
            };
            cases = cases.checked_add(1).unwrap();
            let lists: Vec<_> = read.requests.iter().map(lists).collect();
            same(&name, source, destination, &lists);
        }
    }
    assert_eq!(cases, 15);
}

#[test]
fn the_captured_gpu_layout_is_walked_as_its_manifest() {
    let json = text("vllm-0.26", "qwen3-next-tiny.h200.json");
    let sides = views(&json, Side::Prefill);
    let request = r#"{"format":"mooncake-pd-request/1","requests":[{"id":"r","computed_tokens":400,"groups":[
        {"group":0,"source":{"entries":[0,0,7]},"destination":{"entries":[9]}},
        {"group":1,"source":{"entries":[1,2,3]},"destination":{"entries":[4,5]}}]}]}"#;
    let read = parse(&"r".parse().unwrap(), request).unwrap();
    let lists: Vec<_> = read.requests.iter().map(lists).collect();
    same("capture", &sides, &sides, &lists);
    let [captured, _] = &sides;
    let found = demand(captured, captured, &lists).unwrap();
    // Two layers: states of 6,144 and 131,072 bytes; two pages of 147,456.
    assert_eq!(found.bytes.get(&0), Some(&274_432));
    assert_eq!(found.bytes.get(&1), Some(&589_824));
}

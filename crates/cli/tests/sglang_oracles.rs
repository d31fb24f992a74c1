//! Plans against every copy that SGLang 0.5.23 issued between equal ranks, and
//! against the separate walker.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use common::moves::{Move, Moves};
use common::{demanded, plan, planned, stems, text};
use mooncake_pd::request::{RequestFileError, RequestName, parse};
use mooncake_pd::verify::{Layout, Side, demand};
use mooncake_pd::walk::lists;
use mooncake_pd_layout::import::{Side as ReportSide, sglang};
use mooncake_pd_plan::{Contract, Pairing, Request};
use serde_json::Value;

/// What SGLang copied in the steps that move cache. The `aux` step moves a row
/// of sampled tokens and the like: hand-off data that is no cache.
fn issued(case: &Value) -> Vec<Move> {
    let steps = case["steps"].as_array().unwrap();
    let kinds: Vec<&str> = steps.iter().map(|s| s["step"].as_str().unwrap()).collect();
    assert!(
        kinds
            .iter()
            .all(|kind| ["kv", "state", "aux"].contains(kind)),
        "{kinds:?}"
    );
    steps
        .iter()
        .filter(|step| step["step"] != "aux")
        .flat_map(|step| serde_json::from_value::<Vec<Move>>(step["copies"].clone()).unwrap())
        .collect()
}

#[test]
fn every_case_of_equal_ranks_moves_the_bytes_that_the_engine_moved() {
    let (mut equal, mut unequal) = (0, Vec::new());
    for name in stems("sglang-0.5.23", ".json") {
        let report = text("sglang-0.5.23", &format!("{name}.json"));
        let source = sglang(&report, ReportSide::Prefill).unwrap();
        let destination = sglang(&report, ReportSide::Decode).unwrap();
        let pairing = Pairing::new(&source, &destination).unwrap();
        let [source_views, destination_views] =
            [Side::Prefill, Side::Decode].map(|side| Layout::read(&report, side).unwrap());
        let facts: Value = serde_json::from_str(&report).unwrap();
        for case in facts["cases"].as_array().unwrap() {
            let label = case["label"].as_str().unwrap();
            let place = format!("{name}#{label}");
            let file: RequestName = place.parse().unwrap();
            let raw = match parse(&file, &report) {
                Err(RequestFileError::UnequalTp { .. }) => {
                    unequal.push(place);
                    continue;
                }
                read => read.unwrap().requests,
            };
            assert_eq!(raw.len(), 1, "{place}");
            assert_eq!(
                raw[0].computed_tokens,
                case["num_tokens"].as_u64(),
                "{place}"
            );
            let request = Request::new(&raw[0], &pairing).unwrap();
            let batch = plan(&pairing, &[request], Contract::PayloadOnly);
            assert_eq!(batch.refused, [], "{place}");
            assert_eq!(batch.plan.unfilled(), [], "{place}");

            let ours = planned(&batch.plan);
            let theirs = issued(case);
            assert!(!theirs.is_empty(), "{place}");
            let bytes: u64 = theirs.iter().map(|(.., len)| len).sum();
            assert_eq!(ours, Moves::of(theirs), "{place}");
            // Neither side writes a byte twice.
            assert!(ours.have_one_source_each(), "{place}");
            assert_eq!((ours.len(), batch.plan.bytes()), (bytes, bytes), "{place}");

            let walked = demand(&source_views, &destination_views, &[lists(&raw[0])]).unwrap();
            assert_eq!(ours, demanded(&walked), "{place}");
            equal += 1;
        }
    }
    // Unequal ranks: the report holds the layouts of equal ones only.
    assert_eq!(
        unequal,
        [
            "hybrid-qwen3-next-80b-a3b-ps64#prefill tp2 rank1 -> decode tp1",
            "hybrid-qwen3-next-80b-a3b-ps64#prefill tp1 -> decode tp2 rank1",
            "mha-llama3-8b-ps1#prefill tp2 rank1 -> decode tp1",
            "mha-llama3-8b-ps1#prefill tp1 -> decode tp2 rank1",
            "mha-llama3-8b-ps64#prefill tp2 rank1 -> decode tp1",
            "mha-llama3-8b-ps64#prefill tp1 -> decode tp2 rank1",
        ]
    );
    assert_eq!(equal, 15);
}

#[test]
fn index_keys_of_other_pages_are_refused() {
    let report = text("sglang-0.5.23", "dsa-deepseek-v3.2-bf16.json");
    let mut facts: Value = serde_json::from_str(&report).unwrap();
    let step = &mut facts["cases"][0]["steps"][1];
    assert_eq!(step["components"][0], "dsa");
    step["dst_indices"][0].as_array_mut().unwrap().reverse();
    let file: RequestName = "report#one chunk".parse().unwrap();
    assert_eq!(
        parse(&file, &facts.to_string()),
        Err(RequestFileError::IndexPages {
            file: "report".to_owned(),
            case: "one chunk".to_owned()
        })
    );
}

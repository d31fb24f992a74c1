//! Plans of very long requests against vLLM's descriptor counts and bytes.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use std::{slice, thread};

use common::bench::{Bench, Row, file};
use common::moves::Moves;
use common::vllm::Model;
use common::{bridge_all, plan, planned};
use mooncake_pd_plan::{Contract, Pairing, RawRequest, Request};

/// Runs `each` on these rows of every model and counts them.
fn for_each(rows: &[&str], each: impl Fn(&Model, &Pairing<'_>, &Row) + Sync) -> usize {
    let file = file();
    let of_model = |name: &str, facts| {
        let Bench { model, rows } = Bench::read(name, facts, rows);
        let pairing = Pairing::new(&model.source, &model.destination).unwrap();
        for row in &rows {
            each(&model, &pairing, row);
        }
        rows.len()
    };
    thread::scope(|scope| {
        let models: Vec<_> = file
            .as_object()
            .unwrap()
            .iter()
            .map(|(name, facts)| scope.spawn(move || of_model(name, facts)))
            .collect();
        models.into_iter().map(|model| model.join().unwrap()).sum()
    })
}

/// Descriptors without and with bridged gaps.
fn descriptors(pairing: &Pairing<'_>, raw: &RawRequest) -> [u64; 2] {
    let request = [Request::new(raw, pairing).unwrap()];
    [Contract::PayloadOnly, bridge_all()]
        .map(|contract| plan(pairing, &request, contract).plan.descriptors())
}

#[test]
fn every_row_takes_no_more_descriptors_than_vllm_and_what_vllm_sends_besides_is_padding() {
    let rows = ["contiguous", "as-allocated", "shuffled"];
    let rows = for_each(&rows, |model, pairing, row| {
        let place = &row.name;
        let request = [Request::new(&row.request, pairing).unwrap()];
        let [plain, bridged] = [Contract::PayloadOnly, bridge_all()]
            .map(|contract| plan(pairing, &request, contract).plan);
        assert!(bridged.descriptors() <= row.descriptors, "{place}");
        assert_eq!(bridged.payload_bytes(), plain.bytes(), "{place}");
        assert_eq!(plain.unfilled(), [], "{place}");
        let ours = planned(&plain);
        assert_eq!(ours.len(), plain.bytes(), "{place}");
        assert_eq!(ours.minus(&row.moves), Moves::default(), "{place}");
        let lost = ours.minus(&planned(&bridged));
        assert_eq!(lost, Moves::default(), "{place}");

        let theirs = row.moves.written();
        let padding = theirs.minus(&ours.written());
        let requested = model.requested(slice::from_ref(&row.request));
        assert_eq!(padding, padding.minus(&requested), "{place}");
        // Layer 42 of DeepSeek V4 is in a row and once more by itself.
        let twice = row.bytes - theirs.len();
        assert_eq!(twice > 0, model.name == "deepseek-v4-flash", "{place}");
        assert_eq!(row.bytes - plain.bytes(), padding.len() + twice, "{place}");
    });
    assert_eq!(rows, 33);
}

#[test]
fn descriptors_of_contiguous_ids_grow_with_runs_and_not_with_blocks() {
    let rows = for_each(&["contiguous"], |model, pairing, row| {
        let name = model.name.as_str();
        // One for each layer. A row of DeepSeek V4 holds all layers, and their
        // padding keeps the payload of its blocks apart.
        let expected = match name {
            "deepseek-v3" => [61, 61],
            "deepseek-v4-flash" => [32_234, 1],
            "deepseek-v4-flash-mtp" => [242_726, 1],
            "gpt-oss-120b" => [36, 36],
            "llama3-8b" => [32, 32],
            "qwen3.5-0.8b" => [24, 24],
            _ => [60, 60],
        };
        assert_eq!(descriptors(pairing, &row.request), expected, "{name}");

        // Half as many blocks, at the end of the prompt.
        let mut half = row.request.clone();
        for tables in &mut half.groups {
            let blocks = &mut tables.destination.entries;
            if blocks.len() > 60 {
                blocks.drain(..blocks.len() / 2);
            }
        }
        let [plain, bridged] = descriptors(pairing, &half);
        if name.contains("v4") {
            // The ids that are left out part what was one run over all groups.
            assert_eq!(bridged, 2, "{name}");
            assert!(plain < expected[0], "{name}");
        } else {
            assert_eq!([plain, bridged], expected, "{name}");
        }
    });
    assert_eq!(rows, 11);
}

//! Reports of SGLang 0.5.23 as layouts, against every copy that its own
//! connector issued between equal ranks.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::arithmetic_side_effects,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::PathBuf;

use mooncake_pd_layout::import::{ImportError, Side, any, sglang};
use mooncake_pd_layout::{Axis, CacheLayout, GroupId, GroupKind, LayerId, PoolId, Split};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/sglang-0.5.23")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(format!("{name}.json"))).unwrap()
}

fn import(name: &str, side: Side) -> CacheLayout {
    sglang(&text(name), side).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn names() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .map(|name| name.strip_suffix(".json").unwrap().to_owned())
        .collect();
    names.sort();
    names
}

/// Source allocation and offset, destination allocation and offset, length.
type Copy = [u64; 5];

/// What moving these ids copies, field by field.
fn copies(
    sides: [&CacheLayout; 2],
    group: u32,
    wanted: impl Fn(&str) -> bool,
    ids: [&Value; 2],
) -> Vec<Copy> {
    let group = GroupId::new(group);
    let mut all = Vec::new();
    let [source, destination] = sides.map(|side| side.group(group).unwrap());
    let [from, to] = ids.map(|ids| ids.as_array().unwrap());
    assert_eq!(from.len(), to.len());
    for ((_, a), (_, b)) in source.fields().zip(destination.fields()) {
        assert_eq!((a.id(), a.dims()), (b.id(), b.dims()));
        for (from, to) in from.iter().zip(to) {
            for (side, id) in sides.into_iter().zip([from, to]) {
                side.entry(group, id.as_u64().unwrap()).unwrap();
            }
            let at = |field: &mooncake_pd_layout::Field, id: &Value| {
                let id = u32::try_from(id.as_u64().unwrap()).unwrap();
                field.block_offset(id).unwrap().get()
            };
            if wanted(a.id().as_str()) {
                let (from, to) = (at(a, from), at(b, to));
                let pieces = a.payload().iter().flat_map(mooncake_pd_layout::Run::pieces);
                all.extend(pieces.map(|piece| {
                    let start = piece.start().get();
                    [
                        a.allocation().get().into(),
                        from + start,
                        b.allocation().get().into(),
                        to + start,
                        piece.len().get(),
                    ]
                }));
            }
        }
    }
    all
}

fn merged(mut all: Vec<Copy>) -> Vec<Copy> {
    all.sort_unstable();
    let mut merged: Vec<Copy> = Vec::new();
    for [a, from, b, to, len] in all {
        match merged.last_mut() {
            Some(last)
                if [last[0], last[1] + last[4], last[2], last[3] + last[4]] == [a, from, b, to] =>
            {
                last[4] += len;
            }
            _ => merged.push([a, from, b, to, len]),
        }
    }
    merged
}

#[test]
fn both_sides_of_all_eight_reports_import() {
    let names = names();
    assert_eq!(names.len(), 8);
    for name in names {
        for side in [Side::Prefill, Side::Decode] {
            assert_eq!(any(&text(&name), side), Ok(import(&name, side)));
        }
        let [p, d] = [Side::Prefill, Side::Decode].map(|side| import(&name, side));
        assert_eq!(p.content(), d.content(), "{name}");
        assert_ne!(p, d, "{name}");
    }
}

#[test]
fn items_of_the_ids_are_the_bytes_that_the_engine_copied() {
    let mut steps = 0;
    for name in names() {
        let [p, d] = [Side::Prefill, Side::Decode].map(|side| import(&name, side));
        let report: Value = serde_json::from_str(&text(&name)).unwrap();
        let types = report["prefill"]["kv_args"]["state_types"]
            .as_array()
            .unwrap();
        let keyed = types.iter().any(|name| name == "dsa");
        for case in report["cases"].as_array().unwrap() {
            let label = case["label"].as_str().unwrap();
            if label.contains("tp2") {
                continue;
            }
            for step in case["steps"].as_array().unwrap() {
                let ours = match step["step"].as_str().unwrap() {
                    "kv" => {
                        let wanted = |role: &str| !(keyed && role == "index_k");
                        copies(
                            [&p, &d],
                            0,
                            wanted,
                            [&step["src_pages"], &step["dst_pages"]],
                        )
                    }
                    "state" => {
                        let mut all = Vec::new();
                        let lists = step["components"].as_array().unwrap();
                        for (at, component) in lists.iter().enumerate() {
                            let ids = [&step["src_indices"][at], &step["dst_indices"][at]];
                            let group = u32::try_from(at + 1).unwrap();
                            all.extend(if component == "dsa" {
                                copies([&p, &d], 0, |role| role == "index_k", ids)
                            } else {
                                copies([&p, &d], group, |_| true, ids)
                            });
                        }
                        all
                    }
                    _ => continue,
                };
                let theirs: Vec<Copy> = serde_json::from_value(step["copies"].clone()).unwrap();
                assert!(!theirs.is_empty());
                assert_eq!(merged(ours), merged(theirs), "{name}, {label}");
                steps += 1;
            }
        }
    }
    assert_eq!(steps, 30);
}

#[test]
fn every_pool_reserves_its_own_ids() {
    let layout = import("dsv4-deepseek-v4-flash", Side::Prefill);
    let pools: Vec<_> = layout
        .pools()
        .iter()
        .map(mooncake_pd_layout::Pool::capacity)
        .collect();
    assert_eq!(pools, [8, 5, 7]);
    assert!(layout.pools().iter().all(|pool| pool.null_id().is_none()));
    assert!(
        layout
            .pools()
            .iter()
            .all(|pool| !pool.is_live(0) && pool.is_live(1))
    );
    let kinds: Vec<_> = layout
        .groups()
        .iter()
        .map(|group| group.kind().name())
        .collect();
    assert_eq!(kinds, ["mla", "sliding_window_mla", "sliding_window_mla"]);
    let page = layout.groups()[1]
        .layers()
        .get(&LayerId::new("layer.2"))
        .unwrap();
    let roles: Vec<_> = page
        .fields()
        .iter()
        .map(|field| field.id().as_str())
        .collect();
    assert_eq!(
        roles,
        ["swa_latent", "compress_state", "indexer_compress_state"]
    );
}

#[test]
fn index_keys_share_the_group_of_their_pages() {
    let layout = import("dsa-deepseek-v3.2-bf16", Side::Decode);
    assert_eq!((layout.groups().len(), layout.pools().len()), (1, 1));
    let page = layout.groups()[0]
        .layers()
        .get(&LayerId::new("layer.1"))
        .unwrap();
    let lens: Vec<_> = page
        .fields()
        .iter()
        .map(|field| (field.id().as_str(), field.payload_len().get()))
        .collect();
    assert_eq!(lens, [("latent", 73_728), ("index_k", 8_448)]);
}

#[test]
fn unified_memory_is_two_arbitrated_pools() {
    let layout = import("unified-hybrid-qwen3-next", Side::Prefill);
    assert_eq!(layout.arbitrated(), [(PoolId::new(0), PoolId::new(1))]);
    let [pages, slots] = layout.pools() else {
        panic!("{:?}", layout.pools())
    };
    assert_eq!((pages.capacity(), slots.capacity()), (310, 6));
    // Page 49 begins inside slot 0: 49 * 262,144 < 12,877,824.
    assert!(!pages.is_live(49) && pages.is_live(50));
    assert!(!slots.is_live(0) && slots.is_live(1));
    let [attention, state] = layout.groups() else {
        panic!("{:?}", layout.groups())
    };
    assert_eq!(
        (attention.kind(), state.kind()),
        (GroupKind::FullAttention, GroupKind::GdnState)
    );
    let payload = |group: &mooncake_pd_layout::Group| -> u64 {
        group
            .fields()
            .map(|(_, field)| field.payload_len().get())
            .sum()
    };
    assert_eq!((payload(attention), payload(state)), (262_144, 12_877_824));
    let (_, conv) = state.fields().next().unwrap();
    let axes: Vec<_> = conv
        .dims()
        .iter()
        .map(|dim| (dim.axis(), dim.extent()))
        .collect();
    assert_eq!(axes, [(Axis::Channel, 8_192), (Axis::Tap, 3)]);
    let Split::Sharded { parts, .. } = conv.split() else {
        panic!("{}", conv.split())
    };
    assert_eq!(*parts, [2_048, 2_048, 4_096]);
}

#[test]
fn c26_what_is_not_known_is_refused_by_name() {
    let edit = |name: &str, from: &str, to: &str| {
        let text = text(name);
        assert!(text.contains(from), "{name} has no {from}");
        sglang(&text.replace(from, to), Side::Prefill).unwrap_err()
    };
    let hybrid = "hybrid-qwen3-next-80b-a3b-ps64";
    let error = edit(hybrid, "\"linear_layers\"", "\"mamba2_layers\"");
    assert!(
        matches!(&error, ImportError::UnknownState { state, .. } if state == "HybridLinearKVPool"),
        "{error}"
    );
    let error = edit(hybrid, "\"temporal\"", "\"ssm\"");
    assert!(
        matches!(
            &error,
            ImportError::Mismatch {
                what: "recurrent state",
                ..
            }
        ),
        "{error}"
    );
    let error = edit("swa-gpt-oss", "\"swa\"", "\"chunked\"");
    assert!(
        matches!(&error, ImportError::UnknownKind { kind, .. } if kind == "chunked"),
        "{error}"
    );
    let error = edit("mla-deepseek-v3-ps64", "\"latent\"", "\"mystery\"");
    assert!(
        matches!(&error, ImportError::UnknownKind { kind, .. } if kind == "mystery"),
        "{error}"
    );
    let error = edit("mla-deepseek-v3-ps64", "73728", "73729");
    assert!(matches!(&error, ImportError::Mismatch { .. }), "{error}");
    let error = edit(
        "mha-llama3-8b-ps64",
        "\"total_kv_head_num\":8",
        "\"total_kv_head_num\":16",
    );
    assert!(error.to_string().contains("16"), "{error}");
}

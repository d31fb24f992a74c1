//! Reports of vLLM 0.33 as layouts, against numbers computed by hand and
//! against what vLLM itself registered.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail by panic"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use mooncake_pd_layout::import::{Side, any, vllm_033};
use mooncake_pd_layout::{
    Axis, CacheLayout, Difference, Field, GroupId, GroupKind, LayerId, Split, compare,
};
use serde_json::Value;

fn folder() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures/vllm-0.33")
}

fn text(name: &str) -> String {
    fs::read_to_string(folder().join(name)).unwrap()
}

fn import(name: &str) -> CacheLayout {
    vllm_033(&text(&format!("{name}.json"))).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn models() -> Vec<String> {
    let mut names: Vec<String> = fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter_map(|name| name.strip_suffix(".consumer.json").map(str::to_owned))
        .collect();
    names.sort();
    names
}

fn field<'a>(layout: &'a CacheLayout, group: u32, layer: &str, name: &str) -> &'a Field {
    let group = layout.group(GroupId::new(group)).unwrap();
    let page = group.layers().get(&LayerId::new(layer)).unwrap();
    let mut fields = page.fields().iter();
    fields.find(|field| field.id().as_str() == name).unwrap()
}

#[test]
fn all_forty_layouts_import_and_both_sides_agree_but_for_the_pool() {
    let models = models();
    assert_eq!(models.len(), 20);
    for model in models {
        let producer = import(&model);
        let consumer = import(&format!("{model}.consumer"));
        assert_ne!(
            producer.pools()[0].capacity(),
            consumer.pools()[0].capacity()
        );
        assert_eq!(compare(&producer, &consumer), [], "{model}");
        assert_eq!(producer.fingerprint(), consumer.fingerprint(), "{model}");
        assert_eq!(
            any(&text(&format!("{model}.json")), Side::Decode),
            Ok(producer)
        );
    }
}

#[test]
fn qwen_state_is_conv_then_recurrent_then_padding() {
    let layout = import("qwen3.5-0.8b");
    let kinds: Vec<_> = layout
        .groups()
        .iter()
        .map(mooncake_pd_layout::Group::kind)
        .collect();
    assert_eq!(
        kinds,
        [
            GroupKind::GdnState,
            GroupKind::GdnState,
            GroupKind::GdnState,
            GroupKind::FullAttention
        ]
    );
    let layer = "language_model.model.layers.4.linear_attn";
    let conv = field(&layout, 0, layer, "conv");
    let recurrent = field(&layout, 0, layer, "recurrent");
    assert_eq!(conv.offset().get(), 64 * 1_114_112);
    assert_eq!(conv.payload_len().get(), 36_864);
    assert_eq!(recurrent.offset().get(), 64 * 1_114_112 + 36_864);
    assert_eq!(recurrent.payload_len().get(), 1_048_576);
    assert_eq!(conv.block_stride().get(), 1_114_112);
    assert_eq!(recurrent.block_stride().get(), 1_114_112);
    let dims: Vec<_> = conv
        .dims()
        .iter()
        .map(|d| (d.axis(), d.extent(), d.stride()))
        .collect();
    assert_eq!(dims, [(Axis::Tap, 3, 12_288), (Axis::Channel, 6_144, 2)]);
    assert_eq!(
        *conv.split(),
        Split::Sharded {
            axis: Axis::Channel,
            parts: vec![2_048, 2_048, 2_048],
            replicas: 1
        }
    );
    let dims: Vec<_> = recurrent
        .dims()
        .iter()
        .map(|d| (d.axis(), d.extent()))
        .collect();
    assert_eq!(
        dims,
        [(Axis::Head, 16), (Axis::Value, 128), (Axis::Key, 128)]
    );
    assert_eq!(layout.content().state_order, "vllm-gpu");
    let kv = field(
        &layout,
        3,
        "language_model.model.layers.7.self_attn.attn",
        "kv",
    );
    assert_eq!(kv.offset(), conv.offset());
    assert_eq!(kv.payload_len().get(), 1_114_112);
}

#[test]
fn more_ranks_than_heads_share_them() {
    let layer = "language_model.model.layers.3.self_attn.attn";
    for (model, local, shared) in [
        ("qwen3.5-397b-a17b-tp1", 2, 1),
        ("qwen3.5-397b-a17b-tp4", 1, 2),
        ("qwen3.5-397b-a17b-tp8", 1, 4),
    ] {
        let layout = import(model);
        let expected = Split::Sharded {
            axis: Axis::Head,
            parts: vec![local],
            replicas: shared,
        };
        assert_eq!(*field(&layout, 3, layer, "kv").split(), expected, "{model}");
        let conv = field(
            &layout,
            0,
            "language_model.model.layers.0.linear_attn",
            "conv",
        );
        let tp = u64::from(layout.shard().tp_size());
        let expected = Split::Sharded {
            axis: Axis::Channel,
            parts: vec![2_048 / tp, 2_048 / tp, 8_192 / tp],
            replicas: 1,
        };
        assert_eq!(*conv.split(), expected, "{model}");
    }
}

#[test]
fn v4_rows_hold_every_field_at_its_own_place() {
    let layout = import("deepseek-v4-flash");
    let fields: usize = layout
        .groups()
        .iter()
        .map(|group| group.layers().len())
        .sum();
    assert_eq!(fields, 167);
    let tokens: Vec<_> = layout
        .groups()
        .iter()
        .map(|g| g.tokens_per_block().get())
        .collect();
    assert_eq!(tokens, [64, 64, 256, 4, 8]);
    let windows: Vec<_> = layout
        .groups()
        .iter()
        .map(|group| {
            group
                .kind()
                .window()
                .map(mooncake_pd_layout::WindowTokens::get)
        })
        .collect();
    assert_eq!(windows, [Some(128), Some(128), None, Some(8), Some(128)]);
    for group in layout.groups() {
        for (layer, field) in group.fields() {
            assert_eq!(field.block_stride().get(), 1_002_240, "{layer}");
            assert_eq!(*field.split(), Split::Replicated);
        }
    }
    let mut starts = BTreeMap::new();
    for (_, field) in layout.group(GroupId::new(2)).unwrap().fields() {
        let start = starts.entry(field.payload_len().get()).or_insert(u64::MAX);
        *start = (*start).min(field.offset().get());
    }
    assert_eq!(
        starts,
        BTreeMap::from([(8_448, 0), (37_376, 181_440), (1_168, 967_680)])
    );
}

#[test]
fn kernel_pages_are_counted_from_the_view() {
    for (model, ratio, heads) in [
        ("qwen3.5-0.8b-flashinfer", 17, 2),
        ("qwen3.5-397b-a17b-tp8-flashinfer", 33, 1),
        ("qwen3.5-0.8b", 1, 2),
    ] {
        let layout = import(model);
        let group = layout.group(GroupId::new(3)).unwrap();
        assert_eq!(group.expansion().pages_per_block().get(), ratio, "{model}");
        let plain = import(model.trim_end_matches("-flashinfer"));
        let layer = "language_model.model.layers.3.self_attn.attn";
        let (kv, plain) = (
            field(&layout, 3, layer, "kv"),
            field(&plain, 3, layer, "kv"),
        );
        assert_eq!(kv.block_stride(), plain.block_stride());
        let [run] = kv.payload() else {
            panic!("{model}")
        };
        assert_eq!(
            (run.payload(), run.count()),
            (kv.payload_len().get(), 1),
            "{model}"
        );
        let same = ratio == 1 || heads == 1;
        assert_eq!(kv.byte_order() == plain.byte_order(), same, "{model}");
    }
}

/// What vLLM's connector registered: base of a layer's region and its bytes
/// per kernel page, for every layer of every oracle.
#[test]
fn fields_begin_where_the_engine_registered_their_layer() {
    let mut compared = 0;
    for model in models() {
        let oracle: Value = serde_json::from_str(&text(&format!("{model}.oracle.json"))).unwrap();
        for (side, name) in [
            ("producer", model.clone()),
            ("consumer", format!("{model}.consumer")),
        ] {
            let layout = import(&name);
            let regions = oracle[side]["regions"].as_array().unwrap();
            for region in regions {
                let layer = LayerId::new(region["layer_name"].as_str().unwrap());
                // A region shared by groups is named after a layer of one.
                let shared = region["shared_group_ids"].as_array().unwrap();
                let group = shared
                    .iter()
                    .map(|id| GroupId::new(u32::try_from(id.as_u64().unwrap()).unwrap()))
                    .filter_map(|id| layout.group(id))
                    .find(|group| group.layers().contains_key(&layer))
                    .unwrap();
                let first = &group.layers().get(&layer).unwrap().fields()[0];
                assert_eq!(region["base_off"], first.offset().get(), "{name} {layer}");
                let pages = u64::from(group.expansion().pages_per_block().get());
                assert_eq!(
                    region["block_len"],
                    first.page_stride().get(),
                    "{name} {layer}"
                );
                let logical = region["kv_block_len"].as_u64().unwrap() * pages;
                assert!(logical <= first.block_stride().get(), "{name} {layer}");
                assert!(logical >= first.payload_len().get(), "{name} {layer}");
                compared += 1;
            }
        }
    }
    assert_eq!(compared, 2_320);
}

#[test]
fn c29_kernel_pages_are_incompatible_only_where_they_move_bytes() {
    for (model, split, incompatible) in [
        ("qwen3.5-0.8b", "qwen3.5-0.8b-flashinfer", true),
        (
            "qwen3.5-397b-a17b-tp8",
            "qwen3.5-397b-a17b-tp8-flashinfer",
            false,
        ),
    ] {
        let differences = compare(&import(model), &import(split));
        let found = differences.iter().any(Difference::is_incompatible);
        assert_eq!(found, incompatible, "{model}: {differences:?}");
    }
}

#[test]
fn groups_are_numbered_among_those_that_are_transferred() {
    let mut report: Value = serde_json::from_str(&text("qwen3.5-0.8b.json")).unwrap();
    report["groups"][1]["enable_kv_transfer"] = false.into();
    let layout = vllm_033(&report.to_string()).unwrap();
    let ids: Vec<_> = layout
        .groups()
        .iter()
        .map(|group| group.id().get())
        .collect();
    assert_eq!(ids, [0, 1, 2]);
    assert_eq!(layout.groups()[2].kind(), GroupKind::FullAttention);
    let second = layout.groups()[1].layers().keys().next().unwrap();
    assert_eq!(second.as_str(), "language_model.model.layers.2.linear_attn");
}

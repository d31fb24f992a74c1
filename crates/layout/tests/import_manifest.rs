//! What reports become in a manifest, as literal values: names, tags, pools,
//! kinds and axes.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test may fail by panic"
)]

use std::fs;
use std::path::PathBuf;

use mooncake_pd_layout::import::{ImportError, Side, any};
use mooncake_pd_layout::{
    Axis, CacheLayout, DType, Dim, Field, Group, GroupKind, LayerId, PoolId, Split, WindowTokens,
};
use serde_json::{Value, json};

const QWEN: &str = "vllm-0.33/qwen3.5-0.8b";
const LLAMA: &str = "vllm-0.33/llama3-8b";
const CAPTURE: &str = "vllm-0.26/qwen3-next-tiny.h200";
const MHA: &str = "sglang-0.5.23/mha-llama3-8b-ps64";
const V4: &str = "sglang-0.5.23/dsv4-deepseek-v4-flash";

/// Reads a report after an edit.
fn edited(name: &str, edit: impl Fn(&mut Value)) -> Result<CacheLayout, ImportError> {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    let text = fs::read_to_string(root.join(format!("{name}.json"))).unwrap();
    let mut report: Value = serde_json::from_str(&text).unwrap();
    edit(&mut report);
    any(&report.to_string(), Side::Prefill)
}

fn import(name: &str) -> CacheLayout {
    edited(name, |_| {}).unwrap_or_else(|error| panic!("{name}: {error}"))
}

fn buffers<'a>(report: &'a mut Value, role: &'a str) -> impl Iterator<Item = &'a mut Value> {
    let buffers = report.pointer_mut("/prefill/buffers").unwrap();
    let buffers = buffers.as_array_mut().unwrap().iter_mut();
    buffers.filter(move |buffer| buffer.get("role").unwrap() == role)
}

fn field<'a>(layout: &'a CacheLayout, group: usize, layer: &str, name: &str) -> &'a Field {
    let layers = layout.groups().get(group).unwrap().layers();
    let fields = layers.get(&LayerId::new(layer)).unwrap().fields();
    let mut fields = fields.iter();
    fields.find(|field| field.id().as_str() == name).unwrap()
}

fn dims(field: &Field) -> Vec<(Axis, u64, u64)> {
    let dims = field.dims().iter();
    dims.map(|dim| (dim.axis(), dim.extent(), dim.stride()))
        .collect()
}

#[test]
fn a_manifest_says_who_made_it_and_what_its_bytes_mean() {
    let qwen = "Qwen3_5ForConditionalGeneration";
    let tiny = "qwen3-next, 4 layers, 2 kv heads x 128, GDN 2 k-heads 4 v-heads x 128";
    let v4 = "DeepSeekV4TokenToKVPool v4,c4:v4,c128:v4";
    let hybrid = "sglang-0.5.23/hybrid-qwen3-next-80b-a3b-ps64";
    for (report, engine, model, revision, order) in [
        (QWEN, "vLLM 0.33.0", "qwen3.5-0.8b", qwen, "vllm-gpu"),
        (LLAMA, "vLLM 0.33.0", "llama3-8b", "LlamaForCausalLM", ""),
        (CAPTURE, "vLLM 0.26.0", tiny, "", "vllm-gpu"),
        (
            MHA,
            "SGLang 0.5.23",
            "mha-llama3-8b-ps64",
            "MHATokenToKVPool",
            "",
        ),
        (V4, "SGLang 0.5.23", "dsv4-deepseek-v4-flash", v4, ""),
        (
            hybrid,
            "SGLang 0.5.23",
            "hybrid-qwen3-next-80b-a3b-ps64",
            "HybridLinearKVPool",
            "sglang",
        ),
    ] {
        let layout = import(report);
        let content = layout.content();
        assert_eq!((layout.engine(), layout.model()), (engine, model));
        assert_eq!(
            (
                content.model_revision.as_str(),
                content.state_order.as_str()
            ),
            (revision, order),
            "{report}"
        );
    }
}

#[test]
fn without_state_there_is_no_order_of_it() {
    let layout = edited(CAPTURE, |report| {
        report["groups"].as_array_mut().unwrap().remove(0);
    })
    .unwrap();
    let [attention] = layout.groups() else {
        panic!("{:?}", layout.groups())
    };
    assert_eq!(attention.kind(), GroupKind::FullAttention);
    assert_eq!(layout.content().state_order, "");
}

#[test]
fn a_rank_is_the_one_the_report_is_of() {
    for (edit, rank) in [(None, 0), (Some(0), 0), (Some(1), 1)] {
        let layout = edited("vllm-0.33/llama3-8b-tp2", |report| {
            if let Some(rank) = edit {
                report["config"]["tp_rank"] = rank.into();
            }
        })
        .unwrap();
        let shard = layout.shard();
        assert_eq!((shard.tp_rank(), shard.tp_size()), (rank, 2));
        assert_eq!((shard.pp_rank(), shard.pp_size()), (0, 1));
    }
}

/// A model may have layers whose heads are not those that its configuration
/// counts; only a division among ranks needs that count.
#[test]
fn a_rank_alone_has_all_heads_of_its_layers() {
    for counted in [3, 4, 8, 16] {
        let layout = edited(LLAMA, |report| {
            report["config"]["num_key_value_heads"] = counted.into();
        })
        .unwrap();
        let kv = field(&layout, 0, "model.layers.0.self_attn.attn", "kv");
        let expected = Split::Sharded {
            axis: Axis::Head,
            parts: vec![8],
            replicas: 1,
        };
        assert_eq!(*kv.split(), expected, "{counted}");
    }
}

#[test]
fn elements_are_those_of_the_spec_where_the_view_has_their_size() {
    for (spec, expected) in [
        ("bfloat16", DType::BF16),
        ("float16", DType::F16),
        ("uint8", DType::BF16),
        ("float32", DType::BF16),
    ] {
        let layout = edited(LLAMA, |report| report["specs"][0]["dtype"] = spec.into()).unwrap();
        let kv = field(&layout, 0, "model.layers.0.self_attn.attn", "kv");
        assert_eq!(kv.dtype(), expected, "{spec}");
    }
}

#[test]
fn ids_below_the_first_allocatable_are_reserved() {
    for (first, reserved) in [(0, None), (1, Some(0..1)), (3, Some(0..3))] {
        let layout = edited(MHA, |report| {
            report["index_spaces"]["full"]["first_allocatable"] = first.into();
        })
        .unwrap();
        let [pool] = layout.pools() else {
            panic!("{:?}", layout.pools())
        };
        assert_eq!((pool.capacity(), pool.null_id()), (11, None));
        let reserved: Vec<_> = reserved.into_iter().collect();
        assert_eq!(pool.reserved(), reserved);
        assert_eq!(pool.is_live(0), first == 0);
        assert!(pool.is_live(first) && pool.is_live(10) && !pool.is_live(11));
    }
}

#[test]
fn arbitrated_pools_are_those_whose_buffers_overlap() {
    let layout = edited("sglang-0.5.23/unified-hybrid-qwen3-next", |report| {
        // Without a buffer it has no pool, but its number is taken.
        report["prefill"]["kv_args"]["state_types"] = json!(["swa", "mamba"]);
    })
    .unwrap();
    let pools: Vec<_> = layout.pools().iter().map(|pool| pool.id().get()).collect();
    assert_eq!(pools, [0, 2]);
    assert_eq!(layout.arbitrated(), [(PoolId::new(0), PoolId::new(2))]);
}

#[test]
fn keys_and_values_of_a_window_are_a_sliding_window() {
    let layout = import("sglang-0.5.23/swa-gpt-oss");
    let kinds: Vec<_> = layout.groups().iter().map(Group::kind).collect();
    let window = WindowTokens::new(128).unwrap();
    assert_eq!(
        kinds,
        [GroupKind::FullAttention, GroupKind::SlidingWindow(window)]
    );
    let key = field(&layout, 1, "layer.0", "k");
    assert_eq!(
        dims(key),
        [
            (Axis::Token, 64, 1024),
            (Axis::Head, 8, 128),
            (Axis::Content, 64, 2)
        ]
    );
}

#[test]
fn pages_of_one_row_of_bytes_are_bytes_and_others_rows() {
    let layout = import(V4);
    for (group, layer, name, expected) in [
        (0, 2, "c4_latent", vec![(Axis::Byte, 37_440, 1)]),
        (0, 2, "index_k", vec![(Axis::Byte, 8_448, 1)]),
        (0, 3, "c128_latent", vec![(Axis::Byte, 1_728, 1)]),
        (1, 0, "swa_latent", vec![(Axis::Byte, 149_760, 1)]),
        (
            1,
            2,
            "compress_state",
            vec![(Axis::Token, 8, 8_192), (Axis::Content, 2_048, 4)],
        ),
    ] {
        let field = field(&layout, group, &format!("layer.{layer}"), name);
        assert_eq!(dims(field), expected, "{name}");
        assert_eq!(*field.split(), Split::Replicated);
    }

    let layout = edited(V4, |report| {
        for latent in buffers(report, "swa_latent") {
            latent["shape"] = json!([5 * 320, 468]);
            latent["stride_bytes"] = json!([468, 1]);
        }
        for state in buffers(report, "indexer_compress_state") {
            state["shape"] = json!([5, 4_096]);
            state["stride_bytes"] = json!([16_384, 4]);
        }
    })
    .unwrap();
    let latent = field(&layout, 1, "layer.0", "swa_latent");
    assert_eq!(
        dims(latent),
        [(Axis::Token, 320, 468), (Axis::Content, 468, 1)]
    );
    let state = field(&layout, 1, "layer.2", "indexer_compress_state");
    // An axis of one element is none.
    assert_eq!(dims(state), [(Axis::Content, 4_096, 4)]);
}

/// Of a head of 64 key and 128 value elements, and of one the other way round.
#[test]
fn the_axes_of_a_state_are_told_apart_by_their_sizes() {
    for (shape, key, expected) in [
        ([16, 64, 128], 64, [Axis::Key, Axis::Value]),
        ([16, 128, 64], 64, [Axis::Value, Axis::Key]),
        ([16, 64, 128], 128, [Axis::Value, Axis::Key]),
        ([16, 128, 64], 128, [Axis::Key, Axis::Value]),
    ] {
        let value = 192 - key;
        let channels = 16 * (2 * key + value);
        let bytes = [3 * channels * 2, 16 * 64 * 128 * 4];
        let layout = edited(QWEN, |report| {
            report["config"]["linear_key_head_dim"] = key.into();
            report["config"]["linear_value_head_dim"] = value.into();
            report["specs"][0]["shapes"] = json!([[3, channels], shape]);
            report["specs"][0]["state_nbytes"] = json!(bytes);
            for layer in report["layers"].as_array_mut().unwrap() {
                if layer["spec"] == 0 {
                    layer["shape"][3] = (bytes[0] + bytes[1]).into();
                }
            }
        })
        .unwrap();
        let name = "language_model.model.layers.0.linear_attn";
        let recurrent = field(&layout, 0, name, "recurrent");
        let axes: Vec<_> = recurrent.dims().iter().map(Dim::axis).collect();
        assert_eq!(axes, [Axis::Head, expected[0], expected[1]]);
        let Split::Sharded { axis, parts, .. } = field(&layout, 0, name, "conv").split() else {
            panic!("{name}")
        };
        assert_eq!(*axis, Axis::Channel);
        assert_eq!(*parts, [16 * key, 16 * key, 16 * value]);
    }
}

#[test]
fn brackets_in_quotes_are_text() {
    let plain = import(CAPTURE);
    for text in ["a='(', ", "a='[{', ", "a=('), b', 1), ", "a=['}], b', 1], "] {
        let layout = edited(CAPTURE, |report| {
            let spec = &mut report["groups"][1]["spec"];
            let before = "Spec(";
            let after = spec
                .as_str()
                .unwrap()
                .replace(before, &(before.to_owned() + text));
            *spec = after.into();
        });
        assert_eq!(layout.as_ref(), Ok(&plain), "{text}");
    }
}

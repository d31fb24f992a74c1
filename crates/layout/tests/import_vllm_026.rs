//! A capture of vLLM 0.26 on a GPU as a layout, against what its connector
//! registered.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::fs;
use std::path::PathBuf;

use mooncake_pd_layout::import::{ImportError, Side, any, vllm_026};
use mooncake_pd_layout::{Axis, GroupKind, LayerId, Split};
use serde_json::Value;

fn text() -> String {
    let path = "../../fixtures/vllm-0.26/qwen3-next-tiny.h200.json";
    fs::read_to_string(PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

#[test]
fn both_tensors_of_a_state_lie_in_the_page_of_the_attention_layer() {
    let layout = vllm_026(&text()).unwrap();
    assert_eq!(any(&text(), Side::Prefill).as_ref(), Ok(&layout));
    let [state, attention] = layout.groups() else {
        panic!("{:?}", layout.groups())
    };
    assert_eq!(
        (state.kind(), attention.kind()),
        (GroupKind::GdnState, GroupKind::FullAttention)
    );
    assert_eq!(state.tokens_per_block().get(), 144);
    let page = state
        .layers()
        .get(&LayerId::new("model.layers.2.linear_attn"))
        .unwrap();
    let [conv, recurrent] = page.fields() else {
        panic!("{page:?}")
    };
    assert_eq!((conv.offset().get(), conv.payload_len().get()), (0, 6_144));
    assert_eq!(
        (recurrent.offset().get(), recurrent.payload_len().get()),
        (6_144, 131_072)
    );
    assert_eq!(conv.allocation().get(), 1);
    let axes: Vec<_> = conv
        .dims()
        .iter()
        .map(|dim| (dim.axis(), dim.extent()))
        .collect();
    assert_eq!(axes, [(Axis::Tap, 3), (Axis::Channel, 1_024)]);
    // Two key heads and four value heads of 128.
    let Split::Sharded { parts, .. } = conv.split() else {
        panic!("{}", conv.split())
    };
    assert_eq!(*parts, [256, 256, 512]);
    let page = attention
        .layers()
        .get(&LayerId::new("model.layers.3.self_attn.attn"))
        .unwrap();
    let [kv] = page.fields() else {
        panic!("{page:?}")
    };
    assert_eq!((kv.offset().get(), kv.payload_len().get()), (0, 147_456));
    for field in [conv, recurrent, kv] {
        assert_eq!(field.block_stride().get(), 147_456);
    }
}

#[test]
fn layers_begin_where_the_engine_registered_them() {
    let layout = vllm_026(&text()).unwrap();
    let report: Value = serde_json::from_str(&text()).unwrap();
    let stock = &report["stock_regions"];
    let names = stock["layer_names"].as_array().unwrap();
    assert_eq!(names.len(), 4);
    for (at, name) in names.iter().enumerate() {
        let group = usize::try_from(stock["group"][at].as_u64().unwrap()).unwrap();
        let layer = LayerId::new(name.as_str().unwrap());
        let first = &layout.groups()[group]
            .layers()
            .get(&layer)
            .unwrap()
            .fields()[0];
        assert_eq!(stock["base"][at][0], first.allocation().get());
        assert_eq!(stock["base"][at][1], first.offset().get());
        assert_eq!(stock["block_len"][at], first.block_stride().get());
    }
}

#[test]
fn c26_specs_that_are_not_known_are_refused_by_name() {
    let edit = |from: &str, to: &str| {
        assert!(text().contains(from));
        vllm_026(&text().replace(from, to)).unwrap_err()
    };
    let error = edit("FullAttentionSpec(", "CrossAttentionSpec(");
    assert!(
        matches!(&error, ImportError::UnknownKind { kind, .. } if kind == "CrossAttentionSpec")
    );
    let error = edit("GDN_ATTN", "MAMBA2");
    assert!(
        matches!(&error, ImportError::UnknownState { state, .. } if state.ends_with("MAMBA2")),
        "{error}"
    );
    for (from, to) in [
        ("num_kv_heads=2", "num_kv_heads=4"),
        ("block_size=144, num", "block_size=145, num"),
        ("(3, 1024)", "(4, 1024)"),
        (
            "(torch.bfloat16, torch.bfloat16)",
            "(torch.bfloat16, torch.float32)",
        ),
    ] {
        let error = edit(from, to);
        assert!(
            matches!(error, ImportError::Mismatch { .. }),
            "{to}: {error}"
        );
    }
    let error = edit("MambaSpec(block_size=144,", "MambaSpec(block_size=144(,");
    assert!(matches!(error, ImportError::UnknownKind { .. }), "{error}");
}

//! Reports that are wrong on purpose: every one is an error, none a panic.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::fs;
use std::path::PathBuf;

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_layout::import::{ImportError, Side, any, sglang, vllm_026, vllm_033};
use serde_json::{Value, json};

fn text(path: &str) -> String {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../fixtures");
    fs::read_to_string(root.join(path)).unwrap()
}

const REPORTS: [&str; 5] = [
    "vllm-0.33/qwen3.5-0.8b.json",
    "vllm-0.33/gpt-oss-120b.json",
    "vllm-0.26/qwen3-next-tiny.h200.json",
    "sglang-0.5.23/dsv4-deepseek-v4-flash.json",
    "sglang-0.5.23/unified-hybrid-qwen3-next.json",
];

type Edit<'a> = &'a dyn Fn(&mut Value);

fn qwen(edit: impl Fn(&mut Value)) -> Result<CacheLayout, ImportError> {
    let mut report: Value = serde_json::from_str(&text(REPORTS[0])).unwrap();
    edit(&mut report);
    vllm_033(&report.to_string())
}

#[test]
fn c26_unknown_kinds_and_other_state_are_refused_by_name() {
    let error = qwen(|report| report["groups"][3]["kind"] = "chunked_local".into()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "group 3 is of unknown kind `chunked_local`"
    );
    let other = "MambaAttentionBackendEnum.MAMBA2";
    let error = qwen(|report| report["specs"][0]["mamba_type"] = other.into()).unwrap_err();
    assert!(matches!(error, ImportError::UnknownState { state, .. } if state == other));
}

#[test]
fn statements_that_contradict_each_other_are_refused() {
    let cases: [(&str, Edit); 9] = [
        ("heads", &|report| {
            report["specs"][1]["num_kv_heads"] = 4.into();
        }),
        ("bytes of states", &|report| {
            report["specs"][0]["state_nbytes"][0] = 36_865.into();
        }),
        ("bytes of the view", &|report| {
            report["layers"][0]["shape"][3] = 1_085_441.into();
        }),
        ("convolution state", &|report| {
            report["specs"][0]["shapes"][0][1] = 6_145.into();
        }),
        ("channels", &|report| {
            report["config"]["linear_num_value_heads"] = 14.into();
            report["config"]["linear_num_key_heads"] = 17.into();
        }),
        ("block size", &|report| {
            report["groups"][3]["block_size"] = 545.into();
        }),
        ("pages", &|report| {
            report["layers"][23]["shape"][0] = 65.into();
        }),
        ("element size", &|report| {
            report["layers"][23]["element_size"] = 4.into();
        }),
        ("layers", &|report| report["layers"][23]["group"] = 0.into()),
    ];
    for (expected, edit) in cases {
        let error = qwen(edit).unwrap_err();
        assert!(
            matches!(&error, ImportError::Mismatch { what, .. } if *what == expected),
            "{expected}: {error}"
        );
    }
}

/// Of the two sizes stated for a head's state, the one that fits no axis is
/// named.
#[test]
fn a_state_that_is_not_of_its_heads_is_refused() {
    for (shape, what) in [([128, 64], "value dimension"), ([64, 128], "key dimension")] {
        let [outer, inner] = shape;
        let error = qwen(|report| {
            report["specs"][0]["shapes"][1] = json!([16, outer, inner]);
        })
        .unwrap_err();
        let text = format!(": {what} is 128, expected 64");
        assert!(error.to_string().ends_with(&text), "{error}");
    }
}

/// Of 1,024 channels of the capture 512 are values.
#[test]
fn convolution_channels_that_leave_none_or_an_odd_rest_for_keys_are_refused() {
    for channels in [511, 512, 513] {
        let text = text(REPORTS[2]).replace("(3, 1024)", &format!("(3, {channels})"));
        let mut report: Value = serde_json::from_str(&text).unwrap();
        for layer in [0, 1] {
            report["layers"][layer]["tensors"][0]["shape"][2] = channels.into();
        }
        let error = vllm_026(&report.to_string()).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "layer `model.layers.0.linear_attn` of group 0: convolution channels is \
                 {channels}, expected 512 for values and an even rest for keys and queries"
            )
        );
    }
}

#[test]
fn a_state_is_two_tensors() {
    for count in [1, 3] {
        let mut report: Value = serde_json::from_str(&text(REPORTS[2])).unwrap();
        let tensors = report["layers"][0]["tensors"].as_array_mut().unwrap();
        let last = tensors.last().unwrap().clone();
        tensors.resize(count, last);
        let error = vllm_026(&report.to_string()).unwrap_err();
        assert_eq!(
            error.to_string(),
            "layer `model.layers.0.linear_attn` of group 0 has no pair of states"
        );
    }
}

/// An edit of every buffer of a role.
fn llama(role: &str, edit: impl Fn(&mut Value)) -> Result<CacheLayout, ImportError> {
    let path = "sglang-0.5.23/mha-llama3-8b-ps64.json";
    let mut report: Value = serde_json::from_str(&text(path)).unwrap();
    let buffers = report.pointer_mut("/prefill/buffers").unwrap();
    for buffer in buffers.as_array_mut().unwrap() {
        if buffer.get("role").unwrap() == role {
            edit(buffer);
        }
    }
    sglang(&report.to_string(), Side::Prefill)
}

#[test]
fn a_group_of_latents_and_of_values_is_refused() {
    let error = llama("v", |buffer| buffer["role"] = "latent".into()).unwrap_err();
    assert!(
        matches!(
            &error,
            ImportError::Mismatch {
                what: "number of fields that are neither keys nor values",
                ..
            }
        ),
        "{error}"
    );
}

#[test]
fn keys_and_values_without_an_axis_of_heads_are_refused() {
    for role in ["k", "v"] {
        for (shape, strides, dtype) in [
            (json!([704, 1024]), json!([2048, 2]), "bfloat16"),
            (json!([11, 131_072]), json!([131_072, 1]), "uint8"),
        ] {
            let error = llama(role, |buffer| {
                buffer["shape"] = shape.clone();
                buffer["stride_bytes"] = strides.clone();
                buffer["dtype"] = dtype.into();
            })
            .unwrap_err();
            assert!(
                matches!(&error, ImportError::Mismatch { what: "shape", .. }),
                "{error}"
            );
        }
    }
}

#[test]
fn windows_of_one_group_must_agree() {
    let mut report: Value = serde_json::from_str(&text(REPORTS[1])).unwrap();
    let mut other = report["specs"][0].clone();
    other["sliding_window"] = 256.into();
    report["specs"].as_array_mut().unwrap().push(other);
    let layers = report["layers"].as_array_mut().unwrap();
    let layer = layers
        .iter_mut()
        .rfind(|layer| layer["group"] == 0)
        .unwrap();
    layer["spec"] = 2.into();
    let error = vllm_033(&report.to_string()).unwrap_err();
    assert!(
        matches!(error, ImportError::Mismatch { what: "window", .. }),
        "{error}"
    );
}

#[test]
fn unknown_formats_are_refused_by_name() {
    let error = any(r#"{"format":"vllm-kv-layout/2"}"#, Side::Prefill).unwrap_err();
    assert_eq!(
        error.to_string(),
        "unknown format `vllm-kv-layout/2`, known are `mooncake-pd-layout/1`, \
         `vllm-kv-layout/1`, `vllm-gpu-capture/1`, `sglang-pd-layout-facts/1`"
    );
    let error = any("{}", Side::Prefill).unwrap_err();
    assert!(
        error
            .to_string()
            .starts_with("unknown format ``, known are")
    );
    let error = any("[", Side::Prefill).unwrap_err();
    assert_eq!(
        error.to_string(),
        "not a report: EOF while parsing a list at line 1 column 1"
    );
    for (read, other) in [(0, 2), (2, 3), (3, 0)] {
        let found = match read {
            0 => vllm_033(&text(REPORTS[other])),
            2 => vllm_026(&text(REPORTS[other])),
            _ => sglang(&text(REPORTS[other]), Side::Decode),
        };
        assert!(found.is_err());
    }
}

#[test]
fn our_own_manifest_is_read_too() {
    let layout = vllm_033(&text(REPORTS[0])).unwrap();
    assert_eq!(any(&layout.to_json().unwrap(), Side::Prefill), Ok(layout));
}

#[test]
fn truncated_reports_are_errors() {
    for path in REPORTS {
        let text = text(path);
        for at in (0..text.len()).step_by(text.len().div_ceil(97)) {
            let Some(part) = text.get(..at) else { continue };
            assert!(any(part, Side::Prefill).is_err(), "{path} up to {at}");
        }
    }
}

/// Sets every number of a report in turn to a hostile one. Many of these
/// reports remain sound (a version, a count for people); all must return.
#[test]
fn no_number_makes_an_import_panic() {
    fn numbers(value: &Value, path: String, found: &mut Vec<String>) {
        match value {
            Value::Number(_) => found.push(path),
            // The first items of a list stand for all of it.
            Value::Array(items) => {
                for (at, item) in items.iter().enumerate().take(3) {
                    numbers(item, format!("{path}/{at}"), found);
                }
            }
            Value::Object(items) => {
                for (key, item) in items {
                    if !matches!(
                        key.as_str(),
                        "registered_regions" | "stock_regions" | "notes"
                    ) {
                        numbers(item, format!("{path}/{key}"), found);
                    }
                }
            }
            _ => {}
        }
    }
    let mut refused = 0_u32;
    for path in REPORTS {
        let mut report: Value = serde_json::from_str(&text(path)).unwrap();
        for unread in [
            "cases",
            "kv_cache_tensors",
            "naive_overlap",
            "request_to_indices",
        ] {
            report.as_object_mut().unwrap().remove(unread);
        }
        let mut found = Vec::new();
        numbers(&report, String::new(), &mut found);
        assert!(found.len() > 20, "{path}");
        for number in found {
            for hostile in [0, u64::from(u32::MAX), 1 << 62, u64::MAX] {
                let mut edited = report.clone();
                *edited.pointer_mut(&number).unwrap() = hostile.into();
                let import = any(&edited.to_string(), Side::Prefill);
                refused = refused.saturating_add(u32::from(import.is_err()));
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

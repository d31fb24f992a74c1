//! Views of `vllm-gpu-capture/1`, tensors caught in a running vLLM 0.26.

use std::collections::BTreeMap;

use super::error::WalkError;
use super::json::Object;
use super::layout::{GroupFacts, Layout, byte_strides};
use super::view::View;
use crate::number::count;

pub(super) fn read(file: &Object<'_>) -> Result<Layout, WalkError> {
    let mut layout = Layout::default();
    let mut group_of = BTreeMap::new();
    for group in file.objects("groups")? {
        let id = u32::try_from(count(layout.groups.len())).unwrap_or(u32::MAX);
        let spec = group.text("spec")?;
        layout.groups.insert(
            id,
            GroupFacts {
                tokens_per_block: after(spec, "(block_size=").ok_or_else(|| {
                    WalkError::Missing {
                        place: group.place().to_owned(),
                        key: "spec".to_owned(),
                        wanted: "block_size in",
                    }
                })?,
                state: spec.starts_with("MambaSpec"),
                window: after(spec, " sliding_window="),
                null: Some(0),
            },
        );
        let names = group
            .get("layer_names")
            .and_then(serde_json::Value::as_array);
        for name in names.into_iter().flatten() {
            group_of.insert(name.as_str().unwrap_or_default(), id);
        }
    }
    let blocks = file.number("num_blocks")?;
    for layer in file.objects("layers")? {
        let name = layer.text("name")?;
        let Some(&group) = group_of.get(name) else {
            continue;
        };
        for (at, tensor) in layer.objects("tensors")?.into_iter().enumerate() {
            let element = tensor.number("element_size")?;
            let shape = tensor.numbers("shape")?;
            let pages = shape.first().copied().unwrap_or(0);
            layout.views.push(View {
                group,
                layer: name.to_owned(),
                name: format!("tensor {at}"),
                allocation: tensor.id("storage")?,
                offset: tensor.number("storage_offset_bytes")?,
                element,
                strides: byte_strides(&tensor.numbers("stride")?, element, tensor.place())?,
                shape,
                pages_per_block: pages.checked_div(blocks).unwrap_or(1).max(1),
            });
        }
    }
    Ok(layout)
}

/// The positive number behind `key` in a printed cache specification.
fn after(spec: &str, key: &str) -> Option<u64> {
    let (_, tail) = spec.split_once(key)?;
    let digits: String = tail.chars().take_while(char::is_ascii_digit).collect();
    digits.parse().ok().filter(|&tokens| tokens > 0)
}

//! Views of `vllm-kv-layout/1`, what vLLM 0.33 says about its caches.

use std::collections::BTreeMap;

use serde_json::Value;

use super::error::WalkError;
use super::json::Object;
use super::layout::{GroupFacts, Layout, byte_strides};
use super::view::View;
use crate::number::{count, index};

pub(super) fn read(file: &Object<'_>) -> Result<Layout, WalkError> {
    let mut layout = Layout::default();
    // From the engine's group index to the transfer group and its pages per block.
    let mut transfer = BTreeMap::new();
    for group in file.objects("groups")? {
        if group.get("enable_kv_transfer").and_then(Value::as_bool) == Some(false) {
            continue;
        }
        let tokens = group.number("block_size")?;
        let kernel = group.number_or("kernel_block_size", tokens)?;
        let state = group.text("kind")? == "mamba";
        let pages = if state {
            Some(1)
        } else {
            tokens.checked_div(kernel)
        };
        let pages = pages.ok_or_else(|| WalkError::Overflow {
            place: group.place().to_owned(),
            what: "block_size over kernel_block_size 0",
        })?;
        let id = u32::try_from(count(transfer.len())).unwrap_or(u32::MAX);
        transfer.insert(group.number("index")?, (id, pages));
        layout.groups.insert(
            id,
            GroupFacts {
                tokens_per_block: tokens.max(1),
                state,
                window: group.number_if("sliding_window")?,
                null: Some(0),
            },
        );
    }
    let specs = file.objects("specs")?;
    for layer in file.objects("layers")? {
        let Some(&(group, pages_per_block)) = transfer.get(&layer.number("group")?) else {
            continue;
        };
        // A group of several specifications states its window in each of them.
        if let Some(spec) = specs.get(index(layer.number_or("spec", u64::MAX)?))
            && let Some(facts) = layout.groups.get_mut(&group)
            && facts.window.is_none()
        {
            facts.window = spec.number_if("sliding_window")?;
        }
        let element = layer.number("element_size")?;
        layout.views.push(View {
            group,
            layer: layer.text("name")?.to_owned(),
            name: "view".to_owned(),
            allocation: layer.id("storage")?,
            offset: layer.number("storage_offset_bytes")?,
            element,
            shape: layer.numbers("shape")?,
            strides: byte_strides(&layer.numbers("stride")?, element, layer.place())?,
            pages_per_block,
        });
    }
    Ok(layout)
}

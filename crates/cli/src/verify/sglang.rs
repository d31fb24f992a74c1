//! Views of one side of `sglang-pd-layout-facts/1`.
//!
//! SGLang's address rule: item `i` of a buffer begins at `offset + i *
//! item_len` and has `item_len` bytes.

use std::collections::BTreeMap;

use super::error::WalkError;
use super::json::Object;
use super::layout::{GroupFacts, Layout, Side};
use super::view::View;
use crate::number::count;

/// Tokens that one request row of DeepSeek V4's compressor ring holds.
const RING_TOKENS: u64 = 128;

pub(super) fn read(file: &Object<'_>, side: Side) -> Result<Layout, WalkError> {
    let page_size = file.number("page_size")?.max(1);
    let config = file.object("config")?;
    let window = match config.number_if("sliding_window")? {
        None => config.number_if("window")?,
        window => window,
    };
    let half = file.object(match side {
        Side::Prefill => "prefill",
        Side::Decode => "decode",
    })?;
    let mut layout = Layout::default();
    let mut group_of = BTreeMap::from([("kv", 0_u32)]);
    for buffer in half.objects("buffers")? {
        let component = buffer.text("component")?;
        // Metadata rows travel with the first token, not with the cache.
        if component == "aux" {
            continue;
        }
        let next = u32::try_from(count(group_of.len())).unwrap_or(u32::MAX);
        // Index keys lie under the pages of kv.
        let new = if component == "dsa" { 0 } else { next };
        let group = *group_of.entry(component).or_insert(new);
        layout.groups.entry(group).or_insert(GroupFacts {
            tokens_per_block: match component {
                "c128_state" => RING_TOKENS,
                _ => page_size,
            },
            state: component == "mamba",
            window: match component {
                "swa" => window,
                "c128_state" => Some(RING_TOKENS),
                _ => None,
            },
            null: None,
        });
        let item = buffer.number("item_len")?;
        if item == 0 {
            continue;
        }
        let layer = match buffer.get("layer_id").and_then(serde_json::Value::as_u64) {
            Some(id) => format!("layer.{id}"),
            None => buffer.text("role")?.to_owned(),
        };
        layout.views.push(View {
            group,
            layer,
            name: buffer.text("role")?.to_owned(),
            allocation: buffer.id("allocation")?,
            offset: buffer.number("offset")?,
            element: 1,
            shape: vec![buffer.number("items")?, item],
            strides: vec![item, 1],
            pages_per_block: 1,
        });
    }
    Ok(layout)
}

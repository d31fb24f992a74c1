//! The raw views of one side.

use std::collections::BTreeMap;

use super::error::WalkError;
use super::json::Object;
use super::view::View;
use super::{capture, manifest, sglang, vllm};

/// Which side of a two-sided file is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The sender.
    Prefill,
    /// The receiver.
    Decode,
}

/// What the walker needs to know about a group besides its views.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GroupFacts {
    /// Tokens per block, 1 or more.
    pub tokens_per_block: u64,
    /// Only the latest block is of use.
    pub state: bool,
    /// Tokens that a sliding window reaches back; older blocks are of no use.
    pub window: Option<u64>,
    /// The id that means "no block".
    pub null: Option<u64>,
}

/// The raw views of one side.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Layout {
    /// By group id.
    pub groups: BTreeMap<u32, GroupFacts>,
    /// In the order of the file.
    pub views: Vec<View>,
}

impl Layout {
    /// Reads a layout file of any known format: `mooncake-pd-layout/1`,
    /// `vllm-kv-layout/1`, `vllm-gpu-capture/1` or, one side of it,
    /// `sglang-pd-layout-facts/1`.
    ///
    /// # Errors
    /// What the file lacks, and where.
    pub fn read(text: &str, side: Side) -> Result<Self, WalkError> {
        let value = serde_json::from_str(text).map_err(|error| WalkError::NotJson {
            reason: error.to_string(),
        })?;
        let file = Object::root(&value);
        let format = match file.get("schema") {
            Some(_) => file.text("schema")?,
            None => file.text("format")?,
        };
        match format {
            "mooncake-pd-layout/1" => manifest::read(&file),
            "vllm-kv-layout/1" => vllm::read(&file),
            "vllm-gpu-capture/1" => capture::read(&file),
            "sglang-pd-layout-facts/1" => sglang::read(&file, side),
            other => Err(WalkError::Format {
                found: other.to_owned(),
            }),
        }
    }
}

/// Element strides as byte strides.
pub(super) fn byte_strides(
    strides: &[u64],
    element: u64,
    place: &str,
) -> Result<Vec<u64>, WalkError> {
    strides
        .iter()
        .map(|stride| {
            stride
                .checked_mul(element)
                .ok_or_else(|| WalkError::Overflow {
                    place: place.to_owned(),
                    what: "a byte stride",
                })
        })
        .collect()
}

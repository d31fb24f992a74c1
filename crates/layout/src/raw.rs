//! The manifest as it is written: plain numbers and names, nothing checked.
//!
//! This is the JSON format `mooncake-pd-layout/1`. Importers and the
//! [`LayoutBuilder`](crate::LayoutBuilder) make a [`RawLayout`] too, so that
//! every layout passes the one validation of
//! [`CacheLayout::new`](crate::CacheLayout::new).

use alloc::string::String;
use alloc::vec::Vec;
use serde::{Deserialize, Serialize};

/// The value of [`RawLayout::format`].
pub const FORMAT: &str = "mooncake-pd-layout/1";

/// A whole manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLayout {
    /// Always [`FORMAT`].
    pub format: String,
    /// Which engine made it, for people; not compared.
    #[serde(default)]
    pub engine: String,
    /// Which model it is of, for people; not compared.
    #[serde(default)]
    pub model: String,
    /// What the bytes mean beyond shapes; compared and fingerprinted.
    #[serde(default)]
    pub content: RawContent,
    /// Which part of the model this side holds.
    #[serde(default)]
    pub shard: RawShard,
    /// Memory blocks that are registered as wholes.
    pub allocations: Vec<RawAllocation>,
    /// Id spaces.
    pub pools: Vec<RawPool>,
    /// Pairs of pools whose overlay the engine's allocator keeps apart.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arbitrated: Vec<[u32; 2]>,
    /// Cache groups.
    pub groups: Vec<RawGroup>,
}

/// Content tag of a [`RawLayout`]. Empty strings mean "not stated".
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawContent {
    /// Model and revision whose caches these are.
    #[serde(default)]
    pub model_revision: String,
    /// How the kernels order a recurrent state (CPU and GPU kernels differ).
    #[serde(default)]
    pub state_order: String,
}

/// Tensor- and pipeline-parallel place of a [`RawLayout`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawShard {
    /// Tensor-parallel rank.
    pub tp_rank: u32,
    /// Tensor-parallel size.
    pub tp_size: u32,
    /// Pipeline-parallel rank.
    pub pp_rank: u32,
    /// Pipeline-parallel size.
    pub pp_size: u32,
}

impl Default for RawShard {
    fn default() -> Self {
        Self {
            tp_rank: 0,
            tp_size: 1,
            pp_rank: 0,
            pp_size: 1,
        }
    }
}

/// One registered memory block.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawAllocation {
    /// Its name in this layout.
    pub id: u32,
    /// Bytes.
    pub len: u64,
}

/// One id space.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawPool {
    /// Its name in this layout.
    pub id: u32,
    /// Ids are `0..capacity`.
    pub capacity: u32,
    /// The id that stands for "no block" in lists, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub null_id: Option<u32>,
    /// Half-open ranges of ids that never appear in lists.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub reserved: Vec<[u32; 2]>,
}

/// One cache group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawGroup {
    /// Its name on both sides.
    pub id: u32,
    /// `full_attention`, `sliding_window`, `mla`, `sliding_window_mla` or
    /// `gdn_state`.
    pub kind: String,
    /// Tokens the window reaches back; sliding kinds only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub window: Option<u32>,
    /// Tokens per logical block (for a state group: per position of its table).
    pub tokens_per_block: u32,
    /// Physical pages per logical block.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub pages_per_block: u32,
    /// The pool its ids come from.
    pub pool: u32,
    /// Its layers.
    pub layers: Vec<RawLayer>,
}

const fn one() -> u32 {
    1
}

#[expect(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference"
)]
const fn is_one(count: &u32) -> bool {
    *count == 1
}

/// One layer's share of a group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawLayer {
    /// Its name on both sides.
    pub name: String,
    /// The tensors a block has in this layer.
    pub fields: Vec<RawField>,
}

/// One tensor of a layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawField {
    /// Its name within the layer.
    pub name: String,
    /// Element type, PyTorch's name.
    pub dtype: String,
    /// The allocation it lies in.
    pub allocation: u32,
    /// Bytes from the allocation's start to physical page 0.
    pub offset: u64,
    /// Bytes from one physical page to the next.
    pub page_stride: u64,
    /// Axes of one physical page, strides descending.
    pub dims: Vec<RawDim>,
    /// How tensor parallelism cuts it; absent: every rank has all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split: Option<RawSplit>,
}

/// One axis of a physical page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawDim {
    /// What it counts.
    pub axis: crate::Axis,
    /// Elements along it.
    pub extent: u64,
    /// Bytes from one to the next.
    pub stride: u64,
}

/// A tensor-parallel cut.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RawSplit {
    /// The axis that is cut.
    pub axis: crate::Axis,
    /// This rank's extents of the parts that are cut one by one; they add up
    /// to the axis's extent.
    pub parts: Vec<u64>,
    /// Consecutive ranks that hold the same share; divides the
    /// tensor-parallel size. Above 1 where there are more ranks than heads.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub replicas: u32,
}

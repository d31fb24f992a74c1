//! The keys of an `sglang-pd-layout-facts/1` report that a layout is made from.

use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;

#[derive(Deserialize)]
pub(super) struct Report {
    pub(super) schema: String,
    #[serde(default)]
    pub(super) name: String,
    #[serde(default)]
    pub(super) sglang: String,
    pub(super) config: Config,
    /// Tokens of a page.
    pub(super) page_size: u32,
    pub(super) index_spaces: IndexSpaces,
    pub(super) prefill: Side,
    pub(super) decode: Side,
    /// Tensors inside the items of unified memory.
    #[serde(default)]
    pub(super) envelope_views: Vec<View>,
    /// Bytes at the start of unified memory that no id may use; absent where
    /// every pool has its own memory.
    pub(super) reserved_floor_bytes: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Config {
    /// Tokens; two names for the same.
    #[serde(alias = "sliding_window")]
    pub(super) window: Option<u32>,
    #[serde(default)]
    pub(super) linear_layers: Vec<u64>,
    /// This rank's convolution channels of q, k and v.
    pub(super) conv_shard_groups: Option<Vec<u64>>,
}

#[derive(Deserialize)]
pub(super) struct IndexSpaces {
    pub(super) full: Option<IndexSpace>,
    pub(super) swa: Option<IndexSpace>,
    pub(super) mamba: Option<IndexSpace>,
}

#[derive(Deserialize)]
pub(super) struct IndexSpace {
    pub(super) first_allocatable: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Side {
    pub(super) allocations: Vec<Allocation>,
    pub(super) buffers: Vec<Buffer>,
    #[serde(default)]
    pub(super) overlapping_buffers: Vec<OverlappingBuffers>,
    pub(super) kv_args: KvArgs,
    pub(super) pool_class: String,
    pub(super) reserved_req_row: Option<u32>,
}

#[derive(Deserialize)]
pub(super) struct Allocation {
    pub(super) id: u32,
    /// Bytes.
    pub(super) nbytes: u64,
}

#[derive(Deserialize)]
pub(super) struct Buffer {
    pub(super) component: String,
    pub(super) allocation: u32,
    pub(super) offset: u64,
    /// Bytes registered; 0 if the layer has no such buffer.
    pub(super) nbytes: u64,
    /// Bytes moved per id, and from one id to the next.
    pub(super) item_len: u64,
    pub(super) items: u64,
    pub(super) role: String,
    pub(super) dtype: String,
    /// First the rows over all items, then one row.
    pub(super) shape: Vec<u64>,
    pub(super) stride_bytes: Vec<u64>,
    pub(super) layer_id: Option<u64>,
}

/// A component and an index into its buffers, twice.
#[derive(Deserialize)]
pub(super) struct OverlappingBuffers {
    pub(super) a: (String, u64),
    pub(super) b: (String, u64),
}

#[derive(Deserialize)]
pub(super) struct KvArgs {
    pub(super) state_types: Vec<String>,
    pub(super) kv_layout: Option<String>,
    pub(super) kv_head_num: Option<u64>,
    pub(super) total_kv_head_num: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct View {
    /// `full` for pages, else the component's name.
    pub(super) sub_pool: String,
    pub(super) role: String,
    pub(super) layer_id: u64,
    /// Bytes from the item's start.
    pub(super) offset: u64,
    pub(super) shape: Vec<u64>,
    pub(super) stride_bytes: Vec<u64>,
    pub(super) dtype: String,
}

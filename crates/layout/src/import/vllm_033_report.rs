//! The keys of a `vllm-kv-layout/1` report that a layout is made from.

use alloc::string::String;
use alloc::vec::Vec;
use serde::Deserialize;

use super::vllm_cache::Storage;

#[derive(Deserialize)]
pub(super) struct Report {
    pub(super) format: String,
    #[serde(default)]
    pub(super) vllm_version: String,
    #[serde(default)]
    pub(super) model: String,
    pub(super) config: Config,
    /// Blocks in the one pool, the null block included.
    pub(super) num_blocks: u32,
    pub(super) storages: Vec<Storage>,
    pub(super) specs: Vec<Spec>,
    pub(super) groups: Vec<Group>,
    pub(super) layers: Vec<Layer>,
}

#[derive(Deserialize)]
pub(super) struct Config {
    #[serde(default)]
    pub(super) arch: String,
    #[serde(default)]
    pub(super) attn_backend: String,
    pub(super) tp_size: u32,
    #[serde(default)]
    pub(super) tp_rank: u32,
    pub(super) num_key_value_heads: Option<u64>,
    pub(super) linear_num_key_heads: Option<u64>,
    pub(super) linear_num_value_heads: Option<u64>,
    pub(super) linear_key_head_dim: Option<u64>,
    pub(super) linear_value_head_dim: Option<u64>,
}

#[derive(Deserialize)]
pub(super) struct Spec {
    pub(super) kind: String,
    /// Tokens.
    pub(super) block_size: u32,
    /// Tokens.
    pub(super) sliding_window: Option<u32>,
    pub(super) num_kv_heads: Option<u64>,
    pub(super) dtype: Option<String>,
    pub(super) mamba_type: Option<String>,
    /// Of one slot: convolution state, recurrent state.
    #[serde(default)]
    pub(super) shapes: Vec<Vec<u64>>,
    #[serde(default)]
    pub(super) dtypes: Vec<String>,
    /// Bytes.
    #[serde(default)]
    pub(super) state_nbytes: Vec<u64>,
}

#[derive(Deserialize)]
pub(super) struct Group {
    pub(super) index: u32,
    pub(super) kind: String,
    /// Tokens.
    pub(super) block_size: u32,
    /// Tokens.
    pub(super) kernel_block_size: u32,
    pub(super) enable_kv_transfer: bool,
    pub(super) layer_names: Vec<String>,
}

#[derive(Deserialize)]
pub(super) struct Layer {
    pub(super) name: String,
    pub(super) group: u32,
    /// Index into the report's specs.
    pub(super) spec: usize,
    pub(super) storage: u32,
    pub(super) storage_offset_bytes: u64,
    /// Page, head, token, content.
    pub(super) shape: Vec<u64>,
    /// Elements.
    pub(super) stride: Vec<u64>,
    pub(super) dtype: String,
    /// Bytes.
    pub(super) element_size: u64,
}

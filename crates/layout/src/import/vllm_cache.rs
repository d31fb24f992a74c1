//! What every vLLM keeps its cache in.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use serde::Deserialize;

use crate::raw::{self, RawAllocation, RawContent, RawLayout, RawPool, RawShard};

/// One allocation of a report.
#[derive(Deserialize)]
pub(super) struct Storage {
    id: u32,
    /// Bytes.
    nbytes: u64,
}

/// A manifest without groups: the storages, and one pool of `blocks` ids with
/// null id 0.
pub(super) fn cache(version: &str, storages: &[Storage], blocks: u32) -> RawLayout {
    RawLayout {
        format: raw::FORMAT.to_string(),
        engine: format!("vLLM {version}"),
        model: String::new(),
        content: RawContent::default(),
        shard: RawShard::default(),
        allocations: storages
            .iter()
            .map(|storage| RawAllocation {
                id: storage.id,
                len: storage.nbytes,
            })
            .collect(),
        pools: Vec::from([RawPool {
            id: 0,
            capacity: blocks,
            null_id: Some(0),
            reserved: Vec::new(),
        }]),
        arbitrated: Vec::new(),
        groups: Vec::new(),
    }
}

use alloc::string::String;
use alloc::vec::Vec;

use serde::Deserialize;

use super::RegionError;

/// One region as vLLM's connector registers it, before or after preparation.
///
/// Deserializes from an entry of `regions`, `local_regions`, `remote_regions` (oracle files),
/// `prepared_local` or `prepared_remote` (bench file).
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(try_from = "RawRegion")]
pub struct Region {
    layer_name: String,
    layer_index: u64,
    groups: Vec<usize>,
    shared: bool,
    base: u64,
    stride: u64,
    page: u64,
    row_offset: Option<u64>,
}

/// The recorded form, where -1 stands for "shared" and for "no packed row".
#[derive(Deserialize)]
struct RawRegion {
    layer_name: String,
    layer_index: u64,
    group_index: i64,
    shared_group_ids: Vec<usize>,
    base_off: u64,
    block_len: u64,
    kv_block_len: u64,
    row_offset: i64,
}

impl TryFrom<RawRegion> for Region {
    type Error = RegionError;

    fn try_from(raw: RawRegion) -> Result<Self, Self::Error> {
        let outside = |field, value| RegionError {
            layer: raw.layer_name.clone(),
            field,
            value,
        };
        let groups = match raw.group_index {
            -1 => raw.shared_group_ids,
            one => Vec::from([usize::try_from(one).map_err(|_| outside("group_index", one))?]),
        };
        let row_offset = match raw.row_offset {
            -1 => None,
            at => Some(u64::try_from(at).map_err(|_| outside("row_offset", at))?),
        };
        Ok(Self {
            shared: raw.group_index == -1,
            layer_name: raw.layer_name,
            layer_index: raw.layer_index,
            groups,
            base: raw.base_off,
            stride: raw.block_len,
            page: raw.kv_block_len,
            row_offset,
        })
    }
}

impl Region {
    /// The engine's layer name.
    pub fn layer_name(&self) -> &str {
        &self.layer_name
    }

    /// The layer's number in the model, from 0.
    pub const fn layer_index(&self) -> u64 {
        self.layer_index
    }

    /// Transfer groups whose blocks live here, in order; several only for a shared region.
    pub fn groups(&self) -> &[usize] {
        &self.groups
    }

    /// Bytes from the storage's start to block 0.
    pub const fn base(&self) -> u64 {
        self.base
    }

    /// Bytes from one block to the next.
    pub const fn stride(&self) -> u64 {
        self.stride
    }

    /// Bytes of a block that are copied.
    pub const fn page(&self) -> u64 {
        self.page
    }

    /// Bytes from a packed row's start to this region, or nothing where rows are not packed.
    pub const fn row_offset(&self) -> Option<u64> {
        self.row_offset
    }

    /// Whether consecutive blocks leave no gap, so that a run of them is one write.
    pub(super) const fn fills_stride(&self) -> bool {
        self.page == self.stride
    }

    /// Bytes from the storage's start to `block`.
    pub(super) fn offset_of(&self, block: u64) -> Option<u64> {
        block.checked_mul(self.stride)?.checked_add(self.base)
    }

    pub(super) fn same_owner(&self, other: &Self) -> bool {
        self.shared == other.shared && self.groups == other.groups
    }

    /// This region grown to its whole packed row.
    pub(super) fn whole_row(&self) -> Self {
        Self {
            page: self.stride,
            ..self.clone()
        }
    }
}

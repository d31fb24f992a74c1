use alloc::string::String;

use thiserror::Error;

/// Why vLLM fails one request; the text is what it answers on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Both sides list a different number of transfer groups.
    #[error("KV group count mismatch")]
    GroupCount,
    /// D offers more blocks of a group than P has.
    #[error("P num blocks less than D")]
    FewerBlocks,
}

/// Why a recorded region cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("{field} {value} of layer {layer} is below -1")]
pub struct RegionError {
    pub(super) layer: String,
    pub(super) field: &'static str,
    pub(super) value: i64,
}

/// Why two sides' regions do not pair. vLLM ends the handshake with an error of its own there.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum PrepareError {
    /// Prepared lists are parallel; these are not.
    #[error("{local} local regions against {remote} remote regions")]
    Count {
        /// Regions of P.
        local: usize,
        /// Regions of D.
        remote: usize,
    },
    /// P has a region of a layer that D lacks.
    #[error("occurrence {occurrence} of layer {layer} is missing on the remote side")]
    Missing {
        /// The layer's name.
        layer: String,
        /// Which of P's regions of this layer, from 0.
        occurrence: usize,
    },
    /// Paired regions differ in layer name, layer index or groups.
    #[error(
        "region of layer {local} (index {local_index}) is paired with layer {remote} (index {remote_index}), or their groups differ"
    )]
    Identity {
        /// P's layer name.
        local: String,
        /// P's layer index.
        local_index: u64,
        /// D's layer name.
        remote: String,
        /// D's layer index.
        remote_index: u64,
    },
    /// Paired regions copy different lengths: unequal TP, which is outside this oracle.
    #[error("page of layer {layer} has {local} bytes on P and {remote} on D")]
    Page {
        /// The layer's name.
        layer: String,
        /// Bytes on P.
        local: u64,
        /// Bytes on D.
        remote: u64,
    },
}

/// Why no descriptor list exists for these inputs.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum DescriptorError {
    /// Both sides agree on a number of groups that is not the model's.
    #[error("request {request} lists {found} groups, the model has {expected}")]
    Groups {
        /// D's request id.
        request: String,
        /// Groups in the request.
        found: usize,
        /// Groups of the model.
        expected: usize,
    },
    /// A region belongs to a group that the request does not list.
    #[error("group {group} of a region of layer {layer} is outside 0..{groups}")]
    Region {
        /// The layer's name.
        layer: String,
        /// The region's group.
        group: usize,
        /// Groups of the request.
        groups: usize,
    },
    /// A logical block's kernel blocks do not fit in 64 bits.
    #[error("kernel blocks of block {block} with {ratio} to a block overflow")]
    KernelBlock {
        /// The logical block id.
        block: u64,
        /// Kernel blocks per logical block.
        ratio: u64,
    },
    /// A byte offset or a length does not fit in 64 bits.
    #[error("offset or length of the run at block {block} in layer {layer} overflows")]
    Offset {
        /// The layer's name.
        layer: String,
        /// P's first block of the run.
        block: u64,
    },
}

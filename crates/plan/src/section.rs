//! What a plan moves, by request and group.

use alloc::vec::Vec;
use mooncake_pd_layout::{GroupId, GroupKind, LayerId, TokensPerBlock};

use crate::select::Pair;

/// What moves for one group of one request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Section {
    pub(crate) request: usize,
    pub(crate) group: GroupId,
    pub(crate) kind: GroupKind,
    pub(crate) tokens_per_block: TokensPerBlock,
    pub(crate) layers: usize,
    pub(crate) local: Vec<LayerId>,
    pub(crate) payload: u64,
    pub(crate) pairs: Vec<Pair>,
    pub(crate) copies: u64,
    pub(crate) bytes: u64,
}

impl Section {
    /// Index of the request in its batch.
    #[must_use]
    pub const fn request(&self) -> usize {
        self.request
    }

    /// The group.
    #[must_use]
    pub const fn group(&self) -> GroupId {
        self.group
    }

    /// Its kind.
    #[must_use]
    pub const fn kind(&self) -> GroupKind {
        self.kind
    }

    /// Tokens of one block, 1 or more: a position's distance to the next.
    #[must_use]
    pub const fn tokens_per_block(&self) -> TokensPerBlock {
        self.tokens_per_block
    }

    /// Layers that both sides have.
    #[must_use]
    pub const fn layers(&self) -> usize {
        self.layers
    }

    /// Layers that only the destination has; they stay as they are.
    #[must_use]
    pub fn local_layers(&self) -> &[LayerId] {
        &self.local
    }

    /// Blocks that move, by position.
    #[must_use]
    pub fn pairs(&self) -> &[Pair] {
        &self.pairs
    }

    /// Payload bytes, without bridged gaps.
    #[must_use]
    pub fn payload_bytes(&self) -> u64 {
        let pairs = u64::try_from(self.pairs.len()).unwrap_or(u64::MAX);
        self.payload.saturating_mul(pairs)
    }

    /// Copies that begin in it. A copy may run on into the next group, where
    /// that group's first block follows this one's last on both sides.
    #[must_use]
    pub const fn copies(&self) -> u64 {
        self.copies
    }

    /// Bytes of the copies that begin in it.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

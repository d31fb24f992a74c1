//! How a request ended in its engine.

use alloc::sync::Arc;

use crate::tables::BlockTables;
use crate::tokens::TokenCount;

/// What prefill computed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Computed {
    /// Elements of the prompt in the cache, generated tokens not counted: as many as
    /// were to be kept.
    pub computed: TokenCount,
    /// Elements that the recurrent states have seen, where the model has such.
    pub state: Option<TokenCount>,
    /// The first token, where the engines hand over with one.
    pub first_token: Option<u32>,
    /// The engine's blocks.
    pub tables: Arc<BlockTables>,
}

/// How a prefill request ended in its engine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefillFinish {
    /// With the most tokens it may generate.
    Length(Computed),
    /// With a token that ends it. The prompt's cache is as good.
    Stop(Computed),
    /// Given up by a client or by the engine.
    Abort,
    /// By an error.
    Error,
}

/// How a decode request ended in its engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DecodeFinish {
    /// With the most tokens it may generate.
    Length,
    /// With a token that ends it.
    Stop,
    /// Given up by a client or by the engine.
    Abort,
    /// By an error.
    Error,
}

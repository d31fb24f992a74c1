//! Whose numbers are counted.

use crate::tokens::TokenCount;

/// Whose numbers are counted; both engines of a transfer have to count alike.
///
/// The stock flavours were compared with what vLLM 0.33.0's own classes counted
/// (`fixtures/vllm-0.33/accounting.json`). Where we count otherwise:
///
/// | what | stock | [`Mooncake`](Self::Mooncake) | [`Nixl`](Self::Nixl) | [`Own`](Self::Own) |
/// |---|---|---|---|---|
/// | embeddings on decode | loads nothing, computes all anew | loads | as stock | loads |
/// | tokens that prefill generates where nothing is held back | as many as were asked for; the blocks sent then reach past the prompt | 1 | as stock | 1 |
/// | look-ahead, `N > k` | Mooncake holds back nothing for it, NIXL does | as stock | as stock | as NIXL |
/// | states, look-ahead, `1 < N <= k` | NIXL holds back nothing: decode runs the last element with a state that has seen it | 1 held back | as stock | 1 held back |
/// | states, read-back of all that prefill keeps | prefill runs its last element with a state that has seen it | no read-back | as stock | no read-back |
///
/// What is no number differs for every flavour, in the hosts:
/// [`PrefillHost`](crate::PrefillHost) hands over a prompt whose first token ends the
/// request (stock's Mooncake connector does not, and decode waits 480 s), and asks for
/// no read-back (stock's NIXL connector waits for ever where it was not switched on).
/// What decode has to run is stated as prompt; stock's scheduler takes the last
/// element for a decode step and adds speculative tokens to it. With states and a
/// window over 1 that scheduler never runs what is left where a block ends inside the
/// window: an engine that embeds it counts as [`Self::Mooncake`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Flavour {
    /// As vLLM's Mooncake connector: for peers that may be stock.
    Mooncake,
    /// As vLLM's NIXL connector.
    Nixl {
        /// Fewest elements that prefill reads back from decode instead of computing
        /// them, 0..2^32; 0 reads back any number. See [`Self::STOCK_THRESHOLD`].
        recompute_threshold: TokenCount,
    },
    /// For peers that are all ours: as [`Self::Mooncake`], with look-ahead.
    Own,
}

impl Flavour {
    /// vLLM's default threshold.
    pub const STOCK_THRESHOLD: TokenCount = TokenCount::new(64);

    /// vLLM's NIXL connector with its default options.
    #[must_use]
    pub const fn nixl() -> Self {
        Self::Nixl {
            recompute_threshold: Self::STOCK_THRESHOLD,
        }
    }
}

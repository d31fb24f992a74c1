//! How a request ended, over all ranks.

use crate::decode::DecodeError;
use crate::failure::{Failure, Fault};
use crate::id::{RequestId, TransferId};
use crate::prefill::PrefillError;
use crate::tokens::TokenCount;

/// The one result of a prefill request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrefillResult {
    /// The request.
    pub request: RequestId,
    /// Its hand-over.
    pub transfer: TransferId,
    /// How it ended.
    pub end: PrefillEnd,
    /// Whether its blocks come back with this: they were held.
    pub returns_blocks: bool,
}

/// How a prefill request ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefillEnd {
    /// Every rank's consumers have what they asked for.
    Delivered,
    /// No consumer of any rank needed anything.
    Released,
    /// At least one rank's did not get it; the first failure.
    Failed(PrefillFailure),
}

/// Why a prefill request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefillFailure {
    /// Its engine gave it up.
    #[error("aborted by its engine")]
    Aborted,
    /// A rank failed.
    #[error("rank {rank}: {failure}")]
    Rank {
        /// Which.
        rank: u16,
        /// Why.
        failure: Failure,
    },
    /// A rank refused the request or its blocks.
    #[error("rank {rank} refused: {error}")]
    Rejected {
        /// Which.
        rank: u16,
        /// Why.
        error: PrefillError,
    },
}

impl PrefillFailure {
    /// Who is at fault.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Rank { failure, .. } => failure.fault(),
            Self::Rejected {
                error: PrefillError::Full { .. },
                ..
            } => Fault::Limit,
            Self::Aborted | Self::Rejected { .. } => Fault::Caller,
        }
    }
}

/// The one result of a load.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecodeResult {
    /// The request.
    pub request: RequestId,
    /// Its hand-over.
    pub transfer: TransferId,
    /// How it ended.
    pub end: DecodeEnd,
    /// Whether its blocks come back with this: the engine had given the request up.
    pub returns_blocks: bool,
}

/// How a load ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeEnd {
    /// The cache is in place on every rank.
    Loaded {
        /// Elements that it covers, those that were there before included.
        computed: TokenCount,
        /// Elements to compute next, as prompt and not as a decode step.
        run_as_prompt: TokenCount,
        /// Elements to run once more for their logits, as prompt: 0 or 1.
        run_again: TokenCount,
        /// Prefill's first token, where it hands over with one.
        first_token: Option<u32>,
    },
    /// It is not, and the blocks hold nothing that can be used; the first failure.
    /// The engine computes the prompt itself or fails the request.
    Failed(DecodeFailure),
}

/// Why a load failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeFailure {
    /// Its engine gave it up.
    #[error("aborted by its engine")]
    Aborted,
    /// A rank refused the load.
    #[error("rank {rank} refused: {error}")]
    Rejected {
        /// Which.
        rank: u16,
        /// Why.
        error: DecodeError,
    },
    /// A rank failed.
    #[error("rank {rank}: {failure}")]
    Rank {
        /// Which.
        rank: u16,
        /// Why.
        failure: Failure,
    },
    /// The two sides' prompts differ.
    #[error("rank {rank}: prefill's prompt has {prefill} elements, decode's {decode}")]
    Prompt {
        /// Which rank saw it.
        rank: u16,
        /// Elements of the prompt on prefill.
        prefill: TokenCount,
        /// Elements of the prompt on decode.
        decode: TokenCount,
    },
    /// One side hands over with a first token, the other without.
    #[error("rank {rank}: a first token is {given} by prefill and {expected} by decode")]
    FirstToken {
        /// Which rank saw it.
        rank: u16,
        /// `given` or `not given`.
        given: &'static str,
        /// `expected` or `not expected`.
        expected: &'static str,
    },
    /// Ranks of prefill disagree.
    #[error("rank {rank}: the first token is {token}, another rank has {other}")]
    FirstTokens {
        /// Which rank saw it.
        rank: u16,
        /// Its token.
        token: u32,
        /// An earlier rank's.
        other: u32,
    },
}

impl DecodeFailure {
    /// Who is at fault.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Rank { failure, .. } => failure.fault(),
            Self::Prompt { .. } | Self::FirstToken { .. } => Fault::IncompatiblePeer,
            Self::FirstTokens { .. } => Fault::Peer,
            Self::Rejected {
                error: DecodeError::Full { .. } | DecodeError::TooManySources { .. },
                ..
            } => Fault::Limit,
            Self::Aborted | Self::Rejected { .. } => Fault::Caller,
        }
    }
}

//! What an engine's scheduler did wrong.

use crate::accounting::AccountingError;
use crate::handoff::HandOffError;
use crate::holdback::PromptInput;
use crate::id::{RequestId, TransferId};
use crate::tokens::TokenCount;

/// A call that can't be; nothing has changed. Our own engine's fault.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HostError {
    /// Nothing to compute.
    #[error("request {request} has an empty prompt")]
    EmptyPrompt {
        /// The request.
        request: RequestId,
    },
    /// A live request under another transfer id.
    #[error("request {request} is live with transfer {transfer}, not {asked}")]
    RequestTaken {
        /// The request, unharmed.
        request: RequestId,
        /// Its transfer.
        transfer: TransferId,
        /// The transfer it was offered with.
        asked: TransferId,
    },
    /// A transfer id that a live request has.
    #[error("transfer {transfer} belongs to live request {owner}")]
    TransferTaken {
        /// The transfer id.
        transfer: TransferId,
        /// The request that has it, unharmed.
        owner: RequestId,
    },
    /// A live request with another prompt.
    #[error("request {request} has a prompt of {was:?}, not {now:?}")]
    PromptChanged {
        /// The request.
        request: RequestId,
        /// What it was first offered with.
        was: PromptInput,
        /// What it is offered with now.
        now: PromptInput,
    },
    /// Too many live requests.
    #[error("{live} requests are live, the limit is {limit}")]
    Full {
        /// How many.
        live: usize,
        /// Most allowed.
        limit: usize,
    },
    /// No step for a long time.
    #[error("{orders} orders wait for a step, the limit is {limit}")]
    NoStep {
        /// How many.
        orders: usize,
        /// Most allowed.
        limit: usize,
    },
    /// No live request has this name.
    #[error("request {request} is not live")]
    Unknown {
        /// The name.
        request: RequestId,
    },
    /// A call out of turn.
    #[error("{call} of request {request}, which is {stage}: expected {expected}")]
    OutOfTurn {
        /// The request.
        request: RequestId,
        /// What was called.
        call: &'static str,
        /// How far the request is.
        stage: &'static str,
        /// What should have been called.
        expected: &'static str,
    },
    /// Counts that can't be.
    #[error("request {request}: {error}")]
    Counts {
        /// The request.
        request: RequestId,
        /// What is wrong with them.
        error: AccountingError,
    },
    /// All of the prompt is said to be cached, and states can't be taken back by one.
    #[error("request {request} has {local} elements cached, at most {most} leave one to compute")]
    NothingLeft {
        /// The request.
        request: RequestId,
        /// Elements that the engine's own cache has.
        local: TokenCount,
        /// Most it may count.
        most: TokenCount,
    },
    /// A model with recurrent states, and nobody says what they have seen.
    #[error("request {request} was computed, and how many elements its states have seen is absent")]
    NoState {
        /// The request.
        request: RequestId,
    },
    /// Prefill ended at another point than it was told to.
    #[error("request {request} ended with {computed} elements computed, {keep} were to be kept")]
    Computed {
        /// The request.
        request: RequestId,
        /// Elements computed.
        computed: TokenCount,
        /// Elements kept of the prompt.
        keep: TokenCount,
    },
    /// Counts that make no hand-over.
    #[error("request {request}: {error}")]
    HandOff {
        /// The request.
        request: RequestId,
        /// What is wrong with them.
        error: HandOffError,
    },
    /// Blocks for another load than was agreed.
    #[error("request {request} got blocks to load {load} elements, {matched} were to be loaded")]
    Load {
        /// The request.
        request: RequestId,
        /// Elements to load, by the engine.
        load: TokenCount,
        /// Elements to load, as it was told.
        matched: TokenCount,
    },
}

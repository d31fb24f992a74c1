//! What goes into a prefill rank's machine, and what comes out.

use alloc::sync::Arc;

use mooncake_pd_plan::RequestError;

use crate::failure::{Failure, TransferFault};
use crate::handoff::HandOff;
use crate::id::{RequestId, TransferId};
use crate::lease::Quiescence;
use crate::message::{Answer, Cancel, Pull};
use crate::peer::{Peer, PullNumber};
use crate::tables::{BlockTables, TablesError};

/// One transfer that the engine was asked to run, 0..2^64; never used again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct AttemptId(u64);

impl AttemptId {
    pub(super) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What happened to a prefill rank.
#[derive(Debug)]
pub enum PrefillEvent {
    /// Its engine took a request whose cache will be asked for.
    Started {
        /// The engine's name for it.
        request: RequestId,
        /// The name that the pull will give.
        transfer: TransferId,
    },
    /// The prompt is computed; the engine keeps these blocks until the end.
    Finished {
        /// The engine's name for it.
        request: RequestId,
        /// Which.
        transfer: TransferId,
        /// How far.
        hand_off: HandOff,
        /// The engine's blocks.
        tables: Arc<BlockTables>,
    },
    /// The engine gives the request up, at whatever stage.
    Aborted {
        /// The engine's name for it.
        request: RequestId,
        /// Which.
        transfer: TransferId,
    },
    /// A pull came in.
    Pulled(Pull),
    /// A cancel came in.
    Cancelled(Cancel),
    /// Nothing of a transfer is under way any more.
    Settled {
        /// Which.
        attempt: AttemptId,
        /// Whether every byte is in place.
        result: Result<(), TransferFault>,
        /// That nothing is under way.
        proof: Quiescence,
    },
    /// A transfer was not begun, because no plan can be made of its tables.
    Refused {
        /// Which.
        attempt: AttemptId,
        /// Why.
        error: Arc<RequestError>,
    },
    /// Only time has passed.
    Tick,
}

/// What the embedder has to do.
#[derive(Debug)]
pub enum PrefillCommand {
    /// Plan and run a transfer, then report [`PrefillEvent::Settled`] or
    /// [`PrefillEvent::Refused`].
    Transfer {
        /// Its number.
        attempt: AttemptId,
        /// Whose memory is written.
        to: Peer,
        /// The pull that it serves.
        number: PullNumber,
        /// The hand-over it is part of.
        transfer: TransferId,
        /// How far the prompt is computed.
        hand_off: HandOff,
        /// Our blocks.
        source: Arc<BlockTables>,
        /// The peer's blocks.
        destination: Arc<BlockTables>,
    },
    /// Bring a transfer to its end as soon as possible; it still ends with
    /// [`PrefillEvent::Settled`].
    Drain {
        /// Which.
        attempt: AttemptId,
    },
    /// Send an answer.
    Answer(Answer),
    /// A request is over; its blocks may be used again.
    Ended {
        /// The engine's name for it.
        request: RequestId,
        /// The hand-over's name.
        transfer: TransferId,
        /// How it ended.
        outcome: PrefillOutcome,
        /// The engine's blocks, if it had reported them.
        tables: Option<Arc<BlockTables>>,
    },
}

/// How a request ended on the prefill side.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PrefillOutcome {
    /// Every consumer has what it asked for.
    Delivered,
    /// No consumer needed anything.
    Released,
    /// At least one consumer did not get it.
    Failed(Failure),
}

/// What a prefill engine did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PrefillError {
    /// A transfer id that a live request has.
    #[error("transfer {transfer} belongs to live request {owner}")]
    TransferTaken {
        /// The transfer id.
        transfer: TransferId,
        /// The request that has it, unharmed.
        owner: RequestId,
    },
    /// Too many live requests.
    #[error("{live} requests are live, the limit is {limit}")]
    Full {
        /// How many.
        live: usize,
        /// Most allowed.
        limit: usize,
    },
    /// The request does not have this transfer id; it may have ended.
    #[error("request {request} is not live with transfer {transfer}")]
    UnknownTransfer {
        /// The request.
        request: RequestId,
        /// The transfer id.
        transfer: TransferId,
    },
    /// Reported as computed a second time.
    #[error("transfer {transfer} was reported as computed already")]
    FinishedTwice {
        /// The transfer id.
        transfer: TransferId,
    },
    /// Block tables that can't be.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

//! Why a request failed, and whose fault it was.

use alloc::sync::Arc;
use core::fmt;

use mooncake_pd_plan::RequestError;

use crate::handoff::HandOff;
use crate::message::Consumer;
use crate::peer::{Generation, PullNumber};
use crate::time::Span;
use crate::tokens::TokenCount;

/// Who is at fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// Our own engine, or whoever called it.
    Caller,
    /// A peer that can't work with us.
    IncompatiblePeer,
    /// A peer that broke a rule, or failed.
    Peer,
    /// What lies between.
    Transport,
    /// A bound of our own configuration.
    Limit,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Caller => "caller",
            Self::IncompatiblePeer => "incompatible peer",
            Self::Peer => "peer",
            Self::Transport => "transport",
            Self::Limit => "limit",
        })
    }
}

/// The one reason for which a request failed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Failure {
    /// Its own engine gave it up.
    #[error("aborted by its engine")]
    Aborted,
    /// No plan can be made of both sides' tables.
    #[error("block tables can't be planned: {0}")]
    Tables(Arc<RequestError>),
    /// The prefill rank refused.
    #[error("prefill refused: {0}")]
    Refused(Refusal),
    /// The decode rank gave its pull up.
    #[error("cancelled by decode")]
    Cancelled,
    /// The two sides count differently.
    #[error("prefill hands over {prefill} elements, decode expects {decode}")]
    HandOff {
        /// What prefill hands over.
        prefill: TokenCount,
        /// What decode expects.
        decode: TokenCount,
    },
    /// Ranks of prefill count differently, or have other first tokens.
    #[error("one prefill rank hands over {first}, another {other}")]
    SendersDiffer {
        /// The first one's.
        first: HandOff,
        /// Another one's.
        other: HandOff,
    },
    /// The peer restarted, or is gone.
    #[error("the peer's generation {generation} is gone")]
    PeerLost {
        /// The incarnation.
        generation: Generation,
    },
    /// The peer's name could not be resolved.
    #[error("bootstrap at {address} gave no peer after {attempts} attempts: {last}")]
    Bootstrap {
        /// Where it was asked.
        address: Arc<str>,
        /// How often, 1..2^32.
        attempts: u32,
        /// What became of the last attempt.
        last: ResolveError,
    },
    /// The pull could not be sent.
    #[error("the pull could not be sent")]
    Undelivered,
    /// The pull is over, and its answer never came.
    #[error("the pull ended without an answer")]
    Unanswered,
    /// No answer.
    #[error("no answer within {after}")]
    Timeout {
        /// How long was waited.
        after: Span,
    },
    /// The transfer engine failed.
    #[error("the transfer failed: {0}")]
    Transfer(TransferFault),
    /// Nobody asked for the cache in time.
    #[error("not asked for within {after}")]
    Expired {
        /// How long was waited.
        after: Span,
    },
    /// The engine did not compute it in time.
    #[error("not computed within {after}")]
    NotComputed {
        /// How long was waited.
        after: Span,
    },
}

impl Failure {
    /// Who is at fault.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Aborted | Self::Tables(_) | Self::NotComputed { .. } => Fault::Caller,
            Self::Refused(refusal) => refusal.fault(),
            Self::HandOff { .. } => Fault::IncompatiblePeer,
            Self::SendersDiffer { .. }
            | Self::Cancelled
            | Self::PeerLost { .. }
            | Self::Expired { .. } => Fault::Peer,
            Self::Bootstrap { .. }
            | Self::Undelivered
            | Self::Unanswered
            | Self::Timeout { .. }
            | Self::Transfer(_) => Fault::Transport,
        }
    }
}

/// Why a prefill rank does not deliver, as it tells a decode rank.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// It never heard of the transfer in the time it waits.
    #[error("unknown transfer")]
    Unknown,
    /// The transfer is over.
    #[error("the transfer has ended")]
    Ended,
    /// Its engine gave the request up.
    #[error("aborted by the prefill engine")]
    Aborted,
    /// The prompt was not computed in time.
    #[error("not computed within {after}")]
    NotReady {
        /// How long it waited.
        after: Span,
    },
    /// The pull was cancelled.
    #[error("the pull was cancelled")]
    Cancelled,
    /// It hands over at another point.
    #[error("prefill hands over {prefill} elements, {decode} were expected")]
    HandOff {
        /// What it hands over.
        prefill: TokenCount,
        /// What the pull expects.
        decode: TokenCount,
    },
    /// It can't plan the pull's tables.
    #[error("block tables can't be planned: {0}")]
    Tables(&'static str),
    /// Its transfer engine failed.
    #[error("the transfer failed: {0}")]
    Transfer(TransferFault),
    /// It was started again since.
    #[error("generation {asked} was asked, this is {actual}")]
    Generation {
        /// The incarnation that was asked.
        asked: Generation,
        /// The one that is there.
        actual: Generation,
    },
    /// The asker was started again since.
    #[error("the asking engine was started again since")]
    Superseded,
    /// This pull is over already.
    #[error("pull {} is over", .0.get())]
    Over(PullNumber),
    /// This consumer has asked already, or consumers don't agree on their number.
    #[error("consumer {asked} can't ask: {reason}")]
    Consumer {
        /// Who asked.
        asked: Consumer,
        /// What is wrong.
        reason: ConsumerProblem,
    },
    /// It can take no more.
    #[error("too many pulls or transfers")]
    Busy,
    /// A stock peer's error, whose text is in its log and ours.
    #[error("stock peer's error")]
    Stock,
}

impl Refusal {
    /// Who is at fault, seen from the decode rank.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Cancelled | Self::Tables(_) => Fault::Caller,
            Self::HandOff { .. } => Fault::IncompatiblePeer,
            Self::Transfer(_) => Fault::Transport,
            Self::Busy => Fault::Limit,
            Self::Unknown
            | Self::Ended
            | Self::Aborted
            | Self::NotReady { .. }
            | Self::Generation { .. }
            | Self::Superseded
            | Self::Over(_)
            | Self::Consumer { .. }
            | Self::Stock => Fault::Peer,
        }
    }
}

/// What is wrong with a consumer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ConsumerProblem {
    /// It has asked already.
    Twice,
    /// An earlier one named another number of consumers.
    Count(u16),
}

impl fmt::Display for ConsumerProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Twice => f.write_str("it has asked already"),
            Self::Count(count) => write!(f, "there are {count}"),
        }
    }
}

/// A transfer engine's error.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[error("engine error {code}")]
pub struct TransferFault {
    /// The engine's own number for it.
    pub code: i32,
}

/// Why a peer's name could not be resolved.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, thiserror::Error)]
#[non_exhaustive]
pub enum ResolveError {
    /// Nobody listens there, or it is too slow.
    #[error("unreachable")]
    Unreachable,
    /// What came back is no answer.
    #[error("malformed answer")]
    Malformed,
    /// It does not know the engine.
    #[error("the engine is not registered")]
    UnknownEngine,
    /// Its ranks can't be paired with ours.
    #[error("incompatible ranks")]
    Incompatible,
}

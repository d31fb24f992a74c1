//! What goes into a decode rank's machine, and what comes out.

use alloc::sync::Arc;
use core::fmt;

use crate::failure::{Failure, ResolveError};
use crate::handoff::HandOff;
use crate::id::{EngineId, RequestId, TransferId};
use crate::lease::Quiescence;
use crate::message::{Answer, Cancel, MAX_CONSUMERS, Pull};
use crate::peer::{Generation, PullNumber};
use crate::tables::{BlockTables, TablesError};
use crate::tokens::TokenCount;

/// A prefill engine, as a router names it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Source {
    /// The engine.
    pub engine: EngineId,
    /// Where its ranks can be looked up.
    pub bootstrap: Arc<str>,
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at {}", self.engine, self.bootstrap)
    }
}

/// One fence, 0..2^64; a later one has another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FenceId(u64);

impl FenceId {
    pub(crate) const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

/// What a prefill rank understands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Dialect {
    /// Ours: pulls can be cancelled, and an answer means quiescence.
    Own,
    /// Stock vLLM's: neither.
    Stock,
}

/// What a look-up found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Resolved {
    generation: Generation,
    senders: u16,
    dialect: Dialect,
}

impl Resolved {
    /// An incarnation whose `senders` ranks, 1..=[`MAX_CONSUMERS`], are paired with
    /// ours; `None` for another number.
    #[must_use]
    pub const fn new(generation: Generation, senders: u16, dialect: Dialect) -> Option<Self> {
        if senders == 0 || senders > MAX_CONSUMERS {
            return None;
        }
        Some(Self {
            generation,
            senders,
            dialect,
        })
    }

    /// The incarnation.
    #[must_use]
    pub const fn generation(self) -> Generation {
        self.generation
    }

    /// Ranks paired with ours; a pull goes to each.
    #[must_use]
    pub const fn senders(self) -> u16 {
        self.senders
    }

    /// What they understand.
    #[must_use]
    pub const fn dialect(self) -> Dialect {
        self.dialect
    }
}

/// A cache that the engine wants.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Load {
    /// The engine's name for the request.
    pub request: RequestId,
    /// The name that prefill knows.
    pub transfer: TransferId,
    /// Who has it.
    pub source: Source,
    /// How much of the prompt it has to cover, states included.
    pub expects: TokenCount,
    /// Where to put it: no blocks of the engine's own prefix cache. It keeps these
    /// until the end.
    pub tables: Arc<BlockTables>,
}

/// What happened to a decode rank.
#[derive(Debug)]
pub enum DecodeEvent {
    /// Its engine wants a cache.
    Load(Load),
    /// Its engine needs nothing of a cache that waits for it.
    Release {
        /// The name that prefill knows.
        transfer: TransferId,
        /// Who has it.
        source: Source,
    },
    /// Its engine gives a request up.
    Aborted {
        /// The engine's name for it.
        request: RequestId,
    },
    /// A look-up ended.
    Resolved {
        /// Of whom.
        source: Source,
        /// What it found.
        result: Result<Resolved, ResolveError>,
    },
    /// An answer came in.
    Answered {
        /// From whom: the connection says so, not the message.
        source: Source,
        /// From which of its ranks that are paired with ours.
        sender: u16,
        /// The message.
        answer: Answer,
    },
    /// A pull has certainly not left this host, and never will.
    Undelivered {
        /// The pull.
        number: PullNumber,
    },
    /// Nothing can land any more of what one pull asked for, whatever became of it.
    Quiet {
        /// The pull.
        number: PullNumber,
        /// That nothing is under way.
        proof: Quiescence,
    },
    /// A prefill engine is known to be gone, or was started again.
    PeerLost {
        /// Who.
        source: Source,
        /// The incarnation that is gone.
        generation: Generation,
    },
    /// A fence is up: nothing that this incarnation was asked for before the fence
    /// was can land any more.
    Fenced {
        /// Which.
        fence: FenceId,
        /// That nothing is under way.
        proof: Quiescence,
    },
    /// Only time has passed.
    Tick,
}

/// What the embedder has to do.
#[derive(Debug)]
pub enum DecodeCommand {
    /// Look a prefill engine up, and report [`DecodeEvent::Resolved`].
    Resolve {
        /// Whom.
        source: Source,
    },
    /// Send a pull.
    Pull {
        /// To whom.
        source: Source,
        /// To which of its ranks that are paired with ours.
        sender: u16,
        /// The message.
        pull: Pull,
    },
    /// Send a cancel.
    Cancel {
        /// To whom.
        source: Source,
        /// To which of its ranks that are paired with ours.
        sender: u16,
        /// The message.
        cancel: Cancel,
    },
    /// Make sure that nothing more can land of what this incarnation was asked for,
    /// also not through a pull that is still on its way to it, whatever that takes
    /// (new keys for the memory, a new session), and report [`DecodeEvent::Fenced`].
    /// Repeated until then. It ends every load that this incarnation was asked for.
    Fence {
        /// Its number.
        fence: FenceId,
        /// Who.
        source: Source,
        /// The incarnation.
        generation: Generation,
    },
    /// A load is over; its blocks may be used again, or hold the cache.
    Ended {
        /// The engine's name for it.
        request: RequestId,
        /// The name that prefill knows.
        transfer: TransferId,
        /// How it ended.
        outcome: DecodeOutcome,
        /// The engine's blocks.
        tables: Arc<BlockTables>,
    },
}

/// How a load ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DecodeOutcome {
    /// The cache is in place.
    Loaded {
        /// How much of the prompt it covers.
        computed: TokenCount,
        /// What prefill said of it; a stock peer says nothing.
        hand_off: Option<HandOff>,
    },
    /// It is not, and the blocks hold nothing that can be used.
    Failed(Failure),
}

/// What a decode engine did wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DecodeError {
    /// A transfer id that is live. A load that was given up before it was asked for is
    /// followed by a release, which is live until it is answered.
    #[error(
        "transfer {transfer} is live already, for {}",
        owner.as_ref().map_or("a release", |owner| owner.as_str())
    )]
    TransferTaken {
        /// The transfer id.
        transfer: TransferId,
        /// The request that loads it, unharmed; none for a release.
        owner: Option<RequestId>,
    },
    /// A request that is live.
    #[error("request {request} is loading already")]
    RequestTaken {
        /// The request.
        request: RequestId,
    },
    /// No live load has this name; it may have ended.
    #[error("request {request} is not loading")]
    UnknownRequest {
        /// The request.
        request: RequestId,
    },
    /// Too many loads and releases.
    #[error("{live} loads and releases are live, the limit is {limit}")]
    Full {
        /// How many.
        live: usize,
        /// Most allowed.
        limit: usize,
    },
    /// Too many prefill engines.
    #[error("{sources} prefill engines are known, the limit is {limit}")]
    TooManySources {
        /// How many.
        sources: usize,
        /// Most allowed.
        limit: usize,
    },
    /// Block tables that can't be.
    #[error(transparent)]
    Tables(#[from] TablesError),
}

#[cfg(test)]
mod tests {
    use super::{Dialect, Generation, Resolved};

    #[test]
    fn a_look_up_finds_one_to_1024_senders() {
        let found = |senders| Resolved::new(Generation::new(5), senders, Dialect::Stock);
        assert_eq!((found(0), found(1_025)), (None, None));
        for senders in [1, 1_024] {
            let found = found(senders).unwrap();
            assert_eq!(found.senders(), senders);
            assert_eq!(found.generation(), Generation::new(5));
            assert_eq!(found.dialect(), Dialect::Stock);
        }
    }
}

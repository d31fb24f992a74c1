//! What to hold back, what to count, and when a transfer is over.
//!
//! Events go in with their time, commands come out; nothing here calls an engine,
//! opens a socket or reads a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

mod accounting;
mod decode;
mod failure;
mod flavour;
mod handoff;
mod hash;
mod holdback;
mod host;
mod id;
mod lease;
mod limits;
mod message;
mod metrics;
mod peer;
mod prefill;
mod tables;
#[cfg(feature = "testing")]
pub mod testing;
mod time;
mod timer;
mod tokens;
mod window;
pub mod wire;

pub use accounting::{Accounting, AccountingError, Matched, PrefillShare};
pub use decode::{
    Decode, DecodeCommand, DecodeError, DecodeEvent, DecodeOutcome, Dialect, FenceId, Load,
    Resolved, Source,
};
pub use failure::{ConsumerProblem, Failure, Fault, Refusal, ResolveError, TransferFault};
pub use flavour::Flavour;
pub use handoff::{HandOff, HandOffError, HandOffPoint};
pub use holdback::{Holdback, HoldbackError, Kept, MAX_LOOK_AHEAD, PromptInput};
pub use host::{
    Blocks, Computed, DecodeEnd, DecodeFailure, DecodeFinish, DecodeHost, DecodeOrder,
    DecodeResult, HostError, HostLimits, HostMetrics, MAX_RANKS, PrefillEnd, PrefillFailure,
    PrefillFinish, PrefillHost, PrefillOrder, PrefillResult, Ranks,
};
pub use id::{EngineId, IdError, MAX_ID_BYTES, RequestId, TransferId};
pub use lease::Quiescence;
pub use limits::{DecodeLimits, PrefillLimits};
pub use message::{Answer, Cancel, Consumer, MAX_CONSUMERS, Pull, Verdict, Want};
pub use metrics::{DecodeMetrics, Histogram, PrefillMetrics};
pub use peer::{Generation, Peer, PullNumber};
pub use prefill::{AttemptId, Prefill, PrefillCommand, PrefillError, PrefillEvent, PrefillOutcome};
pub use tables::{BlockTables, GroupTable, MAX_GROUPS, TablesError};
pub use time::{Span, Time};
pub use tokens::TokenCount;

//! The scheduler's half of a connector, shaped like what engines call.
//!
//! A host belongs to the scheduler of one engine: one data-parallel engine, with one
//! or more ranks that each have a session machine ([`Prefill`](crate::Prefill) or
//! [`Decode`](crate::Decode)). The scheduler calls the host, takes its orders once a
//! step and sends each to every rank; what the ranks' machines say ends
//! ([`PrefillCommand::Ended`](crate::PrefillCommand::Ended),
//! [`DecodeCommand::Ended`](crate::DecodeCommand::Ended)) comes back to the host.

mod book;
mod decode;
mod error;
mod finish;
mod limits;
mod load;
mod order;
mod outcome;
mod prefill;
mod rank_ends;
mod ranks;

pub use decode::DecodeHost;
pub use error::HostError;
pub use finish::{Computed, DecodeFinish, PrefillFinish};
pub use limits::{HostLimits, HostMetrics};
pub use order::{DecodeOrder, PrefillOrder};
pub use outcome::{
    DecodeEnd, DecodeFailure, DecodeResult, PrefillEnd, PrefillFailure, PrefillResult,
};
pub use prefill::PrefillHost;
pub use ranks::{MAX_RANKS, Ranks};

/// What becomes of a finished request's blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Blocks {
    /// They may be used again at once.
    Free,
    /// They stay as they are until the request's result was polled.
    Hold,
}

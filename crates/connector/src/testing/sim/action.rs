//! What happens at a time.

use std::string::String;

use crate::{Answer, Cancel, FenceId, Generation, Pull, Source};

/// A rank of an engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Rank {
    pub(super) engine: usize,
    pub(super) rank: usize,
}

/// Everything that one decode rank may have asked of one incarnation of a prefill engine.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Path {
    pub(super) decode: Rank,
    pub(super) decode_generation: u64,
    pub(super) prefill: usize,
    pub(super) prefill_generation: u64,
}

#[derive(Clone, Debug)]
pub(super) enum ToPrefill {
    Pull(Pull),
    Cancel(Cancel),
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// The router hands a request to its prefill engine.
    PrefillArrival(usize, String),
    /// The router hands a request to its decode engine.
    DecodeArrival(usize),
    /// A prefill engine goes on with a request.
    PrefillStep(usize, u64, String),
    PrefillAbort(usize, u64, String),
    /// A decode engine goes on with a request.
    DecodeStep(usize, u64, String),
    DecodeAbort(usize, u64, String),
    /// A message arrives at an address, whoever is there now. The epoch is the age of
    /// the memory keys that it carries.
    AtPrefill(Rank, ToPrefill, u64),
    AtDecode(Rank, Rank, Answer),
    Undelivered(Rank, u64, crate::PullNumber),
    LookedUp(Rank, u64, Source),
    /// A fence goes up; it is reported a little later.
    FenceUp(Rank, u64, FenceId, Source, Generation),
    Fenced(Rank, u64, FenceId),
    PeerLost(Rank, u64, Source, Generation),
    /// A transfer moves its next bytes, or is over.
    Flight(u64),
    PrefillDown(usize),
    PrefillUp(usize),
    DecodeRestart(usize),
    /// Time for a machine's deadlines.
    PrefillTick(Rank, u64),
    DecodeTick(Rank, u64),
    FaultsEnd,
}

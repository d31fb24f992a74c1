//! Copies that nothing is proved about yet.

use alloc::vec::Vec;
use mooncake_pd_layout::{AllocationId, GroupId};

use crate::select::Unfilled;

/// One copy within a [`Stretch`], in bytes from the starts of its allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Piece {
    /// Where it is read.
    pub source_offset: u64,
    /// Where it is written.
    pub destination_offset: u64,
    /// Bytes.
    pub len: u64,
}

/// Consecutive pieces between the same two allocations, for one group of one
/// request.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Stretch {
    /// Index of the request in its batch.
    pub request: usize,
    /// The group.
    pub group: GroupId,
    /// Allocation of the source.
    pub source: AllocationId,
    /// Allocation of the destination.
    pub destination: AllocationId,
    /// Pieces it consists of.
    pub pieces: usize,
}

/// What lowering emits and [`Pairing::check`](crate::Pairing::check) turns into
/// a plan or refuses. Public so that it can be damaged in tests.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Draft {
    /// Requests, then groups by id, then destination allocations ascending.
    pub stretches: Vec<Stretch>,
    /// The pieces of all stretches, one after another.
    pub pieces: Vec<Piece>,
    /// What the destination listed and won't receive.
    pub unfilled: Vec<Unfilled>,
}

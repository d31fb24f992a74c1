//! A check of bytes that come piece by piece.

use super::check::{Outcome, Piece, check_piece, inside};
use super::demand::Demand;
use super::error::WalkError;
use super::layout::Side;
use crate::number::count;

/// Allocations of a side with their bytes.
pub type Sizes = Vec<(u32, u64)>;

/// Compares bytes with what they must be after a demand was met, as
/// [`check`](super::check) does, where a side's memory is elsewhere.
#[derive(Debug)]
pub struct Audit<'a> {
    demand: &'a Demand,
    outcome: Outcome,
}

impl<'a> Audit<'a> {
    /// Nothing is compared yet.
    ///
    /// # Errors
    /// A demanded row lies outside the allocations.
    pub fn new(demand: &'a Demand, source: &Sizes, destination: &Sizes) -> Result<Self, WalkError> {
        for row in &demand.rows {
            inside("source", source, row.source, row.source_offset, row.len)?;
            let offset = row.destination_offset;
            inside("destination", destination, row.destination, offset, row.len)?;
        }
        Ok(Self {
            demand,
            outcome: Outcome::default(),
        })
    }

    /// Compares the bytes of an allocation from `offset` on.
    pub fn look(&mut self, side: Side, allocation: u32, offset: u64, bytes: &[u8]) {
        let piece = Piece {
            side,
            allocation,
            offset,
            bytes,
        };
        self.outcome.merge(check_piece(&piece, &self.demand.rows));
    }

    /// What was found.
    #[must_use]
    pub fn outcome(self) -> Outcome {
        self.outcome
    }
}

/// The bytes of a memory's allocations.
pub(super) fn sizes(memory: &super::Memory<'_>) -> Sizes {
    memory
        .iter()
        .map(|(id, bytes)| (*id, count(bytes.len())))
        .collect()
}

//! What one group of one request must receive.

use alloc::vec;
use alloc::vec::Vec;

use mooncake_pd_layout::GroupId;

use crate::draft::{Piece, Stretch};
use crate::expected::{Cell, Expected};
use crate::select::Pair;

/// What one group of one request must receive, and how far it is written.
pub(crate) struct Demand<'a> {
    pub(crate) expected: &'a Expected<'a>,
    pub(crate) pairs: Vec<Pair>,
    /// For each pair: how many of those after it follow it block by block on
    /// both sides.
    pub(crate) follow: Vec<usize>,
    /// For each cell: pairs whose bytes are written.
    pub(crate) done: Vec<usize>,
    /// First and last cell of the pieces being walked.
    pub(crate) first: usize,
    pub(crate) last: usize,
    /// Bytes of the last piece, if it was all cells from first to last of one
    /// block, and blocks move them as one.
    pub(crate) row: Option<u64>,
}

impl<'a> Demand<'a> {
    pub(crate) fn new(expected: &'a Expected<'a>, pairs: Vec<Pair>) -> Self {
        let mut follow = vec![0_usize; pairs.len()];
        let mut next: Option<(&Pair, usize)> = None;
        for (pair, follow) in pairs.iter().zip(&mut follow).rev() {
            if let Some((after, more)) = next
                && pair.source.checked_add(1) == Some(after.source)
                && pair.destination.checked_add(1) == Some(after.destination)
            {
                *follow = more.saturating_add(1);
            }
            next = Some((pair, *follow));
        }
        let done = vec![0; expected.cells.len()];
        Self {
            expected,
            pairs,
            follow,
            done,
            first: 0,
            last: 0,
            row: None,
        }
    }

    pub(crate) fn id(&self) -> GroupId {
        self.expected.group.id()
    }

    pub(crate) fn get(&self, cell: usize, index: usize) -> Option<(&'a Cell, &Pair)> {
        Some((self.expected.cells.get(cell)?, self.pairs.get(index)?))
    }

    /// Where a cell of a pair is written, unless it is done or not yet due.
    pub(crate) fn due(&self, cell: usize, index: usize) -> Option<u64> {
        let (found, pair) = self.get(cell, index)?;
        (self.done.get(cell) == Some(&index)).then(|| found.destination_at(pair))
    }

    /// The cell a piece starts with: the one the last piece started with, for
    /// the next block, or else the one after the last.
    pub(crate) fn starting_cell(&self, stretch: &Stretch, piece: &Piece) -> Option<usize> {
        [self.first, self.last.saturating_add(1)]
            .into_iter()
            .find(|cell| {
                let index = self.done.get(*cell).copied().unwrap_or(0);
                self.get(*cell, index).is_some_and(|(found, pair)| {
                    found.destination == stretch.destination
                        && found.destination_at(pair) == piece.destination_offset
                })
            })
    }

    /// Bytes from block to block of a range of cells, at the source and at the
    /// destination, where it is the same for all of them.
    pub(crate) fn strides(&self, first: usize, last: usize) -> Option<(u64, u64)> {
        let cells = self.expected.cells.get(first..=last)?;
        let strides = |cell: &Cell| (cell.source_stride, cell.destination_stride);
        let common = strides(cells.first()?);
        cells
            .iter()
            .all(|cell| strides(cell) == common)
            .then_some(common)
    }
}

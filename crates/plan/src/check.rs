//! The proof every plan passes.
//!
//! It looks at every piece of a [`Draft`] and works out anew what each
//! must be, from the layouts and the requests' tables alone. It walks the pieces
//! in their canonical order - requests, groups by id, destination addresses,
//! positions - and advances one counter per contiguous part of a block, so that
//! its time is linear in pieces, blocks and parts.

use alloc::vec;
use alloc::vec::Vec;

use mooncake_pd_layout::{AllocationId, CacheLayout, Group, GroupId};

use crate::admission::{Admission, Claim};
use crate::contract::Contract;
use crate::draft::{Draft, Piece, Stretch};
use crate::expected::{Cell, Gap, cells, demanded, is_dead};
use crate::leases::Leases;
use crate::request::{Request, RequestError};
use crate::select::{Pair, Unfilled};

/// Why a draft is not a plan. A fault of the planner, never of its caller.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CheckError {
    /// Requests, groups or allocations don't come as they should.
    #[error(
        "stretch {stretch} is for group {group} of request {request} between allocations {source_allocation} and {destination_allocation}, which is not what comes there"
    )]
    Stretch {
        /// Index of the stretch.
        stretch: usize,
        /// The request it names.
        request: usize,
        /// The group it names.
        group: GroupId,
        /// The source allocation it names.
        source_allocation: AllocationId,
        /// The destination allocation it names.
        destination_allocation: AllocationId,
    },
    /// A request that may not own its blocks.
    #[error("request {request}: {error}")]
    Request {
        /// Its index.
        request: usize,
        /// Why not.
        error: RequestError,
    },
    /// A piece that reads or writes where it must not, or is out of order.
    #[error(
        "piece {piece} copies {len} bytes from {source_offset} to {destination_offset}: {problem} in group {group} of request {request}"
    )]
    Piece {
        /// Index of the piece.
        piece: usize,
        /// The request.
        request: usize,
        /// The group.
        group: GroupId,
        /// Where it reads.
        source_offset: u64,
        /// Where it writes.
        destination_offset: u64,
        /// Its length.
        len: u64,
        /// What is wrong with it.
        problem: &'static str,
    },
    /// Demanded bytes that no piece writes.
    #[error("position {position} of group {group} of request {request} is not written completely")]
    Missing {
        /// The request.
        request: usize,
        /// The group.
        group: GroupId,
        /// Position in blocks.
        position: u64,
    },
    /// A report of unfilled blocks that is not the right one.
    #[error("{reported} blocks are reported unfilled, {unfilled} are, or their reasons differ")]
    Unfilled {
        /// Blocks reported.
        reported: usize,
        /// Blocks that are unfilled.
        unfilled: usize,
    },
    /// Pieces and stretches that don't add up.
    #[error("{pieces} pieces in stretches of {counted}")]
    Count {
        /// Pieces there are.
        pieces: usize,
        /// Pieces the stretches have.
        counted: usize,
    },
}

/// What is checked against.
pub(crate) struct Against<'a> {
    pub(crate) source: &'a CacheLayout,
    pub(crate) destination: &'a CacheLayout,
    pub(crate) requests: &'a [&'a Request],
    pub(crate) leases: Option<&'a Leases>,
    pub(crate) contract: Contract,
}

/// Proves a draft and returns the destination blocks its requests own.
///
/// It proves that each destination byte's source is the byte at the same
/// (group, layer, field, position, offset in page); that destinations are
/// pairwise disjoint and are the demanded payload, no byte missing and, but for
/// gaps the contract allows, none besides; that every piece lies inside one
/// allocation on each side; and that what is not filled is reported.
pub(crate) fn prove(draft: &Draft, against: &Against<'_>) -> Result<Vec<Claim>, CheckError> {
    let mut claims = Vec::new();
    let mut admission = Admission::new(against.source, against.destination, against.leases);
    for (request, asked) in against.requests.iter().enumerate() {
        admission
            .admit(asked, &mut claims)
            .map_err(|error| CheckError::Request { request, error })?;
    }
    let counted = draft
        .stretches
        .iter()
        .map(|s| s.pieces)
        .fold(0, usize::saturating_add);
    if counted != draft.pieces.len() {
        return Err(CheckError::Count {
            pieces: draft.pieces.len(),
            counted,
        });
    }
    let mut walk = Walk {
        stretches: &draft.stretches,
        pieces: &draft.pieces,
        stretch: 0,
        piece: 0,
    };
    let mut unfilled = Vec::new();
    let groups: Vec<(&Group, Vec<Cell>)> = against
        .source
        .groups()
        .iter()
        .zip(against.destination.groups())
        .map(|(source, destination)| (destination, cells(source, destination)))
        .collect();
    for (request, asked) in against.requests.iter().enumerate() {
        for (tables, (group, cells)) in asked.tables().iter().zip(&groups) {
            let (pairs, left) = demanded(group, asked.tokens(), tables);
            unfilled.extend(
                left.into_iter()
                    .map(|(position, destination, reason)| Unfilled {
                        request,
                        group: group.id(),
                        position,
                        destination,
                        reason,
                    }),
            );
            let demand = Demand {
                request,
                group,
                cells,
                pairs: &pairs,
                against,
            };
            walk.group(&demand)?;
        }
    }
    if let Some(stretch) = walk.stretches.first() {
        return Err(stretch_error(walk.stretch, stretch));
    }
    if unfilled != draft.unfilled {
        return Err(CheckError::Unfilled {
            reported: draft.unfilled.len(),
            unfilled: unfilled.len(),
        });
    }
    Ok(claims)
}

fn stretch_error(index: usize, stretch: &Stretch) -> CheckError {
    CheckError::Stretch {
        stretch: index,
        request: stretch.request,
        group: stretch.group,
        source_allocation: stretch.source,
        destination_allocation: stretch.destination,
    }
}

/// What one group of one request must receive.
struct Demand<'a> {
    request: usize,
    group: &'a Group,
    cells: &'a [Cell],
    pairs: &'a [Pair],
    against: &'a Against<'a>,
}

/// The part of a draft that is still to be looked at.
struct Walk<'a> {
    stretches: &'a [Stretch],
    pieces: &'a [Piece],
    stretch: usize,
    piece: usize,
}

/// How far one group of one request is written.
struct Progress {
    /// Pairs whose bytes of a cell are written, for each cell.
    done: Vec<usize>,
    /// First and last cell of the pieces being walked.
    first: usize,
    last: usize,
    /// Whether the gap after a cell was found dead: within its block, and from
    /// the last to the first cell of the next.
    dead_within: Vec<Option<bool>>,
    dead_across: Vec<Option<bool>>,
}

impl Walk<'_> {
    fn group(&mut self, demand: &Demand<'_>) -> Result<(), CheckError> {
        let cells = demand.cells.len();
        let mut progress = Progress {
            done: vec![0; cells],
            first: 0,
            last: 0,
            dead_within: vec![None; cells],
            dead_across: vec![None; cells],
        };
        while let Some((stretch, rest)) = self.stretches.split_first() {
            if stretch.request != demand.request || stretch.group != demand.group.id() {
                break;
            }
            let Some((pieces, later)) = self.pieces.split_at_checked(stretch.pieces) else {
                break;
            };
            for piece in pieces {
                demand
                    .piece(stretch, piece, &mut progress)
                    .map_err(|problem| CheckError::Piece {
                        piece: self.piece,
                        request: demand.request,
                        group: demand.group.id(),
                        source_offset: piece.source_offset,
                        destination_offset: piece.destination_offset,
                        len: piece.len,
                        problem,
                    })?;
                self.piece = self.piece.saturating_add(1);
            }
            (self.stretches, self.pieces) = (rest, later);
            self.stretch = self.stretch.saturating_add(1);
        }
        for done in &progress.done {
            if let Some(pair) = demand.pairs.get(*done) {
                return Err(CheckError::Missing {
                    request: demand.request,
                    group: demand.group.id(),
                    position: pair.position,
                });
            }
        }
        Ok(())
    }
}

const WRONG_PLACE: &str = "no block's bytes come there";
const WRONG_LENGTH: &str = "it ends inside a block's bytes";
const LIVE_GAP: &str = "it covers bytes that must not be touched";

impl Demand<'_> {
    /// Advances over the cells that one piece writes.
    #[inline]
    fn piece(
        &self,
        stretch: &Stretch,
        piece: &Piece,
        progress: &mut Progress,
    ) -> Result<(), &'static str> {
        let first = self
            .starting_cell(stretch, piece, progress)
            .ok_or(WRONG_PLACE)?;
        let (mut cell, mut index) = (first, progress.done.get(first).copied().unwrap_or(0));
        let (mut source, mut destination) = (piece.source_offset, piece.destination_offset);
        let mut left = piece.len;
        progress.first = first;
        loop {
            let (expected, pair) = self.get(cell, index).ok_or(WRONG_PLACE)?;
            if expected.source_at(pair) != source
                || expected.destination_at(pair) != destination
                || expected.source != stretch.source
                || expected.destination != stretch.destination
            {
                return Err(WRONG_PLACE);
            }
            left = left.checked_sub(expected.len).ok_or(WRONG_LENGTH)?;
            source = source.saturating_add(expected.len);
            destination = destination.saturating_add(expected.len);
            if let Some(done) = progress.done.get_mut(cell) {
                *done = done.saturating_add(1);
            }
            progress.last = cell;
            if left == 0 {
                return Ok(());
            }
            let gap = self.next(&mut cell, &mut index, first, destination, progress)?;
            left = left.checked_sub(gap).ok_or(LIVE_GAP)?;
            source = source.saturating_add(gap);
            destination = destination.saturating_add(gap);
        }
    }

    fn get(&self, cell: usize, index: usize) -> Option<(&Cell, &Pair)> {
        Some((self.cells.get(cell)?, self.pairs.get(index)?))
    }

    /// The cell a piece starts with: the one the last piece started with, for
    /// the next block, or else the one after the last.
    fn starting_cell(
        &self,
        stretch: &Stretch,
        piece: &Piece,
        progress: &Progress,
    ) -> Option<usize> {
        [progress.first, progress.last.saturating_add(1)]
            .into_iter()
            .find(|cell| {
                progress
                    .done
                    .get(*cell)
                    .and_then(|done| self.get(*cell, *done))
                    .is_some_and(|(cell, pair)| {
                        cell.destination == stretch.destination
                            && cell.destination_at(pair) == piece.destination_offset
                    })
            })
    }

    /// Moves on to the demanded bytes that follow `end`, in the same block or
    /// in the next; the gap before them, which must be dead.
    fn next(
        &self,
        cell: &mut usize,
        index: &mut usize,
        first: usize,
        end: u64,
        progress: &mut Progress,
    ) -> Result<u64, &'static str> {
        let start = |(cell, pair): (&Cell, &Pair)| cell.destination_at(pair);
        let (after, next_index) = (cell.saturating_add(1), index.saturating_add(1));
        let within = self
            .get(after, *index)
            .filter(|_| progress.done.get(after) == Some(index))
            .filter(|(next, _)| {
                self.cells
                    .get(*cell)
                    .is_some_and(|c| c.destination == next.destination)
            })
            .map(start)
            .filter(|start| *start >= end);
        let across = self
            .get(first, next_index)
            .map(start)
            .filter(|start| *start >= end);
        let (to, memo) = match (within, across) {
            (Some(within), across) if across.is_none_or(|across| within < across) => {
                (within, progress.dead_within.get_mut(*cell))
            }
            (_, Some(across)) => (across, progress.dead_across.get_mut(*cell)),
            _ => return Err(WRONG_LENGTH),
        };
        let from = *cell;
        let is_within = within == Some(to);
        let owners = if is_within { *index } else { next_index };
        let gap = to.saturating_sub(end);
        if gap > 0 {
            let Contract::BridgeDead { max_gap } = self.against.contract else {
                return Err(LIVE_GAP);
            };
            let dead = gap <= max_gap.get()
                && *memo
                    .ok_or(LIVE_GAP)?
                    .get_or_insert_with(|| self.is_dead(from, (end, to), *index, owners));
            if !dead {
                return Err(LIVE_GAP);
            }
        }
        if is_within {
            *cell = after;
        } else {
            (*cell, *index) = (first, next_index);
        }
        Ok(gap)
    }

    fn is_dead(&self, cell: usize, span: (u64, u64), index: usize, next: usize) -> bool {
        let Some((cell, pair)) = self.get(cell, index) else {
            return false;
        };
        let Some(last) = self.pairs.get(next) else {
            return false;
        };
        let (first_id, last_id) = (pair.destination, last.destination);
        let adjacent = last_id == first_id || Some(last_id) == first_id.checked_add(1);
        let gap = Gap {
            allocation: cell.destination,
            start: span.0,
            end: span.1,
            first_id,
            last_id,
            stride: cell.destination_stride,
        };
        adjacent && is_dead(self.against.destination, self.group, gap)
    }
}

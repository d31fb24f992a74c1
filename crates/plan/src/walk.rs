//! Following a draft's pieces through what one request must receive.
//!
//! Pieces are walked in their canonical order: groups by id, destination
//! addresses, positions. One counter per contiguous part of a block advances
//! with them, so that the time is linear in pieces, blocks and parts; blocks that
//! follow each other and are copied by one piece are passed in one step.

use alloc::vec::Vec;

use mooncake_pd_layout::{CacheLayout, GroupId};

use crate::check::PieceProblem;
use crate::contract::Contract;
use crate::demand::Demand;
use crate::draft::{Piece, Stretch};
use crate::expected::{Gap, is_dead};

/// Follows the pieces of one request.
pub(crate) struct Walk<'a> {
    layout: &'a CacheLayout,
    contract: Contract,
    demands: Vec<Demand<'a>>,
    /// The group of the stretch being walked.
    current: usize,
}

/// Where a piece has come to.
#[derive(Clone, Copy)]
struct Cursor {
    demand: usize,
    cell: usize,
    index: usize,
    source: u64,
    destination: u64,
    left: u64,
}

/// What may follow the bytes a piece has come to.
#[derive(Clone, Copy)]
enum Step {
    /// The next cell of the same block.
    Within,
    /// The piece's first cell in the next block.
    Across,
    /// The first cell of the next group.
    NextGroup,
}

impl<'a> Walk<'a> {
    pub(crate) const fn new(
        layout: &'a CacheLayout,
        contract: Contract,
        demands: Vec<Demand<'a>>,
    ) -> Self {
        Self {
            layout,
            contract,
            demands,
            current: 0,
        }
    }

    /// Moves on to the stretch's group, which must not come before.
    pub(crate) fn enter(&mut self, stretch: &Stretch) -> bool {
        let ahead = self.demands.iter().skip(self.current);
        match ahead
            .clone()
            .position(|demand| demand.id() == stretch.group)
        {
            Some(steps) => {
                self.current = self.current.saturating_add(steps);
                true
            }
            None => false,
        }
    }

    /// A group and a position that are not written completely.
    pub(crate) fn missing(&self) -> Option<(GroupId, u64)> {
        self.demands.iter().find_map(|demand| {
            let pair = demand
                .done
                .iter()
                .find_map(|done| demand.pairs.get(*done))?;
            Some((demand.id(), pair.position))
        })
    }

    /// Advances over leading pieces that write one cell of one block each, or
    /// the same cells of another block as the piece before them; how many there
    /// were.
    pub(crate) fn sweep(&mut self, stretch: &Stretch, pieces: &[Piece]) -> usize {
        let Some(demand) = self.demands.get_mut(self.current) else {
            return 0;
        };
        let Some(first) = pieces
            .first()
            .and_then(|piece| demand.starting_cell(stretch, piece))
        else {
            return 0;
        };
        let Some(cell) = demand.expected.cells.get(first) else {
            return 0;
        };
        let (last, len) = match demand.row {
            Some(len) if first == demand.first => (demand.last, len),
            _ => (first, cell.len),
        };
        let Some(cells) = demand.done.get_mut(first..=last) else {
            return 0;
        };
        let done = cells.first().copied().unwrap_or(0);
        if cell.source != stretch.source
            || cell.destination != stretch.destination
            || cells.iter().any(|other| *other != done)
        {
            return 0;
        }
        let pairs = demand.pairs.get(done..).unwrap_or_default();
        let count = pieces
            .iter()
            .zip(pairs)
            .take_while(|(piece, pair)| {
                piece.len == len
                    && piece.source_offset == cell.source_at(pair)
                    && piece.destination_offset == cell.destination_at(pair)
            })
            .count();
        if count > 0 {
            cells.fill(done.saturating_add(count));
            (demand.first, demand.last, demand.row) = (first, last, Some(len));
        }
        count
    }

    /// Advances over the cells that one piece writes.
    pub(crate) fn piece(&mut self, stretch: &Stretch, piece: &Piece) -> Result<(), PieceProblem> {
        let demand = self
            .demands
            .get_mut(self.current)
            .ok_or(PieceProblem::Place)?;
        let cell = demand
            .starting_cell(stretch, piece)
            .ok_or(PieceProblem::Place)?;
        demand.first = cell;
        demand.row = None;
        let index = demand.done.get(cell).copied().ok_or(PieceProblem::Place)?;
        let mut at = Cursor {
            demand: self.current,
            cell,
            index,
            source: piece.source_offset,
            destination: piece.destination_offset,
            left: piece.len,
        };
        loop {
            let demand = self.demands.get_mut(at.demand).ok_or(PieceProblem::Place)?;
            let (expected, pair) = demand.get(at.cell, at.index).ok_or(PieceProblem::Place)?;
            if expected.source_at(pair) != at.source
                || expected.destination_at(pair) != at.destination
                || expected.source != stretch.source
                || expected.destination != stretch.destination
            {
                return Err(PieceProblem::Place);
            }
            at.left = at
                .left
                .checked_sub(expected.len)
                .ok_or(PieceProblem::Length)?;
            at.source = at.source.saturating_add(expected.len);
            at.destination = at.destination.saturating_add(expected.len);
            *demand.done.get_mut(at.cell).ok_or(PieceProblem::Place)? = at.index.saturating_add(1);
            demand.last = at.cell;
            if at.left == 0 {
                if (at.demand, at.index) == (self.current, index)
                    && demand.strides(cell, at.cell).is_some()
                {
                    demand.row = Some(piece.len);
                }
                return Ok(());
            }
            self.advance(&mut at)?;
        }
    }

    /// Moves the cursor to the demanded bytes that follow.
    fn advance(&mut self, at: &mut Cursor) -> Result<(), PieceProblem> {
        let demand = self.demands.get(at.demand).ok_or(PieceProblem::Place)?;
        let (step, to) = self.follows(at).ok_or(PieceProblem::Length)?;
        let gap = to.checked_sub(at.destination).ok_or(PieceProblem::Length)?;
        if gap > 0 && !self.may_bridge(at, step, to, gap) {
            return Err(PieceProblem::LiveGap);
        }
        at.left = at.left.checked_sub(gap).ok_or(PieceProblem::LiveGap)?;
        let row = at.destination;
        at.source = at.source.saturating_add(gap);
        at.destination = to;
        match step {
            Step::Within => at.cell = at.cell.saturating_add(1),
            Step::NextGroup => {
                at.demand = at.demand.saturating_add(1);
                (at.cell, at.index) = (0, 0);
                if let Some(next) = self.demands.get_mut(at.demand) {
                    next.first = 0;
                }
            }
            Step::Across => {
                let first = demand.first;
                let (_, pair) = demand.get(first, at.index).ok_or(PieceProblem::Place)?;
                let start = demand
                    .expected
                    .cells
                    .get(first)
                    .map(|cell| cell.destination_at(pair));
                let len = row.saturating_sub(start.unwrap_or(row));
                let last = at.cell;
                (at.cell, at.index) = (first, at.index.saturating_add(1));
                self.repeat(at, last, len)?;
            }
        }
        Ok(())
    }

    /// Passes all but the last of the blocks that repeat the one before: a
    /// block's bytes, `len` from the first to the last cell, one stride further
    /// on both sides.
    fn repeat(&mut self, at: &mut Cursor, last: usize, len: u64) -> Result<(), PieceProblem> {
        let demand = self.demands.get_mut(at.demand).ok_or(PieceProblem::Place)?;
        let (first, index) = (at.cell, at.index);
        let Some((stride, other)) = demand.strides(first, last) else {
            return Ok(());
        };
        if stride != other {
            return Ok(());
        }
        let ahead = demand.follow.get(index).copied().unwrap_or(0);
        let whole = at
            .left
            .checked_sub(len)
            .and_then(|rest| rest.checked_div(stride))
            .and_then(|blocks| usize::try_from(blocks).ok())
            .unwrap_or(0);
        let blocks = ahead.min(whole);
        let cells = demand
            .done
            .get_mut(first..=last)
            .ok_or(PieceProblem::Place)?;
        if blocks == 0 || cells.iter().any(|done| *done != index) {
            return Ok(());
        }
        let index = index.saturating_add(blocks);
        cells.fill(index);
        let bytes = u64::try_from(blocks)
            .unwrap_or(u64::MAX)
            .saturating_mul(stride);
        at.index = index;
        at.source = at.source.saturating_add(bytes);
        at.destination = at.destination.saturating_add(bytes);
        at.left = at.left.saturating_sub(bytes);
        Ok(())
    }

    /// The nearest demanded bytes at or after the cursor, in its allocation.
    fn follows(&self, at: &Cursor) -> Option<(Step, u64)> {
        let demand = self.demands.get(at.demand)?;
        let allocation = demand.expected.cells.get(at.cell)?.destination;
        let start = |of: &Demand<'_>, cell: usize, index: usize| {
            let is_here = of.expected.cells.get(cell)?.destination == allocation;
            of.due(cell, index)
                .filter(|start| is_here && *start >= at.destination)
        };
        let next = at.index.saturating_add(1);
        let is_last = next == demand.pairs.len();
        let group = self
            .demands
            .get(at.demand.saturating_add(1))
            .filter(|_| is_last);
        [
            (
                Step::Within,
                start(demand, at.cell.saturating_add(1), at.index),
            ),
            (Step::Across, start(demand, demand.first, next)),
            (Step::NextGroup, group.and_then(|group| start(group, 0, 0))),
        ]
        .into_iter()
        .filter_map(|(step, start)| Some((step, start?)))
        .min_by_key(|(_, start)| *start)
    }

    /// Whether the contract lets a piece run over the gap before `to`.
    fn may_bridge(&self, at: &Cursor, step: Step, to: u64, len: u64) -> bool {
        let Contract::BridgeDead { max_gap } = self.contract else {
            return false;
        };
        let Some(demand) = self.demands.get(at.demand) else {
            return false;
        };
        if len > max_gap.get() {
            return false;
        }
        let (next, next_cell, index) = match step {
            Step::Within => {
                return demand.expected.dead.get(at.cell).copied().unwrap_or(false);
            }
            Step::Across => (demand, demand.first, at.index.saturating_add(1)),
            Step::NextGroup => match self.demands.get(at.demand.saturating_add(1)) {
                Some(next) => (next, 0, 0),
                None => return false,
            },
        };
        let (Some((cell, pair)), Some(last)) =
            (demand.get(at.cell, at.index), next.pairs.get(index))
        else {
            return false;
        };
        let group = demand.expected.group;
        let next_stride = next
            .expected
            .cells
            .get(next_cell)
            .map(|cell| cell.destination_stride);
        pair.destination.checked_add(1) == Some(last.destination)
            && next.expected.group.pool() == group.pool()
            && next_stride == Some(cell.destination_stride)
            && is_dead(
                self.layout,
                group,
                Gap {
                    allocation: cell.destination,
                    start: at.destination,
                    end: to,
                    stride: cell.destination_stride,
                    first: (pair.destination, demand.id()),
                    last: (last.destination, next.id()),
                },
            )
    }
}

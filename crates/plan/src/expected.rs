//! What a group's blocks must receive, worked out again for the check: from
//! axes and strides, not from the runs that lowering uses.

use alloc::vec::Vec;
use mooncake_pd_layout::{AllocationId, CacheLayout, Dim, Field, Group, GroupId};

use crate::select::Pair;
use crate::slots::live;
use crate::{Tables, Tokens, UnfilledReason};

/// Bytes that are contiguous in a block of either side.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cell {
    pub(crate) source: AllocationId,
    pub(crate) destination: AllocationId,
    pub(crate) source_base: u64,
    pub(crate) destination_base: u64,
    pub(crate) source_stride: u64,
    pub(crate) destination_stride: u64,
    pub(crate) len: u64,
}

impl Cell {
    pub(crate) fn source_at(&self, pair: &Pair) -> u64 {
        at(self.source_base, pair.source, self.source_stride)
    }

    pub(crate) fn destination_at(&self, pair: &Pair) -> u64 {
        at(
            self.destination_base,
            pair.destination,
            self.destination_stride,
        )
    }
}

fn at(base: u64, id: u32, stride: u64) -> u64 {
    // A layout's blocks end below 2^62, so nothing saturates.
    base.saturating_add(stride.saturating_mul(u64::from(id)))
}

/// Where the n-th payload byte of a block lies, and how many follow it without
/// interruption.
fn locate(field: &Field, byte: u64) -> (u64, u64) {
    let element = field.dtype().size();
    let mut left = byte.checked_div(element).unwrap_or(0);
    let mut offset = byte.checked_rem(element).unwrap_or(0);
    let mut whole = element;
    let mut contiguous = true;
    for dim in field.dims().iter().rev() {
        let step = left.checked_rem(dim.extent()).unwrap_or(0);
        left = left.checked_div(dim.extent()).unwrap_or(0);
        offset = offset.saturating_add(step.saturating_mul(dim.stride()));
        contiguous = contiguous && dim.stride() == whole;
        if contiguous {
            whole = whole.saturating_mul(dim.extent());
        }
    }
    let within = byte.checked_rem(whole).unwrap_or(0);
    (offset, whole.saturating_sub(within))
}

fn bytes(field: &Field) -> u64 {
    field
        .dims()
        .iter()
        .map(Dim::extent)
        .fold(field.dtype().size(), u64::saturating_mul)
}

/// All cells of the layers both sides have, by destination address.
fn cells(source: &Group, destination: &Group) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (layer, to) in destination.fields() {
        let from = source
            .layers()
            .get(layer)
            .and_then(|page| page.field(to.id()));
        let Some(from) = from else { continue };
        let mut byte = 0;
        while byte < bytes(to) {
            let ((read, more), (write, most)) = (locate(from, byte), locate(to, byte));
            let len = more.min(most).max(1);
            cells.push(Cell {
                source: from.allocation(),
                destination: to.allocation(),
                source_base: from.offset().get().saturating_add(read),
                destination_base: to.offset().get().saturating_add(write),
                source_stride: from.block_stride().get(),
                destination_stride: to.block_stride().get(),
                len,
            });
            byte = byte.saturating_add(len);
        }
    }
    cells.sort_by_key(|cell| (cell.destination, cell.destination_base));
    cells
}

/// Every destination entry of a group with what it must receive.
pub(crate) fn demanded(
    group: &Group,
    tokens: Tokens,
    tables: &Tables,
) -> (Vec<Pair>, Vec<(u64, u32, UnfilledReason)>) {
    let (mut pairs, mut unfilled) = (Vec::new(), Vec::new());
    let per_block = u64::from(group.tokens_per_block().get());
    let oldest = match (group.kind().window(), tokens) {
        (Some(window), Tokens::Computed(tokens)) => tokens.saturating_sub(u64::from(window.get())),
        _ => 0,
    };
    for (index, entry) in (0_u64..).zip(tables.destination().entries()) {
        let position = tables.destination().first_block().saturating_add(index);
        let Some(destination) = live(*entry) else {
            continue;
        };
        // One past the last token of the position's block.
        let block_end = position.saturating_add(1).saturating_mul(per_block);
        let source = position
            .checked_sub(tables.source().first_block())
            .and_then(|index| tables.source().entries().get(usize::try_from(index).ok()?));
        let reason = if tables.end() <= position {
            UnfilledReason::BeyondComputed
        } else if group.kind().is_state() && tables.end() != position.saturating_add(1) {
            UnfilledReason::NotLatestState
        } else if block_end <= oldest {
            UnfilledReason::OutsideWindow
        } else {
            match source.map(|entry| live(*entry)) {
                None => UnfilledReason::NotHeld,
                Some(None) => UnfilledReason::SourceNull,
                Some(Some(source)) => {
                    pairs.push(Pair {
                        position,
                        source,
                        destination,
                    });
                    continue;
                }
            }
        };
        unfilled.push((position, destination, reason));
    }
    (pairs, unfilled)
}

/// One group as the check knows it.
#[derive(Clone, Debug)]
pub(crate) struct Expected<'a> {
    pub(crate) group: &'a Group,
    pub(crate) cells: Vec<Cell>,
    /// For each cell: whether the gap to the next cell of its block is dead.
    pub(crate) dead: Vec<bool>,
}

impl<'a> Expected<'a> {
    pub(crate) fn new(
        source: &Group,
        group: &'a Group,
        layout: &CacheLayout,
        bridgeable: bool,
    ) -> Self {
        let cells = cells(source, group);
        let next = cells.iter().skip(1).map(Some).chain([None]);
        let dead = cells
            .iter()
            .zip(next)
            .map(|(cell, next)| {
                let start = cell.destination_base.saturating_add(cell.len);
                next.filter(|next| bridgeable && next.destination == cell.destination)
                    .map(|next| next.destination_base)
                    .filter(|end| *end > start)
                    .is_some_and(|end| {
                        let owner = (0, group.id());
                        let stride = cell.destination_stride;
                        let allocation = cell.destination;
                        let gap = Gap {
                            allocation,
                            start,
                            end,
                            stride,
                            first: owner,
                            last: owner,
                        };
                        is_dead(layout, group, gap)
                    })
            })
            .collect();
        Self { group, cells, dead }
    }
}

/// Bytes between a block's demanded bytes, or between those of two blocks that
/// follow each other.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) allocation: AllocationId,
    pub(crate) start: u64,
    pub(crate) end: u64,
    /// Bytes from block to block of what lies around it.
    pub(crate) stride: u64,
    /// The block it begins in and the one it ends in, each with the group for
    /// which the request owns it.
    pub(crate) first: (u32, GroupId),
    pub(crate) last: (u32, GroupId),
}

/// Whether the bytes of a gap may be overwritten, for its blocks and for all
/// others of the pool that lie as they do: no byte is of a field of the group
/// that owns its block, of a block besides the gap's, or of another pool.
pub(crate) fn is_dead(layout: &CacheLayout, group: &Group, gap: Gap) -> bool {
    let capacity = |group: &Group| {
        layout
            .pool(group.pool())
            .map_or(0, |pool| i128::from(pool.capacity()))
    };
    let reach = capacity(group).saturating_sub(1);
    let (first, last) = (i128::from(gap.first.0), i128::from(gap.last.0));
    let (start, end) = (i128::from(gap.start), i128::from(gap.end));
    // Where such gaps lie over all blocks, the pool's first to its last.
    let stride = i128::from(gap.stride);
    let lowest = start.saturating_sub(first.saturating_mul(stride));
    let highest = reach
        .saturating_sub(first)
        .saturating_mul(stride)
        .saturating_add(end);
    layout.groups().iter().all(|other| {
        let same_ids = other.pool() == group.pool();
        let others = capacity(other).saturating_sub(1);
        let owned = |id: i128| {
            (id == first && other.id() != gap.first.1) || (id == last && other.id() != gap.last.1)
        };
        other
            .fields()
            .filter(|(_, field)| field.allocation() == gap.allocation)
            .all(|(_, field)| {
                let stride = i128::from(field.block_stride().get());
                let base = i128::from(field.offset().get());
                let moves_along = same_ids && field.block_stride().get() == gap.stride;
                let mut byte = 0;
                while byte < bytes(field) {
                    let (offset, len) = locate(field, byte);
                    byte = byte.saturating_add(len.max(1));
                    let from = base.saturating_add(i128::from(offset));
                    if !moves_along {
                        // Its ids and the gap's don't move together: it has to
                        // be somewhere else altogether.
                        let piece_end = others
                            .saturating_mul(stride)
                            .saturating_add(from)
                            .saturating_add(i128::from(len));
                        if piece_end > lowest && from < highest {
                            return false;
                        }
                        continue;
                    }
                    // Ids whose piece ends after `start` and begins before `end`;
                    // an id that the pool does not have counts where another block
                    // of the pool would meet one that it has.
                    let low = start
                        .saturating_sub(from)
                        .saturating_sub(i128::from(len))
                        .div_euclid(stride)
                        .saturating_add(1)
                        .max(first.saturating_sub(reach));
                    let high = end
                        .saturating_sub(from)
                        .saturating_sub(1)
                        .div_euclid(stride)
                        .min(first.saturating_add(reach));
                    // A gap of two blocks meets at most two ids that may be owned.
                    let few = high.saturating_sub(low) <= 1;
                    if low <= high && !(few && owned(low) && owned(high)) {
                        return false;
                    }
                }
                true
            })
    })
}

//! The overlay rule: which fields may own the same bytes.
//!
//! A field owns a comb of bytes: the same pieces, one stride further on for
//! every id. Combs of one pool and one stride are compared by residue, which
//! costs no more than sorting their pieces, whatever the number of blocks.
//! Combs that differ in stride or pool and reach over the same bytes are
//! compared pair by pair, within a bound.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use crate::comb::{Comb, meet, spend};
use crate::error::LayoutError;
use crate::ids::{AllocationId, GroupId, PoolId};
use crate::layout::CacheLayout;
use crate::limits::MAX_STEPS;

/// Refuses a layout in which two owners could hold the same byte.
pub(crate) fn check(layout: &CacheLayout) -> Result<(), LayoutError> {
    let mut by_allocation: BTreeMap<AllocationId, Vec<Comb<'_>>> = BTreeMap::new();
    for group in layout.groups() {
        let blocks = layout
            .pool(group.pool())
            .map_or(0, |pool| u64::from(pool.capacity()));
        for (layer, field) in group.fields() {
            let combs = by_allocation.entry(field.allocation()).or_default();
            for piece in field.payload().iter().flat_map(crate::run::Run::pieces) {
                let comb = Comb {
                    group,
                    layer,
                    field,
                    start: field.offset().get().saturating_add(piece.start().get()),
                    len: piece.len().get(),
                    stride: field.block_stride().get(),
                    blocks,
                };
                if blocks > 1 && comb.len > comb.stride {
                    return Err(LayoutError::PayloadExceedsStride {
                        place: comb.place(),
                        payload: comb.len,
                        stride: comb.stride,
                    });
                }
                combs.push(comb);
            }
        }
    }
    let mut steps = MAX_STEPS;
    for (allocation, mut combs) in by_allocation {
        combs.sort_by_key(|comb| comb.start);
        let mut rest = combs.as_slice();
        while let Some(component) = take_component(&mut rest) {
            check_component(layout, allocation, component, &mut steps)?;
        }
    }
    Ok(())
}

/// Splits off the leading combs that reach over each other's bytes.
fn take_component<'c, 'a>(rest: &mut &'c [Comb<'a>]) -> Option<&'c [Comb<'a>]> {
    let mut end = rest.first()?.end();
    let count = rest
        .iter()
        .take_while(|comb| {
            let inside = comb.start < end;
            end = end.max(comb.end());
            inside
        })
        .count();
    let (component, tail) = rest.split_at_checked(count)?;
    *rest = tail;
    Some(component)
}

fn check_component(
    layout: &CacheLayout,
    allocation: AllocationId,
    component: &[Comb<'_>],
    steps: &mut u64,
) -> Result<(), LayoutError> {
    let mut classes: BTreeMap<(PoolId, u64), Vec<Comb<'_>>> = BTreeMap::new();
    for comb in component {
        classes.entry(comb.class()).or_default().push(*comb);
    }
    for combs in classes.values() {
        check_residues(allocation, combs)?;
    }
    if classes.len() > 1 {
        check_pairs(layout, allocation, component, steps)?;
    }
    Ok(())
}

/// A piece of a comb between two multiples of the stride.
struct Piece<'c, 'a> {
    comb: &'c Comb<'a>,
    /// Multiples of the stride from the component's start to id 0.
    row: u64,
    start: u64,
    end: u64,
}

/// Combs of one pool and one stride. Two of them meet at ids whose difference
/// is that of their rows: the same id may, two different ids may not.
fn check_residues(allocation: AllocationId, combs: &[Comb<'_>]) -> Result<(), LayoutError> {
    let Some(first) = combs.first() else {
        return Ok(());
    };
    let base = combs.iter().map(|comb| comb.start).min().unwrap_or(0);
    // With a single id there is no next row to meet.
    let single = first.blocks == 1;
    let mut pieces = Vec::new();
    for comb in combs {
        let from = comb.start.saturating_sub(base);
        let row = if single {
            0
        } else {
            from.checked_div(comb.stride).unwrap_or(0)
        };
        let start = from.saturating_sub(row.saturating_mul(comb.stride));
        let end = start.saturating_add(comb.len);
        if single || end <= comb.stride {
            pieces.push(Piece {
                comb,
                row,
                start,
                end,
            });
        } else {
            pieces.push(Piece {
                comb,
                row,
                start,
                end: comb.stride,
            });
            let end = end.saturating_sub(comb.stride);
            pieces.push(Piece {
                comb,
                row: row.saturating_add(1),
                start: 0,
                end,
            });
        }
    }
    pieces.sort_by_key(|piece| (piece.start, piece.end));

    let reach = first.blocks.saturating_sub(1);
    // Pieces over the current byte, by row and group: one each, a second is refused.
    let mut active: BTreeMap<(u64, GroupId), &Piece<'_, '_>> = BTreeMap::new();
    let mut ends: BTreeSet<(u64, u64, GroupId)> = BTreeSet::new();
    for piece in &pieces {
        while let Some((end, row, group)) = ends.first().copied() {
            if end > piece.start {
                break;
            }
            ends.pop_first();
            active.remove(&(row, group));
        }
        let group = piece.comb.group.id();
        let others = |from: u64, to: u64| {
            let rows = (from, GroupId::new(0))..(to, GroupId::new(0));
            active.range(rows).next().map(|(_, other)| *other)
        };
        let next = piece.row.saturating_add(1);
        let other = others(piece.row.saturating_sub(reach), piece.row)
            .or_else(|| others(next, next.saturating_add(reach)))
            .or_else(|| active.get(&(piece.row, group)).copied());
        if let Some(other) = other {
            return Err(meeting(allocation, other, piece));
        }
        active.insert((piece.row, group), piece);
        ends.insert((piece.end, piece.row, group));
    }
    Ok(())
}

fn meeting(allocation: AllocationId, a: &Piece<'_, '_>, b: &Piece<'_, '_>) -> LayoutError {
    // Row r of id 0 is row r + i of id i: they meet where both sums are equal.
    LayoutError::Overlap {
        first: a.comb.place(),
        first_block: b.row.saturating_sub(a.row),
        second: b.comb.place(),
        second_block: a.row.saturating_sub(b.row),
        allocation,
    }
}

/// Combs that differ in pool or stride, pair by pair.
fn check_pairs(
    layout: &CacheLayout,
    allocation: AllocationId,
    component: &[Comb<'_>],
    steps: &mut u64,
) -> Result<(), LayoutError> {
    for (i, a) in component.iter().enumerate() {
        let end = a.end();
        let later = component.iter().skip(i.saturating_add(1));
        for b in later.take_while(|b| b.start < end) {
            spend(steps, 1, a, b)?;
            if a.class() == b.class() || are_arbitrated(layout, a.group.pool(), b.group.pool()) {
                continue;
            }
            if let Some((first_block, second_block)) = meet(a, b, steps)? {
                return Err(LayoutError::Overlap {
                    first: a.place(),
                    first_block,
                    second: b.place(),
                    second_block,
                    allocation,
                });
            }
        }
    }
    Ok(())
}

fn are_arbitrated(layout: &CacheLayout, a: PoolId, b: PoolId) -> bool {
    layout
        .arbitrated()
        .binary_search(&(a.min(b), a.max(b)))
        .is_ok()
}

#[cfg(test)]
mod tests;

//! Gaps that a plan may write besides what is demanded.

use std::collections::BTreeSet;

use super::demand::{Demand, Row, disjoint};
use super::error::WalkError;
use super::layout::Layout;
use super::view::{Span, View};

/// A copy as the engine was given it: source allocation and offset,
/// destination allocation and offset, length.
pub type Copy = (u32, u64, u32, u64, u64);

/// Adds to a demand the bytes that copies write besides it: each gap has at
/// most `max_gap` bytes, and each byte must be dead, that is, belong to no view
/// of the group that owns its block.
///
/// # Errors
/// A byte is written that somebody owns.
pub fn bridge(
    demand: &mut Demand,
    destination: &Layout,
    copies: impl IntoIterator<Item = Copy>,
    max_gap: u64,
) -> Result<(), WalkError> {
    let owned: BTreeSet<(u64, u32)> = demand
        .rows
        .iter()
        .map(|row| (row.block, row.group))
        .collect();
    let mut gaps = Vec::new();
    for copy in copies {
        between(&demand.rows, copy, &mut gaps);
    }
    for gap in &gaps {
        if gap.len > max_gap {
            return Err(WalkError::Gap {
                allocation: gap.destination,
                offset: gap.destination_offset,
                len: gap.len,
                max_gap,
            });
        }
        for view in &destination.views {
            if view.allocation == gap.destination {
                dead(view, gap, &owned)?;
            }
        }
    }
    demand.rows.append(&mut gaps);
    demand.rows.sort_unstable();
    disjoint(&demand.rows)
}

/// The parts of a copy that no row demands.
fn between(rows: &[Row], copy: Copy, gaps: &mut Vec<Row>) {
    let (source, source_offset, destination, begin, len) = copy;
    let end = begin.saturating_add(len);
    let first = rows.partition_point(|row| {
        let row_end = row.destination_offset.saturating_add(row.len);
        (row.destination, row_end) <= (destination, begin)
    });
    let mut at = begin;
    let mut push = |from: u64, to: u64| {
        if from < to {
            gaps.push(Row {
                destination,
                destination_offset: from,
                source,
                source_offset: source_offset.saturating_add(from.saturating_sub(begin)),
                len: to.saturating_sub(from),
                request: u32::MAX,
                group: u32::MAX,
                block: u64::MAX,
            });
        }
    };
    for row in rows.iter().skip(first) {
        if row.destination != destination || row.destination_offset >= end {
            break;
        }
        push(at, row.destination_offset);
        at = row.destination_offset.saturating_add(row.len);
    }
    push(at, end);
}

/// Refuses a gap in bytes that a view owns now: of a block that nobody in
/// the batch owns, or that this view's group owns.
fn dead(view: &View, gap: &Row, owned: &BTreeSet<(u64, u32)>) -> Result<(), WalkError> {
    let end = gap.destination_offset.saturating_add(gap.len);
    let (Some(&stride), Some(&pages)) = (view.strides.first(), view.shape.first()) else {
        return Ok(());
    };
    let page = |offset: u64| offset.saturating_sub(view.offset).checked_div(stride);
    let (Some(first), Some(last)) = (page(gap.destination_offset), page(end)) else {
        return Ok(());
    };
    let mut spans: Vec<Span> = Vec::new();
    // A page's bytes may reach into the stride of the next one.
    for page in first.saturating_sub(1)..=last.min(pages.saturating_sub(1)) {
        spans.clear();
        view.page(page, &mut spans)?;
        let block = page.checked_div(view.pages_per_block).unwrap_or(page);
        let dead = !owned.contains(&(block, view.group))
            && owned.range((block, 0)..=(block, u32::MAX)).next().is_some();
        let touched = spans.iter().find(|span| {
            span.offset < end && span.offset.saturating_add(span.len) > gap.destination_offset
        });
        if let Some(span) = touched.filter(|_| !dead) {
            return Err(WalkError::Alive {
                allocation: gap.destination,
                offset: span.offset.max(gap.destination_offset),
                owner: format!("{} block {block}", view.place()),
            });
        }
    }
    Ok(())
}

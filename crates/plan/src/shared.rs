//! Bytes of blocks whose pools overlay each other.

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use mooncake_pd_layout::{AllocationId, CacheLayout, Group, GroupId, PoolId, Run};

/// Bytes claimed by blocks of [arbitrated](CacheLayout::arbitrated) pools. The
/// layout can't prove these disjoint; this does, for the blocks in use.
#[derive(Debug)]
pub(crate) struct SharedBytes<'a> {
    layout: &'a CacheLayout,
    pools: BTreeSet<PoolId>,
    spans: BTreeMap<(AllocationId, u64), Span>,
    claimed: BTreeSet<(GroupId, u32)>,
}

#[derive(Clone, Copy, Debug)]
struct Span {
    end: u64,
    group: GroupId,
    pool: PoolId,
    id: u32,
}

impl<'a> SharedBytes<'a> {
    pub(crate) fn new(layout: &'a CacheLayout) -> Self {
        let pools = layout
            .arbitrated()
            .iter()
            .flat_map(|(a, b)| [*a, *b])
            .collect();
        Self {
            layout,
            pools,
            spans: BTreeMap::new(),
            claimed: BTreeSet::new(),
        }
    }

    /// Whether a group's blocks have to be claimed.
    pub(crate) fn concerns(&self, group: &Group) -> bool {
        self.pools.contains(&group.pool())
    }

    /// Claims a block's bytes. The same block may be claimed again.
    ///
    /// # Errors
    /// The block that already owns one of the bytes; nothing is claimed then.
    pub(crate) fn claim(&mut self, group: &Group, id: u32) -> Result<(), (GroupId, u32)> {
        if !self.concerns(group) || self.claimed.contains(&(group.id(), id)) {
            return Ok(());
        }
        let spans = spans(group, id);
        for (allocation, start, end) in &spans {
            // Claimed spans are disjoint, so the last that starts before the
            // end reaches furthest.
            let before = self.spans.range(..(*allocation, *end)).next_back();
            if let Some(((other, _), span)) = before
                && other == allocation
                && span.end > *start
                && (span.pool, span.id) != (group.pool(), id)
            {
                return Err((span.group, span.id));
            }
        }
        for (allocation, start, end) in spans {
            let span = Span {
                end,
                group: group.id(),
                pool: group.pool(),
                id,
            };
            self.spans.insert((allocation, start), span);
        }
        self.claimed.insert((group.id(), id));
        Ok(())
    }

    /// Takes back what [`claim`](Self::claim) claimed.
    pub(crate) fn release(&mut self, group: GroupId, id: u32) {
        if self.claimed.remove(&(group, id))
            && let Some(group) = self.layout.group(group)
        {
            for (allocation, start, _) in spans(group, id) {
                self.spans.remove(&(allocation, start));
            }
        }
    }
}

/// A block's bytes, neighbours joined.
fn spans(group: &Group, id: u32) -> Vec<(AllocationId, u64, u64)> {
    let mut all: Vec<(AllocationId, u64, u64)> = group
        .fields()
        .filter_map(|(_, field)| Some((field, field.block_offset(id)?.get())))
        .flat_map(|(field, base)| {
            field
                .payload()
                .iter()
                .flat_map(Run::pieces)
                .map(move |piece| {
                    let start = base.saturating_add(piece.start().get());
                    (
                        field.allocation(),
                        start,
                        start.saturating_add(piece.len().get()),
                    )
                })
        })
        .collect();
    all.sort_unstable();
    all.dedup_by(|next, last| {
        let joined = next.0 == last.0 && next.1 == last.2;
        if joined {
            last.2 = next.2;
        }
        joined
    });
    all
}

//! Gaps that a destination's owner may allow to be overwritten.

use mooncake_pd_layout::{AllocationId, CacheLayout, Field, Group, GroupId, Run};

/// Most comparisons of gaps with pieces of fields for one pairing.
const MAX_COMPARISONS: usize = 1 << 22;

/// Whether gaps between so many contiguous parts may be bridged at all. Where a
/// layout is in more pieces than can be compared with them within bounded time,
/// every gap counts as live, for the planner and the check alike.
pub(crate) fn is_bridgeable(layout: &CacheLayout, parts: usize) -> bool {
    let pieces = layout
        .groups()
        .iter()
        .flat_map(Group::fields)
        .flat_map(|(_, field)| field.payload())
        .map(|run| usize::try_from(run.count()).unwrap_or(usize::MAX))
        .fold(0, usize::saturating_add);
    pieces
        .checked_mul(parts)
        .is_some_and(|all| all <= MAX_COMPARISONS)
}

/// A gap between payload of a block, or of two that follow each other, repeated
/// for every block of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) allocation: AllocationId,
    /// In block 0, from the allocation's start.
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) stride: u64,
    /// Blocks in the pool.
    pub(crate) blocks: u32,
    /// The group that owns the block it begins in.
    pub(crate) owner: GroupId,
    /// The group that owns the next block, if the request does.
    pub(crate) next_owner: Option<GroupId>,
}

/// Whether no byte of a gap of one group's blocks belongs to a field of the
/// group that owns its block, to a block that the request does not own, or to
/// another pool.
pub(crate) fn is_dead(layout: &CacheLayout, group: &Group, gap: Gap) -> bool {
    layout.groups().iter().all(|other| {
        let blocks = layout
            .pool(other.pool())
            .map_or(0, mooncake_pd_layout::Pool::capacity);
        other
            .fields()
            .filter(|(_, field)| field.allocation() == gap.allocation)
            .all(|(_, field)| {
                let regular =
                    other.pool() == group.pool() && field.block_stride().get() == gap.stride;
                field.payload().iter().flat_map(Run::pieces).all(|piece| {
                    let start = field.offset().get().saturating_add(piece.start().get());
                    let len = piece.len().get();
                    if regular {
                        is_harmless(gap, other.id(), start, len)
                    } else {
                        apart(gap, field, start, len, blocks)
                    }
                })
            })
    })
}

/// Whether a piece of the same pool and stride lies in the gap only in blocks
/// that another group owns.
fn is_harmless(gap: Gap, group: GroupId, start: u64, len: u64) -> bool {
    let stride = i128::from(gap.stride);
    let (gap_start, gap_len) = (i128::from(gap.start), i128::from(gap.len));
    let (start, len) = (i128::from(start), i128::from(len));
    // Differences d of block ids with
    // start + d * stride in (gap_start - len, gap_start + gap_len).
    let reach = i128::from(gap.blocks).saturating_sub(1);
    let low = gap_start
        .saturating_sub(len)
        .saturating_sub(start)
        .div_euclid(stride)
        .saturating_add(1)
        .max(reach.saturating_neg());
    let high = gap_start
        .saturating_add(gap_len)
        .saturating_sub(1)
        .saturating_sub(start)
        .div_euclid(stride)
        .min(reach);
    low > high
        || low >= 0
            && high <= 1
            && (low > 0 || group != gap.owner)
            && (high < 1 || gap.next_owner.is_some_and(|next| next != group))
}

/// Whether the piece's whole reach over all blocks is apart from that of the
/// gap.
fn apart(gap: Gap, field: &Field, start: u64, len: u64, blocks: u32) -> bool {
    let reach = |start: u64, stride: u64, blocks: u32, len: u64| {
        u64::from(blocks.saturating_sub(1))
            .saturating_mul(stride)
            .saturating_add(start)
            .saturating_add(len)
    };
    reach(start, field.block_stride().get(), blocks, len) <= gap.start
        || start >= reach(gap.start, gap.stride, gap.blocks, gap.len)
}

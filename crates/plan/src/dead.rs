//! Gaps that a destination's owner may allow to be overwritten.

use mooncake_pd_layout::{AllocationId, CacheLayout, Field, Group, Run};

/// Most comparisons of a gap with pieces of fields; beyond it gaps count as
/// live.
const MAX_COMPARISONS: usize = 1 << 22;

/// A gap between payload of a block, repeated for every block of a group.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Gap {
    pub(crate) allocation: AllocationId,
    /// In block 0, from the allocation's start.
    pub(crate) start: u64,
    pub(crate) len: u64,
    pub(crate) stride: u64,
    /// Blocks in the group's pool.
    pub(crate) blocks: u32,
    /// Blocks the request owns around the gap: 0 for the block itself, 1 when
    /// the next one is the request's as well.
    pub(crate) owned_ahead: i128,
}

/// Decides whether gaps of one group's blocks are dead.
#[derive(Debug)]
pub(crate) struct Dead<'a> {
    layout: &'a CacheLayout,
    group: &'a Group,
    left: usize,
}

impl<'a> Dead<'a> {
    pub(crate) const fn new(layout: &'a CacheLayout, group: &'a Group) -> Self {
        Self {
            layout,
            group,
            left: MAX_COMPARISONS,
        }
    }

    /// Whether no byte of the gap belongs to a field of the group, to another
    /// block, or to another pool.
    pub(crate) fn is_dead(&mut self, gap: Gap) -> bool {
        let (layout, group) = (self.layout, self.group);
        for other in layout.groups() {
            let blocks = layout
                .pool(other.pool())
                .map_or(0, mooncake_pd_layout::Pool::capacity);
            for (_, field) in other
                .fields()
                .filter(|(_, f)| f.allocation() == gap.allocation)
            {
                for piece in field.payload().iter().flat_map(Run::pieces) {
                    let Some(left) = self.left.checked_sub(1) else {
                        return false;
                    };
                    self.left = left;
                    let start = field.offset().get().saturating_add(piece.start().get());
                    let len = piece.len().get();
                    let regular =
                        other.pool() == group.pool() && field.block_stride().get() == gap.stride;
                    let harmless = if regular {
                        meets_none(gap, start, len, blocks)
                            || (other.id() != group.id() && meets_only_owned(gap, start, len))
                    } else {
                        apart(gap, field, start, len, blocks)
                    };
                    if !harmless {
                        return false;
                    }
                }
            }
        }
        true
    }
}

/// Differences of block ids at which a piece lies in the gap, both included.
fn meetings(gap: Gap, start: u64, len: u64) -> (i128, i128) {
    let stride = i128::from(gap.stride);
    let (gap_start, gap_len) = (i128::from(gap.start), i128::from(gap.len));
    let (start, len) = (i128::from(start), i128::from(len));
    // start + d * stride in (gap_start - len, gap_start + gap_len).
    let low = gap_start
        .saturating_sub(len)
        .saturating_add(1)
        .saturating_sub(start);
    let high = gap_start
        .saturating_add(gap_len)
        .saturating_sub(1)
        .saturating_sub(start);
    let floor = |value: i128| value.div_euclid(stride);
    (
        floor(low.saturating_add(stride).saturating_sub(1)),
        floor(high),
    )
}

fn meets_none(gap: Gap, start: u64, len: u64, blocks: u32) -> bool {
    let (low, high) = meetings(gap, start, len);
    let reach = i128::from(blocks).saturating_sub(1);
    low > high || low > reach || high < reach.saturating_neg()
}

fn meets_only_owned(gap: Gap, start: u64, len: u64) -> bool {
    let (low, high) = meetings(gap, start, len);
    low >= 0 && high <= gap.owned_ahead
}

/// Whether the piece's whole reach over all blocks is apart from that of the
/// gap.
fn apart(gap: Gap, field: &Field, start: u64, len: u64, blocks: u32) -> bool {
    let steps = u64::from(blocks.saturating_sub(1));
    let end = start
        .saturating_add(steps.saturating_mul(field.block_stride().get()))
        .saturating_add(len);
    let gap_end = u64::from(gap.blocks)
        .saturating_mul(gap.stride)
        .saturating_add(gap.start)
        .saturating_add(gap.len);
    end <= gap.start || start >= gap_end
}

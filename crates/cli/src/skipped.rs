//! Bytes of moved blocks that are no payload.

use std::collections::BTreeSet;

use mooncake_pd_layout::Group;

/// Bytes that one block of a group spans besides its payload: padding, and in
/// packed rows the room of other groups.
#[must_use]
pub(crate) fn per_block(group: &Group) -> u64 {
    // Fields that lie in the same stretch of one allocation share its stride.
    let rows: BTreeSet<(u32, u64, Option<u64>)> = group
        .fields()
        .map(|(_, field)| {
            let stride = field.block_stride().get();
            let row = field.offset().get().checked_div(stride);
            (field.allocation().get(), stride, row)
        })
        .collect();
    let spanned = rows
        .iter()
        .fold(0_u64, |sum, (_, stride, _)| sum.saturating_add(*stride));
    let payload = group.fields().fold(0_u64, |sum, (_, field)| {
        sum.saturating_add(field.payload_len().get())
    });
    spanned.saturating_sub(payload)
}

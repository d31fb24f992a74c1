//! Bytes that are contiguous on both sides of a block.

use alloc::vec::Vec;
use mooncake_pd_layout::{AllocationId, Field, Run};

/// Bytes of one field that are contiguous in a block of either side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Atom {
    pub(crate) source: AllocationId,
    pub(crate) destination: AllocationId,
    /// Of block 0, from the allocation's start.
    pub(crate) source_start: u64,
    pub(crate) destination_start: u64,
    pub(crate) source_stride: u64,
    pub(crate) destination_stride: u64,
    pub(crate) len: u64,
}

impl Atom {
    /// Whether `next` lies at the same distance behind this on both sides; the
    /// distance in bytes.
    pub(crate) fn gap_to(&self, next: &Self) -> Option<u64> {
        if self.source != next.source
            || self.destination != next.destination
            || self.source_stride != next.source_stride
            || self.destination_stride != next.destination_stride
        {
            return None;
        }
        let source = next
            .source_start
            .checked_sub(self.source_start)?
            .checked_sub(self.len)?;
        let destination = next
            .destination_start
            .checked_sub(self.destination_start)?
            .checked_sub(self.len)?;
        (source == destination).then_some(source)
    }

    /// The gap between this in one block and `first` in the next, when blocks
    /// follow each other equally on both sides.
    pub(crate) fn gap_to_next_block(&self, first: &Self) -> Option<u64> {
        if self.source_stride != self.destination_stride {
            return None;
        }
        let next = Self {
            source_start: first.source_start.checked_add(self.source_stride)?,
            destination_start: first
                .destination_start
                .checked_add(self.destination_stride)?,
            ..*first
        };
        self.gap_to(&next)
    }
}

/// Cuts a field's payload where either side is interrupted. Both fields have
/// their bytes in the same order, as compatibility established.
pub(crate) fn atoms(source: &Field, destination: &Field, out: &mut Vec<Atom>) {
    let mut sources = source.payload().iter().flat_map(Run::pieces);
    let mut destinations = destination.payload().iter().flat_map(Run::pieces);
    let (mut from, mut to) = (sources.next(), destinations.next());
    let (mut skip_from, mut skip_to) = (0_u64, 0_u64);
    while let (Some(a), Some(b)) = (from, to) {
        let left_a = a.len().get().saturating_sub(skip_from);
        let left_b = b.len().get().saturating_sub(skip_to);
        let len = left_a.min(left_b);
        out.push(Atom {
            source: source.allocation(),
            destination: destination.allocation(),
            source_start: source
                .offset()
                .get()
                .saturating_add(a.start().get())
                .saturating_add(skip_from),
            destination_start: destination
                .offset()
                .get()
                .saturating_add(b.start().get())
                .saturating_add(skip_to),
            source_stride: source.block_stride().get(),
            destination_stride: destination.block_stride().get(),
            len,
        });
        if len == left_a {
            (from, skip_from) = (sources.next(), 0);
        } else {
            skip_from = skip_from.saturating_add(len);
        }
        if len == left_b {
            (to, skip_to) = (destinations.next(), 0);
        } else {
            skip_to = skip_to.saturating_add(len);
        }
    }
}

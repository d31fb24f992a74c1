//! Copies of a plan.

use mooncake_pd_layout::{AllocationId, ByteLen, Offset};

use crate::draft::{Piece, Stretch};

/// One copy of a plan, in bytes from the starts of its allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    source: AllocationId,
    source_offset: Offset,
    destination: AllocationId,
    destination_offset: Offset,
    len: ByteLen,
}

impl Copy {
    /// `None` for a piece that the check would refuse.
    pub(crate) fn new(stretch: &Stretch, piece: &Piece) -> Option<Self> {
        Some(Self {
            source: stretch.source,
            source_offset: Offset::new(piece.source_offset).ok()?,
            destination: stretch.destination,
            destination_offset: Offset::new(piece.destination_offset).ok()?,
            len: ByteLen::new(piece.len).ok()?,
        })
    }

    /// Allocation it is read from.
    #[must_use]
    pub const fn source(&self) -> AllocationId {
        self.source
    }

    /// Bytes from that allocation's start.
    #[must_use]
    pub const fn source_offset(&self) -> Offset {
        self.source_offset
    }

    /// Allocation it is written to.
    #[must_use]
    pub const fn destination(&self) -> AllocationId {
        self.destination
    }

    /// Bytes from that allocation's start.
    #[must_use]
    pub const fn destination_offset(&self) -> Offset {
        self.destination_offset
    }

    /// Bytes, 1..2^62.
    #[must_use]
    pub const fn len(&self) -> ByteLen {
        self.len
    }

    /// Always false: a copy moves at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

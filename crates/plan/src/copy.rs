//! Copies of a plan.

use mooncake_pd_layout::{AllocationId, ByteLen, Offset};

use crate::draft::{Piece, Stretch};

/// One copy of a plan, in bytes from the starts of its allocations.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Copy {
    source: AllocationId,
    destination: AllocationId,
    span: Span,
}

/// A piece of a plan: what the check has proved of a [`Piece`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct Span {
    source: Offset,
    destination: Offset,
    len: ByteLen,
}

impl Span {
    pub(crate) fn new(piece: Piece) -> Option<Self> {
        Some(Self {
            source: Offset::new(piece.source_offset).ok()?,
            destination: Offset::new(piece.destination_offset).ok()?,
            len: ByteLen::new(piece.len).ok()?,
        })
    }
}

impl Copy {
    pub(crate) const fn new(stretch: &Stretch, span: Span) -> Self {
        Self {
            source: stretch.source,
            destination: stretch.destination,
            span,
        }
    }

    /// Allocation it is read from.
    #[must_use]
    pub const fn source(&self) -> AllocationId {
        self.source
    }

    /// Bytes from that allocation's start.
    #[must_use]
    pub const fn source_offset(&self) -> Offset {
        self.span.source
    }

    /// Allocation it is written to.
    #[must_use]
    pub const fn destination(&self) -> AllocationId {
        self.destination
    }

    /// Bytes from that allocation's start.
    #[must_use]
    pub const fn destination_offset(&self) -> Offset {
        self.span.destination
    }

    /// Bytes, 1..2^62.
    #[must_use]
    pub const fn len(&self) -> ByteLen {
        self.span.len
    }

    /// Always false: a copy moves at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

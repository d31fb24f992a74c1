//! Strided runs of bytes.

use crate::units::{ByteLen, ByteSpan, Offset, QuantityError};

/// `count` pieces of `len` bytes, `stride` bytes apart, the first at `start`
/// bytes from the start of its block. Pieces never overlap: `stride >= len`,
/// or there is one piece. The end of the last piece is below 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Run {
    start: Offset,
    len: ByteLen,
    stride: u64,
    count: u32,
}

/// Why four numbers are not a [`Run`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// One of the numbers is out of its range.
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    /// The pieces would overlap.
    #[error("pieces of {len} bytes overlap at a stride of {stride}")]
    Overlap {
        /// Bytes per piece.
        len: u64,
        /// Bytes from piece to piece.
        stride: u64,
    },
}

impl Run {
    /// Checks and builds a run.
    ///
    /// # Errors
    /// No piece, overlapping pieces, or an end beyond 2^62.
    pub fn new(start: Offset, len: ByteLen, stride: u64, count: u32) -> Result<Self, RunError> {
        let Some(last) = count.checked_sub(1) else {
            return Err(QuantityError::Zero {
                what: "pieces of a run",
            }
            .into());
        };
        if last > 0 && stride < len.get() {
            return Err(RunError::Overlap {
                len: len.get(),
                stride,
            });
        }
        let end = u64::from(last)
            .checked_mul(stride)
            .and_then(|span| span.checked_add(len.get()))
            .and_then(|span| start.checked_add(span));
        if end.is_none() {
            return Err(QuantityError::Overflow {
                what: "end of a run",
            }
            .into());
        }
        Ok(Self {
            start,
            len,
            stride,
            count,
        })
    }

    /// First byte of the first piece.
    #[must_use]
    pub const fn start(&self) -> Offset {
        self.start
    }

    /// Bytes per piece.
    #[must_use]
    pub const fn len(&self) -> ByteLen {
        self.len
    }

    /// Always false: a run holds at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Bytes from one piece to the next; of no meaning when there is one.
    #[must_use]
    pub const fn stride(&self) -> u64 {
        self.stride
    }

    /// Pieces, 1..2^32.
    #[must_use]
    pub const fn count(&self) -> u32 {
        self.count
    }

    /// Bytes of all pieces together.
    #[must_use]
    pub fn payload(&self) -> u64 {
        // Below the end of the last piece, which `new` bounded.
        self.len.get().saturating_mul(u64::from(self.count))
    }

    /// One past the last byte of the last piece.
    #[must_use]
    pub fn end(&self) -> u64 {
        let last = u64::from(self.count.saturating_sub(1));
        self.start
            .get()
            .saturating_add(last.saturating_mul(self.stride))
            .saturating_add(self.len.get())
    }

    /// The pieces in order.
    pub fn pieces(&self) -> impl Iterator<Item = ByteSpan> + use<> {
        let (start, len, stride) = (self.start, self.len, self.stride);
        (0..u64::from(self.count)).filter_map(move |i| {
            let at = start.checked_add(i.checked_mul(stride)?)?;
            ByteSpan::new(at, len).ok()
        })
    }
}

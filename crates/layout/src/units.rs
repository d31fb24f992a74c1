//! Byte and token quantities.

use core::fmt;
use core::num::{NonZeroU32, NonZeroU64};

/// One past the largest byte offset and length: 2^62.
///
/// Two offsets below this limit can be added without leaving a `u64`, and a
/// base address near 2^47 plus any offset stays below 2^63.
pub const BYTE_LIMIT: u64 = 1 << 62;

/// Why a number is not a quantity of the wanted type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum QuantityError {
    /// A quantity that has to be positive is zero.
    #[error("{what} is 0, it must be at least 1")]
    Zero {
        /// What the number would have measured.
        what: &'static str,
    },
    /// The number is above the range of its type.
    #[error("{what} {value} is outside 0..{limit}")]
    TooLarge {
        /// What the number would have measured.
        what: &'static str,
        /// The number.
        value: u64,
        /// One past the largest number allowed.
        limit: u64,
    },
    /// Computing the number left 64 bits.
    #[error("{what} does not fit 64 bits")]
    Overflow {
        /// What the number would have measured.
        what: &'static str,
    },
}

fn below_limit(what: &'static str, value: u64) -> Result<u64, QuantityError> {
    if value < BYTE_LIMIT {
        Ok(value)
    } else {
        Err(QuantityError::TooLarge {
            what,
            value,
            limit: BYTE_LIMIT,
        })
    }
}

/// Bytes, 1..2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteLen(NonZeroU64);

impl ByteLen {
    /// Checks and wraps a length in bytes.
    ///
    /// # Errors
    /// Zero, or 2^62 and more.
    pub fn new(bytes: u64) -> Result<Self, QuantityError> {
        NonZeroU64::new(below_limit("length", bytes)?)
            .map(Self)
            .ok_or(QuantityError::Zero { what: "length" })
    }

    /// The length in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for ByteLen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes from the start of an allocation (or of a block), 0..2^62.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Offset(u64);

impl Offset {
    /// The start.
    pub const ZERO: Self = Self(0);

    /// Checks and wraps an offset in bytes.
    ///
    /// # Errors
    /// 2^62 and more.
    pub fn new(bytes: u64) -> Result<Self, QuantityError> {
        below_limit("offset", bytes).map(Self)
    }

    /// The offset in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The offset `bytes` further on, or `None` outside the range.
    #[must_use]
    pub fn checked_add(self, bytes: u64) -> Option<Self> {
        self.0
            .checked_add(bytes)
            .and_then(|sum| Self::new(sum).ok())
    }
}

impl fmt::Display for Offset {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Bytes from one block, page or row to the next, 1..2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Stride(NonZeroU64);

impl Stride {
    /// Checks and wraps a stride in bytes.
    ///
    /// # Errors
    /// Zero, or 2^62 and more.
    pub fn new(bytes: u64) -> Result<Self, QuantityError> {
        NonZeroU64::new(below_limit("stride", bytes)?)
            .map(Self)
            .ok_or(QuantityError::Zero { what: "stride" })
    }

    /// The stride in bytes.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0.get()
    }
}

impl fmt::Display for Stride {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A run of bytes `start..end`, never empty, `end` below 2^62.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ByteSpan {
    start: Offset,
    len: ByteLen,
}

impl ByteSpan {
    /// The span of `len` bytes from `start`.
    ///
    /// # Errors
    /// The end is not an [`Offset`].
    pub fn new(start: Offset, len: ByteLen) -> Result<Self, QuantityError> {
        match start.checked_add(len.get()) {
            Some(_) => Ok(Self { start, len }),
            None => Err(QuantityError::Overflow {
                what: "end of a byte span",
            }),
        }
    }

    /// First byte.
    #[must_use]
    pub const fn start(self) -> Offset {
        self.start
    }

    /// Bytes in the span.
    #[must_use]
    pub const fn len(self) -> ByteLen {
        self.len
    }

    /// Always false: a span holds at least one byte.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        false
    }

    /// One past the last byte.
    #[must_use]
    pub fn end(self) -> u64 {
        // `new` proved that the sum is an offset.
        self.start.get().saturating_add(self.len.get())
    }
}

macro_rules! count_type {
    ($(#[$doc:meta])* $name:ident, $what:literal) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(NonZeroU32);

        impl $name {
            /// Checks and wraps a count.
            ///
            /// # Errors
            /// Zero.
            pub fn new(count: u32) -> Result<Self, QuantityError> {
                NonZeroU32::new(count)
                    .map(Self)
                    .ok_or(QuantityError::Zero { what: $what })
            }

            /// The count.
            #[must_use]
            pub const fn get(self) -> u32 {
                self.0.get()
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

count_type!(
    /// Prompt tokens that one logical block of a group stands for, 1..2^32.
    ///
    /// Not the rows a field stores for it: a field that keeps one row for four
    /// tokens has a quarter as many.
    TokensPerBlock,
    "tokens per block"
);
count_type!(
    /// Prompt tokens a sliding window reaches back, the current one included,
    /// 1..2^32.
    WindowTokens,
    "window"
);
count_type!(
    /// Physical pages per logical block, 1..2^32.
    PagesPerBlock,
    "pages per block"
);

impl PagesPerBlock {
    /// One page per block: the engine's kernels use logical blocks as they are.
    pub const ONE: Self = Self(NonZeroU32::MIN);
}

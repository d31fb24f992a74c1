//! Conversions between lengths in memory and on the wire.

/// A length in memory as a 64-bit number; saturates where that is impossible.
#[must_use]
pub fn count(len: usize) -> u64 {
    u64::try_from(len).unwrap_or(u64::MAX)
}

/// A 64-bit number as an index; saturates, so that it is past every end.
#[must_use]
pub fn index(value: u64) -> usize {
    usize::try_from(value).unwrap_or(usize::MAX)
}

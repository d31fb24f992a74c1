//! Bytes of memory, wherever it is.

use std::ops::Range;

use crate::address::Address;
use crate::engine::Memory;
use crate::error::EngineCode;

/// Why bytes could not be copied in or out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AccessError {
    /// Outside the memory: the caller's fault.
    #[error("bytes [{start}, {end}) are outside memory of {len} bytes at {base}")]
    Outside {
        /// First byte.
        start: u64,
        /// End.
        end: u64,
        /// Bytes of the memory.
        len: u64,
        /// Where the memory is.
        base: Address,
    },
    /// The device failed.
    #[error("the device did not copy [{start}, {end}) ({code})")]
    Device {
        /// First byte.
        start: u64,
        /// End.
        end: u64,
        /// What the driver said.
        code: EngineCode,
    },
}

/// Memory whose bytes can be copied in and out, for those who fill and verify.
///
/// Both wait until the bytes are there. Bytes that a transfer moves at the same
/// time come out as any mix of old and new.
pub trait Bytes: Memory {
    /// Copies `bytes` to the memory's byte `at` and those behind it.
    ///
    /// # Errors
    /// They would end outside the memory, or the device fails.
    fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<(), AccessError>;

    /// Copies the memory's byte `at` and those behind it to all of `bytes`.
    ///
    /// # Errors
    /// They end outside the memory, or the device fails.
    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> Result<(), AccessError>;
}

/// The range of `count` bytes from `at`, as places in memory that holds them.
pub(crate) fn range(
    memory: &impl Memory,
    at: u64,
    count: usize,
) -> Result<Range<usize>, AccessError> {
    let len = memory.len().get();
    let end = u64::try_from(count).ok().and_then(|n| at.checked_add(n));
    let outside = AccessError::Outside {
        start: at,
        end: end.unwrap_or(u64::MAX),
        len,
        base: memory.base(),
    };
    let end = end.filter(|end| *end <= len).ok_or(outside)?;
    let place = |at| usize::try_from(at).map_err(|_| outside);
    Ok(place(at)?..place(end)?)
}

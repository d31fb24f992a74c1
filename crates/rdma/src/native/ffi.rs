//! Raw memory.
#![allow(
    unsafe_code,
    reason = "a network card reads and writes memory behind the compiler's back"
)]

use std::fmt::Debug;

use memmap2::{MmapOptions, MmapRaw};
use mooncake_pd_layout::ByteLen;

use super::NativeMemory;
use crate::access::AccessError;
use crate::address::Address;
use crate::location::Location;
use crate::memory::MemoryError;

/// What owns a range of raw memory and copies its bytes. Dropping it gives the
/// memory back.
pub trait Backing: Debug + Send + Sync {
    /// Copies `bytes` to byte `at` and those behind it; they lie inside.
    ///
    /// # Errors
    /// The device failed.
    fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<(), AccessError>;

    /// Copies byte `at` and those behind it to all of `bytes`; they lie inside.
    ///
    /// # Errors
    /// The device failed.
    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> Result<(), AccessError>;
}

/// A valid range of addresses and what keeps it valid.
#[derive(Debug)]
pub(super) struct Range {
    base: Address,
    len: ByteLen,
    location: Location,
    backing: Box<dyn Backing>,
}

impl Range {
    pub(super) const fn base(&self) -> Address {
        self.base
    }

    pub(super) const fn len(&self) -> ByteLen {
        self.len
    }

    pub(super) const fn location(&self) -> Location {
        self.location
    }

    pub(super) fn backing(&self) -> &dyn Backing {
        &*self.backing
    }
}

impl NativeMemory {
    /// Memory that the caller has, such as an inference engine's cache.
    ///
    /// # Errors
    /// It would end outside the address space.
    ///
    /// # Safety
    /// The `len` bytes at `base` must be valid for reads and writes by other
    /// threads and by devices until `backing` is dropped, at `location`; no
    /// reference to them may be held while a transfer reads or writes them.
    pub unsafe fn from_backing(
        base: Address,
        len: ByteLen,
        location: Location,
        backing: Box<dyn Backing>,
    ) -> Result<Self, MemoryError> {
        base.end(len)?;
        Ok(Self::from_range(Range {
            base,
            len,
            location,
            backing,
        }))
    }
}

/// Pages of the host, never referenced, only pointed to.
#[derive(Debug)]
struct Pages {
    map: MmapRaw,
}

/// `len` zero bytes in fresh pages.
pub(super) fn pages(len: ByteLen) -> Result<Range, MemoryError> {
    let out = MemoryError::OutOfMemory { len: len.get() };
    let count = usize::try_from(len.get()).map_err(|_| out)?;
    let map = MmapOptions::new().len(count).map_anon().map_err(|_| out)?;
    let map = MmapRaw::from(map);
    let base = u64::try_from(map.as_mut_ptr().addr()).map_err(|_| out)?;
    let base = Address::new(base)?;
    base.end(len)?;
    Ok(Range {
        base,
        len,
        location: Location::Host,
        backing: Box::new(Pages { map }),
    })
}

impl Pages {
    /// The pointer to byte `at`, if `count` bytes from there lie inside.
    fn at(&self, at: u64, count: usize) -> Option<*mut u8> {
        let at = usize::try_from(at).ok()?;
        let end = at.checked_add(count)?;
        (end <= self.map.len()).then(|| self.map.as_mut_ptr().wrapping_add(at))
    }
}

impl Backing for Pages {
    fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<(), AccessError> {
        if let Some(to) = self.at(at, bytes.len()) {
            // SAFETY: `at` proved that the bytes lie inside the map, which lives
            // as long as `self`; no reference into it exists anywhere, so the
            // borrowed `bytes` lie elsewhere.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        }
        Ok(())
    }

    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> Result<(), AccessError> {
        if let Some(from) = self.at(at, bytes.len()) {
            // SAFETY: as in `copy_in`.
            unsafe { std::ptr::copy_nonoverlapping(from, bytes.as_mut_ptr(), bytes.len()) };
        }
        Ok(())
    }
}

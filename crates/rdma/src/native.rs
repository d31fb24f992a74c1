//! Memory of engines that are not ours, and bookkeeping that engines share.

mod ffi;
mod guard;
mod opened;
mod orphans;
mod window;

pub(crate) use guard::{Guard, Port, Registry};
pub(crate) use opened::Opened;
pub(crate) use orphans::{Flight, Orphans, Ticket};
pub(crate) use window::{Permit, Window};

use std::ffi::c_void;
use std::fmt::Debug;
use std::ptr;
use std::sync::Arc;

use indexmap::IndexMap;
use mooncake_pd_layout::{AllocationId, ByteLen, CacheLayout};

use crate::access::{self, AccessError, Bytes};
use crate::address::Address;
use crate::engine::Memory;
use crate::location::Location;
use crate::memory::MemoryError;

pub use ffi::Backing;

/// The pointer that an address is, for a native engine to use.
pub(crate) fn pointer(address: Address) -> Option<*mut c_void> {
    usize::try_from(address.get())
        .ok()
        .map(ptr::with_exposed_provenance_mut)
}

/// Memory at its real address, on the host or on a device, for engines that
/// hand addresses to a network card. Clones share it; it is given back when the
/// last clone, registration and transfer of it is gone.
#[derive(Clone, Debug)]
pub struct NativeMemory {
    inner: Arc<ffi::Range>,
}

impl NativeMemory {
    /// `len` zero bytes of host memory, in pages of their own.
    ///
    /// # Errors
    /// The system has no room for them.
    pub fn zeroed(len: ByteLen) -> Result<Self, MemoryError> {
        ffi::pages(len).map(Self::from_range)
    }

    fn from_range(range: ffi::Range) -> Self {
        Self {
            inner: Arc::new(range),
        }
    }

    /// Zeroed host memory for every allocation of a layout, in its order.
    ///
    /// # Errors
    /// No room.
    pub fn of_layout(layout: &CacheLayout) -> Result<IndexMap<AllocationId, Self>, MemoryError> {
        layout
            .allocations()
            .iter()
            .map(|allocation| Ok((allocation.id(), Self::zeroed(allocation.len())?)))
            .collect()
    }
}

impl Memory for NativeMemory {
    fn base(&self) -> Address {
        self.inner.base()
    }

    fn len(&self) -> ByteLen {
        self.inner.len()
    }

    fn location(&self) -> Location {
        self.inner.location()
    }
}

impl Bytes for NativeMemory {
    fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<(), AccessError> {
        access::range(self, at, bytes.len())?;
        self.inner.backing().copy_in(at, bytes)
    }

    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> Result<(), AccessError> {
        access::range(self, at, bytes.len())?;
        self.inner.backing().copy_out(at, bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_are_zero_hold_what_was_copied_in_and_refuse_what_is_outside() {
        let memory = NativeMemory::zeroed(ByteLen::new(5_000).unwrap()).unwrap();
        assert_eq!(memory.location(), Location::Host);
        memory.clone().copy_in(4_998, &[7, 8]).unwrap();
        let mut out = [1; 4];
        memory.copy_out(4_996, &mut out).unwrap();
        assert_eq!(out, [0, 0, 7, 8]);
        for (at, len) in [(4_997, 4), (u64::MAX, 1), (5_001, 0)] {
            let mut bytes = vec![0; len];
            assert!(matches!(
                memory.copy_out(at, &mut bytes),
                Err(AccessError::Outside { len: 5_000, .. })
            ));
            assert!(memory.copy_in(at, &bytes).is_err());
        }
    }

    #[test]
    fn memory_that_does_not_exist_is_an_error_not_an_abort() {
        let len = ByteLen::new(1 << 61).unwrap();
        let error = NativeMemory::zeroed(len).unwrap_err();
        assert_eq!(error, MemoryError::OutOfMemory { len: len.get() });
    }
}

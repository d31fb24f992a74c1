//! Host memory that several engines can share without unsafe code.

use std::fmt;
use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, PoisonError, RwLock};

use indexmap::IndexMap;
use mooncake_pd_layout::{AllocationId, ByteLen, CacheLayout, QuantityError};

use crate::access::{self, AccessError, Bytes};
use crate::address::{Address, AddressError};
use crate::engine::Memory;

/// Why there is no such memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MemoryError {
    /// A length of zero or beyond 2^62.
    #[error("allocation {allocation}: {error}")]
    Length {
        /// Which allocation.
        allocation: AllocationId,
        /// What is wrong with its length.
        error: QuantityError,
    },
    /// The system has no room for it.
    #[error("no room for a buffer of {len} bytes")]
    OutOfMemory {
        /// Bytes asked for.
        len: u64,
    },
    /// The same allocation twice.
    #[error("allocation {allocation} appears twice")]
    Twice {
        /// Which.
        allocation: AllocationId,
    },
    /// It would lie outside the address space.
    #[error(transparent)]
    Address(#[from] AddressError),
}

/// Bytes on the host, shared by whoever holds a clone.
///
/// One lock guards the whole buffer: an engine takes it once per batch, so that
/// bytes move at the speed of a plain copy. Zeroed pages cost nothing until
/// they are touched.
#[derive(Clone)]
pub struct HostBuffer {
    shared: Arc<Shared>,
}

struct Shared {
    /// Orders locks, so that no two batches wait for each other.
    order: u64,
    base: Address,
    len: ByteLen,
    bytes: RwLock<Box<[u8]>>,
}

impl HostBuffer {
    /// `len` zero bytes, at the address they really have.
    ///
    /// # Errors
    /// The system has no room for them.
    pub fn zeroed(len: ByteLen) -> Result<Self, MemoryError> {
        let bytes = zeroed(len)?;
        let real = u64::try_from(bytes.as_ptr().addr())
            .map_err(|_| MemoryError::OutOfMemory { len: len.get() })?;
        Ok(Self::from_parts(bytes, Address::new(real)?, len))
    }

    /// `len` zero bytes that claim to lie at `base`: for engines that only look
    /// addresses up, such as [`Loopback`](crate::Loopback).
    ///
    /// # Errors
    /// The system has no room for them, or they would end outside the address
    /// space.
    pub fn zeroed_at(base: Address, len: ByteLen) -> Result<Self, MemoryError> {
        base.end(len)?;
        Ok(Self::from_parts(zeroed(len)?, base, len))
    }

    fn from_parts(bytes: Box<[u8]>, base: Address, len: ByteLen) -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self {
            shared: Arc::new(Shared {
                order: NEXT.fetch_add(1, Ordering::Relaxed),
                base,
                len,
                bytes: RwLock::new(bytes),
            }),
        }
    }

    /// The bytes, for reading. Waits while somebody writes.
    pub fn read(&self) -> impl Deref<Target = Box<[u8]>> {
        // Bytes have no invariant that a panic could have broken.
        self.shared
            .bytes
            .read()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// The bytes, for writing. Waits while somebody else reads or writes.
    pub fn write(&self) -> impl DerefMut<Target = Box<[u8]>> {
        self.shared
            .bytes
            .write()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Place in the order in which several buffers are locked; also tells
    /// buffers apart.
    pub(crate) fn order(&self) -> u64 {
        self.shared.order
    }
}

impl fmt::Debug for HostBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostBuffer")
            .field("base", &self.shared.base)
            .field("len", &self.shared.len)
            .finish_non_exhaustive()
    }
}

impl Memory for HostBuffer {
    fn base(&self) -> Address {
        self.shared.base
    }

    fn len(&self) -> ByteLen {
        self.shared.len
    }
}

impl Bytes for HostBuffer {
    fn copy_in(&self, at: u64, bytes: &[u8]) -> Result<(), AccessError> {
        let range = access::range(self, at, bytes.len())?;
        if let Some(place) = self.write().get_mut(range) {
            place.copy_from_slice(bytes);
        }
        Ok(())
    }

    fn copy_out(&self, at: u64, bytes: &mut [u8]) -> Result<(), AccessError> {
        let range = access::range(self, at, bytes.len())?;
        if let Some(place) = self.read().get(range) {
            bytes.copy_from_slice(place);
        }
        Ok(())
    }
}

fn zeroed(len: ByteLen) -> Result<Box<[u8]>, MemoryError> {
    let out = MemoryError::OutOfMemory { len: len.get() };
    let count = usize::try_from(len.get()).map_err(|_| out)?;
    // `vec!` gets untouched zero pages but aborts without room, so ask first.
    Vec::<u8>::new().try_reserve_exact(count).map_err(|_| out)?;
    Ok(vec![0; count].into_boxed_slice())
}

/// One buffer for each allocation of a layout.
#[derive(Clone, Debug)]
pub struct HostMemory {
    buffers: IndexMap<AllocationId, HostBuffer>,
}

impl HostMemory {
    /// Zeroed buffers for allocations of these lengths in bytes.
    ///
    /// # Errors
    /// A length out of range, an allocation twice, or no room.
    pub fn new(
        allocations: impl IntoIterator<Item = (AllocationId, u64)>,
    ) -> Result<Self, MemoryError> {
        let mut buffers = IndexMap::new();
        for (allocation, len) in allocations {
            let len =
                ByteLen::new(len).map_err(|error| MemoryError::Length { allocation, error })?;
            if buffers
                .insert(allocation, HostBuffer::zeroed(len)?)
                .is_some()
            {
                return Err(MemoryError::Twice { allocation });
            }
        }
        Ok(Self { buffers })
    }

    /// Zeroed buffers for every allocation of a layout.
    ///
    /// # Errors
    /// No room.
    pub fn of_layout(layout: &CacheLayout) -> Result<Self, MemoryError> {
        Self::new(
            layout
                .allocations()
                .iter()
                .map(|allocation| (allocation.id(), allocation.len().get())),
        )
    }

    /// The buffer of that allocation.
    #[must_use]
    pub fn buffer(&self, allocation: AllocationId) -> Option<&HostBuffer> {
        self.buffers.get(&allocation)
    }

    /// Allocations and their buffers, in the order of the layout.
    pub fn iter(&self) -> impl Iterator<Item = (AllocationId, &HostBuffer)> {
        self.buffers.iter().map(|(id, buffer)| (*id, buffer))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_does_not_exist_is_an_error_not_an_abort() {
        let len = 1 << 61;
        assert_eq!(
            HostMemory::new([(AllocationId::new(0), len)]).unwrap_err(),
            MemoryError::OutOfMemory { len }
        );
    }

    #[test]
    fn lengths_and_names_are_checked() {
        let id = AllocationId::new(3);
        assert!(matches!(
            HostMemory::new([(id, 0)]).unwrap_err(),
            MemoryError::Length { allocation, .. } if allocation == id
        ));
        assert_eq!(
            HostMemory::new([(id, 1), (id, 1)]).unwrap_err(),
            MemoryError::Twice { allocation: id }
        );
        let memory = HostMemory::new([(id, 5)]).unwrap();
        assert_eq!(memory.buffer(id).unwrap().read().len(), 5);
        assert!(memory.buffer(AllocationId::new(0)).is_none());
    }

    #[test]
    fn bytes_outside_a_buffer_are_refused() {
        let buffer = HostBuffer::zeroed(ByteLen::new(4).unwrap()).unwrap();
        buffer.copy_in(1, &[1, 2, 3]).unwrap();
        let mut out = [9; 4];
        buffer.copy_out(0, &mut out).unwrap();
        assert_eq!(out, [0, 1, 2, 3]);
        let (start, end) = (2, 5);
        let (base, len) = (buffer.base(), 4);
        let outside = AccessError::Outside {
            start,
            end,
            len,
            base,
        };
        assert_eq!(buffer.copy_in(2, &[0; 3]), Err(outside));
        assert!(buffer.copy_out(u64::MAX, &mut out).is_err());
    }

    #[test]
    fn clones_share_their_bytes_and_zeroed_ones_are_zero() {
        let buffer = HostBuffer::zeroed(ByteLen::new(64).unwrap()).unwrap();
        assert!(buffer.read().iter().all(|byte| *byte == 0));
        buffer.clone().write()[63] = 9;
        assert_eq!(buffer.read()[63], 9);
    }
}

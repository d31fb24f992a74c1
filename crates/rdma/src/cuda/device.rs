//! A device.

use std::ffi::c_int;
use std::fmt;
use std::sync::Arc;

use cudarc::driver::sys::CUresult;
use indexmap::IndexMap;
use mooncake_pd_layout::{AllocationId, ByteLen, CacheLayout};

use super::driver::Driver;
use super::error::CudaError;
use super::ffi::{self, Context, Entered, Failure};
use crate::address::Address;
use crate::location::Location;
use crate::native::NativeMemory;
use crate::on_thread::OnThread;

/// A device with its primary context. Clones share it.
#[derive(Clone)]
pub struct Device {
    inner: Arc<Inner>,
}

struct Inner {
    driver: Driver,
    ordinal: u16,
    name: String,
    has_to_flush: bool,
    context: Arc<Context>,
}

/// How much memory a device has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemoryInfo {
    free: u64,
    total: u64,
}

impl MemoryInfo {
    /// Bytes that are free, 0..=total. Others may take them at any time.
    #[must_use]
    pub const fn free(self) -> u64 {
        self.free
    }

    /// Bytes in all.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.total
    }
}

impl Device {
    pub(super) fn open(driver: Driver, ordinal: u16) -> Result<Self, CudaError> {
        let library = driver.library();
        let device = library.device(c_int::from(ordinal))?;
        let name = library.name(device)?;
        // A driver that does not know the question has nothing to flush.
        let has_to_flush = library.has_to_flush(device).unwrap_or(false);
        let context = Arc::new(Context::retain(library, device)?);
        Ok(Self {
            inner: Arc::new(Inner {
                driver,
                ordinal,
                name,
                has_to_flush,
                context,
            }),
        })
    }

    /// Its place among the devices that this process sees.
    #[must_use]
    pub fn ordinal(&self) -> u16 {
        self.inner.ordinal
    }

    /// Where its memory is, as engines are told.
    #[must_use]
    pub fn location(&self) -> Location {
        Location::Cuda(self.inner.ordinal)
    }

    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.inner.name
    }

    /// How much memory it has, and how much of that is free now.
    ///
    /// # Errors
    /// The driver failed.
    pub fn memory(&self) -> Result<MemoryInfo, CudaError> {
        let (free, total) = self.context().enter()?.memory()?;
        let bytes = |count| u64::try_from(count).unwrap_or(u64::MAX);
        Ok(MemoryInfo {
            free: bytes(free),
            total: bytes(total),
        })
    }

    /// Makes its context current in this thread, for calls that are not ours:
    /// libraries of engines allocate and copy in the thread that calls them. It
    /// stays current until another one is bound; keep the device that long.
    ///
    /// # Errors
    /// The driver failed.
    pub fn bind(&self) -> Result<(), CudaError> {
        Ok(self.context().bind()?)
    }

    /// [`bind`](Self::bind) for threads of an engine of ours.
    #[must_use]
    pub fn on_thread(&self) -> OnThread {
        let device = self.clone();
        OnThread::new(move || device.context().bind().map_err(Failure::code))
    }

    /// `len` zero bytes in a block of their own, which is freed when the last
    /// clone, registration and transfer of it is gone. A plain block of
    /// `cuMemAlloc`, the same as one of `cudaMalloc`: what Mooncake's NVLink
    /// transport needs.
    ///
    /// # Errors
    /// The device has no room, or the driver failed.
    pub fn allocate(&self, len: ByteLen) -> Result<NativeMemory, CudaError> {
        ffi::allocate(self, len)
    }

    /// Zeroed memory of its own for every allocation of a layout, in its order.
    ///
    /// # Errors
    /// The device has no room, or the driver failed.
    pub fn of_layout(
        &self,
        layout: &CacheLayout,
    ) -> Result<IndexMap<AllocationId, NativeMemory>, CudaError> {
        layout
            .allocations()
            .iter()
            .map(|allocation| Ok((allocation.id(), self.allocate(allocation.len())?)))
            .collect()
    }

    pub(super) fn context(&self) -> &Arc<Context> {
        &self.inner.context
    }

    /// Makes what cards have written visible, where that needs a call.
    pub(super) fn flush(&self, entered: &Entered<'_>) -> Result<(), Failure> {
        if self.inner.has_to_flush {
            entered.flush()
        } else {
            Ok(())
        }
    }

    /// What to say of an allocation that failed.
    pub(super) fn out_of_memory(&self, len: ByteLen, failure: Failure) -> CudaError {
        if failure.is(CUresult::CUDA_ERROR_OUT_OF_MEMORY) {
            CudaError::OutOfMemory {
                len: len.get(),
                location: self.location(),
                free: self.memory().map_or(0, MemoryInfo::free),
                code: failure.code(),
            }
        } else {
            failure.into()
        }
    }

    /// Whether all those bytes are one allocation of this device.
    pub(super) fn check_range(&self, base: Address, len: ByteLen) -> Result<(), CudaError> {
        let allocation = self.inner.driver.allocation_of(base)?;
        if allocation.location() != self.location() {
            return Err(CudaError::OtherDevice {
                address: base,
                found: allocation.location(),
                expected: self.location(),
            });
        }
        let start = base.get();
        let end = start.saturating_add(len.get());
        let limit = allocation.end();
        if end > limit {
            return Err(CudaError::OutsideAllocation {
                start,
                end,
                base: allocation.base(),
                limit,
            });
        }
        Ok(())
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Device")
            .field("ordinal", &self.inner.ordinal)
            .field("name", &self.inner.name)
            .finish_non_exhaustive()
    }
}

//! The allocation that an address lies in.

use mooncake_pd_layout::ByteLen;

use super::driver::Driver;
use super::error::CudaError;
use super::ffi::{Context, Kind, Pointer};
use crate::address::Address;
use crate::location::Location;

/// A device's allocation, as the driver knows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DeviceAllocation {
    base: Address,
    len: ByteLen,
    location: Location,
    whole: bool,
}

impl DeviceAllocation {
    /// Its first address.
    #[must_use]
    pub const fn base(&self) -> Address {
        self.base
    }

    /// Its length, which is at least what was asked for.
    #[must_use]
    pub const fn len(&self) -> ByteLen {
        self.len
    }

    /// Never: an allocation has bytes.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }

    /// Which device it is on.
    #[must_use]
    pub const fn location(&self) -> Location {
        self.location
    }

    /// Whether another process can map it by CUDA's inter-process handles: a
    /// block of `cuMemAlloc` or `cudaMalloc` is, one of a pool or of the
    /// virtual memory functions (PyTorch's expandable segments) is not.
    /// Mooncake's NVLink transport needs it.
    #[must_use]
    pub const fn is_shareable(&self) -> bool {
        self.whole
    }

    /// One past its last address.
    pub(super) const fn end(&self) -> u64 {
        self.base.get().saturating_add(self.len.get())
    }
}

impl Driver {
    /// The allocation that an address lies in, be it its first or not. What a
    /// range of a tensor is part of has to be registered as a whole by some
    /// engines.
    ///
    /// # Errors
    /// The address is of the host, managed, or of no allocation that the driver
    /// knows.
    pub fn allocation_of(&self, address: Address) -> Result<DeviceAllocation, CudaError> {
        let pointer = Pointer::look_up(self.library(), address)?;
        match pointer.kind {
            Kind::Device => {}
            Kind::Host => return Err(CudaError::HostMemory { address }),
            Kind::Managed => return Err(CudaError::Managed { address }),
            Kind::Unknown => return Err(CudaError::UnknownMemory { address }),
        }
        let ordinal = u16::try_from(pointer.ordinal)
            .map_err(|_| CudaError::answer("cuPointerGetAttributes", u64::from(pointer.ordinal)))?;
        let (base, len) = {
            let device = self.library().device(ordinal.into())?;
            let context = Context::retain(self.library(), device)?;
            context.enter()?.range(address)?
        };
        let call = "cuMemGetAddressRange_v2";
        let bytes = u64::try_from(len).unwrap_or(u64::MAX);
        Ok(DeviceAllocation {
            base: Address::new(base).map_err(|_| CudaError::answer(call, base))?,
            len: ByteLen::new(bytes).map_err(|_| CudaError::answer(call, bytes))?,
            location: Location::Cuda(ordinal),
            whole: pointer.whole,
        })
    }
}

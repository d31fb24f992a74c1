//! What the driver knows of an address.

use std::array;
use std::ffi::{c_uint, c_void};

use cudarc::driver::sys::CUpointer_attribute as Attribute;

use super::context::Entered;
use super::{Failure, Library};
use crate::address::Address;

/// Whose memory it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) enum Kind {
    /// The driver knows of none.
    Unknown,
    /// The host's, pinned by the driver.
    Host,
    /// A device's.
    Device,
    /// Moves between the host and devices.
    Managed,
}

/// What the driver knows of an address.
#[derive(Clone, Copy, Debug)]
pub(in crate::cuda) struct Pointer {
    pub(in crate::cuda) kind: Kind,
    /// Device, as the driver counts them.
    pub(in crate::cuda) ordinal: u32,
    /// Whether it is in a block of `cuMemAlloc`.
    pub(in crate::cuda) whole: bool,
}

impl Pointer {
    /// Asks the driver; needs no context.
    pub(in crate::cuda) fn look_up(library: Library, address: Address) -> Result<Self, Failure> {
        let mut attributes = [
            Attribute::CU_POINTER_ATTRIBUTE_MEMORY_TYPE,
            Attribute::CU_POINTER_ATTRIBUTE_IS_MANAGED,
            Attribute::CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL,
            Attribute::CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE,
        ];
        // Each takes four bytes at most, and zero where the driver knows nothing.
        let mut values = [0_u32; 4];
        let first = values.as_mut_ptr();
        let mut places: [*mut c_void; 4] = array::from_fn(|at| first.wrapping_add(at).cast());
        let count = c_uint::try_from(attributes.len()).unwrap_or(0);
        // SAFETY: both lists have that many places, and each value is large
        // enough; the address itself is only looked up.
        unsafe {
            library.cuPointerGetAttributes(
                count,
                attributes.as_mut_ptr(),
                places.as_mut_ptr(),
                address.get(),
            )
        }?;
        let [kind, managed, ordinal, whole] = values;
        // CU_MEMORYTYPE_HOST and the others; a managed one says where it is now.
        let kind = match (managed, kind) {
            (1.., _) => Kind::Managed,
            (0, 1) => Kind::Host,
            (0, 2) => Kind::Device,
            (0, _) => Kind::Unknown,
        };
        Ok(Self {
            kind,
            ordinal,
            whole: whole != 0,
        })
    }
}

impl Entered<'_> {
    /// First address and bytes of the allocation that the address lies in.
    pub(in crate::cuda) fn range(&self, address: Address) -> Result<(u64, usize), Failure> {
        let (mut base, mut len) = (0, 0);
        // SAFETY: both take a number; the address is only looked up.
        unsafe {
            self.library()
                .cuMemGetAddressRange_v2(&raw mut base, &raw mut len, address.get())
        }?;
        Ok((base, len))
    }
}

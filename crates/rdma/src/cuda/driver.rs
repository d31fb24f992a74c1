//! The driver.

use std::ffi::c_int;
use std::fmt;

use cudarc::driver::sys::CUresult;

use super::device::Device;
use super::error::{CudaError, NAMESPACE};
use super::ffi::{Failure, Library};
use crate::error::EngineCode;

/// CUDA's number for "no device", `CUDA_ERROR_NO_DEVICE`.
const NO_DEVICE: i64 = 100;

/// NVIDIA's driver, loaded and started for the rest of the process.
#[derive(Clone, Copy)]
pub struct Driver {
    library: Library,
    count: u16,
}

impl Driver {
    /// Loads the driver's library by the system's search, checks that it has
    /// every function that is called, and starts it. May be called again, also
    /// after an error.
    ///
    /// # Errors
    /// No library, a stand-in for it, a driver that does not start, or no
    /// device. Each says what to do.
    pub fn find() -> Result<Self, CudaError> {
        let library = Library::load()?;
        let none = CudaError::NoDevice {
            code: EngineCode::new(NAMESPACE, NO_DEVICE),
        };
        let started = |failure: Failure| {
            if failure.is(CUresult::CUDA_ERROR_NO_DEVICE) {
                CudaError::NoDevice {
                    code: failure.code(),
                }
            } else {
                failure.into()
            }
        };
        library.start().map_err(started)?;
        let count = library.devices().map_err(started)?;
        match u16::try_from(count) {
            Ok(0) => Err(none),
            Ok(count) => Ok(Self { library, count }),
            Err(_) => Err(CudaError::Answer {
                call: "cuDeviceGetCount",
                value: count.into(),
            }),
        }
    }

    /// Devices that this process sees, 1..65536: with `CUDA_VISIBLE_DEVICES`
    /// fewer than the machine has.
    #[must_use]
    pub const fn devices(&self) -> u16 {
        self.count
    }

    /// The newest version of CUDA that the driver knows, such as 13.0: the two
    /// numbers.
    ///
    /// # Errors
    /// The driver failed.
    pub fn version(&self) -> Result<(c_int, c_int), CudaError> {
        let version = self.library.version()?;
        Ok((
            version.div_euclid(1000),
            version.rem_euclid(1000).div_euclid(10),
        ))
    }

    /// The device of that ordinal among those that this process sees, as
    /// `cuda:N` and PyTorch count them. Its primary context, which it shares
    /// with CUDA's runtime, is retained until the last clone is dropped, with
    /// all memory and fences made from it.
    ///
    /// # Errors
    /// There is none, or the driver failed.
    pub fn device(&self, ordinal: u16) -> Result<Device, CudaError> {
        if ordinal >= self.count {
            let count = self.count;
            return Err(CudaError::NoSuchDevice { ordinal, count });
        }
        Device::open(*self, ordinal)
    }

    pub(super) const fn library(self) -> Library {
        self.library
    }
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver")
            .field("devices", &self.count)
            .finish_non_exhaustive()
    }
}

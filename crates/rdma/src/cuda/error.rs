//! What can go wrong with a device, and whose fault it is.

use super::ffi::Failure;
use super::hint::{Hint, Tried};
use crate::address::Address;
use crate::error::{EngineCode, Fault};
use crate::location::Location;

/// Whose numbers the driver's are.
pub(super) const NAMESPACE: &str = "cuda";

/// Why the driver or a device can't do what was asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CudaError {
    /// The process sees no device of that ordinal.
    #[error(
        "no device {ordinal}: this process sees {count}, counted from 0; CUDA_VISIBLE_DEVICES may hide others"
    )]
    NoSuchDevice {
        /// Which was asked for.
        ordinal: u16,
        /// How many there are.
        count: u16,
    },
    /// Memory of the host, pinned by the driver, where a device's was needed.
    #[error("{address} is memory of the host, not of a device; register it as host memory")]
    HostMemory {
        /// Where.
        address: Address,
    },
    /// Managed memory, which moves between the host and devices.
    #[error(
        "{address} is managed memory, which moves and so can't be registered; allocate it with cudaMalloc"
    )]
    Managed {
        /// Where.
        address: Address,
    },
    /// The driver knows of no memory there.
    #[error(
        "{address} is in no allocation that the driver knows: it is ordinary memory of the host, or was freed, or is of another process"
    )]
    UnknownMemory {
        /// Where.
        address: Address,
    },
    /// The range runs past the allocation that it begins in.
    #[error(
        "range [{start:#x}, {end:#x}) runs past its allocation [{base}, {limit:#x}); pass a range inside one allocation"
    )]
    OutsideAllocation {
        /// First address of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// First address of the allocation.
        base: Address,
        /// End of the allocation.
        limit: u64,
    },
    /// Memory of another device.
    #[error("{address} is on {found}, not on {expected}; use the device that has it")]
    OtherDevice {
        /// Where.
        address: Address,
        /// Where it is.
        found: Location,
        /// Where it should be.
        expected: Location,
    },
    /// The device has no room. Also the caller's fault.
    #[error(
        "no room for {len} bytes on {location}, {free} are free ({code}); use fewer blocks, or leave the device more room beside the engine"
    )]
    OutOfMemory {
        /// Bytes asked for.
        len: u64,
        /// Where.
        location: Location,
        /// Bytes that were free then, in pieces perhaps.
        free: u64,
        /// What the driver said.
        code: EngineCode,
    },
    /// The system has no library of the driver.
    #[error(
        "no NVIDIA driver: the system's search finds no libcuda.so.1{}; install the driver, start the container with the GPU (--gpus), or name the library's folder in LD_LIBRARY_PATH",
        Tried(.tried)
    )]
    NoLibrary {
        /// What the loader said of those that it found and did not load.
        tried: Vec<String>,
    },
    /// The library lacks functions: it is a stand-in, or far too old.
    #[error(
        "`{library}` as the system finds it is not NVIDIA's driver, or one before CUDA 11.3: it lacks {}; take the stand-in's folder out of LD_LIBRARY_PATH, or install the driver",
        .symbols.join(", ")
    )]
    MissingSymbols {
        /// The name that it was found by.
        library: String,
        /// The functions that it lacks.
        symbols: Vec<&'static str>,
    },
    /// There is a driver and no device for this process.
    #[error(
        "the NVIDIA driver has no device for this process ({code}); see what `nvidia-smi -L` lists and whether CUDA_VISIBLE_DEVICES hides it, and start the container with the GPU (--gpus)"
    )]
    NoDevice {
        /// What the driver said, or would say.
        code: EngineCode,
    },
    /// A function of the driver failed. `Display` adds what to do where that is
    /// known.
    #[error("{call} failed: {name} ({code}){}", Hint(.code.value()))]
    Failed {
        /// Which.
        call: &'static str,
        /// What it said.
        code: EngineCode,
        /// The driver's name for that.
        name: String,
    },
    /// The driver gave an answer that can't be.
    #[error(
        "{call} answered {value:#x}, which can't be; the driver is broken or newer than this program"
    )]
    Answer {
        /// Which function.
        call: &'static str,
        /// What it gave.
        value: i128,
    },
}

impl CudaError {
    pub(super) fn answer(call: &'static str, value: u64) -> Self {
        Self::Answer {
            call,
            value: value.into(),
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::NoSuchDevice { .. }
            | Self::HostMemory { .. }
            | Self::Managed { .. }
            | Self::UnknownMemory { .. }
            | Self::OutsideAllocation { .. }
            | Self::OtherDevice { .. }
            | Self::OutOfMemory { .. } => Fault::Caller,
            Self::NoLibrary { .. }
            | Self::MissingSymbols { .. }
            | Self::NoDevice { .. }
            | Self::Failed { .. }
            | Self::Answer { .. } => Fault::Engine,
        }
    }

    /// What the driver said, if it was asked.
    #[must_use]
    pub const fn code(&self) -> Option<EngineCode> {
        match self {
            Self::OutOfMemory { code, .. }
            | Self::NoDevice { code }
            | Self::Failed { code, .. } => Some(*code),
            _ => None,
        }
    }
}

impl From<Failure> for CudaError {
    fn from(failure: Failure) -> Self {
        Self::Failed {
            call: failure.call(),
            code: failure.code(),
            name: failure.name(),
        }
    }
}

//! The driver's library.

use std::error::Error;
use std::ffi::{CStr, c_char, c_int};
use std::iter;
use std::mem;
use std::sync::OnceLock;

use cudarc::driver::sys::{CUdevice, CUdevice_attribute};

use super::Failure;
use super::calls::Functions;
use crate::cuda::error::CudaError;

/// The driver's own name. Before cudarc's names, of which the first is also
/// that of the toolkit's stub.
const OWN: &str = "libcuda.so.1";

/// What cudarc calls the library, without what systems put before and after.
const STEMS: [&str; 2] = ["cuda", "nvcuda"];

/// The driver's functions, in a library that is loaded for the rest of the
/// process.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Library {
    functions: &'static Functions,
}

impl Library {
    /// Loads the first library that has every function, once.
    pub(in crate::cuda) fn load() -> Result<Self, CudaError> {
        static FOUND: OnceLock<Functions> = OnceLock::new();
        if let Some(functions) = FOUND.get() {
            return Ok(Self { functions });
        }
        let (mut tried, mut incomplete) = (Vec::new(), None);
        let names = STEMS.into_iter().flat_map(cudarc::get_lib_name_candidates);
        let others = names.filter(|name| name != OWN);
        for name in iter::once(OWN.to_owned()).chain(others) {
            // SAFETY: the library's initialisers run; it is the one of that name
            // that the user's system has for programs that use CUDA.
            let library = match unsafe { libloading::Library::new(&name) } {
                Ok(library) => library,
                Err(error) => {
                    tried.push(text(&error));
                    continue;
                }
            };
            match Functions::find(&library) {
                Ok(functions) => {
                    // The functions stay where they are.
                    mem::forget(library);
                    let functions = FOUND.get_or_init(|| functions);
                    return Ok(Self { functions });
                }
                Err(symbols) => {
                    let library = name;
                    incomplete.get_or_insert(CudaError::MissingSymbols { library, symbols });
                }
            }
        }
        tried.retain(|text| !text.contains("No such file"));
        Err(incomplete.unwrap_or(CudaError::NoLibrary { tried }))
    }

    pub(super) const fn functions(self) -> &'static Functions {
        self.functions
    }

    /// Starts the driver; again and again does no harm.
    pub(in crate::cuda) fn start(self) -> Result<(), Failure> {
        // SAFETY: no flags are defined, so 0.
        unsafe { self.cuInit(0) }
    }

    /// The CUDA version of the driver: 1000 times the first number and 10
    /// times the second.
    pub(in crate::cuda) fn version(self) -> Result<c_int, Failure> {
        let mut version = 0;
        // SAFETY: `version` takes a number.
        unsafe { self.cuDriverGetVersion(&raw mut version) }?;
        Ok(version)
    }

    /// How many devices this process sees.
    pub(in crate::cuda) fn devices(self) -> Result<c_int, Failure> {
        let mut count = 0;
        // SAFETY: `count` takes a number.
        unsafe { self.cuDeviceGetCount(&raw mut count) }?;
        Ok(count)
    }

    /// The device of that ordinal.
    pub(in crate::cuda) fn device(self, ordinal: c_int) -> Result<CUdevice, Failure> {
        let mut device = 0;
        // SAFETY: `device` takes a handle; a wrong ordinal is refused.
        unsafe { self.cuDeviceGet(&raw mut device, ordinal) }?;
        Ok(device)
    }

    /// What a device is called.
    pub(in crate::cuda) fn name(self, device: CUdevice) -> Result<String, Failure> {
        let mut name: [c_char; 256] = [0; 256];
        // SAFETY: the driver writes at most 255 characters and an end.
        unsafe { self.cuDeviceGetName(name.as_mut_ptr(), 255, device) }?;
        // SAFETY: the last place was never written, so there is an end.
        let name = unsafe { CStr::from_ptr(name.as_ptr()) };
        Ok(name.to_string_lossy().into_owned())
    }

    /// Whether what a card writes into a device's memory has to be flushed
    /// before the device sees it in order, and the host can do that.
    pub(in crate::cuda) fn has_to_flush(self, device: CUdevice) -> Result<bool, Failure> {
        use CUdevice_attribute as Attribute;
        let ordering = self.attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_WRITES_ORDERING,
            device,
        )?;
        let options = self.attribute(
            Attribute::CU_DEVICE_ATTRIBUTE_GPU_DIRECT_RDMA_FLUSH_WRITES_OPTIONS,
            device,
        )?;
        // CU_GPU_DIRECT_RDMA_WRITES_ORDERING_OWNER and more need none.
        Ok(ordering < 100 && options & 1 != 0)
    }

    fn attribute(self, attribute: CUdevice_attribute, device: CUdevice) -> Result<c_int, Failure> {
        let mut value = 0;
        // SAFETY: `value` takes a number.
        unsafe { self.cuDeviceGetAttribute(&raw mut value, attribute, device) }?;
        Ok(value)
    }
}

/// What the loader said, which libloading keeps in the error's source.
fn text(error: &libloading::Error) -> String {
    error
        .source()
        .map_or_else(|| error.to_string(), ToString::to_string)
}

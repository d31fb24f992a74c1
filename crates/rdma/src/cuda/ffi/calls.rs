//! The driver's functions that we call.
//!
//! Not by cudarc's own callers: they panic where a function is missing, and
//! their result is an enumeration, which can't hold a number that a newer
//! driver has and the bindings don't know.

use std::ffi::{CStr, c_char, c_int, c_uchar, c_uint, c_void};
use std::fmt;
use std::ptr;

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent,
    CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget, CUpointer_attribute,
    CUresult, CUstream,
};

use super::Library;
use crate::cuda::error::NAMESPACE;
use crate::error::EngineCode;

/// A function of the driver that did not succeed.
#[derive(Clone, Copy)]
pub(in crate::cuda) struct Failure {
    library: Library,
    call: &'static str,
    code: c_uint,
}

impl Failure {
    pub(in crate::cuda) const fn call(self) -> &'static str {
        self.call
    }

    /// The driver's number.
    pub(in crate::cuda) fn code(self) -> EngineCode {
        EngineCode::new(NAMESPACE, self.code.into())
    }

    /// The driver's name for the number, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(in crate::cuda) fn name(self) -> String {
        let mut name = ptr::null();
        let ask = self.library.functions().cuGetErrorName;
        // SAFETY: `name` takes a pointer; any number may be asked for.
        let code = unsafe { ask(self.code, &raw mut name) };
        if code != 0 || name.is_null() {
            return "an error without a name".to_owned();
        }
        // SAFETY: the driver's names have an end and are never freed.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    }

    #[expect(clippy::as_conversions, reason = "a C enumeration's number")]
    pub(in crate::cuda) const fn is(self, result: CUresult) -> bool {
        self.code == result as c_uint
    }
}

impl fmt::Debug for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.call, self.code)
    }
}

/// Makes the table of functions and a method of [`Library`] for each.
macro_rules! functions {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        // The arguments are those of the bindings.
        $(const _: unsafe fn($($type),*) -> CUresult = sys::$name;)*

        /// The functions, all of which were found.
        #[expect(non_snake_case, reason = "the driver's names")]
        pub(super) struct Functions {
            cuGetErrorName: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint,
            $($name: unsafe extern "C" fn($($type),*) -> c_uint,)*
        }

        impl Functions {
            /// Finds them, or says which are missing.
            #[expect(non_snake_case, reason = "the driver's names")]
            pub(super) fn find(library: &libloading::Library) -> Result<Self, Vec<&'static str>> {
                type Name = unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint;
                let mut missing = Vec::new();
                // SAFETY: the function's type in `cuda.h`, with the number for
                // its enumeration.
                let cuGetErrorName = unsafe { library.get::<Option<Name>>("cuGetErrorName") };
                let cuGetErrorName = cuGetErrorName.ok().and_then(|found| *found);
                if cuGetErrorName.is_none() {
                    missing.push("cuGetErrorName");
                }
                $(
                    // SAFETY: the function's type in the bindings, which were
                    // made from `cuda.h`, with the number for its enumeration.
                    let $name = unsafe {
                        library.get::<Option<unsafe extern "C" fn($($type),*) -> c_uint>>(
                            stringify!($name),
                        )
                    };
                    let $name = $name.ok().and_then(|found| *found);
                    if $name.is_none() {
                        missing.push(stringify!($name));
                    }
                )*
                let (Some(cuGetErrorName), $(Some($name),)*) = (cuGetErrorName, $($name,)*) else {
                    return Err(missing);
                };
                Ok(Self { cuGetErrorName, $($name,)* })
            }
        }

        #[expect(non_snake_case, reason = "the driver's names")]
        impl Library {
            $(
                /// # Safety
                /// What the driver's documentation asks for.
                pub(super) unsafe fn $name(self, $($argument: $type),*) -> Result<(), Failure> {
                    let call = self.functions().$name;
                    // SAFETY: the caller's promise.
                    let code = unsafe { call($($argument),*) };
                    if code == 0 {
                        return Ok(());
                    }
                    Err(Failure { library: self, call: stringify!($name), code })
                }
            )*
        }
    };
}

functions! {
    cuInit(flags: c_uint);
    cuDriverGetVersion(version: *mut c_int);
    cuDeviceGetCount(count: *mut c_int);
    cuDeviceGet(device: *mut CUdevice, ordinal: c_int);
    cuDeviceGetName(name: *mut c_char, len: c_int, device: CUdevice);
    cuDeviceGetAttribute(value: *mut c_int, attribute: CUdevice_attribute, device: CUdevice);
    cuDevicePrimaryCtxRetain(context: *mut CUcontext, device: CUdevice);
    cuDevicePrimaryCtxRelease_v2(device: CUdevice);
    cuCtxSetCurrent(context: CUcontext);
    cuCtxPushCurrent_v2(context: CUcontext);
    cuCtxPopCurrent_v2(context: *mut CUcontext);
    cuCtxSynchronize();
    cuMemGetInfo_v2(free: *mut usize, total: *mut usize);
    cuMemAlloc_v2(address: *mut CUdeviceptr, len: usize);
    cuMemFree_v2(address: CUdeviceptr);
    cuMemsetD8_v2(address: CUdeviceptr, value: c_uchar, len: usize);
    cuMemcpyHtoD_v2(to: CUdeviceptr, from: *const c_void, len: usize);
    cuMemcpyDtoH_v2(to: *mut c_void, from: CUdeviceptr, len: usize);
    cuMemGetAddressRange_v2(base: *mut CUdeviceptr, len: *mut usize, address: CUdeviceptr);
    cuPointerGetAttributes(
        count: c_uint,
        attributes: *mut CUpointer_attribute,
        values: *mut *mut c_void,
        address: CUdeviceptr
    );
    cuStreamSynchronize(stream: CUstream);
    cuEventCreate(event: *mut CUevent, flags: c_uint);
    cuEventRecord(event: CUevent, stream: CUstream);
    cuEventQuery(event: CUevent);
    cuEventDestroy_v2(event: CUevent);
    cuFlushGPUDirectRDMAWrites(
        target: CUflushGPUDirectRDMAWritesTarget,
        scope: CUflushGPUDirectRDMAWritesScope
    );
}

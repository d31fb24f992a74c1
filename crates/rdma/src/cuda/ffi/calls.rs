//! The driver's functions that we call.

use std::ffi::{c_char, c_int, c_uchar, c_uint, c_void};

use cudarc::driver::sys::{
    self, CUcontext, CUdevice, CUdevice_attribute, CUdeviceptr, CUevent,
    CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget, CUpointer_attribute,
    CUresult, CUstream,
};

use super::Library;
use crate::cuda::error::NAMESPACE;
use crate::error::EngineCode;

/// A function of the driver that did not succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::cuda) struct Failure {
    call: &'static str,
    result: CUresult,
}

impl Failure {
    pub(in crate::cuda) const fn call(self) -> &'static str {
        self.call
    }

    /// The driver's number.
    #[expect(clippy::as_conversions, reason = "a C enumeration's number")]
    pub(in crate::cuda) const fn code(self) -> EngineCode {
        EngineCode::new(NAMESPACE, self.result as i64)
    }

    /// The driver's name for the number, such as `CUDA_ERROR_OUT_OF_MEMORY`.
    pub(in crate::cuda) fn name(self) -> String {
        format!("{:?}", self.result)
    }

    pub(in crate::cuda) fn is(self, result: CUresult) -> bool {
        self.result == result
    }
}

/// Makes each function a method of [`Library`], which exists only where
/// [`SYMBOLS`] were all found: cudarc panics when it calls one that is missing.
macro_rules! calls {
    ($($name:ident($($argument:ident: $type:ty),*);)*) => {
        /// The names of all functions that we call.
        pub(super) const SYMBOLS: &[&str] = &[$(stringify!($name)),*];

        #[expect(non_snake_case, reason = "the driver's names")]
        impl Library {
            $(
                /// # Safety
                /// What the driver's documentation asks for.
                pub(super) unsafe fn $name(self, $($argument: $type),*) -> Result<(), Failure> {
                    // SAFETY: the caller's promise; the function was found.
                    let result = unsafe { sys::$name($($argument),*) };
                    match result {
                        CUresult::CUDA_SUCCESS => Ok(()),
                        result => Err(Failure { call: stringify!($name), result }),
                    }
                }
            )*
        }
    };
}

calls! {
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

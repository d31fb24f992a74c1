//! Contexts of devices.

use std::fmt;
use std::marker::PhantomData;
use std::ptr;

use cudarc::driver::sys::{
    CUcontext, CUdevice, CUflushGPUDirectRDMAWritesScope, CUflushGPUDirectRDMAWritesTarget,
};

use super::{Failure, Library, stream};
use crate::cuda::handle::StreamHandle;

/// A device's primary context, retained until this is dropped.
pub(in crate::cuda) struct Context {
    library: Library,
    device: CUdevice,
    raw: CUcontext,
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context")
            .field("device", &self.device)
            .finish_non_exhaustive()
    }
}

// SAFETY: the driver takes a context from any thread.
unsafe impl Send for Context {}
// SAFETY: and from several at the same time.
unsafe impl Sync for Context {}

impl Context {
    pub(in crate::cuda) fn retain(library: Library, device: CUdevice) -> Result<Self, Failure> {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` takes a handle.
        unsafe { library.cuDevicePrimaryCtxRetain(&raw mut raw, device) }?;
        Ok(Self {
            library,
            device,
            raw,
        })
    }

    /// Makes it current in this thread until another one is.
    pub(in crate::cuda) fn bind(&self) -> Result<(), Failure> {
        // SAFETY: it is retained. Where it is released while still current, the
        // driver refuses calls of that thread.
        unsafe { self.library.cuCtxSetCurrent(self.raw) }
    }

    /// Makes it current in this thread until the result is dropped.
    pub(in crate::cuda) fn enter(&self) -> Result<Entered<'_>, Failure> {
        // SAFETY: it is retained.
        unsafe { self.library.cuCtxPushCurrent_v2(self.raw) }?;
        Ok(Entered {
            context: self,
            _this_thread: PhantomData,
        })
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        // At the process's end the driver may be gone; nobody is to be told.
        // SAFETY: retained once by `retain`.
        let _ = unsafe { self.library.cuDevicePrimaryCtxRelease_v2(self.device) };
    }
}

/// A context that is current in this thread. What was current before is again
/// when this is dropped.
pub(in crate::cuda) struct Entered<'a> {
    context: &'a Context,
    _this_thread: PhantomData<*const ()>,
}

impl Entered<'_> {
    pub(super) const fn library(&self) -> Library {
        self.context.library
    }

    /// Waits for everything that the device was given to do.
    pub(in crate::cuda) fn synchronize(&self) -> Result<(), Failure> {
        // SAFETY: a context is current.
        unsafe { self.library().cuCtxSynchronize() }
    }

    /// Waits for everything that a stream was given to do.
    ///
    /// # Safety
    /// It is a stream of this context, or [`StreamHandle::DEFAULT`].
    pub(in crate::cuda) unsafe fn synchronize_stream(
        &self,
        handle: StreamHandle,
    ) -> Result<(), Failure> {
        // SAFETY: the caller's promise.
        unsafe { self.library().cuStreamSynchronize(stream(handle)) }
    }

    /// Waits for everything that the default stream was given to do.
    pub(in crate::cuda) fn synchronize_default_stream(&self) -> Result<(), Failure> {
        // SAFETY: every context has it.
        unsafe { self.synchronize_stream(StreamHandle::DEFAULT) }
    }

    /// Makes what cards have written into the device's memory visible to it.
    pub(in crate::cuda) fn flush(&self) -> Result<(), Failure> {
        // SAFETY: a context is current.
        unsafe {
            self.library().cuFlushGPUDirectRDMAWrites(
                CUflushGPUDirectRDMAWritesTarget::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TARGET_CURRENT_CTX,
                CUflushGPUDirectRDMAWritesScope::CU_FLUSH_GPU_DIRECT_RDMA_WRITES_TO_OWNER,
            )
        }
    }

    /// Bytes of the device's memory: free, and all.
    pub(in crate::cuda) fn memory(&self) -> Result<(usize, usize), Failure> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: both take a number, and a context is current.
        unsafe {
            self.library()
                .cuMemGetInfo_v2(&raw mut free, &raw mut total)
        }?;
        Ok((free, total))
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        let mut raw = ptr::null_mut();
        // SAFETY: `raw` takes a handle. Entered contexts are dropped in this
        // thread and in reverse order, so it is this one.
        let _ = unsafe { self.library().cuCtxPopCurrent_v2(&raw mut raw) };
    }
}

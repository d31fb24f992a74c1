//! Events: places in a stream.

use std::any::Any;
use std::ptr;
use std::sync::Arc;

use cudarc::driver::sys::{CUevent, CUevent_flags, CUresult};

use super::{Context, Failure, stream};
use crate::cuda::device::Device;
use crate::cuda::error::CudaError;
use crate::cuda::fence::EventFence;
use crate::cuda::handle::{EventHandle, StreamHandle};
use crate::cuda::visibility::StreamVisibility;
use crate::engine::Kept;

/// An event, ours or somebody else's.
#[derive(Debug)]
pub(in crate::cuda) struct Event {
    context: Arc<Context>,
    raw: CUevent,
    owner: Owner,
}

/// Who destroys an event.
enum Owner {
    Us,
    /// Whoever it belongs to, when this is dropped.
    Other(#[expect(dead_code, reason = "it is there to be dropped")] Kept),
}

impl std::fmt::Debug for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Us => "us",
            Self::Other(_) => "other",
        })
    }
}

// SAFETY: the driver takes an event from any thread. It is not shared.
unsafe impl Send for Event {}

impl Event {
    /// Behind everything that the stream was given to do so far.
    ///
    /// # Safety
    /// It is a stream of this context, or [`StreamHandle::DEFAULT`].
    unsafe fn record(context: &Arc<Context>, handle: StreamHandle) -> Result<Self, Failure> {
        let entered = context.enter()?;
        let library = entered.library();
        let mut raw = ptr::null_mut();
        #[expect(clippy::as_conversions, reason = "a C enumeration's number")]
        let flags = CUevent_flags::CU_EVENT_DISABLE_TIMING as u32;
        // SAFETY: `raw` takes a handle, and a context is current.
        unsafe { library.cuEventCreate(&raw mut raw, flags) }?;
        let event = Self {
            context: Arc::clone(context),
            raw,
            owner: Owner::Us,
        };
        // SAFETY: the event is new, and the stream is the caller's promise.
        unsafe { library.cuEventRecord(raw, stream(handle)) }?;
        Ok(event)
    }

    /// Behind everything that the default stream was given to do so far.
    pub(in crate::cuda) fn of_default_stream(context: &Arc<Context>) -> Result<Self, Failure> {
        // SAFETY: every context has it.
        unsafe { Self::record(context, StreamHandle::DEFAULT) }
    }

    /// Whether the device has come there.
    pub(in crate::cuda) fn is_past(&self) -> Result<bool, Failure> {
        let entered = self.context.enter()?;
        // SAFETY: the event is alive for as long as `self`.
        match unsafe { entered.library().cuEventQuery(self.raw) } {
            Ok(()) => Ok(true),
            Err(failure) if failure.is(CUresult::CUDA_ERROR_NOT_READY) => Ok(false),
            Err(failure) => Err(failure),
        }
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let (Owner::Us, Ok(entered)) = (&self.owner, self.context.enter()) {
            // SAFETY: made by `record`, and nobody else has it.
            let _ = unsafe { entered.library().cuEventDestroy_v2(self.raw) };
        }
    }
}

impl EventFence {
    /// Past when the device has done all that the stream was given to do before
    /// this call.
    ///
    /// # Errors
    /// The driver records no event: the stream is of another device
    /// (`CUDA_ERROR_INVALID_HANDLE`), or a graph is captured from it.
    ///
    /// # Safety
    /// The number is [`StreamHandle::DEFAULT`] or that of a stream which exists
    /// during this call.
    pub unsafe fn of_stream(device: &Device, handle: StreamHandle) -> Result<Self, CudaError> {
        // SAFETY: the caller's promise; the driver refuses another device's.
        let event = unsafe { Event::record(device.context(), handle) }?;
        Ok(Self::new(event))
    }

    /// Past when the device has come to an event that somebody else has
    /// recorded; also when it was never recorded. Keeps `keep`, such as the
    /// owner of the event, until this is dropped.
    ///
    /// # Safety
    /// The number is that of an event which exists until `keep` is dropped. It
    /// must have been recorded already, and not be recorded again before this
    /// is past: otherwise the answer is about something else.
    #[must_use]
    pub unsafe fn of_event(device: &Device, event: EventHandle, keep: Box<dyn Any + Send>) -> Self {
        Self::new(Event {
            context: Arc::clone(device.context()),
            raw: ptr::with_exposed_provenance_mut(event.get()),
            owner: Owner::Other(keep),
        })
    }
}

impl StreamVisibility {
    /// Over a stream that the engine or the library below it copies with. Keeps
    /// `keep`, such as the owner of the stream, until this is dropped.
    ///
    /// # Safety
    /// The number is [`StreamHandle::DEFAULT`] or that of a stream of this
    /// device which exists until `keep` is dropped.
    #[must_use]
    pub unsafe fn of_stream(
        device: &Device,
        handle: StreamHandle,
        keep: Box<dyn Any + Send>,
    ) -> Self {
        Self::new(device, handle, keep)
    }

    /// Waits for the stream.
    pub(in crate::cuda) fn wait(&self) -> Result<(), Failure> {
        let entered = self.device().context().enter()?;
        // SAFETY: the promise to `of_stream`, or the default stream.
        unsafe { entered.synchronize_stream(self.stream()) }?;
        self.device().flush(&entered)
    }
}

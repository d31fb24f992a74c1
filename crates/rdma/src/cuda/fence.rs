//! A fence at a place in a stream.

use std::sync::atomic::{AtomicBool, Ordering};

use super::device::Device;
use super::error::CudaError;
use super::ffi::{Event, Failure};
use crate::fence::{Fence, FenceError};

/// Past when the device has come to an event in a stream: what kernels before
/// it have written is there.
#[derive(Debug)]
pub struct EventFence {
    event: Event,
    /// Once past, past: somebody else may record the event again.
    past: AtomicBool,
}

impl EventFence {
    pub(super) const fn new(event: Event) -> Self {
        Self {
            event,
            past: AtomicBool::new(false),
        }
    }

    /// Past when the device has done all that its default stream, and every
    /// stream that is not non-blocking, was given to do before this call.
    ///
    /// # Errors
    /// The driver records no event.
    pub fn of_default_stream(device: &Device) -> Result<Self, CudaError> {
        Ok(Self::new(Event::of_default_stream(device.context())?))
    }
}

impl Fence for EventFence {
    fn is_past(&self) -> Result<bool, FenceError> {
        if self.past.load(Ordering::Acquire) {
            return Ok(true);
        }
        let past = self.event.is_past().map_err(fence_error)?;
        self.past.store(past, Ordering::Release);
        Ok(past)
    }
}

pub(super) fn fence_error(failure: Failure) -> FenceError {
    FenceError {
        code: failure.code(),
    }
}

//! When kernels see what an engine has written.

use std::any::Any;
use std::fmt;

use super::device::Device;
use super::fence::fence_error;
use super::handle::StreamHandle;
use crate::fence::{FenceError, Visibility};

/// Waits for everything that the device was given to do, copies of engines and
/// kernels alike, and makes what network cards have written visible to kernels.
/// The safe choice where it is not known how an engine copies; it also waits for
/// kernels that have nothing to do with the transfer.
#[derive(Clone, Debug)]
pub struct DeviceVisibility {
    device: Device,
}

impl DeviceVisibility {
    /// For memory of that device.
    #[must_use]
    pub fn new(device: &Device) -> Self {
        Self {
            device: device.clone(),
        }
    }
}

impl Visibility for DeviceVisibility {
    fn make_visible(&self) -> Result<(), FenceError> {
        let entered = self.device.context().enter().map_err(fence_error)?;
        entered.synchronize().map_err(fence_error)?;
        self.device.flush(&entered).map_err(fence_error)
    }
}

/// Waits for the stream that an engine copies with, and for nothing else, and
/// makes what network cards have written visible to kernels.
pub struct StreamVisibility {
    device: Device,
    stream: StreamHandle,
    _keep: Box<dyn Any + Send>,
}

impl StreamVisibility {
    pub(super) fn new(device: &Device, stream: StreamHandle, keep: Box<dyn Any + Send>) -> Self {
        Self {
            device: device.clone(),
            stream,
            _keep: keep,
        }
    }

    /// Over the default stream, with which engines copy that use `cudaMemcpy`,
    /// such as Mooncake over TCP.
    #[must_use]
    pub fn of_default_stream(device: &Device) -> Self {
        Self::new(device, StreamHandle::DEFAULT, Box::new(()))
    }

    pub(super) const fn device(&self) -> &Device {
        &self.device
    }

    pub(super) const fn stream(&self) -> StreamHandle {
        self.stream
    }
}

impl Visibility for StreamVisibility {
    fn make_visible(&self) -> Result<(), FenceError> {
        self.wait().map_err(fence_error)
    }
}

impl fmt::Debug for StreamVisibility {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("StreamVisibility")
            .field("device", &self.device)
            .field("stream", &self.stream)
            .finish_non_exhaustive()
    }
}

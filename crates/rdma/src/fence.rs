//! What a transfer waits for before its first byte and after its last.

use std::fmt::Debug;

use crate::error::EngineCode;

/// Why nobody can say whether memory is ready. The device's fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the device can't say whether its memory is ready ({code})")]
pub struct FenceError {
    /// What the driver said.
    pub code: EngineCode,
}

/// Something that must have happened before a transfer may start, such as a
/// kernel's last write to its source.
pub trait Fence: Debug + Send {
    /// Whether it has happened, without waiting. Once true, always true.
    ///
    /// # Errors
    /// The device failed; then the transfer never starts.
    fn is_past(&self) -> Result<bool, FenceError>;
}

/// Makes bytes that an engine has written to local memory visible to those who
/// read them, such as a device's kernels.
pub trait Visibility: Debug + Send {
    /// Returns when everything written before the call is visible.
    ///
    /// # Errors
    /// The device failed; then the transfer is not reported as complete.
    fn make_visible(&self) -> Result<(), FenceError>;
}

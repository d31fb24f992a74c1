//! What threads of an engine do first.

use std::fmt;
use std::sync::Arc;

use crate::error::EngineCode;

/// What every thread of ours that calls an engine's library does first, such as
/// making a device's context current (`cuda::Device::on_thread`). Clones are
/// equal, others are not.
#[derive(Clone)]
pub struct OnThread {
    call: Arc<dyn Fn() -> Result<(), EngineCode> + Send + Sync>,
}

impl OnThread {
    /// That call. What it returns on failure ends the start of the engine.
    #[must_use]
    pub fn new(call: impl Fn() -> Result<(), EngineCode> + Send + Sync + 'static) -> Self {
        Self {
            call: Arc::new(call),
        }
    }

    pub(crate) fn run(&self) -> Result<(), EngineCode> {
        (self.call)()
    }
}

impl PartialEq for OnThread {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.call, &other.call)
    }
}

impl Eq for OnThread {}

impl fmt::Debug for OnThread {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OnThread").finish_non_exhaustive()
    }
}

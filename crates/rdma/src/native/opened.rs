//! A peer as it was when it was opened.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::error::SubmitError;

/// A peer's name and the engine's handle `H` of it. All clones share whether a
/// transfer to it has failed.
#[derive(Debug)]
pub(crate) struct Opened<H> {
    name: String,
    handle: H,
    failed: AtomicBool,
}

impl<H> Opened<H> {
    pub(crate) fn new(name: String, handle: H) -> Arc<Self> {
        Arc::new(Self {
            name,
            handle,
            failed: AtomicBool::new(false),
        })
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) const fn handle(&self) -> &H {
        &self.handle
    }

    /// From now on nothing is submitted to it.
    pub(crate) fn fail(&self) {
        self.failed.store(true, Ordering::Release);
    }

    /// Whether something may be submitted to it.
    pub(crate) fn check(&self) -> Result<(), SubmitError> {
        if self.failed.load(Ordering::Acquire) {
            return Err(SubmitError::PeerFailed {
                peer: self.name.clone(),
            });
        }
        Ok(())
    }
}

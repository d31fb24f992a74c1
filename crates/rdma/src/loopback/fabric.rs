//! The endpoints that can reach each other.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};

use indexmap::IndexMap;

use crate::capabilities::{Capabilities, RegistrationLimits, SubmissionLimits};
use crate::error::{RegisterError, SubmitError};
use crate::loopback::table::{Entry, RegionTable};
use crate::loopback::{Loopback, lock};
use crate::memory::HostBuffer;

/// Why there is no new endpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AttachError {
    /// The name belongs to a live endpoint.
    #[error("endpoint `{name}` is alive in generation {generation}")]
    NameTaken {
        /// The name.
        name: String,
        /// The live endpoint's generation.
        generation: u64,
    },
}

/// A network inside this process: [`Loopback`] engines attached to the same
/// fabric reach each other by name.
#[derive(Clone, Debug, Default)]
pub struct Fabric {
    /// The latest endpoint of each name, alive or not.
    endpoints: Arc<Mutex<IndexMap<String, Arc<Endpoint>>>>,
}

impl Fabric {
    /// A fabric of its own.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// A new engine with the default limits.
    ///
    /// # Errors
    /// As [`attach_with`](Self::attach_with).
    pub fn attach(&self, name: &str) -> Result<Loopback, AttachError> {
        self.attach_with(
            name,
            RegistrationLimits::default(),
            SubmissionLimits::default(),
        )
    }

    /// A new engine under a name that no live engine has. A name used before
    /// gets the next generation.
    ///
    /// # Errors
    /// The name belongs to a live engine.
    pub fn attach_with(
        &self,
        name: &str,
        registration: RegistrationLimits,
        submission: SubmissionLimits,
    ) -> Result<Loopback, AttachError> {
        let mut endpoints = lock(&self.endpoints);
        let generation = match endpoints.get(name) {
            Some(old) if old.is_alive() => {
                return Err(AttachError::NameTaken {
                    name: name.to_owned(),
                    generation: old.generation,
                });
            }
            Some(old) => old.generation.saturating_add(1),
            None => 1,
        };
        let endpoint = Arc::new(Endpoint {
            name: name.to_owned(),
            generation,
            alive: AtomicBool::new(true),
            table: RwLock::default(),
        });
        endpoints.insert(name.to_owned(), Arc::clone(&endpoint));
        let capabilities = Capabilities::writes("loopback", registration, submission)
            .with_drain()
            .with_per_task_status()
            .with_reads();
        Ok(Loopback::new(self.clone(), endpoint, capabilities))
    }

    /// Ends the process behind a name: its registrations are gone, transfers to
    /// it fail, and its own move no more. The name is free for the next
    /// generation. Returns whether there was a live one.
    pub fn kill(&self, name: &str) -> bool {
        self.endpoint(name).is_some_and(|endpoint| endpoint.kill())
    }

    /// The live endpoint of that name.
    pub(super) fn endpoint(&self, name: &str) -> Option<Arc<Endpoint>> {
        lock(&self.endpoints)
            .get(name)
            .filter(|endpoint| endpoint.is_alive())
            .cloned()
    }

    /// Whether an endpoint opened earlier is still the one of its name.
    pub(super) fn check(&self, opened: &Endpoint) -> Result<(), SubmitError> {
        if opened.is_alive() {
            return Ok(());
        }
        let peer = opened.name.clone();
        Err(match self.endpoint(&peer) {
            Some(current) => SubmitError::StalePeer {
                peer,
                opened: opened.generation,
                current: current.generation,
            },
            None => SubmitError::PeerGone { peer },
        })
    }
}

/// One process on a fabric.
#[derive(Debug)]
pub(super) struct Endpoint {
    name: String,
    generation: u64,
    alive: AtomicBool,
    /// Shared with submissions that resolve against it, copied on change.
    table: RwLock<Arc<RegionTable>>,
}

impl Endpoint {
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn is_alive(&self) -> bool {
        self.alive.load(Ordering::Acquire)
    }

    /// Returns whether it was alive.
    pub(super) fn kill(&self) -> bool {
        let was_alive = self.alive.swap(false, Ordering::AcqRel);
        self.change(|table| *table = RegionTable::default());
        was_alive
    }

    pub(super) fn register(
        &self,
        address: u64,
        len: u64,
        buffer: &HostBuffer,
        offset: u64,
        limits: RegistrationLimits,
    ) -> Result<(), RegisterError> {
        let entry = Entry {
            start: address,
            end: address.saturating_add(len),
            buffer: buffer.clone(),
            offset,
        };
        self.change(|table| table.insert(entry, limits))
    }

    /// Returns whether a range started there.
    pub(super) fn unregister(&self, address: u64) -> bool {
        self.change(|table| table.remove(address))
    }

    /// What is registered now.
    pub(super) fn table(&self) -> Arc<RegionTable> {
        Arc::clone(&self.table.read().unwrap_or_else(PoisonError::into_inner))
    }

    fn change<T>(&self, change: impl FnOnce(&mut RegionTable) -> T) -> T {
        let mut table = self.table.write().unwrap_or_else(PoisonError::into_inner);
        change(Arc::make_mut(&mut table))
    }
}

//! A batch on its way, with everything that must outlive it.

use std::fmt;
use std::sync::Arc;

use crate::batch::BoundBatch;
use crate::engine::{Engine, Patience};
use crate::error::{SubmitError, TaskFailure};
use crate::fence::{Fence, FenceError, Visibility};
use crate::pump::{End, Pump, Stage};
use crate::transfer::Moved;

/// Where a batch stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Nothing of it is in flight yet: a fence is not past.
    Fenced,
    /// Nothing of its next portion is in flight: the peer's queue is full.
    NoRoom(Moved),
    /// Tasks read their source and write their destination.
    Running(Moved),
    /// Nobody knows whether they do. A later look may find that they ended.
    Unknown(Moved),
    /// Nothing of it is in flight, and nothing will be.
    Ended(Outcome),
}

/// How a batch ended. Nothing of it is in flight any more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All of it is there and visible.
    Completed(Moved),
    /// A submission was not taken; earlier ones have landed.
    NotTaken {
        /// First descriptor of that submission in the batch.
        first: u64,
        /// Why not.
        error: SubmitError,
        /// What earlier ones moved.
        moved: Moved,
    },
    /// A task failed: its destination holds any mix of bytes.
    Failed {
        /// Which descriptor of the batch; the first that failed.
        descriptor: u64,
        /// How.
        failure: TaskFailure,
        /// What earlier submissions moved.
        moved: Moved,
    },
    /// The device can't say that the source is written (then nothing was
    /// submitted), or that the destination is visible.
    Device {
        /// What it said.
        error: FenceError,
        /// What was moved.
        moved: Moved,
    },
    /// It was cancelled: portions that were not in flight are not sent.
    Cancelled(Moved),
}

/// A batch on its way. It owns its registrations, plan and leases, `K`, and
/// gives them back only when every task has ended: never by a timeout, and
/// never by being dropped. A dropped one goes on in the engine's care.
pub struct InFlight<E: Engine, K: Send + 'static> {
    inner: Option<Box<Inner<E, K>>>,
}

struct Inner<E: Engine, K> {
    engine: Arc<E>,
    peer: E::Peer,
    batch: BoundBatch,
    kept: K,
    fences: Vec<Box<dyn Fence>>,
    visibility: Vec<Box<dyn Visibility>>,
    pump: Pump<E::Ticket>,
    cancelled: bool,
    outcome: Option<Outcome>,
}

impl<E: Engine, K: Send + 'static> InFlight<E, K> {
    /// A batch whose source is written already. Its first portion is submitted
    /// on the first look.
    #[must_use]
    pub fn new(engine: Arc<E>, peer: E::Peer, batch: BoundBatch, kept: K) -> Self {
        Self {
            inner: Some(Box::new(Inner {
                engine,
                peer,
                batch,
                kept,
                fences: Vec::new(),
                visibility: Vec::new(),
                pump: Pump::new(),
                cancelled: false,
                outcome: None,
            })),
        }
    }

    /// Submits nothing before that fence is past.
    #[must_use]
    pub fn after(mut self, fence: Box<dyn Fence>) -> Self {
        if let Some(inner) = &mut self.inner {
            inner.fences.push(fence);
        }
        self
    }

    /// Reports completion only when what was written locally is visible. For
    /// reads into a device's memory; who is written to has to do so itself.
    #[must_use]
    pub fn then(mut self, visibility: Box<dyn Visibility>) -> Self {
        if let Some(inner) = &mut self.inner {
            inner.visibility.push(visibility);
        }
        self
    }

    /// Goes as far as it can without waiting.
    pub fn poll(&mut self) -> Standing {
        match &mut self.inner {
            Some(inner) => inner.go(None),
            None => Standing::Fenced,
        }
    }

    /// Goes on until the batch has ended, or a portion of it has not within
    /// `patience`. Then it can be drained again: nothing is given up.
    pub fn drain(&mut self, patience: Patience) -> Standing {
        match &mut self.inner {
            Some(inner) => inner.go(Some(patience)),
            None => Standing::Fenced,
        }
    }

    /// Sends no further portion. What is in flight can't be called back: look
    /// until it has ended.
    pub fn cancel(&mut self) {
        if let Some(inner) = &mut self.inner {
            inner.cancelled = true;
        }
    }

    /// The registrations, plan and leases, and how the batch ended.
    ///
    /// # Errors
    /// It has not, as far as the last look knows; the batch comes back.
    pub fn end(mut self) -> Result<(Outcome, K), Self> {
        match self.inner.take() {
            Some(mut inner) => match inner.outcome.take() {
                Some(outcome) => Ok((outcome, inner.kept)),
                None => Err(Self { inner: Some(inner) }),
            },
            None => Err(self),
        }
    }
}

impl<E: Engine, K> Inner<E, K> {
    fn go(&mut self, patience: Option<Patience>) -> Standing {
        if let Some(outcome) = &self.outcome {
            return Standing::Ended(outcome.clone());
        }
        if !self.fences.is_empty() {
            match self.past(patience) {
                Ok(true) => self.fences.clear(),
                Ok(false) if self.cancelled => {
                    return self.ended(Outcome::Cancelled(self.pump.moved()));
                }
                Ok(false) => return Standing::Fenced,
                Err(error) => {
                    let moved = self.pump.moved();
                    return self.ended(Outcome::Device { error, moved });
                }
            }
        }
        let (engine, peer, batch) = (&*self.engine, &self.peer, &self.batch);
        if self.cancelled {
            self.pump.stop();
        }
        let stage = match patience {
            None => self.pump.poll(engine, peer, batch),
            Some(patience) => self.pump.drain(engine, peer, batch, patience, |_| {}),
        };
        let moved = self.pump.moved();
        match stage {
            Stage::NoRoom => Standing::NoRoom(moved),
            Stage::Running { known: true } => Standing::Running(moved),
            Stage::Running { known: false } => Standing::Unknown(moved),
            Stage::Ended => {
                let outcome = self.outcome(moved);
                self.ended(outcome)
            }
        }
    }

    /// Whether all fences are past.
    fn past(&self, patience: Option<Patience>) -> Result<bool, FenceError> {
        let start = std::time::Instant::now();
        for fence in &self.fences {
            while !fence.is_past()? {
                let waited = start.elapsed();
                if patience.is_none_or(|patience| waited >= patience.get()) {
                    return Ok(false);
                }
                std::thread::sleep(std::time::Duration::from_micros(20));
            }
        }
        Ok(true)
    }

    fn outcome(&self, moved: Moved) -> Outcome {
        match self.pump.end() {
            Some(End::Submit { first, error }) => Outcome::NotTaken {
                first: *first,
                error: error.clone(),
                moved,
            },
            Some(End::Task {
                descriptor,
                failure,
            }) => Outcome::Failed {
                descriptor: *descriptor,
                failure: *failure,
                moved,
            },
            Some(End::Stopped) => Outcome::Cancelled(moved),
            Some(End::Completed) | None => {
                let mut all = self.visibility.iter();
                match all.try_for_each(|visibility| visibility.make_visible()) {
                    Ok(()) => Outcome::Completed(moved),
                    Err(error) => Outcome::Device { error, moved },
                }
            }
        }
    }

    fn ended(&mut self, outcome: Outcome) -> Standing {
        self.outcome = Some(outcome.clone());
        Standing::Ended(outcome)
    }
}

impl<E: Engine, K: Send + 'static> Drop for InFlight<E, K> {
    fn drop(&mut self) {
        let Some(inner) = self.inner.take() else {
            return;
        };
        if let Some(running) = inner.pump.into_running() {
            (inner.engine).abandon(running.ticket, Box::new(inner.kept));
        }
    }
}

impl<E: Engine, K: Send + 'static> fmt::Debug for InFlight<E, K> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut debug = f.debug_struct("InFlight");
        if let Some(inner) = &self.inner {
            debug
                .field("moved", &inner.pump.moved())
                .field("outcome", &inner.outcome);
        }
        debug.finish_non_exhaustive()
    }
}

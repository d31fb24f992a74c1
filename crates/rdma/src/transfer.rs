//! A whole batch, one submission after the other.

use crate::batch::BoundBatch;
use crate::engine::{Engine, Patience, StillRunning};
use crate::error::{SubmitError, TaskFailure};
use crate::pump::{End, Pump, Stage};

/// What a transfer has moved.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moved {
    descriptors: u64,
    bytes: u64,
    submissions: u64,
}

impl Moved {
    /// Descriptors that completed.
    #[must_use]
    pub const fn descriptors(&self) -> u64 {
        self.descriptors
    }

    /// Bytes of those descriptors.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Submissions they were in.
    #[must_use]
    pub const fn submissions(&self) -> u64 {
        self.submissions
    }

    /// One submission more.
    pub(crate) fn plus(self, descriptors: usize, bytes: u64) -> Self {
        let count = u64::try_from(descriptors).unwrap_or(u64::MAX);
        Self {
            descriptors: self.descriptors.saturating_add(count),
            bytes: self.bytes.saturating_add(bytes),
            submissions: self.submissions.saturating_add(1),
        }
    }
}

/// Why a batch was not transferred. Later submissions were not started.
#[derive(Debug, thiserror::Error)]
pub enum TransferError<T: std::fmt::Debug> {
    /// A submission was not taken. Nothing is in flight.
    #[error("submission from descriptor {first}: {error}")]
    Submit {
        /// First descriptor of the submission in the batch.
        first: u64,
        /// Why not.
        error: SubmitError,
        /// What was moved before.
        moved: Moved,
    },
    /// A task failed. All tasks have ended; nothing is in flight.
    #[error("descriptor {descriptor}: {failure}")]
    Task {
        /// Which descriptor of the batch; the first one that failed.
        descriptor: u64,
        /// How.
        failure: TaskFailure,
        /// What was moved by earlier submissions.
        moved: Moved,
    },
    /// Tasks may still run. Memory and registrations of both sides must stay
    /// until the ticket was drained.
    #[error("submission from descriptor {first}: {unfinished}")]
    Unknown {
        /// First descriptor of the submission in the batch.
        first: u64,
        /// The ticket to drain.
        unfinished: StillRunning<T>,
        /// What was moved by earlier submissions.
        moved: Moved,
    },
}

/// Submits a batch in portions, each drained before the next, so that no more
/// is outstanding than the limits allow. `progress` is called after each. Where
/// other threads fill the peer's queue, it waits for room.
///
/// The caller keeps both sides' memory and registrations; an
/// [`InFlight`](crate::InFlight) does so by itself.
///
/// # Errors
/// A submission is refused, a task fails, or a submission does not end within
/// `patience`.
pub fn transfer<E: Engine>(
    engine: &E,
    peer: &E::Peer,
    batch: &BoundBatch,
    patience: Patience,
    progress: impl FnMut(Moved),
) -> Result<Moved, TransferError<E::Ticket>> {
    let mut pump = Pump::new();
    if pump.drain(engine, peer, batch, patience, progress) == Stage::NoRoom {
        pump.give_up();
    }
    let (first, moved) = (pump.first(), pump.moved());
    match pump.end() {
        // Nobody stops it.
        Some(End::Completed | End::Stopped) => Ok(moved),
        Some(End::Submit { first, error }) => Err(TransferError::Submit {
            first: *first,
            error: error.clone(),
            moved,
        }),
        Some(End::Task {
            descriptor,
            failure,
        }) => Err(TransferError::Task {
            descriptor: *descriptor,
            failure: *failure,
            moved,
        }),
        None => match pump.into_running() {
            Some(unfinished) => Err(TransferError::Unknown {
                first,
                unfinished,
                moved,
            }),
            // Nothing flies and nothing is left.
            None => Ok(moved),
        },
    }
}

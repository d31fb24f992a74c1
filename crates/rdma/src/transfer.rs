//! A whole batch, one submission after the other.

use crate::batch::BoundBatch;
use crate::engine::{Drained, Engine, Patience, StillRunning};
use crate::error::{SubmitError, TaskFailure};

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
/// is outstanding than the limits allow. `progress` is called after each.
///
/// # Errors
/// A submission is refused, a task fails, or a submission does not end within
/// `patience`.
pub fn transfer<E: Engine>(
    engine: &E,
    peer: &E::Peer,
    batch: &BoundBatch,
    patience: Patience,
    mut progress: impl FnMut(Moved),
) -> Result<Moved, TransferError<E::Ticket>> {
    let mut moved = Moved::default();
    for submission in batch.submissions() {
        let first = moved.descriptors;
        let mut ticket =
            engine
                .submit(peer, submission)
                .map_err(|error| TransferError::Submit {
                    first,
                    error,
                    moved,
                })?;
        let (Drained::Quiescent(ended) | Drained::Unknown(ended)) =
            engine.drain(&mut ticket, patience);
        engine
            .release(ticket)
            .map_err(|unfinished| TransferError::Unknown {
                first,
                unfinished,
                moved,
            })?;
        if let Some((index, failure)) = ended.first_failure() {
            return Err(TransferError::Task {
                descriptor: first.saturating_add(u64::try_from(index).unwrap_or(u64::MAX)),
                failure,
                moved,
            });
        }
        let count = u64::try_from(submission.descriptors().len()).unwrap_or(u64::MAX);
        moved = Moved {
            descriptors: moved.descriptors.saturating_add(count),
            bytes: moved.bytes.saturating_add(submission.bytes()),
            submissions: moved.submissions.saturating_add(1),
        };
        progress(moved);
    }
    Ok(moved)
}

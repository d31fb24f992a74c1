//! How far a batch has come.

use std::fmt::Debug;
use std::time::{Duration, Instant};

use crate::batch::{BoundBatch, Submission};
use crate::engine::{Drained, Engine, Patience, Progress, StillRunning, TaskStatus};
use crate::error::{SubmitError, TaskFailure};
use crate::transfer::Moved;

/// Between two looks whether a peer's queue has room.
const ROOM_NAP: Duration = Duration::from_micros(200);

/// How a batch ended. Nothing of it is in flight.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All of it is there.
    Completed,
    /// A submission was not taken.
    Submit { first: u64, error: SubmitError },
    /// A task failed.
    Task {
        descriptor: u64,
        failure: TaskFailure,
    },
    /// It was stopped between two portions.
    Stopped,
}

/// Submits a batch portion by portion, each drained before the next, so that no
/// more is outstanding than the limits allow.
#[derive(Debug)]
pub(crate) struct Pump<T> {
    /// First descriptor of the portion in flight, or of the next one.
    first: usize,
    /// Submit no more.
    stopped: bool,
    flying: Option<Flying<T>>,
    moved: Moved,
    /// Why the next portion is not in flight.
    full: Option<SubmitError>,
    end: Option<End>,
}

#[derive(Debug)]
struct Flying<T> {
    ticket: T,
    descriptors: usize,
    bytes: u64,
    unfinished: usize,
}

/// Where a batch stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The peer's queue has no room for the next portion.
    NoRoom,
    /// Tasks run; whether all of them are known to.
    Running { known: bool },
    /// See the end.
    Ended,
}

impl<T: Debug> Pump<T> {
    pub(crate) fn new() -> Self {
        Self {
            first: 0,
            stopped: false,
            flying: None,
            moved: Moved::default(),
            full: None,
            end: None,
        }
    }

    pub(crate) const fn moved(&self) -> Moved {
        self.moved
    }

    pub(crate) const fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }

    /// First descriptor of the portion in flight.
    pub(crate) fn first(&self) -> u64 {
        u64::try_from(self.first).unwrap_or(u64::MAX)
    }

    /// The ticket in flight, with the tasks of it that may still run.
    pub(crate) fn into_running(self) -> Option<StillRunning<T>> {
        self.flying.map(|flying| StillRunning {
            ticket: flying.ticket,
            unfinished: flying.unfinished,
            tasks: flying.descriptors,
        })
    }

    /// Goes as far as it can without waiting.
    pub(crate) fn poll<E: Engine<Ticket = T>>(
        &mut self,
        engine: &E,
        peer: &E::Peer,
        batch: &BoundBatch,
    ) -> Stage {
        loop {
            let stage = self.step(engine, peer, batch, E::poll);
            match stage {
                Stage::Running { .. } if self.flying.is_none() => {}
                _ => return stage,
            }
        }
    }

    /// Goes on until the batch has ended or patience has: that of every
    /// portion by itself. `progress` is called after each.
    pub(crate) fn drain<E: Engine<Ticket = T>>(
        &mut self,
        engine: &E,
        peer: &E::Peer,
        batch: &BoundBatch,
        patience: Patience,
        mut progress: impl FnMut(Moved),
    ) -> Stage {
        let mut since = Instant::now();
        loop {
            let before = self.moved;
            let stage = self.step(engine, peer, batch, |engine, ticket| {
                let (Drained::Quiescent(ended) | Drained::Unknown(ended)) =
                    engine.drain(ticket, patience);
                ended
            });
            if self.moved != before {
                progress(self.moved);
                since = Instant::now();
            }
            match stage {
                Stage::Running { .. } if self.flying.is_none() => {}
                Stage::NoRoom if since.elapsed() < patience.get() => std::thread::sleep(ROOM_NAP),
                Stage::NoRoom | Stage::Running { .. } | Stage::Ended => return stage,
            }
        }
    }

    /// Ends a batch whose next portion found no room for too long.
    pub(crate) fn give_up(&mut self) {
        if let Some(error) = self.full.take() {
            self.refused(error);
        }
    }

    /// Submits no further portion.
    pub(crate) const fn stop(&mut self) {
        self.stopped = true;
    }

    /// Ends a batch of which nothing is in flight.
    pub(crate) fn refused(&mut self, error: SubmitError) {
        let first = self.first();
        self.end = Some(End::Submit { first, error });
    }

    fn launch(&mut self, ticket: T, submission: Submission<'_>) {
        let descriptors = submission.descriptors().len();
        self.flying = Some(Flying {
            ticket,
            descriptors,
            bytes: submission.bytes(),
            unfinished: descriptors,
        });
    }

    fn step<E: Engine<Ticket = T>>(
        &mut self,
        engine: &E,
        peer: &E::Peer,
        batch: &BoundBatch,
        ask: impl FnOnce(&E, &mut T) -> Progress,
    ) -> Stage {
        if self.end.is_some() {
            return Stage::Ended;
        }
        if self.flying.is_none() {
            let Some(submission) = batch.submission(self.first) else {
                self.end = Some(End::Completed);
                return Stage::Ended;
            };
            if self.stopped {
                self.end = Some(End::Stopped);
                return Stage::Ended;
            }
            match engine.submit(peer, submission) {
                Ok(ticket) => self.launch(ticket, submission),
                Err(error) if fits_alone(&error) => {
                    self.full = Some(error);
                    return Stage::NoRoom;
                }
                Err(error) => {
                    self.refused(error);
                    return Stage::Ended;
                }
            }
        }
        let Some(mut flying) = self.flying.take() else {
            return Stage::Ended;
        };
        let progress = ask(engine, &mut flying.ticket);
        let known = !progress.tasks().contains(&TaskStatus::Unknown);
        // Only what this progress says counts: the tasks may end, and fail,
        // between it and the release.
        if !progress.is_quiescent() {
            flying.unfinished = progress.unfinished();
            self.flying = Some(flying);
            return Stage::Running { known };
        }
        if let Err(still) = engine.release(flying.ticket) {
            self.flying = Some(Flying {
                ticket: still.ticket,
                unfinished: still.unfinished,
                ..flying
            });
            return Stage::Running { known };
        }
        self.landed(&progress, flying.descriptors, flying.bytes);
        if self.end.is_some() {
            Stage::Ended
        } else {
            Stage::Running { known: true }
        }
    }

    /// A portion has ended.
    fn landed(&mut self, progress: &Progress, descriptors: usize, bytes: u64) {
        if let Some((index, failure)) = progress.first_failure() {
            let index = u64::try_from(index).unwrap_or(u64::MAX);
            self.end = Some(End::Task {
                descriptor: self.first().saturating_add(index),
                failure,
            });
            return;
        }
        self.first = self.first.saturating_add(descriptors);
        self.moved = self.moved.plus(descriptors, bytes);
    }
}

/// Whether a portion found no room only because others are in flight.
fn fits_alone(error: &SubmitError) -> bool {
    matches!(
        error,
        SubmitError::QueueFull { outstanding, adding, limit, .. }
            if *outstanding > 0 && *adding <= u64::from(*limit)
    )
}

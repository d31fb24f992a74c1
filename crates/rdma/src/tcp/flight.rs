//! One submission on its way.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::engine::{Kept, Progress, TaskStatus};
use crate::error::TaskFailure;
use crate::native::Flight;

/// How a submission ended. Nothing of it moves any more.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Completed,
    /// All that was not done by then has failed.
    Failed(TaskFailure),
}

/// What its worker says of a submission.
#[derive(Debug)]
pub(super) struct Track {
    tasks: usize,
    /// The first tasks, whose bytes the peer has.
    done: AtomicUsize,
    /// Nothing has been heard for a while.
    quiet: Arc<AtomicBool>,
    /// The connection is gone, and the peer has not said that it has ended.
    doubtful: AtomicBool,
    end: OnceLock<End>,
}

impl Track {
    pub(super) fn new(tasks: usize, quiet: Arc<AtomicBool>) -> Arc<Self> {
        Arc::new(Self {
            tasks,
            done: AtomicUsize::new(0),
            quiet,
            doubtful: AtomicBool::new(false),
            end: OnceLock::new(),
        })
    }

    pub(super) const fn tasks(&self) -> usize {
        self.tasks
    }

    /// The first `count` tasks are done.
    pub(super) fn done(&self, count: usize) {
        self.done.fetch_max(count, Ordering::AcqRel);
    }

    pub(super) fn doubt(&self) {
        self.doubtful.store(true, Ordering::Release);
    }

    pub(super) fn end(&self, end: End) {
        // It ends once.
        let _ = self.end.set(end);
    }

    fn progress(&self) -> Progress {
        let end = self.end.get();
        // Ranges and room are given back between the last landing and the end.
        let most = self.tasks.saturating_sub(usize::from(end.is_none()));
        let done = self.done.load(Ordering::Acquire).min(most);
        let unclear = self.quiet.load(Ordering::Acquire) || self.doubtful.load(Ordering::Acquire);
        let status = |task: usize| match end {
            _ if task < done => TaskStatus::Completed,
            Some(End::Completed) => TaskStatus::Completed,
            Some(End::Failed(failure)) => TaskStatus::Failed(*failure),
            None if unclear => TaskStatus::Unknown,
            None => TaskStatus::Running,
        };
        Progress::new((0..self.tasks).map(status).collect())
    }
}

/// A submission in flight, and what its holder keeps. Ranges and room in the
/// peer's queue are its worker's until it has ended.
#[derive(Debug)]
pub(super) struct TcpFlight {
    track: Arc<Track>,
    kept: Vec<Kept>,
}

impl TcpFlight {
    pub(super) const fn new(track: Arc<Track>) -> Self {
        Self {
            track,
            kept: Vec::new(),
        }
    }
}

impl Flight for TcpFlight {
    fn advance(&mut self) -> Progress {
        self.track.progress()
    }

    fn progress(&self) -> Progress {
        self.track.progress()
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }
}

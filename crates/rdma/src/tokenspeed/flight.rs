//! One write, as its submitter sees it.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::engine::{Kept, Progress, TaskStatus};
use crate::error::{EngineCode, TaskFailure};
use crate::native::Flight;

/// How a write ended.
#[derive(Clone, Copy, Debug)]
pub(super) enum End {
    /// All bytes are there.
    Completed,
    /// The library failed; what still runs is not known.
    Refused(EngineCode),
    /// Another write to the peer had failed before this one began.
    NotBegun,
}

/// How a write ended, once it has: set once, by the thread that made it.
#[derive(Debug, Default)]
pub(super) struct Status {
    end: Mutex<Option<End>>,
    ended: Condvar,
}

impl Status {
    pub(super) fn end(&self, end: End) {
        // Only the write's own thread comes here, once.
        self.lock().get_or_insert(end);
        self.ended.notify_all();
    }

    pub(super) fn refusal(&self) -> Option<EngineCode> {
        match *self.lock() {
            Some(End::Refused(code)) => Some(code),
            Some(End::Completed | End::NotBegun) | None => None,
        }
    }

    /// Waits for the end, but no longer than `most`.
    fn wait(&self, most: Duration) {
        let running = |end: &mut Option<End>| end.is_none();
        // How it ended is asked later.
        drop(self.ended.wait_timeout_while(self.lock(), most, running));
    }

    fn task(&self) -> TaskStatus {
        match *self.lock() {
            None => TaskStatus::Running,
            Some(End::Completed) => TaskStatus::Completed,
            Some(End::Refused(_)) => TaskStatus::Unknown,
            Some(End::NotBegun) => TaskStatus::Failed(TaskFailure::PeerGone),
        }
    }

    fn lock(&self) -> MutexGuard<'_, Option<End>> {
        // A panic elsewhere can't have broken it.
        self.end.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A write in flight. Its thread holds its registrations.
#[derive(Debug)]
pub(crate) struct WriteFlight {
    status: Arc<Status>,
    tasks: usize,
    kept: Vec<Kept>,
}

impl WriteFlight {
    pub(super) const fn new(status: Arc<Status>, tasks: usize) -> Self {
        Self {
            status,
            tasks,
            kept: Vec::new(),
        }
    }
}

impl Flight for WriteFlight {
    fn advance(&mut self) -> Progress {
        self.progress()
    }

    fn progress(&self) -> Progress {
        Progress::new(vec![self.status.task(); self.tasks])
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }

    fn is_lost(&self) -> bool {
        self.status.refusal().is_some()
    }

    fn wait(&self, _: Duration, most: Duration) {
        self.status.wait(most);
    }
}

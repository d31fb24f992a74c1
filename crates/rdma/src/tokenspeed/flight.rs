//! One write, as its submitter sees it.

use std::sync::{Arc, OnceLock};

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
    end: OnceLock<End>,
}

impl Status {
    pub(super) fn end(&self, end: End) {
        // Only the write's own thread comes here, once.
        let _ = self.end.set(end);
    }

    pub(super) fn refusal(&self) -> Option<EngineCode> {
        match self.end.get() {
            Some(End::Refused(code)) => Some(*code),
            Some(End::Completed | End::NotBegun) | None => None,
        }
    }

    fn task(&self) -> TaskStatus {
        match self.end.get() {
            None => TaskStatus::Running,
            Some(End::Completed) => TaskStatus::Completed,
            Some(End::Refused(_)) => TaskStatus::Unknown,
            Some(End::NotBegun) => TaskStatus::Failed(TaskFailure::PeerGone),
        }
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
}

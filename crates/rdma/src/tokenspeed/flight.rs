//! One write, as its submitter sees it.

use std::sync::{Arc, OnceLock};

use crate::engine::{Kept, Progress, TaskStatus};
use crate::error::EngineCode;
use crate::native::Flight;

/// How a write ended, once it has: set once, by the thread that made it.
#[derive(Debug, Default)]
pub(super) struct Status {
    end: OnceLock<Result<(), EngineCode>>,
}

impl Status {
    pub(super) fn end(&self, end: Result<(), EngineCode>) {
        // Only the write's own thread comes here, once.
        let _ = self.end.set(end);
    }

    pub(super) fn refusal(&self) -> Option<EngineCode> {
        self.end.get().and_then(|end| end.err())
    }

    fn task(&self) -> TaskStatus {
        match self.end.get() {
            None => TaskStatus::Running,
            Some(Ok(())) => TaskStatus::Completed,
            Some(Err(_)) => TaskStatus::Unknown,
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
}

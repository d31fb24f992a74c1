//! One batch of the library.

use std::sync::Arc;

use mooncake_transfer_engine_sys::official::{
    STATUS_CANCELED, STATUS_COMPLETED, STATUS_FAILED, STATUS_INVALID, STATUS_TIMEOUT,
};

use super::ffi::{Batch, Handle, Segment};
use super::{CALL, TASK};
use crate::engine::{Kept, Progress, TaskStatus};
use crate::error::{EngineCode, TaskFailure};
use crate::native::{Flight, Guard, Opened, Permit};

/// A batch in flight, with all that must outlive it.
#[derive(Debug)]
pub(crate) struct BatchFlight {
    batch: Batch,
    peer: Arc<Opened<Segment>>,
    tasks: Vec<Task>,
    /// The library has freed the batch: nothing of it runs any more.
    freed: bool,
    _holds: Vec<Arc<Guard<Handle>>>,
    permit: Option<Permit>,
    kept: Vec<Kept>,
}

/// What was last heard of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Task {
    Running,
    Completed,
    Failed(EngineCode),
    /// A state that does not say whether the task runs, or no answer. Its end
    /// is proved by freeing the batch.
    Unclear(EngineCode),
}

impl BatchFlight {
    pub(super) fn new(
        batch: Batch,
        peer: Arc<Opened<Segment>>,
        holds: Vec<Arc<Guard<Handle>>>,
        permit: Permit,
    ) -> Self {
        let tasks = vec![Task::Running; batch.tasks()];
        Self {
            batch,
            peer,
            tasks,
            freed: false,
            _holds: holds,
            permit: Some(permit),
            kept: Vec::new(),
        }
    }

    /// Asks about tasks that have not ended, the last submitted first: the
    /// library looks at the whole batch for each one that completed, so the
    /// fewer answers are asked for early, the better. Stops at the first that
    /// still runs: the others are asked about when it has ended.
    fn ask(&mut self) {
        for (index, task) in self.tasks.iter_mut().enumerate().rev() {
            if matches!(task, Task::Completed | Task::Failed(_)) {
                continue;
            }
            *task = match self.batch.status(index) {
                Ok(STATUS_COMPLETED) => Task::Completed,
                Ok(state @ STATUS_FAILED) => Task::Failed(EngineCode::new(TASK, state.into())),
                Ok(state @ (STATUS_INVALID | STATUS_CANCELED | STATUS_TIMEOUT)) => {
                    Task::Unclear(EngineCode::new(TASK, state.into()))
                }
                Ok(_) => Task::Running,
                Err(code) => Task::Unclear(EngineCode::new(CALL, code.into())),
            };
            if *task == Task::Running {
                break;
            }
        }
    }
}

impl Flight for BatchFlight {
    fn advance(&mut self) -> Progress {
        if !self.freed {
            self.ask();
            let failed = |task: &Task| matches!(task, Task::Failed(_) | Task::Unclear(_));
            if self.tasks.iter().any(failed) {
                self.peer.fail();
            }
            if !self.tasks.contains(&Task::Running) && self.batch.free() {
                self.freed = true;
                self.permit = None;
            }
        }
        self.progress()
    }

    fn progress(&self) -> Progress {
        let status = |task: &Task| match (*task, self.freed) {
            (Task::Completed, true) => TaskStatus::Completed,
            (Task::Failed(code) | Task::Unclear(code), true) => {
                TaskStatus::Failed(TaskFailure::Engine { code })
            }
            // Where the library says that it has ended, nothing proves it until
            // the batch is freed.
            (Task::Running, _) | (Task::Completed | Task::Failed(_), false) => TaskStatus::Running,
            (Task::Unclear(_), false) => TaskStatus::Unknown,
        };
        Progress::new(self.tasks.iter().map(status).collect())
    }

    fn keep(&mut self, kept: Kept) {
        self.kept.push(kept);
    }
}

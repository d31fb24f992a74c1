//! One submission on its way.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};

use crate::engine::{Kept, Progress, TaskStatus};
use crate::error::TaskFailure;
use crate::loopback::copy::{Piece, copy};
use crate::loopback::fabric::Endpoint;
use crate::loopback::faults::DescriptorFault;
use crate::loopback::{INJECTED, lock};

/// A submission that was taken.
#[derive(Debug)]
pub(super) struct Flight {
    peer: Arc<Endpoint>,
    /// Beside the lock, so that counting does not wait for copies.
    unfinished: AtomicU64,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    /// Polls so far.
    clock: u64,
    tasks: Vec<Task>,
    /// What must outlive the tasks, once nobody holds the ticket.
    kept: Option<Kept>,
}

#[derive(Debug)]
struct Task {
    piece: Piece,
    fault: Option<DescriptorFault>,
    status: TaskStatus,
}

impl Task {
    /// The poll on which it ends by itself.
    fn due(&self) -> Option<u64> {
        match self.fault {
            None | Some(DescriptorFault::Fail { .. } | DescriptorFault::PeerDies) => Some(1),
            Some(DescriptorFault::Late { polls }) => Some(polls.max(1)),
            Some(DescriptorFault::TimesOut { completes_at }) => completes_at.map(|at| at.max(1)),
        }
    }

    /// Bytes that arrive when it ends, and how it ends.
    fn end(&self) -> (u64, TaskStatus) {
        match self.fault {
            None | Some(DescriptorFault::Late { .. } | DescriptorFault::TimesOut { .. }) => {
                (self.piece.len, TaskStatus::Completed)
            }
            Some(DescriptorFault::Fail { landed }) => (
                landed.min(self.piece.len),
                TaskStatus::Failed(TaskFailure::Engine { code: INJECTED }),
            ),
            Some(DescriptorFault::PeerDies) => (0, TaskStatus::Failed(TaskFailure::PeerGone)),
        }
    }

    fn is_running(&self) -> bool {
        !self.status.is_terminal()
    }

    fn kills_peer(&self) -> bool {
        self.is_running() && self.fault == Some(DescriptorFault::PeerDies)
    }
}

impl Flight {
    pub(super) fn new(
        peer: Arc<Endpoint>,
        tasks: impl Iterator<Item = (Piece, Option<DescriptorFault>)>,
    ) -> Self {
        let tasks: Vec<Task> = tasks
            .map(|(piece, fault)| Task {
                piece,
                fault,
                status: TaskStatus::Running,
            })
            .collect();
        Self {
            peer,
            unfinished: AtomicU64::new(u64::try_from(tasks.len()).unwrap_or(u64::MAX)),
            state: Mutex::new(State {
                clock: 0,
                tasks,
                kept: None,
            }),
        }
    }

    pub(super) fn is_to(&self, peer: &Arc<Endpoint>) -> bool {
        Arc::ptr_eq(&self.peer, peer)
    }

    /// Tasks that have not ended.
    pub(super) fn unfinished(&self) -> u64 {
        self.unfinished.load(Ordering::Acquire)
    }

    /// Where every task stands.
    pub(super) fn progress(&self) -> Progress {
        lock(&self.state).progress()
    }

    /// Keeps that until every task has ended.
    pub(super) fn keep(&self, kept: Kept) {
        lock(&self.state).kept = Some(kept);
    }

    /// What was kept, once every task has ended.
    pub(super) fn take_kept_if_ended(&self) -> Option<Kept> {
        let mut state = lock(&self.state);
        if state.progress().is_quiescent() {
            state.kept.take()
        } else {
            None
        }
    }

    /// Polls `polls` times, jumping over those on which nothing happens.
    pub(super) fn advance(&self, owner: &Endpoint, polls: u64) -> Progress {
        let mut state = lock(&self.state);
        let until = state.clock.saturating_add(polls);
        while let Some(next) = state.next_event().filter(|next| *next <= until) {
            state.clock = next;
            state.step(owner, &self.peer);
        }
        // Whether a side is still alive is seen on every poll.
        state.clock = until;
        state.step(owner, &self.peer);
        let progress = state.progress();
        let unfinished = u64::try_from(progress.unfinished()).unwrap_or(u64::MAX);
        self.unfinished.store(unfinished, Ordering::Release);
        progress
    }
}

impl State {
    fn progress(&self) -> Progress {
        Progress::new(self.tasks.iter().map(|task| task.status).collect())
    }

    /// The next poll on which a task ends by itself.
    fn next_event(&self) -> Option<u64> {
        self.tasks
            .iter()
            .filter(|task| task.is_running())
            .filter_map(Task::due)
            .map(|due| due.max(self.clock.saturating_add(1)))
            .min()
    }

    /// What happens on the poll that `clock` counts.
    fn step(&mut self, owner: &Endpoint, peer: &Endpoint) {
        if !owner.is_alive() {
            self.set_running(TaskStatus::Unknown);
            return;
        }
        if peer.is_alive() {
            let death = self.tasks.iter().position(Task::kills_peer);
            self.finish_due(death.unwrap_or(self.tasks.len()));
            if death.is_some() {
                peer.kill();
            }
        }
        if !peer.is_alive() {
            self.set_running(TaskStatus::Failed(TaskFailure::PeerGone));
        }
    }

    /// Ends those of the first `count` tasks that are due.
    fn finish_due(&mut self, count: usize) {
        let clock = self.clock;
        let is_due = |task: &Task| task.is_running() && task.due().is_some_and(|due| due <= clock);
        let due = self.tasks.iter().take(count).filter(|task| is_due(task));
        copy(due.map(|task| (&task.piece, task.end().0)).collect());
        for task in self.tasks.iter_mut().take(count) {
            if is_due(task) {
                task.status = task.end().1;
            } else if task.is_running()
                && matches!(task.fault, Some(DescriptorFault::TimesOut { .. }))
            {
                task.status = TaskStatus::Unknown;
            }
        }
    }

    fn set_running(&mut self, status: TaskStatus) {
        for task in self.tasks.iter_mut().filter(|task| task.is_running()) {
            task.status = status;
        }
    }
}

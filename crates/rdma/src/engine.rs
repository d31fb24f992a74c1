//! What every transfer engine can do.

use std::any::Any;
use std::fmt::Debug;
use std::time::Duration;

use mooncake_pd_layout::{ByteLen, ByteSpan};

use crate::address::Address;
use crate::batch::Submission;
use crate::capabilities::Capabilities;
use crate::error::{OpenError, RegisterError, SubmitError, TaskFailure, UnregisterError};
use crate::location::Location;

/// Memory that can be registered: on the host or on a device.
pub trait Memory {
    /// Where its first byte lies.
    fn base(&self) -> Address;

    /// Its bytes.
    fn len(&self) -> ByteLen;

    /// On the host, or on which device.
    fn location(&self) -> Location {
        Location::Host
    }

    /// Always false: memory holds at least one byte.
    fn is_empty(&self) -> bool {
        false
    }
}

/// How long to wait for tasks to end, 1 ms..; 30 s by default.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Patience(Duration);

impl Patience {
    /// Waits for `duration`, at least a millisecond.
    #[must_use]
    pub fn new(duration: Duration) -> Self {
        Self(duration.max(Duration::from_millis(1)))
    }

    /// The time to wait.
    #[must_use]
    pub const fn get(self) -> Duration {
        self.0
    }
}

impl Default for Patience {
    fn default() -> Self {
        Self(Duration::from_secs(30))
    }
}

/// Where one task stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TaskStatus {
    /// It may read its source and write its destination at any time.
    Running,
    /// Nobody knows (a timeout was reported, or nothing can be): as with
    /// [`Running`](Self::Running), source and destination are still in use.
    Unknown,
    /// All its bytes are there, and it touches nothing any more.
    Completed,
    /// It touches nothing any more; its destination holds any mix of bytes.
    Failed(TaskFailure),
}

impl TaskStatus {
    /// Whether the task has ended, so that its memory is its owner's again.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed(_))
    }
}

/// Where every task of a submission stands; task `n` is its `n`-th descriptor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Progress {
    tasks: Vec<TaskStatus>,
}

impl Progress {
    /// The status of every task.
    #[must_use]
    pub const fn new(tasks: Vec<TaskStatus>) -> Self {
        Self { tasks }
    }

    /// The status of every task.
    #[must_use]
    pub fn tasks(&self) -> &[TaskStatus] {
        &self.tasks
    }

    /// Tasks that have not ended, as far as anybody knows.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        let unfinished = |task: &&TaskStatus| !task.is_terminal();
        self.tasks.iter().filter(unfinished).count()
    }

    /// Whether every task has ended.
    #[must_use]
    pub fn is_quiescent(&self) -> bool {
        self.unfinished() == 0
    }

    /// The first task that failed, and how.
    #[must_use]
    pub fn first_failure(&self) -> Option<(usize, TaskFailure)> {
        self.tasks
            .iter()
            .enumerate()
            .find_map(|(index, task)| match task {
                TaskStatus::Failed(failure) => Some((index, *failure)),
                TaskStatus::Running | TaskStatus::Unknown | TaskStatus::Completed => None,
            })
    }
}

/// How a wait ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Drained {
    /// Every task has ended, well or not.
    Quiescent(Progress),
    /// Some have not, as far as anybody knows. This is not a failure: they may
    /// still read and write, and a later drain may find that they completed.
    Unknown(Progress),
}

impl Drained {
    /// Sorts a progress by whether it is quiescent.
    #[must_use]
    pub fn of(progress: Progress) -> Self {
        if progress.is_quiescent() {
            Self::Quiescent(progress)
        } else {
            Self::Unknown(progress)
        }
    }
}

/// A ticket that can't be released, because tasks behind it may still run.
#[derive(Debug, thiserror::Error)]
#[error("{unfinished} of {tasks} tasks may still run")]
pub struct StillRunning<T: Debug> {
    /// The ticket, for another drain.
    pub ticket: T,
    /// Tasks that have not ended.
    pub unfinished: usize,
    /// All tasks.
    pub tasks: usize,
}

/// What must stay as it is until a submission has ended: leases, plans,
/// registrations, memory. Dropping it gives them back.
pub type Kept = Box<dyn Any + Send>;

/// A transfer engine.
///
/// All calls may come from several threads at once.
///
/// The life of a submission: [`submit`](Self::submit) gives a ticket;
/// [`poll`](Self::poll) and [`drain`](Self::drain) report each task;
/// [`release`](Self::release) takes the ticket back once every task has ended,
/// and not before. Until then the registrations behind it, on both sides, and
/// the memory behind those must stay. Dropping a ticket ends nothing: the tasks
/// run on, and count against the peer's queue. Who can't go on draining
/// [abandons](Self::abandon) the ticket. [`InFlight`](crate::InFlight) does all
/// of this.
pub trait Engine: Send + Sync {
    /// Memory it registers.
    type Memory: Memory;
    /// One registered range.
    type Registration: Debug + Send;
    /// An opened peer, in the generation in which it was opened.
    type Peer: Clone + Debug + Send + Sync;
    /// A submission in flight.
    type Ticket: Debug + Send;

    /// What it can do.
    fn capabilities(&self) -> &Capabilities;

    /// The name its peers [open](Self::open).
    fn name(&self) -> &str;

    /// Registers the bytes `span` of some memory.
    ///
    /// # Errors
    /// They overlap what is registered, are over a limit, or the engine refuses.
    fn register(
        &self,
        memory: &Self::Memory,
        span: ByteSpan,
    ) -> Result<Self::Registration, RegisterError>;

    /// Unregisters one range. There is no way to unregister several at once:
    /// with stock engines one bad address among them spoils the good ones.
    ///
    /// # Errors
    /// It is not registered here, the engine refuses, or it holds the range for
    /// a transfer of its own in flight: then the range is unregistered when that
    /// has ended. [`Loopback`](crate::Loopback) holds none.
    fn unregister(&self, registration: Self::Registration) -> Result<(), UnregisterError>;

    /// Opens a peer as it is now, never from a cache: a cached peer that has
    /// restarted would fail for ever. Success does not mean that it is alive.
    ///
    /// # Errors
    /// Nobody answers to the name.
    fn open(&self, name: &str) -> Result<Self::Peer, OpenError>;

    /// Starts a submission.
    ///
    /// # Errors
    /// It is not taken; then no byte of it moves.
    fn submit(
        &self,
        peer: &Self::Peer,
        submission: Submission<'_>,
    ) -> Result<Self::Ticket, SubmitError>;

    /// Asks where every task stands, without waiting.
    fn poll(&self, ticket: &mut Self::Ticket) -> Progress;

    /// Waits for every task to end, also after one has failed.
    ///
    /// An engine that [can't](Capabilities::drains) answers
    /// [`Drained::Unknown`] once something has gone wrong.
    fn drain(&self, ticket: &mut Self::Ticket, patience: Patience) -> Drained;

    /// Takes a ticket back whose tasks have all ended.
    ///
    /// # Errors
    /// Some may still run; the ticket comes back.
    fn release(&self, ticket: Self::Ticket) -> Result<(), StillRunning<Self::Ticket>>;

    /// Takes a ticket that nobody will drain, and drops `kept` once all its
    /// tasks have ended: on a later call, or never if that is never known.
    fn abandon(&self, ticket: Self::Ticket, kept: Kept);
}

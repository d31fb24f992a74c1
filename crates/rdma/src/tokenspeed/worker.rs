//! Threads that wait for writes.

use std::ffi::CString;
use std::mem;
use std::num::NonZeroU8;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, channel, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::ffi::{Handle, Spans, StartError};
use super::flight::{End, Status};
use crate::error::{EngineCode, SubmitError};
use crate::native::{Guard, Opened, Permit};
use crate::on_thread::OnThread;

/// Submissions that wait for a thread, 1..; over all peers.
const QUEUE: u16 = 1_024;

/// What a thread says that panicked before it was ready.
const PANICKED: EngineCode = EngineCode::new("panic", 1);

/// How long a dropped engine waits for its threads, 3 s.
const GOODBYE: Duration = Duration::from_secs(3);

/// A write to be made, with all that must outlive it.
#[derive(Debug)]
pub(super) struct Job {
    peer: Arc<Opened<CString>>,
    spans: Spans,
    holds: Vec<Arc<Guard<Handle>>>,
    permit: Permit,
    status: Arc<Status>,
}

/// The threads and their queue. They end when it is closed and empty.
#[derive(Debug)]
pub(super) struct Workers {
    queue: Option<SyncSender<Job>>,
    /// Disconnected when all threads have ended.
    ended: Mutex<Receiver<()>>,
}

impl Workers {
    /// Returns when every thread has done what it has to do first.
    pub(super) fn start(
        handle: &Arc<Handle>,
        count: NonZeroU8,
        first: Option<&OnThread>,
    ) -> Result<Self, StartError> {
        let (queue, jobs) = sync_channel(QUEUE.into());
        let (ending, ended) = channel();
        let (starting, started) = channel();
        let jobs = Arc::new(Mutex::new(jobs));
        // Dropped after an error, it ends the threads that there are.
        let workers = Self {
            queue: Some(queue),
            ended: Mutex::new(ended),
        };
        for _ in 0..count.get() {
            let (handle, jobs, ending) = (Arc::clone(handle), Arc::clone(&jobs), ending.clone());
            let (first, starting) = (first.cloned(), starting.clone());
            let thread = std::thread::Builder::new().name("tokenspeed-write".to_owned());
            let spawned = thread.spawn(move || {
                let ready = first.as_ref().map_or(Ok(()), OnThread::run);
                // Nobody listens when another thread has failed already.
                let _ = starting.send(ready);
                drop(starting);
                if ready.is_ok() {
                    work(&handle, &jobs);
                }
                // This may destroy the library's engine.
                drop(handle);
                drop(ending);
            });
            spawned.map_err(|error| StartError::Threads { kind: error.kind() })?;
        }
        drop((starting, ending));
        for _ in 0..count.get() {
            match started.recv() {
                Ok(ready) => ready.map_err(|code| StartError::OnThread { code })?,
                // It panicked.
                Err(_) => return Err(StartError::OnThread { code: PANICKED }),
            }
        }
        Ok(workers)
    }

    /// Gives a write to the next free thread.
    pub(super) fn give(&self, job: Job) -> Result<(), SubmitError> {
        let queue = self.queue.as_ref().ok_or(SubmitError::Closed)?;
        queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(job) => SubmitError::QueueFull {
                peer: job.peer.name().to_owned(),
                outstanding: QUEUE.into(),
                adding: 1,
                limit: QUEUE.into(),
            },
            TrySendError::Disconnected(_) => SubmitError::Closed,
        })
    }
}

impl Drop for Workers {
    /// Waits a moment, so that a process that ends afterwards does not end while
    /// a thread destroys the library's engine; no longer, since a write may
    /// never end.
    fn drop(&mut self) {
        drop(self.queue.take());
        let ended = self.ended.get_mut();
        let ended = ended.unwrap_or_else(PoisonError::into_inner);
        // Nobody sends: it times out or is disconnected.
        let _ = ended.recv_timeout(GOODBYE);
    }
}

impl Job {
    pub(super) const fn new(
        peer: Arc<Opened<CString>>,
        spans: Spans,
        holds: Vec<Arc<Guard<Handle>>>,
        permit: Permit,
        status: Arc<Status>,
    ) -> Self {
        Self {
            peer,
            spans,
            holds,
            permit,
            status,
        }
    }

    fn run(self, handle: &Arc<Handle>) {
        let end = if self.peer.check().is_err() {
            // The peer may have restarted, with other memory at these addresses.
            End::NotBegun
        } else {
            match handle.write(self.peer.handle(), &self.spans, &self.holds) {
                Ok(()) => End::Completed,
                Err(code) => End::Refused(code),
            }
        };
        match end {
            // Before anybody hears of the end, so that who does can unregister.
            End::Completed | End::NotBegun => drop((self.holds, self.permit)),
            End::Refused(_) => {
                self.peer.fail();
                mem::forget((self.holds, self.permit, Arc::clone(handle)));
            }
        }
        self.status.end(end);
    }
}

fn work(handle: &Arc<Handle>, jobs: &Mutex<Receiver<Job>>) {
    loop {
        let next = jobs.lock().unwrap_or_else(PoisonError::into_inner).recv();
        let Ok(job) = next else { return };
        job.run(handle);
    }
}

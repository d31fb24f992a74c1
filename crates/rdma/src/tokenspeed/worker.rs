//! Threads that wait for writes.

use std::ffi::CString;
use std::io;
use std::mem;
use std::num::NonZeroU8;
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use super::CALL;
use super::ffi::{Handle, Spans};
use super::flight::Status;
use crate::error::{EngineCode, SubmitError};
use crate::native::{Guard, Opened, Permit};

/// Submissions that wait for a thread, 1..; over all peers.
const QUEUE: u16 = 1_024;

/// A write to be made, with all that must outlive it.
#[derive(Debug)]
pub(super) struct Job {
    peer: Arc<Opened<CString>>,
    spans: Spans,
    holds: Vec<Arc<Guard<Handle>>>,
    permit: Permit,
    status: Arc<Status>,
}

/// The threads' queue. They end when it is dropped and empty.
#[derive(Debug)]
pub(super) struct Workers {
    queue: SyncSender<Job>,
}

impl Workers {
    pub(super) fn start(handle: &Arc<Handle>, count: NonZeroU8) -> io::Result<Self> {
        let (queue, jobs) = sync_channel(QUEUE.into());
        let jobs = Arc::new(Mutex::new(jobs));
        for _ in 0..count.get() {
            let (handle, jobs) = (Arc::clone(handle), Arc::clone(&jobs));
            std::thread::Builder::new()
                .name("tokenspeed-write".to_owned())
                .spawn(move || work(&handle, &jobs))?;
        }
        Ok(Self { queue })
    }

    /// Gives a write to the next free thread.
    pub(super) fn give(&self, job: Job) -> Result<(), SubmitError> {
        self.queue.try_send(job).map_err(|refused| match refused {
            TrySendError::Full(job) => SubmitError::QueueFull {
                peer: job.peer.name().to_owned(),
                outstanding: QUEUE.into(),
                adding: 1,
                limit: QUEUE.into(),
            },
            TrySendError::Disconnected(_) => SubmitError::Refused {
                code: EngineCode::new(CALL, -1),
            },
        })
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
        let end = handle.write(self.peer.handle(), &self.spans, &self.holds);
        match end {
            // Before anybody hears of the end, so that who does can unregister.
            Ok(()) => drop((self.holds, self.permit)),
            Err(_) => {
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

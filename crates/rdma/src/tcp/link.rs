//! An opened peer: one connection, and a thread that moves bytes over it.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::AtomicBool;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use super::dial::{self, Fate};
use super::pipe::Pipe;
use super::wire::{Generation, SessionId};
use super::worker::{Job, Worker};
use crate::error::SubmitError;

/// Tells workers that wait that the engine goes away.
#[derive(Debug, Default)]
pub(super) struct Closing {
    closed: Mutex<bool>,
    change: Condvar,
}

impl Closing {
    pub(super) fn close(&self) {
        *lock(&self.closed) = true;
        self.change.notify_all();
    }

    /// Waits for `nap`, or until the engine goes away; whether it does.
    pub(super) fn wait(&self, nap: Duration) -> bool {
        let waited = self
            .change
            .wait_timeout_while(lock(&self.closed), nap, |closed| !*closed);
        *waited.unwrap_or_else(PoisonError::into_inner).0
    }
}

/// Where a session stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Standing {
    Open,
    /// The connection is lost.
    Lost,
    /// The peer is gone.
    Gone,
    /// Another engine listens where the peer did.
    Replaced(Generation),
}

/// One session, as its worker and those who submit see it.
#[derive(Debug)]
pub(super) struct Session {
    pub(super) address: SocketAddr,
    pub(super) id: SessionId,
    pub(super) generation: Generation,
    standing: Mutex<Standing>,
}

impl Session {
    pub(super) fn standing(&self) -> Standing {
        *lock(&self.standing)
    }

    pub(super) fn lose(&self) {
        let mut standing = lock(&self.standing);
        if *standing == Standing::Open {
            *standing = Standing::Lost;
        }
    }

    /// Asks the peer to end the session, and notes what is known by then.
    pub(super) fn end(&self) -> Fate {
        let fate = dial::end(self.address, self.id, self.generation);
        *lock(&self.standing) = match fate {
            Fate::Ended | Fate::Unclear => Standing::Lost,
            Fate::Gone => Standing::Gone,
            Fate::Replaced(generation) => Standing::Replaced(generation),
        };
        fate
    }
}

/// The way to a peer. Dropping it lets its worker end what it was given.
#[derive(Debug)]
pub(super) struct Link {
    session: Arc<Session>,
    connection: Arc<TcpStream>,
    quiet: Arc<AtomicBool>,
    jobs: Mutex<Option<Sender<Job>>>,
}

impl Link {
    /// Starts the worker of a session that the peer has welcomed.
    pub(super) fn start(
        pipe: Pipe,
        address: SocketAddr,
        id: SessionId,
        generation: Generation,
        closing: &Arc<Closing>,
    ) -> io::Result<(Self, JoinHandle<()>)> {
        let session = Arc::new(Session {
            address,
            id,
            generation,
            standing: Mutex::new(Standing::Open),
        });
        let (connection, quiet) = (Arc::new(pipe.handle()?), pipe.quiet());
        let (jobs, queue) = channel();
        let worker = Worker::new(pipe, Arc::clone(&session), Arc::clone(closing));
        let thread = std::thread::Builder::new()
            .name("tcp-peer".to_owned())
            .spawn(move || worker.run(&queue))?;
        let link = Self {
            session,
            connection,
            quiet,
            jobs: Mutex::new(Some(jobs)),
        };
        Ok((link, thread))
    }

    /// To break the connection off, also when nobody submits any more.
    pub(super) fn connection(&self) -> Arc<TcpStream> {
        Arc::clone(&self.connection)
    }

    pub(super) fn quiet(&self) -> Arc<AtomicBool> {
        Arc::clone(&self.quiet)
    }

    pub(super) fn generation(&self) -> Generation {
        self.session.generation
    }

    /// Whether the peer, by its name `peer`, can be submitted to. Asks who is
    /// there where the connection is closed.
    pub(super) fn check(&self, peer: &str) -> Result<(), SubmitError> {
        if self.session.standing() == Standing::Open && self.is_closed() {
            self.session.end();
        }
        let peer = || peer.to_owned();
        match self.session.standing() {
            Standing::Open => Ok(()),
            Standing::Lost => Err(SubmitError::PeerFailed { peer: peer() }),
            Standing::Gone => Err(SubmitError::PeerGone { peer: peer() }),
            Standing::Replaced(current) => Err(SubmitError::StalePeer {
                peer: peer(),
                opened: self.session.generation,
                current,
            }),
        }
    }

    fn is_closed(&self) -> bool {
        match self.connection.peek(&mut [0]) {
            Ok(count) => count == 0,
            Err(error) => !matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted),
        }
    }

    pub(super) fn give(&self, job: Job) -> Result<(), SubmitError> {
        let jobs = lock(&self.jobs);
        let jobs = jobs.as_ref().ok_or(SubmitError::Closed)?;
        jobs.send(job).map_err(|_| SubmitError::Closed)
    }

    /// Takes no more, so that the worker ends.
    pub(super) fn close(&self) {
        drop(lock(&self.jobs).take());
    }
}

/// Locks what a panic elsewhere can't have broken.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

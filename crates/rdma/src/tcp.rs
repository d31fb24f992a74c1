//! An engine between processes over TCP, without unsafe code and without a
//! library: the default where there is no Mooncake.
//!
//! It enforces on both sides what a network card enforces: what is not
//! registered is neither read nor written, whatever a peer asks for. It is not
//! authenticated: whoever reaches its port can read and write what is
//! registered, so it listens on 127.0.0.1 unless told otherwise.
//!
//! - A task is completed when the peer has said that its bytes are in place.
//!   Tasks of a submission are done in order; where the peer refuses one, it and
//!   those behind it fail with [`TaskFailure::Denied`](crate::TaskFailure).
//! - A range that a peer writes is unregistered between two copies, for which
//!   unregistering waits; no byte of it changes after that. A range that a
//!   transfer of this engine uses is unregistered when that has ended.
//! - When a connection breaks, its transfers end when it is sure that nothing
//!   of them lands any more: the peer has said so over a new connection,
//!   another engine listens in its place, or nobody does (a peer closes its
//!   port when its threads have ended). Until then they are `Unknown`, as are
//!   those to a peer that has been silent for a second.
//! - Each [`open`](Engine::open) makes a connection and a thread that moves its
//!   submissions one after the other; [`submit`](Engine::submit) only asks who
//!   is there where a connection has been closed, which can last two seconds.
//!   Threads of a peer wait for the lock of the memory that they read or write:
//!   who drops an engine must hold none.
//!
//! # Format
//!
//! Version 1. Numbers are little-endian. Whoever connects sends a hello and gets
//! an answer, 40 bytes each:
//!
//! | hello | | answer | |
//! |---|---|---|---|
//! | magic | `mpdtcp?\n` | magic | `mpdtcp!\n` |
//! | u32 | version | u32 | version |
//! | u32 | 1 session, 2 end that session | u32 | 0 other version, 1 welcome, 2 ended, 3 not ended yet, 4 other generation, 5 full |
//! | u64 | generation of the sender | u64 | generation of the answering engine, not 0 |
//! | u64 | session, any number | u64 | that number |
//! | u64 | generation that is meant, 0 for any | u64 | 0 |
//!
//! A generation is a random number that an engine has for as long as it lives.
//! After a welcome, requests follow one another: u32 1 write, 2 read; u32 count of
//! descriptors, 1..=16,384; u64 bytes of all descriptors; then u64 address and u64
//! bytes of each. The answers are messages of 40 bytes: u64 kind, two u32, three u64.
//!
//! | kind | | numbers |
//! |---|---|---|
//! | 1 | go: a write's bytes follow the request, those of a read its parts | |
//! | 2 | done | count of the first descriptors that are done, 0 |
//! | 3 | denied | index, code; address, length or other index, region's end |
//! | 4 | part of a read | 0, 0; bytes that follow |
//!
//! Codes: 1 no bytes, 2 not registered, 3 past the region's end, 4 written twice.
//! A request ends with all done or with one denied; a write's bytes are sent in
//! full before that.
//!
//! A connection costs at most 2 MiB beside registered memory, there are at most
//! [as many sessions](TcpConfig::sessions) as configured and 32 connections that have
//! not said what they are, and those have
//! [a time limit](TcpConfig::greeting_limit). What is not in this format closes the
//! connection.

mod config;
mod cursor;
mod dial;
mod flight;
mod link;
mod overlap;
mod pipe;
mod serve;
mod server;
mod table;
mod wire;
mod worker;

#[cfg(test)]
mod bench;
#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod hostile_tests;
#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod impostor_tests;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod traffic_tests;

use std::hash::{BuildHasher, RandomState};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, SystemTime};

use mooncake_pd_layout::ByteSpan;

use crate::batch::Submission;
use crate::capabilities::Capabilities;
use crate::engine::{Drained, Engine, Kept, Patience, Progress, StillRunning};
use crate::error::{EngineCode, OpenError, RegisterError, Side, SubmitError, UnregisterError};
use crate::memory::HostBuffer;
use crate::name::PeerName;
use crate::native::{Guard, Opened, Orphans, Registry, Ticket, Window};

pub use config::{StartError, TcpConfig};

use dial::{DialError, dial};
use flight::{TcpFlight, Track};
use link::{Closing, Link};
use server::{Listening, Server};
use table::Table;
use wire::{Generation, Hello, Purpose, SessionId, VERSION, Verdict};
use worker::Job;

/// The engine's name, and that of its numbers.
const TCP: &str = "tcp";
/// The connection broke, and the peer has said that nothing more of it lands.
const LOST: EngineCode = EngineCode::new(TCP, -10);
/// Something else than an engine answered, or nothing in time.
const NO_ANSWER: EngineCode = EngineCode::new(TCP, -11);
/// An engine of another version.
const OTHER_VERSION: EngineCode = EngineCode::new(TCP, -12);
/// The peer has as many sessions as it takes.
const FULL: EngineCode = EngineCode::new(TCP, -13);
/// The system has no thread or no descriptor left.
const EXHAUSTED: EngineCode = EngineCode::new(TCP, -14);

/// An engine over TCP, and the port that its peers open.
///
/// Dropping it closes its connections and ends its threads, within seconds.
/// Transfers in flight fail, or stay unknown for ever, with all that they keep,
/// where a peer does not say that it has stopped.
#[derive(Debug)]
pub struct TcpLoopback {
    name: String,
    capabilities: Capabilities,
    generation: Generation,
    stall: Duration,
    greeting: Duration,
    registry: Registry<Table>,
    window: Arc<Window>,
    orphans: Arc<Orphans<TcpFlight>>,
    closing: Arc<Closing>,
    workers: Mutex<Vec<Hired>>,
    /// Dropped when the workers are gone, which may use it.
    _listening: Listening,
}

/// A worker thread, its connection, and the peer that it works for.
#[derive(Debug)]
struct Hired {
    peer: Weak<Opened<Link>>,
    connection: Arc<TcpStream>,
    thread: JoinHandle<()>,
}

/// A range registered with a [`TcpLoopback`]. Dropping it unregisters the range,
/// when no transfer of this engine uses it any more.
#[derive(Debug)]
pub struct TcpRegistration {
    guard: Arc<Guard<Table>>,
}

/// A peer of a [`TcpLoopback`], in the generation in which it was opened. When
/// its connection was lost nothing more is submitted to it:
/// [open](Engine::open) it again.
#[derive(Clone, Debug)]
pub struct TcpPeer {
    opened: Arc<Opened<Link>>,
}

/// A submission in flight over a [`TcpLoopback`].
#[derive(Debug)]
pub struct TcpTicket {
    ticket: Ticket<TcpFlight>,
}

impl TcpLoopback {
    /// Starts an engine and listens.
    ///
    /// # Errors
    /// It can't listen there, or a limit is too large.
    pub fn start(config: &TcpConfig) -> Result<Self, StartError> {
        config.check()?;
        let (host, port) = (config.host(), config.wanted_port());
        let failed = |error| StartError::Listen { host, port, error };
        let listener = TcpListener::bind((host, port)).map_err(failed)?;
        let name = listener.local_addr().map_err(failed)?.to_string();
        let table = Arc::<Table>::default();
        let generation = random();
        let server = Server::new(
            Arc::clone(&table),
            generation,
            config.max_sessions(),
            config.greeting(),
            config.stall(),
        );
        let listening = Listening::start(listener, Arc::new(server))
            .map_err(|error| StartError::Thread { error })?;
        let (registration, submission) = (config.registration_limits(), config.submission_limits());
        Ok(Self {
            name,
            capabilities: Capabilities::writes(TCP, registration, submission)
                .with_drain()
                .with_per_task_status()
                .with_reads(),
            generation,
            stall: config.stall(),
            greeting: config.greeting(),
            registry: Registry::new(table, registration),
            window: Window::new(submission.descriptors()),
            orphans: Orphans::new(),
            closing: Arc::default(),
            workers: Mutex::default(),
            _listening: listening,
        })
    }

    fn connect(&self, name: &str, address: SocketAddr) -> Result<TcpPeer, OpenError> {
        let refused = |code| OpenError::Refused {
            name: name.to_owned(),
            code,
        };
        let no_answer = |code| OpenError::NoAnswer {
            name: name.to_owned(),
            code,
        };
        let id = SessionId {
            client: self.generation,
            number: random(),
        };
        let hello = Hello {
            version: VERSION,
            purpose: Purpose::Session,
            session: id,
            expected: 0,
        };
        let (pipe, answer) =
            dial(address, hello, self.stall, self.greeting).map_err(|error| match error {
                DialError::Refused | DialError::Unreachable => OpenError::Unreachable {
                    name: name.to_owned(),
                },
                DialError::NoAnswer => no_answer(NO_ANSWER),
                DialError::Version(_) => no_answer(OTHER_VERSION),
            })?;
        if answer.verdict != Verdict::Welcome {
            return Err(refused(FULL));
        }
        let (link, thread) = Link::start(pipe, address, id, answer.generation, &self.closing)
            .map_err(|_| refused(EXHAUSTED))?;
        let connection = link.connection();
        let opened = Opened::new(name.to_owned(), link);
        let mut workers = self.workers.lock().unwrap_or_else(PoisonError::into_inner);
        workers.retain(|worker| !worker.thread.is_finished());
        workers.push(Hired {
            peer: Arc::downgrade(&opened),
            connection,
            thread,
        });
        Ok(TcpPeer { opened })
    }
}

/// A number that nobody guesses, never 0.
fn random() -> u64 {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    RandomState::new()
        .hash_one((now.unwrap_or_default(), std::process::id()))
        .max(1)
}

impl Engine for TcpLoopback {
    type Memory = HostBuffer;
    type Registration = TcpRegistration;
    type Peer = TcpPeer;
    type Ticket = TcpTicket;

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn register(
        &self,
        memory: &HostBuffer,
        span: ByteSpan,
    ) -> Result<TcpRegistration, RegisterError> {
        let guard = self.registry.register(memory, span)?;
        Ok(TcpRegistration { guard })
    }

    fn unregister(&self, registration: TcpRegistration) -> Result<(), UnregisterError> {
        self.orphans.sweep();
        registration.guard.end()
    }

    fn open(&self, name: &str) -> Result<TcpPeer, OpenError> {
        let name = name.parse::<PeerName>()?.to_string();
        let mut last = OpenError::Unreachable { name: name.clone() };
        // A host may have several addresses, of which one answers.
        for address in name.to_socket_addrs().into_iter().flatten() {
            match self.connect(&name, address) {
                Ok(peer) => return Ok(peer),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn submit(&self, peer: &TcpPeer, submission: Submission<'_>) -> Result<TcpTicket, SubmitError> {
        self.orphans.sweep();
        let (name, link) = (peer.opened.name(), peer.opened.handle());
        let (bytes, limit) = (submission.bytes(), self.capabilities.submission().bytes());
        if bytes > limit {
            return Err(SubmitError::TooManyBytes { bytes, limit });
        }
        let descriptors = submission.descriptors();
        let holds = self.registry.hold(descriptors)?;
        overlap::check(submission, link.generation() == self.generation)?;
        let local = descriptors
            .iter()
            .map(|one| (one.local().get(), one.len().get()));
        let local = self
            .registry
            .port()
            .locate(Side::Local, local)
            .map_err(|(index, violation)| SubmitError::Descriptor { index, violation })?;
        let permit = self.window.take(name, descriptors.len())?;
        link.check(name)?;
        let track = Track::new(descriptors.len(), link.quiet());
        link.give(Job {
            operation: submission.operation(),
            local,
            remote: descriptors
                .iter()
                .map(|one| (one.remote().get(), one.len().get()))
                .collect(),
            holds,
            permit,
            track: Arc::clone(&track),
        })?;
        Ok(TcpTicket {
            ticket: self.orphans.ticket(TcpFlight::new(track)),
        })
    }

    fn poll(&self, ticket: &mut TcpTicket) -> Progress {
        ticket.ticket.poll()
    }

    fn drain(&self, ticket: &mut TcpTicket, patience: Patience) -> Drained {
        ticket.ticket.drain(patience)
    }

    fn release(&self, ticket: TcpTicket) -> Result<(), StillRunning<TcpTicket>> {
        ticket.ticket.release().map_err(|still| StillRunning {
            ticket: TcpTicket {
                ticket: still.ticket,
            },
            unfinished: still.unfinished,
            tasks: still.tasks,
        })
    }

    fn abandon(&self, ticket: TcpTicket, kept: Kept) {
        ticket.ticket.abandon(kept);
    }
}

impl Drop for TcpLoopback {
    fn drop(&mut self) {
        self.closing.close();
        let workers = self.workers.get_mut();
        let workers = std::mem::take(workers.unwrap_or_else(PoisonError::into_inner));
        for worker in &workers {
            if let Some(peer) = worker.peer.upgrade() {
                peer.handle().close();
            }
            // It may be closed already.
            let _ = worker.connection.shutdown(Shutdown::Both);
        }
        for worker in workers {
            // It does not panic.
            let _ = worker.thread.join();
        }
    }
}

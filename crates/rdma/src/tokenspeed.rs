//! The transfer engine of the Python package `tokenspeed_mooncake`.
//!
//! It only writes, and a write blocks until it ends: threads of ours wait for
//! it. All descriptors of a submission share one status.
//!
//! A write that fails says nothing of what still runs, and nothing ever will:
//! its tasks stay [`Unknown`](crate::TaskStatus::Unknown), its memory,
//! registrations and whatever was [kept](Engine::abandon) with it stay for as
//! long as the process lives, and so does the library's engine. Its descriptors
//! count against the peer's queue from then on, under every handle of that
//! name. The library can't reach a peer again that was restarted under its old
//! name, either. So after a failure that peer needs a new [`Tokenspeed`].

mod config;
mod ffi;
mod flight;
mod worker;

use std::ffi::CString;
use std::sync::Arc;

use mooncake_pd_layout::ByteSpan;
use mooncake_transfer_engine_sys::tokenspeed::Functions;

use crate::address::Address;
use crate::batch::{Operation, Submission};
use crate::capabilities::Capabilities;
use crate::engine::{Drained, Engine, Kept, Patience, Progress, StillRunning};
use crate::error::{EngineCode, OpenError, RegisterError, SubmitError, UnregisterError};
use crate::name::PeerName;
use crate::native::{Guard, NativeMemory, Opened, Orphans, Port, Registry, Ticket, Window};

pub use config::TokenspeedConfig;
pub use ffi::StartError;
pub use mooncake_transfer_engine_sys::tokenspeed::Library;

use ffi::{Handle, Spans};
use flight::{Status, WriteFlight};
use worker::{Job, Workers};

/// Numbers that calls of the library return.
const CALL: &str = "tokenspeed";

/// A tokenspeed engine of this process. After a failure its memory stays in
/// quarantine; see the [module](self).
///
/// Dropping it runs what was submitted to its end, and waits at most 3 s for
/// that. The library's engine is destroyed when the last registration and write
/// is gone.
#[derive(Debug)]
pub struct Tokenspeed {
    name: String,
    capabilities: Capabilities,
    registry: Registry<Handle>,
    window: Arc<Window>,
    orphans: Arc<Orphans<WriteFlight>>,
    workers: Workers,
}

/// A range registered with a [`Tokenspeed`]. Dropping it unregisters the range,
/// when no transfer uses it any more.
#[derive(Debug)]
pub struct TokenspeedRegistration {
    guard: Arc<Guard<Handle>>,
}

/// A peer of a [`Tokenspeed`]. After a failed transfer nothing more is
/// submitted to it.
#[derive(Clone, Debug)]
pub struct TokenspeedPeer {
    opened: Arc<Opened<CString>>,
}

/// A submission in flight over a [`Tokenspeed`].
#[derive(Debug)]
pub struct TokenspeedTicket {
    ticket: Ticket<WriteFlight>,
    status: Arc<Status>,
}

impl TokenspeedTicket {
    /// What the engine said when the write failed; its tasks are unknown.
    #[must_use]
    pub fn refusal(&self) -> Option<EngineCode> {
        self.status.refusal()
    }
}

impl Tokenspeed {
    /// Starts an engine, its threads and its listening port.
    ///
    /// # Errors
    /// The library can't, or the system has no threads.
    pub fn start(library: &Library, config: &TokenspeedConfig) -> Result<Self, StartError> {
        Self::with_functions(*library.functions(), config)
    }

    fn with_functions(functions: Functions, config: &TokenspeedConfig) -> Result<Self, StartError> {
        let handle = Arc::new(Handle::start(functions, config)?);
        let submission = config.submission_limits();
        let registration = config.registration_limits();
        let workers = Workers::start(&handle, config.worker_count(), config.first_on_thread())?;
        Ok(Self {
            name: handle.name().to_owned(),
            capabilities: Capabilities::writes(Handle::NAME, registration, submission),
            registry: Registry::new(handle, registration),
            window: Window::new(submission.descriptors()),
            orphans: Orphans::new(),
            workers,
        })
    }
}

impl Engine for Tokenspeed {
    type Memory = NativeMemory;
    type Registration = TokenspeedRegistration;
    type Peer = TokenspeedPeer;
    type Ticket = TokenspeedTicket;

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn register(
        &self,
        memory: &NativeMemory,
        span: ByteSpan,
    ) -> Result<TokenspeedRegistration, RegisterError> {
        let guard = self.registry.register(memory, span)?;
        Ok(TokenspeedRegistration { guard })
    }

    fn unregister(&self, registration: TokenspeedRegistration) -> Result<(), UnregisterError> {
        self.orphans.sweep();
        registration.guard.end()
    }

    /// Asks nobody: the library looks a peer up with the first write to it.
    fn open(&self, name: &str) -> Result<TokenspeedPeer, OpenError> {
        let name = name.parse::<PeerName>()?.to_string();
        let target = CString::new(name.as_str()).map_err(|_| OpenError::Refused {
            name: name.clone(),
            code: EngineCode::new(CALL, -1),
        })?;
        Ok(TokenspeedPeer {
            opened: Opened::new(name, target),
        })
    }

    fn submit(
        &self,
        peer: &TokenspeedPeer,
        submission: Submission<'_>,
    ) -> Result<TokenspeedTicket, SubmitError> {
        self.orphans.sweep();
        let opened = &peer.opened;
        opened.check()?;
        if submission.operation() == Operation::Read {
            let engine = Handle::NAME;
            return Err(SubmitError::CannotRead { engine });
        }
        let limit = self.capabilities.submission().bytes();
        let bytes = submission.bytes();
        if bytes > limit {
            return Err(SubmitError::TooManyBytes { bytes, limit });
        }
        let descriptors = submission.descriptors();
        let holds = self.registry.hold(descriptors)?;
        let permit = self.window.take(opened.name(), descriptors.len())?;
        let status = Arc::<Status>::default();
        self.workers.give(Job::new(
            Arc::clone(opened),
            Spans::of(descriptors),
            holds,
            permit,
            Arc::clone(&status),
        ))?;
        let flight = WriteFlight::new(Arc::clone(&status), descriptors.len());
        Ok(TokenspeedTicket {
            ticket: self.orphans.ticket(flight),
            status,
        })
    }

    fn poll(&self, ticket: &mut TokenspeedTicket) -> Progress {
        ticket.ticket.poll()
    }

    fn drain(&self, ticket: &mut TokenspeedTicket, patience: Patience) -> Drained {
        ticket.ticket.drain(patience)
    }

    fn release(&self, ticket: TokenspeedTicket) -> Result<(), StillRunning<TokenspeedTicket>> {
        let TokenspeedTicket { ticket, status } = ticket;
        ticket.release().map_err(|still| StillRunning {
            ticket: TokenspeedTicket {
                ticket: still.ticket,
                status,
            },
            unfinished: still.unfinished,
            tasks: still.tasks,
        })
    }

    fn abandon(&self, ticket: TokenspeedTicket, kept: Kept) {
        ticket.ticket.abandon(kept);
    }
}

impl Port for Handle {
    type Memory = NativeMemory;

    const NAME: &'static str = "tokenspeed";
    const OVERLAP: EngineCode = EngineCode::new(CALL, -7);

    fn reaches_devices(&self) -> bool {
        // The library is built with CUDA; without a driver it refuses itself.
        true
    }

    fn register(&self, memory: &NativeMemory, span: ByteSpan) -> Result<(), EngineCode> {
        self.register_memory(memory, span)
    }

    fn unregister(&self, start: Address) -> Result<(), EngineCode> {
        self.unregister_memory(start)
    }
}

//! Mooncake's Transfer Engine, through its official C API.
//!
//! Each descriptor is a task with a status of its own; a failed batch is
//! drained, and only then are its memory and registrations let go. What proves
//! that a batch has ended is that the library frees it.
//!
//! Bounds: a peer that dies in mid-transfer is noticed by the library's own
//! connections; until then its tasks are reported as running, and memory stays.
//! After a failed write over TCP, bytes that were already on the way may still
//! arrive at a living peer for a moment: its owner waits for its own side of
//! the protocol before it uses the destination again.
//!
//! Over TCP the library makes a connection for every descriptor, unless
//! `MC_TCP_ENABLE_CONNECTION_POOL=1` is in the environment: descriptors of 4 KiB
//! then took 30 us instead of 76 (`benches/official`).
//!
//! With the transport that copies between devices of one machine
//! (`MC_INTRANODE_NVLINK`), the library ties copies to a stream of the thread
//! that submits: that thread has to live until every task has ended.

mod config;
mod ffi;
mod flight;

use std::sync::Arc;

use mooncake_pd_layout::ByteSpan;

use crate::batch::Submission;
use crate::capabilities::Capabilities;
use crate::engine::{Drained, Engine, Kept, Patience, Progress, StillRunning};
use crate::error::{EngineCode, OpenError, RegisterError, SubmitError, UnregisterError};
use crate::name::PeerName;
use crate::native::{Guard, NativeMemory, Opened, Orphans, Port, Registry, Ticket, Window};

pub use config::{MooncakeConfig, Transport};
pub use ffi::StartError;
pub use mooncake_transfer_engine_sys::official::Library;

use ffi::Handle;
use flight::BatchFlight;

/// Numbers that calls of the library return.
const CALL: &str = "mooncake";
/// States of tasks, a list of numbers of its own.
const TASK: &str = "mooncake task state";

/// A Mooncake engine of this process.
///
/// Dropping it while something is in flight keeps the library's engine, and
/// all memory in flight, for as long as the process lives.
#[derive(Debug)]
pub struct Mooncake {
    name: String,
    capabilities: Capabilities,
    registry: Registry<Handle>,
    window: Arc<Window>,
    orphans: Arc<Orphans<BatchFlight>>,
}

/// A range registered with a [`Mooncake`]. Dropping it unregisters the range,
/// when no transfer uses it any more.
#[derive(Debug)]
pub struct MooncakeRegistration {
    guard: Arc<Guard<Handle>>,
}

/// A peer of a [`Mooncake`], as it was when it was opened. After a failed
/// transfer nothing more is submitted to it: [open](Engine::open) it again.
#[derive(Clone, Debug)]
pub struct MooncakePeer {
    opened: Arc<Opened<ffi::Segment>>,
}

/// A submission in flight over a [`Mooncake`].
#[derive(Debug)]
pub struct MooncakeTicket {
    ticket: Ticket<BatchFlight>,
}

impl Mooncake {
    /// Starts an engine, its threads and its listening port.
    ///
    /// # Errors
    /// The library can't, or its transport is missing.
    pub fn start(library: &Library, config: &MooncakeConfig) -> Result<Self, StartError> {
        let handle = Handle::start(*library.functions(), config)?;
        Ok(Self::with_handle(handle, config))
    }

    fn with_handle(handle: Handle, config: &MooncakeConfig) -> Self {
        let submission = config.submission_limits();
        let registration = config.registration_limits();
        Self {
            name: handle.name().to_owned(),
            capabilities: Capabilities::writes(Handle::NAME, registration, submission)
                .with_drain()
                .with_per_task_status()
                .with_reads(),
            registry: Registry::new(Arc::new(handle), registration),
            window: Window::new(submission.descriptors()),
            orphans: Orphans::new(),
        }
    }

    /// Submissions whose tickets are gone and that have not ended.
    #[cfg(test)]
    fn abandoned(&self) -> usize {
        self.orphans.count()
    }
}

impl Engine for Mooncake {
    type Memory = NativeMemory;
    type Registration = MooncakeRegistration;
    type Peer = MooncakePeer;
    type Ticket = MooncakeTicket;

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
    ) -> Result<MooncakeRegistration, RegisterError> {
        let guard = self.registry.register(memory, span)?;
        Ok(MooncakeRegistration { guard })
    }

    fn unregister(&self, registration: MooncakeRegistration) -> Result<(), UnregisterError> {
        self.orphans.sweep();
        registration.guard.end()
    }

    fn open(&self, name: &str) -> Result<MooncakePeer, OpenError> {
        let name = name.parse::<PeerName>()?.to_string();
        let segment = self
            .registry
            .port()
            .open(&name)
            .map_err(|code| OpenError::NoAnswer {
                name: name.clone(),
                code,
            })?;
        Ok(MooncakePeer {
            opened: Opened::new(name, segment),
        })
    }

    fn submit(
        &self,
        peer: &MooncakePeer,
        submission: Submission<'_>,
    ) -> Result<MooncakeTicket, SubmitError> {
        self.orphans.sweep();
        let opened = &peer.opened;
        opened.check()?;
        let limit = self.capabilities.submission().bytes();
        let bytes = submission.bytes();
        if bytes > limit {
            return Err(SubmitError::TooManyBytes { bytes, limit });
        }
        let descriptors = submission.descriptors();
        let holds = self.registry.hold(descriptors)?;
        let permit = self.window.take(opened.name(), descriptors.len())?;
        let batch = self
            .registry
            .port()
            .submit(opened.handle(), submission)
            .map_err(|code| {
                opened.fail();
                SubmitError::Refused { code }
            })?;
        let flight = BatchFlight::new(batch, Arc::clone(opened), holds, permit);
        Ok(MooncakeTicket {
            ticket: self.orphans.ticket(flight),
        })
    }

    fn poll(&self, ticket: &mut MooncakeTicket) -> Progress {
        ticket.ticket.poll()
    }

    fn drain(&self, ticket: &mut MooncakeTicket, patience: Patience) -> Drained {
        ticket.ticket.drain(patience)
    }

    fn release(&self, ticket: MooncakeTicket) -> Result<(), StillRunning<MooncakeTicket>> {
        ticket.ticket.release().map_err(|still| StillRunning {
            ticket: MooncakeTicket {
                ticket: still.ticket,
            },
            unfinished: still.unfinished,
            tasks: still.tasks,
        })
    }

    fn abandon(&self, ticket: MooncakeTicket, kept: Kept) {
        ticket.ticket.abandon(kept);
    }
}

impl Port for Handle {
    type Memory = NativeMemory;

    const NAME: &'static str = "mooncake";
    const OVERLAP: EngineCode = EngineCode::new(CALL, -7);

    fn reaches_devices(&self) -> bool {
        self.devices()
    }

    fn register(&self, memory: &NativeMemory, span: ByteSpan) -> Result<(), EngineCode> {
        self.register_memory(memory, span)
    }

    fn unregister(&self, start: crate::address::Address) -> Result<(), EngineCode> {
        self.unregister_memory(start)
    }
}

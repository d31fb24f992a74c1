//! An engine between endpoints of one process.

mod copy;
mod fabric;
mod faults;
mod flight;
mod overflow;
mod resolve;
mod table;

#[cfg(test)]
mod bench;
#[cfg(test)]
mod fault_tests;
#[cfg(test)]
mod overflow_tests;
#[cfg(test)]
mod race_tests;
#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod registration_tests;
#[cfg(test)]
mod rule_tests;
#[cfg(test)]
#[expect(clippy::arithmetic_side_effects, reason = "an overflow fails the test")]
mod traffic_tests;

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mooncake_pd_layout::ByteSpan;

use crate::address::Address;
use crate::batch::{Operation, Submission};
use crate::capabilities::Capabilities;
use crate::engine::{Drained, Engine, Kept, Memory, Patience, Progress, StillRunning};
use crate::error::{EngineCode, OpenError, RegisterError, SubmitError, UnregisterError};
use crate::memory::HostBuffer;

use fabric::Endpoint;
pub use fabric::{AttachError, Fabric};
use faults::Injector;
pub use faults::{DescriptorFault, FaultPlan};
use flight::Flight;
use resolve::RawDescriptor;

/// The numbers it returns: those of Mooncake's registration calls.
const NAMESPACE: &str = "loopback";
const EMPTY: EngineCode = EngineCode::new(NAMESPACE, -1);
const NOT_REGISTERED: EngineCode = EngineCode::new(NAMESPACE, -3);
const OVERLAP: EngineCode = EngineCode::new(NAMESPACE, -7);
const INJECTED: EngineCode = EngineCode::new(NAMESPACE, -100);

/// An engine between endpoints of one [`Fabric`], all in this process.
///
/// It enforces what a network card enforces, and looks at addresses only, so
/// that it does not believe what [`bind`](crate::bind) says:
/// - source and destination are registered, and each descriptor lies within one
///   region on each side;
/// - a descriptor moves at least one byte;
/// - destinations of a submission overlap neither each other nor its sources;
/// - ranges registered at one endpoint don't overlap (touching is fine);
/// - no more descriptors are in flight to a peer than it queues.
///
/// Tasks move when they are polled, and only then. Without faults, the first
/// poll completes all of them at the speed of plain copies. A poll is its unit
/// of time: a millisecond of [`Patience`] is one poll, so that nothing ever
/// sleeps and every run is the same.
///
/// Unregistering does not stop a task that runs: its bytes land all the same,
/// as they do with a network card that was not drained. Dropping the engine is
/// the end of its process: the endpoint is gone and its own tasks move no more.
#[derive(Debug)]
pub struct Loopback {
    capabilities: Capabilities,
    fabric: Fabric,
    endpoint: Arc<Endpoint>,
    flights: Mutex<Vec<Arc<Flight>>>,
    injector: Mutex<Injector>,
}

/// A range registered with a [`Loopback`].
#[derive(Debug)]
pub struct LoopbackRegistration {
    address: Address,
}

/// A peer of a [`Loopback`], in the generation in which it was opened.
#[derive(Clone, Debug)]
pub struct LoopbackPeer {
    endpoint: Arc<Endpoint>,
}

/// A submission in flight over a [`Loopback`].
#[derive(Debug)]
pub struct LoopbackTicket {
    flight: Arc<Flight>,
}

impl Loopback {
    fn new(fabric: Fabric, endpoint: Arc<Endpoint>, capabilities: Capabilities) -> Self {
        Self {
            capabilities,
            fabric,
            endpoint,
            flights: Mutex::default(),
            injector: Mutex::default(),
        }
    }

    /// Its name and its generation: how many endpoints of that name there have
    /// been, 1...
    #[must_use]
    pub fn identity(&self) -> (&str, u64) {
        (self.endpoint.name(), self.endpoint.generation())
    }

    /// Injects faults from now on; descriptors and registrations count from
    /// here. Replaces faults injected before, but not those in flight.
    pub fn inject(&self, plan: FaultPlan) {
        *lock(&self.injector) = Injector::new(plan);
    }

    /// Lets time pass: polls every submission in flight `polls` times, also
    /// those whose tickets were dropped or abandoned.
    pub fn advance(&self, polls: u64) {
        let flights = lock(&self.flights).clone();
        for flight in flights {
            flight.advance(&self.endpoint, polls);
        }
        self.sweep();
    }

    /// Forgets abandoned flights that have ended, with what they kept.
    fn sweep(&self) {
        let mut ended = Vec::new();
        lock(&self.flights).retain(|flight| {
            let kept = flight.take_kept_if_ended();
            let running = kept.is_none();
            ended.extend(kept);
            running
        });
        // What they kept may call the engine again, so the lock is free by now.
        drop(ended);
    }

    fn register_raw(
        &self,
        address: u64,
        len: u64,
        memory: &HostBuffer,
        offset: u64,
    ) -> Result<(), RegisterError> {
        if !self.endpoint.is_alive() {
            return Err(RegisterError::Closed);
        }
        if lock(&self.injector).refuses_registration() {
            return Err(RegisterError::Refused {
                start: address,
                end: address.saturating_add(len),
                code: INJECTED,
            });
        }
        let limits = self.capabilities.registration();
        self.endpoint.register(address, len, memory, offset, limits)
    }

    /// Submits raw numbers, as a network card takes them.
    fn submit_raw(
        &self,
        peer: &LoopbackPeer,
        operation: Operation,
        descriptors: &[RawDescriptor],
    ) -> Result<LoopbackTicket, SubmitError> {
        if !self.endpoint.is_alive() {
            return Err(SubmitError::Closed);
        }
        self.fabric.check(&peer.endpoint)?;
        let pieces = resolve::resolve(
            operation,
            descriptors,
            &self.endpoint.table(),
            &peer.endpoint.table(),
        )?;
        let mut flights = lock(&self.flights);
        let outstanding = flights
            .iter()
            .filter(|flight| flight.is_to(&peer.endpoint))
            .map(|flight| flight.unfinished())
            .fold(0, u64::saturating_add);
        let adding = u64::try_from(pieces.len()).unwrap_or(u64::MAX);
        let limit = self.capabilities.submission().descriptors();
        if outstanding.saturating_add(adding) > u64::from(limit) {
            return Err(SubmitError::QueueFull {
                peer: peer.endpoint.name().to_owned(),
                outstanding,
                adding,
                limit,
            });
        }
        let flight = {
            let mut injector = lock(&self.injector);
            let spill = injector.spill(&peer.endpoint, outstanding, adding);
            let tasks = (0..).zip(pieces);
            let tasks = tasks.map(|(index, piece)| (piece, injector.next(spill, index)));
            let flight = Arc::new(Flight::new(Arc::clone(&peer.endpoint), tasks));
            if let Some(spill) = spill {
                injector.submitted(&peer.endpoint, spill, &flight);
            }
            flight
        };
        flights.push(Arc::clone(&flight));
        Ok(LoopbackTicket { flight })
    }
}

impl Engine for Loopback {
    type Memory = HostBuffer;
    type Registration = LoopbackRegistration;
    type Peer = LoopbackPeer;
    type Ticket = LoopbackTicket;

    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    fn name(&self) -> &str {
        self.endpoint.name()
    }

    fn register(
        &self,
        memory: &HostBuffer,
        span: ByteSpan,
    ) -> Result<LoopbackRegistration, RegisterError> {
        let outside = RegisterError::OutsideMemory {
            start: span.start().get(),
            end: span.end(),
            len: memory.len().get(),
        };
        if span.end() > memory.len().get() {
            return Err(outside);
        }
        let address = memory.base().offset(span.start()).map_err(|_| outside)?;
        self.register_raw(address.get(), span.len().get(), memory, span.start().get())?;
        Ok(LoopbackRegistration { address })
    }

    fn unregister(&self, registration: LoopbackRegistration) -> Result<(), UnregisterError> {
        let address = registration.address;
        if self.endpoint.unregister(address.get()) {
            Ok(())
        } else {
            Err(UnregisterError::NotRegistered {
                address,
                code: NOT_REGISTERED,
            })
        }
    }

    fn open(&self, name: &str) -> Result<LoopbackPeer, OpenError> {
        self.fabric
            .endpoint(name)
            .map(|endpoint| LoopbackPeer { endpoint })
            .ok_or_else(|| OpenError::Unreachable {
                name: name.to_owned(),
            })
    }

    fn submit(
        &self,
        peer: &LoopbackPeer,
        submission: Submission<'_>,
    ) -> Result<LoopbackTicket, SubmitError> {
        let limit = self.capabilities.submission().bytes();
        if submission.bytes() > limit {
            return Err(SubmitError::TooManyBytes {
                bytes: submission.bytes(),
                limit,
            });
        }
        let raw: Vec<RawDescriptor> = submission
            .descriptors()
            .iter()
            .map(|descriptor| RawDescriptor {
                local: descriptor.local().get(),
                remote: descriptor.remote().get(),
                len: descriptor.len().get(),
            })
            .collect();
        self.submit_raw(peer, submission.operation(), &raw)
    }

    fn poll(&self, ticket: &mut LoopbackTicket) -> Progress {
        ticket.flight.advance(&self.endpoint, 1)
    }

    fn drain(&self, ticket: &mut LoopbackTicket, patience: Patience) -> Drained {
        let polls = u64::try_from(patience.get().as_millis()).unwrap_or(u64::MAX);
        Drained::of(ticket.flight.advance(&self.endpoint, polls))
    }

    fn release(&self, ticket: LoopbackTicket) -> Result<(), StillRunning<LoopbackTicket>> {
        let progress = ticket.flight.progress();
        if progress.is_quiescent() {
            lock(&self.flights).retain(|flight| !Arc::ptr_eq(flight, &ticket.flight));
            return Ok(());
        }
        Err(StillRunning {
            unfinished: progress.unfinished(),
            tasks: progress.tasks().len(),
            ticket,
        })
    }

    fn abandon(&self, ticket: LoopbackTicket, kept: Kept) {
        ticket.flight.keep(kept);
        self.sweep();
    }
}

impl Drop for Loopback {
    fn drop(&mut self) {
        self.endpoint.kill();
    }
}

/// Locks what a panic elsewhere can't have broken.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

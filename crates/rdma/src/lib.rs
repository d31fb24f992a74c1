//! Transfer engines: registration of memory and submission of checked plans.
//!
//! Addresses enter here and only here, from live registrations. The way of a
//! transfer through this crate:
//!
//! 1. [`RegistrationPlan`]: which ranges of a layout's allocations an engine is
//!    asked to register, within its declared [`Capabilities`];
//! 2. [`Registered`]: the ranges that it did register. Their [`RegionMap`] is
//!    what a peer is told, and nothing else is;
//! 3. [`bind`]: a plan's copies become addresses inside registered regions of
//!    both sides, as a [`BoundBatch`] of [`Submission`]s of bounded size;
//! 4. [`Engine`]: submit, poll, drain, release. [`transfer`](fn@transfer) does
//!    it for a whole batch.
//!
//! [`Loopback`] is an engine between endpoints of one process. It enforces what
//! a network card enforces and injects faults by [`FaultPlan`].
//!
//! ```
//! use mooncake_pd_layout::AllocationId;
//! use mooncake_pd_rdma::{
//!     ByteCopy, Engine, Fabric, HostMemory, Operation, Patience, Registered,
//!     RegistrationPlan, bind, transfer,
//! };
//!
//! struct Piece { at: u64, to: u64, len: u64 }
//! impl ByteCopy for Piece {
//!     fn source(&self) -> AllocationId { AllocationId::new(0) }
//!     fn source_offset(&self) -> u64 { self.at }
//!     fn destination(&self) -> AllocationId { AllocationId::new(0) }
//!     fn destination_offset(&self) -> u64 { self.to }
//!     fn len(&self) -> u64 { self.len }
//! }
//!
//! let allocations = [(AllocationId::new(0), 4096)];
//! let (source, destination) = (HostMemory::new(allocations)?, HostMemory::new(allocations)?);
//! let fabric = Fabric::new();
//! let (prefill, decode) = (fabric.attach("prefill")?, fabric.attach("decode")?);
//! let limits = prefill.capabilities().registration();
//! let plan = RegistrationPlan::of(allocations, limits)?;
//! let local = Registered::new(&prefill, &plan, |id| source.buffer(id))?;
//! let remote = Registered::new(&decode, &plan, |id| destination.buffer(id))?;
//!
//! source.buffer(AllocationId::new(0)).unwrap().write().fill(7);
//! let copies = [Piece { at: 0, to: 1024, len: 512 }];
//! let batch = bind(
//!     copies, Operation::Write, local.regions(), remote.regions(),
//!     prefill.capabilities().submission(),
//! )?;
//! let peer = prefill.open("decode")?;
//! let moved = transfer(&prefill, &peer, &batch, Patience::default(), |_| {})?;
//! assert_eq!(moved.bytes(), 512);
//! assert_eq!(destination.buffer(AllocationId::new(0)).unwrap().read()[1024], 7);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
#![forbid(unsafe_code)]

mod address;
mod batch;
mod bind;
mod capabilities;
mod engine;
mod error;
mod loopback;
mod memory;
mod region;
mod registered;
mod registration;
mod transfer;

pub use address::{Address, AddressError};
pub use batch::{BoundBatch, Descriptor, Operation, Submission};
pub use bind::{BindError, ByteCopy, bind};
pub use capabilities::{
    Capabilities, DEFAULT_MAX_REGIONS, DEFAULT_OUTSTANDING, DEFAULT_SUBMISSION_BYTES, LimitError,
    RegistrationLimits, SubmissionLimits,
};
pub use engine::{Drained, Engine, Memory, Patience, Progress, StillRunning, TaskStatus};
pub use error::{
    EngineCode, Fault, OpenError, RegisterError, Side, SubmitError, TaskFailure, UnregisterError,
    Violation,
};
pub use loopback::{
    AttachError, DescriptorFault, Fabric, FaultPlan, Loopback, LoopbackPeer, LoopbackRegistration,
    LoopbackTicket,
};
pub use memory::{HostBuffer, HostMemory, MemoryError};
pub use region::{Region, RegionMap, RegionMapError};
pub use registered::{Registered, RegistrationError, ReleaseError};
pub use registration::{PlannedRegion, RegistrationPlan, RegistrationPlanError};
pub use transfer::{Moved, TransferError, transfer};

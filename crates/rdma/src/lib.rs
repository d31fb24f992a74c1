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
//! a network card enforces and injects faults by [`FaultPlan`]. [`mooncake`] is
//! Mooncake's Transfer Engine, found at run time. [`tokenspeed`] is the packaged
//! engine that only writes. [`tcp`] is an engine of its own between processes, the
//! default where there is no Mooncake. [`InFlight`] owns what a transfer needs
//! until it has ended. With the feature `cuda`, the module `cuda` has memory of
//! devices and what transfers of it wait for.
//!
//! ```
//! use mooncake_pd_layout::{AllocationId, Axis, FieldSpec, GroupSpec, LayoutBuilder};
//! use mooncake_pd_plan::{Options, Pairing, RawRequest, RawSlots, RawTables, Request};
//! use mooncake_pd_rdma::{
//!     Engine, Fabric, HostMemory, Operation, Patience, Registered, RegistrationPlan, bind,
//!     transfer,
//! };
//!
//! // 64 blocks of 16 tokens, 256 bytes each.
//! let kv = FieldSpec::new("kv", "bfloat16")
//!     .at(0, 0)
//!     .page_stride(4096)
//!     .dim(Axis::Token, 16, 256)
//!     .dim(Axis::Content, 128, 2);
//! let layout = LayoutBuilder::new()
//!     .allocation(0, 64 * 4096)
//!     .pool(0, 64, Some(0))
//!     .group(GroupSpec::new(0, "full_attention", 16, 0).layer("layer.0", [kv]))
//!     .build()?;
//!
//! let fabric = Fabric::new();
//! let (prefill, decode) = (fabric.attach("prefill")?, fabric.attach("decode")?);
//! let (source, destination) = (HostMemory::of_layout(&layout)?, HostMemory::of_layout(&layout)?);
//! let regions = RegistrationPlan::of_layout(&layout, prefill.capabilities().registration())?;
//! let local = Registered::new(&prefill, &regions, |id| source.buffer(id))?;
//! let remote = Registered::new(&decode, &regions, |id| destination.buffer(id))?;
//!
//! // Block 5 of prefill becomes block 9 of decode.
//! let slots = |id| RawSlots { first_block: Some(0), entries: vec![Some(id)] };
//! let request = RawRequest {
//!     id: "r".to_owned(),
//!     computed_tokens: Some(16),
//!     tail_aligned: false,
//!     groups: vec![RawTables { group: 0, source: slots(5), destination: slots(9) }],
//! };
//! let pairing = Pairing::new(&layout, &layout)?;
//! let request = Request::new(&request, &pairing)?;
//! let plan = pairing.plan(&[request], &Options::default())?.plan;
//!
//! let allocation = AllocationId::new(0);
//! source.buffer(allocation).unwrap().write()[5 * 4096..6 * 4096].fill(7);
//! let batch = bind(
//!     plan.copies(),
//!     Operation::Write,
//!     local.regions(),
//!     remote.regions(),
//!     prefill.capabilities().submission(),
//! )?;
//! let peer = prefill.open("decode")?;
//! let moved = transfer(&prefill, &peer, &batch, Patience::default(), |_| {})?;
//! assert_eq!(moved.bytes(), 4096);
//! assert!(destination.buffer(allocation).unwrap().read()[9 * 4096..10 * 4096].iter().all(|b| *b == 7));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
mod address;
mod batch;
mod bind;
mod capabilities;
#[cfg(feature = "cuda")]
pub mod cuda;
mod engine;
mod error;
mod fence;
mod flight;
mod location;
mod loopback;
mod memory;
pub mod mooncake;
mod name;
mod native;
mod on_thread;
mod pump;
mod region;
mod registered;
mod registration;
pub mod tcp;
#[cfg(feature = "testing")]
pub mod testing;
pub mod tokenspeed;
mod transfer;

pub use access::{AccessError, Bytes};
pub use address::{Address, AddressError};
pub use batch::{BoundBatch, Descriptor, Operation, Submission};
pub use bind::{BindError, bind};
pub use capabilities::{
    Capabilities, DEFAULT_MAX_REGIONS, DEFAULT_OUTSTANDING, DEFAULT_SUBMISSION_BYTES, LimitError,
    RegistrationLimits, SubmissionLimits,
};
pub use engine::{Drained, Engine, Kept, Memory, Patience, Progress, StillRunning, TaskStatus};
pub use error::{
    EngineCode, Fault, OpenError, RegisterError, Side, SubmitError, TaskFailure, UnregisterError,
    Violation,
};
pub use fence::{Fence, FenceError, Visibility};
pub use flight::{InFlight, Outcome, Standing};
pub use location::{Location, LocationError};
pub use loopback::{
    AttachError, DescriptorFault, Fabric, FaultPlan, Loopback, LoopbackPeer, LoopbackRegistration,
    LoopbackTicket,
};
pub use memory::{HostBuffer, HostMemory, MemoryError};
/// Why a library is not loaded.
pub use mooncake_transfer_engine_sys::LoadError;
pub use name::{PeerName, PeerNameError};
pub use native::{Backing, NativeMemory};
pub use on_thread::OnThread;
pub use region::{Region, RegionMap, RegionMapError};
pub use registered::{Registered, RegistrationError, ReleaseError};
pub use registration::{PlannedRegion, RegistrationPlan, RegistrationPlanError};
pub use transfer::{Moved, TransferError, transfer};

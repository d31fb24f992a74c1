//! Why two processes did not do a transfer.

use mooncake_pd_layout::EncodeError;
use mooncake_pd_rdma::{
    AccessError, AddressError, BindError, FenceError, LoadError, MemoryError, Moved, OpenError,
    RegionMapError, RegistrationError, RegistrationPlanError, ReleaseError, SubmitError,
    TaskFailure, mooncake, tokenspeed,
};
use thiserror::Error;

use super::frame::FrameError;
use crate::failure::Exit;

/// An engine or its memory can't be had on this machine.
#[derive(Debug, Error)]
pub enum AbsentError {
    /// Its library.
    #[error("the engine's library can't be used")]
    Library(#[from] LoadError),
    /// The library makes no engine.
    #[error("Mooncake's engine did not start")]
    Mooncake(#[from] mooncake::StartError),
    /// The library makes no engine.
    #[error("tokenspeed's engine did not start")]
    Tokenspeed(#[from] tokenspeed::StartError),
    /// No listener or no threads.
    #[error("the loopback engine did not start")]
    Loopback(#[from] mooncake_pd_rdma::tcp::StartError),
    /// Neither a card nor TCP.
    #[error(
        "there is no RDMA card, and tokenspeed's engine uses TCP only if told so; set MC_FORCE_TCP=1"
    )]
    NoCard,
    /// Memory that the engine can't move.
    #[error("engine {engine} does not move memory of {memory}; use {instead}")]
    Memory {
        /// The engine.
        engine: &'static str,
        /// The memory.
        memory: String,
        /// What would do.
        instead: &'static str,
    },
    /// The device.
    #[cfg(feature = "cuda")]
    #[error("CUDA memory can't be had")]
    Cuda(#[from] mooncake_pd_rdma::cuda::CudaError),
}

/// A step that a source and its target did not do; the source error says why.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// On this side there is no engine or no memory.
    #[error(transparent)]
    Absent(#[from] AbsentError),
    /// The program that is to be the target.
    #[error("{program} can't be run as target: {error}")]
    Spawn {
        /// The program.
        program: String,
        /// The system's message.
        error: std::io::Error,
    },
    /// It ended before it had called.
    #[error("the target ended with {status} before it had called; its standard error says why")]
    Ended {
        /// How it ended.
        status: std::process::ExitStatus,
    },
    /// It never called.
    #[error("the target did not call within {seconds} s")]
    Silent {
        /// How long it was waited for.
        seconds: u64,
    },
    /// The command was started as a target, and not by a source.
    #[error("{variable} is not set: a source starts its target itself")]
    NoSource {
        /// The variable that is missing.
        variable: &'static str,
    },
    /// The channel.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// Another version of the channel.
    #[error("the other side speaks version {theirs} of the channel, this one version {ours}")]
    Protocol {
        /// Theirs.
        theirs: u32,
        /// Ours.
        ours: u32,
    },
    /// An engine that this command does not have.
    #[error("{what} {name:?} is not known here")]
    Unknown {
        /// Engine or memory.
        what: &'static str,
        /// What was asked for.
        name: String,
    },
    /// An answer to another question.
    #[error("the target answers {got} where {expected} was asked for")]
    Answer {
        /// What was asked for.
        expected: &'static str,
        /// What came.
        got: String,
    },
    /// A number of bytes other than was asked for.
    #[error("the target answers with {got} bytes where {expected} were asked for")]
    Short {
        /// Asked for.
        expected: u64,
        /// Came.
        got: u64,
    },
    /// What the target says.
    #[error("the target says: {0}")]
    Target(String),
    /// A range that can't be.
    #[error("allocation {allocation}: {len} bytes from {start} are no range")]
    Range {
        /// Which allocation.
        allocation: u32,
        /// First byte.
        start: u64,
        /// Bytes.
        len: u64,
    },
    /// An address that can't be.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// Ranges that overlap.
    #[error("the target's ranges can't be")]
    Map(#[from] RegionMapError),
    /// Nothing is served yet, or no such allocation is.
    #[error("there is no allocation {allocation} here")]
    Allocation {
        /// Which.
        allocation: u32,
    },
    /// A layout that is none.
    #[error("the layout: {0}")]
    Layout(Box<mooncake_pd_layout::import::ImportError>),
    /// A layout that can't be sent.
    #[error("the layout can't be sent")]
    Encode(#[from] EncodeError),
    /// Memory can't be had.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// Memory can't be read or written.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Which ranges the engine is asked to register.
    #[error("the allocations can't be cut into regions")]
    Regions(#[from] RegistrationPlanError),
    /// Registering them.
    #[error("the engine did not register the memory")]
    Register(#[from] RegistrationError),
    /// Addresses for the plan's copies.
    #[error("the plan does not fit the registered memory")]
    Bind(#[from] BindError),
    /// Reaching the target's engine.
    #[error("the engine did not open its peer")]
    Open(#[from] OpenError),
    /// Giving the memory back.
    #[error("the engine did not release the memory")]
    Release(#[from] ReleaseError),
    /// A submission was not taken.
    #[error("the engine did not take descriptor {first} and those behind it, after {} descriptors of {} bytes", moved.descriptors(), moved.bytes())]
    NotTaken {
        /// The first that was not.
        first: u64,
        /// Why not.
        #[source]
        error: SubmitError,
        /// What was moved before.
        moved: Moved,
    },
    /// A task failed.
    #[error("descriptor {descriptor} failed: {failure}, after {} descriptors of {} bytes", moved.descriptors(), moved.bytes())]
    Task {
        /// Which.
        descriptor: u64,
        /// How.
        failure: TaskFailure,
        /// What was moved before.
        moved: Moved,
    },
    /// A device.
    #[error(transparent)]
    Device(#[from] FenceError),
    /// Nobody knows whether it still runs.
    #[error(
        "after {} descriptors of {} bytes nobody knows whether the next still move, {seconds} s after the last that did",
        moved.descriptors(),
        moved.bytes()
    )]
    Lost {
        /// What was moved before.
        moved: Moved,
        /// How long it was waited for.
        seconds: u64,
    },
}

impl RemoteError {
    /// The exit code that stands for it.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Absent(_) | Self::Spawn { .. } | Self::NoSource { .. } | Self::Memory(_) => {
                Exit::Usage
            }
            _ => Exit::Internal,
        }
    }
}

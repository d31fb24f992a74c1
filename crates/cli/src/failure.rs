//! Why a command ends without success, and its exit code.

use mooncake_pd_layout::import::ImportError;
use mooncake_pd_layout::{EncodeError, ResizeError};
use mooncake_pd_plan::{CheckError, PairingError};
use mooncake_pd_rdma::MemoryError;
use thiserror::Error;

use crate::engine_failure::EngineFailure;
use crate::remote::RemoteError;
use crate::request::RequestFileError;
use crate::verify::WalkError;

/// Exit codes of the command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Exit {
    /// All is well.
    Ok,
    /// Bytes are not what they must be after a transfer.
    Unverified,
    /// The command line can't be used, a file named there can't be read, the
    /// result can't be written, there is too little memory, or the engine or
    /// memory asked for can't be had.
    Usage,
    /// A layout is invalid, or every request is.
    Invalid,
    /// Nothing can be moved between the two layouts.
    Incompatible,
    /// The planner or the engine failed: a fault of this program.
    Internal,
}

impl Exit {
    /// The number that the process ends with, 0..6.
    #[must_use]
    pub const fn code(self) -> u8 {
        match self {
            Self::Ok => 0,
            Self::Unverified => 1,
            Self::Usage => 2,
            Self::Invalid => 3,
            Self::Incompatible => 4,
            Self::Internal => 5,
        }
    }

    /// Its name for machines.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ok => "ok",
            Self::Unverified => "unverified",
            Self::Usage => "usage",
            Self::Invalid => "invalid",
            Self::Incompatible => "incompatible",
            Self::Internal => "internal",
        }
    }
}

/// Why a command can't do what it was asked for.
#[derive(Debug, Error)]
pub enum Failure {
    /// A file can't be read.
    #[error("{file}: {error}")]
    Read {
        /// The file.
        file: String,
        /// The system's message.
        error: std::io::Error,
    },
    /// A file is longer than any layout or request.
    #[error("{file}: longer than {limit} bytes")]
    TooLong {
        /// The file.
        file: String,
        /// Longest file that is read.
        limit: u64,
    },
    /// A file is not text.
    #[error("{file}: not UTF-8 from byte {at} on")]
    NotText {
        /// The file.
        file: String,
        /// First byte that is not.
        at: usize,
    },
    /// Both a layout and a request are to come from the standard input.
    #[error("the standard input can't be both a layout and a request")]
    TwoInputs,
    /// `--blocks` with a layout of several pools.
    #[error("{file}: --blocks needs a layout of one pool, this one has {pools}")]
    SeveralPools {
        /// The layout.
        file: String,
        /// Its pools.
        pools: usize,
    },
    /// An option of engines between two processes without one.
    #[error("{option} needs --engine loopback, mooncake or tokenspeed")]
    NeedsEngine {
        /// The option.
        option: &'static str,
    },
    /// The machine has no room for both sides.
    #[error(
        "both sides need {needed} bytes and {available} are available; --blocks makes them smaller"
    )]
    Memory {
        /// Bytes of both sides.
        needed: u64,
        /// Bytes that the system can give.
        available: u64,
    },
    /// A layout file is not a layout.
    #[error("{file}: {error}")]
    Layout {
        /// The file.
        file: String,
        /// What is wrong.
        error: Box<ImportError>,
    },
    /// A layout can't have that many blocks.
    #[error("{file}: {error}")]
    Resize {
        /// The file.
        file: String,
        /// What is wrong.
        error: ResizeError,
    },
    /// A layout can't be written as a manifest.
    #[error("{file}: {error}")]
    Encode {
        /// The file.
        file: String,
        /// What is wrong.
        error: EncodeError,
    },
    /// A request file is not one, or lacks the case.
    #[error(transparent)]
    Request(#[from] RequestFileError),
    /// The walker can't read a layout that the importer took.
    #[error("{file}: the walker: {error}")]
    Walk {
        /// The file.
        file: String,
        /// What is wrong.
        error: WalkError,
    },
    /// The walker finds a demand that can't be.
    #[error("the walker: {0}")]
    Demand(WalkError),
    /// The layouts don't fit each other.
    #[error(transparent)]
    Pairing(#[from] PairingError),
    /// The plan's check found the planner at fault.
    #[error("the plan's check failed: {0}")]
    Check(#[from] CheckError),
    /// The memory of a side can't be had.
    #[error("no memory for both sides")]
    HostMemory(#[from] MemoryError),
    /// The engine did not do what it was asked for.
    #[error(transparent)]
    Engine(#[from] EngineFailure),
    /// Two processes did not do a transfer.
    #[error(transparent)]
    Remote(#[from] Box<RemoteError>),
    /// A result can't be written as JSON.
    #[error("the result can't be written: {0}")]
    Json(#[from] serde_json::Error),
}

impl Failure {
    /// The exit code that stands for it.
    #[must_use]
    pub const fn exit(&self) -> Exit {
        match self {
            Self::Read { .. }
            | Self::TwoInputs
            | Self::SeveralPools { .. }
            | Self::NeedsEngine { .. }
            | Self::Memory { .. }
            | Self::HostMemory(_) => Exit::Usage,
            Self::TooLong { .. }
            | Self::NotText { .. }
            | Self::Layout { .. }
            | Self::Resize { .. }
            | Self::Encode { .. }
            | Self::Request(_)
            | Self::Walk { .. } => Exit::Invalid,
            Self::Pairing(_) => Exit::Incompatible,
            Self::Remote(error) => error.exit(),
            // The walker refutes what the plan does.
            Self::Demand(_) => Exit::Unverified,
            Self::Check(_) | Self::Engine(_) | Self::Json(_) => Exit::Internal,
        }
    }
}

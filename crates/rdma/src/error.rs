//! What can go wrong with an engine, and whose fault it is.

use std::fmt;

use crate::address::Address;
use crate::location::Location;
use crate::name::PeerNameError;

/// Who has to change something before the same call can succeed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The caller: the call was wrong and will be wrong again.
    Caller,
    /// The peer: it is gone, or another one is there now.
    Peer,
    /// The engine, or the system under it.
    Engine,
}

/// The two ends of a transfer, as the submitting process sees them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// The process that submits.
    Local,
    /// Its peer.
    Remote,
}

impl fmt::Display for Side {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Local => "local",
            Self::Remote => "remote",
        })
    }
}

/// A number an engine returned, and whose number it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct EngineCode {
    namespace: &'static str,
    value: i64,
}

impl EngineCode {
    /// The number `value` of the list of numbers `namespace`.
    #[must_use]
    pub const fn new(namespace: &'static str, value: i64) -> Self {
        Self { namespace, value }
    }

    /// Which list of numbers it is of; an engine may have several.
    #[must_use]
    pub const fn namespace(self) -> &'static str {
        self.namespace
    }

    /// The number.
    #[must_use]
    pub const fn value(self) -> i64 {
        self.value
    }
}

impl fmt::Display for EngineCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.namespace, self.value)
    }
}

/// Why a range was not registered. Nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum RegisterError {
    /// The range is not inside the memory.
    #[error("range [{start}, {end}) is outside memory of {len} bytes")]
    OutsideMemory {
        /// First byte of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// Bytes of the memory.
        len: u64,
    },
    /// A range of no bytes.
    #[error("the range at {address:#x} has no bytes ({code})")]
    Empty {
        /// Its address.
        address: u64,
        /// What the engine said.
        code: EngineCode,
    },
    /// The range shares bytes with a registered one.
    #[error(
        "range [{start:#x}, {end:#x}) overlaps registered [{other_start:#x}, {other_end:#x}) ({code})"
    )]
    Overlap {
        /// First address of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// First address of the registered range.
        other_start: u64,
        /// End of the registered range.
        other_end: u64,
        /// What the engine said.
        code: EngineCode,
    },
    /// The range is longer than the engine takes.
    #[error("range of {len} bytes, the engine registers at most {limit}")]
    TooLong {
        /// Bytes of the range.
        len: u64,
        /// Most bytes.
        limit: u64,
    },
    /// The engine has as many regions as it takes.
    #[error("{regions} regions are registered, the engine takes at most {limit}")]
    TooMany {
        /// Regions it has.
        regions: u64,
        /// Most regions.
        limit: u32,
    },
    /// Memory of a device, and an engine that does not reach devices.
    #[error(
        "engine `{engine}` can't reach memory at `{location}`; it needs a library built with CUDA, and a configuration that says so"
    )]
    Unreachable {
        /// Where the memory is.
        location: Location,
        /// Which engine.
        engine: &'static str,
    },
    /// The engine refused.
    #[error("the engine refused range [{start:#x}, {end:#x}) ({code})")]
    Refused {
        /// First address of the range.
        start: u64,
        /// End of the range.
        end: u64,
        /// What the engine said.
        code: EngineCode,
    },
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
}

impl RegisterError {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::OutsideMemory { .. }
            | Self::Empty { .. }
            | Self::Overlap { .. }
            | Self::TooLong { .. }
            | Self::TooMany { .. }
            | Self::Unreachable { .. } => Fault::Caller,
            Self::Refused { .. } | Self::Closed => Fault::Engine,
        }
    }
}

/// Why a range is still registered, or was not to begin with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum UnregisterError {
    /// No registered range starts there. The caller's fault: a registration of
    /// another engine, or of one that was closed.
    #[error("no registered range starts at {address} ({code})")]
    NotRegistered {
        /// Where it would start.
        address: Address,
        /// What the engine said.
        code: EngineCode,
    },
    /// A transfer out of or into it is in flight: the caller's fault. Nothing is
    /// to be done; it is unregistered when the transfer has ended.
    #[error("the range at {address} is in use by a transfer in flight")]
    InFlight {
        /// Where the range starts.
        address: Address,
    },
    /// The engine refused: its own fault. The range stays registered, and its
    /// memory stays allocated.
    #[error("the engine refused to unregister the range at {address} ({code})")]
    Refused {
        /// Where the range starts.
        address: Address,
        /// What the engine said.
        code: EngineCode,
    },
}

/// Why a peer could not be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// That is no name: the caller's fault.
    #[error(transparent)]
    Name(#[from] PeerNameError),
    /// Nobody of that name answers: the peer's fault.
    #[error("no peer `{name}` answers")]
    Unreachable {
        /// Whom the caller asked for.
        name: String,
    },
    /// Nobody of that name answers the engine: the peer's fault.
    #[error("no peer `{name}` answers ({code}); is it running, and is this the name it prints?")]
    NoAnswer {
        /// Whom the caller asked for.
        name: String,
        /// What the engine said.
        code: EngineCode,
    },
    /// The engine failed: its own fault.
    #[error("the engine could not open peer `{name}` ({code})")]
    Refused {
        /// Whom the caller asked for.
        name: String,
        /// What the engine said.
        code: EngineCode,
    },
}

/// What is wrong with one descriptor of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Violation {
    /// It moves nothing.
    #[error("length is 0 at {side} address {address:#x}")]
    Empty {
        /// Which side.
        side: Side,
        /// Where.
        address: u64,
    },
    /// It starts in memory that is not registered.
    #[error("{side} address {address:#x} is in no registered region")]
    Unregistered {
        /// Which side.
        side: Side,
        /// Where.
        address: u64,
    },
    /// It starts in a region and ends beyond it, be it in another one.
    #[error(
        "{side} range of {len} bytes at {address:#x} runs past its region's end {region_end:#x}"
    )]
    CrossesRegion {
        /// Which side.
        side: Side,
        /// Where it starts.
        address: u64,
        /// Its bytes.
        len: u64,
        /// The region's end.
        region_end: u64,
    },
    /// It writes bytes another descriptor of the submission writes.
    #[error("destination at {address:#x} is also written by descriptor {other}")]
    DestinationTwice {
        /// Where it writes, on the destination's side.
        address: u64,
        /// The other descriptor.
        other: usize,
    },
    /// It writes bytes a descriptor of the submission reads.
    #[error("destination at {address:#x} is also read by descriptor {other}")]
    DestinationIsSource {
        /// Where it writes, on the destination's side.
        address: u64,
        /// The descriptor that reads.
        other: usize,
    },
}

/// Why a submission was not taken. No byte of it has moved, or will.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SubmitError {
    /// A descriptor is not allowed.
    #[error("descriptor {index}: {violation}")]
    Descriptor {
        /// Which.
        index: usize,
        /// What is wrong.
        violation: Violation,
    },
    /// More descriptors in flight to a peer than it queues. Drain first.
    #[error(
        "{adding} descriptors added to {outstanding} in flight to `{peer}`, the limit is {limit}"
    )]
    QueueFull {
        /// To whom.
        peer: String,
        /// In flight already.
        outstanding: u64,
        /// In the submission.
        adding: u64,
        /// Most in flight.
        limit: u32,
    },
    /// More bytes in a submission than the engine takes.
    #[error("submission of {bytes} bytes, the limit is {limit}")]
    TooManyBytes {
        /// Bytes of the submission.
        bytes: u64,
        /// Most bytes.
        limit: u64,
    },
    /// The engine does not read.
    #[error("engine `{engine}` can't read from a peer")]
    CannotRead {
        /// Which engine.
        engine: &'static str,
    },
    /// The peer is gone.
    #[error("peer `{peer}` is gone")]
    PeerGone {
        /// Which peer.
        peer: String,
    },
    /// A transfer to the peer has failed since it was opened: it may have
    /// restarted, with other memory at the same addresses. Open it again and
    /// ask it for its regions.
    #[error("a transfer to peer `{peer}` has failed since it was opened; open it again")]
    PeerFailed {
        /// Which peer.
        peer: String,
    },
    /// The peer has restarted since it was opened. Open it again.
    #[error("peer `{peer}` was opened in generation {opened}, generation {current} is there now")]
    StalePeer {
        /// Which peer.
        peer: String,
        /// The generation that was opened.
        opened: u64,
        /// The generation there now.
        current: u64,
    },
    /// The engine was closed.
    #[error("the engine is closed")]
    Closed,
    /// The engine refused.
    #[error("the engine refused the submission ({code})")]
    Refused {
        /// What the engine said.
        code: EngineCode,
    },
}

impl SubmitError {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Descriptor { .. }
            | Self::QueueFull { .. }
            | Self::TooManyBytes { .. }
            | Self::CannotRead { .. } => Fault::Caller,
            Self::PeerGone { .. } | Self::PeerFailed { .. } | Self::StalePeer { .. } => Fault::Peer,
            Self::Closed | Self::Refused { .. } => Fault::Engine,
        }
    }
}

/// How one task failed. Its destination holds any mix of old and new bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TaskFailure {
    /// The engine gave it up: its own fault.
    #[error("the engine gave up ({code})")]
    Engine {
        /// What the engine said.
        code: EngineCode,
    },
    /// The peer went away before it was done: the peer's fault.
    #[error("the peer is gone")]
    PeerGone,
    /// The peer refused a descriptor of the submission, and with it that one
    /// and all behind it: the caller's fault, or the peer has unregistered.
    #[error("the peer refused descriptor {index} of the submission: {violation}")]
    Denied {
        /// Which descriptor of the submission.
        index: usize,
        /// What is wrong with it.
        violation: Violation,
    },
}

impl TaskFailure {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Engine { .. } => Fault::Engine,
            Self::PeerGone => Fault::Peer,
            Self::Denied { .. } => Fault::Caller,
        }
    }
}

//! Who speaks.

use core::fmt;

use crate::id::EngineId;

/// Incarnation of an engine, 0..2^64: a restarted one has a larger number (the time
/// it started will do).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Generation(u64);

impl Generation {
    /// An incarnation by its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }
}

impl fmt::Display for Generation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// One incarnation of an engine's rank: a restarted peer is a new peer.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Peer {
    /// The rank's name, one for each rank that sends or answers pulls.
    pub engine: EngineId,
    /// Its incarnation.
    pub generation: Generation,
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (generation {})", self.engine, self.generation)
    }
}

/// Number of a pull, 0..2^64; a decode rank gives each of its pulls a larger one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PullNumber(u64);

impl PullNumber {
    /// A pull by its number.
    #[must_use]
    pub const fn new(number: u64) -> Self {
        Self(number)
    }

    /// The number.
    #[must_use]
    pub const fn get(self) -> u64 {
        self.0
    }

    /// The one after it.
    pub(crate) const fn next(self) -> Self {
        Self(self.0.wrapping_add(1))
    }
}

//! The decode rank that pulls.

use core::num::{NonZeroU16, NonZeroU32};

use super::host::Host;

/// Why a rank can't pull.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PullerError {
    /// There are not so many ranks.
    #[error("tensor-parallel rank {rank} is outside 0..{size}")]
    Rank {
        /// Its rank.
        rank: u32,
        /// How many there are.
        size: NonZeroU32,
    },
}

/// A decode rank: its transfer engine's session and its place among its engine's ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Puller {
    host: Host,
    port: NonZeroU16,
    tp_size: NonZeroU32,
    tp_rank: u32,
    pp_size: NonZeroU32,
}

impl Puller {
    /// Takes the session's host and port, the tensor-parallel size and rank, and the
    /// pipeline-parallel size.
    ///
    /// # Errors
    /// The rank is not one of so many.
    pub fn new(
        host: Host,
        port: NonZeroU16,
        (tp_size, tp_rank): (NonZeroU32, u32),
        pp_size: NonZeroU32,
    ) -> Result<Self, PullerError> {
        if tp_rank >= tp_size.get() {
            return Err(PullerError::Rank {
                rank: tp_rank,
                size: tp_size,
            });
        }
        Ok(Self {
            host,
            port,
            tp_size,
            tp_rank,
            pp_size,
        })
    }

    /// Host of its transfer engine's session.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Port of its transfer engine's session.
    #[must_use]
    pub const fn port(&self) -> NonZeroU16 {
        self.port
    }

    /// Tensor-parallel size, 1..2^32.
    #[must_use]
    pub const fn tp_size(&self) -> NonZeroU32 {
        self.tp_size
    }

    /// Tensor-parallel rank, 0..size.
    #[must_use]
    pub const fn tp_rank(&self) -> u32 {
        self.tp_rank
    }

    /// Pipeline-parallel size, 1..2^32. Its rank is not part of a pull.
    #[must_use]
    pub const fn pp_size(&self) -> NonZeroU32 {
        self.pp_size
    }
}

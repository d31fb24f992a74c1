//! What an engine can do, and how much of it at once.

use std::num::{NonZeroU32, NonZeroU64};

use mooncake_pd_layout::ByteLen;

/// Descriptors in flight to one peer over all threads, by default 1,024: what a
/// stock Mooncake peer queues. Past it descriptors fail and the peer can stall.
pub const DEFAULT_OUTSTANDING: u32 = 1_024;

/// Bytes of one submission, by default 1 GiB: bounds how long one submission
/// keeps its memory busy, about half a second over Mooncake's TCP.
pub const DEFAULT_SUBMISSION_BYTES: u64 = 1 << 30;

/// Regions of one engine, by default 10,000: above it, a stock Mooncake
/// handshake no longer fits its message.
pub const DEFAULT_MAX_REGIONS: u32 = 10_000;

/// Why limits make no sense.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum LimitError {
    /// A limit of nothing.
    #[error("limit of {what} is 0, it must be at least 1")]
    Zero {
        /// What is limited.
        what: &'static str,
    },
    /// A range is split at multiples of something longer than a piece.
    #[error("registrations of at most {max_len} bytes can't be split at multiples of {alignment}")]
    Alignment {
        /// Bytes of the longest registration.
        max_len: u64,
        /// Bytes of the alignment.
        alignment: u64,
    },
}

/// What an engine registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RegistrationLimits {
    piece: Option<ByteLen>,
    max_regions: NonZeroU32,
}

impl RegistrationLimits {
    /// Registrations of any length, `max_regions` of them (1..2^32).
    ///
    /// # Errors
    /// No regions.
    pub fn new(max_regions: u32) -> Result<Self, LimitError> {
        Ok(Self {
            piece: None,
            max_regions: NonZeroU32::new(max_regions).ok_or(LimitError::Zero {
                what: "registered regions",
            })?,
        })
    }

    /// Registrations of at most `max_len` bytes; longer allocations are split
    /// at multiples of `alignment` bytes from their start.
    ///
    /// # Errors
    /// The alignment is longer than a registration may be.
    pub fn with_max_len(self, max_len: ByteLen, alignment: ByteLen) -> Result<Self, LimitError> {
        let below = max_len.get().checked_rem(alignment.get()).unwrap_or(0);
        let piece = ByteLen::new(max_len.get().saturating_sub(below)).map_err(|_| {
            LimitError::Alignment {
                max_len: max_len.get(),
                alignment: alignment.get(),
            }
        })?;
        Ok(Self {
            piece: Some(piece),
            ..self
        })
    }

    /// Bytes of the pieces a longer allocation is split into: the longest
    /// multiple of the alignment that can be registered. `None` means that no
    /// allocation is too long.
    #[must_use]
    pub const fn piece(self) -> Option<ByteLen> {
        self.piece
    }

    /// Most regions at once.
    #[must_use]
    pub const fn max_regions(self) -> u32 {
        self.max_regions.get()
    }
}

impl Default for RegistrationLimits {
    fn default() -> Self {
        Self {
            piece: None,
            max_regions: NonZeroU32::new(DEFAULT_MAX_REGIONS).unwrap_or(NonZeroU32::MIN),
        }
    }
}

/// How large one submission is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SubmissionLimits {
    descriptors: NonZeroU32,
    bytes: NonZeroU64,
}

impl SubmissionLimits {
    /// At most `descriptors` (1..2^32) and `bytes` a submission; a longer copy
    /// becomes several descriptors.
    ///
    /// # Errors
    /// No descriptors.
    pub fn new(descriptors: u32, bytes: ByteLen) -> Result<Self, LimitError> {
        Ok(Self {
            descriptors: NonZeroU32::new(descriptors).ok_or(LimitError::Zero {
                what: "descriptors of a submission",
            })?,
            bytes: NonZeroU64::new(bytes.get()).unwrap_or(NonZeroU64::MIN),
        })
    }

    /// Most descriptors of one submission; also the most in flight to one peer,
    /// over all threads.
    #[must_use]
    pub const fn descriptors(self) -> u32 {
        self.descriptors.get()
    }

    /// Most bytes of one submission.
    #[must_use]
    pub const fn bytes(self) -> u64 {
        self.bytes.get()
    }
}

impl Default for SubmissionLimits {
    fn default() -> Self {
        Self {
            descriptors: NonZeroU32::new(DEFAULT_OUTSTANDING).unwrap_or(NonZeroU32::MIN),
            bytes: NonZeroU64::new(DEFAULT_SUBMISSION_BYTES).unwrap_or(NonZeroU64::MIN),
        }
    }
}

/// What an engine declares about itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Capabilities {
    name: &'static str,
    drains: bool,
    per_task_status: bool,
    reads: bool,
    registration: RegistrationLimits,
    submission: SubmissionLimits,
}

impl Capabilities {
    /// An engine that writes, and can do nothing else: it can't say which task
    /// failed, nor when the rest has ended.
    #[must_use]
    pub const fn writes(
        name: &'static str,
        registration: RegistrationLimits,
        submission: SubmissionLimits,
    ) -> Self {
        Self {
            name,
            drains: false,
            per_task_status: false,
            reads: false,
            registration,
            submission,
        }
    }

    /// It can wait for every task to end, also after one has failed.
    #[must_use]
    pub const fn with_drain(mut self) -> Self {
        self.drains = true;
        self
    }

    /// It reports every task by itself.
    #[must_use]
    pub const fn with_per_task_status(mut self) -> Self {
        self.per_task_status = true;
        self
    }

    /// It reads from a peer, too.
    #[must_use]
    pub const fn with_reads(mut self) -> Self {
        self.reads = true;
        self
    }

    /// The engine's name, for people.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        self.name
    }

    /// Whether memory comes back after a failure. Otherwise it stays in
    /// quarantine for as long as the engine lives.
    #[must_use]
    pub const fn drains(&self) -> bool {
        self.drains
    }

    /// Whether tasks are reported one by one; otherwise all share one status.
    #[must_use]
    pub const fn per_task_status(&self) -> bool {
        self.per_task_status
    }

    /// Whether it reads from a peer.
    #[must_use]
    pub const fn reads(&self) -> bool {
        self.reads
    }

    /// What it registers.
    #[must_use]
    pub const fn registration(&self) -> RegistrationLimits {
        self.registration
    }

    /// How large one submission is.
    #[must_use]
    pub const fn submission(&self) -> SubmissionLimits {
        self.submission
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn len(bytes: u64) -> ByteLen {
        ByteLen::new(bytes).unwrap()
    }

    #[test]
    fn a_piece_is_the_longest_multiple_of_the_alignment() {
        let limits = RegistrationLimits::default();
        let piece = |max, align| {
            limits
                .with_max_len(len(max), len(align))
                .map(|limits| limits.piece().unwrap().get())
        };
        assert_eq!(piece(10_000, 4_096), Ok(8_192));
        assert_eq!(piece(4_096, 4_096), Ok(4_096));
        assert_eq!(
            piece(4_095, 4_096),
            Err(LimitError::Alignment {
                max_len: 4_095,
                alignment: 4_096
            })
        );
    }

    #[test]
    fn defaults_are_the_documented_ones() {
        assert_eq!(
            RegistrationLimits::default().max_regions(),
            DEFAULT_MAX_REGIONS
        );
        let submission = SubmissionLimits::default();
        assert_eq!(submission.descriptors(), DEFAULT_OUTSTANDING);
        assert_eq!(submission.bytes(), DEFAULT_SUBMISSION_BYTES);
    }

    #[test]
    fn limits_of_nothing_are_refused() {
        assert!(RegistrationLimits::new(0).is_err());
        assert!(RegistrationLimits::new(1).is_ok());
        assert!(SubmissionLimits::new(0, len(1)).is_err());
        assert!(SubmissionLimits::new(1, len(1)).is_ok());
    }
}

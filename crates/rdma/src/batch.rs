//! Copies bound to addresses, in portions an engine takes.

use mooncake_pd_layout::ByteLen;

use crate::address::Address;
use crate::capabilities::SubmissionLimits;

/// Which way bytes go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Operation {
    /// From local memory to the peer's.
    Write,
    /// From the peer's memory to local memory.
    Read,
}

/// One contiguous copy, wholly within one registered region on each side.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Descriptor {
    pub(crate) local: Address,
    pub(crate) remote: Address,
    pub(crate) len: ByteLen,
}

impl Descriptor {
    /// Where it begins in this process.
    #[must_use]
    pub const fn local(&self) -> Address {
        self.local
    }

    /// Where it begins in the peer's process.
    #[must_use]
    pub const fn remote(&self) -> Address {
        self.remote
    }

    /// Its bytes.
    #[must_use]
    pub const fn len(&self) -> ByteLen {
        self.len
    }

    /// Always false: a descriptor moves at least one byte.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        false
    }
}

/// Copies bound to registered memory of both sides; made by [`bind`](crate::bind).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BoundBatch {
    operation: Operation,
    descriptors: Vec<Descriptor>,
    bytes: u64,
    limits: SubmissionLimits,
}

impl BoundBatch {
    pub(crate) const fn empty(operation: Operation, limits: SubmissionLimits) -> Self {
        Self {
            operation,
            descriptors: Vec::new(),
            bytes: 0,
            limits,
        }
    }

    /// Adds a descriptor of at most the limits' bytes.
    pub(crate) fn push(&mut self, descriptor: Descriptor) {
        self.bytes = self.bytes.saturating_add(descriptor.len.get());
        self.descriptors.push(descriptor);
    }

    /// Which way the bytes go.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// All descriptors.
    #[must_use]
    pub fn descriptors(&self) -> &[Descriptor] {
        &self.descriptors
    }

    /// Bytes of all descriptors.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// The descriptors in order, in portions within the limits they were bound
    /// for.
    pub fn submissions(&self) -> impl Iterator<Item = Submission<'_>> {
        let mut first = 0_usize;
        std::iter::from_fn(move || {
            let submission = self.submission(first)?;
            first = first.saturating_add(submission.descriptors.len());
            Some(submission)
        })
    }

    /// The portion that begins with the `first`-th descriptor, 0...
    #[must_use]
    pub fn submission(&self, first: usize) -> Option<Submission<'_>> {
        let rest = self.descriptors.get(first..)?;
        let (count, bytes) = self.portion(rest);
        let descriptors = rest.get(..count)?;
        (count > 0).then_some(Submission {
            operation: self.operation,
            descriptors,
            bytes,
        })
    }

    /// Descriptors and bytes of the first portion.
    fn portion(&self, rest: &[Descriptor]) -> (usize, u64) {
        let most = usize::try_from(self.limits.descriptors()).unwrap_or(usize::MAX);
        let mut count = 0_usize;
        let mut bytes = 0_u64;
        for descriptor in rest.iter().take(most) {
            let sum = bytes.saturating_add(descriptor.len.get());
            if sum > self.limits.bytes() {
                break;
            }
            bytes = sum;
            count = count.saturating_add(1);
        }
        (count, bytes)
    }
}

/// A portion of a [`BoundBatch`]: within the engine's limits, never empty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Submission<'a> {
    operation: Operation,
    descriptors: &'a [Descriptor],
    bytes: u64,
}

impl<'a> Submission<'a> {
    /// Which way the bytes go.
    #[must_use]
    pub const fn operation(&self) -> Operation {
        self.operation
    }

    /// Its descriptors; task `n` of the submission is the `n`-th of them.
    #[must_use]
    pub const fn descriptors(&self) -> &'a [Descriptor] {
        self.descriptors
    }

    /// Bytes of its descriptors.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }
}

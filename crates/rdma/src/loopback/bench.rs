//! Two endpoints with one buffer each, for tests.

use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, Offset};

use crate::address::Address;
use crate::batch::{BoundBatch, Operation};
use crate::bind::{Part, bind_parts};
use crate::capabilities::SubmissionLimits;
use crate::engine::{Engine, Memory};
use crate::loopback::{Fabric, Loopback, LoopbackPeer};
use crate::memory::HostBuffer;
use crate::region::{Region, RegionMap};

pub(super) const ID: AllocationId = AllocationId::new(0);

/// What the destination holds before a transfer.
pub(super) const CANARY: u8 = 0xC5;

/// A source that registered its buffer, and a destination that did.
pub(super) struct Bench {
    pub(super) fabric: Fabric,
    pub(super) prefill: Loopback,
    pub(super) decode: Loopback,
    pub(super) peer: LoopbackPeer,
    pub(super) source: HostBuffer,
    pub(super) destination: HostBuffer,
    limits: SubmissionLimits,
}

impl Bench {
    pub(super) fn new(len: u64) -> Self {
        Self::with_limits(len, SubmissionLimits::default())
    }

    pub(super) fn with_limits(len: u64, limits: SubmissionLimits) -> Self {
        let fabric = Fabric::new();
        let attach = |name| fabric.attach_with(name, crate::RegistrationLimits::default(), limits);
        let (prefill, decode) = (attach("prefill").unwrap(), attach("decode").unwrap());
        let (source, destination) = (buffer(1 << 20, len), buffer(1 << 40, len));
        for (at, byte) in source.write().iter_mut().enumerate() {
            *byte = pattern(at);
        }
        destination.write().fill(CANARY);
        prefill.register(&source, span(0, len)).unwrap();
        decode.register(&destination, span(0, len)).unwrap();
        let peer = prefill.open("decode").unwrap();
        Self {
            fabric,
            prefill,
            decode,
            peer,
            source,
            destination,
            limits,
        }
    }

    /// A batch of writes `(from, to, len)`.
    pub(super) fn batch(&self, copies: &[(u64, u64, u64)]) -> BoundBatch {
        let parts = copies.iter().map(|(from, to, len)| Part {
            source: (ID, *from),
            destination: (ID, *to),
            len: *len,
        });
        let (local, remote) = (map(&self.source), map(&self.destination));
        bind_parts(parts, Operation::Write, &local, &remote, self.limits).unwrap()
    }

    /// Submits a batch that is one submission.
    pub(super) fn submit(
        &self,
        copies: &[(u64, u64, u64)],
    ) -> Result<crate::LoopbackTicket, crate::SubmitError> {
        let batch = self.batch(copies);
        let submission = batch.submissions().next().unwrap();
        assert_eq!(submission.descriptors().len(), batch.descriptors().len());
        self.prefill.submit(&self.peer, submission)
    }

    /// Checks every byte of the destination: these copies, and canaries.
    pub(super) fn assert_landed(&self, copies: &[(u64, u64, u64)]) {
        let mut expected = vec![CANARY; self.destination.read().len()];
        for (from, to, len) in copies {
            let [from, to, len] = [from, to, len].map(|n| usize::try_from(*n).unwrap());
            expected[to..][..len].copy_from_slice(&self.source.read()[from..][..len]);
        }
        assert!(**self.destination.read() == *expected);
    }
}

/// A byte that tells positions apart, also by a distance of 256.
pub(super) fn pattern(at: usize) -> u8 {
    let at = u32::try_from(at).unwrap();
    let [_, _, _, top] = at.wrapping_mul(0x9E37_79B1).to_le_bytes();
    top
}

pub(super) fn len(bytes: u64) -> ByteLen {
    ByteLen::new(bytes).unwrap()
}

pub(super) fn span(start: u64, bytes: u64) -> ByteSpan {
    ByteSpan::new(Offset::new(start).unwrap(), len(bytes)).unwrap()
}

pub(super) fn buffer(base: u64, bytes: u64) -> HostBuffer {
    HostBuffer::zeroed_at(Address::new(base).unwrap(), len(bytes)).unwrap()
}

/// The whole buffer as allocation 0.
pub(super) fn map(buffer: &HostBuffer) -> RegionMap {
    let region = Region::new(ID, span(0, buffer.len().get()), buffer.base());
    RegionMap::new([region.unwrap()]).unwrap()
}

//! Two engines with one buffer each, for tests.

use std::sync::Arc;

use mooncake_pd_layout::{AllocationId, ByteLen, ByteSpan, Offset};

use super::{TcpConfig, TcpLoopback, TcpPeer, TcpRegistration};
use crate::address::Address;
use crate::batch::{BoundBatch, Operation};
use crate::bind::{Part, bind_parts};
use crate::engine::{Engine, Memory};
use crate::memory::HostBuffer;
use crate::region::{Region, RegionMap};

pub(super) const ID: AllocationId = AllocationId::new(0);

/// What the destination holds before a transfer.
pub(super) const CANARY: u8 = 0xC5;

/// Where the destination says that it is.
pub(super) const THERE: u64 = 1 << 40;

/// A source that registered its buffer, and a destination that did.
pub(super) struct Bench {
    pub(super) prefill: Arc<TcpLoopback>,
    pub(super) decode: TcpLoopback,
    pub(super) peer: TcpPeer,
    pub(super) source: HostBuffer,
    pub(super) destination: HostBuffer,
    pub(super) registered: Vec<TcpRegistration>,
}

impl Bench {
    pub(super) fn new(len: u64) -> Self {
        Self::with_ranges(len, &[(0, len)])
    }

    /// The destination registers these ranges `(start, len)` alone.
    pub(super) fn with_ranges(len: u64, ranges: &[(u64, u64)]) -> Self {
        let start = || TcpLoopback::start(&TcpConfig::default()).unwrap();
        let (prefill, decode) = (Arc::new(start()), start());
        let (source, destination) = (buffer(1 << 20, len), buffer(THERE, len));
        for (at, byte) in source.write().iter_mut().enumerate() {
            *byte = pattern(at);
        }
        destination.write().fill(CANARY);
        let mut registered = vec![prefill.register(&source, span(0, len)).unwrap()];
        for (start, len) in ranges {
            registered.push(decode.register(&destination, span(*start, *len)).unwrap());
        }
        let peer = prefill.open(decode.name()).unwrap();
        Self {
            prefill,
            decode,
            peer,
            source,
            destination,
            registered,
        }
    }

    /// A batch of copies `(here, there, len)`; what both sides registered is
    /// not looked at.
    pub(super) fn batch(&self, operation: Operation, copies: &[(u64, u64, u64)]) -> BoundBatch {
        let parts = copies.iter().map(|(here, there, len)| {
            let (source, destination) = match operation {
                Operation::Write => ((ID, *here), (ID, *there)),
                Operation::Read => ((ID, *there), (ID, *here)),
            };
            Part {
                source,
                destination,
                len: *len,
            }
        });
        let (local, remote) = (map(&self.source), map(&self.destination));
        let limits = self.prefill.capabilities().submission();
        bind_parts(parts, operation, &local, &remote, limits).unwrap()
    }

    /// What a buffer holds that got these copies `(from, to, len)`.
    pub(super) fn moved(from: &[u8], to: &[u8], copies: &[(u64, u64, u64)]) -> Vec<u8> {
        let mut expected = to.to_vec();
        for (start, end, len) in copies {
            let [start, end, len] = [start, end, len].map(|n| usize::try_from(*n).unwrap());
            expected[end..][..len].copy_from_slice(&from[start..][..len]);
        }
        expected
    }

    /// Checks every byte of the destination: these copies, and canaries.
    pub(super) fn assert_landed(&self, copies: &[(u64, u64, u64)]) {
        let canaries = vec![CANARY; self.destination.read().len()];
        let expected = Self::moved(&self.source.read(), &canaries, copies);
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

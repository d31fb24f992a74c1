//! Memory that is written over as soon as its owner has it back.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use mooncake_pd_layout::ByteLen;

use crate::address::Address;
use crate::memory::HostBuffer;

/// Bytes of either side.
pub(super) const LEN: usize = 512;
/// What a destination holds before a transfer.
pub(super) const CANARY: u8 = 0xC5;
/// What a destination holds after its release.
pub(super) const POISON: u8 = 0x22;

/// The source's byte `at`; never a canary.
pub(super) fn pattern(at: usize) -> u8 {
    u8::try_from(at % usize::from(CANARY)).unwrap_or(0)
}

/// The memory of both sides. Dropping it is its release: somebody else writes
/// over it.
#[derive(Debug)]
pub(super) struct Lease {
    pub(super) source: HostBuffer,
    pub(super) destination: HostBuffer,
    pub(super) released: Arc<AtomicBool>,
}

impl Lease {
    /// Source and destination at these addresses.
    pub(super) fn new(source: u64, destination: u64) -> Self {
        let buffer = |base| {
            let len = u64::try_from(LEN).expect("512 is a number");
            let len = ByteLen::new(len).expect("512 bytes are a length");
            let base = Address::new(base).expect("the address is one");
            HostBuffer::zeroed_at(base, len).expect("512 bytes are there")
        };
        let (source, destination) = (buffer(source), buffer(destination));
        for (at, byte) in source.write().iter_mut().enumerate() {
            *byte = pattern(at);
        }
        destination.write().fill(CANARY);
        Self {
            source,
            destination,
            released: Arc::default(),
        }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.source.write().fill(!POISON);
        self.destination.write().fill(POISON);
        self.released.store(true, Ordering::SeqCst);
    }
}

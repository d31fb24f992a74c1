//! Layouts, memory and checks for tests over every engine.
#![allow(dead_code, reason = "each target uses its own part")]

pub(crate) mod checks;
pub(crate) mod fixtures;
pub(crate) mod pair;

use std::fmt::Debug;

use mooncake_pd_layout::{Axis, ByteLen, CacheLayout, FieldSpec, GroupSpec, LayoutBuilder};
use mooncake_pd_rdma::mooncake::Mooncake;
use mooncake_pd_rdma::tcp::TcpLoopback;
use mooncake_pd_rdma::tokenspeed::Tokenspeed;
use mooncake_pd_rdma::{Bytes, Engine, HostBuffer, Loopback, NativeMemory};

/// An engine that the same checks run over.
pub(crate) trait Subject: Engine<Memory: Bytes + Sync, Registration: Sync> + Debug {
    /// Zeroed memory.
    fn zeroed(len: ByteLen) -> Self::Memory;
}

impl Subject for Loopback {
    fn zeroed(len: ByteLen) -> HostBuffer {
        HostBuffer::zeroed(len).unwrap()
    }
}

impl Subject for TcpLoopback {
    fn zeroed(len: ByteLen) -> HostBuffer {
        HostBuffer::zeroed(len).unwrap()
    }
}

impl Subject for Mooncake {
    fn zeroed(len: ByteLen) -> NativeMemory {
        NativeMemory::zeroed(len).unwrap()
    }
}

impl Subject for Tokenspeed {
    fn zeroed(len: ByteLen) -> NativeMemory {
        NativeMemory::zeroed(len).unwrap()
    }
}

/// `blocks` blocks of one token of `page` bytes, `stride` apart.
pub(crate) fn layout(blocks: u32, page: u64, stride: u64) -> CacheLayout {
    let kv = FieldSpec::new("kv", "uint8")
        .at(0, 0)
        .page_stride(stride)
        .dim(Axis::Token, 1, page)
        .dim(Axis::Content, page, 1);
    LayoutBuilder::new()
        .allocation(0, u64::from(blocks) * stride)
        .pool(0, blocks, Some(0))
        .group(GroupSpec::new(0, "full_attention", 1, 0).layer("layer.0", [kv]))
        .build()
        .unwrap()
}

/// All bytes of some memory.
pub(crate) fn bytes(memory: &impl Bytes) -> Vec<u8> {
    let mut bytes = vec![0; usize::try_from(memory.len().get()).unwrap()];
    memory.copy_out(0, &mut bytes).unwrap();
    bytes
}

/// Bytes that tell positions apart, also by a distance of 256.
pub(crate) fn pattern(len: usize) -> Vec<u8> {
    let byte = |at: usize| {
        let at = u32::try_from(at).unwrap();
        let [_, _, _, top] = at.wrapping_mul(0x9E37_79B1).to_le_bytes();
        top
    };
    (0..len).map(byte).collect()
}

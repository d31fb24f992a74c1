use std::ffi::{c_int, c_void};
use std::mem::offset_of;

use super::SegmentHandle;

/// Copy from the peer's memory to `source`.
pub const OPCODE_READ: c_int = 0;

/// Copy from `source` to the peer's memory.
pub const OPCODE_WRITE: c_int = 1;

/// One copy between local memory and a segment.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct TransferRequest {
    /// [`OPCODE_READ`] or [`OPCODE_WRITE`]. The engine runs any other value as a read, which
    /// overwrites `source`.
    pub opcode: c_int,
    /// Local end, of both reads and writes. Must lie in one registered region: over TCP an
    /// unregistered one passes, over RDMA it fails.
    pub source: *mut c_void,
    /// The peer, from `open_segment`.
    pub target_id: SegmentHandle,
    /// The peer's end: for memory segments its virtual address there, inside one region that
    /// the peer registered.
    pub target_offset: u64,
    /// Bytes. Zero is accepted, whatever the addresses.
    pub length: u64,
}

const _: () = {
    assert!(size_of::<TransferRequest>() == 40);
    assert!(align_of::<TransferRequest>() == 8);
    assert!(offset_of!(TransferRequest, opcode) == 0);
    assert!(offset_of!(TransferRequest, source) == 8);
    assert!(offset_of!(TransferRequest, target_id) == 16);
    assert!(offset_of!(TransferRequest, target_offset) == 24);
    assert!(offset_of!(TransferRequest, length) == 32);
};

use std::ffi::c_int;
use std::mem::offset_of;

/// Not ended; also what most transports report while they work.
pub const STATUS_WAITING: c_int = 0;

/// Not ended.
pub const STATUS_PENDING: c_int = 1;

/// Refused.
pub const STATUS_INVALID: c_int = 2;

/// Given up.
pub const STATUS_CANCELED: c_int = 3;

/// Ended, all bytes moved.
pub const STATUS_COMPLETED: c_int = 4;

/// Took longer than `MC_SLICE_TIMEOUT` (off by default). The task may still be running: the
/// engine does not count it as ended, and its batch can't be freed until it is.
pub const STATUS_TIMEOUT: c_int = 5;

/// Ended, some bytes not moved.
pub const STATUS_FAILED: c_int = 6;

/// The state of one task of a batch.
#[repr(C)]
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TransferStatus {
    /// One of the `STATUS_` constants.
    pub status: c_int,
    /// Bytes moved so far.
    pub transferred_bytes: u64,
}

const _: () = {
    assert!(size_of::<TransferStatus>() == 16);
    assert!(align_of::<TransferStatus>() == 8);
    assert!(offset_of!(TransferStatus, status) == 0);
    assert!(offset_of!(TransferStatus, transferred_bytes) == 8);
};

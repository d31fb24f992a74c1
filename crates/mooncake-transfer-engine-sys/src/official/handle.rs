use std::ffi::c_void;

/// An engine, as `create_transfer_engine` returns it: null on failure, else owned by the caller
/// until `destroy_transfer_engine`.
pub type EngineHandle = *mut c_void;

/// A transport that belongs to its engine: null on failure, never freed by the caller.
pub type TransportHandle = *mut c_void;

/// A peer's memory, valid for the engine that opened it. Negative values are error codes.
pub type SegmentHandle = i32;

/// A batch of transfers. The value is an address inside the library: only values that
/// `allocate_batch_id` returned, and that were not freed, may be passed back.
pub type BatchId = u64;

/// The engine's own memory as a segment.
pub const LOCAL_SEGMENT: SegmentHandle = 0;

/// What `allocate_batch_id` returns when it has no batch.
pub const INVALID_BATCH: BatchId = u64::MAX;

// Layouts below are those of the 64-bit machines that Mooncake builds for.
const _: () = assert!(size_of::<EngineHandle>() == 8);

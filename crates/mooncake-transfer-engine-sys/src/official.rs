//! The C API of the Mooncake Transfer Engine (`transfer_engine_c.h`), as `libtransfer_engine.so`
//! exports it. No published Python wheel holds it; it comes from a build of Mooncake's source.
//!
//! Facts about behaviour here were read in Mooncake's source of August 2026 or measured over TCP.

mod buffer_entry;
mod functions;
mod handle;
mod library;
mod nic_load_stat;
mod notify_msg;
mod segment_desc;
mod transfer_request;
mod transfer_status;

pub use buffer_entry::BufferEntry;
pub use functions::Functions;
pub use handle::{
    BatchId, EngineHandle, INVALID_BATCH, LOCAL_SEGMENT, SegmentHandle, TransportHandle,
};
pub use library::{LIBRARY_ENV, LIBRARY_NAME, Library};
pub use nic_load_stat::NicLoadStat;
pub use notify_msg::NotifyMsg;
pub use segment_desc::{NvmeofDesc, RdmaDesc, SegmentDesc, SegmentDescUnion};
pub use transfer_request::{OPCODE_READ, OPCODE_WRITE, TransferRequest};
pub use transfer_status::{
    STATUS_CANCELED, STATUS_COMPLETED, STATUS_FAILED, STATUS_INVALID, STATUS_PENDING,
    STATUS_TIMEOUT, STATUS_WAITING, TransferStatus,
};

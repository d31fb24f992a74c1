use std::ffi::{c_char, c_int, c_void};
use std::fmt;
use std::mem::offset_of;

/// What a segment is. The header declares it; no function of the header takes or returns it.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct SegmentDesc {
    /// Which member of `desc` is live.
    pub kind: c_int,
    /// The header's `desc_`.
    pub desc: SegmentDescUnion,
}

/// The two kinds of segment.
#[repr(C)]
#[derive(Clone, Copy)]
pub union SegmentDescUnion {
    /// Memory.
    pub rdma: RdmaDesc,
    /// A file on a remote drive.
    pub nvmeof: NvmeofDesc,
}

/// Memory of a peer.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct RdmaDesc {
    /// First byte.
    pub addr: *mut c_void,
    /// Bytes.
    pub size: u64,
    /// Where it lies, such as `cuda:0`.
    pub location: *const c_char,
}

/// A file on a remote drive.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NvmeofDesc {
    /// Path of the file.
    pub file_path: *const c_char,
    /// Name of the subsystem.
    pub subsystem_name: *const c_char,
    /// Transport.
    pub proto: *const c_char,
    /// Address of the target.
    pub ip: *const c_char,
    /// Port of the target.
    pub port: u64,
}

impl fmt::Debug for SegmentDesc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Which member is live is not known to Rust.
        f.debug_struct("SegmentDesc")
            .field("kind", &self.kind)
            .finish_non_exhaustive()
    }
}

const _: () = {
    assert!(size_of::<SegmentDesc>() == 48);
    assert!(align_of::<SegmentDesc>() == 8);
    assert!(offset_of!(SegmentDesc, kind) == 0);
    assert!(offset_of!(SegmentDesc, desc) == 8);
    assert!(size_of::<SegmentDescUnion>() == 40);
    assert!(offset_of!(SegmentDescUnion, rdma) == 0);
    assert!(offset_of!(SegmentDescUnion, nvmeof) == 0);
    assert!(size_of::<RdmaDesc>() == 24);
    assert!(offset_of!(RdmaDesc, addr) == 0);
    assert!(offset_of!(RdmaDesc, size) == 8);
    assert!(offset_of!(RdmaDesc, location) == 16);
    assert!(size_of::<NvmeofDesc>() == 40);
    assert!(offset_of!(NvmeofDesc, file_path) == 0);
    assert!(offset_of!(NvmeofDesc, subsystem_name) == 8);
    assert!(offset_of!(NvmeofDesc, proto) == 16);
    assert!(offset_of!(NvmeofDesc, ip) == 24);
    assert!(offset_of!(NvmeofDesc, port) == 32);
};

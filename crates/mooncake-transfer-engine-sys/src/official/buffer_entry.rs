use std::ffi::c_void;
use std::mem::offset_of;

/// One region of `register_local_memory_batch`.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct BufferEntry {
    /// First byte.
    pub addr: *mut c_void,
    /// Bytes, not zero.
    pub length: usize,
}

const _: () = {
    assert!(size_of::<BufferEntry>() == 16);
    assert!(align_of::<BufferEntry>() == 8);
    assert!(offset_of!(BufferEntry, addr) == 0);
    assert!(offset_of!(BufferEntry, length) == 8);
};

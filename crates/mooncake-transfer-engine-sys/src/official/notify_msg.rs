use std::ffi::c_char;
use std::mem::offset_of;

/// A message between engines: two strings ended by zero bytes, neither null.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NotifyMsg {
    /// Who it is for or from.
    pub name: *mut c_char,
    /// What it says.
    pub msg: *mut c_char,
}

const _: () = {
    assert!(size_of::<NotifyMsg>() == 16);
    assert!(align_of::<NotifyMsg>() == 8);
    assert!(offset_of!(NotifyMsg, name) == 0);
    assert!(offset_of!(NotifyMsg, msg) == 8);
};

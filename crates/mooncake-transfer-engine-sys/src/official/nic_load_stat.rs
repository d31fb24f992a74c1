use std::ffi::c_char;
use std::mem::offset_of;

/// What the engine knows of one NIC's load.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct NicLoadStat {
    /// Name, ended by a zero byte and cut to fit.
    pub device_name: [c_char; 64],
    /// Bytes submitted and not ended.
    pub inflight_bytes: u64,
    /// Moving average of the bandwidth, in the engine's unit.
    pub ewma_bandwidth_bps: f64,
}

const _: () = {
    assert!(size_of::<NicLoadStat>() == 80);
    assert!(align_of::<NicLoadStat>() == 8);
    assert!(offset_of!(NicLoadStat, device_name) == 0);
    assert!(offset_of!(NicLoadStat, inflight_bytes) == 64);
    assert!(offset_of!(NicLoadStat, ewma_bandwidth_bps) == 72);
};

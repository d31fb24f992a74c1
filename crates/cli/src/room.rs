//! Whether the machine has room for both sides.

use mooncake_pd_layout::CacheLayout;

use crate::failure::Failure;

/// Refuses sides that the machine can't hold, before they are filled and the
/// system ends the process.
///
/// # Errors
/// Both sides need more bytes than are available. Where the system doesn't
/// say how many those are, nothing is refused.
pub fn check(source: &CacheLayout, destination: &CacheLayout) -> Result<(), Failure> {
    let needed = bytes(source).saturating_add(bytes(destination));
    match available() {
        Some(available) if needed > available => Err(Failure::Memory { needed, available }),
        _ => Ok(()),
    }
}

/// Bytes of all allocations of a layout.
#[must_use]
pub fn bytes(layout: &CacheLayout) -> u64 {
    layout.allocations().iter().fold(0_u64, |sum, allocation| {
        sum.saturating_add(allocation.len().get())
    })
}

/// What Linux estimates that it can give to a process without swapping.
fn available() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kibibytes: u64 = line.trim().strip_suffix(" kB")?.trim().parse().ok()?;
    kibibytes.checked_mul(1024)
}

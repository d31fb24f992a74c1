//! A deterministic world around the session machines.
//!
//! Prefill and decode engines that own block pools and memory, a router, a network
//! that delays, reorders, repeats and drops, transfers that fail, dawdle and land
//! late, aborts, preemption, restarts: all decided by [`Choices`], so that a seed
//! replays exactly. Content carries the history of its prompt, so that a token
//! counted twice, a stale block and a stray write show.
//!
//! What must hold: every request ends exactly once on each side; no block is used
//! again while a transfer may touch it; what decode has is what it would have
//! computed; once faults stop, all ends within [`settle_bound`]; and after a silence
//! no record is left.

mod action;
mod choices;
mod compute;
mod content;
mod decode;
mod decode_host;
mod defect;
mod flight;
mod memory;
mod network;
mod prefill;
mod prefill_host;
mod prompt;
mod report;
mod schedule;
mod settled;
mod world;

pub use choices::Choices;
pub use defect::Defect;
pub use report::{Options, Report};
pub use schedule::settle_bound;
pub use world::{Violation, simulate};

/// Runs one schedule that bytes decide.
///
/// # Panics
/// An invariant does not hold.
pub fn check_schedule_bytes(bytes: &[u8]) {
    if let Err(violation) = simulate(Choices::bytes(bytes), Options::default()) {
        panic!("{violation}");
    }
}

/// The finalizer of splitmix64.
fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

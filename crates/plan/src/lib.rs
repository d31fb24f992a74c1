//! Checked plans: a transfer as a function from two layouts and a request to a set of byte copies.
//!
//! Copies are (allocation, offset) pairs; this crate never sees an address.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

#[cfg(feature = "testing")]
pub mod testing;

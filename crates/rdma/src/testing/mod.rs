//! What has to hold for any bytes, compiled under the feature `testing` only.
//!
//! [`check_transfer_bytes`] is for quickcheck and for fuzzing alike.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a panic here is a failed test, and overflow panics in tests"
)]

mod lease;
mod owner;
mod transfer;

pub use transfer::{check_transfer_bytes, transfers_released};

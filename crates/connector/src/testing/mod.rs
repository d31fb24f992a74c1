//! Generators, a simulator and oracles, compiled under the feature `testing` only.
//!
//! - [`sim`] is a deterministic world around the session machines.
#![allow(
    clippy::arithmetic_side_effects,
    clippy::as_conversions,
    clippy::cast_possible_truncation,
    clippy::expect_used,
    clippy::indexing_slicing,
    clippy::missing_panics_doc,
    clippy::panic,
    reason = "a panic here is a failed test, and overflow panics in tests"
)]

pub mod sim;

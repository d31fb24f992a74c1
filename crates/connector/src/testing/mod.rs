//! Generators, a simulator and oracles, compiled under the feature `testing` only.
//!
//! - [`sim`] is a deterministic world around the session machines.
//! - [`check_wire_bytes`] is what has to hold for the codecs and any bytes; [`draw_pull`] and
//!   [`draw_answer`] make messages.
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

mod draw;
pub mod sim;
mod wire;

pub use draw::{draw_answer, draw_pull};
pub use wire::{WIRE_CODECS, check_wire_bytes};

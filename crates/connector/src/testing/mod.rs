//! Generators, a simulator and oracles, compiled under the feature `testing` only.
//!
//! - [`check_prefill_events`] and [`check_decode_events`] are what has to hold for one machine
//!   alone and any events.
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
mod events;
pub mod sim;
mod wire;

pub use draw::{draw_answer, draw_pull};
pub use events::{check_decode_events, check_event_bytes, check_prefill_events};
pub use wire::{WIRE_CODECS, check_wire_bytes};

//! Failures that people met in the field, each reduced to its events and the right
//! commands. Commands are compared as texts, so that what a failure says is
//! compared with it.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    clippy::arithmetic_side_effects,
    reason = "what can't be made fails the test"
)]

mod blocks;
mod bootstrap;
#[path = "../common/mod.rs"]
mod common;
mod decode_rank;
mod ends;
mod failures;
mod fences;
mod messages;
mod pair;
mod prefill_rank;
mod restarts;
mod senders;
mod timeouts;

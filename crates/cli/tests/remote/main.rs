//! Transfers between two processes.
#![cfg(test)]
#![allow(
    clippy::arithmetic_side_effects,
    clippy::indexing_slicing,
    reason = "a test may fail by panic"
)]

mod bad_targets;
mod command;
mod engines;
mod usage;

//! The parts of the `mooncake-pd` command, as a library so that tests can use
//! them: request files, the separate walker that verifies a transfer, and the
//! commands themselves.

pub mod args;
pub mod batch;
mod bundled;
pub mod commands;
mod contract;
mod engine_failure;
pub mod failure;
mod input;
pub mod loaded;
mod meter;
pub mod number;
pub mod output;
pub mod pair;
pub mod remote;
pub mod request;
pub mod room;
pub mod sides;
mod skipped;
mod table;
pub mod verify;
pub mod walk;

pub use engine_failure::EngineFailure;
pub use meter::Meter;

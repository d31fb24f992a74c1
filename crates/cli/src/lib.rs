//! The parts of the `mooncake-pd` command, as a library so that tests can use them.

pub mod number;
pub mod request;
pub mod verify;

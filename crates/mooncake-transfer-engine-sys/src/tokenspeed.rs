//! The C interface of the transfer engine in the Python package `tokenspeed_mooncake`, version 1.
//!
//! `pip install tokenspeed_mooncake` is the only packaged native engine. It writes and does not
//! read; a write blocks until it ends, and after a failure nothing tells what still runs.

mod functions;
mod library;

pub use functions::{ABI_VERSION, EngineHandle, Functions};
pub use library::{LIBRARY_ENV, LIBRARY_NAME, Library};

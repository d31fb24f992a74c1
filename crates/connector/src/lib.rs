//! What to hold back, what to count, and when a transfer is over.
//!
//! Events go in with their time, commands come out; nothing here calls an engine,
//! opens a socket or reads a clock.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;
#[cfg(any(test, feature = "testing"))]
extern crate std;

mod id;
mod time;
mod tokens;

pub use id::{EngineId, IdError, MAX_ID_BYTES, RequestId, TransferId};
pub use time::{Span, Time};
pub use tokens::TokenCount;

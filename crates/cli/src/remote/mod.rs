//! Transfers between two processes of one machine.
//!
//! The source is the command; it starts its target, a process with memory and
//! an engine of its own. The target is told what to allocate, register, write
//! and read over a channel on 127.0.0.1; the bytes of a transfer go from engine
//! to engine. `docs/channel.md` describes the channel.

mod error;
mod frame;
mod kind;
mod local;
mod message;
mod peer;
mod sides;
mod target;

pub use error::{AbsentError, RemoteError};
pub use frame::FrameError;
pub use kind::{EngineKind, Kinds, MemoryKind, MemoryKindError};
pub use sides::RemoteSides;
pub use target::target;

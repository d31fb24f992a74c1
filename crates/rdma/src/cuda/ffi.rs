//! Calls of the driver.
#![allow(unsafe_code, reason = "calls a C library through cudarc")]

mod calls;
mod context;
mod event;
mod library;
mod memory;
mod pointer;

pub(super) use calls::Failure;
pub(super) use context::{Context, Entered};
pub(super) use event::Event;
pub(super) use library::Library;
pub(super) use memory::allocate;
pub(super) use pointer::{Kind, Pointer};

use super::handle::StreamHandle;
use cudarc::driver::sys::CUstream;

/// The stream that a number is, for the driver to use.
fn stream(handle: StreamHandle) -> CUstream {
    std::ptr::with_exposed_provenance_mut(handle.get())
}

//! Memory, fences and visibility of CUDA devices, over NVIDIA's driver. Only
//! with the feature `cuda`.
//!
//! The driver is looked for when [`Driver::find`] is called, as `libcuda.so.1`
//! and by the other names that the crate `cudarc` has for it, and called with
//! the types of its bindings; nothing of CUDA is needed to build, and a program
//! built with this starts on machines without it. Every function that this
//! module calls is looked up there, so none is missed later.
//!
//! Calls make the device's primary context current for their own time, in
//! whichever thread they run, and leave the thread as it was.
//! [`Device::bind`] makes it current for good; [`Device::on_thread`] does so in
//! the threads of an engine of ours.
//!
//! What others have made, such as streams, events and memory of an inference
//! engine, comes in as numbers. Those constructors are `unsafe`:
//! [`EventFence::of_stream`], [`EventFence::of_event`],
//! [`StreamVisibility::of_stream`] and [`Device::adopt`].
//!
//! Nothing here may be used in a process that was forked after [`Driver::find`].

mod allocation;
mod device;
mod driver;
mod error;
mod fence;
mod ffi;
mod handle;
mod hint;
mod visibility;

pub use allocation::DeviceAllocation;
pub use device::{Device, MemoryInfo};
pub use driver::Driver;
pub use error::CudaError;
pub use fence::EventFence;
pub use handle::{EventHandle, StreamHandle};
pub use visibility::{DeviceVisibility, StreamVisibility};

//! Raw bindings of two native transfer engines of the Mooncake project, loaded at run time. Nothing
//! is linked: a program built with this crate starts on machines that have neither library.
//!
//! | module | library | what it can do |
//! |---|---|---|
//! | [`official`] | `libtransfer_engine.so`, built from Mooncake's source | reads and writes with a status for each, 27 functions |
//! | [`tokenspeed`] | `libtokenspeed_transfer_engine.so`, in the wheel `tokenspeed_mooncake` | blocking writes, 8 functions |
//!
//! Each has a `Library`, which `find` looks for and `open` takes from a path, and a table of its
//! `Functions`. The tables are plain structs of function pointers: whoever stands in for an engine,
//! as tests do, fills one by hand. Types and functions are those of the C headers; nothing here
//! checks an argument.
//!
//! A loaded library stays loaded to the end of the process, since it starts threads that run its
//! code. Its symbols are its own (`RTLD_LOCAL`) and bound at their first call (`RTLD_LAZY`), unless
//! `LD_BIND_NOW` is set.
//!
//! No function of either library catches C++ exceptions. One that got out would be undefined
//! behaviour; callers can't guard against that, only keep arguments valid.
#![allow(
    unsafe_code,
    reason = "function pointers of a C library are called and made here"
)]

mod cuda;
mod environment;
mod error;
mod hint;
mod object;
pub mod official;
mod reason;
mod search;
mod site_packages;
mod table;
pub mod tokenspeed;

pub use cuda::CUDA_STUB_ENV;
pub use error::LoadError;
pub use reason::Reason;

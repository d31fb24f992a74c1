//! Requests from files: our own format, recorded oracles, planning benches
//! and SGLang's recorded cases.

mod bench;
mod case;
mod error;
mod name;
mod oracle;
mod parse;
mod sglang;
mod strict;

pub use error::{Found, RequestFileError};
pub use name::RequestName;
pub use parse::{Requests, parse};

use std::ffi::c_int;
use std::fmt;
use std::path::PathBuf;

use thiserror::Error;

use crate::Reason;

/// Why a library can't be used.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[non_exhaustive]
pub enum LoadError {
    /// No place has it.
    #[error(
        "{what} was not found; tried:{}\nto fix it, set {variable} to the path of the library",
        Lines(tried)
    )]
    NotFound {
        /// File name of the library.
        what: &'static str,
        /// The environment variable that names its path.
        variable: &'static str,
        /// Each place and why it was none. A bare name is the loader's own search.
        tried: Vec<(PathBuf, Reason)>,
    },
    /// An environment variable names a file that does not exist.
    #[error("{variable} is set to {}, and there is no such file", path.display())]
    Variable {
        /// The variable.
        variable: &'static str,
        /// The file it asks for.
        path: PathBuf,
    },
    /// The loader refused the file.
    #[error("can't load {}: {reason}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the loader said.
        reason: Reason,
    },
    /// The library lacks a function that its table requires: it is older than the table, or
    /// another library of the same name.
    #[error("{} does not export {symbol}", path.display())]
    Symbol {
        /// The library.
        path: PathBuf,
        /// The C name of the function.
        symbol: &'static str,
    },
    /// The library has another version of the interface.
    #[error("{} has version {found} of its C interface, this crate knows {expected}", path.display())]
    AbiVersion {
        /// The library.
        path: PathBuf,
        /// What it says it has.
        found: c_int,
        /// What the table was written for.
        expected: c_int,
    },
}

struct Lines<'a>(&'a [(PathBuf, Reason)]);

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (path, reason) in self.0 {
            write!(f, "\n  {}: {reason}", path.display())?;
        }
        Ok(())
    }
}

use std::fmt;

use crate::hint;

/// Why one place has no usable library.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Reason {
    /// There is no such file.
    NoFile,
    /// The loader refused, in its own words. `Display` adds where a library that it misses
    /// usually comes from.
    Loader(String),
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoFile => f.write_str("no such file"),
            Self::Loader(text) => {
                f.write_str(text)?;
                match hint::of(text) {
                    Some(hint) => write!(f, " ({hint})"),
                    None => Ok(()),
                }
            }
        }
    }
}

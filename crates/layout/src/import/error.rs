//! Why what an engine reported is not a layout.

use alloc::string::String;
use core::fmt;

use super::place::ReportPlace;
use crate::error::LayoutError;
use crate::json::JsonError;

/// Why what an engine reported about itself can't be imported.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// Not JSON, or not of the shape its format has.
    #[error("not a report of format `{format}`: {error}")]
    Json {
        /// The format it was read as.
        format: &'static str,
        /// What the JSON reader says.
        error: JsonError,
    },
    /// No JSON object whose `format` or `schema` names its format.
    #[error("not a report: {0}")]
    Header(JsonError),
    /// A format that is not known.
    #[error("unknown format `{found}`, known are {known}", known = Names(.known))]
    UnknownFormat {
        /// Its name; empty if the document has none.
        found: String,
        /// The formats the reader knows.
        known: &'static [&'static str],
    },
    /// A kind of cache that is not known.
    #[error("{place} is of unknown kind `{kind}`")]
    UnknownKind {
        /// Where.
        place: ReportPlace,
        /// The kind.
        kind: String,
    },
    /// A recurrent state whose bytes are not known.
    #[error("{place} holds state of type `{state}`, only gated delta nets are known")]
    UnknownState {
        /// Where.
        place: ReportPlace,
        /// The type of state.
        state: String,
    },
    /// Something the format always has is not there.
    #[error("{place} has no {what}")]
    Missing {
        /// Where.
        place: ReportPlace,
        /// What is missing.
        what: &'static str,
    },
    /// Two statements that contradict each other.
    #[error("{place}: {what} is {found}, expected {expected}")]
    Mismatch {
        /// Where.
        place: ReportPlace,
        /// What is stated twice.
        what: &'static str,
        /// One statement.
        found: String,
        /// The other.
        expected: String,
    },
    /// A number that leaves 64 bits, or 32 where ids are counted.
    #[error("{place}: {what} is too large")]
    TooLarge {
        /// Where.
        place: ReportPlace,
        /// What is too large.
        what: &'static str,
    },
    /// The report was read, but is not a sound layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
}

struct Names<'a>(&'a [&'static str]);

impl fmt::Display for Names<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, name) in self.0.iter().enumerate() {
            let comma = if i == 0 { "" } else { ", " };
            write!(f, "{comma}`{name}`")?;
        }
        Ok(())
    }
}

impl ImportError {
    pub(super) fn missing(place: impl Into<ReportPlace>, what: &'static str) -> Self {
        Self::Missing {
            place: place.into(),
            what,
        }
    }

    pub(super) fn too_large(place: impl Into<ReportPlace>, what: &'static str) -> Self {
        Self::TooLarge {
            place: place.into(),
            what,
        }
    }
}

/// `Ok` if the two statements agree.
pub(super) fn agree<T: PartialEq + fmt::Debug + ?Sized>(
    place: impl Into<ReportPlace>,
    what: &'static str,
    found: &T,
    expected: &T,
) -> Result<(), ImportError> {
    if found == expected {
        Ok(())
    } else {
        Err(ImportError::Mismatch {
            place: place.into(),
            what,
            found: alloc::format!("{found:?}"),
            expected: alloc::format!("{expected:?}"),
        })
    }
}

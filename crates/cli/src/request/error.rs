//! What can be wrong with a request file.

use thiserror::Error;

/// A request file, or the case named in it, can't be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RequestFileError {
    /// The file is not JSON, or not of its own format.
    #[error("{file}: {reason}")]
    Json {
        /// The file.
        file: String,
        /// The parser's message.
        reason: String,
    },
    /// The format is none that requests come in.
    #[error("{file}: {found:?} is no request format")]
    Format {
        /// The file.
        file: String,
        /// The stated format.
        found: String,
    },
    /// The file holds several cases and none was named.
    #[error("{file}: name a case, as in {file}#CASE; it has: {}", .known.join(", "))]
    NoCase {
        /// The file.
        file: String,
        /// Its cases.
        known: Vec<String>,
    },
    /// The named case is not in the file.
    #[error("{file}: no case {case:?}; it has: {}", .known.join(", "))]
    UnknownCase {
        /// The file.
        file: String,
        /// The case asked for.
        case: String,
        /// Its cases.
        known: Vec<String>,
    },
    /// A case was named in a file that has none.
    #[error("{file}: a request file has no cases, but {case:?} was named")]
    NotACase {
        /// The file.
        file: String,
        /// The case asked for.
        case: String,
    },
    /// A value of the case is absent or of another type.
    #[error("{file}: case {case:?} has no {wanted} `{key}`")]
    Missing {
        /// The file.
        file: String,
        /// The case.
        case: String,
        /// The key.
        key: &'static str,
        /// The type it should have.
        wanted: &'static str,
    },
    /// A request names other numbers of groups on its two sides.
    #[error(
        "{file}: case {case:?} has lists of {producer} producer and {consumer} consumer groups"
    )]
    GroupCounts {
        /// The file.
        file: String,
        /// The case.
        case: String,
        /// Groups of the producer.
        producer: usize,
        /// Groups of the consumer.
        consumer: usize,
    },
    /// The case was recorded between layouts that its file doesn't hold.
    #[error(
        "{file}: case {case:?} was recorded with unequal TP; the file holds equal layouts only"
    )]
    UnequalTp {
        /// The file.
        file: String,
        /// The case.
        case: String,
    },
    /// Index keys are moved under other pages than the keys that they index.
    #[error("{file}: case {case:?} moves other pages of `dsa` than of `kv`")]
    IndexPages {
        /// The file.
        file: String,
        /// The case.
        case: String,
    },
}

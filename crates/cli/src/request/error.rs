//! What can be wrong with a request file.

use std::fmt;

use serde_json::Value;
use thiserror::Error;

/// Most characters of a value that are repeated in a message.
const SHOWN: usize = 40;

/// What stands where another value should.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Found(Option<String>);

impl Found {
    /// The value, or that there is none. Long ones are cut.
    #[must_use]
    pub fn new(value: Option<&Value>) -> Self {
        Self(value.map(|value| match value {
            Value::Array(list) => format!("a list of {}", list.len()),
            Value::Object(object) => format!("an object of {} keys", object.len()),
            other => {
                let text = other.to_string();
                match text.char_indices().nth(SHOWN) {
                    None => text,
                    Some((end, _)) => format!("{}...", text.get(..end).unwrap_or_default()),
                }
            }
        }))
    }
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0.as_deref().unwrap_or("absent"))
    }
}

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
    #[error("{file}: `format` is {found}, not one of {}", .known.join(", "))]
    Format {
        /// The file.
        file: String,
        /// The stated format.
        found: Found,
        /// Formats of requests.
        known: &'static [&'static str],
    },
    /// The file asks for nothing.
    #[error("{file}: `requests` is empty, 1 request or more is needed")]
    Empty {
        /// The file.
        file: String,
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
    #[error("{file}: case {case:?}: `{place}` is {found}, not {wanted}")]
    Value {
        /// The file.
        file: String,
        /// The case.
        case: String,
        /// Where in the case, as `requests[0].producer_block_ids[2][5]`.
        place: String,
        /// What is there.
        found: Found,
        /// What should be there.
        wanted: &'static str,
    },
    /// A request names other numbers of groups on its two sides.
    #[error(
        "{file}: case {case:?}{}{place} has lists of {producer} producer and {consumer} consumer groups",
        if place.is_empty() { "" } else { ": " }
    )]
    GroupCounts {
        /// The file.
        file: String,
        /// The case.
        case: String,
        /// Where in the case; empty for all of it.
        place: String,
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

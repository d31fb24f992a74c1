//! What the JSON reader and writer say.

use alloc::string::{String, ToString};

/// Why text is not JSON of a format, or a value can't be written as JSON.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct JsonError {
    line: usize,
    column: usize,
    message: String,
}

impl JsonError {
    /// Line of the text it was found in, from 1; 0 where there is no text.
    #[must_use]
    pub const fn line(&self) -> usize {
        self.line
    }

    /// Column of that line, from 1; 0 where there is no text.
    #[must_use]
    pub const fn column(&self) -> usize {
        self.column
    }

    /// What is wrong, with line and column.
    #[must_use]
    pub fn message(&self) -> &str {
        &self.message
    }
}

impl From<serde_json::Error> for JsonError {
    fn from(error: serde_json::Error) -> Self {
        Self {
            line: error.line(),
            column: error.column(),
            message: error.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use alloc::string::ToString;

    use crate::{CacheLayout, LayoutError};

    #[test]
    fn a_manifest_that_is_no_json_says_line_and_column() {
        let error = CacheLayout::from_json("{\n\"format\": x").unwrap_err();
        let text = "not a layout manifest: expected value at line 2 column 11";
        assert_eq!(error.to_string(), text);
        let LayoutError::Json(error) = error else {
            panic!("{error}")
        };
        assert_eq!((error.line(), error.column()), (2, 11));
        assert_eq!(error.message(), "expected value at line 2 column 11");
    }
}

//! `FILE` or `FILE#CASE`.

use std::convert::Infallible;
use std::str::FromStr;

/// A request file and the case in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestName {
    /// The file; `-` is the standard input.
    pub file: String,
    /// The case, where the file has several.
    pub case: Option<String>,
}

impl FromStr for RequestName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        Ok(match text.split_once('#') {
            Some((file, case)) => Self {
                file: file.to_owned(),
                case: Some(case.to_owned()),
            },
            None => Self {
                file: text.to_owned(),
                case: None,
            },
        })
    }
}

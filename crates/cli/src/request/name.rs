//! `FILE` or `FILE#CASE`.

use std::convert::Infallible;
use std::path::Path;
use std::str::FromStr;

/// A request file and the case in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestName {
    /// The file; `-` is the standard input.
    pub file: String,
    /// The case, where the file has several.
    pub case: Option<String>,
}

/// A text that is the name of a file is that file. Otherwise the case begins
/// after the last `#` before which there is the name of a file, or after the
/// last one if there is none.
impl FromStr for RequestName {
    type Err = Infallible;

    fn from_str(text: &str) -> Result<Self, Infallible> {
        let exists = |file: &str| file == "-" || Path::new(file).is_file();
        let cuts = || {
            text.rmatch_indices('#').filter_map(|(at, hash)| {
                let (file, rest) = text.split_at_checked(at)?;
                Some((file, rest.strip_prefix(hash)?))
            })
        };
        let found = if exists(text) {
            None
        } else {
            cuts()
                .find(|(file, _)| exists(file))
                .or_else(|| cuts().next())
        };
        let (file, case) = found.map_or((text, None), |(file, case)| (file, Some(case)));
        Ok(Self {
            file: file.to_owned(),
            case: case.map(str::to_owned),
        })
    }
}

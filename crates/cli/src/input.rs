//! Files and the standard input.

use std::fs::File;
use std::io::Read;

use crate::failure::Failure;
use crate::number::count;

/// Longest file that is read, in bytes.
const LIMIT: u64 = 1 << 28;

/// Reads files; remembers the standard input, which can be read only once.
#[derive(Debug, Default)]
pub(crate) struct Input {
    standard: Option<String>,
}

impl Input {
    /// The text of a file; `-` is the standard input.
    ///
    /// # Errors
    /// It can't be read, is too long, or is no text.
    pub(crate) fn text(&mut self, file: &str) -> Result<String, Failure> {
        if file != "-" {
            let opened = File::open(file).map_err(|error| Failure::Read {
                file: file.to_owned(),
                error,
            })?;
            return read(file, opened);
        }
        if let Some(text) = &self.standard {
            return Ok(text.clone());
        }
        let text = read("standard input", std::io::stdin().lock())?;
        self.standard = Some(text.clone());
        Ok(text)
    }
}

fn read(file: &str, from: impl Read) -> Result<String, Failure> {
    let mut bytes = Vec::new();
    from.take(LIMIT.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(|error| Failure::Read {
            file: file.to_owned(),
            error,
        })?;
    if count(bytes.len()) > LIMIT {
        return Err(Failure::TooLong {
            file: file.to_owned(),
            limit: LIMIT,
        });
    }
    String::from_utf8(bytes).map_err(|error| Failure::NotText {
        file: file.to_owned(),
        at: error.utf8_error().valid_up_to(),
    })
}

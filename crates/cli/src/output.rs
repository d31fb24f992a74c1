//! Where results go.

use std::error::Error;
use std::io::{self, Write};

use serde::Serialize;

use crate::failure::{Exit, Failure};

/// What a command prints, and how it ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Output {
    /// For the standard output; ends with a line break.
    pub text: String,
    /// For the standard error, line by line.
    pub notes: Vec<String>,
    /// How it ends.
    pub exit: Exit,
}

impl Output {
    /// Text for people.
    #[must_use]
    pub const fn text(text: String, exit: Exit) -> Self {
        Self {
            text,
            notes: Vec::new(),
            exit,
        }
    }

    /// One line of JSON with the name and version of its format.
    ///
    /// # Errors
    /// The value can't be written as JSON.
    pub fn json(format: &'static str, value: &impl Serialize, exit: Exit) -> Result<Self, Failure> {
        let mut text = serde_json::to_string(&Document { format, value })?;
        text.push('\n');
        Ok(Self::text(text, exit))
    }

    /// Prints it.
    ///
    /// # Errors
    /// The standard output can't be written.
    pub fn print(&self) -> io::Result<()> {
        for note in &self.notes {
            // A missing standard error must not end a command.
            let _ = writeln!(io::stderr(), "{note}");
        }
        let mut out = io::stdout().lock();
        out.write_all(self.text.as_bytes())?;
        out.flush()
    }
}

/// An object with the key `format` before its own.
#[derive(Debug, Serialize)]
struct Document<'a, T> {
    format: &'static str,
    #[serde(flatten)]
    value: &'a T,
}

/// An error as JSON.
#[derive(Debug, Serialize)]
struct Failed<'a> {
    kind: &'static str,
    error: &'a str,
    exit: u8,
}

/// An error's message, and those of the errors behind it.
pub(crate) fn chain(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut behind = error.source();
    while let Some(error) = behind {
        text.push_str(": ");
        text.push_str(&error.to_string());
        behind = error.source();
    }
    text
}

impl Failure {
    /// The message, and those of the errors behind it.
    #[must_use]
    pub fn message(&self) -> String {
        chain(self)
    }

    /// What is printed instead of a result: the message on the standard
    /// error, and an object with it on the standard output if JSON is wanted.
    #[must_use]
    pub fn output(&self, json: bool) -> Output {
        let message = self.message();
        let exit = self.exit();
        let failed = Failed {
            kind: exit.name(),
            error: &message,
            exit: exit.code(),
        };
        let mut output = json
            .then(|| Output::json("mooncake-pd-error/1", &failed, exit).ok())
            .flatten()
            .unwrap_or_else(|| Output::text(String::new(), exit));
        output.notes = vec![format!("error: {message}")];
        output
    }
}

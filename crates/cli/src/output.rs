//! Where results go.

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

    /// One line of JSON.
    ///
    /// # Errors
    /// The value can't be written as JSON.
    pub fn json(value: &impl Serialize, exit: Exit) -> Result<Self, Failure> {
        let mut text = serde_json::to_string(value)?;
        text.push('\n');
        Ok(Self::text(text, exit))
    }

    /// Prints it. A reader that has gone away is no error.
    ///
    /// # Errors
    /// The standard output can't be written for another reason.
    pub fn print(&self) -> io::Result<()> {
        for note in &self.notes {
            // A missing standard error must not end a command.
            let _ = writeln!(io::stderr(), "{note}");
        }
        let mut out = io::stdout().lock();
        match out
            .write_all(self.text.as_bytes())
            .and_then(|()| out.flush())
        {
            Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(error),
            _ => Ok(()),
        }
    }
}

/// An error as JSON.
#[derive(Debug, Serialize)]
struct Failed<'a> {
    error: &'a str,
    exit: u8,
}

impl Failure {
    /// What is printed instead of a result: the message on the standard
    /// error, and an object with it on the standard output if JSON is wanted.
    #[must_use]
    pub fn output(&self, json: bool) -> Output {
        let message = self.to_string();
        let failed = Failed {
            error: &message,
            exit: self.exit().code(),
        };
        let text = json
            .then(|| serde_json::to_string(&failed).ok())
            .flatten()
            .map_or_else(String::new, |text| format!("{text}\n"));
        Output {
            text,
            notes: vec![format!("error: {message}")],
            exit: self.exit(),
        }
    }
}

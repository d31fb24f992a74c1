//! The binary from the outside: exit codes, standard input, JSON.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod binary;
mod exits;
mod output;

//! A process that answers line by line.

use std::io::{BufRead, BufReader, Write, stdout};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

/// Answers as such a process.
pub(crate) fn answer(text: &str) {
    println!("@ {text}");
    stdout().flush().unwrap();
}

/// Ends with this value.
pub(crate) struct Peer {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Peer {
    /// Starts it; its first answer is that it is ready.
    pub(crate) fn start(command: &mut Command) -> (Self, String) {
        let mut process = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut peer = Self {
            input: process.stdin.take().unwrap(),
            output: BufReader::new(process.stdout.take().unwrap()),
            process,
        };
        let ready = peer.answer();
        (peer, ready)
    }

    /// What it answers to a command.
    pub(crate) fn ask(&mut self, command: &str) -> String {
        writeln!(self.input, "{command}").unwrap();
        self.answer()
    }

    fn answer(&mut self) -> String {
        loop {
            let mut line = String::new();
            let count = self.output.read_line(&mut line).unwrap();
            assert!(count > 0, "the process has ended");
            // Engines print as well.
            if let Some(answer) = line.strip_prefix("@ ") {
                return answer.trim().to_owned();
            }
        }
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

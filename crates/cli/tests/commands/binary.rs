//! Running the binary on fixtures.

use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

pub(crate) fn fixture(name: &str) -> String {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
        .join("../../fixtures")
        .join(name)
        .to_str()
        .unwrap()
        .to_owned()
}

pub(crate) fn llama(name: &str) -> String {
    fixture(&format!("vllm-0.33/llama3-8b-tp4{name}.json"))
}

pub(crate) fn sglang() -> String {
    fixture("sglang-0.5.23/mla-deepseek-v3-ps64.json")
}

pub(crate) struct Ended {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ended {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap()
    }
}

pub(crate) fn run_with(args: &[&str], input: &str) -> Ended {
    let mut child = Command::new(env!("CARGO_BIN_EXE_mooncake-pd"))
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writer = std::thread::spawn(move || {
        // A command that doesn't read its input closes it.
        let _ = stdin.write_all(input.as_bytes());
    });
    let ended = child.wait_with_output().unwrap();
    writer.join().unwrap();
    let err = String::from_utf8(ended.stderr).unwrap();
    assert!(!err.contains("panicked"), "{args:?}: {err}");
    Ended {
        code: ended.status.code().unwrap(),
        out: String::from_utf8(ended.stdout).unwrap(),
        err,
    }
}

pub(crate) fn run(args: &[&str]) -> Ended {
    run_with(args, "")
}

/// A request of one block of group 0.
pub(crate) fn request(source: u64, destination: u64) -> String {
    format!(
        r#"{{"format":"mooncake-pd-request/1","requests":[{{"id":"r","computed_tokens":16,"groups":[
        {{"group":0,"source":{{"entries":[{source}]}},"destination":{{"entries":[{destination}]}}}}]}}]}}"#
    )
}

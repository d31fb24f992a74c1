//! The corpora of the fuzz targets `wire` and `events`, without a fuzzer.
#![allow(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::fs;
use std::path::{Path, PathBuf};

use mooncake_pd_connector::testing::{check_event_bytes, check_wire_bytes};

fn replay(target: &str, check: fn(&[u8])) {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let mut inputs: Vec<PathBuf> = fs::read_dir(folder.join(target))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 30, "{} inputs", inputs.len());
    for input in inputs {
        // Shown if the check fails.
        println!("{}", input.display());
        check(&fs::read(input).unwrap());
    }
}

#[test]
fn every_input_of_the_corpus_of_wire_passes_the_check() {
    replay("wire", check_wire_bytes);
}

#[test]
fn every_input_of_the_corpus_of_events_passes_the_check() {
    replay("events", check_event_bytes);
}

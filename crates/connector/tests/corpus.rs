//! The corpus of the fuzz target `wire`, without a fuzzer.

use std::fs;
use std::path::{Path, PathBuf};

use mooncake_pd_connector::testing::check_wire_bytes;

#[test]
fn every_input_of_the_corpus_of_wire_passes_the_check() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/wire");
    let mut inputs: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    assert!(inputs.len() >= 30, "{} inputs", inputs.len());
    for input in inputs {
        // Shown if the check fails.
        println!("{}", input.display());
        check_wire_bytes(&fs::read(input).unwrap());
    }
}

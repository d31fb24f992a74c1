//! The corpus of the fuzz target `layout`, without a fuzzer.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};

use mooncake_pd_layout::CacheLayout;
use mooncake_pd_layout::testing::check_layout_bytes;

fn corpus() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/layout");
    let mut inputs: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    inputs.sort();
    inputs
}

#[test]
fn every_input_of_the_corpus_passes_the_check() {
    let inputs = corpus();
    assert!(inputs.len() >= 30, "{} inputs", inputs.len());
    for input in inputs {
        // Shown if the check fails.
        println!("{}", input.display());
        check_layout_bytes(&fs::read(input).unwrap());
    }
}

#[test]
fn manifests_of_the_corpus_are_layouts_and_those_called_refused_are_not() {
    let (mut accepted, mut refused) = (0, 0);
    for input in corpus() {
        let text = fs::read(&input).unwrap();
        let layout = || CacheLayout::from_json(str::from_utf8(&text).unwrap());
        let name = input.file_name().and_then(OsStr::to_str).unwrap();
        if input.extension() == Some(OsStr::new("json")) {
            layout().unwrap_or_else(|error| panic!("{name}: {error}"));
            accepted += 1;
        } else if name.starts_with("refused_") {
            let error = layout().unwrap_err();
            println!("{name}: {error}");
            refused += 1;
        }
    }
    assert_eq!((accepted, refused), (10, 3));
}

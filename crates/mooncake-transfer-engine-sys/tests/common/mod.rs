//! Small C libraries, compiled when a test asks for them.

#![allow(dead_code, reason = "each target uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test may fail by panic")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// An empty folder for one test.
pub(crate) fn folder(test: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
    let _absent = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

/// Compiles a source of `tests/native` into a shared library; its folder is made.
pub(crate) fn compile(source: &str, library: &Path, flags: &[&str]) {
    let source = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/native")
        .join(source);
    run_compiler(library, &[source.to_str().unwrap()], flags);
}

/// Makes a library without content, under the name that others will ask the loader for.
pub(crate) fn compile_empty(library: &Path) {
    let name = library.file_name().unwrap().to_str().unwrap();
    let soname = format!("-Wl,-soname,{name}");
    run_compiler(library, &["-x", "c", "/dev/null"], &[&soname]);
}

fn run_compiler(library: &Path, source: &[&str], flags: &[&str]) {
    fs::create_dir_all(library.parent().unwrap()).unwrap();
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wl,--no-as-needed", "-o"]);
    let output = cc.arg(library).args(source).args(flags).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc failed: {errors}");
}

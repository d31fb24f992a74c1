//! A driver in C, built for a test. Which library the loader finds is decided
//! as a process starts, so a test that needs one starts itself again.

#![allow(dead_code, reason = "each target uses its own part")]

use std::any::type_name;
use std::env;
use std::ffi::CString;
use std::fs;
use std::path::Path;
use std::process::Command;

use libloading::os::unix::Library;

const AGAIN: &str = "MOONCAKE_PD_TEST_FAKE_CUDA";

/// What the loader finds under the driver's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Found {
    /// The stand-in with all functions.
    Whole,
    /// The same without the newest function.
    Old,
    /// A library without functions.
    Empty,
    /// The same, and the stand-in under another name.
    Behind,
    /// Files that are no libraries.
    Broken,
}

/// Runs the body in a process where the loader finds that.
pub(crate) fn with<F: FnOnce()>(found: Found, body: F) {
    if env::var_os(AGAIN).is_some() {
        body();
        return;
    }
    // The body is a closure in the test: `cuda_fake::name::{{closure}}`.
    let test = type_name::<F>().split("::").nth(1).unwrap();
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("fake-cuda-{test}"));
    let _absent = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    // A machine may have a driver under either name.
    make(&folder.join("libcuda.so.1"), found);
    let other = match found {
        Found::Behind => Found::Whole,
        found => found,
    };
    make(&folder.join("libcuda.so"), other);
    let mut child = Command::new(env::current_exe().unwrap());
    child.args([test, "--exact", "--nocapture"]);
    child.env(AGAIN, "1").env("LD_LIBRARY_PATH", &folder);
    let output = child.output().unwrap();
    fs::remove_dir_all(&folder).unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{}: {errors}", output.status);
    let ran = String::from_utf8_lossy(&output.stdout);
    assert!(ran.contains("1 passed"), "{test} names no test: {ran}");
}

fn make(library: &Path, found: Found) {
    if found == Found::Broken {
        fs::write(
            library,
            "not a library, and longer than a header has to be; ".repeat(9),
        )
        .unwrap();
        return;
    }
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/native/cuda.c");
    let mut cc = Command::new("cc");
    cc.args(["-shared", "-fPIC", "-Wall", "-Werror", "-o"])
        .arg(library);
    match found {
        Found::Whole => cc.arg(source),
        Found::Old => cc.arg(source).arg("-DOLD"),
        Found::Empty | Found::Behind | Found::Broken => cc.args(["-x", "c", "/dev/null"]),
    };
    let output = cc.output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cc failed: {errors}");
}

/// The stand-in's own functions.
pub(crate) struct Fake(Library);

impl Fake {
    /// The one that the driver's calls reach.
    pub(crate) fn get() -> Self {
        // SAFETY: it has no initialisers.
        Self(unsafe { Library::new("libcuda.so.1") }.unwrap())
    }

    /// From now on that function returns that.
    pub(crate) fn fail(&self, call: &str, code: i32) {
        let call = CString::new(call).unwrap();
        // SAFETY: the function in cuda.c has this type.
        let fail = unsafe { self.0.get::<extern "C" fn(*const i8, i32)>("fake_fail") };
        fail.unwrap()(call.as_ptr().cast(), code);
    }

    /// Nothing fails any more.
    pub(crate) fn mend(&self) {
        self.fail("", 0);
    }

    /// How much of something there is.
    pub(crate) fn count(&self, what: &str) -> i32 {
        let what = CString::new(what).unwrap();
        // SAFETY: the function in cuda.c has this type.
        let count = unsafe { self.0.get::<extern "C" fn(*const i8) -> i32>("fake_count") };
        count.unwrap()(what.as_ptr().cast())
    }

    /// Calls a function that takes a number.
    pub(crate) fn set(&self, name: &str, value: usize) {
        // SAFETY: the functions in cuda.c that are called so take an int or a uintptr_t.
        let set = unsafe { self.0.get::<extern "C" fn(usize)>(name) };
        set.unwrap()(value);
    }

    /// The device whose context is current in this thread.
    pub(crate) fn current(&self) -> i32 {
        // SAFETY: the function in cuda.c has this type.
        let current = unsafe { self.0.get::<extern "C" fn() -> i32>("fake_current") };
        current.unwrap()()
    }

    /// A block that is not ours: its kind, whether it is managed, and whether it
    /// is a plain one.
    pub(crate) fn block(&self, len: usize, device: i32, [kind, managed, plain]: [i32; 3]) -> u64 {
        type Block = extern "C" fn(usize, i32, i32, i32, i32) -> u64;
        // SAFETY: the function in cuda.c has this type.
        let block = unsafe { self.0.get::<Block>("fake_block") };
        block.unwrap()(len, device, kind, managed, plain)
    }
}

//! Where the libraries are looked for. A search reads the process's environment, so each runs in a
//! process of its own: this test binary, asked for its `child`.

#![expect(clippy::unwrap_used, reason = "a test may fail by panic")]

mod common;

use std::env;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use common::{compile, compile_empty, folder};
use mooncake_transfer_engine_sys::{CUDA_STUB_ENV, official, tokenspeed};

const WHICH: &str = "MOONCAKE_SYS_TEST_FIND";
const MARK: &str = "RESULT ";

/// Not a test by itself: what the others start.
#[test]
fn child() {
    let found = match env::var(WHICH).as_deref() {
        Ok("official") => official::Library::find().map(|library| library.path().to_owned()),
        Ok("tokenspeed") => tokenspeed::Library::find().map(|library| library.path().to_owned()),
        _ => return,
    };
    match found {
        Ok(path) => println!("{MARK}{}", path.display()),
        Err(error) => println!("{MARK}error: {error}"),
    }
}

fn find(which: &str, variables: &[(&str, &Path)]) -> String {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", "child", "--nocapture"]);
    child.env_clear().env(WHICH, which);
    child.envs(variables.iter().copied());
    let output = child.output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{text}");
    let (_, found) = text.split_once(MARK).unwrap();
    found.to_owned()
}

/// A place in a virtual environment's package.
fn package(environment: &Path, library: &str) -> PathBuf {
    let packages = environment.join("lib/python3.12/site-packages");
    packages.join("mooncake").join(library)
}

#[test]
fn a_variable_names_the_library() {
    let path = folder("find-variable").join("any-name.so");
    compile("official.c", &path, &[]);
    let found = find("official", &[(official::LIBRARY_ENV, &path)]);
    assert_eq!(found.lines().next(), path.to_str());
}

#[test]
fn a_variable_set_to_a_missing_file_is_said_and_nothing_else_tried() {
    let folder = folder("find-missing");
    let venv = folder.join("venv");
    compile(
        "tokenspeed.c",
        &package(&venv, tokenspeed::LIBRARY_NAME),
        &["-DVERSION=1"],
    );
    let path = folder.join("absent.so");
    let variables: [(_, &Path); 2] = [(tokenspeed::LIBRARY_ENV, &path), ("VIRTUAL_ENV", &venv)];
    let found = find("tokenspeed", &variables);
    let expected = format!(
        "error: TOKENSPEED_TRANSFER_ENGINE_LIB is set to {}, and there is no such file",
        path.display()
    );
    assert_eq!(found.lines().next(), Some(expected.as_str()));
}

#[test]
fn the_loaders_search_comes_first() {
    let folder = folder("find-loader");
    compile("official.c", &folder.join(official::LIBRARY_NAME), &[]);
    let venv = folder.join("venv");
    compile("official.c", &package(&venv, official::LIBRARY_NAME), &[]);
    let variables: [(_, &Path); 2] = [("LD_LIBRARY_PATH", &folder), ("VIRTUAL_ENV", &venv)];
    let found = find("official", &variables);
    assert_eq!(found.lines().next(), Some(official::LIBRARY_NAME));
}

#[test]
fn a_package_is_found_and_a_place_that_does_not_load_is_passed_over() {
    let folder = folder("find-package");
    let (broken, whole) = (folder.join("broken"), folder.join("whole"));
    let path = package(&broken, tokenspeed::LIBRARY_NAME);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, "not a library").unwrap();
    let path = package(&whole, tokenspeed::LIBRARY_NAME);
    compile("tokenspeed.c", &path, &["-DVERSION=1"]);
    let variables: [(_, &Path); 2] = [("VIRTUAL_ENV", &broken), ("CONDA_PREFIX", &whole)];
    let found = find("tokenspeed", &variables);
    assert_eq!(found.lines().next(), path.to_str());
}

#[test]
fn cudas_runtime_is_taken_from_the_packages_beside_and_the_driver_from_the_stand_in() {
    for runtime in ["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"] {
        let folder = folder("find-cuda");
        let venv = folder.join("venv");
        let path = package(&venv, tokenspeed::LIBRARY_NAME);
        let packages = path.parent().unwrap().parent().unwrap();
        let runtime = packages.join(runtime).join("libcudart.so.13");
        let stub = folder.join("stub");
        let driver = stub.join("libcuda.so.1");
        compile_empty(&runtime);
        compile_empty(&driver);
        let linked = [&runtime, &driver].map(|path| path.to_str().unwrap());
        compile(
            "tokenspeed.c",
            &path,
            &["-DVERSION=1", linked[0], linked[1]],
        );

        let variables: [(_, &Path); 2] = [("VIRTUAL_ENV", &venv), (CUDA_STUB_ENV, &stub)];
        let found = find("tokenspeed", &variables);
        assert_eq!(found.lines().next(), path.to_str());

        let found = find("tokenspeed", &[("VIRTUAL_ENV", &venv)]);
        // With a driver there is nothing to say.
        if found.lines().next() != path.to_str() {
            assert!(found.contains("libcuda.so.1: cannot open"), "{found}");
            assert!(found.contains(CUDA_STUB_ENV), "{found}");
        }
    }
}

#[test]
fn what_was_tried_is_listed() {
    let venv = folder("find-nothing");
    let path = package(&venv, tokenspeed::LIBRARY_NAME);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    let variables: [(_, &OsStr); 1] = [("VIRTUAL_ENV", venv.as_os_str())];
    let found = find(
        "tokenspeed",
        &variables.map(|(name, value)| (name, Path::new(value))),
    );
    // A machine may have the package in its system's Python.
    if found.starts_with("error") {
        let line = format!("\n  {}: no such file\n", path.display());
        assert!(found.contains(&line), "{found}");
        let own = "\n  libtokenspeed_transfer_engine.so: cannot open shared object file";
        assert!(found.contains(own), "{found}");
        let cure = "\nto fix it, set TOKENSPEED_TRANSFER_ENGINE_LIB to the path of the library";
        assert!(found.contains(cure), "{found}");
    }
}

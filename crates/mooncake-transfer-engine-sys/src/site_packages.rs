use std::env;
use std::fs;
use std::path::{Path, PathBuf};

use crate::environment::Environment;

/// Folders that Python imports from, most particular first: the active environment, `PYTHONPATH`,
/// the `python3` of `PATH`, the user's, the system's. Found by their names; Python is not run.
pub(crate) fn folders(environment: &Environment) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = environment.variable(name) {
            under_prefix(Path::new(prefix), &mut found);
        }
    }
    if let Some(value) = environment.variable("PYTHONPATH") {
        found.extend(env::split_paths(value).filter(|folder| folder.is_dir()));
    }
    if let Some(python) = interpreter(environment) {
        under_prefix_of(&python, &mut found);
        if let Ok(target) = fs::canonicalize(&python) {
            under_prefix_of(&target, &mut found);
        }
    }
    if let Some(home) = environment.variable("HOME") {
        under_prefix(&Path::new(home).join(".local"), &mut found);
    }
    for prefix in ["usr/local", "usr"] {
        under_prefix(&environment.root().join(prefix), &mut found);
    }
    let mut unique: Vec<PathBuf> = Vec::new();
    for folder in found {
        if !unique.contains(&folder) {
            unique.push(folder);
        }
    }
    unique
}

fn interpreter(environment: &Environment) -> Option<PathBuf> {
    let mut candidates =
        env::split_paths(environment.variable("PATH")?).map(|folder| folder.join("python3"));
    candidates.find(|python| python.is_file())
}

/// `prefix/bin/python3` imports from below `prefix`.
fn under_prefix_of(python: &Path, found: &mut Vec<PathBuf>) {
    if let Some(prefix) = python.parent().and_then(Path::parent) {
        under_prefix(prefix, found);
    }
}

fn under_prefix(prefix: &Path, found: &mut Vec<PathBuf>) {
    let Ok(entries) = fs::read_dir(prefix.join("lib")) else {
        return;
    };
    let mut versions: Vec<PathBuf> = entries
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| {
            let name = path.file_name().and_then(|name| name.to_str());
            name.is_some_and(|name| name.starts_with("python3"))
        })
        .collect();
    versions.sort();
    for version in versions {
        // Debian's Python has the second name.
        let folders = ["site-packages", "dist-packages"].map(|name| version.join(name));
        found.extend(folders.into_iter().filter(|folder| folder.is_dir()));
    }
}

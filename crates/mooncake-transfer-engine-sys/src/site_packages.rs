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

#[cfg(test)]
mod tests {
    use std::env;
    use std::fs;
    use std::path::{Path, PathBuf};
    use std::process;

    use super::folders;
    use crate::environment::Environment;

    /// A tree of its own, removed at the end.
    struct Tree(PathBuf);

    impl Tree {
        fn new(test: &str) -> Self {
            let name = format!("mooncake-sys-{test}-{}", process::id());
            let root = env::temp_dir().join(name);
            fs::create_dir_all(&root).unwrap();
            Self(fs::canonicalize(root).unwrap())
        }

        fn folder(&self, path: &str) -> PathBuf {
            let folder = self.0.join(path);
            fs::create_dir_all(&folder).unwrap();
            folder
        }
    }

    impl Drop for Tree {
        fn drop(&mut self) {
            let _kept = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn every_kind_of_place_is_found_in_its_order() {
        let tree = Tree::new("order");
        let expected = [
            "venv/lib/python3.11/site-packages",
            "venv/lib/python3.12/site-packages",
            "conda/lib/python3.12/site-packages",
            "path",
            "tool/lib/python3.12/site-packages",
            "home/.local/lib/python3.12/site-packages",
            "root/usr/local/lib/python3.12/dist-packages",
            "root/usr/lib/python3/dist-packages",
        ]
        .map(|path| tree.folder(path));
        tree.folder("venv/lib/python2.7/site-packages");
        let bin = tree.folder("tool/bin");
        fs::write(bin.join("python3"), "").unwrap();
        let at = |path: &str| tree.0.join(path);
        let variables: [(_, &Path); 5] = [
            ("VIRTUAL_ENV", &at("venv")),
            ("CONDA_PREFIX", &at("conda")),
            ("PYTHONPATH", &at("path")),
            ("PATH", &bin),
            ("HOME", &at("home")),
        ];
        let found = folders(&Environment::of(&at("root"), &variables));
        assert_eq!(found, expected);
    }

    #[test]
    fn a_place_that_is_reached_twice_is_told_once() {
        let tree = Tree::new("twice");
        let venv = tree.0.join("venv");
        let expected = tree.folder("venv/lib/python3.12/site-packages");
        let variables: [(_, &Path); 2] = [("VIRTUAL_ENV", &venv), ("CONDA_PREFIX", &venv)];
        let found = folders(&Environment::of(&tree.0.join("root"), &variables));
        assert_eq!(found, [expected]);
    }
}

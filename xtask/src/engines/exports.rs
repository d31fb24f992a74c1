//! Environment variables that tell tests where the engines are.

use std::collections::BTreeMap;
use std::env;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

const FILE: &str = "exports";
const SEARCH: &str = "LD_LIBRARY_PATH";

/// Names and values, in the order of names.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Exports {
    /// Where we install; a value below it is ours, however it came into the environment.
    folder: PathBuf,
    values: BTreeMap<String, String>,
}

impl Exports {
    /// Nothing yet, for what lies in this folder.
    pub(crate) fn new(folder: &Path) -> Self {
        let (folder, values) = (folder.to_owned(), BTreeMap::new());
        Self { folder, values }
    }

    pub(crate) fn set(&mut self, name: &str, value: &Path) -> Result<()> {
        let text = value
            .to_str()
            .with_context(|| format!("{} is not UTF-8", value.display()))?;
        self.values.insert(name.to_owned(), text.to_owned());
        Ok(())
    }

    /// Folders that the dynamic linker searches before those it searches anyway.
    pub(crate) fn set_search_path(&mut self, folders: &[PathBuf]) -> Result<()> {
        self.set(SEARCH, Path::new(&env::join_paths(folders)?))
    }

    /// Empty when there is no such variable.
    pub(crate) fn get(&self, name: &str) -> &str {
        self.values.get(name).map_or("", String::as_str)
    }

    /// What the last successful run has written into its folder.
    pub(crate) fn read(folder: &Path) -> Result<Self> {
        let file = folder.join(FILE);
        let mut exports = Self::new(folder);
        if file.exists() {
            let text = fs::read_to_string(&file)
                .with_context(|| format!("can't read {}", file.display()))?;
            exports.values = parse(&text);
        }
        Ok(exports)
    }

    pub(crate) fn write(&self) -> Result<()> {
        let file = self.folder.join(FILE);
        fs::write(&file, render(&self.values))
            .with_context(|| format!("can't write {}", file.display()))
    }

    /// Sets the variables of a command; what somebody else has set stays as it is.
    pub(crate) fn apply(&self, command: &mut Command) {
        for (name, value) in &self.values {
            if name == SEARCH {
                command.env(name, joined(value, &env::var(name).unwrap_or_default()));
            } else if self.may_set(name) {
                command.env(name, value);
            }
        }
    }

    fn may_set(&self, name: &str) -> bool {
        let before = env::var(name).unwrap_or_default();
        before.is_empty() || Path::new(&before).starts_with(&self.folder)
    }

    /// Lines for a POSIX shell, of the same variables.
    pub(crate) fn shell(&self) -> String {
        let mut lines = String::new();
        for (name, value) in &self.values {
            if name != SEARCH && !self.may_set(name) {
                continue;
            }
            let value = quoted(value);
            let rest = if name == SEARCH {
                "${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
            } else {
                ""
            };
            // Writing to a string doesn't fail.
            let _ = writeln!(lines, "export {name}={value}{rest}");
        }
        lines
    }
}

fn parse(text: &str) -> BTreeMap<String, String> {
    let pairs = text.lines().filter_map(|line| line.split_once('='));
    let owned = pairs.map(|(name, value)| (name.to_owned(), value.to_owned()));
    owned.collect()
}

fn render(values: &BTreeMap<String, String>) -> String {
    let lines = values
        .iter()
        .map(|(name, value)| format!("{name}={value}\n"));
    lines.collect()
}

fn joined(ours: &str, before: &str) -> String {
    // A shell that has evaluated our lines has our folders already.
    if before == ours || before.starts_with(&format!("{ours}:")) {
        return before.to_owned();
    }
    if before.is_empty() {
        return ours.to_owned();
    }
    format!("{ours}:{before}")
}

fn quoted(value: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "/._-+:".contains(c);
    if !value.is_empty() && value.chars().all(plain) {
        return value.to_owned();
    }
    format!("'{}'", value.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::{Exports, joined, parse, quoted, render};

    fn exports(pairs: &[(&str, &str)]) -> Exports {
        let mut exports = Exports::new(Path::new("/engines"));
        for (name, value) in pairs {
            exports.set(name, Path::new(value)).unwrap();
        }
        exports
    }

    #[test]
    fn what_was_written_is_read_as_it_was() {
        let written = exports(&[("A", "/x y/z=1"), ("LD_LIBRARY_PATH", "/a:/b")]).values;
        assert_eq!(parse(&render(&written)), written);
        assert!(parse("").is_empty());
    }

    #[test]
    fn a_shell_gets_one_line_for_each_variable_and_keeps_its_own_search_path() {
        let lines = exports(&[("MOONCAKE_PD_A", "/it's"), ("LD_LIBRARY_PATH", "/a:/b")]).shell();
        assert_eq!(
            lines,
            "export LD_LIBRARY_PATH=/a:/b${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\nexport MOONCAKE_PD_A='/it'\\''s'\n"
        );
    }

    #[test]
    fn what_somebody_else_has_set_stays_as_it_is() {
        // Variables that cargo sets for every test of this crate.
        let ours = env!("CARGO_MANIFEST_DIR");
        let (set, unset) = ("CARGO_MANIFEST_DIR", "MOONCAKE_PD_NOBODY_SETS_THIS");
        let applied = |folder: &str| {
            let mut exports = Exports::new(Path::new(folder));
            exports.set(set, Path::new("/new")).unwrap();
            exports.set(unset, Path::new("/new")).unwrap();
            let mut command = std::process::Command::new("true");
            exports.apply(&mut command);
            let names = command.get_envs().map(|(name, _)| name.to_owned());
            let lines = exports.shell();
            assert_eq!(lines.contains(set), folder == ours, "{lines}");
            names.collect::<Vec<_>>()
        };
        assert_eq!(applied("/elsewhere"), [unset]);
        assert_eq!(applied(ours), [set, unset]);
    }

    #[test]
    fn only_what_a_shell_would_change_is_quoted() {
        assert_eq!(
            quoted("/usr/lib/x86_64-linux-gnu"),
            "/usr/lib/x86_64-linux-gnu"
        );
        for odd in ["", "a b", "$HOME", "a;b", "~/x"] {
            assert_eq!(quoted(odd), format!("'{odd}'"));
        }
    }

    #[test]
    fn our_folders_come_first_and_once() {
        assert_eq!(joined("/a:/b", ""), "/a:/b");
        assert_eq!(joined("/a:/b", "/c"), "/a:/b:/c");
        assert_eq!(joined("/a:/b", "/a:/b"), "/a:/b");
        assert_eq!(joined("/a:/b", "/a:/b:/c"), "/a:/b:/c");
        assert_eq!(joined("/a", "/ab"), "/a:/ab");
    }
}

//! The committed result of `cargo xtask mutants`, which is also its memory.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use anyhow::{Context, Result};

const NO_REASON: &str = "none yet";

/// What became of the mutants of one file.
pub(crate) struct Tally {
    pub(crate) path: String,
    /// Of the file as it was.
    pub(crate) blob: String,
    pub(crate) caught: usize,
    pub(crate) timeout: usize,
    pub(crate) unviable: usize,
    pub(crate) survivors: Vec<String>,
}

impl Tally {
    pub(crate) fn missed(&self) -> usize {
        self.survivors.len()
    }

    /// Adds what an earlier run of the same file found, where only the mutants
    /// `again` were run now: a test more never notices less.
    pub(crate) fn add_known(&mut self, known: &Self, again: &[String]) {
        self.caught = self.caught.saturating_add(known.caught);
        self.timeout = self.timeout.saturating_add(known.timeout);
        self.unviable = self.unviable.saturating_add(known.unviable);
        let explained = known.survivors.iter().filter(|name| !again.contains(name));
        self.survivors.extend(explained.cloned());
    }
}

/// All tallies by path, and the reasons that were written by hand.
#[derive(Default)]
pub(crate) struct Document {
    tallies: BTreeMap<String, Tally>,
    reasons: BTreeMap<String, String>,
}

impl Document {
    pub(crate) fn parse(text: &str) -> Result<Self> {
        let mut document = Self::default();
        for row in text.lines().filter_map(|line| line.strip_prefix("| `")) {
            let (name, rest) = row.split_once("` | ").context("a row without a name")?;
            let rest = rest.strip_suffix(" |").context("a row without an end")?;
            let name = name.replace("\\|", "|");
            if let Some((path, _)) = name.split_once(".rs:") {
                let path = format!("{path}.rs");
                let tally = document
                    .tallies
                    .get_mut(&path)
                    .context("a survivor of no file")?;
                tally.survivors.push(name.clone());
                document.reasons.insert(name, rest.to_owned());
            } else {
                let cells: Vec<&str> = rest.split(" | ").collect();
                let [blob, counts @ ..] = cells.as_slice() else {
                    continue;
                };
                let counts = counts
                    .iter()
                    .map(|cell| cell.parse())
                    .collect::<Result<Vec<_>, _>>()?;
                let [caught, timeout, unviable, _] = counts[..] else {
                    continue;
                };
                let (path, blob, survivors) = (name.clone(), (*blob).to_owned(), Vec::new());
                let tally = Tally {
                    path,
                    blob,
                    caught,
                    timeout,
                    unviable,
                    survivors,
                };
                document.tallies.insert(name, tally);
            }
        }
        Ok(document)
    }

    /// What is known of a file as it is.
    pub(crate) fn tally(&self, path: &str, blob: &str) -> Option<&Tally> {
        self.tallies.get(path).filter(|tally| tally.blob == blob)
    }

    /// Survivors whose reason nobody has written yet.
    pub(crate) fn without_reason(&self, tally: &Tally) -> Vec<String> {
        let open = |name: &&String| {
            self.reasons
                .get(*name)
                .is_none_or(|reason| reason == NO_REASON)
        };
        tally.survivors.iter().filter(open).cloned().collect()
    }

    pub(crate) fn put(&mut self, tally: Tally) {
        self.tallies.insert(tally.path.clone(), tally);
    }

    /// Forgets files that are gone or have changed.
    pub(crate) fn keep(&mut self, is_current: impl Fn(&str, &str) -> bool) {
        self.tallies
            .retain(|path, tally| is_current(path, &tally.blob));
    }

    pub(crate) fn render(&self, files: usize) -> Result<String> {
        let sum = |of: fn(&Tally) -> usize| self.tallies.values().map(of).sum::<usize>();
        let (caught, timeout) = (sum(|tally| tally.caught), sum(|tally| tally.timeout));
        let noticed = caught.saturating_add(timeout);
        let viable = noticed.saturating_add(sum(Tally::missed));
        let permille = noticed
            .saturating_mul(1000)
            .checked_div(viable)
            .unwrap_or_default();
        let (percent, tenth) = (permille / 10, permille % 10);
        let mut text = String::from("# Mutants of layout and plan\n\n");
        writeln!(
            text,
            "Written by `cargo xtask mutants`; only reasons are by hand. {} of {files} files were run as they \
             are now.\n\n\
             {noticed} of {viable} viable mutants are noticed by a test ({percent}.{tenth} %), {timeout} of \
             them by running out of time. {} more don't compile.\n\n\
             | file | blob | caught | timed out | unviable | missed |\n|---|---|---|---|---|---|",
            self.tallies.len(),
            sum(|tally| tally.unviable),
        )?;
        for tally in self.tallies.values() {
            let Tally {
                path,
                blob,
                caught,
                timeout,
                unviable,
                ..
            } = tally;
            let missed = tally.missed();
            writeln!(
                text,
                "| `{path}` | {blob} | {caught} | {timeout} | {unviable} | {missed} |"
            )?;
        }
        text.push_str("\n| survivor | reason |\n|---|---|\n");
        for name in self.tallies.values().flat_map(|tally| &tally.survivors) {
            let reason = self.reasons.get(name).map_or(NO_REASON, String::as_str);
            writeln!(text, "| `{}` | {reason} |", name.replace('|', "\\|"))?;
        }
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::{Document, Tally};

    fn tally(path: &str, blob: &str, survivors: &[&str]) -> Tally {
        Tally {
            path: path.to_owned(),
            blob: blob.to_owned(),
            caught: 1,
            timeout: 1,
            unviable: 1,
            survivors: survivors.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[test]
    fn a_written_result_is_read_as_it_was_and_keeps_reasons() {
        let mut document = Document::default();
        document.put(tally(
            "a/b.rs",
            "12",
            &["a/b.rs:1:2: replace | with ^ in f"],
        ));
        document.put(tally("a/c.rs", "34", &[]));
        let first = document.render(3).unwrap();
        assert!(first.contains("4 of 5 viable mutants are noticed by a test (80.0 %)"));
        assert!(first.contains("2 of 3 files"));
        let reasoned = first.replace("none yet", "same value");
        assert_ne!(first, reasoned);
        assert_eq!(
            Document::parse(&reasoned).unwrap().render(3).unwrap(),
            reasoned
        );
    }

    #[test]
    fn a_changed_file_is_run_again() {
        let mut document = Document::default();
        document.put(tally("a/b.rs", "12", &["a/b.rs:1:2: replace f"]));
        assert_eq!(document.tally("a/b.rs", "12").map(Tally::missed), Some(1));
        assert!(document.tally("a/b.rs", "13").is_none());
        document.keep(|_, blob| blob == "13");
        assert!(document.tally("a/b.rs", "12").is_none());
    }
}

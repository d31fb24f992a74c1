//! `cargo xtask mutants`: do the tests of layout and plan notice a changed line?
//!
//! The mutants are taken file by file. What became of a file's mutants is kept
//! under `target/mutants` until that file changes, so a run may be stopped at
//! any time and taken up again, and shards may run at the same time. When no
//! file is missing, the outcome is written to `docs/mutants.md`, where each
//! survivor has a reason; reasons written there by hand are kept.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::repo::{self, Repo};
use crate::tool;

const RESULT: &str = "docs/mutants.md";
const NO_REASON: &str = "none yet";
const KINDS: [&str; 4] = ["caught", "unviable", "timeout", "missed"];

/// Tests that prove the same as others over many more inputs.
const SLOW_TESTS: &[&str] = &["exhaustive", "corpus", "bench"];

/// The workspace optimises these for their tests; here they are built far more often than run.
const CRATES: [&str; 2] = ["mooncake-pd-layout", "mooncake-pd-plan"];

/// Inputs per quickcheck property; the default is 100.
const QUICKCHECK_TESTS: &str = "15";

/// Arguments of `cargo xtask mutants`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only every n-th file, beginning with the k-th, as k/n with k from 0
    #[arg(long, default_value = "0/1")]
    shard: Shard,
    /// Runs files again that have survivors, after new tests were committed
    #[arg(long)]
    retry: bool,
}

#[derive(Clone, Copy)]
struct Shard {
    index: usize,
    count: usize,
}

impl FromStr for Shard {
    type Err = anyhow::Error;

    fn from_str(text: &str) -> Result<Self> {
        let (index, count) = text.split_once('/').context("not of the form k/n")?;
        let (index, count) = (index.parse()?, count.parse()?);
        ensure!(index < count, "shard {index} is outside 0..{count}");
        Ok(Self { index, count })
    }
}

/// Runs what is missing of a shard, then writes the result if nothing is missing at all.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<()> {
    let program = tool::MUTANTS.install(repo)?;
    let results = repo.path("target/mutants/results");
    fs::create_dir_all(&results)?;
    let tree = checkout(repo, args.shard)?;
    let sources = sources(repo)?;
    for source in sources
        .iter()
        .skip(args.shard.index)
        .step_by(args.shard.count)
    {
        let file = results.join(&source.blob);
        let done = fs::read_to_string(&file);
        let survived = |text: &String| text.lines().any(|line| !is_settled(line));
        if done.is_ok_and(|text| !args.retry || !survived(&text)) {
            continue;
        }
        println!("==> {}", source.path);
        let outcome = run_file(&program, &tree, &source.path)?;
        fs::write(&file, outcome)?;
    }
    report(repo, &sources, &results)
}

/// A committed file that mutants are made of.
struct Source {
    path: String,
    blob: String,
}

/// The committed sources of both crates, without their tests.
fn sources(repo: &Repo) -> Result<Vec<Source>> {
    let folders = ["crates/layout/src", "crates/plan/src"];
    let output = repo
        .command("git", ["ls-tree", "-r", "HEAD"])
        .args(folders)
        .output()?;
    ensure!(output.status.success(), "git can't name the sources");
    let mut sources = Vec::new();
    for line in String::from_utf8(output.stdout)?.lines() {
        let (about, path) = line.split_once('\t').context("not a line of git ls-tree")?;
        let blob = about.rsplit(' ').next().context("no blob")?;
        let is_test = path.contains("/testing/") || path.ends_with("tests.rs");
        if Path::new(path).extension().is_some_and(|kind| kind == "rs") && !is_test {
            sources.push(Source {
                path: path.to_owned(),
                blob: blob.to_owned(),
            });
        }
    }
    Ok(sources)
}

/// A clone at HEAD that the mutants are written into, so that its build stays warm.
fn checkout(repo: &Repo, shard: Shard) -> Result<PathBuf> {
    let tree = repo.path(format!(
        "target/mutants/tree-{}-{}",
        shard.index, shard.count
    ));
    if !tree.exists() {
        let mut clone = repo.command("git", ["clone", "--quiet", "--shared", "."]);
        repo::run(clone.arg(&tree))?;
    }
    let git = |args: &[&str]| repo::run(Command::new("git").current_dir(&tree).args(args));
    git(&["fetch", "--quiet", "origin", "HEAD"])?;
    git(&["reset", "--quiet", "--hard", "FETCH_HEAD"])?;
    Ok(tree)
}

/// One line per mutant: its fate, then its name.
fn run_file(program: &Path, tree: &Path, file: &str) -> Result<String> {
    let out = tree.join("mutants.out");
    if out.exists() {
        fs::remove_dir_all(&out)?;
    }
    let mut mutants = Command::new(program);
    mutants
        .current_dir(tree)
        .args(["mutants", "--in-place", "--no-shuffle", "--all-features"])
        .args(["--baseline", "skip", "--timeout", "60"])
        .args(CRATES.map(|name| format!("--package={name}")))
        .args(["--file", file])
        .args(
            CRATES
                .map(|name| format!("--cargo-arg=--config=profile.dev.package.{name}.opt-level=0")),
        )
        .args(["--", "--lib", "--tests", "--"])
        .args(SLOW_TESTS.iter().flat_map(|name| ["--skip", name]))
        .env("QUICKCHECK_TESTS", QUICKCHECK_TESTS)
        // Nobody looks at these binaries: they need not be debugged.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_DEBUG", "0");
    let status = mutants.status()?;
    // 2: some were missed; 3: some ran out of time.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        bail!("{status} from {mutants:?}");
    }
    let mut outcome = String::new();
    for kind in KINDS {
        let names = fs::read_to_string(out.join(format!("{kind}.txt"))).unwrap_or_default();
        for name in names.lines() {
            writeln!(outcome, "{kind} {name}")?;
        }
    }
    Ok(outcome)
}

fn is_settled(line: &str) -> bool {
    !line.starts_with("missed ")
}

/// Writes the committed result, or says how much of it is missing.
fn report(repo: &Repo, sources: &[Source], results: &Path) -> Result<()> {
    let mut fates: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut missing = 0_u32;
    for source in sources {
        let Ok(text) = fs::read_to_string(results.join(&source.blob)) else {
            missing = missing.saturating_add(1);
            continue;
        };
        for (kind, name) in text.lines().filter_map(|line| line.split_once(' ')) {
            fates
                .entry(kind.to_owned())
                .or_default()
                .push(name.to_owned());
        }
    }
    if missing > 0 {
        let all = sources.len();
        println!("{missing} of {all} files are missing; {RESULT} is unchanged");
        return Ok(());
    }
    let file = repo.path(RESULT);
    let before = fs::read_to_string(&file).unwrap_or_default();
    if let Some(folder) = file.parent() {
        fs::create_dir_all(folder)?;
    }
    fs::write(&file, render(&fates, &before)?)?;
    println!("{RESULT} is written");
    Ok(())
}

/// The result as text; `before` is the last one, whose reasons are kept.
fn render(fates: &BTreeMap<String, Vec<String>>, before: &str) -> Result<String> {
    let count = |kind: &str| fates.get(kind).map_or(0, Vec::len);
    let noticed = count("caught").saturating_add(count("timeout"));
    let viable = noticed.saturating_add(count("missed"));
    let permille = noticed
        .saturating_mul(1000)
        .checked_div(viable)
        .unwrap_or_default();
    let (percent, tenth) = (permille / 10, permille % 10);
    let mut text = String::from("# Mutants of layout and plan\n\n");
    writeln!(
        text,
        "Written by `cargo xtask mutants`; only reasons are by hand.\n\n\
         {noticed} of {viable} viable mutants are noticed by a test ({percent}.{tenth} %), {} of \
         them by running out of time. {} more don't compile.\n\n\
         | survivor | reason |\n|---|---|",
        count("timeout"),
        count("unviable"),
    )?;
    for name in fates.get("missed").into_iter().flatten() {
        let cell = name.replace('|', "\\|");
        let row = before
            .lines()
            .find_map(|line| line.strip_prefix(&format!("| `{cell}` | ")));
        let reason = row
            .and_then(|rest| rest.strip_suffix(" |"))
            .unwrap_or(NO_REASON);
        writeln!(text, "| `{cell}` | {reason} |")?;
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::{Shard, render};

    fn fates(of: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        let mut fates: BTreeMap<String, Vec<String>> = BTreeMap::new();
        for (kind, name) in of {
            let names = fates.entry((*kind).to_owned()).or_default();
            names.push((*name).to_owned());
        }
        fates
    }

    #[test]
    fn a_reason_written_by_hand_is_kept() {
        let fates = fates(&[
            ("caught", "a"),
            ("timeout", "b"),
            ("missed", "c.rs:1:2: replace | with ^ in f"),
            ("unviable", "d"),
        ]);
        let first = render(&fates, "").unwrap();
        assert!(first.contains("2 of 3 viable mutants are noticed by a test (66.6 %)"));
        let reasoned = first.replace("none yet", "same value");
        assert_ne!(first, reasoned);
        assert_eq!(render(&fates, &reasoned).unwrap(), reasoned);
    }

    #[test]
    fn a_shard_outside_its_count_is_refused() {
        assert!("2/3".parse::<Shard>().is_ok());
        assert!("3/3".parse::<Shard>().is_err());
        assert!("0/0".parse::<Shard>().is_err());
    }
}

//! `cargo xtask mutants`: do the tests of layout and plan notice a changed line?
//!
//! The mutants are taken file by file. What became of a file's mutants stands in
//! `docs/mutants.md`, with the file's blob, and is kept until that file changes:
//! a run may be stopped at any time and taken up again, also in another checkout,
//! and shards may run at the same time.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

use anyhow::{Context, Result, bail, ensure};

use crate::repo::{self, Repo};
use crate::tally::{Document, Tally};
use crate::tool;

const RESULT: &str = "docs/mutants.md";

/// Tests that prove the same as others over many more inputs.
const SLOW_TESTS: &[&str] = &["exhaustive", "corpus", "bench"];

/// The workspace optimises these for their tests; here they are built far more often than run.
const CRATES: [&str; 2] = ["mooncake-pd-layout", "mooncake-pd-plan"];

/// Files that a test of another package proves too: the file, the package, and the
/// tests of it and of the file's own package that are run.
const TESTED_ELSEWHERE: [(&str, &str, [&str; 2]); 1] = [(
    "crates/plan/src/explain.rs",
    "mooncake-pd",
    ["explain", "edges"],
)];

/// Inputs per quickcheck property; the default is 100.
const QUICKCHECK_TESTS: &str = "15";

/// Arguments of `cargo xtask mutants`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only every n-th file, beginning with the k-th, as k/n with k from 0
    #[arg(long, default_value = "0/1")]
    shard: Shard,
    /// Runs survivors without a reason again, after new tests were committed
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

/// Runs what is missing of a shard, and adds each file to the result as it is done.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<()> {
    let program = tool::MUTANTS.install(repo)?;
    let tree = checkout(repo, args.shard)?;
    let sources = sources(repo)?;
    let shard = sources
        .iter()
        .skip(args.shard.index)
        .step_by(args.shard.count);
    for source in shard {
        let before = document(repo)?;
        let known = before.tally(&source.path, &source.blob);
        let again = match known {
            None => None,
            Some(tally) => {
                let again = before.without_reason(tally);
                if !args.retry || again.is_empty() {
                    continue;
                }
                Some(again)
            }
        };
        println!("==> {}", source.path);
        let mut tally = run_file(&program, &tree, source, again.as_deref())?;
        if let Some(known) = known {
            tally.add_known(known, &again.unwrap_or_default());
        }
        // Read again: another shard may have written meanwhile.
        let mut document = document(repo)?;
        document.put(tally);
        document.keep(|path, blob| sources.iter().any(|s| s.path == path && s.blob == blob));
        fs::write(repo.path(RESULT), document.render(sources.len())?)?;
    }
    Ok(())
}

fn document(repo: &Repo) -> Result<Document> {
    match fs::read_to_string(repo.path(RESULT)) {
        Ok(text) => Document::parse(&text),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(Document::default()),
        Err(error) => Err(error).context(RESULT),
    }
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
        let blob = about
            .rsplit(' ')
            .next()
            .and_then(|id| id.get(..12))
            .context("no blob")?;
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

/// Runs a file's mutants, or some of them by name.
fn run_file(
    program: &Path,
    tree: &Path,
    source: &Source,
    only: Option<&[String]>,
) -> Result<Tally> {
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
        .args(["--file", &source.path])
        .args(only.unwrap_or_default().iter().flat_map(|name| {
            let name = format!("^{}$", escaped(name));
            ["--re".to_owned(), name]
        }))
        .args(
            CRATES
                .map(|name| format!("--cargo-arg=--config=profile.dev.package.{name}.opt-level=0")),
        )
        .args(tests(&source.path))
        .env("QUICKCHECK_TESTS", QUICKCHECK_TESTS)
        // A snapshot that differs is a failure and is not written down.
        .env("INSTA_UPDATE", "no")
        // Nobody looks at these binaries: they need not be debugged.
        .env("CARGO_PROFILE_DEV_DEBUG", "0")
        .env("CARGO_PROFILE_TEST_DEBUG", "0");
    let status = mutants.status()?;
    // 2: some were missed; 3: some ran out of time.
    if !matches!(status.code(), Some(0 | 2 | 3)) {
        bail!("{status} from {mutants:?}");
    }
    let names = |kind: &str| {
        let text = fs::read_to_string(out.join(format!("{kind}.txt"))).unwrap_or_default();
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    Ok(Tally {
        path: source.path.clone(),
        blob: source.blob.clone(),
        caught: names("caught").len(),
        timeout: names("timeout").len(),
        unviable: names("unviable").len(),
        survivors: names("missed"),
    })
}

/// A regular expression for a name.
fn escaped(name: &str) -> String {
    let mut escaped = String::new();
    for letter in name.chars() {
        // `\<` would be the start of a word.
        if letter.is_ascii_punctuation() && !"<>".contains(letter) {
            escaped.push('\\');
        }
        escaped.push(letter);
    }
    escaped
}

/// Arguments that choose the tests of a file's mutants.
fn tests(file: &str) -> Vec<String> {
    let elsewhere = TESTED_ELSEWHERE.iter().find(|(path, ..)| *path == file);
    if let Some((_, package, tests)) = elsewhere {
        let packages = [*package, "mooncake-pd-plan"].map(|name| format!("--test-package={name}"));
        let tests = tests.iter().flat_map(|test| ["--test", test]);
        let tests = ["--"].into_iter().chain(tests).map(str::to_owned);
        return packages.into_iter().chain(tests).collect();
    }
    let skipped = SLOW_TESTS.iter().flat_map(|name| ["--skip", name]);
    let all = ["--", "--lib", "--tests", "--"].into_iter();
    all.chain(skipped).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::{Shard, escaped};

    #[test]
    fn a_name_is_escaped_but_for_what_would_mean_a_word() {
        let name = "a.rs:9:1: replace + with | in <F<'a>>::f -> (u8, [u8; 2])";
        let expected = r"a\.rs\:9\:1\: replace \+ with \| in <F<\'a>>\:\:f \-> \(u8\, \[u8\; 2\]\)";
        assert_eq!(escaped(name), expected);
    }

    #[test]
    fn a_shard_outside_its_count_is_refused() {
        assert!("2/3".parse::<Shard>().is_ok());
        assert!("3/3".parse::<Shard>().is_err());
        assert!("0/0".parse::<Shard>().is_err());
    }
}

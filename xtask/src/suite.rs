//! `cargo xtask test`: everything that must hold, from set-up on.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::engines::{self, Exports};
use crate::repo::{self, Repo};
use crate::steps::{Step, Steps};
use crate::{arrows, outside, tool};

/// Arguments of `cargo xtask test`.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Only these steps
    steps: Vec<Step>,
}

/// Runs the suite, cheap steps first.
pub(crate) fn run(repo: &Repo, args: &Args) -> Result<()> {
    let mut steps = Steps::choosing(&args.steps);
    steps.step(Step::SetUp, || set_up(repo))?;
    let mut exports = engines::installed(repo)?;
    steps.step(Step::Engines, || {
        exports = engines::install(repo, false)?;
        Ok(())
    })?;
    steps.step(Step::Fmt, || fmt(repo))?;
    steps.step(Step::Arrows, || arrows::check(repo))?;
    steps.step(Step::Deny, || deny(repo))?;
    steps.step(Step::Clippy, || clippy(repo))?;
    steps.step(Step::Doc, || doc(repo))?;
    steps.step(Step::NoStd, || {
        outside::cargo(repo, outside::NOSTD, "build", &[])
    })?;
    steps.step(Step::Integrator, || {
        outside::cargo(repo, outside::INTEGRATOR, "run", &["--quiet"])
    })?;
    // Whether they compile; libFuzzer itself would need a C++ compiler and nightly.
    steps.step(Step::FuzzBuild, || {
        outside::cargo(repo, outside::FUZZ, "check", &["--no-default-features"])
    })?;
    steps.step(Step::Tests, || tests(repo, &exports))?;
    steps.step(Step::Doctests, || doctests(repo, &exports))?;
    steps.step(Step::Snapshots, || snapshots(repo))?;
    steps.finish();
    Ok(())
}

fn set_up(repo: &Repo) -> Result<()> {
    for component in ["fmt", "clippy"] {
        ensure!(
            repo::succeeds(&mut repo.cargo([component, "--version"])),
            "cargo {component} is missing; `rustup component add rustfmt clippy` installs it"
        );
    }
    repo::run(&mut repo.cargo(["fetch", "--locked"]))?;
    tool::DENY.install(repo).map(drop)
}

fn fmt(repo: &Repo) -> Result<()> {
    repo::run(&mut repo.cargo(["fmt", "--all", "--check"]))?;
    for folder in outside::ALL {
        outside::cargo(repo, folder, "fmt", &["--check"])?;
    }
    Ok(())
}

fn deny(repo: &Repo) -> Result<()> {
    let program = tool::DENY.install(repo)?;
    // No advisories: their database is a git repository that not every machine can reach.
    let checks = ["licenses", "bans", "sources"];
    let mut deny = repo.command(program, ["--all-features", "--locked", "check"]);
    repo::run(deny.args(checks))
}

fn clippy(repo: &Repo) -> Result<()> {
    let mut clippy = repo.cargo(["clippy", "--locked", "--workspace"]);
    clippy.args(["--all-targets", "--all-features", "--", "-D", "warnings"]);
    repo::run(&mut clippy)
}

fn doc(repo: &Repo) -> Result<()> {
    let mut doc = repo.cargo(["doc", "--locked", "--workspace", "--all-features"]);
    repo::run(doc.arg("--no-deps").env("RUSTDOCFLAGS", "-D warnings"))
}

fn tests(repo: &Repo, exports: &Exports) -> Result<()> {
    let nextest = repo::succeeds(&mut repo.cargo(["nextest", "--version"]));
    let mut tests = if nextest {
        repo.cargo(["nextest", "run"])
    } else {
        repo.cargo(["test", "--lib", "--bins", "--tests"])
    };
    exports.apply(&mut tests);
    repo::run(strict_snapshots(tests.args([
        "--locked",
        "--workspace",
        "--all-features",
    ])))
}

fn doctests(repo: &Repo, exports: &Exports) -> Result<()> {
    let mut doctests = repo.cargo(["test", "--doc", "--locked", "--workspace"]);
    exports.apply(&mut doctests);
    repo::run(strict_snapshots(doctests.arg("--all-features")))
}

/// A snapshot that differs from the reviewed one fails the test and is not written down.
fn strict_snapshots(command: &mut Command) -> &mut Command {
    command.env("INSTA_UPDATE", "no").env("CI", "1")
}

/// Fails while a snapshot waits for review.
fn snapshots(repo: &Repo) -> Result<()> {
    let mut waiting = Vec::new();
    unreviewed(&repo.path("crates"), &mut waiting)?;
    ensure!(
        waiting.is_empty(),
        "snapshots wait for `cargo insta review`: {waiting:?}"
    );
    Ok(())
}

fn unreviewed(folder: &Path, found: &mut Vec<PathBuf>) -> Result<()> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("can't read {}", folder.display()))?;
    for entry in entries {
        let entry = entry?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if entry.file_type()?.is_dir() {
            unreviewed(&entry.path(), found)?;
        } else if name.ends_with(".snap.new") || name.ends_with(".pending-snap") {
            found.push(entry.path());
        }
    }
    Ok(())
}

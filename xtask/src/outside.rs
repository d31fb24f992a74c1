//! Crates outside the workspace that build on it: the checks and the fuzz targets.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use crate::repo::{Repo, run};

/// Static library of layout and plan without std.
pub(crate) const NOSTD: &str = "checks/nostd";

/// What somebody writes who builds on layout and plan alone.
pub(crate) const INTEGRATOR: &str = "checks/integrator";

/// Targets of cargo-fuzz.
pub(crate) const FUZZ: &str = "fuzz";

/// All of them.
pub(crate) const ALL: &[&str] = &[NOSTD, INTEGRATOR, FUZZ];

/// Runs cargo in one of them.
pub(crate) fn cargo(repo: &Repo, folder: &str, subcommand: &str, rest: &[&str]) -> Result<()> {
    lock(repo, folder)?;
    let mut command = repo.cargo([subcommand]);
    command
        .args(rest)
        .arg("--manifest-path")
        .arg(repo.path(folder).join("Cargo.toml"));
    if subcommand != "fmt" {
        command.arg("--target-dir").arg(repo.path("target/outside"));
    }
    run(&mut command)
}

/// Holds one of them to the dependency versions of the workspace.
pub(crate) fn lock(repo: &Repo, folder: &str) -> Result<()> {
    let ours = repo.path("Cargo.lock");
    let theirs = repo.path(folder).join("Cargo.lock");
    if !is_newer(&theirs, &ours)? {
        fs::copy(&ours, &theirs).with_context(|| format!("can't write {}", theirs.display()))?;
    }
    Ok(())
}

fn is_newer(file: &Path, than: &Path) -> Result<bool> {
    let changed = |path: &Path| fs::metadata(path)?.modified();
    let than = changed(than).with_context(|| format!("can't read {}", than.display()))?;
    Ok(changed(file).is_ok_and(|file| file > than))
}
